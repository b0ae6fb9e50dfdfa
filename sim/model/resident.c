/* A kernel whose pages are all in its GPU's memory, while the host waits and nothing else is under way, needs no steps: only
 * its duration is left to compute. */
#include "model/model.h"

static bool alone(const struct uvm_engine *x, const struct uvm__device *d) {
  return d->proc && d->kernels.n == 1 && uvm__queue_empty(&x->queue) && x->outbox_head == x->outbox.n && x->host.state == UVM__WAITING &&
         !(uvm_host_needs(x->core->host) & UVM_NEEDS_ACCESS);
}

static bool pages_local(struct uvm_engine *x, const struct uvm__device *d, const struct uvm__record *r, uint64_t page, uint64_t last,
                        bool writing) {
  while (page <= last) {
    struct uvm__look look;
    if (uvm__look(x, d->proc, r->alloc, page, last, uvm__access_of(r->op, writing), r->line, &look)) return false;
    if (!look.hit || look.node != x->machine->procs[d->proc].home) return false;
    page += look.run;
  }
  return true;
}

static bool record_local(struct uvm_engine *x, const struct uvm__device *d, const struct uvm__record *r, bool writing) {
  struct uvm__cursor c = {.m = r->elements, .page = 1};
  while (uvm__next_pages(r, &c)) {
    if (!pages_local(x, d, r, c.page, c.last, writing)) return false;
    c.page = c.last + 1;
  }
  return true;
}

bool uvm__resident_end(struct uvm_engine *x, const struct uvm__device *d, const struct uvm__kernel *k, uint64_t steps, uvm_ns *end) {
  if (!alone(x, d)) return false;
  double ps = 0;
  bool loads = false;
  for (size_t i = 0; i < k->records.n; i++) {
    const struct uvm__record *r = &k->records.v[i];
    uint64_t bytes = uvm__bytes_in(r, 0, r->elements, 0, (r->end - 1) / UVM_PAGE + 1);
    loads |= r->op != UVM_OP_W;
    if (uvm__reads(r->op)) {
      if (!record_local(x, d, r, false)) return false;
      ps += (double)bytes * d->byte_ps;
    }
    if (uvm__writes(r->op)) {
      if (!record_local(x, d, r, true)) return false;
      ps += (double)bytes * d->byte_ps;
    }
  }
  uint64_t latency = steps * (loads ? k->step_ns : k->store_step_ns), moving = k->has_ns ? 0 : (uint64_t)(ps / 1000);
  *end = d->start + (latency > moving ? latency : moving);
  return true;
}
