/* Evicts backings without a resident page first, then the one that was used least often, of equals the one whose last use
 * lies longest back. Its allocation is the first use, each hit another one. Uses are forgotten when a backing leaves. */
#include "victim.h"

struct key {
  uint64_t uses, last;
};
struct state {
  uint64_t now;
  struct heap {
    struct entry {
      struct key key;
      uvm_backing_id k;
    } * v;
    size_t n, cap;
  } node[UVM__NODES]; /* the least first */
};
/* A backing's own is its key. Keys only grow, so one in the heap may be too small and is looked at again once it is the least. */

static bool less(struct key a, struct key b) { return a.uses != b.uses ? a.uses < b.uses : a.last < b.last; }

static void sink(struct heap *h, size_t i) {
  struct entry e = h->v[i];
  for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
    if (child + 1 < h->n && less(h->v[child + 1].key, h->v[child].key)) child++;
    if (!less(h->v[child].key, e.key)) break;
    h->v[i] = h->v[child];
  }
  h->v[i] = e;
}

static void push(struct heap *h, struct entry e) {
  size_t i = h->n++;
  for (; i && less(e.key, h->v[(i - 1) / 2].key); i = (i - 1) / 2) h->v[i] = h->v[(i - 1) / 2];
  h->v[i] = e;
}

/* By dropping the dead when half are dead, else by growing. */
static void make_room(struct heap *h, const uvm_view *v) {
  size_t live = 0;
  for (size_t i = 0; i < h->n; i++)
    if (uvm_backing(v, h->v[i].k)) h->v[live++] = h->v[i];
  h->n = live;
  for (size_t i = live / 2; i--;) sink(h, i);
  if (live < h->cap / 2) return;
  size_t cap = h->cap ? 2 * h->cap : 64;
  h->v = uvm_mem_resize(h->v, h->cap * sizeof *h->v, cap * sizeof *h->v);
  h->cap = cap;
}

static void on_event(void *state, const uvm_view *v, const struct uvm_told *e) {
  struct state *s = state;
  if (e->kind != UVM_T_SERVICED || !e->backing) return;
  struct key *key = uvm_backing_state(v, e->backing);
  if (key->uses) return;
  struct heap *h = &s->node[uvm_backing(v, e->backing)->node];
  if (h->n == h->cap) make_room(h, v);
  *key = (struct key){1, ++s->now};
  push(h, (struct entry){*key, e->backing});
}

static void use(void *state, const uvm_view *v, uvm_backing_id k, uint64_t count) {
  struct key *key = uvm_backing_state(v, k);
  if (key->uses) *key = (struct key){key->uses + count, ++((struct state *)state)->now};
}
static void on_access(void *state, const uvm_view *v, const struct uvm_run *r) { uvm__hits(state, v, r, use); }

/* Those that were looked at wait behind the heap until the answer is full. */
static size_t victims(void *state, const uvm_view *v, uvm_node node, uint64_t bytes, uvm_block_id incoming, const uvm_mask *pages,
                      uvm_backing_id *out, size_t max) {
  struct heap *h = &((struct state *)state)->node[node];
  struct uvm__answer a = {v, node, bytes, incoming, out, max, 0};
  size_t all = h->n;
  (void)pages;
  uvm__take_unused(&a);
  while (h->n && uvm__wants(&a)) {
    struct entry top = h->v[0];
    const struct key *now = uvm_backing(v, top.k) ? uvm_backing_state(v, top.k) : NULL;
    if (now && less(top.key, *now)) {
      h->v[0].key = *now;
    } else {
      h->v[0] = h->v[--h->n];
      if (now)
        h->v[h->n] = top, uvm__take(&a, top.k);
      else
        h->v[h->n] = h->v[--all];
    }
    if (h->n) sink(h, 0);
  }
  while (h->n < all) push(h, h->v[h->n]);
  return a.n;
}

static void fini(void *state) {
  for (int i = 0; i < UVM__NODES; i++) uvm_mem_free(((struct state *)state)->node[i].v);
}

const struct uvm_policy uvm_policy_lfu = {
    .abi = UVM_POLICY_ABI,
    .needs = UVM_NEEDS_ACCESS,
    .name = "lfu",
    .help = "evict what was used least often",
    .state_size = sizeof(struct state),
    .backing_size = sizeof(struct key),
    .fini = fini,
    .on_event = on_event,
    .on_access = on_access,
    .victims = victims,
};
