/* Tasks: who waits for what. A task does one thing at a time and names the function that goes on from there. */
#include "core/amdkfd/amdkfd.h"
#include <assert.h>

struct uvm_driver_task *uvm__kfd_task(struct uvm_core *c, enum uvm_context context, enum uvm_cause cause, uvm_proc proc) {
  struct kfd_state *s = uvm__kfd(c);
  struct uvm_driver_task *t = s->spare;
  if (t)
    s->spare = t->next;
  else
    UVM_PUSH(&s->tasks) = t = uvm_mem(sizeof *t);
  t->context = (uint8_t)context, t->cause = (uint8_t)cause, t->proc = proc;
  t->why = KFD_WHY_NONE, t->faults = 0;
  return t;
}

void uvm__kfd_task_done(struct uvm_core *c, struct uvm_driver_task *t) {
  struct kfd_state *s = uvm__kfd(c);
  assert(s->holder != t);
  t->next = s->spare;
  s->spare = t;
}

void uvm__kfd_sleep(struct uvm_core *c, struct uvm_driver_task *t, kfd_step *then, uvm_ns at) {
  t->then = then;
  c->hw.wake(c->hw.ctx, t, at);
}

/* -- the lock -- */

void uvm__kfd_lock(struct uvm_core *c, struct uvm_driver_task *t, kfd_step *then, uvm_ns now) {
  struct kfd_state *s = uvm__kfd(c);
  t->then = then;
  if (!s->holder) {
    s->holder = t;
    then(c, t, now);
    return;
  }
  t->next = NULL;
  if (s->last_waiting)
    s->last_waiting->next = t;
  else
    s->first_waiting = t;
  s->last_waiting = t;
}

void uvm__kfd_unlock(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct kfd_state *s = uvm__kfd(c);
  assert(s->holder == t);
  t->range = NULL;
  s->holder = s->first_waiting;
  if (!s->holder) return;
  s->first_waiting = s->holder->next;
  if (!s->first_waiting) s->last_waiting = NULL;
  c->hw.wake(c->hw.ctx, s->holder, now);
}

/* -- what a plan changed -- */

/* VRAM pages of the range that holds the page, and of its neighbours: a buffer object's blocks may be shared by several. */
static void account_run(struct uvm_core *c, struct uvm_alloc *a, struct kfd_span run, uint32_t vram, bool came) {
  while (run.first <= run.last) {
    struct kfd_prange *r = uvm__kfd_find(c, a, run.first);
    assert(r && (!r->actual || r->actual == vram));
    uint64_t last = run.last < r->pages.last ? run.last : r->pages.last, n = last - run.first + 1;
    assert(came || r->vram_pages >= n);
    r->vram_pages = came ? r->vram_pages + n : r->vram_pages - n;
    r->actual = r->vram_pages ? vram : 0;
    run.first = last + 1;
  }
}

static void account(struct uvm_core *c, const struct uvm_step *st) {
  if (st->kind != UVM_S_POPULATE && st->kind != UVM_S_MIGRATE && st->kind != UVM_S_EVICT) return;
  struct uvm_alloc *a = st->block->range->alloc;
  uint32_t from = st->kind == UVM_S_POPULATE ? 0 : uvm__kfd_location(c->space, st->src), to = uvm__kfd_location(c->space, st->dst);
  for (int first, end = 0; uvm_mask_run(&st->done, &first, &end);) {
    uint64_t page = uvm__kfd_page(a, uvm_block_offset(st->block, first));
    struct kfd_span run = {page, page + (uint64_t)(end - first) - 1};
    if (from) account_run(c, a, run, from, false);
    if (to) account_run(c, a, run, to, true);
  }
}

/* Pages that Linux refused to move stay where they were, so nobody is mapped to where they were to go. */
static void leave_unmapped(struct uvm_plan *p) {
  for (size_t i = 0; i < p->steps.n; i++)
    for (size_t j = 0; p->steps.v[i].kind == UVM_S_MAP && j < i; j++) {
      const struct uvm_step *moved = &p->steps.v[j];
      uvm_mask stayed = moved->pages;
      uvm_mask_andnot(&stayed, &moved->done);
      if (moved->block == p->steps.v[i].block && moved->kind != UVM_S_UNMAP) uvm_mask_andnot(&p->steps.v[i].done, &stayed);
    }
}

uvm_ns uvm__kfd_plan_run(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  for (size_t i = 0; i < t->plan.steps.n; i++) t->plan.steps.v[i].cause = t->cause, t->plan.steps.v[i].why = t->why;
  return uvm_plan_run(c, &t->plan, now);
}

void uvm__kfd_plan_finish(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  leave_unmapped(&t->plan);
  uvm_plan_finish(c, &t->plan, now);
  for (size_t i = 0; i < t->plan.steps.n; i++) account(c, &t->plan.steps.v[i]);
}

/* -- a plan for each block -- */

static kfd_step sweep_on;

static void block_done(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  uvm__kfd_plan_finish(c, t, now);
  sweep_on(c, t, now);
}

static void sweep_on(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct kfd_sweep *w = &t->sweep;
  while (w->pages.first <= w->pages.last) {
    struct kfd_part p = uvm__kfd_part(c->space, w->alloc, w->pages);
    if (p.block->busy_until) { /* a first touch by the CPU, which needs no lock */
      uvm__kfd_sleep(c, t, sweep_on, p.block->busy_until > now ? p.block->busy_until : now);
      return;
    }
    w->pages.first = p.next;
    uvm_plan_clear(&t->plan);
    t->plan.context = t->context, t->plan.proc = t->proc, t->plan.block = p.block, t->plan.faults = t->faults;
    w->build(c, t, p.block, &p.pages);
    if (!t->plan.steps.n) continue;
    t->faults = 0;
    uvm_ns end = uvm__kfd_plan_run(c, t, now);
    if (end != UVM_NEVER) uvm__kfd_sleep(c, t, block_done, end);
    return;
  }
  w->after(c, t, now);
}

void uvm__kfd_sweep(struct uvm_core *c, struct uvm_driver_task *t, struct uvm_alloc *a, struct kfd_span pages, kfd_build *build,
                    kfd_step *after, uvm_ns now) {
  t->sweep.alloc = a, t->sweep.pages = pages, t->sweep.build = build, t->sweep.after = after;
  sweep_on(c, t, now);
}
