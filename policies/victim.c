/* What the evictors share (victim.h). */
#include "victim.h"
#include <assert.h>

static bool holds(const uvm_view *v, uvm_backing_id k, uvm_block_id incoming) {
  const struct uvm_backing_info *b = uvm_backing(v, k);
  if (b->block) return b->block == incoming;
  const struct uvm_block_info *in = uvm_block(v, incoming); /* several blocks share it */
  for (int p = in->first; p < in->first + in->pages; p++)
    if (uvm_backing_of(v, incoming, b->node, p) == k) return true;
  return false;
}

bool uvm__may_leave(const struct uvm__answer *a, uvm_backing_id k) {
  for (size_t i = 0; i < a->n; i++)
    if (a->out[i] == k) return false;
  return !uvm_backing(a->view, k)->busy && !(a->incoming && holds(a->view, k, a->incoming));
}

bool uvm__take(struct uvm__answer *a, uvm_backing_id k) {
  if (!uvm__may_leave(a, k)) return false;
  uint64_t bytes = uvm_backing(a->view, k)->bytes;
  a->bytes -= bytes < a->bytes ? bytes : a->bytes;
  a->out[a->n++] = k;
  return true;
}

void uvm__take_unused(struct uvm__answer *a) {
  for (uvm_backing_id k = uvm_oldest(a->view, a->node, UVM_L_UNUSED); k && uvm__wants(a); k = uvm_newer(a->view, k)) uvm__take(a, k);
}

/* The hits' pages may lie on several nodes, and on several backings of each. */
void uvm__hits(void *state, const uvm_view *v, const struct uvm_run *r, uvm__use use) {
  for (uvm_node n = 0; n < uvm_topology(v)->nnodes; n++) {
    const uvm_mask *here = uvm_resident(v, r->block, n);
    uvm_backing_id last = 0;
    for (int p = -1; (p = uvm_mask_next(r->pages, p + 1)) >= 0;) {
      uvm_backing_id k = uvm_mask_test(here, p) ? uvm_backing_of(v, r->block, n, p) : 0;
      if (k && k != last) use(state, v, k, r->count);
      if (k) last = k;
    }
  }
}

void uvm__freed(void *state, const uvm_view *v, uvm_range_id r, const struct uvm__chain *c, uvm__leave leave) {
  for (uint32_t slot = uvm__chain_oldest(c), newer; slot; slot = newer) {
    uvm_backing_id k = c->v[slot].thing;
    const struct uvm_backing_info *b = uvm_backing(v, k);
    newer = uvm__chain_newer(c, slot);
    if (b && b->block && uvm_block(v, b->block)->range == r) leave(state, v, k);
  }
}

/* Room for one more: by dropping the dead when half are dead, else by growing, so that each add costs O(1) on average. */
static void make_room(struct uvm__pool_node *p, const uvm_view *v) {
  size_t live = 0;
  for (size_t i = p->head; i < p->n; i++)
    if (uvm_backing(v, p->v[i])) p->v[live++] = p->v[i];
  p->head = 0;
  p->n = live;
  if (live < p->cap / 2) return;
  size_t cap = p->cap ? 2 * p->cap : 64;
  p->v = uvm_mem_resize(p->v, p->cap * sizeof *p->v, cap * sizeof *p->v);
  p->cap = cap;
}

void uvm__pool_told(struct uvm__pool *p, const uvm_view *v, const struct uvm_told *e) {
  if (e->kind != UVM_T_SERVICED || !e->backing) return;
  bool *known = uvm_backing_state(v, e->backing);
  if (*known) return;
  uvm_node node = uvm_backing(v, e->backing)->node;
  assert(node < UVM__NODES);
  struct uvm__pool_node *n = &p->node[node];
  if (n->n == n->cap) make_room(n, v);
  n->v[n->n++] = e->backing;
  *known = true;
}

void uvm__pool_free(struct uvm__pool *p) {
  for (int i = 0; i < UVM__NODES; i++) uvm_mem_free(p->node[i].v);
}

/* -- what several keep -- */

void uvm__mark(void *state, const uvm_view *v, uvm_backing_id k, uint64_t count) {
  (void)state, (void)count;
  ((struct uvm__marked *)uvm_backing_state(v, k))->used = true;
}

void uvm__chains_free(struct uvm__chains *c) {
  for (int i = 0; i < UVM__NODES; i++) uvm__chain_free(&c->node[i]);
}
