/* Evicts backings without a resident page first, then the one whose last use lies longest back, where hits count as well as
 * service: what textbooks call LRU. No driver can do it, for it does not see hits; it shows what lru-service loses. */
#include "victim.h"

/* A backing's own state is its slot. */
static void use(void *state, const uvm_view *v, uvm_backing_id k, uint64_t count) {
  uint32_t *slot = uvm_backing_state(v, k);
  struct uvm__chain *c = &((struct uvm__chains *)state)->node[uvm_backing(v, k)->node];
  (void)count;
  if (*slot)
    uvm__chain_renew(c, *slot);
  else
    *slot = uvm__chain_add(c, k);
}

static void on_event(void *state, const uvm_view *v, const struct uvm_told *e) {
  if (e->kind == UVM_T_SERVICED && e->backing) use(state, v, e->backing, 1);
}

static void on_access(void *state, const uvm_view *v, const struct uvm_run *r) { uvm__hits(state, v, r, use); }

static size_t victims(void *state, const uvm_view *v, uvm_node node, uint64_t bytes, uvm_block_id incoming, const uvm_mask *pages,
                      uvm_backing_id *out, size_t max) {
  struct uvm__chain *c = &((struct uvm__chains *)state)->node[node];
  struct uvm__answer a = {v, node, bytes, incoming, out, max, 0};
  (void)pages;
  uvm__take_unused(&a);
  for (uint32_t slot = uvm__chain_oldest(c), newer; slot && uvm__wants(&a); slot = newer) {
    newer = uvm__chain_newer(c, slot);
    if (uvm_backing(v, c->v[slot].thing))
      uvm__take(&a, c->v[slot].thing);
    else
      uvm__chain_remove(c, slot);
  }
  return a.n;
}

static void fini(void *state) { uvm__chains_free(state); }

const struct uvm_policy uvm_policy_lru = {
    .abi = UVM_POLICY_ABI,
    .needs = UVM_NEEDS_ACCESS,
    .name = "lru",
    .help = "evict what was used longest ago; hits count",
    .state_size = sizeof(struct uvm__chains),
    .backing_size = sizeof(uint32_t),
    .fini = fini,
    .on_event = on_event,
    .on_access = on_access,
    .victims = victims,
};
