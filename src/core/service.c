/* Running a plan, and telling what came of it: to the policies first, for they decide what comes next, then to the observers. */
#include "core/host.h"
#include <assert.h>

void uvm_observe(const struct uvm_core *c, const struct uvm_event *e) {
  for (size_t i = 0; i < c->nobservers; i++) c->observers[i].event(c->observers[i].ctx, e);
}

uvm_ns uvm_plan_prepare(struct uvm_core *c, struct uvm_plan *p, uvm_ns now) {
  struct uvm_error e;
  int rc = uvm_plan_check(c->space, p, &e);
  if (rc) {
    c->hw.fail(c->hw.ctx, rc, "driver %s: %s", c->driver->name, e.text);
    return UVM_NEVER;
  }
  for (size_t i = 0; i < p->steps.n; i++) assert(!p->steps.v[i].block->busy_until);
  p->begin = now;
  uvm_ns ready = c->hw.prepare(c->hw.ctx, p, now);
  assert(ready >= now);
  uvm_plan_hold(p, ready);
  return ready;
}

uvm_ns uvm_plan_execute(struct uvm_core *c, struct uvm_plan *p, uvm_ns now) {
  uvm_plan_begin(c->space, p);
  uvm_ns end = c->hw.execute(c->hw.ctx, p, now);
  assert(end >= now);
  uvm_plan_hold(p, end);
  return end;
}

uvm_ns uvm_plan_run(struct uvm_core *c, struct uvm_plan *p, uvm_ns now) {
  uvm_ns ready = uvm_plan_prepare(c, p, now);
  return ready == UVM_NEVER ? UVM_NEVER : uvm_plan_execute(c, p, ready);
}

void uvm_range_advise(struct uvm_range *r, const struct uvm_call *call) {
  struct uvm_range_info *i = &r->info;
  switch (call->advice) {
  case UVM_ADV_SET_READ_MOSTLY: i->read_mostly = 1, r->no_duplication = false; break;
  case UVM_ADV_UNSET_READ_MOSTLY: i->read_mostly = 0, r->no_duplication = true; break;
  case UVM_ADV_SET_PREFERRED: i->preferred = call->node; break;
  case UVM_ADV_UNSET_PREFERRED: i->preferred = UVM_NONE; break;
  case UVM_ADV_SET_ACCESSED_BY: i->accessed_by |= 1u << call->proc; break;
  case UVM_ADV_UNSET_ACCESSED_BY: i->accessed_by &= ~(1u << call->proc); break;
  case UVM_ADV_SET_COARSE_GRAIN:
  case UVM_ADV_UNSET_COARSE_GRAIN: break;
  }
}

/* -- one step -- */

const char *uvm_rule_name(const struct uvm_core *c, uint8_t why) {
  const char *name = uvm_host_why(c->host, why);
  return name ? name : uvm__name_in(c->driver->why, why);
}

static struct uvm_event event_of(const struct uvm_core *c, const struct uvm_step *st, enum uvm_event_kind kind, const uvm_mask *pages) {
  int first = uvm_mask_next(pages, 0);
  return (struct uvm_event){
      .kind = (uint8_t)kind,
      .cause = st->cause,
      .access = st->access,
      .why = st->why,
      .rule = uvm_rule_name(c, st->why),
      .proc = st->proc,
      .src = st->src,
      .dst = st->dst,
      .has_alloc = true,
      .alloc = st->block->range->alloc->number,
      .t = st->begin,
      .dur = st->end - st->begin,
      .offset = uvm_block_offset(st->block, first),
      .bytes = (uint64_t)uvm_mask_count(pages) * UVM_PAGE,
      .block = st->block,
      .mask = pages,
  };
}

static void observe_mask(const struct uvm_core *c, const struct uvm_step *st, enum uvm_event_kind kind, const uvm_mask *pages) {
  struct uvm_event e = event_of(c, st, kind, pages);
  uvm_observe(c, &e);
}

/* Events that stand for one page each: `src` is where the page is. */
static void observe_pages(const struct uvm_core *c, const struct uvm_step *st, enum uvm_event_kind kind, const uvm_mask *pages,
                          uvm_node src) {
  for (int p = -1; (p = uvm_mask_next(pages, p + 1)) >= 0;) {
    uvm_mask one = uvm_mask_range(p, p + 1);
    struct uvm_event e = event_of(c, st, kind, &one);
    e.src = src;
    e.t = st->end, e.dur = 0;
    uvm_observe(c, &e);
  }
}

static void observe_transfers(const struct uvm_core *c, const struct uvm_step *st) {
  uvm_ns wait = st->wait;
  for (int a, b = 0; uvm_mask_run(&st->done, &a, &b); wait = 0) {
    uvm_mask run = uvm_mask_range(a, b);
    struct uvm_event e = event_of(c, st, UVM_E_TRANSFER, &run);
    e.wait = wait;
    uvm_observe(c, &e);
  }
}

static void tell(const struct uvm_core *c, const struct uvm_step *st, enum uvm_told_kind kind, const uvm_mask *pages, uvm_node src) {
  struct uvm_told t = {.kind = (uint8_t)kind,
                       .cause = st->cause,
                       .proc = st->proc,
                       .src = src,
                       .dst = st->dst,
                       .range = st->block->range->id,
                       .block = st->block->id,
                       .pages = pages,
                       .begin = st->pushed,
                       .end = st->end};
  uvm_tell(c->host, &t, st->end);
}

/* The pages of a MAP step by the node that they are mapped on: home first, as uvm_page_target has it. */
static void finish_map(const struct uvm_core *c, const struct uvm_step *st, uvm_node n, uvm_mask *left) {
  uvm_mask here = *left;
  uvm_mask_and(&here, uvm_block_resident(c->space, st->block, n));
  if (uvm_mask_empty(&here)) return;
  uvm_mask_andnot(left, &here);
  tell(c, st, UVM_T_MAPPED, &here, n);
  struct uvm_event e = event_of(c, st, UVM_E_MAP, &here);
  e.src = n;
  uvm_observe(c, &e);
  if (n != c->space->procs[st->proc].home && uvm_proc_at(c->space, n) != st->proc) observe_pages(c, st, UVM_E_REMOTE_MAP, &here, n);
}

static void finish_maps(const struct uvm_core *c, const struct uvm_step *st) {
  const struct uvm_proc_info *p = &c->space->procs[st->proc];
  uvm_mask left = st->done;
  finish_map(c, st, p->home, &left);
  for (uvm_node n = 0; n < c->space->topology.nnodes; n++)
    if (p->reach >> n & 1) finish_map(c, st, n, &left);
  assert(uvm_mask_empty(&left));
}

static void finish_step(const struct uvm_core *c, const struct uvm_step *st) {
  switch ((enum uvm_step_kind)st->kind) {
  case UVM_S_POPULATE:
    tell(c, st, UVM_T_POPULATED, &st->done, st->src);
    observe_mask(c, st, UVM_E_POPULATE, &st->done);
    break;
  case UVM_S_MIGRATE:
    tell(c, st, UVM_T_MIGRATED, &st->done, st->src);
    observe_transfers(c, st);
    break;
  case UVM_S_DUPLICATE:
    tell(c, st, UVM_T_DUPLICATED, &st->done, st->src);
    observe_transfers(c, st);
    observe_mask(c, st, UVM_E_DUPLICATE, &st->done);
    break;
  case UVM_S_COLLAPSE:
    tell(c, st, UVM_T_COLLAPSED, &st->done, st->src);
    observe_mask(c, st, UVM_E_COLLAPSE, &st->done);
    break;
  case UVM_S_EVICT: observe_transfers(c, st); break; /* told once for the whole backing: finish_eviction */
  case UVM_S_UNMAP:
    if (st->revoked) tell(c, st, UVM_T_REVOKED, &st->done, st->src);
    observe_mask(c, st, st->revoked ? UVM_E_REVOKE : UVM_E_UNMAP, &st->done);
    break;
  case UVM_S_MAP: finish_maps(c, st); break;
  }
}

/* A page that a policy marks as thrashing on being told of a step is an event of its own. */
static void finish_and_watch(const struct uvm_core *c, const struct uvm_step *st) {
  const uvm_mask *marked = uvm_ask_thrashing(c->host, st->block->id, st->end);
  uvm_mask before = marked ? *marked : (uvm_mask){{0}};
  finish_step(c, st);
  marked = uvm_ask_thrashing(c->host, st->block->id, st->end);
  if (!marked) return;
  uvm_mask risen = *marked;
  uvm_mask_andnot(&risen, &before);
  observe_pages(c, st, UVM_E_THRASH, &risen, st->src);
}

/* -- the whole -- */

/* The backing's death, once, after its pages have left. */
static void finish_eviction(const struct uvm_core *c, const struct uvm_plan *p, uvm_ns now) {
  const struct uvm_backing *k = uvm_backing_get(c->space, p->backing);
  const struct uvm_block *b = p->block;
  assert(k && b);
  uvm_mask pages = {{0}};
  uint64_t moved = 0;
  struct uvm_step last = {.kind = UVM_S_EVICT, .cause = UVM_C_EVICTION, .proc = p->proc, .src = k->info.node, .dst = UVM_NONE};
  last.block = p->block, last.begin = p->begin, last.end = now;
  for (size_t i = 0; i < p->steps.n; i++) {
    const struct uvm_step *st = &p->steps.v[i];
    bool left = st->kind == UVM_S_EVICT || st->kind == UVM_S_COLLAPSE;
    if (st->kind == UVM_S_EVICT) moved += (uint64_t)uvm_mask_count(&st->done), last.dst = st->dst, last.why = st->why;
    if (left && st->block == b) uvm_mask_or(&pages, &st->done);
  }
  struct uvm_told t = {.kind = UVM_T_EVICTED,
                       .cause = UVM_C_EVICTION,
                       .proc = p->proc,
                       .src = last.src,
                       .dst = last.dst,
                       .range = b->range->id,
                       .block = b->id,
                       .backing = p->backing,
                       .pages = &pages,
                       .begin = p->begin,
                       .end = now};
  uvm_tell(c->host, &t, now);
  uvm_mask all = uvm_block_all(b);
  struct uvm_event e = event_of(c, &last, UVM_E_EVICT, &all);
  e.mask = &pages;
  e.bytes = k->info.bytes, e.value = moved * UVM_PAGE;
  uvm_observe(c, &e);
}

static void observe_service(const struct uvm_core *c, const struct uvm_plan *p, uvm_ns now) {
  struct uvm_event e = uvm_event_at(UVM_E_SERVICE, p->begin, p->block->range->alloc, uvm_block_offset(p->block, p->block->first));
  for (size_t i = 0; i < p->steps.n; i++)
    if (p->steps.v[i].kind == UVM_S_POPULATE) e.bytes += (uint64_t)uvm_mask_count(&p->steps.v[i].done) * UVM_PAGE;
  e.proc = p->proc;
  e.value = p->context;
  e.dur = now - p->begin;
  e.block = p->block;
  uvm_observe(c, &e);
}

void uvm_plan_finish(struct uvm_core *c, struct uvm_plan *p, uvm_ns now) {
  uvm_plan_commit(c->space, p, now);
  for (size_t i = 0; i < p->steps.n; i++)
    if (!uvm_mask_empty(&p->steps.v[i].done)) finish_and_watch(c, &p->steps.v[i]);
  if (p->context == UVM_X_EVICT && p->backing) finish_eviction(c, p, now);
  observe_service(c, p, now);
}
