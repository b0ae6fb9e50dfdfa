/* Who may do what with a page once it is where it goes: the requester's level and its promotion, what others lose, and the
 * mappings that advice and pins add. Works on masks: three sets of pages, one a level. */
#include "core/nvidia/nvidia.h"
#include <assert.h>

static const uint8_t level_access[UVM_MAP_LEVELS] = {UVM_A_READ, UVM_A_WRITE, UVM_A_ATOMIC};

/* Pages on which a processor without native atomics on n does its atomics by holding the page alone. */
static uvm_mask held_for_atomics(const struct uvm_space *s, const struct uvm_block *b, uvm_node n) {
  uvm_mask m = {{0}};
  for (uvm_proc q = 0; q < s->topology.nprocs; q++)
    if (!uvm__nv_atomics(s, q, n)) uvm_mask_or(&m, uvm_block_mapped(s, b, q, UVM_MAP_ATOMIC));
  return m;
}

static void plan_map(struct uvm_plan *plan, struct uvm_block *b, uvm_proc q, uvm_mask pages, enum uvm_level l, enum uvm_cause cause,
                     uint8_t why) {
  struct uvm_step *st = uvm_plan_add(plan, UVM_S_MAP, b, q, &pages);
  if (!st) return;
  st->access = level_access[l];
  st->cause = (uint8_t)cause;
  st->why = why;
}

struct uvm_step *uvm__nv_plan_unmap(struct uvm_core *c, struct nv_service *v, uvm_proc q, uvm_mask pages, enum uvm_access keep) {
  static const uint8_t above[] = {[UVM_A_PREFETCH] = UVM_MAP_READ, [UVM_A_READ] = UVM_MAP_WRITE, [UVM_A_WRITE] = UVM_MAP_ATOMIC};
  uvm_mask_and(&pages, uvm_block_mapped(c->space, v->block, q, (enum uvm_level)above[keep]));
  struct uvm_step *st = uvm_plan_add(&v->plan, UVM_S_UNMAP, v->block, q, &pages);
  if (st) st->access = (uint8_t)keep, st->cause = v->cause;
  return st;
}

/* -- the requester -- */

/* Pages of to[n] that stay on n. The others are mapped by nobody once they have moved. */
static uvm_mask staying(const struct uvm_core *c, const struct nv_service *v, uvm_node n) {
  return uvm_mask_both(v->d.to[n], uvm_block_resident(c->space, v->block, n));
}

/* Pages that have, or may get, copies: never promoted. */
static uvm_mask perhaps_duplicated(const struct uvm_core *c, const struct nv_service *v, uvm_node n) {
  if (v->block->range->info.read_mostly) return uvm_block_all(v->block);
  uvm_mask populated = uvm_block_populated(c->space, v->block),
           arriving = uvm_mask_minus(populated, uvm_block_resident(c->space, v->block, n));
  uvm_mask_or(&arriving, uvm_block_duplicated(c->space, v->block));
  return uvm_mask_both(v->d.duplicate, &arriving);
}

/* An explicit migration maps for everything the pages that nobody maps, and the others as a read would. */
static void explicit_wants(const struct uvm_core *c, const struct nv_service *v, uvm_node n, uvm_mask want[]) {
  const struct uvm_space *s = c->space;
  uvm_mask moving = uvm_mask_minus(v->d.to[n], uvm_block_resident(s, v->block, n)), populated = uvm_block_populated(s, v->block);
  uvm_mask shared = {{0}}, copies = uvm_mask_both(v->d.duplicate, &populated);
  for (uvm_proc q = 0; q < s->topology.nprocs; q++) uvm_mask_or(&shared, uvm_block_mapped(s, v->block, q, UVM_MAP_READ));
  uvm_mask_andnot(&shared, &moving);
  uvm_mask_and(&copies, &moving);
  uvm_mask_or(&shared, &copies);
  uvm_mask duplicated = uvm_mask_both(*uvm_block_duplicated(s, v->block), &v->d.duplicate);
  uvm_mask_or(&shared, &duplicated);
  want[UVM_MAP_READ] = uvm_mask_both(v->d.to[n], &shared);
  want[UVM_MAP_WRITE] = (uvm_mask){{0}};
  want[UVM_MAP_ATOMIC] = uvm_mask_minus(v->d.to[n], &shared);
}

/* A read gets a writable mapping, and an atomic one where atomics are native, when nobody's atomics depend on it being
 * read-only and no copies can exist: later writes then do not fault. */
static void grant_levels(const struct uvm_core *c, const struct nv_service *v, uvm_node n, uvm_mask grant[]) {
  if (v->mapping == NV_MAP_EXPLICIT)
    explicit_wants(c, v, n, grant);
  else
    for (int l = 0; l < UVM_MAP_LEVELS; l++) grant[l] = uvm_mask_both(v->d.to[n], &v->d.want[l]);
  uvm_mask stay = staying(c, v, n), held = held_for_atomics(c->space, v->block, n), bar = perhaps_duplicated(c, v, n);
  uvm_mask_and(&held, &stay);
  uvm_mask_or(&bar, &held);
  uvm_mask promoted = uvm_mask_minus(grant[UVM_MAP_READ], &bar);
  uvm_mask_andnot(&grant[UVM_MAP_READ], &promoted);
  uvm_mask_or(&grant[UVM_MAP_WRITE], &promoted);
  if (v->proc == UVM_NONE || !uvm__nv_atomics(c->space, v->proc, n)) return;
  uvm_mask_or(&grant[UVM_MAP_ATOMIC], &grant[UVM_MAP_WRITE]);
  grant[UVM_MAP_WRITE] = (uvm_mask){{0}};
}

static void map_requester(struct uvm_core *c, struct nv_service *v, uvm_node n, const uvm_mask grant[]) {
  assert(uvm_reaches(c->space, v->proc, n));
  for (int l = 0; l < UVM_MAP_LEVELS; l++) {
    uvm_mask stay = staying(c, v, n), have = uvm_mask_both(stay, uvm_block_mapped(c->space, v->block, v->proc, (enum uvm_level)l));
    if (v->remap) uvm_mask_andnot(&have, &v->d.faulted);
    uvm_mask pages = uvm_mask_minus(grant[l], &have), pinned = uvm_mask_both(pages, &v->d.pinned);
    uvm_mask_andnot(&pages, &pinned);
    int first = uvm_mask_next(&pages, 0);
    plan_map(&v->plan, v->block, v->proc, pages, (enum uvm_level)l, v->context == UVM_X_PREFETCH ? UVM_C_USER : UVM_C_FAULT,
             first < 0 ? 0 : v->d.why[first]);
    plan_map(&v->plan, v->block, v->proc, pinned, (enum uvm_level)l, UVM_C_THRASHING, NV_WHY_PINNED);
  }
}

/* -- what others lose -- */

static void revoke(struct uvm_core *c, struct nv_service *v, uvm_proc q, uvm_mask pages, enum uvm_access keep) {
  struct uvm_step *st = uvm__nv_plan_unmap(c, v, q, pages, keep);
  if (st) st->why = v->d.why[uvm_mask_next(&st->pages, 0)], st->revoked = true;
}

/* Only pages that stay: the others were unmapped. Atomics that are not native need everybody else read-only; every other
 * write only needs that nobody does such atomics. */
static void revoke_others(struct uvm_core *c, struct nv_service *v, uvm_node n, const uvm_mask grant[]) {
  const struct uvm_space *s = c->space;
  uvm_mask stay = staying(c, v, n);
  bool native = uvm__nv_atomics(s, v->proc, n);
  for (uvm_proc q = 0; q < s->topology.nprocs; q++) {
    if (q == v->proc) continue;
    if (!native) revoke(c, v, q, uvm_mask_both(stay, &grant[UVM_MAP_ATOMIC]), UVM_A_READ);
    if (uvm__nv_atomics(s, q, n)) continue;
    revoke(c, v, q, uvm_mask_both(stay, &grant[UVM_MAP_WRITE]), UVM_A_WRITE);
    if (native) revoke(c, v, q, uvm_mask_both(stay, &grant[UVM_MAP_ATOMIC]), UVM_A_WRITE);
  }
}

/* -- what advice and pins add -- */

bool uvm__nv_advised(const struct uvm_space *s, const struct uvm_block *b, uvm_proc q, uvm_node n) {
  uvm_node preferred = b->range->info.preferred;
  bool away = preferred != UVM_NONE && preferred != n && s->procs[q].home == preferred;
  return !b->range->info.read_mostly && !away && uvm_reaches(s, q, n);
}

/* Beside a requester with this level, what q may have. */
static enum uvm_level level_beside(const struct uvm_core *c, const struct nv_service *v, uvm_node n, enum uvm_level l, uvm_proc q) {
  if (l != UVM_MAP_ATOMIC) return l;
  if (v->proc == UVM_NONE || uvm__nv_atomics(c->space, v->proc, n)) return uvm__nv_atomics(c->space, q, n) ? UVM_MAP_ATOMIC : UVM_MAP_WRITE;
  return v->proc == 0 ? UVM_MAP_WRITE : UVM_MAP_READ;
}

static uvm_mask pinned_for(const struct nv_service *v, uvm_node n, uvm_proc q) {
  uvm_mask m = uvm_mask_both(v->d.to[n], &v->d.pinned), out = {{0}};
  for (int p = -1; (p = uvm_mask_next(&m, p + 1)) >= 0;)
    if (v->d.procs[p] >> q & 1) uvm_mask_add(&out, p);
  return out;
}

static void map_beside(struct uvm_core *c, struct nv_service *v, uvm_node n, const uvm_mask grant[], uvm_proc q) {
  uvm_mask stay = staying(c, v, n), thrashing = pinned_for(v, n, q), advised = {{0}};
  if (v->block->range->info.accessed_by >> q & 1) advised = uvm_mask_minus(v->d.to[n], &thrashing);
  for (int l = 0; l < UVM_MAP_LEVELS; l++) {
    enum uvm_level level = level_beside(c, v, n, (enum uvm_level)l, q);
    uvm_mask have = uvm_mask_both(stay, uvm_block_mapped(c->space, v->block, q, level)), pages = uvm_mask_minus(grant[l], &have);
    plan_map(&v->plan, v->block, q, uvm_mask_both(pages, &thrashing), level, UVM_C_THRASHING, NV_WHY_PINNED);
    plan_map(&v->plan, v->block, q, uvm_mask_both(pages, &advised), level, UVM_C_POLICY, NV_WHY_ACCESSED_BY);
  }
}

void uvm__nv_plan_highest(struct uvm_core *c, struct uvm_plan *plan, struct uvm_block *b, uvm_proc q, uvm_node n, uvm_mask pages,
                          const uvm_mask *contested, enum uvm_cause cause, uint8_t why) {
  plan_map(plan, b, q, uvm_mask_both(pages, contested), UVM_MAP_READ, cause, why);
  plan_map(plan, b, q, uvm_mask_minus(pages, contested), uvm__nv_atomics(c->space, q, n) ? UVM_MAP_ATOMIC : UVM_MAP_WRITE, cause, why);
}

uvm_mask uvm__nv_contested(const struct uvm_core *c, const struct uvm_block *b, uvm_node n) {
  uvm_mask m = held_for_atomics(c->space, b, n);
  uvm_mask_or(&m, uvm_block_duplicated(c->space, b));
  return m;
}

void uvm__nv_plan_permissions(struct uvm_core *c, struct nv_service *v) {
  uvm_mask grants[UVM_MAX_NODES][UVM_MAP_LEVELS];
  for (uint32_t left = v->d.nodes; left; left &= left - 1) {
    uvm_node n = (uvm_node)__builtin_ctz(left);
    grant_levels(c, v, n, grants[n]);
    if (v->mapping == NV_MAP_ACCESS) revoke_others(c, v, n, grants[n]);
  }
  for (uint32_t left = v->d.nodes; left; left &= left - 1) {
    uvm_node n = (uvm_node)__builtin_ctz(left);
    if (v->proc != UVM_NONE) map_requester(c, v, n, grants[n]);
    for (uvm_proc q = 0; q < c->space->topology.nprocs; q++)
      if (q != v->proc && uvm__nv_advised(c->space, v->block, q, n)) map_beside(c, v, n, grants[n], q);
  }
}
