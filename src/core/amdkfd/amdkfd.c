#include "core/amdkfd/amdkfd.h"

static const struct uvm_opt opts[] = {
    {"granularity", UVM_U32, offsetof(struct kfd_state, granularity), 0, 27, 9,
     "log2 of the pages that a fault moves (svm_default_granularity)"},
    {"retries_to_ram", UVM_U32, offsetof(struct kfd_state, retries_to_ram), 1, 1000, 3,
     "attempts to empty a range or a buffer object into system memory"},
    {"dedupe_ns", UVM_NS, offsetof(struct kfd_state, dedupe_ns), 0, 1e9, 2e6,
     "faults on a range are dropped for so long after it was mapped"},
    {"registered", UVM_BOOL, offsetof(struct kfd_state, registered), 0, 1, 1,
     "allocations are registered as a whole, as the HIP runtime does; 0: as malloc, ranges are made by faults"},
    {"dedupe_per_range", UVM_BOOL, offsetof(struct kfd_state, dedupe_per_range), 0, 1, 1,
     "quirk: dedupe_ns holds for the whole range; 0: for the granule"},
    {"whole_range_vram", UVM_BOOL, offsetof(struct kfd_state, whole_range_vram), 0, 1, 1,
     "quirk: VRAM is allocated for the whole range; 0: for the granule"},
    {"ignored_failure_says_m", UVM_BOOL, offsetof(struct kfd_state, ignored_failure_says_m), 0, 1, 1,
     "quirk: a fault whose migration failed is reported as migrated; 0: as mapped"},
    {"restore_nul", UVM_BOOL, offsetof(struct kfd_state, restore_nul), 0, 1, 1, "quirk: QUEUE_RESTORE events print a NUL; 0: nothing"},
    {0}};

static const char *const why[] = {"-",       "apu",  "preferred", "preferred-in-hive", "access", "in-place", "cpu-fault", "prefetch",
                                  "evicted", "copy", NULL};

/* The smallest VRAM decides, for a range may go to any. */
static int init(struct uvm_core *c, struct uvm_error *e) {
  const struct uvm_space *s = c->space;
  struct kfd_state *k = uvm__kfd(c);
  if (uvm_node_limited(s, s->procs[0].home))
    return uvm_fail(e, UVM_EUSAGE, "driver amdkfd: expected system memory (%s) without a capacity", s->nodes[s->procs[0].home].name);
  k->max_pages = uvm__kfd_max_pages(UINT64_MAX);
  for (uvm_proc p = 1; p < s->topology.nprocs; p++) {
    uvm_node n = s->procs[p].home;
    if (n == s->procs[0].home) continue;
    if (!uvm_node_limited(s, n))
      return uvm_fail(e, UVM_EUSAGE, "driver amdkfd: expected a capacity for %s, the memory of %s", s->nodes[n].name, s->procs[p].name);
    uint64_t max = uvm__kfd_max_pages(s->nodes[n].capacity);
    if (max < k->max_pages) k->max_pages = max;
  }
  return 0;
}

static void fini(struct uvm_core *c) {
  struct kfd_state *s = uvm__kfd(c);
  for (size_t i = 0; i < s->ranges.n; i++) uvm__kfd_forget(c, c->space->allocs.v[i]);
  for (size_t i = 0; i < s->tasks.n; i++) {
    uvm_plan_release(&s->tasks.v[i]->plan);
    uvm_mem_free(s->tasks.v[i]);
  }
  for (int p = 0; p < UVM_MAX_PROCS; p++) {
    uvm_mem_free(s->gpu[p].faults.v);
    uvm_mem_free(s->gpu[p].latest.v);
    uvm_mem_free(s->gpu[p].earlier.v);
  }
  uvm_mem_free(s->ranges.v);
  uvm_mem_free(s->tasks.v);
}

/* These GPUs have no access counters. */
static void counters(struct uvm_core *c, uvm_proc gpu, uvm_ns now) { (void)c, (void)gpu, (void)now; }

static bool idle(const struct uvm_core *c) { return !uvm__kfd(c)->holder; }

static void freeing(struct uvm_core *c, struct uvm_alloc *a, uvm_ns now) {
  struct kfd_span all = uvm__kfd_all(a);
  for (struct kfd_prange *r; (r = uvm__kfd_at_or_above(c, a, all.first)) != NULL; all.first = r->pages.last + 1)
    uvm__kfd_smi_unmap(c, r, r->pages, KFD_U_FREED, now);
  uvm__kfd_forget(c, a);
}

static void wake(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) { t->then(c, t, now); }

const struct uvm_driver uvm_driver_amdkfd = {
    .name = "amdkfd",
    .help = "AMD's shared virtual memory, XNACK on: ranges with one buffer object each, 2 MiB a fault, least recently used objects leave",
    .opts = opts,
    .why = why,
    .default_policy = "none",
    .version = 6,
    .state_size = sizeof(struct kfd_state),
    .init = init,
    .fini = fini,
    .interrupt = uvm__kfd_interrupt,
    .counters = counters,
    .cpu_fault = uvm__kfd_cpu_fault,
    .prefetch = uvm__kfd_prefetch,
    .advise = uvm__kfd_advise,
    .copy = uvm__kfd_copy,
    .idle = idle,
    .freeing = freeing,
    .wake = wake,
};
