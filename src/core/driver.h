/* A kernel driver's loop, and what it stands on.
 *
 *   engine ──(fault ring, CPU faults, API calls, wake-ups)──► driver ──(plans)──► engine
 *                                      driver ──(questions)──► policies (host.h)
 *
 * A driver is a set of tasks: a GPU's bottom half, a CPU fault in service, a prefetch under way. A task does one thing at
 * a time (fetch a batch, serve one block, replay), says when it is done, and is woken then; so everything else that happens
 * meanwhile interleaves at that grain. Nobody here reads a clock: `now` comes in with each call. */
#ifndef UVM_DRIVER_H
#define UVM_DRIVER_H
#include "core/event.h"
#include "core/plan.h"

struct uvm_core;
struct uvm_driver_task;                         /* the driver's own */

struct uvm_raw_fault {                          /* one entry of a GPU's fault ring */
  struct uvm_alloc *alloc;
  uint64_t offset;                              /* of the page, in the allocation */
  uint16_t utlb;
  uint8_t access;                               /* enum uvm_access */
  uvm_ns time;                                  /* arrival */
  int64_t line;                                 /* of the trace record, 0 unknown */
};
/* Raw entries merged into a fault, as struct uvm_fault counts them. */
static inline uint16_t uvm_merged(uint32_t entries) { return entries < UINT16_MAX ? (uint16_t)entries : UINT16_MAX; }
struct uvm_cpu_fault {
  struct uvm_alloc *alloc;
  uint64_t offset;
  uint8_t access;                               /* READ or WRITE: the CPU's traps tell no more */
  uint32_t thread;
  int64_t line;
};
struct uvm_counter_note {                       /* one access-counter notification */
  struct uvm_alloc *alloc;
  uint64_t offset;                              /* of the 2 MiB region's page that crossed the threshold */
  uint32_t touched;                             /* 64 KiB sub-regions of that 2 MiB region touched since the last clear */
  uint64_t count;
};
enum uvm_advice { UVM_ADV_SET_READ_MOSTLY, UVM_ADV_UNSET_READ_MOSTLY, UVM_ADV_SET_PREFERRED, UVM_ADV_UNSET_PREFERRED,
                  UVM_ADV_SET_ACCESSED_BY, UVM_ADV_UNSET_ACCESSED_BY, UVM_ADV_SET_COARSE_GRAIN, UVM_ADV_UNSET_COARSE_GRAIN };
struct uvm_call {                               /* an API call on part of a managed allocation */
  struct uvm_alloc *alloc;
  uint64_t offset, bytes;
  uvm_node node;                                /* prefetch: destination; SET_PREFERRED: the node */
  uvm_proc proc;                                /* who runs it (prefetch: the stream's GPU); accessed-by: whom */
  enum uvm_advice advice;
  uint64_t cookie;                              /* given back by complete */
  int64_t line;
};
/* Work of the driver outside of plans; n is what the comment says. The engine prices it. */
enum uvm_work {
  UVM_W_FETCH,                                  /* take and sort a batch: n raw entries */
  UVM_W_REPLAY,                                 /* flush the ring and issue a replay */
  UVM_W_REPLAY_WAIT,                            /* until the replay has executed and its faults may have come */
  UVM_W_RESTART,                                /* leave the service loop and be interrupted again: n throttled batches */
  UVM_W_CPU_SPURIOUS,                           /* a CPU fault that found nothing to do */
  UVM_W_CPU_NAP,                                /* a throttled thread's wake-up beyond its time */
  UVM_W_SKIP,                                   /* a block of a prefetch with nothing to do: n blocks */
};
/* What the world below offers; the session fills it in from the engine. A GPU's ring is an endless sequence of entries:
 * entry i is readable from when it arrived until `ring_get` passes it. */
struct uvm_hw {
  void *ctx;
  uint64_t (*ring_put)(void *ctx, uvm_proc gpu, uvm_ns now);                 /* entries ever arrived by now */
  uint64_t (*ring_get)(void *ctx, uvm_proc gpu, uint64_t get);               /* frees entries below get; UVM_NEVER only asks */
  const struct uvm_raw_fault *(*ring_entry)(void *ctx, uvm_proc gpu, uint64_t i);
  void (*replay)(void *ctx, uvm_proc gpu, uvm_ns now);                       /* stalled accesses try again */
  void (*rearm)(void *ctx, uvm_proc gpu, uvm_ns now);                        /* bottom half over: interrupt me at the next entry */
  size_t (*notes)(void *ctx, uvm_proc gpu, struct uvm_counter_note *out, size_t max);  /* takes pending notifications */
  void (*clear_counter)(void *ctx, uvm_proc gpu, struct uvm_alloc *a, uint64_t offset, uint32_t threshold);   /* and re-arms it */
  uvm_ns (*prepare)(void *ctx, const struct uvm_plan *p, uvm_ns now);        /* when its first step can begin */
  uvm_ns (*execute)(void *ctx, struct uvm_plan *p, uvm_ns now);              /* from then on: fills the steps' done, begin, end; the end */
  uvm_ns (*price)(void *ctx, enum uvm_work w, uvm_proc p, uint64_t n);       /* a duration */
  void (*wake)(void *ctx, struct uvm_driver_task *t, uvm_ns at);             /* call the driver's wake(t) then */
  void (*resume)(void *ctx, uint32_t thread, uvm_ns now);                    /* the CPU thread tries its access again */
  void (*complete)(void *ctx, uint64_t cookie, uvm_ns now);                  /* an API call is done */
  int (*fail)(void *ctx, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));   /* ends the run with this message */
};

struct uvm_driver {
  const char *name, *help;                      /* "nvidia": machine profiles say nvidia-580 */
  const struct uvm_opt *opts;                   /* -o nvidia.KEY=VALUE, into the state */
  const char *const *why;                       /* names of the why numbers of its own decisions, ends with NULL */
  const char *default_policy;
  uint32_t version;                             /* where neither the command line nor the machine's profile says one */
  size_t state_size;
  int (*init)(struct uvm_core *c, struct uvm_error *e);
  void (*fini)(struct uvm_core *c);
  void (*block_fini)(struct uvm_core *c, struct uvm_block *b);
  void (*interrupt)(struct uvm_core *c, uvm_proc gpu, uvm_ns now);           /* the ring has entries */
  void (*counters)(struct uvm_core *c, uvm_proc gpu, uvm_ns now);            /* notifications are pending */
  void (*cpu_fault)(struct uvm_core *c, const struct uvm_cpu_fault *f, uvm_ns now);
  void (*prefetch)(struct uvm_core *c, const struct uvm_call *call, uvm_ns now);
  void (*make_room)(struct uvm_core *c, const struct uvm_call *call, uvm_ns now);   /* for device memory: until `bytes` are free on
                                                   the node or nothing more can leave. NULL: managed pages do not leave for it */
  void (*advise)(struct uvm_core *c, const struct uvm_call *call, uvm_ns now);
  void (*copy)(struct uvm_core *c, const struct uvm_call *call, bool write, uvm_ns now);   /* a memcpy's side: its pages must exist */
  bool (*idle)(const struct uvm_core *c);       /* nothing of its own is under way either: no counter's migration, no end of a pin */
  void (*freeing)(struct uvm_core *c, struct uvm_alloc *a, uvm_ns now);      /* idle, and nothing is in flight; drop what refers to it */
  void (*wake)(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now);
};
extern const struct uvm_driver uvm_driver_nvidia, uvm_driver_amdkfd;
extern const struct uvm_driver *const uvm_drivers[];      /* ends with NULL */
const struct uvm_driver *uvm_driver_find(const char *name, struct uvm_error *e);   /* unknown: lists the known */

/* The core of one run: one VA space, one driver, the policies' host, what they stand on, who listens. */
struct uvm_core {
  struct uvm_space *space;
  const struct uvm_driver *driver;
  void *state;                                  /* the driver's */
  struct uvm_host *host;
  struct uvm_hw hw;
  const struct uvm_observer *observers;
  size_t nobservers;
  uint64_t seed;
};
void uvm_observe(const struct uvm_core *c, const struct uvm_event *e);

/* Common to all drivers (service.c).
 *
 * The name of a why number: the placing part's if it has one, else the driver's; NULL none. */
const char *uvm_rule_name(const struct uvm_core *c, uint8_t why);
/* names[i] of a list that ends with NULL and may be NULL; NULL: none. */
static inline const char *uvm__name_in(const char *const *names, uint8_t i) {
  for (uint8_t k = 0; names && names[k]; k++)
    if (k == i) return names[k];
  return NULL;
}
/* The range takes the value that the call gives it; a driver's own kinds of advice change nothing here. */
void uvm_range_advise(struct uvm_range *r, const struct uvm_call *call);
/* prepare: checks the plan, holds its blocks and returns when it takes effect (UVM_NEVER after a refused plan: hw.fail was
 * called); until then everybody keeps the mappings he has. execute, at that time: takes mappings away, has the rest done and
 * returns its end. finish, at that time: commits, tells the policies and the observers. run: both at once, for those who need no
 * turn between. */
uvm_ns uvm_plan_prepare(struct uvm_core *c, struct uvm_plan *p, uvm_ns now);
uvm_ns uvm_plan_execute(struct uvm_core *c, struct uvm_plan *p, uvm_ns now);
uvm_ns uvm_plan_run(struct uvm_core *c, struct uvm_plan *p, uvm_ns now);
void uvm_plan_finish(struct uvm_core *c, struct uvm_plan *p, uvm_ns now);
#endif
