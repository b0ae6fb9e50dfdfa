/* The world below a driver, scripted: virtual time and wake-ups in order, a ring for each GPU, plans and work of fixed length;
 * plans do everything but what the test refuses. What happens is recorded. On the small machine of fixture.h. */
#ifndef UVM_DRIVER_FIXTURE_H
#define UVM_DRIVER_FIXTURE_H
#include "core/host.h"
#include "tests/unit/fixture.h"

struct queued {
  struct uvm_driver_task *task; /* NULL: on_resume */
  uvm_ns at;
};
struct priced {
  enum uvm_work work;
  uint64_t n;
  uvm_ns at;
};
struct seen { /* e.mask and e.block are dead by now; pages keeps the mask */
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
  uvm_ns now, plan_ns, work_ns; /* a plan's and a piece of work's duration; a restart and a nap take twice as long */
  UVM_VEC(struct queued) queue;
  UVM_VEC(struct uvm_raw_fault) ring[PROCS];
  uint64_t get[PROCS];
  bool armed[PROCS];
  UVM_VEC(struct priced) prices;
  UVM_VEC(struct seen) events;
  UVM_VEC(struct ran) plans;
  UVM_VEC(uvm_ns) replays;
  UVM_VEC(struct uvm_counter_note) notes;   /* pending */
  UVM_VEC(struct uvm_counter_note) cleared; /* count: the threshold */
  unsigned resumed, completed;
  char failure[512];
  /* the script */
  unsigned refusals; /* plans still to come that move nothing */
  void (*on_replay)(uvm_proc gpu);
  void (*on_resume)(void); /* from the queue, as a thread's access would be */
  void (*on_plan)(const struct uvm_plan *p);
};

/* -- the hardware; ctx is the world -- */

static inline uint64_t world_ring_put(void *ctx, uvm_proc g, uvm_ns now) {
  const struct world *w = ctx;
  uint64_t n = 0;
  while (n < w->ring[g].n && w->ring[g].v[n].time <= now) n++;
  return n;
}
static inline uint64_t world_ring_get(void *ctx, uvm_proc g, uint64_t get) {
  struct world *w = ctx;
  if (get != UVM_NEVER) w->get[g] = get;
  return w->get[g];
}
static inline const struct uvm_raw_fault *world_ring_entry(void *ctx, uvm_proc g, uint64_t i) {
  const struct world *w = ctx;
  assert_true(i >= w->get[g] && i < w->ring[g].n);
  return &w->ring[g].v[i];
}
static inline void world_replay(void *ctx, uvm_proc g, uvm_ns now) {
  struct world *w = ctx;
  UVM_PUSH(&w->replays) = now;
  if (w->on_replay) w->on_replay(g);
}
static inline void world_rearm(void *ctx, uvm_proc g, uvm_ns now) { (void)now, ((struct world *)ctx)->armed[g] = true; }
static inline size_t world_notes(void *ctx, uvm_proc g, struct uvm_counter_note *out, size_t max) {
  (void)g;
  struct world *w = ctx;
  size_t n = w->notes.n < max ? w->notes.n : max;
  if (n) memcpy(out, w->notes.v, n * sizeof *out);
  w->notes.n = 0;
  return n;
}
static inline void world_clear(void *ctx, uvm_proc g, struct uvm_alloc *a, uint64_t offset, uint32_t threshold) {
  (void)g;
  UVM_PUSH(&((struct world *)ctx)->cleared) = (struct uvm_counter_note){a, offset, 0, threshold};
}
static inline uvm_ns world_prepare(void *ctx, const struct uvm_plan *p, uvm_ns now) {
  (void)ctx, (void)p;
  return now;
}
static inline uvm_ns world_execute(void *ctx, struct uvm_plan *p, uvm_ns now) {
  struct world *w = ctx;
  bool refuse = w->refusals > 0;
  if (refuse) w->refusals--;
  for (size_t i = 0; i < p->steps.n; i++) {
    struct uvm_step *st = &p->steps.v[i];
    bool moves = st->kind == UVM_S_MIGRATE || st->kind == UVM_S_EVICT;
    st->begin = st->pushed = now, st->end = now + w->plan_ns;
    if (!refuse || !moves) st->done = st->pages;
  }
  struct ran *r = &UVM_PUSH(&w->plans);
  *r = (struct ran){p->context, p->steps.n, uvm_mem(p->steps.n * sizeof *r->v)};
  memcpy(r->v, p->steps.v, p->steps.n * sizeof *r->v);
  if (w->on_plan) w->on_plan(p);
  return now + w->plan_ns;
}
static inline uvm_ns world_price(void *ctx, enum uvm_work k, uvm_proc p, uint64_t n) {
  (void)p;
  struct world *w = ctx;
  UVM_PUSH(&w->prices) = (struct priced){k, n, w->now};
  return k == UVM_W_RESTART || k == UVM_W_CPU_NAP ? 2 * w->work_ns : w->work_ns;
}
static inline void world_wake(void *ctx, struct uvm_driver_task *t, uvm_ns at) {
  UVM_PUSH(&((struct world *)ctx)->queue) = (struct queued){t, at};
}
static inline void world_resume(void *ctx, uint32_t thread, uvm_ns now) {
  (void)thread;
  struct world *w = ctx;
  w->resumed++;
  if (w->on_resume) UVM_PUSH(&w->queue) = (struct queued){NULL, now};
}
static inline void world_complete(void *ctx, uint64_t cookie, uvm_ns now) { (void)cookie, (void)now, ((struct world *)ctx)->completed++; }
__attribute__((format(printf, 3, 4))) static inline int world_fail(void *ctx, int code, const char *fmt, ...) {
  struct world *w = ctx;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(w->failure, sizeof w->failure, fmt, ap);
  va_end(ap);
  return code;
}
static inline void world_observe(void *ctx, const struct uvm_event *e) {
  struct seen *s = &UVM_PUSH(&((struct world *)ctx)->events);
  *s = (struct seen){*e, e->mask ? *e->mask : (uvm_mask){{0}}};
  s->e.mask = NULL, s->e.block = NULL;
}

/* -- life -- */

/* Options come between open and start. */
static inline void world_open(struct world *w, const struct uvm_driver *d, const struct uvm_topology *t,
                              const struct uvm_policy *const *parts, size_t n) {
  *w = (struct world){.plan_ns = 1000, .work_ns = 100};
  w->observer = (struct uvm_observer){w, world_observe};
  w->core = (struct uvm_core){.space = uvm_space_create(t), .driver = d, .observers = &w->observer, .nobservers = 1};
  w->core.hw = (struct uvm_hw){.ctx = w,
                               .ring_put = world_ring_put,
                               .ring_get = world_ring_get,
                               .ring_entry = world_ring_entry,
                               .replay = world_replay,
                               .rearm = world_rearm,
                               .notes = world_notes,
                               .clear_counter = world_clear,
                               .prepare = world_prepare,
                               .execute = world_execute,
                               .price = world_price,
                               .wake = world_wake,
                               .resume = world_resume,
                               .complete = world_complete,
                               .fail = world_fail};
  w->core.state = uvm_mem(d->state_size);
  uvm_opt_defaults(d->opts, w->core.state);
  w->core.host = uvm_host_create(&w->core, parts, n);
  for (int p = 0; p < PROCS; p++) w->armed[p] = true;
}

static inline void world_option(struct world *w, const char *key, const char *value) {
  const struct uvm_driver *d = w->core.driver;
  struct uvm_error e;
  assert_non_null(uvm_opt_find(d->opts, key));
  if (uvm_opt_set(d->opts, w->core.state, d->name, key, value, &e)) fail_msg("%s", e.text);
}

static inline void world_start(struct world *w) {
  struct uvm_error e;
  if (w->core.driver->init(&w->core, &e) || uvm_host_start(w->core.host, &e)) fail_msg("%s", e.text);
}

static inline void world_close(struct world *w) {
  w->core.driver->fini(&w->core);
  uvm_space_destroy(w->core.space);
  uvm_host_destroy(w->core.host);
  uvm_mem_free(w->core.state);
  for (size_t i = 0; i < w->plans.n; i++) uvm_mem_free(w->plans.v[i].v);
  for (int p = 0; p < PROCS; p++) uvm_mem_free(w->ring[p].v);
  uvm_mem_free(w->queue.v), uvm_mem_free(w->prices.v), uvm_mem_free(w->events.v), uvm_mem_free(w->plans.v);
  uvm_mem_free(w->replays.v), uvm_mem_free(w->notes.v), uvm_mem_free(w->cleared.v);
}

/* -- time -- */

/* The earliest wake-up, of equals the first asked for; or the interrupt of a GPU whose ring has filled. False: neither. */
static inline bool world_next(struct world *w) {
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < w->queue.n; i++)
    if (best == SIZE_MAX || w->queue.v[i].at < w->queue.v[best].at) best = i;
  for (uvm_proc g = 1; g < PROCS; g++) {
    if (!w->armed[g] || w->get[g] >= w->ring[g].n) continue;
    uvm_ns at = uvm_max(w->ring[g].v[w->get[g]].time, w->now);
    if (best != SIZE_MAX && w->queue.v[best].at <= at) continue;
    w->now = at;
    w->armed[g] = false;
    w->core.driver->interrupt(&w->core, g, at);
    return true;
  }
  if (best == SIZE_MAX) return false;
  struct queued q = w->queue.v[best];
  memmove(&w->queue.v[best], &w->queue.v[best + 1], (--w->queue.n - best) * sizeof q);
  w->now = uvm_max(w->now, q.at);
  if (q.task)
    w->core.driver->wake(&w->core, q.task, w->now);
  else
    w->on_resume();
  return true;
}
static inline void world_run(struct world *w) {
  while (world_next(w)) continue;
}

/* -- looking at what happened -- */

static inline size_t world_count(const struct world *w, enum uvm_event_kind k) {
  size_t n = 0;
  for (size_t i = 0; i < w->events.n; i++) n += w->events.v[i].e.kind == k;
  return n;
}
#endif
