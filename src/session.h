/* A session: one run of one trace on one machine under one policy. The only place where core, engine, machine, policies and
 * traces meet. */
#ifndef UVM_SESSION_H
#define UVM_SESSION_H
#include "core/event.h"

struct uvm_trace;
struct uvm_setting { const char *owner, *key, *value; };        /* -o OWNER.KEY=VALUE */
struct uvm_progress {
  uint64_t done, total;                         /* bytes of the trace read; total 0: unknown */
  int64_t line;                                 /* of the latest record */
  uint64_t accesses;                            /* elements, of loops and kernels that are over */
  uvm_ns now;
};
struct uvm_session_config {
  const char *trace;                            /* path or "-" */
  struct uvm_trace *source;                     /* NULL; or an open trace, read from its start in place of that path. It stays open */
  const char *machine;                          /* NULL: nvidia-h200 */
  const char *driver;                           /* NULL: the machine's; "nvidia", "nvidia-595" */
  const char *policy;                           /* NULL: the driver's own; a preset, or a policy file (policy_file.h) */
  const struct uvm_policy *opened;              /* NULL; or a policy in place of that name, as long as the run the caller's */
  const char *place, *prefetch, *evict, *thrash;   /* parts in place of its own, or NULL: names or policy files */
  const char *engine;                           /* NULL: model */
  const char *costs;                            /* NULL: measured */
  uint64_t gpu_memory;                          /* bytes a GPU; 0: the machine's */
  double oversubscribe;                         /* peak live managed bytes / F; 0: off */
  uint64_t seed;
  const struct uvm_setting *settings; size_t nsettings;
  const struct uvm_observer *observers; size_t nobservers;
  void (*progress)(void *ctx, const struct uvm_progress *p); void *progress_ctx;    /* called now and then; may be NULL */
};
struct uvm_link_wait { const char *waiter, *holder; uvm_ns ns; };    /* kinds of traffic, as "remote access" */
struct uvm_session_result {
  char machine[48], driver[32], policy[96], engine[16];
  uvm_ns sim_ns;
  uint64_t peak_gpu_bytes;
  uint64_t gpu_capacity;
  uint64_t node_capacity[UVM_MAX_NODES];
  uint64_t resident_gpu_bytes;                  /* at the end, of managed pages */
  uint8_t nprocs;                               /* the CPU included */
  bool interrupted;                             /* by uvm_stop: what was observed so far is right but partial */
  uint64_t accesses;                            /* elements */
  struct uvm_link_wait link_waits[25]; size_t nlink_waits;       /* who waited for whom, where anybody did */
};
/* 0 also for a run that uvm_stop ended. UVM_EUSAGE: an unknown name or a value that does not fit; UVM_EINPUT: the trace or a profile
 * is wrong; UVM_EENV: no memory left to evict. r is filled in as far as the run came; e may be NULL. */
int uvm_session_run(const struct uvm_session_config *c, struct uvm_session_result *r, struct uvm_error *e);
#endif
