/* Eviction: the pages that are resident in one root chunk go to the CPU's memory, whichever blocks they are of, and the chunk
 * is free. There is no dirty tracking: clean pages are copied too, but a page that the CPU has a copy of is only dropped. */
#include "core/nvidia/nvidia.h"
#include <assert.h>

/* -- the plan -- */

static void plan_unmaps(struct uvm_core *c, struct uvm_plan *plan, struct uvm_block *b, const uvm_mask *leaving, const uvm_mask *kept) {
  for (uvm_proc q = 0; q < c->space->topology.nprocs; q++) {
    uvm_mask m = *leaving;
    if (q == 0) uvm_mask_andnot(&m, kept); /* the CPU goes on reading its own copy */
    uvm_mask_and(&m, uvm_block_mapped(c->space, b, q, UVM_MAP_READ));
    struct uvm_step *st = uvm_plan_add(plan, UVM_S_UNMAP, b, q, &m);
    if (st) st->cause = UVM_C_EVICTION, st->why = NV_WHY_EVICTED;
  }
}

/* One copy ends duplication: those on the CPU stay, or the ones that are leaving become the CPU's. */
static void plan_collapse(struct uvm_core *c, struct uvm_plan *plan, struct uvm_block *b, uvm_node leaving, const uvm_mask *pages,
                          const uvm_mask *kept) {
  uvm_node cpu = c->space->procs[0].home;
  for (uvm_node n = 0; n < c->space->topology.nnodes; n++) {
    if (n == cpu) continue;
    uvm_mask m = *pages;
    uvm_mask_and(&m, uvm_block_duplicated(c->space, b));
    uvm_mask_and(&m, n == leaving ? kept : uvm_block_resident(c->space, b, n));
    struct uvm_step *st = uvm_plan_add(plan, UVM_S_COLLAPSE, b, plan->proc, &m);
    if (st) st->src = n, st->dst = cpu, st->cause = UVM_C_EVICTION, st->why = NV_WHY_EVICTED;
  }
}

/* Whom advice maps to the CPU's copy; with access counters also the GPU that lost the pages, to count its accesses. */
static void plan_maps(struct uvm_core *c, struct uvm_plan *plan, struct uvm_block *b, uvm_node leaving, const uvm_mask *pages) {
  const struct nv_options *o = &uvm__nv_state(c)->options;
  static const uvm_mask none;
  uvm_node cpu = c->space->procs[0].home;
  for (uvm_proc q = 0; q < c->space->topology.nprocs; q++) {
    bool advised = b->range->info.accessed_by >> q & 1;
    bool counted = q && c->space->procs[q].home == leaving && o->map_remote_on_eviction && o->access_counters;
    if ((advised || counted) && uvm__nv_advised(c->space, b, q, cpu))
      uvm__nv_plan_highest(c, plan, b, q, cpu, *pages, &none, UVM_C_EVICTION, NV_WHY_EVICTED);
  }
}

static void plan_piece(struct uvm_core *c, struct uvm_plan *plan, const struct uvm_piece *piece, uvm_node n) {
  uvm_node cpu = c->space->procs[0].home;
  struct uvm_block *b = piece->block;
  uvm_mask pages = uvm_piece_resident(c->space, piece, n), kept = pages, moved = pages;
  if (uvm_mask_empty(&pages)) return;
  uint8_t why[UVM_BLOCK_PAGES];
  memset(why, NV_WHY_EVICTED, sizeof why);
  uvm_mask_and(&kept, uvm_block_resident(c->space, b, cpu));
  uvm_mask_andnot(&moved, &kept);
  plan_unmaps(c, plan, b, &pages, &kept);
  plan_collapse(c, plan, b, n, &pages, &kept);
  uvm_plan_transfer(plan, UVM_S_EVICT, b, plan->proc, n, cpu, &moved, NULL, UVM_C_EVICTION, why);
  plan_maps(c, plan, b, n, &moved);
}

static void build(struct uvm_core *c, struct nv_service *v, const struct uvm_backing *k, uvm_ns now) {
  uvm_plan_clear(&v->plan);
  v->plan.context = UVM_X_EVICT;
  v->plan.proc = v->asker;
  v->plan.backing = k->id;
  v->plan.begin = now;
  for (uint32_t i = 0; i < k->npieces; i++) plan_piece(c, &v->plan, &k->pieces[i], k->info.node);
  v->plan.block = v->plan.steps.n ? v->plan.steps.v[0].block : k->pieces[0].block; /* one that is busy: others may be split */
}

/* -- nothing to evict -- */

/* A small block may have pieces in every shared chunk. Policies never name a chunk of the block in service; the driver, which
 * decides anew after an eviction, then takes the least recently serviced of these. 0: none. */
static uvm_backing_id own_chunk(struct uvm_core *c, const struct uvm_block *b, uvm_node n) {
  for (uvm_backing_id id = c->space->lists[n][UVM_L_USED].oldest; id; id = c->space->backings.v[id]->newer)
    if (uvm_backing_holds(c->space->backings.v[id], b) && !uvm_backing_look(c->space, id)->busy) return id;
  return 0;
}

/* When the next chunk of the node comes free again, UVM_NEVER if none ever does. */
static uvm_ns next_release(struct uvm_core *c, uvm_node n, uvm_ns now) {
  uvm_ns at = UVM_NEVER;
  for (uvm_backing_id id = 1; id < c->space->backings.n; id++) {
    const struct uvm_backing *k = uvm_backing_get(c->space, id);
    if (!k || k->info.node != n) continue;
    if (k->list == UVM_NONE && uvm__nv_state(c)->evicting_until[n] < at) at = uvm__nv_state(c)->evicting_until[n];
    for (uint32_t i = 0; i < k->npieces; i++)
      if (k->pieces[i].block->busy_until && k->pieces[i].block->busy_until < at) at = k->pieces[i].block->busy_until;
  }
  return at < now ? now : at;
}

static enum nv_room out_of_memory(struct uvm_core *c, struct nv_service *v, uvm_node n, const uvm_mask *incoming) {
  char need[24], capacity[24];
  if (!v->block) return NV_ROOM_NEVER; /* the allocation will say so */
  uvm_size_text((uint64_t)uvm_mask_count(incoming) * UVM_PAGE, need);
  uvm_size_text(c->space->nodes[n].capacity, capacity);
  const char *why = uvm__nv_state(c)->options.oversubscription ? "no chunk can be evicted" : "oversubscription is off";
  c->hw.fail(c->hw.ctx, UVM_EENV, "%s (%s) has no memory left: %s of allocation %s need a 2 MiB chunk, and %s", c->space->nodes[n].name,
             capacity, need, v->block->range->alloc->id, why);
  return NV_ROOM_NEVER;
}

/* -- the eviction -- */

/* A block that had no page in the chunk got some, or is getting some, while the others' left. */
static bool reused(struct uvm_core *c, const struct uvm_plan *plan, const struct uvm_backing *k) {
  for (uint32_t i = 0; i < k->npieces; i++) {
    const struct uvm_piece *piece = &k->pieces[i];
    bool left = false;
    for (size_t j = 0; j < plan->steps.n && !left; j++) left = plan->steps.v[j].block == piece->block;
    uvm_mask pages = uvm_piece_resident(c->space, piece, k->info.node);
    if (!left && (piece->block->busy_until || !uvm_mask_empty(&pages))) return true;
  }
  return false;
}

void uvm__nv_evict_end(struct uvm_core *c, struct nv_service *v, uvm_ns now) {
  struct uvm_backing *k = uvm_backing_get(c->space, v->plan.backing);
  assert(k);
  bool keep = reused(c, &v->plan, k);
  if (keep) v->plan.backing = 0; /* then nobody is told that it left */
  uvm_plan_finish(c, &v->plan, now);
  if (!keep)
    uvm_backing_destroy(c->space, k->id);
  else if (k->list == UVM_NONE)
    uvm_backing_move(c->space, k->id, UVM_L_USED, now);
}

enum nv_room uvm__nv_evict_begin(struct uvm_core *c, struct nv_service *v, uvm_node n, const uvm_mask *incoming, uvm_ns now) {
  struct nv_state *st = uvm__nv_state(c);
  if (!st->options.oversubscription || n == c->space->procs[0].home) return out_of_memory(c, v, n, incoming);
  uvm_backing_id id;
  size_t found;
  if (uvm_ask_victims(c->host, n, UVM_BLOCK_BYTES, v->block ? v->block->id : 0, incoming, now, &id, 1, &found) < 0) return NV_ROOM_NEVER;
  if (!found) {
    uvm_ns at = next_release(c, n, now);
    if (at != UVM_NEVER) {
      uvm__nv_sleep(c, v->task, v->task->step, at);
      return NV_ROOM_WAIT;
    }
    if (!v->block || !(id = own_chunk(c, v->block, n))) return out_of_memory(c, v, n, incoming);
  }
  build(c, v, uvm_backing_get(c->space, id), now);
  if (!v->plan.steps.n) { /* an unused chunk: there for the taking */
    uvm__nv_evict_end(c, v, now);
    return NV_ROOM;
  }
  uvm_backing_move(c->space, id, UVM_NONE, now);
  uvm_ns end = uvm_plan_run(c, &v->plan, now);
  if (end == UVM_NEVER) return NV_ROOM_NEVER;
  if (end > st->evicting_until[n]) st->evicting_until[n] = end;
  v->phase = NV_EVICTING;
  uvm__nv_sleep(c, v->task, v->task->step, end);
  return NV_ROOM_WAIT;
}

/* -- for device memory -- */

struct room {
  struct uvm_driver_task task; /* first: a task is what it is part of */
  struct nv_service service;
  uvm_node node;
  uint64_t bytes;
};

static void release_room(struct uvm_driver_task *t) {
  uvm__nv_service_release(&((struct room *)t)->service);
  uvm_mem_free(t);
}

static void make_room(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  static const uvm_mask nothing;
  struct room *r = (struct room *)t;
  t->step = make_room;
  if (r->service.phase == NV_EVICTING) uvm__nv_evict_end(c, &r->service, now);
  r->service.phase = NV_START;
  while (c->space->nodes[r->node].free < r->bytes) {
    enum nv_room room = uvm__nv_evict_begin(c, &r->service, r->node, &nothing, now);
    if (room == NV_ROOM_WAIT) return;
    if (room == NV_ROOM_NEVER) break;
  }
  uvm__nv_task_leave(c, t);
  c->hw.complete(c->hw.ctx, 0, now);
}

void uvm__nv_make_room(struct uvm_core *c, const struct uvm_call *call, uvm_ns now) {
  struct room *r = uvm_mem(sizeof *r);
  r->node = call->node;
  r->bytes = call->bytes;
  r->service = (struct nv_service){.task = &r->task, .asker = call->proc};
  uvm__nv_task_enter(c, &r->task, release_room);
  make_room(c, &r->task, now);
}
