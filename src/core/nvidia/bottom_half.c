/* A GPU's fault loop. One run per interrupt: batches are fetched, served block by block and replayed until the ring is
 * empty, or until the loop has done enough of them (20, or 5 with a throttled fault) and lets others run. */
#include "core/nvidia/nvidia.h"
#include <assert.h>

static void fetch(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now);
static void serve(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now);

static struct nv_gpu *gpu_of(struct uvm_driver_task *t) { return (struct nv_gpu *)t; }
static const struct nv_options *options(const struct uvm_core *c) { return &uvm__nv_state(c)->options; }

static void tell_batch(struct uvm_core *c, const struct nv_gpu *g, enum uvm_told_kind kind, uvm_ns now) {
  struct uvm_told t = {.kind = (uint8_t)kind, .proc = g->proc, .src = UVM_NONE, .dst = UVM_NONE, .begin = now, .end = now};
  uvm_tell(c->host, &t, now);
}

/* One batch event for the entries served since the last: from the first arrival until now, at the lowest page. */
static void observe_batch(struct uvm_core *c, struct nv_gpu *g, uvm_ns now) {
  assert(g->told < g->next);
  const struct nv_entry *first = &g->batch.entries.v[g->told];
  struct uvm_event e = uvm_event_at(UVM_E_GPU_BATCH, first->time, first->alloc, first->offset);
  for (size_t i = g->told; i < g->next; i++) {
    const struct nv_entry *x = &g->batch.entries.v[i];
    if (x->time < e.t) e.t = x->time;
    e.raw += x->merged;
  }
  e.proc = g->proc;
  e.dur = now - e.t;
  e.wait = g->since - e.t;
  e.value = first->merged;
  e.access = first->access;
  e.distinct = g->next - g->told;
  e.line = first->line;
  g->told = g->next, g->since = now;
  uvm_observe(c, &e);
}

/* -- the end of a batch and of the loop -- */

static void over(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct nv_gpu *g = gpu_of(t);
  g->running = false;
  c->hw.rearm(c->hw.ctx, g->proc, now);
}

static bool at_limit(const struct uvm_core *c, const struct nv_gpu *g) {
  return g->throttled_batches >= options(c)->max_throttle_per_service || g->batches >= options(c)->max_batches_per_service;
}

static void leave(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct nv_gpu *g = gpu_of(t);
  if (!at_limit(c, g))
    over(c, t, now);
  else
    uvm__nv_sleep(c, t, over, now + c->hw.price(c->hw.ctx, UVM_W_RESTART, g->proc, g->throttled_batches));
}

static void last_replayed(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  c->hw.replay(c->hw.ctx, gpu_of(t)->proc, now);
  leave(c, t, now);
}

static void end_loop(struct uvm_core *c, struct nv_gpu *g, uvm_ns now) {
  if (g->replayed && options(c)->fault_replay_policy != NV_REPLAY_ONCE)
    leave(c, &g->task, now);
  else
    uvm__nv_sleep(c, &g->task, last_replayed, now + c->hw.price(c->hw.ctx, UVM_W_REPLAY, g->proc, g->batch.raw));
}

static void end_batch(struct uvm_core *c, struct nv_gpu *g, uvm_ns now) {
  tell_batch(c, g, UVM_T_BATCH_END, now);
  g->throttled_batches += g->throttled;
  g->batches++;
  fetch(c, &g->task, now);
}

/* -- replay -- */

static void replayed(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct nv_gpu *g = gpu_of(t);
  if (g->next < g->batch.entries.n)
    serve(c, t, now);
  else
    end_batch(c, g, now);
}

/* Only a flushing driver waits, so that what it fetches next is what still misses. */
static void issue(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct nv_gpu *g = gpu_of(t);
  c->hw.replay(c->hw.ctx, g->proc, now);
  g->replayed = true;
  observe_batch(c, g, now);
  if (options(c)->fault_replay_policy == NV_REPLAY_BATCH_FLUSH)
    uvm__nv_sleep(c, t, replayed, now + c->hw.price(c->hw.ctx, UVM_W_REPLAY_WAIT, g->proc, 1));
  else
    replayed(c, t, now);
}

static void replay(struct uvm_core *c, struct nv_gpu *g, uvm_ns now) {
  if (options(c)->fault_replay_policy == NV_REPLAY_BATCH_FLUSH) uvm__nv_flush(c, &g->batch, g->proc, now);
  uvm__nv_sleep(c, &g->task, issue, now + c->hw.price(c->hw.ctx, UVM_W_REPLAY, g->proc, g->batch.raw));
}

/* -- service -- */

static void serve(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct nv_gpu *g = gpu_of(t);
  t->step = serve; /* what the service has called when it can go on */
  while (g->next < g->batch.entries.n) {
    if (!uvm__nv_service_step(c, &g->service, now)) return;
    g->next = g->end;
    if (options(c)->fault_replay_policy == NV_REPLAY_BLOCK) {
      replay(c, g, now);
      return;
    }
  }
  if (options(c)->fault_replay_policy != NV_REPLAY_ONCE) {
    replay(c, g, now);
    return;
  }
  observe_batch(c, g, now);
  end_batch(c, g, now);
}

/* The maximal run of faults in the block of the next one. */
static struct uvm_block *locate(struct uvm_core *c, struct nv_service *v) {
  struct nv_gpu *g = gpu_of(v->task);
  const struct nv_entry *e = g->batch.entries.v;
  struct uvm_block *b = uvm_block_get(c->space, e[g->next].alloc, e[g->next].offset);
  uint64_t end = uvm__nv_block_end(b);
  for (g->end = g->next + 1; g->end < g->batch.entries.n; g->end++)
    if (e[g->end].alloc != e[g->next].alloc || e[g->end].offset >= end) break;
  return b;
}

static void observe_fault(struct uvm_core *c, const struct nv_gpu *g, const struct nv_entry *e, const struct nv_verdict *r, uvm_ns now) {
  struct uvm_event o = uvm_event_at(UVM_E_GPU_FAULT, now, e->alloc, e->offset);
  o.proc = g->proc;
  o.value = e->merged;
  o.access = e->access;
  o.why = r->why, o.hint = r->hint, o.rule = r->rule;
  o.spurious = r->outcome == NV_ALREADY_MAPPED;
  o.bytes = UVM_PAGE;
  o.block = g->service.block;
  o.line = e->line;
  uvm_observe(c, &o);
}

static bool decide(struct uvm_core *c, struct nv_service *v, uvm_ns now) {
  struct nv_gpu *g = gpu_of(v->task);
  for (size_t i = g->next; i < g->end; i++) {
    const struct nv_entry *e = &g->batch.entries.v[i];
    struct uvm_fault f = {.block = v->block->id,
                          .page = (uint16_t)uvm_page_of(e->alloc, e->offset),
                          .merged = uvm_merged(e->merged),
                          .proc = g->proc,
                          .access = e->access,
                          .access_mask = e->access_mask};
    struct nv_verdict r = uvm__nv_admit(c, v, &f, now);
    if (r.outcome == NV_REFUSED) return false;
    if (r.outcome == NV_HELD) {
      g->throttled = true;
      uvm__nv_hold(c, v->block, f.page, g->proc, r.until, now);
    }
    if (!v->again) observe_fault(c, g, e, &r, now);
  }
  return !uvm_mask_empty(&v->d.faulted) && uvm__nv_prefetch(c, v, now);
}

/* -- fetch -- */

/* Without HMM and shared page tables only managed memory can be served. */
static bool all_managed(struct uvm_core *c, const struct nv_gpu *g) {
  for (size_t i = 0; i < g->batch.entries.n; i++) {
    const struct uvm_alloc *a = g->batch.entries.v[i].alloc;
    if (a->kind == UVM_MANAGED) continue;
    c->hw.fail(c->hw.ctx, UVM_EINPUT, "%s faults on allocation %s, which is not managed memory, at offset %llu",
               c->space->procs[g->proc].name, a->id, (unsigned long long)g->batch.entries.v[i].offset);
    return false;
  }
  return true;
}

static void fetch(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct nv_gpu *g = gpu_of(t);
  g->next = g->told = 0, g->throttled = false;
  if (at_limit(c, g) || !uvm__nv_fetch(c, &g->batch, g->proc, now)) {
    end_loop(c, g, now);
    return;
  }
  if (!all_managed(c, g)) return;
  g->since = now;
  tell_batch(c, g, UVM_T_BATCH_BEGIN, now);
  uvm__nv_sleep(c, t, serve, now + c->hw.price(c->hw.ctx, UVM_W_FETCH, g->proc, g->batch.raw));
}

void uvm__nv_interrupt(struct uvm_core *c, uvm_proc gpu, uvm_ns now) {
  struct nv_gpu *g = &uvm__nv_state(c)->gpu[gpu];
  assert(gpu > 0 && gpu < c->space->topology.nprocs);
  if (g->running) return;
  g->service = (struct nv_service){.task = &g->task,
                                   .locate = locate,
                                   .decide = decide,
                                   .proc = gpu,
                                   .asker = gpu,
                                   .context = UVM_X_GPU_FAULT,
                                   .cause = UVM_C_FAULT,
                                   .mapping = NV_MAP_ACCESS,
                                   .plan = g->service.plan};
  g->proc = gpu;
  g->running = true, g->replayed = false;
  g->batches = g->throttled_batches = 0;
  fetch(c, &g->task, now);
}
