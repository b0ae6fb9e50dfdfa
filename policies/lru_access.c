/* Evicts backings without a resident page first, then the one whose last use lies longest back, where hits count as well as
 * service: what textbooks call LRU. No driver can do it, for it does not see hits; it shows what lru-service loses. */
#include "lru.h"
#include "victim.h"

#define NODES 32                                /* the topology names nodes by the bits of a 32-bit word */
struct state { struct uvm__lru node[NODES]; };  /* things: backings, dead ones until they are met */

/* A backing's own state is its slot. Without memory it has none and is never chosen. */
static void use(struct state *s, const uvm_view *v, uvm_backing_id k) {
  uint32_t *slot = uvm_backing_state(v, k);
  struct uvm__lru *l = &s->node[uvm_backing(v, k)->node];
  if (*slot)
    uvm__lru_use(l, *slot);
  else
    *slot = uvm__lru_add(l, k);
}

static void on_event(void *state, const uvm_view *v, const struct uvm_told *e) {
  if (e->kind == UVM_T_SERVICED && e->backing) use(state, v, e->backing);
}

/* The hits' pages may lie on several nodes, and on several backings of each. */
static void on_access(void *state, const uvm_view *v, const struct uvm_run *r) {
  for (uvm_node n = 0; n < uvm_topology(v)->nnodes; n++) {
    const uvm_mask *here = uvm_resident(v, r->block, n);
    uvm_backing_id last = 0;
    for (int p = -1; (p = uvm_mask_next(r->pages, p + 1)) >= 0;) {
      uvm_backing_id k = uvm_mask_test(here, p) ? uvm_backing_of(v, r->block, n, p) : 0;
      if (k && k != last) use(state, v, k);
      if (k) last = k;
    }
  }
}

static size_t victims(void *state, const uvm_view *v, uvm_node node, uint64_t bytes, uvm_block_id incoming, const uvm_mask *pages,
                      uvm_backing_id *out, size_t max) {
  struct uvm__lru *l = &((struct state *)state)->node[node];
  size_t n = 0;
  uint64_t freed = 0;
  (void)pages;
  for (uvm_backing_id k = uvm_oldest(v, node, UVM_L_UNUSED); k && n < max && freed < bytes; k = uvm_newer(v, k)) {
    if (!uvm__may_leave(v, k, incoming)) continue;
    freed += uvm_backing(v, k)->bytes;
    out[n++] = k;
  }
  for (uint32_t slot = uvm__lru_oldest(l), newer; slot && n < max && freed < bytes; slot = newer) {
    uvm_backing_id k = l->v[slot].thing;
    const struct uvm_backing_info *b = uvm_backing(v, k);
    newer = uvm__lru_newer(l, slot);
    if (!b) uvm__lru_remove(l, slot);
    if (!b || !b->resident || !uvm__may_leave(v, k, incoming)) continue;
    freed += b->bytes;
    out[n++] = k;
  }
  return n;
}

static void fini(void *state) {
  for (int i = 0; i < NODES; i++) uvm__lru_free(&((struct state *)state)->node[i]);
}

const struct uvm_policy uvm_policy_lru_access = {
    .abi = UVM_POLICY_ABI,
    .needs = UVM_NEEDS_ACCESS,
    .name = "lru-access",
    .help = "evict what was used longest ago; hits count",
    .state_size = sizeof(struct state),
    .backing_size = sizeof(uint32_t),
    .fini = fini,
    .on_event = on_event,
    .on_access = on_access,
    .victims = victims,
};
