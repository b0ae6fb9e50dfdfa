/* Processors held off a page. The policy says until when; that it lasted is told once, when the processor gets on: a GPU asks
 * again after every replay, and all but the last of those faults are the same hold. */
#include "core/nvidia/nvidia.h"

void uvm__nv_tell_throttle(struct uvm_core *c, const struct nv_hold *h, uvm_ns now) {
  struct uvm_event e = uvm_event_at(UVM_E_THROTTLE, h->since, h->alloc, h->offset);
  e.proc = h->proc;
  e.dur = now - h->since;
  e.bytes = UVM_PAGE;
  e.why = NV_WHY_THROTTLED, e.rule = c->driver->why[NV_WHY_THROTTLED];
  e.hint = UVM_HINT_THROTTLE;
  uvm_observe(c, &e);
}

static bool same_page(const struct nv_hold *h, const struct uvm_block *b, int page) {
  return h->alloc == b->range->alloc && h->offset == uvm_block_offset(b, page);
}

static void end_hold(struct uvm_core *c, size_t i, uvm_ns now) {
  struct nv_state *st = uvm__nv_state(c);
  uvm__nv_tell_throttle(c, &st->holds.v[i], now);
  memmove(&st->holds.v[i], &st->holds.v[i + 1], (--st->holds.n - i) * sizeof *st->holds.v);
}

void uvm__nv_let_go(struct uvm_core *c, struct uvm_block *b, int page, uvm_proc p, uvm_ns now) {
  struct nv_state *st = uvm__nv_state(c);
  struct nv_block *nb = b->driver_state;
  if (!nb || !uvm_mask_test(&nb->held, page)) return;
  bool others = false;
  for (size_t i = st->holds.n; i-- > 0;) {
    if (!same_page(&st->holds.v[i], b, page)) continue;
    if (p == UVM_NONE || st->holds.v[i].proc == p)
      end_hold(c, i, now);
    else
      others = true;
  }
  if (!others) uvm_mask_del(&nb->held, page);
}

void uvm__nv_hold(struct uvm_core *c, struct uvm_block *b, int page, uvm_proc p, uvm_ns until, uvm_ns now) {
  struct nv_state *st = uvm__nv_state(c);
  for (size_t i = 0; i < st->holds.n; i++)
    if (st->holds.v[i].proc == p && same_page(&st->holds.v[i], b, page)) {
      if (st->holds.v[i].until == until) return;
      end_hold(c, i, now); /* a new slot */
      break;
    }
  UVM_PUSH(&st->holds) = (struct nv_hold){b->range->alloc, uvm_block_offset(b, page), now, until, p};
  uvm_mask_add(&uvm__nv_block(b)->held, page);
}

void uvm__nv_holds_forget(struct uvm_core *c, const struct uvm_alloc *a, uvm_ns now) {
  struct nv_state *st = uvm__nv_state(c);
  for (size_t i = st->holds.n; i-- > 0;)
    if (st->holds.v[i].alloc == a) end_hold(c, i, now);
}
