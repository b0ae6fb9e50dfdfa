/* The promises of trace.h, for the fuzz targets of the trace readers. */
#ifndef UVM_FUZZ_TRACE_H
#define UVM_FUZZ_TRACE_H
#include "tests/fuzz/fuzz.h"
#include "trace.h"

struct seen { UVM_VEC(uint64_t) bytes; };       /* of each allocation, 0 when freed */

static void check_range(const struct seen *s, uint32_t alloc, uint64_t offset, uint64_t bytes) {
  MUST(alloc < s->bytes.n);
  MUST(bytes && offset < s->bytes.v[alloc] && bytes <= s->bytes.v[alloc] - offset);
}

static void check_access(const struct seen *s, const struct uvm_trace_access *a) {
  check_range(s, a->alloc, a->offset, a->bytes);
  MUST(a->step && a->width && a->op <= UVM_OP_ATOMIC && a->split <= UVM_SPLIT_BLOCKED);
}

static void check_record(struct seen *s, const struct uvm_trace_record *r) {
  if (r->op == UVM_TR_ALLOC) {
    MUST(r->alloc == s->bytes.n && r->id && *r->id && r->label && *r->label);
    UVM_PUSH(&s->bytes) = r->bytes;
  } else if (r->op == UVM_TR_FREE) {
    MUST(r->alloc < s->bytes.n && s->bytes.v[r->alloc]);
    s->bytes.v[r->alloc] = 0;
  } else if (r->op == UVM_TR_ACCESS) {
    check_access(s, &r->access);
  } else if (r->op == UVM_TR_KERNEL) {
    MUST(r->lanes && r->lanes_per_block);
    for (size_t i = 0; i < r->naccesses; i++) check_access(s, &r->accesses[i]);
  } else if (r->op == UVM_TR_PREFETCH || r->op == UVM_TR_ADVISE || r->op == UVM_TR_MEMCPY) {
    check_range(s, r->alloc, r->offset, r->bytes);
    if (r->op == UVM_TR_MEMCPY) check_range(s, r->src_alloc, r->src_offset, r->bytes);
  }
}

/* Records read, or -1 - records when refused. */
static int64_t read_all(struct uvm_trace *t) {
  struct uvm_trace_record r;
  struct uvm_error e = {0};
  struct seen s = {0};
  int64_t n = 0;
  int code;
  while ((code = uvm_trace_next(t, &r, &e)) == 1) {
    check_record(&s, &r);
    n++;
  }
  MUST(code == 0 || (code == UVM_EINPUT && strstr(e.text, "expected ")));
  uvm_mem_free(s.bytes.v);
  return code ? -1 - n : n;
}

static inline void fuzz_trace(const void *data, size_t size) {
  struct uvm_trace *t;
  struct uvm_error e;
  if (uvm_trace_open_memory(data, size, &t, &e)) return;
  int64_t first = read_all(t);
  MUST(uvm_trace_rewind(t, &e) == 0);
  MUST(read_all(t) == first);
  uvm_trace_close(t);
}
#endif
