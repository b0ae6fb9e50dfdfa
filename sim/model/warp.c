/* A warp's way: steps, parts of a step, pages of a part. Mapped pages pass by runs; a miss stalls the warp once it has issued
 * all it may. On the CPU a warp is a thread: one access at a time, and a miss is a trap. */
#include <assert.h>
#include "model/model.h"

/* Time: a GPU's memory answers one byte after the other, as links do; a thread just takes so long. */
static void pay(struct uvm_engine *x, struct uvm__device *d, struct uvm__warp *w, const struct uvm__touch *t, const struct uvm__look *look,
                uint64_t bytes, uint64_t count) {
  if (w->kernel->has_ns) return;
  uint64_t now_ps = x->now * 1000, answer = now_ps;
  if (look->node != x->machine->procs[d->proc].home) {
    answer = uvm__cross(x, d->proc, t->record, look->node, bytes, t->writing);
  } else if (d->proc) {
    answer = d->memory_ps = uvm_max(d->memory_ps, now_ps) + (uint64_t)((double)bytes * d->byte_ps);
  }
  if (d->proc)
    w->ready_ps = uvm_max(w->ready_ps, answer);
  else
    w->ready_ps += uvm_max(answer - now_ps, uvm__touch_ps(x, look->run, count));
}

void uvm__hit(struct uvm_engine *x, struct uvm__device *d, struct uvm__warp *w, const struct uvm__touch *t, const struct uvm__look *look) {
  struct uvm__record *r = t->record;
  uint64_t bytes = uvm__bytes_in(r, t->k, t->m, t->page, t->page + look->run);
  uint64_t count = uvm__elements_in(r, t->k, t->m, t->page, t->page + look->run);
  pay(x, d, w, t, look, bytes, count);
  if (!d->proc && t->writing) w->ready_ps += uvm__first_writes(x, r->alloc, t->page, look->run) * 1000;
  if (look->node != x->machine->procs[d->proc].home) {
    r->remote += bytes;
    if (d->proc) uvm__count_remote(x, d, r->alloc, t->page, look->run);
  }
  uvm__tell_hits(x, d->proc, r->alloc, t->page, look->run, uvm__access_of(r->op, t->writing), count);
}

static void trap(struct uvm_engine *x, uint32_t w, const struct uvm__record *r, uint64_t page, bool writing) {
  struct uvm_cpu_fault f = {
      .alloc = r->alloc, .offset = page * UVM_PAGE, .access = writing ? UVM_A_WRITE : UVM_A_READ, .thread = w + 1, .line = r->line};
  uvm__emit(x, (struct uvm_engine_event){.kind = UVM_N_CPU_FAULT, .fault = f});
}

/* A thread's traps tell no atomics from writes, so that is what it needs. */
static uint8_t access_at(const struct uvm__device *d, const struct uvm__record *r, bool writing) {
  uint8_t access = uvm__access_of(r->op, writing);
  return !d->proc && access == UVM_A_ATOMIC ? UVM_A_WRITE : access;
}

/* Touches the cursor's page and what follows alike. False: the warp cannot go on now. */
static bool touch(struct uvm_engine *x, struct uvm__device *d, uint32_t index) {
  struct uvm__warp *w = &d->warps.v[index];
  struct uvm__cursor *c = &w->at;
  struct uvm__record *r = &w->kernel->records.v[c->record];
  struct uvm__look look;
  w->loads |= !c->writing || r->op == UVM_OP_ATOMIC;
  if (uvm__look(x, d->proc, r->alloc, c->page, c->last, access_at(d, r, c->writing), r->line, &look)) return false;
  if (look.hit) {
    uvm__hit(x, d, w, &(struct uvm__touch){r, c->k, c->m, c->page, c->writing}, &look);
    if (w->trapped) uvm__tell_stall(x, 0, w->stall_since, r->line);
    w->trapped = false;
    c->page += look.run;
    return true;
  }
  if (d->proc) return uvm__fault(x, d, index) ? c->page++, true : false;
  if (!w->trapped) w->stall_since = x->now;
  w->trapped = true;
  return trap(x, index, r, c->page, c->writing), false;
}

static void end_step(struct uvm_engine *x, struct uvm__device *d, uint32_t index) {
  struct uvm__warp *w = &d->warps.v[index];
  uvm_ns at = x->now + (w->loads ? w->kernel->step_ns : w->kernel->store_step_ns);
  w->loads = false;
  if (d->proc)
    at = uvm_max(at, w->ready_ps / 1000);
  else
    at += w->ready_ps / 1000, w->ready_ps %= 1000;
  w->paced = true;
  uvm__at(x, at, UVM__WARP, d->proc, index);
}

void uvm__warp_run(struct uvm_engine *x, struct uvm__device *d, uint32_t index) {
  struct uvm__warp *w = &d->warps.v[index];
  struct uvm__cursor *c = &w->at;
  for (;;) {
    if (c->fence && w->outstanding) return;
    c->fence = false;
    if (c->page <= c->last) {
      if (!touch(x, d, index)) return;
    } else if (c->open && uvm__next_pages(&w->kernel->records.v[c->record], c)) {
      continue;
    } else if (!uvm__next_part(w->kernel, &w->lanes, c)) {
      if (!w->outstanding) end_step(x, d, index);
      return;
    }
  }
}

void uvm__warp_turn(struct uvm_engine *x, struct uvm__device *d, uint32_t index) {
  struct uvm__warp *w = &d->warps.v[index];
  if (w->paced) {
    w->paced = false;
    if (!uvm__next_step(w->kernel, &w->lanes, &w->at)) return uvm__warp_ended(x, d, index);
  }
  uvm__warp_run(x, d, index);
}
