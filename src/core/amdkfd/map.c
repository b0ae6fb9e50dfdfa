/* Making pages accessible where they are. */
#include "core/amdkfd/amdkfd.h"

void uvm__kfd_plan_map(struct uvm_driver_task *t, struct uvm_block *b, uvm_proc p, const uvm_mask *pages) {
  struct uvm_step *st = uvm_plan_add(&t->plan, UVM_S_MAP, b, p, pages);
  if (st) st->access = UVM_A_ATOMIC; /* a writable entry: nothing traps atomics */
}

uvm_mask uvm__kfd_plan_populate(struct uvm_core *c, struct uvm_driver_task *t, struct uvm_block *b, const uvm_mask *pages) {
  uvm_mask there = uvm_block_populated(c->space, b), holes = *pages;
  uvm_mask_andnot(&holes, &there);
  struct uvm_step *st = uvm_plan_add(&t->plan, UVM_S_POPULATE, b, t->proc, &holes);
  if (st) st->src = st->dst = c->space->procs[0].home;
  uvm__kfd_plan_map(t, b, 0, &holes);
  return holes;
}

static void build_map(struct uvm_core *c, struct uvm_driver_task *t, struct uvm_block *b, const uvm_mask *pages) {
  const struct uvm_space *s = c->space;
  uvm_mask populated = uvm__kfd_plan_populate(c, t, b, pages);
  for (uvm_proc p = 1; p < s->topology.nprocs; p++) {
    if (!(t->sweep.gpus >> p & 1)) continue;
    uvm_mask m = uvm_block_in_reach(s, b, p);
    if (uvm_reaches(s, p, s->procs[0].home)) uvm_mask_or(&m, &populated);
    uvm_mask_and(&m, pages);
    uvm_mask_andnot(&m, uvm_block_mapped(s, b, p, UVM_MAP_ATOMIC));
    uvm__kfd_plan_map(t, b, p, &m);
  }
}

void uvm__kfd_map(struct uvm_core *c, struct uvm_driver_task *t, struct kfd_span pages, uint32_t gpus, kfd_step *after, uvm_ns now) {
  t->sweep.gpus = gpus;
  t->range->mapped = true;
  uvm__kfd_sweep(c, t, t->range->alloc, pages, build_map, after, now);
}
