#include "core/plan.h"
#include "core/apply.h"
#include <assert.h>

/* -- building -- */

void uvm_plan_clear(struct uvm_plan *p) {
  struct uvm_step *v = p->steps.v;
  size_t cap = p->steps.cap;
  *p = (struct uvm_plan){.steps = {.v = v, .cap = cap}};
}

void uvm_plan_release(struct uvm_plan *p) {
  uvm_mem_free(p->steps.v);
  *p = (struct uvm_plan){0};
}

struct uvm_step *uvm_plan_add(struct uvm_plan *p, enum uvm_step_kind kind, struct uvm_block *b, uvm_proc proc, const uvm_mask *pages) {
  if (uvm_mask_empty(pages)) return NULL;
  struct uvm_step *st = &UVM_PUSH(&p->steps);
  *st = (struct uvm_step){.kind = (uint8_t)kind, .proc = proc, .block = b, .pages = *pages};
  return st;
}

/* First page after `a` (below b) that `prefetched` tells apart from a. */
static int run_end(const uvm_mask *prefetched, int a, int b) {
  int end = uvm_mask_test(prefetched, a) ? uvm_mask_gap(prefetched, a) : uvm_mask_next(prefetched, a);
  return end < 0 || end > b ? b : end;
}

void uvm_plan_transfer(struct uvm_plan *p, enum uvm_step_kind kind, struct uvm_block *b, uvm_proc proc, uvm_node src, uvm_node dst,
                       const uvm_mask *pages, const uvm_mask *prefetched, enum uvm_cause cause, const uint8_t *why) {
  static const uvm_mask none;
  if (!prefetched) prefetched = &none;
  for (int first, last = 0; uvm_mask_run(pages, &first, &last);)
    for (int a = first, end; a < last; a = end) {
      end = run_end(prefetched, a, last);
      uvm_mask run = uvm_mask_range(a, end);
      struct uvm_step *st = uvm_plan_add(p, kind, b, proc, &run);
      st->src = src, st->dst = dst;
      st->cause = uvm_mask_test(prefetched, a) ? UVM_C_PREFETCH : (uint8_t)cause;
      st->why = why ? why[a] : 0;
    }
}

/* -- what a step does to the masks -- */

static void became_resident(const struct uvm_space *s, struct uvm_block *b, uvm_node n, const uvm_mask *m) {
  uvm_mask_or(uvm_block_resident(s, b, n), m);
  for (uvm_proc p = 0; p < s->topology.nprocs; p++)
    if (s->procs[p].home == n) uvm_mask_andnot(uvm_block_evicted(s, b, p), m);
}

static void left(const struct uvm_space *s, struct uvm_block *b, uvm_node n, const uvm_mask *m, bool evicted) {
  uvm_mask_andnot(uvm_block_resident(s, b, n), m);
  uvm_mask_andnot(uvm_block_unproven(s, b, n), m);
  if (n == s->procs[0].home) uvm_mask_andnot(uvm_block_unwritten(s, b), m);
  for (uvm_proc p = 0; evicted && p < s->topology.nprocs; p++)
    if (s->procs[p].home == n) uvm_mask_or(uvm_block_evicted(s, b, p), m);
}

uvm_mask uvm__held_twice(const struct uvm_space *s, const struct uvm_block *b) {
  uvm_mask once = {{0}}, twice = {{0}};
  for (uvm_node n = 0; n < s->topology.nnodes; n++) {
    uvm_mask again = once;
    uvm_mask_and(&again, uvm_block_resident(s, b, n));
    uvm_mask_or(&twice, &again);
    uvm_mask_or(&once, uvm_block_resident(s, b, n));
  }
  return twice;
}

static void unmap(const struct uvm_space *s, struct uvm_block *b, const struct uvm_step *st, const uvm_mask *m) {
  int keep = st->access == UVM_A_PREFETCH ? -1 : (int)uvm_level_of(st->access);
  for (int l = keep + 1; l < UVM_MAP_LEVELS; l++) uvm_mask_andnot(uvm_block_mapped(s, b, st->proc, (enum uvm_level)l), m);
}

static void map(const struct uvm_space *s, struct uvm_block *b, const struct uvm_step *st, const uvm_mask *m) {
  enum uvm_level top = uvm_level_of(st->access);
  for (int l = 0; l <= (int)top; l++) uvm_mask_or(uvm_block_mapped(s, b, st->proc, (enum uvm_level)l), m);
  if (top >= UVM_MAP_WRITE) uvm_mask_or(uvm_block_dirty(s, b), m);
}

#ifndef NDEBUG
static bool nowhere(const struct uvm_space *s, const struct uvm_block *b, const uvm_mask *m) {
  uvm_mask populated = uvm_block_populated(s, b);
  return !uvm_mask_meets(m, &populated);
}

/* The pages are where the step takes them from, and not yet where it puts them. */
static bool can_arrive(const struct uvm_space *s, const struct uvm_block *b, const struct uvm_step *st, const uvm_mask *m) {
  return uvm_mask_subset(m, uvm_block_resident(s, b, st->src)) && !uvm_mask_meets(m, uvm_block_resident(s, b, st->dst));
}
#endif

/* A page that was copied on somebody's guess has to prove itself. */
static void arrived(const struct uvm_space *s, struct uvm_block *b, const struct uvm_step *st, const uvm_mask *m) {
  became_resident(s, b, st->dst, m);
  if (st->cause == UVM_C_PREFETCH) uvm_mask_or(uvm_block_unproven(s, b, st->dst), m);
  if (st->cause != UVM_C_FAULT && st->dst == s->procs[0].home) uvm_mask_or(uvm_block_unwritten(s, b), m);
}

void uvm__step_apply(const struct uvm_space *s, struct uvm_block *b, const struct uvm_step *st, const uvm_mask *m) {
  switch ((enum uvm_step_kind)st->kind) {
  case UVM_S_POPULATE:
    assert(nowhere(s, b, m));
    became_resident(s, b, st->dst, m);
    uvm_mask_or(uvm_block_dirty(s, b), m);
    break;
  case UVM_S_MIGRATE:
  case UVM_S_EVICT:
    assert(can_arrive(s, b, st, m));
    left(s, b, st->src, m, st->kind == UVM_S_EVICT);
    arrived(s, b, st, m);
    uvm_mask_andnot(uvm_block_dirty(s, b), m);
    break;
  case UVM_S_DUPLICATE:
    assert(can_arrive(s, b, st, m));
    arrived(s, b, st, m);
    *uvm_block_duplicated(s, b) = uvm__held_twice(s, b);
    break;
  case UVM_S_COLLAPSE:
    assert(uvm_mask_subset(m, uvm_block_resident(s, b, st->src)) && uvm_mask_subset(m, uvm_block_duplicated(s, b)));
    left(s, b, st->src, m, st->cause == UVM_C_EVICTION);
    *uvm_block_duplicated(s, b) = uvm__held_twice(s, b);
    break;
  case UVM_S_UNMAP: unmap(s, b, st, m); break;
  case UVM_S_MAP: map(s, b, st, m); break;
  }
}

/* -- making it so -- */

void uvm_plan_hold(struct uvm_plan *p, uvm_ns until) {
  p->end = until;
  for (size_t i = 0; i < p->steps.n; i++) p->steps.v[i].block->busy_until = until;
}

void uvm_plan_begin(struct uvm_space *s, struct uvm_plan *p) {
  for (size_t i = 0; i < p->steps.n; i++) {
    const struct uvm_step *st = &p->steps.v[i];
    if (st->kind == UVM_S_UNMAP) uvm__step_apply(s, st->block, st, &st->pages);
  }
}

static void commit_step(struct uvm_space *s, struct uvm_step *st) {
  assert(uvm_mask_subset(&st->done, &st->pages));
  if (st->kind == UVM_S_UNMAP || uvm_mask_empty(&st->done)) return;
  struct uvm_block *b = st->block;
  bool leaves = st->kind == UVM_S_MIGRATE || st->kind == UVM_S_EVICT || st->kind == UVM_S_COLLAPSE;
  bool comes = st->kind != UVM_S_COLLAPSE && st->kind != UVM_S_MAP;
  uvm_mask src = leaves ? *uvm_block_resident(s, b, st->src) : (uvm_mask){{0}};
  uvm_mask dst = comes ? *uvm_block_resident(s, b, st->dst) : (uvm_mask){{0}};
  uvm__step_apply(s, b, st, &st->done);
  if (leaves) uvm__backing_account(s, b, st->src, &src);
  if (comes) uvm__backing_account(s, b, st->dst, &dst);
}

void uvm_plan_commit(struct uvm_space *s, struct uvm_plan *p, uvm_ns now) {
  (void)now;
  assert(now >= p->begin);
  for (size_t i = 0; i < p->steps.n; i++) commit_step(s, &p->steps.v[i]);
  for (size_t i = 0; i < p->steps.n; i++) p->steps.v[i].block->busy_until = 0;
#ifdef UVM_DEBUG
  for (size_t i = 0; i < p->steps.n; i++) {
    struct uvm_error e;
    if (i && p->steps.v[i].block == p->steps.v[i - 1].block) continue;
    if (!uvm_block_check(s, p->steps.v[i].block, &e)) continue;
    fprintf(stderr, "uvmsim: after a plan: %s\n", e.text);
    assert(!"a plan broke an invariant");
  }
#endif
}
