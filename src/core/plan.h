/* A plan: ordered steps that change one block (an eviction: the blocks of one backing). Drivers make plans,
 * uvm_plan_check refuses one that would break an invariant, the engine makes it true and fills in done, begin and end, and
 * uvm_plan_commit applies what was done. Rule of order: take away (UNMAP) before moving before giving (MAP).
 *
 *   POPULATE   pages resident nowhere become resident, zeroed, on dst; the backing exists
 *   MIGRATE    a run of pages resident on src (and nowhere else) moves to dst: one transfer
 *   DUPLICATE  a run resident on src becomes resident on dst too: one transfer
 *   COLLAPSE   the copies on src are dropped; the pages stay resident elsewhere
 *   EVICT      as MIGRATE, because the backing on src is wanted
 *   UNMAP      proc keeps at most `access` (UVM_A_PREFETCH: nothing). cause THRASHING, FAULT ...: why
 *   MAP        proc may access at least up to `access` */
#ifndef UVM_PLAN_H
#define UVM_PLAN_H
#include "core/space.h"

enum uvm_step_kind { UVM_S_POPULATE, UVM_S_MIGRATE, UVM_S_DUPLICATE, UVM_S_COLLAPSE, UVM_S_EVICT, UVM_S_UNMAP, UVM_S_MAP };
/* What the plan is for: the engine prices it by this. */
enum uvm_context { UVM_X_GPU_FAULT, UVM_X_CPU_FAULT, UVM_X_PREFETCH, UVM_X_EVICT, UVM_X_ADVISE, UVM_X_UNPIN, UVM_X_COUNTER, UVM_X_COPY };
struct uvm_step {
  uint8_t kind, cause, access, why;             /* enum uvm_step_kind, uvm_cause, uvm_access; the rule that decided */
  uvm_proc proc;                                /* MAP, UNMAP: whose; else who asked */
  uvm_node src, dst;
  bool revoked;                                 /* UNMAP: a permission taken from a page that did not move: told as REVOKED */
  struct uvm_block *block;
  uvm_mask pages, done;
  uvm_ns pushed, begin, end;                    /* when the driver handed it to the hardware, which begins and ends */
  uvm_ns wait;                                  /* a transfer's, for links that others held, before its begin or after */
};
struct uvm_plan {
  uint8_t context;                              /* enum uvm_context */
  uvm_proc proc;                                /* who asked */
  struct uvm_block *block;                      /* of the service; of an eviction the first */
  bool behind;                                  /* PREFETCH: the driver's own work hides behind the copies of the call's block before */
  bool writes;                                  /* some of the faults served want to write */
  uint32_t faults;                              /* distinct faulted pages served */
  uvm_backing_id backing;                       /* EVICT: the one leaving */
  UVM_VEC(struct uvm_step) steps;
  uvm_ns begin, end;
};

void uvm_plan_clear(struct uvm_plan *p);        /* keeps the memory */
void uvm_plan_release(struct uvm_plan *p);
/* Appends a step with these fields; the rest is zero. Steps without pages are not added. The mask form of MIGRATE,
 * DUPLICATE and EVICT is split into runs by uvm_plan_transfer. */
struct uvm_step *uvm_plan_add(struct uvm_plan *p, enum uvm_step_kind kind, struct uvm_block *b, uvm_proc proc, const uvm_mask *pages);
/* Runs in ascending address order, cut where a page's membership of `prefetched` changes: those have cause PREFETCH, the
 * others `cause`. why: one rule a page (512 entries), or NULL for 0. */
void uvm_plan_transfer(struct uvm_plan *p, enum uvm_step_kind kind, struct uvm_block *b, uvm_proc proc, uvm_node src, uvm_node dst,
                       const uvm_mask *pages, const uvm_mask *prefetched, enum uvm_cause cause, const uint8_t *why);

/* 0, or UVM_EENV naming the step and the invariant it would break. A dry run on a copy of the block's masks. */
int uvm_plan_check(const struct uvm_space *s, const struct uvm_plan *p, struct uvm_error *e);
/* hold: marks the blocks busy until then, or until a better known time. begin: applies the UNMAP steps of a held plan. */
void uvm_plan_hold(struct uvm_plan *p, uvm_ns until);
void uvm_plan_begin(struct uvm_space *s, struct uvm_plan *p);
/* The end: applies the done pages of every other step and clears busy. */
void uvm_plan_commit(struct uvm_space *s, struct uvm_plan *p, uvm_ns now);
#endif
