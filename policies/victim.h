/* What the evictors share: who may leave, and the backings of each node in the order in which they were allocated. */
#ifndef UVM_VICTIM_H
#define UVM_VICTIM_H
#include "uvmsim/policy.h"

/* False for a busy backing and for one that holds pages of the block in service: the core would refuse these. */
bool uvm__may_leave(const uvm_view *v, uvm_backing_id k, uvm_block_id incoming);

#define UVM__POOL_NODES 32                      /* the topology names nodes by the bits of a 32-bit word */
struct uvm__pool {
  struct uvm__pool_node { uvm_backing_id *v; size_t head, n, cap; } node[UVM__POOL_NODES];   /* dead ids stay in [head, n) until met */
};
/* A backing is known from the first time it is SERVICED, which is when it is allocated. The pool's owner has one bool a
 * backing (backing_size) for "known". */
void uvm__pool_told(struct uvm__pool *p, const uvm_view *v, const struct uvm_told *e);
void uvm__pool_free(struct uvm__pool *p);
#endif
