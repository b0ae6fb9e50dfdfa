/* The nvidia driver's private parts, in reading order:
 *
 *   nvidia.c         options, state, the operations table
 *   bottom_half.c    a GPU's fault loop: fetch, serve, replay          batch.c      one batch: fetch, merge, sort
 *   cpu_fault.c      one CPU fault                                     counters.c   access-counter notifications
 *   migrate.c        explicit prefetch, and the far side of a memcpy   advice.c     SetReadMostly and the like
 *   walk.c           how such calls go from block to block
 *   block_service.c  what all of these end in: decide, find room, plan, run, settle, for one block
 *   admit.c          one page: hint, residency, the pages that come along
 *   residency.c      where a page goes: the ordered rules              permission.c who may do what with it afterwards
 *   memory.c         physical chunks and their lists                   evict.c      taking one away
 *   pin.c            pins and the worker that ends them                throttle.c   processors held off a page
 *
 * Everything that takes time is a task. A task never keeps a block across a wait: advice may split it meanwhile, so blocks
 * are named by (allocation, offset) and looked up again. */
#ifndef UVM_NVIDIA_H
#define UVM_NVIDIA_H
#include "core/driver.h"
#include "core/host.h"

#define NV_BIG_PAGES 16    /* 4 KiB pages in a 64 KiB page */
#define NV_REGION_PAGES 16 /* and in an access counter's sub-region */

/* Why a page went where it went. 1 to 11 are the residency rules, in order. */
enum nv_why {
  NV_WHY_MAPPED, /* nothing to do: the mapping is there */
  NV_WHY_SYSMEM,
  NV_WHY_DUPLICATION,
  NV_WHY_AT_PREFERRED,
  NV_WHY_CPU_PAGEABLE,
  NV_WHY_PINNED,
  NV_WHY_FIRST_TOUCH,
  NV_WHY_ACCESSED_BY,
  NV_WHY_ATOMICS,
  NV_WHY_TO_PREFERRED,
  NV_WHY_OTHER_PROCESS, /* holds rule 10's number: every CPU fault here is the program's own */
  NV_WHY_REQUESTER,
  NV_WHY_THROTTLED,
  NV_WHY_PREFETCHED,
  NV_WHY_EXPLICIT,
  NV_WHY_EVICTED,
  NV_WHY_ADVICE,
  NV_WHY_UNPINNED,
  NV_WHY_COPIED,
};
enum nv_replay_policy { NV_REPLAY_BLOCK, NV_REPLAY_BATCH, NV_REPLAY_BATCH_FLUSH, NV_REPLAY_ONCE };
#define NV_AS_SHIPPED 2 /* of a quirk: what this version did */

/* The module parameters, by their names. */
struct nv_options {
  uint32_t fault_batch_count, fault_replay_policy, replay_update_put_ratio, max_batches_per_service, max_throttle_per_service;
  uint32_t access_counter_threshold, counters_inert;
  bool fault_coalesce, map_remote_on_native_atomics_fault, fault_force_sysmem, map_remote_on_eviction, oversubscription, access_counters;
};

/* -- tasks -- */

struct uvm_driver_task {
  void (*step)(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now);
  void (*release)(struct uvm_driver_task *t); /* of those on the list: frees it */
  struct uvm_driver_task *prev, *next;
};
/* Has `step` called at the time given (or right after this call, when that has come). */
void uvm__nv_sleep(struct uvm_core *c, struct uvm_driver_task *t, void (*step)(struct uvm_core *, struct uvm_driver_task *, uvm_ns),
                   uvm_ns at);
/* Tasks that end: an interrupted run frees the ones still on the list. */
void uvm__nv_task_enter(struct uvm_core *c, struct uvm_driver_task *t, void (*release)(struct uvm_driver_task *));
void uvm__nv_task_leave(struct uvm_core *c, struct uvm_driver_task *t);

/* -- the service of one block -- */

struct nv_decision {
  uint32_t nodes;                /* destinations, a bit each */
  uvm_mask to[UVM_MAX_NODES];    /* pages that go to each, or stay there */
  uvm_mask want[UVM_MAP_LEVELS]; /* the same pages by the level that the requester needs; disjoint */
  uvm_mask faulted, prefetched, duplicate, pinned;
  uint8_t why[UVM_BLOCK_PAGES];
  uint32_t procs[UVM_BLOCK_PAGES]; /* of pinned pages: whom to map them for, a bit a processor */
};
enum nv_mapping {
  NV_MAP_ACCESS,   /* for the requester, as it accessed; then for accessed-by processors and pins */
  NV_MAP_EXPLICIT, /* for the destination's processor, of an explicit migration */
  NV_MAP_NOTHING,
};
enum nv_phase { NV_START, NV_EVICTING, NV_READY, NV_RUNNING };
struct nv_service {
  /* set by the owner */
  struct uvm_driver_task *task; /* woken (its step called) when the service can go on */
  struct uvm_block *(*locate)(struct uvm_core *c, struct nv_service *v);
  bool (*decide)(struct uvm_core *c, struct nv_service *v, uvm_ns now); /* fills `d`; false: nothing to do here */
  void (*extend)(struct uvm_core *c, struct nv_service *v);             /* adds steps at the plan's end, or NULL */
  uvm_proc proc, asker;                                                 /* whom the pages are mapped for (UVM_NONE: nobody); who asked */
  uint8_t context, cause, mapping;                                      /* enum uvm_context, uvm_cause, nv_mapping */
  bool remap;                                                           /* faulted pages are mapped again even when they are mapped */
  /* its own */
  struct uvm_block *block; /* valid from locate until the next wait, and while RUNNING; NULL: room is wanted for device memory */
  enum nv_phase phase;
  bool again; /* decided before: an eviction came between. Counted and told then */
  bool idle;   /* the last one ended without a plan */
  bool behind; /* its plans follow those of a block before, of one call */
  struct nv_decision d;
  struct uvm_plan plan;
};
/* Goes on with the service. True: done, and `v` is ready for the next block. False: the task will be woken. */
bool uvm__nv_service_step(struct uvm_core *c, struct nv_service *v, uvm_ns now);
void uvm__nv_service_release(struct nv_service *v);
/* Page stays on or goes to n. */
void uvm__nv_decide_page(struct nv_service *v, int page, uvm_node n, enum uvm_level want, uint8_t why);
void uvm__nv_decide_pages(struct nv_service *v, const uvm_mask *pages, uvm_node n, enum uvm_level want, uint8_t why);

/* One page that a processor asks for: hint, residency, and the decision noted in v->d. */
enum nv_outcome { NV_SERVED, NV_ALREADY_MAPPED, NV_HELD, NV_REFUSED };
struct nv_verdict {
  enum nv_outcome outcome;
  uint8_t why, hint;
  uvm_ns until;
  const char *rule;
};
struct nv_verdict uvm__nv_admit(struct uvm_core *c, struct nv_service *v, const struct uvm_fault *f, uvm_ns now);
/* Asks once what else comes along, when all pages served have one destination. False: refused. */
bool uvm__nv_prefetch(struct uvm_core *c, struct nv_service *v, uvm_ns now);

/* -- rules -- */

struct nv_place {
  uvm_node node;
  bool duplicate;
  uint8_t why;
};
struct nv_place uvm__nv_residency(const struct uvm_core *c, const struct uvm_block *b, const struct uvm_fault *f,
                                  const struct uvm_thrash *hint);
/* Rule 2's condition: a read of the page makes a copy. */
bool uvm__nv_can_duplicate(const struct uvm_core *c, const struct uvm_block *b, int page, uint8_t hint);
/* Of `nodes` (not 0) the one closest to p. */
uvm_node uvm__nv_closest(const struct uvm_space *s, uvm_proc p, uint32_t nodes);
static inline bool uvm__nv_atomics(const struct uvm_space *s, uvm_proc p, uvm_node n) { return s->procs[p].native_atomics >> n & 1; }
/* The copy that stays when duplication ends: the preferred location's, else the CPU's, else the first. */
uvm_node uvm__nv_keeper(const struct uvm_space *s, const struct uvm_block *b, int page);

/* Adds who may do what with the pages to the plan, behind their moves: revocations, then maps. */
void uvm__nv_plan_permissions(struct uvm_core *c, struct nv_service *v);
/* q keeps at most `keep` of the service's pages; the step, without a reason yet, or NULL when it has no more. */
struct uvm_step *uvm__nv_plan_unmap(struct uvm_core *c, struct nv_service *v, uvm_proc q, uvm_mask pages, enum uvm_access keep);
/* Maps q to the pages on n: read-only the contested ones, as far as it goes the others. */
void uvm__nv_plan_highest(struct uvm_core *c, struct uvm_plan *plan, struct uvm_block *b, uvm_proc q, uvm_node n, uvm_mask pages,
                          const uvm_mask *contested, enum uvm_cause cause, uint8_t why);
/* Pages of the block, on n, that have copies or that somebody does atomics on which are not native there. */
uvm_mask uvm__nv_contested(const struct uvm_core *c, const struct uvm_block *b, uvm_node n);
/* May q be mapped to pages on n because of advice? Not the preferred location's processors while the data is elsewhere. */
bool uvm__nv_advised(const struct uvm_space *s, const struct uvm_block *b, uvm_proc q, uvm_node n);

/* -- memory -- */

enum nv_room { NV_ROOM, NV_ROOM_WAIT, NV_ROOM_NEVER };
/* Chunks for everything decided. WAIT: an eviction was begun, or another is waited for; NEVER: the run has failed. */
enum nv_room uvm__nv_find_room(struct uvm_core *c, struct nv_service *v, uvm_ns now);
/* To the tail of USED: least recently serviced is what the lists mean. */
void uvm__nv_chunk_serviced(struct uvm_core *c, uvm_backing_id k, const struct uvm_block *b, uvm_proc p, uvm_ns now);
/* After a plan: chunks without a resident page go to UNUSED, those serviced to the tail of USED. */
void uvm__nv_settle(struct uvm_core *c, struct uvm_block *b, uint32_t serviced, uvm_proc p, uvm_ns now);
enum nv_room uvm__nv_evict_begin(struct uvm_core *c, struct nv_service *v, uvm_node n, const uvm_mask *incoming, uvm_ns now);
void uvm__nv_evict_end(struct uvm_core *c, struct nv_service *v, uvm_ns now);

/* -- pins and throttles -- */

struct nv_pin {
  uvm_ns at;
  struct uvm_alloc *alloc;
  uint64_t offset;
};
struct nv_hold {
  struct uvm_alloc *alloc;
  uint64_t offset;
  uvm_ns since, until;
  uvm_proc proc;
};
struct nv_block { /* a block's driver_state, made when needed */
  uvm_mask pinned, held;
  uvm_ns spurious_at; /* of the CPU fault that found nothing to do; 0 none */
  uint32_t spurious_thread;
  uint16_t spurious_page;
};
struct nv_block *uvm__nv_block(struct uvm_block *b);
/* A pin until that time; an earlier pin of the page keeps its deadline. */
void uvm__nv_pin(struct uvm_core *c, struct uvm_block *b, int page, uvm_ns until);
void uvm__nv_pins_drop(struct uvm_core *c, struct uvm_block *b, const uvm_mask *pages);
void uvm__nv_pins_forget(struct uvm_core *c, const struct uvm_alloc *a);
void uvm__nv_pins_init(struct uvm_core *c);
/* p is held off the page until then: told as one event when it ends. UVM_NONE: everybody held is let go. */
void uvm__nv_hold(struct uvm_core *c, struct uvm_block *b, int page, uvm_proc p, uvm_ns until, uvm_ns now);
void uvm__nv_let_go(struct uvm_core *c, struct uvm_block *b, int page, uvm_proc p, uvm_ns now);
void uvm__nv_holds_forget(struct uvm_core *c, const struct uvm_alloc *a, uvm_ns now);
void uvm__nv_tell_throttle(struct uvm_core *c, const struct nv_hold *h, uvm_ns now);

/* -- a GPU's faults -- */

struct nv_entry { /* raw faults merged into one; after the sort, one a page */
  struct uvm_alloc *alloc;
  uint64_t offset;
  uvm_ns time; /* arrival of the earliest */
  int64_t line;
  uint32_t order, merged;      /* arrival order; raw entries */
  uint8_t access, access_mask; /* most intrusive; every one seen */
};
struct nv_utlb {
  uint64_t batch;
  size_t last;
}; /* its last unmerged fault, when `batch` is the current one */
struct nv_batch {
  UVM_VEC(struct nv_entry) entries;
  UVM_VEC(struct nv_utlb) utlbs;
  uint64_t number, get, put; /* get and put: of the ring, as the driver last saw them */
  uint32_t raw;              /* entries taken */
};
struct nv_gpu {
  struct uvm_driver_task task;
  struct nv_service service;
  struct nv_batch batch;
  uvm_proc proc;
  bool running, replayed, throttled;   /* throttled: some fault of this batch was */
  uint32_t batches, throttled_batches; /* of this service loop */
  size_t next, end, told;              /* entries before: served; of the block in service; in a batch event already */
  uvm_ns since;                        /* when the work began that the next batch event tells of */
};
/* Takes and sorts a batch. False: the ring is empty. */
bool uvm__nv_fetch(struct uvm_core *c, struct nv_batch *b, uvm_proc gpu, uvm_ns now);
/* Drops what the ring holds up to PUT, as read now if many of the batch were duplicates, else as read at the fetch. */
void uvm__nv_flush(struct uvm_core *c, struct nv_batch *b, uvm_proc gpu, uvm_ns now);

struct nv_counters {
  struct uvm_driver_task task;
  struct nv_service service;
  uvm_proc proc;
  bool running;
  size_t n, next, end;
  struct uvm_counter_note *notes;
  uint32_t *thresholds; /* for re-arming, one a note */
};

/* -- calls -- */

/* A call on part of an allocation: one service a block, in address order, in one pass or several. */
struct nv_walk {
  struct uvm_driver_task task;
  struct nv_service service; /* the owner fills in what it wants of each block */
  struct uvm_call call;      /* offset and bytes in whole pages */
  uint64_t at;               /* the next page to work on */
  uvm_ns since;
  uint8_t pass, passes; /* of several only the first is charged for blocks with nothing to do */
  bool used_only;       /* blocks never touched are passed over */
  bool charge_idle;
  void (*done)(struct uvm_core *c, struct nv_walk *w, uvm_ns now); /* before the call completes, or NULL */
};
struct nv_walk *uvm__nv_walk_new(struct uvm_core *c, const struct uvm_call *call, enum uvm_context context, enum uvm_cause cause,
                                 uvm_ns now);
void uvm__nv_walk_start(struct uvm_core *c, struct nv_walk *w, uvm_ns now);
static inline struct nv_walk *uvm__nv_walk_of(struct nv_service *v) { return (struct nv_walk *)v->task; }
/* The pages of the service's block that the call covers. */
uvm_mask uvm__nv_walk_pages(const struct nv_service *v);

/* -- state and operations -- */

struct nv_state {
  struct nv_options options;
  struct nv_gpu gpu[UVM_MAX_PROCS];
  struct nv_counters counters[UVM_MAX_PROCS];
  struct uvm_driver_task *tasks;
  UVM_VEC(uvm_backing_id) partial[UVM_MAX_NODES]; /* root chunks that small blocks share and that may have room */
  uvm_ns evicting_until[UVM_MAX_NODES];
  UVM_VEC(struct nv_pin) pins; /* by deadline */
  UVM_VEC(struct nv_hold) holds;
  struct uvm_driver_task unpin;
  struct nv_service unpin_service;
  bool unpin_armed;
};
static inline struct nv_state *uvm__nv_state(const struct uvm_core *c) { return c->state; }
/* Offset in the allocation where the block ends. */
uint64_t uvm__nv_block_end(const struct uvm_block *b);

void uvm__nv_interrupt(struct uvm_core *c, uvm_proc gpu, uvm_ns now);
void uvm__nv_notified(struct uvm_core *c, uvm_proc gpu, uvm_ns now);
void uvm__nv_cpu_fault(struct uvm_core *c, const struct uvm_cpu_fault *f, uvm_ns now);
void uvm__nv_migrate(struct uvm_core *c, const struct uvm_call *call, uvm_ns now);
void uvm__nv_copy(struct uvm_core *c, const struct uvm_call *call, bool write, uvm_ns now);
void uvm__nv_make_room(struct uvm_core *c, const struct uvm_call *call, uvm_ns now);
void uvm__nv_advise(struct uvm_core *c, const struct uvm_call *call, uvm_ns now);
#endif
