/* The world of driver_fixture.h under the nvidia driver, with a scripted policy. One world at a time, for policies reach it through
 * `world`. */
#ifndef UVM_NVIDIA_FIXTURE_H
#define UVM_NVIDIA_FIXTURE_H
#include "core/nvidia/nvidia.h"
#include "tests/unit/driver_fixture.h"

#define US 1000ull
#define PLAN_NS 20000ull /* every plan takes this long */
enum { WITH_THRASH = 1, WITH_PREFETCH = 2, WITH_PLACE = 4, WITH_COUNTER = 8 };

struct told {
  struct uvm_told t;
  uvm_mask pages;
};
static struct world *world;
static struct script { /* what the policy was told, asked, and answers */
  struct uvm_policy policy;
  UVM_VEC(struct told) tolds;
  void (*thrash)(const struct uvm_fault *f, struct uvm_thrash *out);
  struct uvm_thrash hint; /* every page's, without a `thrash` function */
  uvm_mask more;          /* the prefetcher's answer */
  struct uvm_place place;
  uvm_mask migrate; /* the counter hook's answer, when the policy has one */
  unsigned prefetch_asked;
  uvm_node prefetch_node;
} script;

/* -- the policy -- */

static inline void script_thrash(void *s, const uvm_view *v, const struct uvm_fault *f, struct uvm_thrash *out) {
  (void)s, (void)v;
  if (script.thrash)
    script.thrash(f, out);
  else
    *out = script.hint;
}
static inline void script_prefetch(void *s, const uvm_view *v, uvm_block_id b, uvm_node dst, const uvm_mask *faulted, uvm_mask *more) {
  (void)s, (void)v, (void)b, (void)faulted;
  script.prefetch_asked++;
  script.prefetch_node = dst;
  *more = script.more;
}
static inline void script_place(void *s, const uvm_view *v, const struct uvm_fault *f, const struct uvm_thrash *h, struct uvm_place *out) {
  (void)s, (void)v, (void)f, (void)h;
  *out = script.place;
}
static inline uint32_t script_counter(void *s, const uvm_view *v, const struct uvm_fault *f, const uvm_mask *touched, uint64_t count,
                                      uvm_mask *m) {
  (void)s, (void)v, (void)f, (void)touched, (void)count;
  *m = script.migrate;
  return 1000;
}
static inline void script_event(void *s, const uvm_view *v, const struct uvm_told *e) {
  (void)s, (void)v;
  UVM_PUSH(&script.tolds) = (struct told){*e, e->pages ? *e->pages : (uvm_mask){{0}}};
}

/* -- life -- */

static inline struct nv_options *begin_version(enum link l, uint64_t gpu_bytes, int hooks, uint32_t version) {
  world = uvm_mem(sizeof *world);
  script = (struct script){.policy = {.abi = UVM_POLICY_ABI,
                                      .name = "script",
                                      .on_event = script_event,
                                      .thrash = hooks & WITH_THRASH ? script_thrash : NULL,
                                      .prefetch = hooks & WITH_PREFETCH ? script_prefetch : NULL,
                                      .place = hooks & WITH_PLACE ? script_place : NULL,
                                      .counter = hooks & WITH_COUNTER ? script_counter : NULL}};
  const struct uvm_policy *parts[] = {&script.policy};
  world_open(world, &uvm_driver_nvidia, topology(l, gpu_bytes, version), parts, 1);
  world->plan_ns = PLAN_NS, world->work_ns = 1 * US;
  world_start(world);
  return &uvm__nv_state(&world->core)->options;
}
static inline struct nv_options *begin(enum link l, uint64_t gpu_bytes, int hooks) { return begin_version(l, gpu_bytes, hooks, 580); }

static inline void end(void) {
  world_close(world);
  uvm_mem_free(script.tolds.v);
  uvm_mem_free(world);
}

/* -- making things happen -- */

static inline bool next_event(void) { return world_next(world); }
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
static inline void settle(void) { world_run(world); }

static inline struct uvm_alloc *managed_at(uint64_t base, uint64_t bytes) { return managed_in(world->core.space, base, bytes); }
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
static inline size_t count_events(enum uvm_event_kind k) { return world_count(world, k); }
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
  for (size_t i = 0; i < script.tolds.n; i++) n += script.tolds.v[i].t.kind == k;
  return n;
}
static inline size_t count_prices(enum uvm_work w) {
  size_t n = 0;
  for (size_t i = 0; i < world->prices.n; i++) n += world->prices.v[i].work == w;
  return n;
}
static inline void forget(void) {
  world->events.n = script.tolds.n = world->prices.n = world->replays.n = 0, world->resumed = world->completed = 0;
}
#endif
