/* The nvidia driver: its parameters, its state, its operations. nvidia.h is the map of the rest. */
#include "core/nvidia/nvidia.h"
#include <assert.h>

#define OPT(field, type, lo, hi, dflt, text)                                                                                               \
  { #field, type, offsetof(struct nv_state, options.field), lo, hi, dflt, text }

static const struct uvm_opt opts[] = {
    OPT(fault_batch_count, UVM_U32, 1, 65536, 256, "raw fault entries taken in one batch, duplicates included"),
    OPT(fault_coalesce, UVM_BOOL, 0, 1, 1, "merge adjacent entries of one page while fetching"),
    OPT(fault_replay_policy, UVM_U32, 0, 3, NV_REPLAY_BATCH_FLUSH,
        "0 after each block, 1 after each batch, 2 flush the ring, then as 1, 3 once"),
    OPT(replay_update_put_ratio, UVM_U32, 0, 100, 50,
        "per cent of duplicates in a batch above which a flush drops what came since the fetch too"),
    OPT(max_batches_per_service, UVM_U32, 1, 1000000, 20, "batches before the fault loop lets others run"),
    OPT(max_throttle_per_service, UVM_U32, 1, 1000000, 5, "batches with a throttled fault before it does"),
    OPT(map_remote_on_native_atomics_fault, UVM_BOOL, 0, 1, 0,
        "a GPU's atomics on another GPU's memory map it where the link does atomics"),
    OPT(fault_force_sysmem, UVM_BOOL, 0, 1, 0, "faults put pages in the CPU's memory"),
    OPT(oversubscription, UVM_BOOL, 0, 1, 1, "evict when a GPU's memory is full; 0: fail"),
    OPT(access_counters, UVM_BOOL, 0, 1, 0, "migrate pages that a GPU keeps accessing remotely"),
    OPT(access_counter_threshold, UVM_U32, 1, 65535, 256, "remote accesses that make a notification"),
    OPT(map_remote_on_eviction, UVM_BOOL, 0, 1, 1, "map evicted pages for the GPU that lost them; needs access_counters"),
    OPT(counters_inert, UVM_U32, 0, 2, NV_AS_SHIPPED,
        "quirk: access counters never migrate on hosts with 4 KiB pages; 0 no, 1 yes, 2 as this version shipped"),
    {0},
};

static const char *const why_names[] = {"already mapped",
                                        "forced into system memory",
                                        "read duplication",
                                        "the preferred location asks",
                                        "the CPU asks for pageable memory",
                                        "pinned by thrashing control",
                                        "first touch",
                                        "accessed-by",
                                        "native atomics",
                                        "to the preferred location",
                                        "another process asks",
                                        "to who asks",
                                        "throttled",
                                        "prefetched",
                                        "explicit prefetch",
                                        "evicted",
                                        "advice",
                                        "pin ended",
                                        "copied",
                                        NULL};
static_assert(sizeof why_names / sizeof *why_names == NV_WHY_COPIED + 2, "a name for each reason");

/* -- tasks -- */

void uvm__nv_sleep(struct uvm_core *c, struct uvm_driver_task *t, void (*step)(struct uvm_core *, struct uvm_driver_task *, uvm_ns),
                   uvm_ns at) {
  t->step = step;
  c->hw.wake(c->hw.ctx, t, at);
}

void uvm__nv_task_enter(struct uvm_core *c, struct uvm_driver_task *t, void (*release)(struct uvm_driver_task *)) {
  struct nv_state *st = uvm__nv_state(c);
  t->release = release;
  t->next = st->tasks;
  if (st->tasks) st->tasks->prev = t;
  st->tasks = t;
}

void uvm__nv_task_leave(struct uvm_core *c, struct uvm_driver_task *t) {
  struct nv_state *st = uvm__nv_state(c);
  if (t->prev)
    t->prev->next = t->next;
  else
    st->tasks = t->next;
  if (t->next) t->next->prev = t->prev;
  t->release(t);
}

static void wake(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) { t->step(c, t, now); }

/* -- what everybody needs -- */

uint64_t uvm__nv_block_end(const struct uvm_block *b) { return uvm_block_offset(b, b->first) + b->pages * UVM_PAGE; }

/* -- life -- */

static int init(struct uvm_core *c, struct uvm_error *e) {
  if (c->space->procs[0].home >= c->space->topology.nnodes)
    return uvm_fail(e, UVM_EINPUT, "driver nvidia: the CPU needs a memory node of its own");
  uvm__nv_pins_init(c);
  return 0;
}

static void fini(struct uvm_core *c) {
  struct nv_state *st = uvm__nv_state(c);
  while (st->tasks) uvm__nv_task_leave(c, st->tasks);
  for (int p = 0; p < UVM_MAX_PROCS; p++) {
    uvm__nv_service_release(&st->gpu[p].service);
    uvm_mem_free(st->gpu[p].batch.entries.v);
    uvm_mem_free(st->gpu[p].batch.utlbs.v);
    uvm__nv_service_release(&st->counters[p].service);
    uvm_mem_free(st->counters[p].notes);
    uvm_mem_free(st->counters[p].thresholds);
  }
  for (int n = 0; n < UVM_MAX_NODES; n++) uvm_mem_free(st->partial[n].v);
  uvm__nv_service_release(&st->unpin_service);
  uvm_mem_free(st->pins.v);
  uvm_mem_free(st->holds.v);
}

static void block_fini(struct uvm_core *c, struct uvm_block *b) {
  (void)c;
  uvm_mem_free(b->driver_state);
  b->driver_state = NULL;
}

static bool idle(const struct uvm_core *c) {
  const struct nv_state *st = uvm__nv_state(c);
  for (uvm_proc p = 1; p < c->space->topology.nprocs; p++)
    if (st->gpu[p].running || st->counters[p].running) return false;
  return st->unpin_service.phase == NV_START;
}

static void freeing(struct uvm_core *c, struct uvm_alloc *a, uvm_ns now) {
  uvm__nv_pins_forget(c, a);
  uvm__nv_holds_forget(c, a, now);
}

const struct uvm_driver uvm_driver_nvidia = {
    .name = "nvidia",
    .help = "NVIDIA UVM: 2 MiB chunks, fault batches, the tree prefetcher, thrashing control (versions 580 and 595)",
    .opts = opts,
    .why = why_names,
    .default_policy = "nvidia",
    .version = 580,
    .state_size = sizeof(struct nv_state),
    .init = init,
    .fini = fini,
    .block_fini = block_fini,
    .interrupt = uvm__nv_interrupt,
    .counters = uvm__nv_notified,
    .cpu_fault = uvm__nv_cpu_fault,
    .prefetch = uvm__nv_migrate,
    .advise = uvm__nv_advise,
    .make_room = uvm__nv_make_room,
    .copy = uvm__nv_copy,
    .idle = idle,
    .freeing = freeing,
    .wake = wake,
};
