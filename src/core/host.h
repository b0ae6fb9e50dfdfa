/* The policies' host: an ordered list of parts, each a uvm_policy with its own state. All are told everything; the first
 * with a non-NULL hook answers a question. Answers are checked here, and a bad one ends the run naming policy and hook.
 * The view that policies read (policy.h's accessors) is implemented in host.c. */
#ifndef UVM_HOST_H
#define UVM_HOST_H
#include "core/driver.h"

/* parts: asked in this order; ends where n says. The host makes state, sets defaults; options come next, then start. It hooks
 * itself and the driver's block_fini to the space, so the space is destroyed before the host and before the driver's state. */
struct uvm_host *uvm_host_create(struct uvm_core *c, const struct uvm_policy *const *parts, size_t n);
void uvm_host_destroy(struct uvm_host *h);
/* True when some part is called `owner` (error: unknown key or bad value, e filled, *rc). */
bool uvm_host_option(struct uvm_host *h, const char *owner, const char *key, const char *value, int *rc, struct uvm_error *e);
int uvm_host_start(struct uvm_host *h, struct uvm_error *e);        /* calls init in order; refuses what no session can do for a part */
uint32_t uvm_host_needs(const struct uvm_host *h);

void uvm_tell(struct uvm_host *h, const struct uvm_told *e, uvm_ns now);
void uvm_tell_access(struct uvm_host *h, const struct uvm_run *r, uvm_ns now);   /* only where a part needs ACCESS */

/* Questions. */
bool uvm_host_places(const struct uvm_host *h);   /* some part answers `place`; else the driver's own rules do */
const char *uvm_host_why(const struct uvm_host *h, uint8_t why);    /* name of the placing part's why number; NULL: it has none */
void uvm_ask_thrash(struct uvm_host *h, const struct uvm_fault *f, uvm_ns now, struct uvm_thrash *out);  /* default NONE */
const uvm_mask *uvm_ask_thrashing(struct uvm_host *h, uvm_block_id b, uvm_ns now);                       /* or NULL */
/* Only when places; < 0: refused. */
int uvm_ask_place(struct uvm_host *h, const struct uvm_fault *f, const struct uvm_thrash *hint, uvm_ns now, struct uvm_place *out);
/* `more`: pages wanted beside the faulted ones, those already faulted or outside the block removed or refused. */
int uvm_ask_prefetch(struct uvm_host *h, uvm_block_id b, uvm_node dst, const uvm_mask *faulted, uvm_ns now, uvm_mask *more);
/* Best victim first, checked: on node n, not busy, not of block `incoming`. 0: none. Default: UNUSED then USED, oldest first. */
int uvm_ask_victims(struct uvm_host *h, uvm_node n, uint64_t bytes, uvm_block_id incoming, const uvm_mask *pages, uvm_ns now,
                    uvm_backing_id *out, size_t max, size_t *count);
uint32_t uvm_ask_counter(struct uvm_host *h, const struct uvm_fault *f, const uvm_mask *touched, uint64_t count, uvm_ns now,
                         uvm_mask *migrate, bool *asked);
#endif
