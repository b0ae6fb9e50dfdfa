/* The host thread's loops: by page runs, never by element. Hits that take time up to the next event pass at once; then the
 * rest of the world gets its turn. */
#include "model/model.h"

void uvm__loop_begin(struct uvm_engine *x, const struct uvm_trace_record *r) {
  struct uvm__loop *l = &x->host.loop;
  *l = (struct uvm__loop){.ps = l->ps};
  uvm__record_set(&l->record, x->core->space->allocs.v[r->access.alloc], &r->access);
  l->record.line = r->line;
  l->page = uvm__first_page(&l->record, 0);
}

static void trap(struct uvm_engine *x, struct uvm__loop *l, bool writing) {
  if (!l->faulted) l->stall_since = x->now;
  l->faulted = true;
  struct uvm_cpu_fault f = {
      .alloc = l->record.alloc, .offset = l->page * UVM_PAGE, .access = writing ? UVM_A_WRITE : UVM_A_READ, .line = l->record.line};
  uvm__emit(x, (struct uvm_engine_event){.kind = UVM_N_CPU_FAULT, .fault = f});
}

/* Looks at the loop's page for all that its operation needs: the read, then the write. False: it trapped. */
static bool look(struct uvm_engine *x, struct uvm__loop *l, uint64_t last, struct uvm__look *out) {
  const struct uvm__record *r = &l->record;
  out->run = UINT64_MAX;
  for (int writing = 0; writing < 2; writing++) {
    struct uvm__look one;
    if (!(writing ? uvm__writes(r->op) : uvm__reads(r->op))) continue;
    if (uvm__look(x, 0, r->alloc, l->page, last, writing ? UVM_A_WRITE : UVM_A_READ, r->line, &one)) return false;
    if (!one.hit) return trap(x, l, writing), false;
    out->node = one.node;
    if (one.run < out->run) out->run = one.run;
  }
  return true;
}

/* Elements that end below the page: those the loop is through with when it gets there. */
static uint64_t ended_below(const struct uvm__record *r, uint64_t page) {
  uint64_t to = page * UVM_PAGE;
  if (to >= r->end) return r->elements;
  return to < r->offset + r->width ? 0 : (to - r->offset - r->width) / r->step + 1;
}

/* Pages of the run that fit before the next event; one at least. */
static uint64_t fit(struct uvm_engine *x, const struct uvm__record *r, uint64_t run) {
  uvm_ns next = uvm__queue_next(&x->queue);
  if (next == UVM_NEVER || run == 1) return run;
  uint64_t first_write_ns = uvm__writes(r->op) ? x->machine->costs.cpu_first_write_ns : 0;
  uint64_t a_page = uvm_max(uvm__touch_ps(x, 1, uvm_max(UVM_PAGE / r->step, 1)) + first_write_ns * 1000, 1);
  return uvm_min(run, uvm_max((next - x->now) * 1000 / a_page, 1));
}

static void pass(struct uvm_engine *x, struct uvm__loop *l, const struct uvm__look *look_here, uint64_t run) {
  struct uvm__record *r = &l->record;
  uint64_t end = l->page + run, count = uvm__elements_in(r, 0, r->elements, l->page, end);
  uint64_t own = uvm__touch_ps(x, run, count);
  if (look_here->node != x->machine->procs[0].home) {
    uint64_t bytes = uvm__bytes_in(r, 0, r->elements, l->page, end);
    if (uvm__reads(r->op)) own = uvm_max(own, uvm__cross(x, 0, r, look_here->node, bytes, false) - x->now * 1000);
    if (uvm__writes(r->op)) own = uvm_max(own, uvm__cross(x, 0, r, look_here->node, bytes, true) - x->now * 1000);
    r->remote += bytes;
  }
  uvm__tell_hits(x, 0, r->alloc, l->page, run, uvm__access_of(r->op, uvm__writes(r->op)), count);
  l->ps += own;
  if (uvm__writes(r->op)) l->ps += uvm__first_writes(x, r->alloc, l->page, run) * 1000;
  l->k = uvm_max(l->k, ended_below(r, end));
  l->page = l->k < r->elements ? uvm_max(end, uvm__first_page(r, l->k)) : end;
}

bool uvm__loop_run(struct uvm_engine *x) {
  struct uvm__loop *l = &x->host.loop;
  const struct uvm__record *r = &l->record;
  bool dense = r->step <= UVM_PAGE || r->width >= r->step;
  while (l->k < r->elements) {
    struct uvm__look here;
    if (!look(x, l, dense ? (r->end - 1) / UVM_PAGE : uvm__last_page(r, l->k), &here)) return false;
    if (l->faulted) uvm__tell_stall(x, 0, l->stall_since, r->line);
    l->faulted = false;
    pass(x, l, &here, fit(x, r, here.run));
    uvm_ns then = x->now + l->ps / 1000;
    l->ps %= 1000;
    if (uvm__queue_next(&x->queue) <= then) {
      uvm__at(x, then, UVM__HOST, 0, 0);
      return false;
    }
    x->now = then;
  }
  uvm__tell_summary(x, 0, r);
  return true;
}
