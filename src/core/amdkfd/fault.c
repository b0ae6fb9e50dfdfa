/* A GPU's retry faults. The handler takes what the ring holds, without the repetitions that the filter in front of it drops,
 * and serves one fault after the other: KFD knows no batches. A dropped fault costs nothing but its interrupt: the GPU tries
 * its access again by itself. */
#include "core/amdkfd/amdkfd.h"
#include <assert.h>

#define FILTER_TICKS 5000 /* the same page within so many ticks of the interrupt clock is dropped */
#define TICK_NS 10        /* of that clock, a nominal 100 MHz; the length is not documented */
#define HASH 256

static kfd_step take, scan;

static struct kfd_gpu *gpu_of(const struct uvm_core *c, const struct uvm_driver_task *t) { return &uvm__kfd(c)->gpu[t->proc]; }

/* -- taking faults, filtered -- */

/* The last fault on the page, if it is recent enough to stand for this one. */
static struct kfd_fault *recent(struct kfd_gpu *g, uint64_t page, uvm_ns time) {
  uint32_t i = g->latest.v[page % HASH];
  while (i && g->faults.v[i - 1].page != page) i = g->earlier.v[i - 1];
  if (!i || time - g->faults.v[i - 1].raw.time >= (uvm_ns)FILTER_TICKS * TICK_NS) return NULL;
  return &g->faults.v[i - 1];
}

static void note(struct kfd_gpu *g, const struct uvm_raw_fault *raw) {
  uint64_t page = uvm__kfd_page(raw->alloc, raw->offset);
  struct kfd_fault *f = recent(g, page, raw->time);
  if (!f) {
    f = &UVM_PUSH(&g->faults);
    *f = (struct kfd_fault){.raw = *raw, .page = page};
    UVM_PUSH(&g->earlier) = g->latest.v[page % HASH];
    g->latest.v[page % HASH] = (uint32_t)g->faults.n;
  }
  f->merged++;
  f->access_mask |= (uint8_t)(1u << raw->access);
  if (raw->access > f->access) f->access = raw->access;
}

static void take(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct kfd_gpu *g = gpu_of(c, t);
  uint64_t get = c->hw.ring_get(c->hw.ctx, t->proc, UVM_NEVER), put = c->hw.ring_put(c->hw.ctx, t->proc, now);
  if (get == put) {
    g->task = NULL;
    uvm_proc proc = t->proc;
    uvm__kfd_task_done(c, t);
    c->hw.rearm(c->hw.ctx, proc, now);
    return;
  }
  g->faults.n = g->earlier.n = g->at = 0;
  g->latest.n = 0;
  while (g->latest.n < HASH) UVM_PUSH(&g->latest) = 0;
  for (uint64_t i = get; i < put; i++) note(g, c->hw.ring_entry(c->hw.ctx, t->proc, i));
  c->hw.ring_get(c->hw.ctx, t->proc, put);
  uvm__kfd_sleep(c, t, scan, now + c->hw.price(c->hw.ctx, UVM_W_FETCH, t->proc, put - get));
}

/* -- what is told -- */

static void smi_fault(struct uvm_core *c, const struct uvm_driver_task *t, enum kfd_smi_id id, char mark, uvm_ns now) {
  uint64_t page = gpu_of(c, t)->faults.v[gpu_of(c, t)->at].page;
  uvm__kfd_smi(c, (struct kfd_smi){.id = (uint8_t)id, .t = now, .pages = {page, page}, .to = t->proc, .mark = mark});
}

/* One fault is a batch of its own. */
static void tell_served(struct uvm_core *c, const struct uvm_driver_task *t, uvm_ns now) {
  const struct kfd_fault *f = &gpu_of(c, t)->faults.v[gpu_of(c, t)->at];
  struct uvm_event e = uvm_event_at(UVM_E_GPU_FAULT, t->begin, f->raw.alloc, f->raw.offset / UVM_PAGE * UVM_PAGE);
  e.access = f->access;
  e.why = t->why, e.rule = uvm_rule_name(c, t->why);
  e.proc = t->proc;
  e.dur = now - t->begin;
  e.value = e.raw = f->merged;
  e.distinct = 1;
  e.line = f->raw.line;
  uvm_observe(c, &e);
  e.kind = UVM_E_GPU_BATCH;
  uvm_observe(c, &e);
  uvm_tell(c->host, &(struct uvm_told){.kind = UVM_T_BATCH_END, .proc = t->proc, .begin = t->begin, .end = now}, now);
}

/* -- after a fault -- */

static void replayed(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct kfd_gpu *g = gpu_of(c, t);
  g->dropped = false;
  c->hw.replay(c->hw.ctx, t->proc, now);
  scan(c, t, now);
}

static void replay(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  uvm__kfd_sleep(c, t, replayed, now + c->hw.price(c->hw.ctx, UVM_W_REPLAY, t->proc, 1));
}

static void next_fault(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  gpu_of(c, t)->at++;
  uvm__kfd_unlock(c, t, now);
  replay(c, t, now);
}

static void served(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct kfd_gpu *g = gpu_of(c, t);
  *uvm__kfd_quiet(t->range, g->faults.v[g->at].page) = now + uvm__kfd(c)->dedupe_ns;
  smi_fault(c, t, KFD_PAGE_FAULT_END, g->migrated ? 'M' : 'U', now);
  tell_served(c, t, now);
  next_fault(c, t, now);
}

/* -- serving one -- */

static void map_window(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  uvm__kfd_map(c, t, gpu_of(c, t)->window, 1u << t->proc, served, now);
}

static void moved_away(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  gpu_of(c, t)->migrated = !t->move.failed;
  map_window(c, t, now);
}

/* A failure is ignored, and told as success, unless the data is in a third place: then it comes to system memory. */
static void moved(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct kfd_gpu *g = gpu_of(c, t);
  uint32_t actual = t->range->actual;
  g->migrated = !t->move.failed || uvm__kfd(c)->ignored_failure_says_m;
  if (t->move.failed && actual && actual != t->move.final)
    uvm__kfd_move(c, t, g->window, 0, moved_away, now);
  else
    map_window(c, t, now);
}

/* Where a placing policy wants the page; false: where it is. */
static bool ask_place(struct uvm_core *c, struct uvm_driver_task *t, const struct kfd_fault *f, struct kfd_place *to, uvm_ns now) {
  struct uvm_block *b = uvm_block_get(c->space, f->raw.alloc, f->raw.offset);
  struct uvm_fault ask = {.block = b->id,
                          .page = (uint16_t)uvm_page_of(f->raw.alloc, f->raw.offset),
                          .merged = uvm_merged(f->merged),
                          .proc = t->proc,
                          .access = f->access,
                          .access_mask = f->access_mask};
  struct uvm_thrash none = {0};
  struct uvm_place p;
  if (uvm_ask_place(c->host, &ask, &none, now, &p) < 0) return false;
  if (p.action == UVM_DUPLICATE)
    c->hw.fail(c->hw.ctx, UVM_EUSAGE, "driver amdkfd: the policy wants a page duplicated, which this driver never does");
  *to = (struct kfd_place){uvm__kfd_location(c->space, p.node), p.why};
  return p.action == UVM_MIGRATE;
}

/* With the lock, a fault that is not to be dropped. */
static void handle(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct kfd_gpu *g = gpu_of(c, t);
  const struct kfd_fault *f = &g->faults.v[g->at];
  t->range = uvm__kfd_get(c, f->raw.alloc, f->page);
  if (now < *uvm__kfd_quiet(t->range, f->page)) { /* mapped while this one waited for the lock */
    next_fault(c, t, now);
    return;
  }
  struct kfd_place best = uvm__kfd_restore_location(c->space, t->range, t->proc);
  assert(best.location != KFD_UNDEFINED); /* with XNACK on, every GPU has one of the two bits */
  t->begin = now, t->faults = 1;
  uvm_tell(c->host, &(struct uvm_told){.kind = UVM_T_BATCH_BEGIN, .proc = t->proc, .begin = now, .end = now}, now);
  smi_fault(c, t, KFD_PAGE_FAULT_START, f->access >= UVM_A_WRITE ? 'W' : 'R', now);
  g->window = uvm__kfd_window(t->range, f->page);
  g->migrated = false;
  bool move = !uvm_host_places(c->host) || ask_place(c, t, f, &best, now);
  t->why = best.why;
  if (move && (t->range->actual || best.location))
    uvm__kfd_move(c, t, g->window, best.location, moved, now);
  else {
    uvm__kfd_used(c, t, g->window, now);
    map_window(c, t, now);
  }
}

/* A range mapped lately takes no fault, of whatever granule: nor does anything happen then, so no lock is needed. */
static void scan(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct kfd_gpu *g = gpu_of(c, t);
  for (; g->at < g->faults.n; g->at++) {
    const struct kfd_fault *f = &g->faults.v[g->at];
    struct kfd_prange *r = uvm__kfd_find(c, f->raw.alloc, f->page);
    if (r && now < *uvm__kfd_quiet(r, f->page)) {
      g->dropped = true;
      continue;
    }
    uvm__kfd_lock(c, t, handle, now);
    return;
  }
  if (g->dropped)
    replay(c, t, now);
  else
    take(c, t, now);
}

void uvm__kfd_interrupt(struct uvm_core *c, uvm_proc gpu, uvm_ns now) {
  struct kfd_gpu *g = &uvm__kfd(c)->gpu[gpu];
  if (g->task) return;
  g->task = uvm__kfd_task(c, UVM_X_GPU_FAULT, UVM_C_FAULT, gpu);
  g->task->trigger = KFD_T_GPU_FAULT;
  take(c, g->task, now);
}
