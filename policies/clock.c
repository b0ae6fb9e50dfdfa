/* Evicts backings without a resident page first, then by second chance: a hit sets a backing's bit, the hand clears bits and
 * evicts the first that is not set. The hand stands at the oldest end of a chain, and what it passes goes to the other end.
 * A new backing enters with its bit 0; those that may not leave keep place and bit. */
#include "victim.h"

static void on_event(void *state, const uvm_view *v, const struct uvm_told *e) {
  if (e->kind != UVM_T_SERVICED || !e->backing) return;
  struct uvm__marked *p = uvm_backing_state(v, e->backing);
  if (!p->slot) p->slot = uvm__chain_add(&((struct uvm__chains *)state)->node[uvm_backing(v, e->backing)->node], e->backing);
}

static void on_access(void *state, const uvm_view *v, const struct uvm_run *r) { uvm__hits(state, v, r, uvm__mark); }

static size_t victims(void *state, const uvm_view *v, uvm_node node, uint64_t bytes, uvm_block_id incoming, const uvm_mask *pages,
                      uvm_backing_id *out, size_t max) {
  struct uvm__chain *c = &((struct uvm__chains *)state)->node[node];
  struct uvm__answer a = {v, node, bytes, incoming, out, max, 0};
  (void)pages;
  uvm__take_unused(&a);
  for (uint32_t slot = uvm__chain_oldest(c), next; slot && uvm__wants(&a); slot = next) {
    uvm_backing_id k = c->v[slot].thing;
    next = uvm__chain_newer(c, slot);
    if (!uvm_backing(v, k)) {
      uvm__chain_remove(c, slot);
      continue;
    }
    struct uvm__marked *p = uvm_backing_state(v, k);
    if (p->used && uvm__may_leave(&a, k)) {
      p->used = false;
      uvm__chain_renew(c, slot);
      if (!next) next = slot;
    } else {
      uvm__take(&a, k);
    }
  }
  return a.n;
}

static void fini(void *state) { uvm__chains_free(state); }

const struct uvm_policy uvm_policy_clock = {
    .abi = UVM_POLICY_ABI,
    .needs = UVM_NEEDS_ACCESS,
    .name = "clock",
    .help = "evict the first that was not hit since the hand last passed it",
    .state_size = sizeof(struct uvm__chains),
    .backing_size = sizeof(struct uvm__marked),
    .fini = fini,
    .on_event = on_event,
    .on_access = on_access,
    .victims = victims,
};
