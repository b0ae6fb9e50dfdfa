/* The service of one block, whatever asked for it:
 *
 *   locate -> (busy? wait) -> decide -> chunks (none free? evict, start over) -> plan, run -> finish, settle
 *
 * The driver drops the block's lock to evict and decides again afterwards, so hints and residency are computed anew. */
#include "core/nvidia/nvidia.h"
#include <assert.h>

void uvm__nv_decide_pages(struct nv_service *v, const uvm_mask *pages, uvm_node n, enum uvm_level want, uint8_t why) {
  struct nv_decision *d = &v->d;
  d->nodes |= 1u << n;
  uvm_mask_or(&d->to[n], pages);
  uvm_mask_or(&d->want[want], pages);
  for (int p = -1; (p = uvm_mask_next(pages, p + 1)) >= 0;) d->why[p] = why;
}

void uvm__nv_decide_page(struct nv_service *v, int page, uvm_node n, enum uvm_level want, uint8_t why) {
  uvm_mask one = uvm_mask_range(page, page + 1);
  uvm__nv_decide_pages(v, &one, n, want, why);
}

/* -- moving pages -- */

/* What becomes of the pages decided for one node. */
struct sorted {
  uvm_mask fresh, settled, copied, moved, collapsed;
};

static struct sorted sort_pages(const struct uvm_core *c, const struct nv_service *v, uvm_node n) {
  const struct uvm_space *s = c->space;
  const uvm_mask *pages = &v->d.to[n], *resident = uvm_block_resident(s, v->block, n);
  uvm_mask populated = uvm_block_populated(s, v->block);
  struct sorted r = {*pages, *pages, *pages, *pages, *pages};
  uvm_mask_andnot(&r.fresh, &populated);
  uvm_mask_and(&r.settled, resident);
  uvm_mask_and(&r.moved, &populated);
  uvm_mask_andnot(&r.moved, resident);
  r.copied = r.moved;
  uvm_mask_and(&r.copied, &v->d.duplicate);
  uvm_mask_andnot(&r.moved, &r.copied);
  r.collapsed = r.settled;
  uvm_mask_and(&r.collapsed, uvm_block_duplicated(s, v->block));
  uvm_mask_andnot(&r.collapsed, &v->d.duplicate);
  return r;
}

static void plan_unmap(struct uvm_core *c, struct nv_service *v, uvm_proc q, uvm_mask pages, enum uvm_access keep) {
  struct uvm_step *st = uvm__nv_plan_unmap(c, v, q, pages, keep);
  if (st) st->why = v->d.why[uvm_mask_next(&st->pages, 0)];
}

/* A page that moves is unmapped everywhere; of copies that are dropped, their holders' mappings go; a page that gets a copy
 * becomes read-only. */
static void plan_unmaps(struct uvm_core *c, struct nv_service *v, uvm_node n, const struct sorted *r) {
  for (uvm_proc q = 0; q < c->space->topology.nprocs; q++) {
    uvm_mask gone = r->moved;
    if (c->space->procs[q].home != n) uvm_mask_or(&gone, &r->collapsed);
    plan_unmap(c, v, q, gone, UVM_A_PREFETCH);
    plan_unmap(c, v, q, r->copied, UVM_A_READ);
  }
}

/* The pages of `pages` whose copy closest to dst is on each node, as who owns dst sees it. */
static void sort_by_source(const struct uvm_core *c, const struct nv_service *v, uvm_node dst, const uvm_mask *pages, uvm_mask from[]) {
  const struct uvm_space *s = c->space;
  uvm_mask plain = *pages;
  uvm_mask_andnot(&plain, uvm_block_duplicated(s, v->block));
  for (uvm_node n = 0; n < s->topology.nnodes; n++) {
    from[n] = plain;
    uvm_mask_and(&from[n], uvm_block_resident(s, v->block, n));
  }
  uvm_mask several = *pages;
  uvm_mask_andnot(&several, &plain);
  uvm_proc p = uvm_proc_at(s, dst);
  for (int i = -1; (i = uvm_mask_next(&several, i + 1)) >= 0;)
    uvm_mask_add(&from[uvm__nv_closest(s, p, uvm_page_nodes(s, v->block, i))], i);
}

/* Of `pages` only the copy on `keep` stays. */
static void plan_collapse(struct uvm_core *c, struct nv_service *v, uvm_node keep, const uvm_mask *pages) {
  for (uvm_node n = 0; n < c->space->topology.nnodes; n++) {
    if (n == keep) continue;
    uvm_mask m = *pages;
    uvm_mask_and(&m, uvm_block_duplicated(c->space, v->block));
    uvm_mask_and(&m, uvm_block_resident(c->space, v->block, n));
    struct uvm_step *st = uvm_plan_add(&v->plan, UVM_S_COLLAPSE, v->block, v->asker, &m);
    if (!st) continue;
    st->src = n, st->dst = keep;
    st->cause = v->cause;
    st->why = v->d.why[uvm_mask_next(&m, 0)];
  }
}

static void plan_transfers(struct uvm_core *c, struct nv_service *v, uvm_node dst, const struct sorted *r) {
  uvm_mask moved[UVM_MAX_NODES], copied[UVM_MAX_NODES];
  sort_by_source(c, v, dst, &r->moved, moved);
  sort_by_source(c, v, dst, &r->copied, copied);
  for (uvm_node src = 0; src < c->space->topology.nnodes; src++) {
    plan_collapse(c, v, src, &moved[src]);
    uvm_plan_transfer(&v->plan, UVM_S_MIGRATE, v->block, v->asker, src, dst, &moved[src], &v->d.prefetched, v->cause, v->d.why);
    uvm_plan_transfer(&v->plan, UVM_S_DUPLICATE, v->block, v->asker, src, dst, &copied[src], &v->d.prefetched, v->cause, v->d.why);
  }
}

static void plan_populate(struct nv_service *v, uvm_node n, const uvm_mask *fresh) {
  struct uvm_step *st = uvm_plan_add(&v->plan, UVM_S_POPULATE, v->block, v->asker, fresh);
  if (!st) return;
  st->dst = n;
  st->cause = v->cause;
  st->why = v->d.why[uvm_mask_next(fresh, 0)];
}

static void plan_moves(struct uvm_core *c, struct nv_service *v) {
  for (uint32_t left = v->d.nodes; left; left &= left - 1) {
    uvm_node n = (uvm_node)__builtin_ctz(left);
    struct sorted r = sort_pages(c, v, n);
    plan_unmaps(c, v, n, &r);
    plan_collapse(c, v, n, &r.collapsed);
    plan_populate(v, n, &r.fresh);
    plan_transfers(c, v, n, &r);
  }
}

/* -- the service -- */

static void build(struct uvm_core *c, struct nv_service *v) {
  uvm_plan_clear(&v->plan);
  v->plan.context = v->context;
  v->plan.proc = v->asker;
  v->plan.block = v->block;
  v->plan.behind = v->behind;
  v->plan.writes = !uvm_mask_empty(&v->d.want[UVM_MAP_WRITE]) || !uvm_mask_empty(&v->d.want[UVM_MAP_ATOMIC]);
  v->plan.faults = (uint32_t)uvm_mask_count(&v->d.faulted);
  plan_moves(c, v);
  if (v->mapping != NV_MAP_NOTHING) uvm__nv_plan_permissions(c, v);
  if (v->extend) v->extend(c, v);
}

/* Every migration, even of pages that are there already, makes the chunk the most recently serviced; advice and copies do not. */
static bool counts_as_service(const struct nv_service *v) {
  return v->context == UVM_X_GPU_FAULT || v->context == UVM_X_CPU_FAULT || v->context == UVM_X_COUNTER || v->context == UVM_X_PREFETCH;
}

static bool finish(struct uvm_core *c, struct nv_service *v, uvm_ns now) {
  for (size_t i = 0; i < v->plan.steps.n; i++) {
    const struct uvm_step *st = &v->plan.steps.v[i];
    if (uvm_mask_subset(&st->pages, &st->done)) continue;
    c->hw.fail(c->hw.ctx, UVM_EENV, "driver nvidia: pages of allocation %s cannot be moved, and this driver expects that all can",
               v->block->range->alloc->id);
    return false;
  }
  v->phase = NV_START, v->again = false;
  uvm__nv_settle(c, v->block, counts_as_service(v) ? v->d.nodes : 0, v->asker, now);
  return true;
}

static void run(struct uvm_core *c, struct nv_service *v, uvm_ns now) {
  v->phase = NV_RUNNING;
  uvm__nv_sleep(c, v->task, v->task->step, uvm_plan_execute(c, &v->plan, now));
}

/* From the decision to the plan. */
static bool start(struct uvm_core *c, struct nv_service *v, uvm_ns now) {
  v->block = v->locate(c, v);
  if (v->block->busy_until) { /* a moment longer: the CPU thread that the other service lets go on makes its access first */
    uvm__nv_sleep(c, v->task, v->task->step, v->block->busy_until + 1);
    return false;
  }
  v->d = (struct nv_decision){0};
  v->idle = !v->decide(c, v, now);
  if (v->idle) return !(v->again = false);
  v->again = true;
  if (uvm__nv_find_room(c, v, now) != NV_ROOM) return false;
  build(c, v);
  if (!v->plan.steps.n) {
    v->idle = true;
    return finish(c, v, now);
  }
  uvm_ns ready = uvm_plan_prepare(c, &v->plan, now);
  if (ready == UVM_NEVER) return false;
  v->phase = NV_READY;
  if (ready > now)
    uvm__nv_sleep(c, v->task, v->task->step, ready);
  else
    run(c, v, now);
  return false;
}

bool uvm__nv_service_step(struct uvm_core *c, struct nv_service *v, uvm_ns now) {
  switch (v->phase) {
  case NV_READY: run(c, v, now); return false;
  case NV_RUNNING: uvm_plan_finish(c, &v->plan, now); return finish(c, v, now);
  case NV_EVICTING:
    uvm__nv_evict_end(c, v, now);
    v->phase = NV_START;
    break;
  case NV_START: break;
  }
  return start(c, v, now);
}

void uvm__nv_service_release(struct nv_service *v) { uvm_plan_release(&v->plan); }
