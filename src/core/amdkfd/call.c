/* Attributes set through the API: prefetch and advice. Setting one on a part makes the part a range of its own. */
#include "core/amdkfd/amdkfd.h"

static void finish(struct uvm_core *c, struct uvm_driver_task *t, enum uvm_event_kind kind, uvm_ns now) {
  const struct uvm_call k = t->api.call;
  struct uvm_event e = uvm_event_at(kind, t->begin, k.alloc, k.offset);
  e.cause = UVM_C_USER;
  e.proc = k.proc, e.dst = k.node;
  e.dur = now - t->begin;
  e.bytes = k.bytes;
  if (kind == UVM_E_ADVISE) e.value = k.advice;
  e.line = k.line;
  uvm__kfd_unlock(c, t, now);
  uvm__kfd_task_done(c, t);
  uvm_observe(c, &e);
  c->hw.complete(c->hw.ctx, k.cookie, now);
}

static struct kfd_span pages_of(const struct uvm_call *k) {
  return (struct kfd_span){uvm__kfd_page(k->alloc, k->offset), uvm__kfd_page(k->alloc, k->offset + k->bytes - 1)};
}

/* -- prefetch: whole ranges -- */

static kfd_step next_range;

static void mapped(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  t->api.left.first = t->range->pages.last + 1;
  uvm__kfd_sleep(c, t, next_range, now); /* not by calling: ranges may be many */
}

/* Those that may map it in place, and the GPU that has it if it has access; else, if it was ever mapped, all with access. */
static void moved(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  const struct kfd_prange *r = t->range;
  uint32_t gpus = r->in_place | (r->actual && r->access >> r->actual & 1 ? 1u << r->actual : 0);
  if (!gpus && t->api.was_mapped) gpus = r->access;
  if (gpus)
    uvm__kfd_map(c, t, r->pages, gpus, mapped, now);
  else
    mapped(c, t, now);
}

static void next_range(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  while (t->api.left.first <= t->api.left.last) {
    struct kfd_prange *r = t->range = uvm__kfd_find(c, t->api.call.alloc, t->api.left.first);
    r->prefetch = uvm__kfd_location(c->space, t->api.call.node);
    uint32_t to = uvm__kfd_prefetch_location(c->space, r);
    t->api.was_mapped = r->mapped;
    if (to || r->actual) {
      uvm__kfd_move(c, t, r->pages, to, moved, now);
      return;
    }
    t->api.left.first = r->pages.last + 1;
  }
  finish(c, t, UVM_E_PREFETCH, now);
}

static void prefetch_locked(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  t->api.left = pages_of(&t->api.call);
  uvm__kfd_split(c, t->api.call.alloc, t->api.left);
  next_range(c, t, now);
}

static void call_begin(struct uvm_core *c, const struct uvm_call *call, enum uvm_context context, kfd_step *locked, uvm_ns now) {
  struct uvm_driver_task *t = uvm__kfd_task(c, context, UVM_C_USER, call->proc);
  t->trigger = KFD_T_PREFETCH, t->why = KFD_WHY_PREFETCH;
  t->begin = now;
  t->api.call = *call;
  uvm__kfd_lock(c, t, locked, now);
}

void uvm__kfd_prefetch(struct uvm_core *c, const struct uvm_call *call, uvm_ns now) {
  call_begin(c, call, UVM_X_PREFETCH, prefetch_locked, now);
}

/* -- advice: never moves a page -- */

/* Access and access in place exclude each other. The CPU's accessed-by is its host-access flag, which it has. */
static void advise_range(const struct uvm_space *s, struct kfd_prange *r, const struct uvm_call *k) {
  uint32_t bit = k->proc ? 1u << k->proc : 0;
  switch (k->advice) {
  case UVM_ADV_SET_READ_MOSTLY: r->flags |= KFD_GPU_READ_MOSTLY; break;
  case UVM_ADV_UNSET_READ_MOSTLY: r->flags &= ~(uint32_t)KFD_GPU_READ_MOSTLY; break;
  case UVM_ADV_SET_PREFERRED: r->preferred = uvm__kfd_location(s, k->node); break;
  case UVM_ADV_UNSET_PREFERRED: r->preferred = KFD_UNDEFINED; break;
  case UVM_ADV_SET_ACCESSED_BY: r->access &= ~bit, r->in_place |= bit; break;
  case UVM_ADV_UNSET_ACCESSED_BY: r->access |= bit, r->in_place &= ~bit; break;
  case UVM_ADV_SET_COARSE_GRAIN: r->flags &= ~(uint32_t)KFD_COHERENT; break;
  case UVM_ADV_UNSET_COARSE_GRAIN: r->flags |= KFD_COHERENT; break;
  }
}

/* Ranges of the space split blocks, so the two blocks at the edges must be at rest. */
static uvm_ns busy_edge(const struct uvm_call *k) {
  uint64_t edges[2] = {k->offset, k->offset + k->bytes};
  for (int i = 0; i < 2; i++) {
    const struct uvm_block *b = edges[i] < k->alloc->bytes ? uvm_block_find(k->alloc, edges[i]) : NULL;
    if (b && b->busy_until) return b->busy_until;
  }
  return 0;
}

static void advise_locked(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  const struct uvm_call *k = &t->api.call;
  uvm_ns busy = busy_edge(k);
  if (busy) {
    uvm__kfd_sleep(c, t, advise_locked, busy > now ? busy : now);
    return;
  }
  struct kfd_span s = pages_of(k);
  uint64_t first = uvm__kfd_offset(k->alloc, s.first), bytes = (s.last - s.first + 1) * UVM_PAGE;
  size_t n, at = uvm_space_split(c->space, k->alloc, first, bytes, &n);
  for (size_t i = at; i < at + n; i++) {
    uvm_range_advise(k->alloc->ranges.v[i], k); /* what policies see */
    uvm_tell(c->host,
             &(struct uvm_told){.kind = UVM_T_ADVISED, .range = k->alloc->ranges.v[i]->id, .proc = k->proc, .begin = now, .end = now}, now);
  }
  uvm__kfd_split(c, k->alloc, s);
  for (uint64_t page = s.first; page <= s.last;) {
    struct kfd_prange *r = uvm__kfd_find(c, k->alloc, page);
    advise_range(c->space, r, k);
    page = r->pages.last + 1;
  }
  finish(c, t, UVM_E_ADVISE, now);
}

void uvm__kfd_advise(struct uvm_core *c, const struct uvm_call *call, uvm_ns now) { call_begin(c, call, UVM_X_ADVISE, advise_locked, now); }
