/* What the evictors share (victim.h). */
#include "victim.h"
#include <assert.h>

bool uvm__may_leave(const uvm_view *v, uvm_backing_id k, uvm_block_id incoming) {
  const struct uvm_backing_info *b = uvm_backing(v, k);
  if (b->busy) return false;
  if (!incoming) return true;
  if (b->block) return b->block != incoming;
  const struct uvm_block_info *in = uvm_block(v, incoming);     /* several blocks share it */
  for (int p = in->first; p < in->first + in->pages; p++)
    if (uvm_backing_of(v, incoming, b->node, p) == k) return false;
  return true;
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
  assert(node < UVM__POOL_NODES);
  struct uvm__pool_node *n = &p->node[node];
  if (n->n == n->cap) make_room(n, v);
  n->v[n->n++] = e->backing;
  *known = true;
}

void uvm__pool_free(struct uvm__pool *p) {
  for (int i = 0; i < UVM__POOL_NODES; i++) uvm_mem_free(p->node[i].v);
}
