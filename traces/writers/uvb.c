/* .uvb: see traces/uvb.h for the layout. */
#include "uvb.h"
#include "format.h"
#include <assert.h>
#include <zlib.h>
#include <zstd.h>

struct bytes { uint8_t *v; size_t n, cap; };
struct state {
  struct uvm_sink *out;
  struct uvm_names strings;
  struct bytes raw;                             /* the block being filled */
  uint32_t events;                              /* in it */
  struct bytes index;                           /* offset and events of each finished block */
  uint32_t blocks;
  uint64_t total;                               /* events in all blocks */
};

static void byte(struct bytes *b, uint8_t v) { UVM_PUSH(b) = v; }

static void varint(struct bytes *b, uint64_t v) {
  assert(v <= UVM_TRACE_MAX_NUMBER);
  for (; v > 0x7f; v >>= 7) byte(b, (uint8_t)(v | 0x80));
  byte(b, (uint8_t)v);
}

static void *open_binary(struct uvm_sink *out) {
  struct state *s = uvm_mem(sizeof *s);
  s->out = out;
  uint8_t h[UVB_HEADER];
  memcpy(h, UVB_MAGIC, 8);
  uvb_put32(h + 8, UVB_VERSION);
  uvb_put32(h + 12, (uint32_t)crc32(0, h, 12));
  uvm_sink_write(out, h, sizeof h);
  return s;
}

static void write_block(struct uvm_sink *out, uint32_t tag, uint32_t events, const struct bytes *raw) {
  assert(raw->n <= UVB_CAP);
  size_t room = ZSTD_compressBound(raw->n);
  uint8_t *stored = uvm_mem(room), h[UVB_BLOCK_HEADER];
  size_t n = ZSTD_compress(stored, room, raw->v, raw->n, 3);
  if (ZSTD_isError(n)) uvm_mem_gone(0);         /* the bound leaves it no other way to fail */
  uvb_put32(h, tag);
  uvb_put32(h + 4, events);
  uvb_put32(h + 8, (uint32_t)raw->n);
  uvb_put32(h + 12, (uint32_t)n);
  uvb_put32(h + 16, (uint32_t)crc32(crc32(0, h, 16), stored, (uInt)n));
  uvm_sink_write(out, h, sizeof h);
  uvm_sink_write(out, stored, n);
  uvm_mem_free(stored);
}

static void end_block(struct state *s) {
  if (!s->events) return;
  varint(&s->index, uvm_sink_position(s->out));
  varint(&s->index, s->events);
  write_block(s->out, UVB_BLOCK, s->events, &s->raw);
  s->total += s->events;
  s->blocks++;
  s->events = 0;
  s->raw.n = 0;
}

/* The number of a string, defined in front of the event that first uses it. */
static uint32_t string(struct state *s, const char *text) {
  size_t known = s->strings.list.n, n = strlen(text);
  uint32_t number = uvm_names_add(&s->strings, text);
  if (number < known) return number;
  byte(&s->raw, 0);
  varint(&s->raw, n);
  for (size_t i = 0; i < n; i++) byte(&s->raw, (uint8_t)text[i]);
  return number;
}

static bool is_string(const struct uvm_field *f) {
  return f->type == UVM_F_NAME || f->type == UVM_F_SECTION || f->type == UVM_F_ALLOC;
}

static void put_event(struct state *s, const struct uvm_ids *ids, const struct uvm_grammar *table, const struct uvm_grammar *g,
                      const void *object) {
  assert(g && g->nfields <= UVB_FIELDS);
  uint64_t value[UVB_FIELDS], present = 0;
  bool optional = false;
  for (size_t i = 0; i < g->nfields; i++) {
    const struct uvm_field *f = &g->fields[i];
    optional |= f->optional;
    if (!uvm_field_present(f, object)) continue;
    present |= 1ull << i;
    const char *text = f->type == UVM_F_ALLOC ? ids->id(ids->ctx, (uint32_t)uvm_field_get(f, object))
                       : is_string(f)         ? uvm_field_name(f, object)
                                              : NULL;
    value[i] = text ? string(s, text) : uvm_field_get(f, object);
  }
  byte(&s->raw, (uint8_t)(g - table + 1));
  if (optional) varint(&s->raw, present);
  for (size_t i = 0; i < g->nfields; i++) {
    if (!(present >> i & 1)) continue;
    varint(&s->raw, value[i]);
    if (g->fields[i].type != UVM_F_SECTION) continue;
    const struct uvm_trace_record *r = object;
    varint(&s->raw, r->has_iteration);
    if (r->has_iteration) varint(&s->raw, r->iteration);
  }
  s->events++;
  if (s->raw.n >= UVB_FULL) end_block(s);
}

static void write_binary(void *state, const struct uvm_ids *ids, const struct uvm_trace_record *r) {
  const struct uvm_grammar *top = uvm_grammar_top, *in = uvm_grammar_kernel;
  put_event(state, ids, top, uvm_grammar_of(top, uvm_grammar_ntop, r->op, r->op == UVM_TR_ACCESS ? r->access.op : 0), r);
  if (r->op != UVM_TR_KERNEL) return;
  const struct uvm_grammar *next = uvm_grammar_of(in, uvm_grammar_nkernel, UVM_IN_NEXT, 0);
  for (size_t i = 0; i < r->naccesses; i++) {
    const struct uvm_trace_access *a = &r->accesses[i];
    if (a->next) put_event(state, ids, in, next, a);
    put_event(state, ids, in, uvm_grammar_of(in, uvm_grammar_nkernel, UVM_IN_ACCESS, a->op), a);
  }
  put_event(state, ids, in, uvm_grammar_of(in, uvm_grammar_nkernel, UVM_IN_DONE, 0), r);
}

static void finish_binary(void *state) {
  struct state *s = state;
  end_block(s);
  uint8_t f[UVB_FOOTER];
  uvb_put64(f, uvm_sink_position(s->out));
  uvb_put64(f + 8, s->total);
  write_block(s->out, UVB_INDEX, s->blocks, &s->index);
  uvb_put32(f + 16, (uint32_t)crc32(0, f, 16));
  uvb_put32(f + 20, UVB_END);
  uvm_sink_write(s->out, f, sizeof f);
}

static void close_binary(void *state) {
  struct state *s = state;
  uvm_names_clear(&s->strings);
  uvm_mem_free(s->raw.v);
  uvm_mem_free(s->index.v);
  uvm_mem_free(s);
}

const struct uvm_writer_ops uvm_writer_uvb = {open_binary, write_binary, finish_binary, close_binary};
