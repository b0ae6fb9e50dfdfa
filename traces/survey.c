/* What a whole trace holds: one pass over it. */
#include "grammar.h"

/* Bytes of each managed allocation, by number (0: freed, or of another kind), and their sum. */
struct live { UVM_VEC(uint64_t) bytes; uint64_t sum; };

/* A record of a kernel that is not split is one access. */
static uint64_t elements(const struct uvm_trace_access *a, bool split) { return split ? (a->bytes - 1) / a->step + 1 : 1; }

static void count(struct uvm_trace_facts *f, struct live *live, const struct uvm_trace_record *r) {
  f->records++;
  switch ((enum uvm_trace_op)r->op) {
  case UVM_TR_PROCESSOR: f->gpus = r->proc; break;
  case UVM_TR_PAGE: f->page = r->page; break;
  case UVM_TR_ALLOC:
    f->allocs++;
    UVM_PUSH(&live->bytes) = r->kind == UVM_TRK_MANAGED ? r->bytes : 0;
    if (r->kind != UVM_TRK_MANAGED) break;
    f->managed_bytes += r->bytes;
    live->sum += r->bytes;
    if (live->sum > f->peak_managed_bytes) f->peak_managed_bytes = live->sum;
    break;
  case UVM_TR_FREE:
    live->sum -= live->bytes.v[r->alloc];
    live->bytes.v[r->alloc] = 0;
    break;
  case UVM_TR_ACCESS:
    f->accesses++;
    f->elements += elements(&r->access, true);
    break;
  case UVM_TR_KERNEL:
    f->kernels++;
    f->accesses += r->naccesses;
    for (size_t i = 0; i < r->naccesses; i++) f->elements += elements(&r->accesses[i], r->accesses[i].split != UVM_SPLIT_NONE);
    break;
  case UVM_TR_BEGIN: f->sections++; break;
  default: break;
  }
}

int uvm_trace_survey(struct uvm_trace *t, struct uvm_trace_facts *f, struct uvm_error *e) {
  struct uvm_trace_record r;
  struct live live = {0};
  *f = (struct uvm_trace_facts){.page = UVM_PAGE};
  int code = uvm_trace_rewind(t, e);
  while (!code && (code = uvm_trace_next(t, &r, e)) == 1) {
    count(f, &live, &r);
    code = 0;
  }
  uvm_mem_free(live.bytes.v);
  return code ? code : uvm_trace_rewind(t, e);
}
