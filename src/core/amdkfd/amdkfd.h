/* Private to the amdkfd driver: AMD's shared virtual memory with XNACK on (GPU faults retry).
 *
 *   prange.c   ranges: how they are cut, found, split; where a fault's pages go
 *   move.c     moving part of a range between system memory and VRAM, buffer objects, eviction
 *   map.c      making a window accessible to GPUs
 *   fault.c    a GPU's retry faults       cpu.c  CPU faults and copies       call.c  prefetch and advice
 *   task.c     the lock, and plans one after another
 *   smi.c      the text of KFD's event stream
 *
 * Words. A *page* here is an absolute number (address / 4096) and [first..last] is inclusive, as in the driver's own
 * events. A *location* is 0 for system memory, else a GPU's processor number. A *prange* is the driver's unit of advice and
 * of VRAM: its buffer object (one backing) is as large as the prange, though a fault moves only a granule of it.
 *
 * One lock. KFD locks a range at a time; here one lock of the process serves all tasks in order of arrival. Ranges are up to
 * 1 GiB and an eviction locks those it empties, so the two differ only when GPUs fault in different ranges at one time. */
#ifndef UVM_AMDKFD_H
#define UVM_AMDKFD_H
#include "core/host.h"

#define KFD_UNDEFINED 0xffffffffu /* no location */
enum kfd_flag { KFD_HOST_ACCESS = 0x01, KFD_COHERENT = 0x02, KFD_GPU_READ_MOSTLY = 0x20 };
enum kfd_trigger { KFD_T_PREFETCH, KFD_T_GPU_FAULT, KFD_T_CPU_FAULT, KFD_T_EVICTION }; /* of a migration */
enum kfd_unmap { KFD_U_NOTIFIER, KFD_U_MIGRATE, KFD_U_FREED };                         /* of an unmap */

struct kfd_span { /* pages, inclusive */
  uint64_t first, last;
};
struct kfd_prange {
  struct uvm_alloc *alloc;
  struct kfd_span pages;
  uint8_t granularity;                  /* log2 of the pages that a fault moves */
  uint32_t preferred, prefetch, actual; /* locations; actual: the GPU whose VRAM holds some of its pages, else 0 */
  uint32_t flags;                       /* enum kfd_flag */
  uint32_t access, in_place;            /* bit a processor: may migrate to it; may map where it is (one excludes the other) */
  uint64_t vram_pages;
  bool mapped;           /* set by any mapping, cleared by an unmap of all of it */
  UVM_VEC(uvm_ns) quiet; /* faults before this are dropped: one time, or one a granule */
};
struct kfd_ranges { /* of one allocation, ascending */
  UVM_VEC(struct kfd_prange *) v;
};

/* -- prange.c. Those without a core are pure. -- */
uint64_t uvm__kfd_max_pages(uint64_t vram_bytes);              /* largest prange on a GPU with so much memory */
uint64_t uvm__kfd_piece_last(struct kfd_span s, uint64_t max); /* last page of the first piece of a new range */
struct kfd_span uvm__kfd_window(const struct kfd_prange *r, uint64_t page);
/* The range made for a fault on memory that nobody registered: vma, and the free gap between the registered neighbours. */
struct kfd_span uvm__kfd_unregistered(uint64_t page, struct kfd_span vma, struct kfd_span gap, uint8_t granularity);
bool uvm__kfd_same_hive(const struct uvm_space *s, uvm_proc a, uvm_proc b);
uint32_t uvm__kfd_location(const struct uvm_space *s, uvm_node n); /* 0 unless n is a discrete GPU's home */
struct kfd_place {
  uint32_t location;
  uint8_t why;
};
/* Where a fault's pages go; KFD_UNDEFINED: the GPU has no access. */
struct kfd_place uvm__kfd_restore_location(const struct uvm_space *s, const struct kfd_prange *r, uvm_proc gpu);
uint32_t uvm__kfd_prefetch_location(const struct uvm_space *s, const struct kfd_prange *r);
/* Cuts the allocation into ranges at its first use. */
void uvm__kfd_register(struct uvm_core *c, struct uvm_alloc *a);
/* NULL: none. */
struct kfd_prange *uvm__kfd_at_or_above(struct uvm_core *c, const struct uvm_alloc *a, uint64_t page);
struct kfd_prange *uvm__kfd_find(struct uvm_core *c, const struct uvm_alloc *a, uint64_t page); /* NULL: unregistered */
struct kfd_prange *uvm__kfd_get(struct uvm_core *c, struct uvm_alloc *a, uint64_t page);        /* creates it */
void uvm__kfd_split(struct uvm_core *c, struct uvm_alloc *a, struct kfd_span s);                /* s becomes whole ranges, all registered */
void uvm__kfd_forget(struct uvm_core *c, const struct uvm_alloc *a);
uvm_ns *uvm__kfd_quiet(struct kfd_prange *r, uint64_t page);
/* The pages at the beginning of a span that are in one block, which is made when needed. next: the first page behind them. */
struct kfd_part {
  struct uvm_block *block;
  uvm_mask pages;
  uint64_t next;
};
struct kfd_part uvm__kfd_part(struct uvm_space *s, struct uvm_alloc *a, struct kfd_span pages);

static inline uint64_t uvm__kfd_page(const struct uvm_alloc *a, uint64_t offset) { return (a->base + offset) / UVM_PAGE; }
static inline uint64_t uvm__kfd_offset(const struct uvm_alloc *a, uint64_t page) { return page * UVM_PAGE - a->base; }
static inline struct kfd_span uvm__kfd_all(const struct uvm_alloc *a) {
  return (struct kfd_span){a->base / UVM_PAGE, (a->base + a->bytes - 1) / UVM_PAGE};
}

/* -- smi.c -- */
enum kfd_smi_id {
  KFD_MIGRATE_START = 5,
  KFD_MIGRATE_END,
  KFD_PAGE_FAULT_START,
  KFD_PAGE_FAULT_END,
  KFD_QUEUE_EVICTION,
  KFD_QUEUE_RESTORE,
  KFD_UNMAP_FROM_GPU
};
#define KFD_SMI_MAX 96 /* bytes of a record */
struct kfd_smi {
  uint8_t id; /* enum kfd_smi_id; the fields that an id does not print are ignored */
  char mark;  /* PAGE_FAULT_START R W, PAGE_FAULT_END M U, QUEUE_RESTORE R or 0 */
  uvm_ns t;
  uint32_t pid;
  struct kfd_span pages; /* page faults print only the first */
  uint32_t from, to;     /* locations; those with one node print `to` */
  uint32_t prefetch, preferred;
  int trigger, error;
};
/* One line with its newline; returns its bytes. restore_nul: a QUEUE_RESTORE without mark prints a NUL, as shipped. */
size_t uvm_smi_format(const struct kfd_smi *e, bool restore_nul, char out[static KFD_SMI_MAX]);
/* Who reads the driver's event stream; NULL: nobody. `line` holds bytes, perhaps a NUL among them. */
typedef void kfd_smi_sink(void *ctx, const char *line, size_t bytes);
void uvm_smi_listen(struct uvm_core *c, kfd_smi_sink *sink, void *ctx);
void uvm__kfd_smi(struct uvm_core *c, struct kfd_smi e);
/* The lines for an unmap of s from r: one a GPU with access when r is mapped. Clears r->mapped when s is all of r. */
void uvm__kfd_smi_unmap(struct uvm_core *c, struct kfd_prange *r, struct kfd_span s, enum kfd_unmap trigger, uvm_ns now);

/* -- tasks. None keeps a block across a wait: advice may split it meanwhile. -- */
typedef void kfd_step(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now);
typedef void kfd_build(struct uvm_core *c, struct uvm_driver_task *t, struct uvm_block *b, const uvm_mask *pages);
struct kfd_fault {          /* raw faults on one page */
  struct uvm_raw_fault raw; /* the first */
  uint64_t page;
  uint32_t merged;             /* raw ones */
  uint8_t access, access_mask; /* most intrusive; every one seen */
};
struct kfd_sweep { /* a plan for each block of some pages */
  struct uvm_alloc *alloc;
  struct kfd_span pages; /* still to do */
  uint32_t gpus;         /* of a mapping */
  kfd_build *build;
  kfd_step *after;
};
struct kfd_move { /* pages of t->range on their way */
  struct kfd_span pages;
  uint32_t final;                /* what was asked for: VRAM to another GPU's VRAM takes two legs */
  uint32_t from, to;             /* of the leg under way */
  struct kfd_span left, portion; /* of it: still to do; in work, the pages of one buffer object: a migration */
  uvm_backing_id victim;         /* the buffer object that leaves, or 0 */
  uint32_t tries;                /* left, to empty a range or a victim */
  bool failed;
  kfd_step *over, *after; /* the leg; all of it */
};
struct uvm_driver_task {
  kfd_step *then;               /* what wake calls */
  struct uvm_driver_task *next; /* waiting for the lock; or among the spare ones */
  struct uvm_plan plan;
  struct kfd_prange *range;             /* in service, while the lock is held */
  uint8_t context, cause, trigger, why; /* of its plans and migrations */
  uvm_proc proc;                        /* who asked */
  uint32_t faults;                      /* for the next plan: distinct faults it serves */
  uvm_ns begin;
  struct kfd_sweep sweep;
  struct kfd_move move;
  union {
    struct uvm_cpu_fault cpu;
    struct {
      struct uvm_call call;
      struct kfd_span left;
      bool was_mapped; /* the range in work, before it moved */
    } api;             /* prefetch, advice, copy */
  };
};
struct kfd_gpu {                    /* the handler of one GPU's faults */
  UVM_VEC(struct kfd_fault) faults; /* taken from the ring, and of these */
  size_t at;                        /* the one in service */
  UVM_VEC(uint32_t) latest;         /* by hash of the page: 1 + the latest fault there */
  UVM_VEC(uint32_t) earlier;        /* by fault: 1 + the one before it with the same hash */
  struct uvm_driver_task *task;     /* NULL: idle */
  struct kfd_span window;
  bool migrated, dropped; /* dropped: some fault since the last replay */
};

struct kfd_state {
  uint32_t granularity, retries_to_ram; /* options */
  uvm_ns dedupe_ns;
  bool registered, ignored_failure_says_m, restore_nul, dedupe_per_range, whole_range_vram;

  uint64_t max_pages;
  UVM_VEC(struct kfd_ranges) ranges; /* by the allocation's number */
  struct kfd_gpu gpu[UVM_MAX_PROCS];
  struct uvm_driver_task *holder, *first_waiting, *last_waiting; /* of the lock */
  UVM_VEC(struct uvm_driver_task *) tasks;                       /* all of them, and the ones at rest */
  struct uvm_driver_task *spare;
  kfd_smi_sink *sink;
  void *sink_ctx;
};
static inline struct kfd_state *uvm__kfd(const struct uvm_core *c) { return c->state; }

/* Rules by number: where a fault's pages go, then what else moves pages. */
enum kfd_why {
  KFD_WHY_NONE,
  KFD_WHY_APU,
  KFD_WHY_PREFERRED,
  KFD_WHY_PREFERRED_IN_HIVE,
  KFD_WHY_ACCESS,
  KFD_WHY_IN_PLACE,
  KFD_WHY_CPU_FAULT,
  KFD_WHY_PREFETCH,
  KFD_WHY_EVICTED,
  KFD_WHY_COPY
};

/* -- task.c -- */
struct uvm_driver_task *uvm__kfd_task(struct uvm_core *c, enum uvm_context context, enum uvm_cause cause, uvm_proc proc);
void uvm__kfd_task_done(struct uvm_core *c, struct uvm_driver_task *t); /* has no lock any more; becomes spare */
void uvm__kfd_sleep(struct uvm_core *c, struct uvm_driver_task *t, kfd_step *then, uvm_ns at);
void uvm__kfd_lock(struct uvm_core *c, struct uvm_driver_task *t, kfd_step *then, uvm_ns now); /* then: with the lock, perhaps at once */
void uvm__kfd_unlock(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now);
/* Builds and runs a plan for each block of the pages, waiting for busy ones; then calls after. */
void uvm__kfd_sweep(struct uvm_core *c, struct uvm_driver_task *t, struct uvm_alloc *a, struct kfd_span pages, kfd_build *build,
                    kfd_step *after, uvm_ns now);
uvm_ns uvm__kfd_plan_run(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now);  /* as uvm_plan_run; cause and why are the task's */
void uvm__kfd_plan_finish(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now); /* as uvm_plan_finish, and counts the ranges' pages */

/* -- move.c: pages of t->range to a location, with the lock. after: t->move.failed says whether it did -- */
void uvm__kfd_move(struct uvm_core *c, struct uvm_driver_task *t, struct kfd_span pages, uint32_t to, kfd_step *after, uvm_ns now);
void uvm__kfd_used(struct uvm_core *c, struct uvm_driver_task *t, struct kfd_span pages,
                   uvm_ns now); /* their buffer objects: last to leave */
/* -- map.c -- */
/* Pages of t->range for these GPUs, wherever they are; holes get system memory. */
void uvm__kfd_map(struct uvm_core *c, struct uvm_driver_task *t, struct kfd_span pages, uint32_t gpus, kfd_step *after, uvm_ns now);
/* Adds to t->plan: system memory for the holes, mapped by the CPU; access for p, who reaches the pages. */
uvm_mask uvm__kfd_plan_populate(struct uvm_core *c, struct uvm_driver_task *t, struct uvm_block *b, const uvm_mask *pages);
void uvm__kfd_plan_map(struct uvm_driver_task *t, struct uvm_block *b, uvm_proc p, const uvm_mask *pages);

/* The driver's entry points. */
void uvm__kfd_interrupt(struct uvm_core *c, uvm_proc gpu, uvm_ns now);
void uvm__kfd_cpu_fault(struct uvm_core *c, const struct uvm_cpu_fault *f, uvm_ns now);
void uvm__kfd_copy(struct uvm_core *c, const struct uvm_call *call, bool write, uvm_ns now);
void uvm__kfd_prefetch(struct uvm_core *c, const struct uvm_call *call, uvm_ns now);
void uvm__kfd_advise(struct uvm_core *c, const struct uvm_call *call, uvm_ns now);
#endif
