#include "check.h"
#include <assert.h>

typedef unsigned long long ull;

bool uvm_check_find(const struct uvm_check *c, const char *id, uint32_t *number) {
  uint32_t known;
  if (!uvm_names_find(&c->ids, id, &known)) return false;
  *number = c->last.v[known];
  return true;
}

static int processor(const struct uvm_check *c, int64_t line, uint8_t proc, struct uvm_error *e) {
  char name[8];
  if (proc < c->procs) return 0;
  return uvm_input_fail(c->in, line, e, "expected a declared processor, found \"%s\" (there is no record \"processor %s\" before this)",
                        uvm_proc_text(proc, name), name);
}

static int range(const struct uvm_check *c, int64_t line, uint32_t number, uint64_t offset, uint64_t bytes, struct uvm_error *e) {
  char id[80];
  assert(number < c->allocs.n);
  const struct uvm_check_alloc *a = &c->allocs.v[number];
  const char *name = uvm_quote(c->ids.list.v[a->id], id);
  if (!a->live)
    return uvm_input_fail(c->in, line, e, "expected a live allocation, found %s, which was freed on %s %lld", name, uvm_input_unit(c->in),
                          (long long)a->line);
  if (!bytes) return uvm_input_fail(c->in, line, e, "expected a length of at least 1 byte, found 0");
  if (offset < a->bytes && bytes <= a->bytes - offset) return 0;
  return uvm_input_fail(c->in, line, e, "expected a range inside allocation %s of %llu bytes, found offset %llu, length %llu", name,
                        (ull)a->bytes, (ull)offset, (ull)bytes);
}

/* Prefetches and advice are about memory that can move. */
static int managed(const struct uvm_check *c, const struct uvm_trace_record *r, struct uvm_error *e) {
  char id[80];
  int code = range(c, r->line, r->alloc, r->offset, r->bytes, e);
  if (code || c->allocs.v[r->alloc].managed) return code;
  return uvm_input_fail(c->in, r->line, e, "expected managed memory, found %s, which is not",
                        uvm_quote(c->ids.list.v[c->allocs.v[r->alloc].id], id));
}

/* Steps, widths and lane counts: at least 1 and not absurd, so that no later arithmetic overflows. */
static int amount(const struct uvm_check *c, int64_t line, const char *what, uint64_t n, struct uvm_error *e) {
  if (n && n <= UVM_TRACE_MAX_BYTES) return 0;
  return uvm_input_fail(c->in, line, e, "expected a %s from 1 to 2^47, found %llu", what, (ull)n);
}

/* Delays and durations: a run counts picoseconds too, which must fit in 64 bits. */
static int duration(const struct uvm_check *c, int64_t line, uint64_t ns, struct uvm_error *e) {
  if (ns <= UVM_TRACE_MAX_NS) return 0;
  return uvm_input_fail(c->in, line, e, "expected a time of at most 2^53 ns (104 days), found %llu", (ull)ns);
}

/* Elements may overlap, so their sum is no less absurd than a length can be. */
static int element_bytes(const struct uvm_check *c, const struct uvm_trace_access *a, struct uvm_error *e) {
  uint64_t elements = (a->bytes - 1) / a->step + 1, width = a->width < a->bytes ? a->width : a->bytes;
  if (elements <= UVM_TRACE_MAX_ELEMENT_BYTES / width) return 0;
  return uvm_input_fail(c->in, a->line, e, "expected elements of at most 2^53 bytes together, found %llu of %llu bytes", (ull)elements,
                        (ull)width);
}

static int check_access(const struct uvm_check *c, struct uvm_trace_access *a, bool inside, struct uvm_error *e) {
  bool loop = !inside || a->split != UVM_SPLIT_NONE;
  int code = range(c, a->line, a->alloc, a->offset, a->bytes, e);
  if (code) return code;
  if (!loop && (a->has_step || a->has_width))
    return uvm_input_fail(c->in, a->line, e, "expected split= beside step= or width= (without it the record is one access)");
  if (loop && a->by_block) return uvm_input_fail(c->in, a->line, e, "expected split= or by=, found both");
  if (!a->has_width) a->width = loop ? 8 : a->bytes;
  if (!a->has_step) a->step = inside ? a->width : c->page ? c->page : UVM_PAGE;
  code = amount(c, a->line, "width", a->width, e);
  if (!code) code = amount(c, a->line, "step", a->step, e); /* a width, where none is given */
  return code ? code : element_bytes(c, a, e);
}

static int check_processor(struct uvm_check *c, struct uvm_trace_record *r, struct uvm_error *e) {
  char want[8], found[80];
  if (c->allocs.n) return uvm_input_fail(c->in, r->line, e, "expected processors before the first alloc");
  if (c->procs == UVM_MAX_PROCS)
    return uvm_input_fail(c->in, r->line, e, "expected at most %d processors", UVM_MAX_PROCS);
  if (strcmp(r->label, uvm_proc_text((uint8_t)c->procs, want)))
    return uvm_input_fail(c->in, r->line, e, "expected processor \"%s\" (cpu first, then gpu0, gpu1, ...), found %s", want,
                          uvm_quote(r->label, found));
  r->proc = (uint8_t)c->procs++;
  return 0;
}

static int check_page(struct uvm_check *c, const struct uvm_trace_record *r, struct uvm_error *e) {
  if (c->page || c->allocs.n) return uvm_input_fail(c->in, r->line, e, "expected one page record, before the first alloc");
  if (r->page < UVM_PAGE || r->page > UVM_BLOCK_BYTES || (r->page & (r->page - 1)))
    return uvm_input_fail(c->in, r->line, e, "expected a page size that is a power of two from 4K to 2M, found %llu", (ull)r->page);
  c->page = r->page;
  return 0;
}

static int check_alloc(struct uvm_check *c, struct uvm_trace_record *r, struct uvm_error *e) {
  char text[80];
  uint32_t old;
  if (uvm_check_find(c, r->id, &old) && c->allocs.v[old].live)
    return uvm_input_fail(c->in, r->line, e, "expected a new id, found %s, alive since %s %lld", uvm_quote(r->id, text),
                          uvm_input_unit(c->in), (long long)c->allocs.v[old].line);
  if (!r->bytes || r->bytes > UVM_TRACE_MAX_BYTES)
    return uvm_input_fail(c->in, r->line, e, "expected an allocation of 1 byte to 128 TiB, found %llu bytes", (ull)r->bytes);
  if (r->has_base && (r->base % UVM_PAGE || r->base > UVM_TRACE_MAX_BYTES - r->bytes))
    return uvm_input_fail(c->in, r->line, e, "expected a base that is a multiple of 4096 with its range below 2^47, found %llu",
                          (ull)r->base);
  if (!r->has_on) r->on = 1;
  else if (r->kind != UVM_TRK_DEVICE) return uvm_input_fail(c->in, r->line, e, "expected on= only with kind device");
  else if (!r->on) return uvm_input_fail(c->in, r->line, e, "expected a GPU in on=, found \"cpu\"");
  if (r->kind == UVM_TRK_DEVICE) {
    int code = processor(c, r->line, r->on, e);
    if (code) return code;
  }
  c->bytes += r->bytes;                         /* kept below 2^63, so that no sum of sizes overflows */
  if (c->bytes > UVM_TRACE_MAX_NUMBER) return uvm_input_fail(c->in, r->line, e, "expected less than 2^63 bytes in all allocations");
  if (c->allocs.n == UINT32_MAX) return uvm_input_fail(c->in, r->line, e, "expected fewer than 2^32 allocations");
  uint32_t id = uvm_names_add(&c->ids, r->id);
  r->alloc = (uint32_t)c->allocs.n;
  if (id == c->last.n) UVM_PUSH(&c->last) = r->alloc;
  else c->last.v[id] = r->alloc;
  bool is_managed = r->kind == UVM_TRK_MANAGED;
  UVM_PUSH(&c->allocs) = (struct uvm_check_alloc){.id = id, .live = true, .managed = is_managed, .bytes = r->bytes, .line = r->line};
  return 0;
}

static int check_free(struct uvm_check *c, const struct uvm_trace_record *r, struct uvm_error *e) {
  struct uvm_check_alloc *a = &c->allocs.v[r->alloc];
  int code = range(c, r->line, r->alloc, 0, a->bytes, e);
  if (code) return code;
  a->live = false;
  a->line = r->line;
  return 0;
}

static int check_kernel(const struct uvm_check *c, struct uvm_trace_record *r, struct uvm_error *e) {
  int code = processor(c, r->line, r->proc, e);
  if (!code) code = amount(c, r->line, "number of lanes", r->lanes, e);
  if (!r->has_lanes_per_block) r->lanes_per_block = r->lanes < 256 ? r->lanes : 256;
  if (!code) code = amount(c, r->line, "number of lanes per block", r->lanes_per_block, e);
  if (!code && r->has_ns) code = duration(c, r->line, r->ns, e);
  for (size_t i = 0; !code && i < r->naccesses; i++) code = check_access(c, &r->accesses[i], true, e);
  return code;
}

static int check_prefetch(const struct uvm_check *c, const struct uvm_trace_record *r, struct uvm_error *e) {
  uint8_t proc;
  int code = uvm_proc_parse(r->label, &proc) ? processor(c, r->line, proc, e) : 0;
  return code ? code : managed(c, r, e);
}

static int check_advise(const struct uvm_check *c, struct uvm_trace_record *r, struct uvm_error *e) {
  bool ignored = uvm_advice_ignores_proc(r->advice);
  int code = ignored ? 0 : processor(c, r->line, r->proc, e);
  if (ignored && r->proc >= c->procs) r->proc = 0;
  return code ? code : managed(c, r, e);
}

static int check_wait(const struct uvm_check *c, const struct uvm_trace_record *r, struct uvm_error *e) {
  uint32_t known;
  char text[80];
  if (uvm_names_find(&c->events, r->label, &known)) return 0;
  return uvm_input_fail(c->in, r->line, e, "expected an event that was recorded, found %s", uvm_quote(r->label, text));
}

int uvm_check_record(struct uvm_check *c, struct uvm_trace_record *r, struct uvm_error *e) {
  int code;
  switch ((enum uvm_trace_op)r->op) {
  case UVM_TR_PROCESSOR: return check_processor(c, r, e);
  case UVM_TR_PAGE: return check_page(c, r, e);
  case UVM_TR_ALLOC: return check_alloc(c, r, e);
  case UVM_TR_FREE: return check_free(c, r, e);
  case UVM_TR_ACCESS:
    code = processor(c, r->line, r->proc, e);
    return code ? code : check_access(c, &r->access, false, e);
  case UVM_TR_KERNEL: return check_kernel(c, r, e);
  case UVM_TR_PREFETCH: return check_prefetch(c, r, e);
  case UVM_TR_ADVISE: return check_advise(c, r, e);
  case UVM_TR_MEMCPY:
    code = range(c, r->line, r->alloc, r->offset, r->bytes, e);
    return code ? code : range(c, r->line, r->src_alloc, r->src_offset, r->bytes, e);
  case UVM_TR_SYNC: return r->has_proc ? processor(c, r->line, r->proc, e) : 0;
  case UVM_TR_RECORD: uvm_names_add(&c->events, r->label); return 0;
  case UVM_TR_WAIT: return check_wait(c, r, e);
  case UVM_TR_DELAY: return duration(c, r->line, r->ns, e);
  case UVM_TR_BEGIN: UVM_PUSH(&c->sections) = r->line; return 0;
  case UVM_TR_END:
    if (!c->sections.n) return uvm_input_fail(c->in, r->line, e, "expected an open section, found \"end\" without its \"begin\"");
    c->sections.n--;
    return 0;
  }
  assert(!"an unknown record");
  return 0;
}

int uvm_check_end(const struct uvm_check *c, struct uvm_error *e) {
  if (!c->sections.n) return 0;
  return uvm_input_fail(c->in, c->sections.v[c->sections.n - 1], e, "expected \"end\" for this \"begin\", found the end of the trace");
}

void uvm_check_clear(struct uvm_check *c) {
  uvm_names_clear(&c->ids);
  uvm_names_clear(&c->events);
  uvm_mem_free(c->last.v);
  uvm_mem_free(c->allocs.v);
  uvm_mem_free(c->sections.v);
  *c = (struct uvm_check){.in = c->in};
}
