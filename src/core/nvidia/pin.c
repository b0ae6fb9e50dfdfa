/* Pinned pages. A pin ends at the deadline that the page's first pin set: the worker then unmaps the page from whoever only
 * reaches it remotely, so that the next access faults and everything starts over. Pages due within 20 us go together. */
#include "core/nvidia/nvidia.h"
#include <assert.h>

#define TOGETHER_NS 20000

struct nv_block *uvm__nv_block(struct uvm_block *b) {
  if (!b->driver_state) b->driver_state = uvm_mem(sizeof(struct nv_block));
  return b->driver_state;
}

/* -- the queue -- */

static void arm(struct uvm_core *c);

void uvm__nv_pin(struct uvm_core *c, struct uvm_block *b, int page, uvm_ns until) {
  struct nv_state *st = uvm__nv_state(c);
  struct nv_block *nb = uvm__nv_block(b);
  if (uvm_mask_test(&nb->pinned, page)) return;
  uvm_mask_add(&nb->pinned, page);
  UVM_PUSH(&st->pins) = (struct nv_pin){until, b->range->alloc, uvm_block_offset(b, page)};
  struct nv_pin *v = st->pins.v;
  for (size_t i = st->pins.n - 1; i > 0 && v[i - 1].at > v[i].at; i--) {
    struct nv_pin later = v[i - 1];
    v[i - 1] = v[i];
    v[i] = later;
  }
  arm(c);
}

static bool pin_in(const struct nv_pin *p, const struct uvm_block *b, const uvm_mask *pages) {
  if (p->alloc != b->range->alloc) return false;
  uint64_t first = uvm_block_offset(b, b->first);
  return p->offset >= first && p->offset < uvm__nv_block_end(b) && uvm_mask_test(pages, b->first + (int)((p->offset - first) / UVM_PAGE));
}

void uvm__nv_pins_drop(struct uvm_core *c, struct uvm_block *b, const uvm_mask *pages) {
  struct nv_state *st = uvm__nv_state(c);
  size_t kept = 0;
  for (size_t i = 0; i < st->pins.n; i++)
    if (!pin_in(&st->pins.v[i], b, pages)) st->pins.v[kept++] = st->pins.v[i];
  st->pins.n = kept;
  if (b->driver_state) uvm_mask_andnot(&uvm__nv_block(b)->pinned, pages); /* a block that advice split starts without */
}

void uvm__nv_pins_forget(struct uvm_core *c, const struct uvm_alloc *a) {
  struct nv_state *st = uvm__nv_state(c);
  size_t kept = 0;
  for (size_t i = 0; i < st->pins.n; i++)
    if (st->pins.v[i].alloc != a) st->pins.v[kept++] = st->pins.v[i];
  st->pins.n = kept;
}

/* -- the worker -- */

static struct uvm_block *locate(struct uvm_core *c, struct nv_service *v) {
  (void)v;
  const struct nv_pin *p = &uvm__nv_state(c)->pins.v[0];
  return uvm_block_get(c->space, p->alloc, p->offset);
}

static bool decide(struct uvm_core *c, struct nv_service *v, uvm_ns now) {
  const struct nv_state *st = uvm__nv_state(c);
  uvm_mask all = uvm_block_all(v->block);
  for (size_t i = 0; i < st->pins.n && st->pins.v[i].at <= now + TOGETHER_NS; i++)
    if (pin_in(&st->pins.v[i], v->block, &all)) uvm_mask_add(&v->d.pinned, uvm_page_of(st->pins.v[i].alloc, st->pins.v[i].offset));
  return true;
}

static void extend(struct uvm_core *c, struct nv_service *v) {
  for (uvm_proc q = 0; q < c->space->topology.nprocs; q++) {
    uvm_mask m = v->d.pinned;
    if (v->block->range->info.accessed_by >> q & 1) continue;
    uvm_mask_andnot(&m, uvm_block_resident(c->space, v->block, c->space->procs[q].home));
    struct uvm_step *st = uvm__nv_plan_unmap(c, v, q, m, UVM_A_PREFETCH);
    if (st) st->why = NV_WHY_UNPINNED;
  }
}

static void unpinned(struct uvm_core *c, struct nv_service *v, uvm_ns now) {
  struct uvm_block *b = v->block;
  uvm_mask pages = v->d.pinned;
  struct uvm_told t = {
      .kind = UVM_T_UNPINNED, .cause = UVM_C_THRASHING, .range = b->range->id, .block = b->id, .pages = &pages, .begin = now, .end = now};
  t.src = t.dst = UVM_NONE;
  uvm_tell(c->host, &t, now);
  struct uvm_event e = uvm_event_at(UVM_E_UNPIN, now, b->range->alloc, uvm_block_offset(b, uvm_mask_next(&pages, 0)));
  e.bytes = (uint64_t)uvm_mask_count(&pages) * UVM_PAGE;
  e.mask = &pages, e.block = b;
  e.why = NV_WHY_UNPINNED, e.rule = c->driver->why[NV_WHY_UNPINNED];
  uvm_observe(c, &e);
  uvm__nv_pins_drop(c, b, &pages);
}

static void work(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct nv_state *st = uvm__nv_state(c);
  t->step = work;
  while (st->unpin_service.phase != NV_START || (st->pins.n && st->pins.v[0].at <= now)) {
    if (!uvm__nv_service_step(c, &st->unpin_service, now)) return;
    unpinned(c, &st->unpin_service, now);
  }
  st->unpin_armed = false;
  arm(c);
}

static void arm(struct uvm_core *c) {
  struct nv_state *st = uvm__nv_state(c);
  if (st->unpin_armed || !st->pins.n) return;
  st->unpin_armed = true;
  uvm__nv_sleep(c, &st->unpin, work, st->pins.v[0].at);
}

void uvm__nv_pins_init(struct uvm_core *c) {
  struct nv_state *st = uvm__nv_state(c);
  st->unpin_service = (struct nv_service){.task = &st->unpin,
                                          .locate = locate,
                                          .decide = decide,
                                          .extend = extend,
                                          .proc = UVM_NONE,
                                          .context = UVM_X_UNPIN,
                                          .cause = UVM_C_THRASHING,
                                          .mapping = NV_MAP_NOTHING};
}
