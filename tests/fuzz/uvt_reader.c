/* Fuzz target of the trace readers: any bytes are read to their end or refused, twice the same, and what is handed out keeps the
 * promises of trace.h. Compiled with UVM_FUZZ_MAIN it reads the files named on its command line instead: a regression test of the
 * kept corpus that needs no fuzzer. */
#include "trace.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition) do { if (!(condition)) fprintf(stderr, "broken promise: %s\n", #condition), abort(); } while (0)

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct uvm_trace *t;
  struct uvm_error e;
  if (uvm_trace_open_memory(data, size, &t, &e)) return 0;
  int64_t first = read_all(t);
  MUST(uvm_trace_rewind(t, &e) == 0);
  MUST(read_all(t) == first);
  uvm_trace_close(t);
  return 0;
}

#ifdef UVM_FUZZ_MAIN
int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    FILE *f = fopen(argv[i], "rb");
    if (!f) return fprintf(stderr, "%s: cannot be opened\n", argv[i]), 1;
    struct { uint8_t *v; size_t n, cap; } bytes = {0};
    for (int c; (c = getc(f)) != EOF;) UVM_PUSH(&bytes) = (uint8_t)c;
    fclose(f);
    LLVMFuzzerTestOneInput(bytes.v, bytes.n);
    uvm_mem_free(bytes.v);
  }
  return argc < 2;
}
#endif
