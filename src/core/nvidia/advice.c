/* Advice. First the ranges take the new value, split only where it differs from the old one; then each block in use is
 * made to agree with it. */
#include "core/nvidia/nvidia.h"

/* -- the ranges -- */

static bool differs(const struct uvm_range *r, const struct uvm_call *call) {
  const struct uvm_range_info *i = &r->info;
  switch (call->advice) {
  case UVM_ADV_SET_READ_MOSTLY: return !i->read_mostly;
  case UVM_ADV_UNSET_READ_MOSTLY: return i->read_mostly;
  case UVM_ADV_SET_PREFERRED: return i->preferred != call->node;
  case UVM_ADV_UNSET_PREFERRED: return i->preferred != UVM_NONE;
  case UVM_ADV_SET_ACCESSED_BY: return !(i->accessed_by >> call->proc & 1);
  case UVM_ADV_UNSET_ACCESSED_BY: return i->accessed_by >> call->proc & 1;
  case UVM_ADV_SET_COARSE_GRAIN:
  case UVM_ADV_UNSET_COARSE_GRAIN: return false; /* another driver's */
  }
  return false;
}

/* What the call changes of the range at `from`: [from, *to). */
static struct uvm_range *part(const struct nv_walk *w, uint64_t from, uint64_t *to) {
  struct uvm_range *r = uvm_alloc_range(w->call.alloc, from);
  uint64_t end = w->call.offset + w->call.bytes, range_end = r->offset + r->info.bytes;
  *to = end < range_end ? end : range_end;
  return r;
}

/* Until when the block that a split at `offset` would cut is in use; 0: it may be cut. */
static uvm_ns cut_busy(const struct uvm_alloc *a, uint64_t offset) {
  if (offset >= a->bytes) return 0;
  const struct uvm_block *b = uvm_block_find(a, offset);
  return b && uvm_block_offset(b, b->first) < offset ? b->busy_until : 0;
}

static uvm_ns splits_busy(const struct nv_walk *w) {
  uvm_ns until = 0;
  for (uint64_t from = w->call.offset, to; from < w->call.offset + w->call.bytes; from = to) {
    if (!differs(part(w, from, &to), &w->call)) continue;
    uvm_ns lo = cut_busy(w->call.alloc, from), hi = cut_busy(w->call.alloc, to);
    if (lo > until) until = lo;
    if (hi > until) until = hi;
  }
  return until;
}

static void set_ranges(struct uvm_core *c, const struct nv_walk *w, uvm_ns now) {
  struct uvm_alloc *a = w->call.alloc;
  for (uint64_t from = w->call.offset, to; from < w->call.offset + w->call.bytes; from = to) {
    if (!differs(part(w, from, &to), &w->call)) continue;
    size_t n;
    size_t at = uvm_space_split(c->space, a, from, to - from, &n);
    uvm_range_advise(a->ranges.v[at], &w->call);
    struct uvm_told t = {.kind = UVM_T_ADVISED,
                         .range = a->ranges.v[at]->id,
                         .proc = w->call.proc,
                         .src = UVM_NONE,
                         .dst = UVM_NONE,
                         .begin = now,
                         .end = now};
    uvm_tell(c->host, &t, now);
  }
}

/* -- the blocks -- */

static void unmap(struct uvm_core *c, struct nv_service *v, uvm_proc q, uvm_mask pages, enum uvm_access keep) {
  struct uvm_step *st = uvm__nv_plan_unmap(c, v, q, pages, keep);
  if (st) st->why = NV_WHY_ADVICE;
}

/* The holder of a page may only read it, and nobody else keeps a mapping. */
static void make_read_only(struct uvm_core *c, struct nv_service *v) {
  for (uvm_proc q = 0; q < c->space->topology.nprocs; q++) {
    uvm_mask held = uvm__nv_walk_pages(v), remote = held;
    uvm_mask_and(&held, uvm_block_resident(c->space, v->block, c->space->procs[q].home));
    uvm_mask_andnot(&remote, &held);
    unmap(c, v, q, remote, UVM_A_PREFETCH);
    unmap(c, v, q, held, UVM_A_READ);
  }
}

/* Who lives at the preferred location gives up mappings of pages elsewhere, so as to fault and pull them in. */
static void drop_remote(struct uvm_core *c, struct nv_service *v) {
  uvm_node preferred = uvm__nv_walk_of(v)->call.node;
  uvm_mask away = uvm__nv_walk_pages(v);
  uvm_mask_andnot(&away, uvm_block_resident(c->space, v->block, preferred));
  for (uvm_proc q = 0; q < c->space->topology.nprocs; q++)
    if (c->space->procs[q].home == preferred) unmap(c, v, q, away, UVM_A_PREFETCH);
}

static void map_for(struct uvm_core *c, struct nv_service *v, uvm_proc q) {
  uvm_mask left = uvm__nv_walk_pages(v);
  uvm_mask_andnot(&left, uvm_block_mapped(c->space, v->block, q, UVM_MAP_READ));
  for (uvm_node n = 0; n < c->space->topology.nnodes; n++) {
    uvm_mask here = left, contested = uvm__nv_contested(c, v->block, n);
    if (!uvm__nv_advised(c->space, v->block, q, n)) continue;
    uvm_mask_and(&here, uvm_block_resident(c->space, v->block, n));
    uvm_mask_andnot(&left, &here);
    uvm__nv_plan_highest(c, &v->plan, v->block, q, n, here, &contested, UVM_C_POLICY, NV_WHY_ADVICE);
  }
}

static void extend(struct uvm_core *c, struct nv_service *v) {
  const struct nv_walk *w = uvm__nv_walk_of(v);
  switch (w->call.advice) {
  case UVM_ADV_SET_READ_MOSTLY: make_read_only(c, v); break;
  case UVM_ADV_SET_PREFERRED: drop_remote(c, v); break;
  case UVM_ADV_SET_ACCESSED_BY: map_for(c, v, w->call.proc); break;
  case UVM_ADV_UNSET_READ_MOSTLY: /* the copies went in the first pass */
    for (uvm_proc q = 0; w->pass && q < c->space->topology.nprocs; q++)
      if (v->block->range->info.accessed_by >> q & 1) map_for(c, v, q);
    break;
  default: break;
  }
}

static bool decide(struct uvm_core *c, struct nv_service *v, uvm_ns now) {
  (void)now;
  uvm_mask copies = uvm__nv_walk_pages(v);
  uvm_mask_and(&copies, uvm_block_duplicated(c->space, v->block));
  for (int p = -1; uvm__nv_walk_of(v)->call.advice == UVM_ADV_UNSET_READ_MOSTLY && (p = uvm_mask_next(&copies, p + 1)) >= 0;)
    uvm__nv_decide_page(v, p, uvm__nv_keeper(c->space, v->block, p), UVM_MAP_READ, NV_WHY_ADVICE);
  return true;
}

static void begin(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct nv_walk *w = (struct nv_walk *)t;
  uvm_ns busy = splits_busy(w);
  if (busy) {
    uvm__nv_sleep(c, t, begin, busy);
    return;
  }
  struct uvm_event e = uvm_event_at(UVM_E_ADVISE, now, w->call.alloc, w->call.offset);
  e.proc = w->call.proc;
  e.dst = w->call.node;
  e.bytes = w->call.bytes;
  e.value = w->call.advice;
  e.line = w->call.line;
  uvm_observe(c, &e);
  set_ranges(c, w, now);
  uvm__nv_walk_start(c, w, now);
}

void uvm__nv_advise(struct uvm_core *c, const struct uvm_call *call, uvm_ns now) {
  struct nv_walk *w = uvm__nv_walk_new(c, call, UVM_X_ADVISE, UVM_C_POLICY, now);
  w->service.decide = decide;
  w->service.extend = extend;
  w->used_only = true;
  if (call->advice == UVM_ADV_UNSET_READ_MOSTLY) w->passes = 2;
  begin(c, &w->task, now);
}
