/* The world below a driver, scripted: virtual time and wake-ups in order, a ring for each GPU, plans that take a fixed time and
 * do everything but what the test refuses. On the small machine of fixture.h. */
#ifndef UVM_DRIVER_FIXTURE_H
#define UVM_DRIVER_FIXTURE_H
#include "core/host.h"
#include "tests/unit/fixture.h"

struct world_wake {
  struct uvm_driver_task *task;
  uvm_ns at;
};
struct world {
  struct uvm_core c;
  uvm_ns now, plan_ns, work_ns; /* a plan's and a piece of work's duration */
  UVM_VEC(struct world_wake) wakes;
  UVM_VEC(struct uvm_raw_fault) ring[PROCS];
  uint64_t get[PROCS];
  bool armed[PROCS];
  unsigned refusals, plans; /* plans still to come that move nothing; plans executed */
  unsigned replays, resumed, completed;
  char said[512];                   /* by hw.fail */
  UVM_VEC(struct uvm_event) events; /* observed; masks and blocks are dead by now */
  struct uvm_observer observer;
};

static inline uint64_t world_ring_put(void *ctx, uvm_proc gpu, uvm_ns now) { return (void)now, ((struct world *)ctx)->ring[gpu].n; }
static inline uint64_t world_ring_get(void *ctx, uvm_proc gpu, uint64_t get) {
  struct world *w = ctx;
  return get == UVM_NEVER ? w->get[gpu] : (w->get[gpu] = get);
}
static inline const struct uvm_raw_fault *world_ring_entry(void *ctx, uvm_proc gpu, uint64_t i) {
  return &((struct world *)ctx)->ring[gpu].v[i];
}
static inline void world_replay(void *ctx, uvm_proc gpu, uvm_ns now) { (void)gpu, (void)now, ((struct world *)ctx)->replays++; }
static inline void world_rearm(void *ctx, uvm_proc gpu, uvm_ns now) { (void)now, ((struct world *)ctx)->armed[gpu] = true; }
static inline uvm_ns world_price(void *ctx, enum uvm_work k, uvm_proc p, uint64_t n) {
  return (void)k, (void)p, (void)n, ((struct world *)ctx)->work_ns;
}
static inline void world_wake(void *ctx, struct uvm_driver_task *t, uvm_ns at) {
  UVM_PUSH(&((struct world *)ctx)->wakes) = (struct world_wake){t, at};
}
static inline void world_resume(void *ctx, uint32_t thread, uvm_ns now) { (void)thread, (void)now, ((struct world *)ctx)->resumed++; }
static inline void world_complete(void *ctx, uint64_t cookie, uvm_ns now) { (void)cookie, (void)now, ((struct world *)ctx)->completed++; }

static inline uvm_ns world_execute(void *ctx, struct uvm_plan *p, uvm_ns now) {
  struct world *w = ctx;
  bool refuse = w->refusals > 0;
  if (refuse) w->refusals--;
  w->plans++;
  for (size_t i = 0; i < p->steps.n; i++) {
    struct uvm_step *st = &p->steps.v[i];
    bool moves = st->kind == UVM_S_MIGRATE || st->kind == UVM_S_EVICT;
    st->begin = now, st->end = now + w->plan_ns;
    if (!refuse || !moves) st->done = st->pages;
  }
  return now + w->plan_ns;
}

__attribute__((format(printf, 3, 4))) static inline int world_fail(void *ctx, int code, const char *fmt, ...) {
  struct world *w = ctx;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(w->said, sizeof w->said, fmt, ap);
  va_end(ap);
  return code;
}

static inline void world_observe(void *ctx, const struct uvm_event *e) {
  struct world *w = ctx;
  struct uvm_event *kept = &UVM_PUSH(&w->events);
  *kept = *e;
  kept->mask = NULL, kept->block = NULL;
}

/* Before world_start: options, changes of the topology. */
static inline void world_open(struct world *w, const struct uvm_driver *d, uint64_t gpu_bytes, const struct uvm_policy *const *parts,
                              size_t n) {
  *w = (struct world){.plan_ns = 1000, .work_ns = 100};
  w->observer = (struct uvm_observer){w, world_observe};
  w->c = (struct uvm_core){.space = small_space(gpu_bytes), .driver = d, .observers = &w->observer, .nobservers = 1};
  w->c.hw = (struct uvm_hw){.ctx = w,
                            .ring_put = world_ring_put,
                            .ring_get = world_ring_get,
                            .ring_entry = world_ring_entry,
                            .replay = world_replay,
                            .rearm = world_rearm,
                            .execute = world_execute,
                            .price = world_price,
                            .wake = world_wake,
                            .resume = world_resume,
                            .complete = world_complete,
                            .fail = world_fail};
  w->c.state = uvm_mem(d->state_size);
  uvm_opt_defaults(d->opts, w->c.state);
  w->c.host = uvm_host_create(&w->c, parts, n);
  for (int p = 0; p < PROCS; p++) w->armed[p] = true;
}

static inline void world_option(struct world *w, const char *key, const char *value) {
  struct uvm_error e;
  assert_non_null(uvm_opt_find(w->c.driver->opts, key));
  if (uvm_opt_set(w->c.driver->opts, w->c.state, w->c.driver->name, key, value, &e)) fail_msg("%s", e.text);
}

static inline void world_start(struct world *w) {
  struct uvm_error e;
  if (w->c.driver->init(&w->c, &e) || uvm_host_start(w->c.host, &e)) fail_msg("%s", e.text);
}

static inline void world_close(struct world *w) {
  assert_string_equal(w->said, "");
  w->c.driver->fini(&w->c);
  uvm_space_destroy(w->c.space);
  uvm_host_destroy(w->c.host);
  uvm_mem_free(w->c.state);
  uvm_mem_free(w->wakes.v), uvm_mem_free(w->events.v);
  for (int p = 0; p < PROCS; p++) uvm_mem_free(w->ring[p].v);
}

/* Wakes tasks in order of time, then of asking, until nothing is left. */
static inline void world_run(struct world *w) {
  while (w->wakes.n) {
    size_t first = 0;
    for (size_t i = 1; i < w->wakes.n; i++)
      if (w->wakes.v[i].at < w->wakes.v[first].at) first = i;
    struct world_wake next = w->wakes.v[first];
    memmove(&w->wakes.v[first], &w->wakes.v[first + 1], (--w->wakes.n - first) * sizeof next);
    if (next.at > w->now) w->now = next.at;
    w->c.driver->wake(&w->c, next.task, w->now);
  }
}

/* A raw fault arrives; the bottom half is interrupted if it asked to be. */
static inline void world_ring(struct world *w, uvm_proc gpu, struct uvm_alloc *a, uint64_t offset, enum uvm_access access) {
  UVM_PUSH(&w->ring[gpu]) = (struct uvm_raw_fault){.alloc = a, .offset = offset, .access = (uint8_t)access, .time = w->now};
  if (!w->armed[gpu]) return;
  w->armed[gpu] = false;
  w->c.driver->interrupt(&w->c, gpu, w->now);
}

static inline size_t world_count(const struct world *w, enum uvm_event_kind kind) {
  size_t n = 0;
  for (size_t i = 0; i < w->events.n; i++) n += w->events.v[i].kind == kind;
  return n;
}
#endif
