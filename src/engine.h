/* An engine: where faults come from, what makes a plan true, and the owner of time. Internal; may change.
 * The session feeds it trace records when it asks, and hands each event it returns to the driver. */
#ifndef UVM_ENGINE_H
#define UVM_ENGINE_H
#include "core/driver.h"
#include "machine/machine.h"
#include "trace.h"

enum uvm_capability { UVM_CAN_ACCESS = 1, UVM_CAN_COUNTERS = 2 };   /* what policies may need */
enum uvm_engine_event_kind {
  UVM_N_FEED,          /* the host thread wants the next trace record */
  UVM_N_END,           /* the trace ended and everything is done */
  UVM_N_CPU_FAULT, UVM_N_INTERRUPT, UVM_N_COUNTERS, UVM_N_PREFETCH, UVM_N_ADVISE, UVM_N_COPY, UVM_N_ROOM, UVM_N_FREEING, UVM_N_WAKE,
};
struct uvm_engine_event {
  uint8_t kind;
  uvm_ns now;
  uvm_proc proc;                                /* INTERRUPT, COUNTERS */
  struct uvm_cpu_fault fault;
  struct uvm_call call;                         /* PREFETCH, ADVISE, COPY, ROOM: device memory is to be allocated */
  bool write;                                   /* COPY: the destination's side */
  struct uvm_alloc *alloc;                      /* FREEING: free it after the driver is told */
  struct uvm_driver_task *task;                 /* WAKE */
};
struct uvm_engine_config { struct uvm_core *core; struct uvm_machine *machine; const char *trace; };   /* trace: its name, for messages */
struct uvm_engine;
struct uvm_engine_ops {
  const char *name, *help;
  uint32_t capabilities;
  int (*open)(const struct uvm_engine_config *c, struct uvm_engine **out, struct uvm_error *e);
  void (*hw)(struct uvm_engine *x, struct uvm_hw *out);           /* fail ends `next` */
  /* The next n records, 0: the trace ended. Takes the first, and of those behind it the accesses that it is through with at once;
   * copies what it keeps. Returns how many it took; the others are fed again when it asks. */
  int (*feed)(struct uvm_engine *x, const struct uvm_trace_record *r, size_t n, struct uvm_error *e);
  int (*next)(struct uvm_engine *x, struct uvm_engine_event *ev, struct uvm_error *e);        /* 1; 0: uvm_stop; < 0 */
  uvm_ns (*now)(const struct uvm_engine *x);
  void (*close)(struct uvm_engine *x);
};
extern const struct uvm_engine_ops uvm_engine_model;
#endif
