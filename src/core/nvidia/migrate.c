/* Explicit migration: every page of the part becomes resident on the destination, those never touched too. More than one
 * block takes two passes: the first copies, the second copies what raced away meanwhile and maps. And the far side of a
 * memcpy, which only needs the pages to exist. */
#include "core/nvidia/nvidia.h"

/* The user's word ends what thrashing control does with the pages. */
static void end_thrashing(struct uvm_core *c, struct uvm_block *b, const uvm_mask *pages, uvm_ns now) {
  uvm__nv_pins_drop(c, b, pages);
  if (!b->driver_state) return;
  uvm_mask held = uvm__nv_block(b)->held;
  uvm_mask_and(&held, pages);
  for (int p = -1; (p = uvm_mask_next(&held, p + 1)) >= 0;) uvm__nv_let_go(c, b, p, UVM_NONE, now);
}

static bool migrate_decide(struct uvm_core *c, struct nv_service *v, uvm_ns now) {
  const struct nv_walk *w = uvm__nv_walk_of(v);
  uvm_mask pages = uvm__nv_walk_pages(v);
  v->mapping = w->pass + 1 == w->passes ? NV_MAP_EXPLICIT : NV_MAP_NOTHING;
  uvm__nv_decide_pages(v, &pages, w->call.node, UVM_MAP_READ, NV_WHY_EXPLICIT);
  if (v->block->range->info.read_mostly) v->d.duplicate = pages;
  end_thrashing(c, v->block, &pages, now);
  return true;
}

static void migrate_done(struct uvm_core *c, struct nv_walk *w, uvm_ns now) {
  struct uvm_event e = uvm_event_at(UVM_E_PREFETCH, w->since, w->call.alloc, w->call.offset);
  e.proc = w->call.proc;
  e.dst = w->call.node;
  e.bytes = w->call.bytes;
  e.dur = now - w->since;
  e.cause = UVM_C_USER;
  e.why = NV_WHY_EXPLICIT, e.rule = c->driver->why[NV_WHY_EXPLICIT];
  e.line = w->call.line;
  uvm_observe(c, &e);
}

void uvm__nv_migrate(struct uvm_core *c, const struct uvm_call *call, uvm_ns now) {
  struct nv_walk *w = uvm__nv_walk_new(c, call, UVM_X_PREFETCH, UVM_C_USER, now);
  w->service.decide = migrate_decide;
  w->service.proc = uvm_proc_at(c->space, call->node);
  w->done = migrate_done;
  if (uvm__nv_block_end(uvm_block_get(c->space, call->alloc, w->at)) < w->call.offset + w->call.bytes) w->passes = 2, w->charge_idle = true;
  uvm__nv_walk_start(c, w, now);
}

/* -- memcpy -- */

static bool copy_decide(struct uvm_core *c, struct nv_service *v, uvm_ns now) {
  (void)now;
  uvm_mask fresh = uvm__nv_walk_pages(v), populated = uvm_block_populated(c->space, v->block), copies = fresh;
  uvm_mask_andnot(&fresh, &populated);
  uvm_mask_and(&copies, uvm_block_duplicated(c->space, v->block));
  uvm__nv_decide_pages(v, &fresh, c->space->procs[v->asker].home, UVM_MAP_WRITE, NV_WHY_COPIED);
  for (int p = -1; (p = uvm_mask_next(&copies, p + 1)) >= 0;)
    uvm__nv_decide_page(v, p, uvm__nv_keeper(c->space, v->block, p), UVM_MAP_WRITE, NV_WHY_COPIED);
  return true;
}

void uvm__nv_copy(struct uvm_core *c, const struct uvm_call *call, bool write, uvm_ns now) {
  if (!write || call->alloc->kind != UVM_MANAGED || !call->bytes) {
    c->hw.complete(c->hw.ctx, call->cookie, now);
    return;
  }
  struct nv_walk *w = uvm__nv_walk_new(c, call, UVM_X_COPY, UVM_C_USER, now);
  w->service.decide = copy_decide;
  uvm__nv_walk_start(c, w, now);
}
