/* What the evictors share: how an answer is put together, whom a hit touched, and the backings of each node in the order in
 * which they were allocated. */
#ifndef UVM_VICTIM_H
#define UVM_VICTIM_H
#include "chain.h"
#include "uvmsim/policy.h"

#define UVM__NODES 32                           /* the topology names nodes by the bits of a 32-bit word */

/* The answer to `victims` on the way. bytes: what is still to be found. */
struct uvm__answer { const uvm_view *view; uvm_node node; uint64_t bytes; uvm_block_id incoming; uvm_backing_id *out; size_t max, n; };
static inline bool uvm__wants(const struct uvm__answer *a) { return a->bytes && a->n < a->max; }
/* False for a busy backing and for one that holds pages of the block in service, which the core would refuse, and for one
 * that is in the answer. */
bool uvm__may_leave(const struct uvm__answer *a, uvm_backing_id k);
bool uvm__take(struct uvm__answer *a, uvm_backing_id k);         /* into the answer, if it may leave */
/* Backings without a resident page, which cost nothing. */
void uvm__take_unused(struct uvm__answer *a);

/* Calls `use` for each backing that the hits touched, with the count of all of them. */
typedef void (*uvm__use)(void *state, const uvm_view *v, uvm_backing_id k, uint64_t count);
void uvm__hits(void *state, const uvm_view *v, const struct uvm_run *r, uvm__use use);

/* Calls `leave`, which may take it out, for each backing of the chain whose range is to be freed: FREE is told before they
 * die. One that several blocks share is left to be met dead. */
typedef void (*uvm__leave)(void *state, const uvm_view *v, uvm_backing_id k);
void uvm__freed(void *state, const uvm_view *v, uvm_range_id r, const struct uvm__chain *c, uvm__leave leave);

/* What a backing's own state is where a hit sets a bit; slot: its place in a chain, 0 none. mark: the `use` that sets it. */
struct uvm__marked { uint32_t slot; bool used; };
void uvm__mark(void *state, const uvm_view *v, uvm_backing_id k, uint64_t count);

/* The state of an evictor that keeps one chain a node. Things: backings, dead ones until they are met. */
struct uvm__chains { struct uvm__chain node[UVM__NODES]; };
void uvm__chains_free(struct uvm__chains *c);

struct uvm__pool {
  struct uvm__pool_node { uvm_backing_id *v; size_t head, n, cap; } node[UVM__NODES];   /* dead ids stay in [head, n) until met */
};
/* A backing is known from the first time it is SERVICED, which is when it is allocated. The pool's owner has one bool a
 * backing (backing_size) for "known". */
void uvm__pool_told(struct uvm__pool *p, const uvm_view *v, const struct uvm_told *e);
void uvm__pool_free(struct uvm__pool *p);
#endif
