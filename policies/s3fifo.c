/* Evicts backings without a resident page first, then as S3-FIFO does: a small queue for newcomers, a tenth of what is in memory,
 * the main queue, and ghosts of what left the small one, as many as the main queue may hold. A newcomer that has a ghost goes
 * to the main queue. At the old end of the small queue those with two hits move to the main one, others leave; at that of the
 * main queue those with a hit go round again, with one hit less. */
#include "ghost.h"
#include "victim.h"

enum { SMALL, MAIN, QUEUES, HITS_MAX = 3, HITS_TO_MAIN = 2 };
struct state {
  struct node {
    struct uvm__chain queue[QUEUES];
    struct uvm__ghosts ghosts;
    uint32_t ghosts_max;
  } node[UVM__NODES];
};
struct page {
  uint32_t slot;
  uint8_t queue, hits;
}; /* a backing's own; slot 0: in no queue */

static struct node *node_of(struct state *s, const uvm_view *v, uvm_backing_id k) { return &s->node[uvm_backing(v, k)->node]; }

static void arrive(struct state *s, const uvm_view *v, uvm_backing_id k) {
  struct page *p = uvm_backing_state(v, k);
  if (p->slot) return;
  struct node *n = node_of(s, v, k);
  uint32_t ghost = uvm__ghost_find(&n->ghosts, uvm__ghost_key(v, k));
  if (ghost) uvm__ghost_remove(&n->ghosts, ghost);
  p->queue = ghost ? MAIN : SMALL;
  p->slot = uvm__chain_add(&n->queue[p->queue], k);
}

static void leave(void *state, const uvm_view *v, uvm_backing_id k) {
  struct page *p = uvm_backing_state(v, k);
  if (p->slot) uvm__chain_remove(&node_of(state, v, k)->queue[p->queue], p->slot);
  p->slot = 0;
}

static void evicted(struct state *s, const uvm_view *v, uvm_backing_id k) {
  struct page *p = uvm_backing_state(v, k);
  struct node *n = node_of(s, v, k);
  if (p->slot && p->queue == SMALL) uvm__ghost_add(&n->ghosts, uvm__ghost_key(v, k));
  while (n->ghosts.chain.held > n->ghosts_max) uvm__ghost_remove(&n->ghosts, uvm__chain_oldest(&n->ghosts.chain));
  leave(s, v, k);
}

static void on_event(void *state, const uvm_view *v, const struct uvm_told *e) {
  struct state *s = state;
  if (e->kind == UVM_T_FREE)
    for (int i = 0; i < UVM__NODES * QUEUES; i++) uvm__freed(s, v, e->range, &s->node[i / QUEUES].queue[i % QUEUES], leave);
  if (e->kind == UVM_T_EVICTED && e->backing) evicted(s, v, e->backing);
  if (e->kind == UVM_T_SERVICED && e->backing) arrive(s, v, e->backing);
}

static void use(void *state, const uvm_view *v, uvm_backing_id k, uint64_t count) {
  struct page *p = uvm_backing_state(v, k);
  (void)state;
  p->hits = count < (uint64_t)(HITS_MAX - p->hits) ? (uint8_t)(p->hits + count) : HITS_MAX;
}
static void on_access(void *state, const uvm_view *v, const struct uvm_run *r) { uvm__hits(state, v, r, use); }

/* The oldest that must leave the queue; false: it has none that may. */
static bool take_from(struct node *n, int queue, struct uvm__answer *a) {
  struct uvm__chain *c = &n->queue[queue];
  for (uint32_t slot = uvm__chain_oldest(c), next; slot; slot = next) {
    uvm_backing_id k = c->v[slot].thing;
    next = uvm__chain_newer(c, slot);
    struct page *p = uvm_backing(a->view, k) ? uvm_backing_state(a->view, k) : NULL;
    if (!p) {
      uvm__chain_remove(c, slot);
    } else if (p->hits < (queue == SMALL ? HITS_TO_MAIN : 1) || !uvm__may_leave(a, k)) {
      if (uvm__take(a, k)) return true;
    } else if (queue == SMALL) {
      uvm__chain_remove(c, slot);
      *p = (struct page){uvm__chain_add(&n->queue[MAIN], k), MAIN, 0};
    } else {
      p->hits--;
      uvm__chain_renew(c, slot);
      if (!next) next = slot;
    }
  }
  return false;
}

/* Asked when memory is full, so what is in it is what fits. */
static size_t victims(void *state, const uvm_view *v, uvm_node node, uint64_t bytes, uvm_block_id incoming, const uvm_mask *pages,
                      uvm_backing_id *out, size_t max) {
  struct node *n = &((struct state *)state)->node[node];
  struct uvm__answer a = {v, node, bytes, incoming, out, max, 0};
  uint32_t fit = n->queue[SMALL].held + n->queue[MAIN].held;
  (void)pages;
  n->ghosts_max = fit - fit / 10;
  uvm__take_unused(&a);
  while (uvm__wants(&a)) {
    int first = n->queue[MAIN].held > n->ghosts_max ? MAIN : SMALL;
    if (!take_from(n, first, &a) && !take_from(n, MAIN - first, &a)) break;
  }
  return a.n;
}

static void fini(void *state) {
  struct state *s = state;
  for (int i = 0; i < UVM__NODES * QUEUES; i++) uvm__chain_free(&s->node[i / QUEUES].queue[i % QUEUES]);
  for (int i = 0; i < UVM__NODES; i++) uvm__ghosts_free(&s->node[i].ghosts);
}

const struct uvm_policy uvm_policy_s3fifo = {
    .abi = UVM_POLICY_ABI,
    .needs = UVM_NEEDS_ACCESS,
    .name = "s3fifo",
    .help = "evict from a small queue what was not hit twice, else from the main one what was not hit",
    .state_size = sizeof(struct state),
    .backing_size = sizeof(struct page),
    .fini = fini,
    .on_event = on_event,
    .on_access = on_access,
    .victims = victims,
};
