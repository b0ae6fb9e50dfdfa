/* .uvb: see traces/uvb.h for the layout. Nothing in a file is believed before its checksum has been compared, and nothing after
 * it either: counts, numbers and names are checked as those of text are. */
#include "uvb.h"
#include "format.h"
#include <assert.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

struct where { uint64_t offset, events; };
struct state {
  struct uvm_input *in;
  const struct uvm_check *names;
  bool started;
  uint64_t offset;                              /* in the file, of what is read next */
  uint8_t *raw;                                 /* the block: UVB_CAP bytes */
  uint8_t *stored;                              /* likewise, compressed */
  size_t at, n;                                 /* unread bytes of raw */
  uint64_t left;                                /* events still in it */
  uint64_t events;                              /* read so far: the number of the current one */
  UVM_VEC(char *) strings;
  UVM_VEC(struct where) blocks;                 /* read so far, to compare with the index */
  UVM_VEC(struct uvm_trace_access) accesses;
};

static bool probe(const uint8_t *head, size_t n) { return n >= 8 && !memcmp(head, UVB_MAGIC, 8); }

static void *open_binary(struct uvm_input *in, const struct uvm_check *names) {
  struct state *s = uvm_mem(sizeof *s);
  *s = (struct state){.in = in, .names = names, .raw = uvm_mem(UVB_CAP), .stored = uvm_mem(UVB_CAP)};
  uvm_input_count_records(in);
  return s;
}

static void rewind_binary(void *state) {
  struct state *s = state;
  for (size_t i = 0; i < s->strings.n; i++) uvm_mem_free(s->strings.v[i]);
  s->strings.n = s->blocks.n = s->accesses.n = 0;
  s->started = false;
  s->offset = s->left = s->events = 0;
  s->at = s->n = 0;
}

static void close_binary(void *state) {
  struct state *s = state;
  rewind_binary(s);
  uvm_mem_free(s->strings.v);
  uvm_mem_free(s->blocks.v);
  uvm_mem_free(s->accesses.v);
  uvm_mem_free(s->raw);
  uvm_mem_free(s->stored);
  uvm_mem_free(s);
}

static int damaged(const struct state *s, struct uvm_error *e, const char *expected, const char *found) {
  return uvm_input_fail(s->in, (int64_t)s->events, e, "expected %s, found %s", expected, found);
}

static int take(struct state *s, void *buf, size_t n, struct uvm_error *e) {
  size_t got;
  int code = uvm_input_bytes(s->in, buf, n, &got, e);
  s->offset += got;
  return code == 1 ? 0 : code ? code : damaged(s, e, "more of the file", "its end");
}

/* -- blocks -- */

static int read_header(struct state *s, struct uvm_error *e) {
  uint8_t h[UVB_HEADER];
  int code = take(s, h, sizeof h, e);
  if (code) return code;
  if (uvb_get32(h + 12) != crc32(0, h, 12)) return damaged(s, e, "an intact header", "a wrong checksum");
  if (uvb_get32(h + 8) != UVB_VERSION) return damaged(s, e, "version 1 of the binary format", "another");
  s->started = true;
  return 0;
}

static int read_block(struct state *s, uint32_t *tag, struct uvm_error *e) {
  uint8_t h[UVB_BLOCK_HEADER];
  int code = take(s, h, sizeof h, e);
  if (code) return code;
  *tag = uvb_get32(h);
  s->left = uvb_get32(h + 4);
  uint32_t raw = uvb_get32(h + 8), stored = uvb_get32(h + 12);
  if ((*tag != UVB_BLOCK && *tag != UVB_INDEX) || raw > UVB_CAP || stored > UVB_CAP)
    return damaged(s, e, "a block", "other bytes");
  code = take(s, s->stored, stored, e);
  if (code) return code;
  if (uvb_get32(h + 16) != crc32(crc32(0, h, 16), s->stored, stored)) return damaged(s, e, "an intact block", "a wrong checksum");
  size_t n = ZSTD_decompress(s->raw, UVB_CAP, s->stored, stored);
  if (ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation) uvm_mem_gone(0);
  if (n != raw) return damaged(s, e, "a block of zstd data", "other bytes");
  s->at = 0;
  s->n = raw;
  return 0;
}

static int varint(struct state *s, uint64_t *v, struct uvm_error *e) {
  *v = 0;
  for (unsigned shift = 0; shift < 63; shift += 7) {
    if (s->at == s->n) return damaged(s, e, "a number", "the end of the block");
    uint8_t b = s->raw[s->at++];
    *v |= (uint64_t)(b & 0x7f) << shift;
    if (!(b & 0x80)) return 0;
  }
  return damaged(s, e, "a number up to 2^63-1", "a larger one");
}

/* The index repeats where the blocks are and what is in them; then the footer, and nothing more. */
static int read_end(struct state *s, uint64_t index, struct uvm_error *e) {
  uint8_t f[UVB_FOOTER], more;
  bool same = s->left == s->blocks.n;
  for (size_t i = 0; same && i < s->blocks.n; i++) {
    uint64_t offset, events;
    int code = varint(s, &offset, e);
    if (!code) code = varint(s, &events, e);
    if (code) return code;
    same = offset == s->blocks.v[i].offset && events == s->blocks.v[i].events;
  }
  if (!same || s->at != s->n) return damaged(s, e, "an index of the blocks before it", "another");
  int code = take(s, f, sizeof f, e);
  if (code) return code;
  if (uvb_get64(f) != index || uvb_get64(f + 8) != s->events || uvb_get32(f + 16) != crc32(0, f, 16) || uvb_get32(f + 20) != UVB_END)
    return damaged(s, e, "an intact footer", "other bytes");
  size_t got;
  code = uvm_input_bytes(s->in, &more, 1, &got, e);
  return code == 1 ? damaged(s, e, "the end of the file", "more bytes") : code;
}

/* -- events -- */

static int define_string(struct state *s, struct uvm_error *e) {
  uint64_t n;
  int code = varint(s, &n, e);
  if (code) return code;
  if (n > s->n - s->at) return damaged(s, e, "a string", "the end of the block");
  char *text = uvm_mem(n + 1);
  memcpy(text, s->raw + s->at, n);
  s->at += n;
  UVM_PUSH(&s->strings) = text;
  const char *why = strlen(text) < n ? "a NUL byte" : uvm_name_problem(text);
  return why ? damaged(s, e, "a name", why) : 0;
}

/* The grammar of the next event. 1, 0 at the end of the trace, < 0. */
static int next_event(struct state *s, const struct uvm_grammar *table, size_t n, const struct uvm_grammar **g, struct uvm_error *e) {
  int code = s->started ? 0 : read_header(s, e);
  while (!code && !s->left) {
    uint64_t here = s->offset;
    uint32_t tag;
    if (s->at != s->n) return damaged(s, e, "the end of the block", "more bytes");
    code = read_block(s, &tag, e);
    if (code) return code;
    if (tag == UVB_INDEX) return read_end(s, here, e);
    UVM_PUSH(&s->blocks) = (struct where){here, s->left};
  }
  while (!code) {
    if (s->at == s->n) return damaged(s, e, "an event", "the end of the block");
    uint8_t b = s->raw[s->at++];
    if (b > n) return damaged(s, e, "an event", "an unknown one");
    if (b) {
      *g = &table[b - 1];
      s->left--;
      s->events++;
      return 1;
    }
    code = define_string(s, e);
  }
  return code;
}

static int set_string(struct state *s, const struct uvm_field *f, void *object, uint64_t v, struct uvm_error *e) {
  char text[80];
  uint32_t number;
  if (v >= s->strings.n) return damaged(s, e, "a string that was defined", "another");
  const char *string = s->strings.v[v];
  if (f->type != UVM_F_ALLOC) uvm_field_set_name(f, object, string);
  else if (uvm_check_find(s->names, string, &number)) uvm_field_set(f, object, number);
  else return damaged(s, e, f->what, uvm_quote(string, text));
  return 0;
}

static int set_iteration(struct state *s, struct uvm_trace_record *r, struct uvm_error *e) {
  uint64_t has;
  int code = varint(s, &has, e);
  if (code) return code;
  if (has > 1) return damaged(s, e, "0 or 1", "another number");
  r->has_iteration = has;
  return has ? varint(s, &r->iteration, e) : 0;
}

static int set_field(struct state *s, const struct uvm_field *f, void *object, struct uvm_error *e) {
  uint64_t v, end = UINT64_MAX;
  int code = varint(s, &v, e);
  if (code) return code;
  switch ((enum uvm_field_type)f->type) {
  case UVM_F_NAME:
  case UVM_F_ALLOC: return set_string(s, f, object, v, e);
  case UVM_F_SECTION:
    code = set_string(s, f, object, v, e);
    return code ? code : set_iteration(s, object, e);
  case UVM_F_PROC:
  case UVM_F_ADVISED: end = UVM_MAX_PROCS; break;
  case UVM_F_WORD:
    for (end = 0; f->words[end];) end++;
    break;
  case UVM_F_SIZE:
  case UVM_F_NUMBER: break;
  }
  if (v >= end) return damaged(s, e, f->what, "another number");
  uvm_field_set(f, object, v);
  return 0;
}

static int read_fields(struct state *s, const struct uvm_grammar *g, void *object, struct uvm_error *e) {
  uint64_t present = 0, needed = 0, all = (1ull << g->nfields) - 1;
  for (size_t i = 0; i < g->nfields; i++)
    if (!g->fields[i].optional) needed |= 1ull << i;
  int code = 0;
  if (needed == all) present = all;
  else code = varint(s, &present, e);
  if (code) return code;
  if ((present & needed) != needed || present & ~all) return damaged(s, e, "the fields of the record", "others");
  for (size_t i = 0; !code && i < g->nfields; i++)
    if (present >> i & 1) code = set_field(s, &g->fields[i], object, e);
  return code;
}

static int read_kernel(struct state *s, struct uvm_trace_record *r, struct uvm_error *e) {
  bool next = false;
  s->accesses.n = 0;
  for (;;) {
    const struct uvm_grammar *g;
    int code = next_event(s, uvm_grammar_kernel, uvm_grammar_nkernel, &g, e);
    if (code < 0) return code;
    if (!code) return uvm_input_fail(s->in, r->line, e, "expected \"done\" for this kernel, found the end of the file");
    struct uvm_trace_access a = {.op = g->sub, .next = next, .line = (int64_t)s->events};
    code = read_fields(s, g, &a, e);
    if (code) return code;
    if (g->op == UVM_IN_DONE) break;
    next = g->op == UVM_IN_NEXT;
    if (!next) UVM_PUSH(&s->accesses) = a;
  }
  r->accesses = s->accesses.v;
  r->naccesses = s->accesses.n;
  return 0;
}

static int read_binary(void *state, struct uvm_trace_record *r, struct uvm_error *e) {
  struct state *s = state;
  const struct uvm_grammar *g;
  int code = next_event(s, uvm_grammar_top, uvm_grammar_ntop, &g, e);
  if (code != 1) return code;
  r->op = g->op;
  r->line = r->access.line = (int64_t)s->events;
  r->access.op = g->sub;
  code = read_fields(s, g, r, e);
  if (!code && r->op == UVM_TR_KERNEL) code = read_kernel(s, r, e);
  return code ? code : 1;
}

const struct uvm_trace_reader uvm_reader_uvb = {"uvb", probe, open_binary, read_binary, rewind_binary, close_binary};
