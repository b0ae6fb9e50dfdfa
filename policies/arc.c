/* Evicts backings without a resident page first, then as ARC does: those that came once (T1) and those that were hit since (T2),
 * each by last use, and ghosts of what left them (B1, B2). A ghost that comes back says which of the two was cut too short, and
 * moves the target for T1 by one or, where its ghosts are fewer than the others, by how many times fewer. */
#include "ghost.h"
#include "victim.h"

enum { ONCE, OFTEN, LISTS };
struct state {
  struct node {
    struct uvm__chain list[LISTS];
    struct uvm__ghosts ghosts[LISTS];
    uint32_t fit;  /* how many were in memory when it was last full */
    double target; /* of T1's length */
  } node[UVM__NODES];
};
struct page {
  uint32_t slot;
  uint8_t list;
}; /* a backing's own; slot 0: in no list */

static struct node *node_of(struct state *s, const uvm_view *v, uvm_backing_id k) { return &s->node[uvm_backing(v, k)->node]; }

/* Once for each ghost: when its room is asked for, else when it arrives. */
static void adapt(struct node *n, int list, uint32_t ghost) {
  struct uvm__slot *g = &n->ghosts[list].chain.v[ghost];
  double mine = n->ghosts[list].chain.held, others = n->ghosts[!list].chain.held, step = others > mine ? others / mine : 1;
  if (g->thing) return;
  g->thing = 1;
  n->target += list == ONCE ? step : -step;
  if (n->target > n->fit) n->target = n->fit;
  if (n->target < 0) n->target = 0;
}

static void forget(struct uvm__ghosts *g, uint64_t held, uint64_t max) {
  for (; held > max && g->chain.held; held--) uvm__ghost_remove(g, uvm__chain_oldest(&g->chain));
}

static void arrive(struct state *s, const uvm_view *v, uvm_backing_id k) {
  struct page *p = uvm_backing_state(v, k);
  if (p->slot) return;
  struct node *n = node_of(s, v, k);
  for (int list = 0; list < LISTS; list++) {
    uint32_t ghost = uvm__ghost_find(&n->ghosts[list], uvm__ghost_key(v, k));
    if (!ghost) continue;
    adapt(n, list, ghost);
    uvm__ghost_remove(&n->ghosts[list], ghost);
    p->list = OFTEN;
  }
  p->slot = uvm__chain_add(&n->list[p->list], k);
  uint64_t once = n->list[ONCE].held, often = n->list[OFTEN].held + n->ghosts[OFTEN].chain.held;
  forget(&n->ghosts[ONCE], once + n->ghosts[ONCE].chain.held, n->fit);
  forget(&n->ghosts[OFTEN], once + n->ghosts[ONCE].chain.held + often, 2ull * n->fit);
}

static void leave(void *state, const uvm_view *v, uvm_backing_id k) {
  struct page *p = uvm_backing_state(v, k);
  if (p->slot) uvm__chain_remove(&node_of(state, v, k)->list[p->list], p->slot);
  p->slot = 0;
}

static void on_event(void *state, const uvm_view *v, const struct uvm_told *e) {
  struct state *s = state;
  if (e->kind == UVM_T_FREE)
    for (int i = 0; i < UVM__NODES * LISTS; i++) uvm__freed(s, v, e->range, &s->node[i / LISTS].list[i % LISTS], leave);
  if (e->kind == UVM_T_SERVICED && e->backing) arrive(s, v, e->backing);
  if (e->kind != UVM_T_EVICTED || !e->backing) return;
  const struct page *p = uvm_backing_state(v, e->backing);
  if (p->slot) uvm__ghost_add(&node_of(s, v, e->backing)->ghosts[p->list], uvm__ghost_key(v, e->backing));
  leave(s, v, e->backing);
}

static void use(void *state, const uvm_view *v, uvm_backing_id k, uint64_t count) {
  struct page *p = uvm_backing_state(v, k);
  (void)count;
  if (!p->slot) return;
  leave(state, v, k);
  p->list = OFTEN;
  p->slot = uvm__chain_add(&node_of(state, v, k)->list[OFTEN], k);
}
static void on_access(void *state, const uvm_view *v, const struct uvm_run *r) { uvm__hits(state, v, r, use); }

static void take_oldest(struct uvm__chain *c, struct uvm__answer *a) {
  size_t before = a->n;
  for (uint32_t slot = uvm__chain_oldest(c), newer; slot && a->n == before; slot = newer) {
    newer = uvm__chain_newer(c, slot);
    if (uvm_backing(a->view, c->v[slot].thing))
      uvm__take(a, c->v[slot].thing);
    else
      uvm__chain_remove(c, slot);
  }
}

/* Asked when memory is full, so what is in it is what fits. */
static size_t victims(void *state, const uvm_view *v, uvm_node node, uint64_t bytes, uvm_block_id incoming, const uvm_mask *pages,
                      uvm_backing_id *out, size_t max) {
  struct node *n = &((struct state *)state)->node[node];
  struct uvm__answer a = {v, node, bytes, incoming, out, max, 0};
  uint32_t once = n->list[ONCE].held, ghost[LISTS];
  n->fit = once + n->list[OFTEN].held;
  for (int list = 0; list < LISTS; list++) {
    ghost[list] = uvm__ghost_of(&n->ghosts[list], v, incoming, pages);
    if (ghost[list]) adapt(n, list, ghost[list]);
  }
  bool from_once = once > n->target || (ghost[OFTEN] && once == n->target);
  uvm__take_unused(&a);
  for (size_t before = SIZE_MAX; uvm__wants(&a) && a.n != before;) {
    before = a.n;
    take_oldest(&n->list[from_once ? ONCE : OFTEN], &a);
    if (a.n == before) take_oldest(&n->list[from_once ? OFTEN : ONCE], &a);
  }
  return a.n;
}

static void fini(void *state) {
  for (int i = 0; i < UVM__NODES; i++)
    for (int list = 0; list < LISTS; list++) {
      uvm__chain_free(&((struct state *)state)->node[i].list[list]);
      uvm__ghosts_free(&((struct state *)state)->node[i].ghosts[list]);
    }
}

const struct uvm_policy uvm_policy_arc = {
    .abi = UVM_POLICY_ABI,
    .needs = UVM_NEEDS_ACCESS,
    .name = "arc",
    .help = "evict by last use from what came once or from what was hit since, by which of them returns more often",
    .state_size = sizeof(struct state),
    .backing_size = sizeof(struct page),
    .fini = fini,
    .on_event = on_event,
    .on_access = on_access,
    .victims = victims,
};
