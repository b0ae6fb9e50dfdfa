/* A world for the nvidia driver: two GPUs, a scripted policy, plans and work of fixed length, a queue of wake-ups in order of
 * time. What happens is recorded: events, plans, replays, prices. One world at a time, for policies reach it through `world`. */
#ifndef UVM_NVIDIA_FIXTURE_H
#define UVM_NVIDIA_FIXTURE_H
#include "tests/unit/unit.h"
#include "core/nvidia/nvidia.h"

#define MIB (1024 * 1024ull)
#define US 1000ull
#define PLAN_NS 20000ull /* every plan takes this long */
enum { CPU, GPU0, GPU1, PROCS };
enum { DRAM, HBM0, HBM1, NODES };
enum link { PCIE, COHERENT, NVLINK }; /* CPU and GPUs; NVLINK: PCIe to the CPU, NVLink between the GPUs */
enum { WITH_THRASH = 1, WITH_PREFETCH = 2, WITH_PLACE = 4, WITH_COUNTER = 8 };

struct queued {
  struct uvm_driver_task *task;
  uvm_ns at;
};
struct priced {
  enum uvm_work work;
  uint64_t n;
  uvm_ns at;
};
struct told {
  struct uvm_told t;
  uvm_mask pages;
};
struct seen {
  struct uvm_event e;
  uvm_mask pages;
};
struct ran {
  uint8_t context;
  size_t steps;
  struct uvm_step *v;
};
struct world {
  struct uvm_core core;
  struct uvm_observer observer;
  struct uvm_policy policy;
  uvm_ns now;
  UVM_VEC(struct queued) queue;
  UVM_VEC(struct uvm_raw_fault) ring[PROCS];
  uint64_t get[PROCS];
  bool armed[PROCS];
  UVM_VEC(struct priced) prices;
  UVM_VEC(struct seen) events;
  UVM_VEC(struct told) tolds;
  UVM_VEC(struct ran) plans;
  UVM_VEC(uvm_ns) replays;
  UVM_VEC(struct uvm_counter_note) notes;
  UVM_VEC(struct uvm_counter_note) cleared; /* count: the threshold */
  unsigned resumed, completed;
  char failure[512];
  /* the script */
  void (*on_replay)(uvm_proc gpu);
  void (*on_resume)(void); /* from the queue, as a thread's access would be */
  void (*on_plan)(const struct uvm_plan *p);
  void (*thrash)(const struct uvm_fault *f, struct uvm_thrash *out);
  uvm_mask more; /* the prefetcher's answer */
  struct uvm_place place;
  uvm_mask migrate; /* the counter hook's answer, when the policy has one */
  unsigned prefetch_asked;
  uvm_node prefetch_node;
  struct uvm_thrash hint; /* every page's, without a `thrash` function */
};
static struct world *world;

/* -- the policy -- */

static inline void script_thrash(void *s, const uvm_view *v, const struct uvm_fault *f, struct uvm_thrash *out) {
  (void)s, (void)v;
  if (world->thrash)
    world->thrash(f, out);
  else
    *out = world->hint;
}
static inline void script_prefetch(void *s, const uvm_view *v, uvm_block_id b, uvm_node dst, const uvm_mask *faulted, uvm_mask *more) {
  (void)s, (void)v, (void)b, (void)faulted;
  world->prefetch_asked++;
  world->prefetch_node = dst;
  *more = world->more;
}
static inline void script_place(void *s, const uvm_view *v, const struct uvm_fault *f, const struct uvm_thrash *h, struct uvm_place *out) {
  (void)s, (void)v, (void)f, (void)h;
  *out = world->place;
}
static inline uint32_t script_counter(void *s, const uvm_view *v, const struct uvm_fault *f, const uvm_mask *touched, uint64_t count,
                                      uvm_mask *m) {
  (void)s, (void)v, (void)f, (void)touched, (void)count;
  *m = world->migrate;
  return 1000;
}
static inline void script_event(void *s, const uvm_view *v, const struct uvm_told *e) {
  (void)s, (void)v;
  UVM_PUSH(&world->tolds) = (struct told){*e, e->pages ? *e->pages : (uvm_mask){{0}}};
}

/* -- the world below -- */

static inline uint64_t hw_put(void *ctx, uvm_proc g, uvm_ns now) {
  (void)ctx;
  uint64_t n = 0;
  while (n < world->ring[g].n && world->ring[g].v[n].time <= now) n++;
  return n;
}
static inline uint64_t hw_get(void *ctx, uvm_proc g, uint64_t get) {
  (void)ctx;
  if (get != UVM_NEVER) world->get[g] = get;
  return world->get[g];
}
static inline const struct uvm_raw_fault *hw_entry(void *ctx, uvm_proc g, uint64_t i) {
  (void)ctx;
  assert_true(i >= world->get[g] && i < world->ring[g].n);
  return &world->ring[g].v[i];
}
static inline void hw_replay(void *ctx, uvm_proc g, uvm_ns now) {
  (void)ctx;
  UVM_PUSH(&world->replays) = now;
  if (world->on_replay) world->on_replay(g);
}
static inline void hw_rearm(void *ctx, uvm_proc g, uvm_ns now) {
  (void)ctx, (void)now;
  world->armed[g] = true;
}
static inline size_t hw_notes(void *ctx, uvm_proc g, struct uvm_counter_note *out, size_t max) {
  (void)ctx, (void)g;
  size_t n = world->notes.n < max ? world->notes.n : max;
  if (n) memcpy(out, world->notes.v, n * sizeof *out);
  world->notes.n = 0;
  return n;
}
static inline void hw_clear(void *ctx, uvm_proc g, struct uvm_alloc *a, uint64_t offset, uint32_t threshold) {
  (void)ctx, (void)g;
  UVM_PUSH(&world->cleared) = (struct uvm_counter_note){a, offset, 0, threshold};
}
static inline uvm_ns hw_execute(void *ctx, struct uvm_plan *p, uvm_ns now) {
  (void)ctx;
  for (size_t i = 0; i < p->steps.n; i++) {
    struct uvm_step *st = &p->steps.v[i];
    st->done = st->pages;
    st->begin = now, st->end = now + PLAN_NS;
  }
  struct ran *r = &UVM_PUSH(&world->plans);
  *r = (struct ran){p->context, p->steps.n, uvm_mem(p->steps.n * sizeof *r->v)};
  memcpy(r->v, p->steps.v, p->steps.n * sizeof *r->v);
  if (world->on_plan) world->on_plan(p);
  return now + PLAN_NS;
}
/* Only what decides who comes first takes time: a fetch and a replay 1 us each, a restart and a nap 2 us. */
static inline uvm_ns hw_price(void *ctx, enum uvm_work w, uvm_proc p, uint64_t n) {
  (void)ctx, (void)p;
  UVM_PUSH(&world->prices) = (struct priced){w, n, world->now};
  return w == UVM_W_RESTART || w == UVM_W_CPU_NAP ? 2 * US : 1 * US;
}
static inline void hw_wake(void *ctx, struct uvm_driver_task *t, uvm_ns at) {
  (void)ctx;
  UVM_PUSH(&world->queue) = (struct queued){t, at};
}
static inline void hw_resume(void *ctx, uint32_t thread, uvm_ns now) {
  (void)ctx, (void)thread;
  world->resumed++;
  if (world->on_resume) UVM_PUSH(&world->queue) = (struct queued){NULL, now};
}
static inline void hw_complete(void *ctx, uint64_t cookie, uvm_ns now) { (void)ctx, (void)cookie, (void)now, world->completed++; }
static inline int hw_fail(void *ctx, int code, const char *fmt, ...) {
  (void)ctx;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(world->failure, sizeof world->failure, fmt, ap);
  va_end(ap);
  return code;
}
static inline void see(void *ctx, const struct uvm_event *e) {
  (void)ctx;
  UVM_PUSH(&world->events) = (struct seen){*e, e->mask ? *e->mask : (uvm_mask){{0}}};
}

/* -- life -- */

static inline struct uvm_topology *topology(enum link l, uint64_t gpu_bytes, uint32_t version) {
  static struct uvm_proc_info procs[PROCS];
  static struct uvm_node_info nodes[NODES];
  static struct uvm_topology t;
  uint32_t cpu = 1 << DRAM, g0 = 1 << HBM0, g1 = 1 << HBM1;
  procs[CPU] = (struct uvm_proc_info){.name = "cpu", .home = DRAM, .reach = cpu, .native_atomics = cpu};
  procs[GPU0] = (struct uvm_proc_info){.name = "gpu0", .home = HBM0, .reach = cpu | g0, .native_atomics = g0};
  procs[GPU1] = (struct uvm_proc_info){.name = "gpu1", .home = HBM1, .reach = cpu | g1, .native_atomics = g1};
  if (l == COHERENT) {
    for (int p = 0; p < PROCS; p++)
      procs[p].reach = cpu | (p == GPU1 ? g1 : g0) | (p == CPU ? g1 : 0), procs[p].native_atomics = procs[p].reach;
    procs[CPU].fast_link = 1 << GPU0 | 1 << GPU1;
    procs[GPU0].fast_link = procs[GPU1].fast_link = 1 << CPU;
  }
  if (l == NVLINK) {
    procs[GPU0].reach |= g1, procs[GPU0].native_atomics |= g1, procs[GPU0].fast_link = 1 << GPU1;
    procs[GPU1].reach |= g0, procs[GPU1].native_atomics |= g0, procs[GPU1].fast_link = 1 << GPU0;
  }
  nodes[DRAM] = (struct uvm_node_info){.name = "dram"};
  nodes[HBM0] = (struct uvm_node_info){.name = "hbm0", .capacity = gpu_bytes};
  nodes[HBM1] = (struct uvm_node_info){.name = "hbm1", .capacity = gpu_bytes};
  t = (struct uvm_topology){
      .nprocs = PROCS, .nnodes = NODES, .procs = procs, .nodes = nodes, .machine = "test", .driver = "nvidia", .driver_version = version};
  return &t;
}

static inline struct nv_options *begin_version(enum link l, uint64_t gpu_bytes, int hooks, uint32_t version) {
  struct uvm_error e;
  struct uvm_core *c;
  world = uvm_mem(sizeof *world);
  c = &world->core;
  world->policy = (struct uvm_policy){.abi = UVM_POLICY_ABI,
                                      .name = "script",
                                      .on_event = script_event,
                                      .thrash = hooks & WITH_THRASH ? script_thrash : NULL,
                                      .prefetch = hooks & WITH_PREFETCH ? script_prefetch : NULL,
                                      .place = hooks & WITH_PLACE ? script_place : NULL,
                                      .counter = hooks & WITH_COUNTER ? script_counter : NULL};
  world->observer = (struct uvm_observer){NULL, see};
  c->space = uvm_space_create(topology(l, gpu_bytes, version));
  c->driver = &uvm_driver_nvidia;
  c->state = uvm_mem(uvm_driver_nvidia.state_size);
  c->observers = &world->observer, c->nobservers = 1;
  c->hw = (struct uvm_hw){NULL,     hw_put,     hw_get,   hw_entry, hw_replay, hw_rearm,    hw_notes,
                          hw_clear, hw_execute, hw_price, hw_wake,  hw_resume, hw_complete, hw_fail};
  uvm_opt_defaults(uvm_driver_nvidia.opts, c->state);
  const struct uvm_policy *parts[] = {&world->policy};
  c->host = uvm_host_create(c, parts, 1);
  assert_int_equal(uvm_driver_nvidia.init(c, &e), 0);
  assert_int_equal(uvm_host_start(c->host, &e), 0);
  for (int g = 0; g < PROCS; g++) world->armed[g] = true;
  return &uvm__nv_state(c)->options;
}
static inline struct nv_options *begin(enum link l, uint64_t gpu_bytes, int hooks) { return begin_version(l, gpu_bytes, hooks, 580); }

static inline void end(void) {
  struct uvm_core *c = &world->core;
  uvm_driver_nvidia.fini(c);
  uvm_space_destroy(c->space);
  uvm_host_destroy(c->host);
  uvm_mem_free(c->state);
  for (size_t i = 0; i < world->plans.n; i++) uvm_mem_free(world->plans.v[i].v);
  for (int g = 0; g < PROCS; g++) uvm_mem_free(world->ring[g].v);
  uvm_mem_free(world->queue.v), uvm_mem_free(world->prices.v), uvm_mem_free(world->events.v), uvm_mem_free(world->tolds.v);
  uvm_mem_free(world->plans.v), uvm_mem_free(world->replays.v), uvm_mem_free(world->notes.v), uvm_mem_free(world->cleared.v);
  uvm_mem_free(world);
}

/* -- making things happen -- */

/* The earliest wake-up, of equals the first asked for; or the interrupt of a GPU whose ring has filled. */
static inline bool next_event(void) {
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < world->queue.n; i++)
    if (best == SIZE_MAX || world->queue.v[i].at < world->queue.v[best].at) best = i;
  for (uvm_proc g = 1; g < PROCS; g++) {
    if (!world->armed[g] || world->get[g] >= world->ring[g].n) continue;
    uvm_ns at = world->ring[g].v[world->get[g]].time;
    if (at < world->now) at = world->now;
    if (best != SIZE_MAX && world->queue.v[best].at <= at) continue;
    world->now = at;
    world->armed[g] = false;
    uvm_driver_nvidia.interrupt(&world->core, g, at);
    return true;
  }
  if (best == SIZE_MAX) return false;
  struct queued q = world->queue.v[best];
  memmove(&world->queue.v[best], &world->queue.v[best + 1], (--world->queue.n - best) * sizeof q);
  if (q.at > world->now) world->now = q.at;
  if (q.task)
    uvm_driver_nvidia.wake(&world->core, q.task, world->now);
  else
    world->on_resume();
  return true;
}
/* Until nothing is left to happen before `until`. */
static inline void settle_until(uvm_ns until) {
  for (;;) {
    bool soon = false;
    for (size_t i = 0; i < world->queue.n; i++) soon |= world->queue.v[i].at < until;
    for (uvm_proc g = 1; g < PROCS; g++)
      soon |= world->armed[g] && world->get[g] < world->ring[g].n && world->ring[g].v[world->get[g]].time < until;
    if (!soon || !next_event()) return;
  }
}
static inline void settle(void) {
  while (next_event()) continue;
}

static inline struct uvm_alloc *managed_at(uint64_t base, uint64_t bytes) {
  struct uvm_alloc *a;
  struct uvm_error e;
  if (uvm_space_alloc(world->core.space, "a", "a", base, bytes, UVM_MANAGED, UVM_NONE, &a, &e)) fail_msg("%s", e.text);
  return a;
}
static inline struct uvm_alloc *managed(uint64_t bytes) { return managed_at(UVM_NEVER, bytes); }

static inline void raw(uvm_proc gpu, struct uvm_alloc *a, uint64_t page, enum uvm_access access, uint16_t utlb, uvm_ns time) {
  UVM_PUSH(&world->ring[gpu]) = (struct uvm_raw_fault){a, page * UVM_PAGE, utlb, (uint8_t)access, time, 0};
}
static inline void gpu_touch(uvm_proc gpu, struct uvm_alloc *a, uint64_t page, enum uvm_access access) {
  raw(gpu, a, page, access, 0, world->now);
  settle();
}
static inline void cpu_fault(struct uvm_alloc *a, uint64_t page, enum uvm_access access, uint32_t thread) {
  struct uvm_cpu_fault f = {a, page * UVM_PAGE, (uint8_t)access, thread, 0};
  uvm_driver_nvidia.cpu_fault(&world->core, &f, world->now);
}
static inline void cpu_touch(struct uvm_alloc *a, uint64_t page, enum uvm_access access) { cpu_fault(a, page, access, 0), settle(); }
static inline void touch(uvm_proc p, struct uvm_alloc *a, uint64_t page, enum uvm_access access) {
  if (p == CPU)
    cpu_touch(a, page, access);
  else
    gpu_touch(p, a, page, access);
}
static inline void prefetch(struct uvm_alloc *a, uint64_t page, uint64_t pages, uvm_node to) {
  struct uvm_call call = {.alloc = a, .offset = page * UVM_PAGE, .bytes = pages * UVM_PAGE, .node = to, .proc = to == DRAM ? GPU0 : to};
  uvm_driver_nvidia.prefetch(&world->core, &call, world->now);
  settle();
}
static inline void advise(struct uvm_alloc *a, uint64_t page, uint64_t pages, enum uvm_advice what, uvm_proc p) {
  struct uvm_call call = {.alloc = a,
                          .offset = page * UVM_PAGE,
                          .bytes = pages * UVM_PAGE,
                          .node = p,
                          .proc = p,
                          .advice = what}; /* nodes are numbered as their processors */
  uvm_driver_nvidia.advise(&world->core, &call, world->now);
  settle();
}

/* -- looking at what happened -- */

static inline struct uvm_block *block_of(const struct uvm_alloc *a, uint64_t page) { return uvm_block_find(a, page * UVM_PAGE); }
static inline uint32_t nodes_of(const struct uvm_alloc *a, uint64_t page) {
  const struct uvm_block *b = block_of(a, page);
  return b ? uvm_page_nodes(world->core.space, b, uvm_page_of(a, page * UVM_PAGE)) : 0;
}
/* '-' unmapped, 'r', 'w', 'a': what p may do with the page. */
static inline char mapping(const struct uvm_alloc *a, uint64_t page, uvm_proc p) {
  const struct uvm_block *b = block_of(a, page);
  char c = '-';
  for (int l = 0; b && l < UVM_MAP_LEVELS; l++)
    if (uvm_mask_test(uvm_block_mapped(world->core.space, b, p, (enum uvm_level)l), uvm_page_of(a, page * UVM_PAGE))) c = "rwa"[l];
  return c;
}
/* cpu, gpu0, gpu1. */
static inline void assert_mapped(const struct uvm_alloc *a, uint64_t page, const char *want) {
  char found[PROCS + 1] = {mapping(a, page, CPU), mapping(a, page, GPU0), mapping(a, page, GPU1), 0};
  assert_string_equal(found, want);
}
static inline size_t resident_pages(const struct uvm_alloc *a, uvm_node n) {
  size_t pages = 0;
  for (size_t w = 0; w < a->nwindows; w++)
    for (const struct uvm_block *b = a->blocks[w]; b; b = b->split)
      pages += (size_t)uvm_mask_count(uvm_block_resident(world->core.space, b, n));
  return pages;
}
static inline size_t count_events(enum uvm_event_kind k) {
  size_t n = 0;
  for (size_t i = 0; i < world->events.n; i++) n += world->events.v[i].e.kind == k;
  return n;
}
/* The i-th of a kind, from 0; negative: from the end. */
static inline const struct uvm_event *event(enum uvm_event_kind k, int i) {
  if (i < 0) i += (int)count_events(k);
  for (size_t j = 0; j < world->events.n; j++)
    if (world->events.v[j].e.kind == k && i-- == 0) return &world->events.v[j].e;
  fail_msg("no such event of kind %d", k);
  return NULL;
}
static inline size_t count_told(enum uvm_told_kind k) {
  size_t n = 0;
  for (size_t i = 0; i < world->tolds.n; i++) n += world->tolds.v[i].t.kind == k;
  return n;
}
static inline size_t count_prices(enum uvm_work w) {
  size_t n = 0;
  for (size_t i = 0; i < world->prices.n; i++) n += world->prices.v[i].work == w;
  return n;
}
static inline void forget(void) {
  world->events.n = world->tolds.n = world->prices.n = world->replays.n = 0, world->resumed = world->completed = 0;
}
#endif
