/* Evicts backings in the order in which they were allocated, whatever happened to them since. */
#include "victim.h"

static size_t victims(void *state, const uvm_view *v, uvm_node node, uint64_t bytes, uvm_block_id incoming, const uvm_mask *pages,
                      uvm_backing_id *out, size_t max) {
  struct uvm__pool_node *p = &((struct uvm__pool *)state)->node[node];
  struct uvm__answer a = {v, node, bytes, incoming, out, max, 0};
  (void)pages;
  while (p->head < p->n && !uvm_backing(v, p->v[p->head])) p->head++;
  for (size_t i = p->head; i < p->n && uvm__wants(&a); i++)
    if (uvm_backing(v, p->v[i])) uvm__take(&a, p->v[i]);
  return a.n;
}

static void on_event(void *state, const uvm_view *v, const struct uvm_told *e) { uvm__pool_told(state, v, e); }
static void fini(void *state) { uvm__pool_free(state); }

const struct uvm_policy uvm_policy_fifo = {
    .abi = UVM_POLICY_ABI,
    .name = "fifo",
    .help = "evict what was allocated first",
    .state_size = sizeof(struct uvm__pool),
    .backing_size = sizeof(bool),
    .fini = fini,
    .on_event = on_event,
    .victims = victims,
};
