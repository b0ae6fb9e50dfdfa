/* Evicts backings without a resident page first, then as SIEVE does: first in first out with a bit that a hit sets. The hand
 * goes from the oldest to the newest and round again, clears bits and evicts the first that is not set. Unlike a clock's, what
 * it passes stays where it is, and newcomers enter at the newest end, not behind the hand. Those that may not leave keep
 * their bit. */
#include "victim.h"

struct state {
  struct node {
    struct uvm__chain chain;
    uint32_t hand;
  } node[UVM__NODES];
}; /* hand: a slot; 0: the oldest */

static struct node *node_of(struct state *s, const uvm_view *v, uvm_backing_id k) { return &s->node[uvm_backing(v, k)->node]; }

static void take_out(struct node *n, uint32_t slot) {
  if (n->hand == slot) n->hand = uvm__chain_newer(&n->chain, slot);
  uvm__chain_remove(&n->chain, slot);
}

static void leave(void *state, const uvm_view *v, uvm_backing_id k) {
  struct uvm__marked *p = uvm_backing_state(v, k);
  if (p->slot) take_out(node_of(state, v, k), p->slot);
  p->slot = 0;
}

static void on_event(void *state, const uvm_view *v, const struct uvm_told *e) {
  struct state *s = state;
  if (e->kind == UVM_T_FREE)
    for (int i = 0; i < UVM__NODES; i++) uvm__freed(s, v, e->range, &s->node[i].chain, leave);
  if (e->kind == UVM_T_EVICTED && e->backing) leave(s, v, e->backing);
  if (e->kind != UVM_T_SERVICED || !e->backing) return;
  struct uvm__marked *p = uvm_backing_state(v, e->backing);
  if (!p->slot) p->slot = uvm__chain_add(&node_of(s, v, e->backing)->chain, e->backing);
}

static void on_access(void *state, const uvm_view *v, const struct uvm_run *r) { uvm__hits(state, v, r, uvm__mark); }

static size_t victims(void *state, const uvm_view *v, uvm_node node, uint64_t bytes, uvm_block_id incoming, const uvm_mask *pages,
                      uvm_backing_id *out, size_t max) {
  struct node *n = &((struct state *)state)->node[node];
  struct uvm__answer a = {v, node, bytes, incoming, out, max, 0};
  uint32_t slot = n->hand, stop = 0; /* stop: the first victim, at which the hand stays until it leaves */
  (void)pages;
  uvm__take_unused(&a);
  for (uint64_t left = 2ull * n->chain.held; left && uvm__wants(&a); left--) { /* twice round clears and meets them all */
    if (!slot) slot = uvm__chain_oldest(&n->chain);
    uint32_t next = uvm__chain_newer(&n->chain, slot);
    uvm_backing_id k = n->chain.v[slot].thing;
    struct uvm__marked *p = uvm_backing(v, k) ? uvm_backing_state(v, k) : NULL;
    if (!p)
      take_out(n, slot);
    else if (p->used && uvm__may_leave(&a, k))
      p->used = false;
    else if (uvm__take(&a, k) && !stop)
      stop = slot;
    slot = next;
  }
  if (stop) n->hand = stop;
  return a.n;
}

static void fini(void *state) {
  for (int i = 0; i < UVM__NODES; i++) uvm__chain_free(&((struct state *)state)->node[i].chain);
}

const struct uvm_policy uvm_policy_sieve = {
    .abi = UVM_POLICY_ABI,
    .needs = UVM_NEEDS_ACCESS,
    .name = "sieve",
    .help = "evict the first without a hit since the hand last passed it; the others keep their place",
    .state_size = sizeof(struct state),
    .backing_size = sizeof(struct uvm__marked),
    .fini = fini,
    .on_event = on_event,
    .on_access = on_access,
    .victims = victims,
};
