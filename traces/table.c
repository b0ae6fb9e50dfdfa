/* The tables of readers and writers, and trace.h on top of them. */
#include "format.h"
#include "held.h"
#include <assert.h>

static const struct uvm_trace_reader *const readers[] = {&uvm_reader_uvt, &uvm_reader_uvb};
static const struct { const char *suffix; enum uvm_codec codec; const struct uvm_writer_ops *ops; } writers[] = {
  {".uvt", UVM_STORED, &uvm_writer_uvt},
  {".uvt.gz", UVM_GZIPPED, &uvm_writer_uvt},
  {".uvt.zst", UVM_ZSTDED, &uvm_writer_uvt},
  {".uvb", UVM_STORED, &uvm_writer_uvb},
};

/* -- reading -- */

struct uvm_trace {
  struct uvm_input *in;
  struct uvm_check check;
  const struct uvm_trace_reader *reader;
  void *state;
  struct uvm_trace_record record;               /* read last */
  struct uvm_held *held;                        /* or NULL: the reader reads */
};

static int start(struct uvm_input *in, struct uvm_trace **out, struct uvm_error *e) {
  const uint8_t *head;
  int n = uvm_input_peek(in, 64, &head, e);
  if (n < 0) {
    uvm_input_close(in);
    return n;
  }
  const struct uvm_trace_reader *reader = NULL;
  for (size_t i = 0; i < sizeof readers / sizeof *readers && !reader; i++)
    if (readers[i]->probe(head, (size_t)n)) reader = readers[i];
  if (!reader) {
    int code = uvm_input_fail(in, 1, e, "expected \"uvmtrace 1\" or a binary trace, found %s", n ? "something else" : "an empty file");
    uvm_input_close(in);
    return code;
  }
  struct uvm_trace *t = uvm_mem(sizeof *t);
  *t = (struct uvm_trace){.in = in, .check = {.in = in}, .reader = reader};
  t->state = reader->open(in, &t->check);
  *out = t;
  return 0;
}

int uvm_trace_open(const char *path, bool again, struct uvm_trace **out, struct uvm_error *e) {
  struct uvm_input *in;
  int code = uvm_input_open(path, again, &in, e);
  return code ? code : start(in, out, e);
}

int uvm_trace_open_memory(const void *data, size_t n, struct uvm_trace **out, struct uvm_error *e) {
  struct uvm_input *in;
  int code = uvm_input_open_memory(data, n, &in, e);
  return code ? code : start(in, out, e);
}

static int read_next(struct uvm_trace *t, struct uvm_trace_record *r, struct uvm_error *e) {
  *r = (struct uvm_trace_record){0};
  int code = t->reader->read(t->state, r, e);
  if (code < 0) return code;
  if (!code) return uvm_check_end(&t->check, e);
  code = uvm_check_record(&t->check, r, e);
  return code ? code : 1;
}

int uvm_trace_take(struct uvm_trace *t, size_t most, const struct uvm_trace_record **r, struct uvm_error *e) {
  struct uvm_held *h = t->held;
  if (!h) return *r = &t->record, read_next(t, &t->record, e);
  size_t left = h->records.n - h->at, n = most < left ? most : left;
  *r = &h->records.v[h->at];
  h->at += n;
  return (int)n;
}

void uvm_trace_give_back(struct uvm_trace *t, size_t back) {
  assert(!back || t->held);
  if (back) t->held->at -= back;
}

int uvm_trace_next(struct uvm_trace *t, struct uvm_trace_record *r, struct uvm_error *e) {
  const struct uvm_trace_record *taken;
  int more = uvm_trace_take(t, 1, &taken, e);
  if (more > 0) *r = *taken;
  return more;
}

int uvm_trace_hold(struct uvm_trace *t, struct uvm_error *e) {
  int code = uvm_trace_rewind(t, e);
  if (code || t->held) return code;
  struct uvm_held *h = uvm_mem(sizeof *h);
  while ((code = read_next(t, &t->record, e)) > 0) uvm_held_add(h, &t->record);
  if (code)
    uvm_held_free(h);
  else
    t->held = h;
  return code;
}

int uvm_trace_rewind(struct uvm_trace *t, struct uvm_error *e) {
  if (t->held) return t->held->at = 0, 0;
  int code = uvm_input_rewind(t->in, e);
  if (code) return code;
  uvm_check_clear(&t->check);
  t->reader->rewind(t->state);
  return 0;
}

void uvm_trace_close(struct uvm_trace *t) {
  if (!t) return;
  t->reader->close(t->state);
  uvm_held_free(t->held);
  uvm_check_clear(&t->check);
  uvm_input_close(t->in);
  uvm_mem_free(t);
}

const char *uvm_trace_name(const struct uvm_trace *t) { return uvm_input_path(t->in); }
const char *uvm_trace_format(const struct uvm_trace *t) { return t->reader->name; }
uint64_t uvm_trace_position(const struct uvm_trace *t, uint64_t *total) { return uvm_input_position(t->in, total); }

const char *uvm_trace_alloc_id(const struct uvm_trace *t, uint32_t number) {
  return number < t->check.allocs.n ? t->check.ids.list.v[t->check.allocs.v[number].id] : NULL;
}

/* -- writing -- */

struct uvm_trace_writer {
  struct uvm_sink *sink;
  const struct uvm_writer_ops *ops;
  void *state;
  struct uvm_names ids;
  UVM_VEC(uint32_t) numbers;                    /* id by number, of the allocations written */
};

int uvm_trace_create(const char *path, struct uvm_trace_writer **out, struct uvm_error *e) {
  size_t len = strlen(path), format = strcmp(path, "-") ? SIZE_MAX : 0;
  for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
    size_t n = strlen(writers[i].suffix);
    if (len > n && !strcmp(path + len - n, writers[i].suffix)) format = i;
  }
  if (format == SIZE_MAX) return uvm_fail(e, UVM_EUSAGE, "%s: expected a name that ends in .uvt, .uvt.gz, .uvt.zst or .uvb", path);
  struct uvm_trace_writer *w = uvm_mem(sizeof *w);
  int code = uvm_sink_open(path, writers[format].codec, &w->sink, e);
  if (code) {
    uvm_mem_free(w);
    return code;
  }
  w->ops = writers[format].ops;
  w->state = w->ops->open(w->sink);
  *out = w;
  return 0;
}

static const char *id_of_trace(const void *trace, uint32_t number) { return uvm_trace_alloc_id(trace, number); }
static const char *id_of_writer(const void *writer, uint32_t number) {
  const struct uvm_trace_writer *w = writer;
  return number < w->numbers.n ? w->ids.list.v[w->numbers.v[number]] : NULL;
}

/* Names come from programs too, not only from traces that were checked. */
static int check_names(const struct uvm_trace_record *r, struct uvm_error *e) {
  const char *names[] = {r->id, r->label};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char text[80];
    const char *why = names[i] ? uvm_name_problem(names[i]) : NULL;
    if (why) return uvm_fail(e, UVM_EINPUT, "the name %s cannot be written in a trace: it is or has %s", uvm_quote(names[i], text), why);
  }
  return 0;
}

int uvm_trace_write(struct uvm_trace_writer *w, const struct uvm_trace *names, const struct uvm_trace_record *r, struct uvm_error *e) {
  int code = check_names(r, e);
  if (code) return code;
  if (r->op == UVM_TR_ALLOC) UVM_PUSH(&w->numbers) = uvm_names_add(&w->ids, r->id);
  struct uvm_ids ids = names ? (struct uvm_ids){id_of_trace, names} : (struct uvm_ids){id_of_writer, w};
  w->ops->write(w->state, &ids, r);
  return 0;
}

static void release(struct uvm_trace_writer *w) {
  w->ops->close(w->state);
  uvm_names_clear(&w->ids);
  uvm_mem_free(w->numbers.v);
  uvm_mem_free(w);
}

int uvm_trace_commit(struct uvm_trace_writer *w, struct uvm_error *e) {
  w->ops->finish(w->state);
  int code = uvm_sink_commit(w->sink, e);
  release(w);
  return code;
}

void uvm_trace_abandon(struct uvm_trace_writer *w) {
  uvm_sink_abandon(w->sink);
  release(w);
}
