/* Causes: what the time of sections went to. An observer that notes what was under way when, and afterwards divides any span of time
 * among causes, every nanosecond to one.
 *
 * A section is the host's time. While the host computes or calls, its time is its own, but for faults of the system that its writes
 * meet. While it waits (for its streams, or in a CPU fault), the time belongs to what is under way then; of several, to the one named
 * first below: so a fault's service is what is left of it beside the bytes it moves. */
#ifndef UVM_CAUSES_H
#define UVM_CAUSES_H
#include "core/event.h"

/* X(name, text) */
#define UVM_CAUSES(X)                                                                                                                      \
  X(TRANSFERS, "transfers")           /* pages on their way */                                                                             \
  X(MEMCPY, "memcpy")                 /* bytes of explicit copies on their way, and pages made for them */                                 \
  X(EVICTIONS, "evictions")           /* the driver's work to make room */                                                                 \
  X(PREFETCH_CALLS, "prefetch calls") /* the driver's work for prefetches */                                                               \
  X(FIRST_TOUCHES, "first touches")   /* CPU faults that make memory: chunks, zeroing */                                                   \
  X(CPU_FAULTS, "CPU faults")         /* other CPU faults, the trap included */                                                            \
  X(GPU_FAULTS, "GPU fault service")  /* batches: from when the driver takes them to their replay */                                       \
  X(COUNTERS, "access counters")      /* the driver's work for their notifications */                                                      \
  X(ADVICE, "advice calls")           /* the driver's work for advice */                                                                   \
  X(THROTTLING, "throttling")         /* processors held off pages, and nothing of the above */                                            \
  X(WAKING, "waking the driver")      /* GPU faults on their way to the driver, and replays on theirs back */                              \
  X(FIRST_WRITES, "first writes")     /* the system's faults at pages that came back to the CPU with others */                             \
  X(KERNELS, "kernels")               /* running: launch, resident and remote accesses */                                                  \
  X(SYNC, "sync")                     /* the host waits and nothing is under way: wake-ups, turns of streams */                            \
  X(HOST, "host")                     /* the program itself: loops, delays, API calls */
#define UVM_CAUSE_NAME(name, text) UVM_CAUSE_##name,
enum uvm_time_cause { UVM_CAUSES(UVM_CAUSE_NAME) UVM_TIME_CAUSES };
extern const char *const uvm_time_cause_names[UVM_TIME_CAUSES];

struct uvm_cause_span {
  uvm_ns begin, end;
  uint8_t layer;
};
struct uvm_cause_segment { /* until the next one's begin */
  uvm_ns begin;
  uint8_t cause;
};
struct uvm_causes {
  UVM_VEC(struct uvm_cause_span) spans;
  UVM_VEC(struct uvm_cause_segment) segments; /* by begin; the first begins at 0 */
};
void uvm_causes_event(void *causes, const struct uvm_event *e); /* the observer's function; begin with a zeroed struct */
void uvm_causes_settle(struct uvm_causes *c);                   /* once, after the run */
/* Adds the time of [begin, end) to ns, by cause. */
void uvm_causes_add(const struct uvm_causes *c, uvm_ns begin, uvm_ns end, uint64_t ns[UVM_TIME_CAUSES]);
void uvm_causes_free(struct uvm_causes *c);
#endif
