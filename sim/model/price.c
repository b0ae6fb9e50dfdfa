/* What plans and the driver's other work take. Steps are made true in order; a copy waits for its link. */
#include "model/model.h"

uvm_ns uvm__price(const struct uvm_engine *x, enum uvm_work w, uint64_t n) {
  const struct uvm_costs *c = &x->machine->costs;
  switch (w) {
  case UVM_W_FETCH: return c->fetch_ns + n * c->raw_fault_ns;
  case UVM_W_REPLAY: return c->replay_ns;
  case UVM_W_REPLAY_WAIT: return c->replay_wait_ns;
  case UVM_W_RESTART: return c->restart_ns;
  case UVM_W_CPU_SPURIOUS: return c->cpu_spurious_ns;
  case UVM_W_CPU_NAP: return c->cpu_nap_ns + n / 2; /* usleep_range(left, 1.5 left): nothing else wakes an idle system */
  case UVM_W_SKIP: return n * c->prefetch_skip_ns;
  }
  return 0;
}

static bool moves(const struct uvm_step *st) { return st->kind == UVM_S_MIGRATE || st->kind == UVM_S_DUPLICATE || st->kind == UVM_S_EVICT; }

/* Separate runs of pages that come in, and pages. Faulted and prefetched pages side by side are one run. */
static void count_moved(const struct uvm_plan *p, uint64_t *runs, uint64_t *pages) {
  uvm_mask all = {{0}};
  for (size_t i = 0; i < p->steps.n; i++)
    if (moves(&p->steps.v[i])) uvm_mask_or(&all, &p->steps.v[i].pages);
  *pages = (uint64_t)uvm_mask_count(&all);
  *runs = 0;
  for (int a, b = 0; uvm_mask_run(&all, &a, &b);) ++*runs;
}

static const struct uvm_step *first_move(const struct uvm_plan *p) {
  for (size_t i = 0; i < p->steps.n; i++)
    if (moves(&p->steps.v[i])) return &p->steps.v[i];
  return NULL;
}

/* Nothing of the block was where its pages now go. */
static bool first_there(const struct uvm_engine *x, const struct uvm_plan *p) {
  const struct uvm_step *st = first_move(p);
  return st && uvm_mask_empty(uvm_block_resident(x->core->space, p->block, st->dst));
}

static bool untouched(const struct uvm_engine *x, const struct uvm_plan *p) {
  uvm_mask populated = uvm_block_populated(x->core->space, p->block);
  return uvm_mask_empty(&populated);
}

static uint64_t unmapped(const struct uvm_plan *p) {
  uint64_t n = 0;
  for (size_t i = 0; i < p->steps.n; i++)
    if (p->steps.v[i].kind == UVM_S_UNMAP) n += (uint64_t)uvm_mask_count(&p->steps.v[i].pages);
  return n;
}

/* Host-side work varies: mostly it takes a little less than its mean t, sometimes much more. */
static uvm_ns vary(struct uvm_engine *x, uvm_ns t) {
  double spread = (double)x->machine->costs.spread_percent / 100, u = (double)(uvm_random(&x->random) >> 32) / 0x1p32;
  double u2 = u * u, u7 = u2 * u2 * u2 * u;
  return (uvm_ns)((double)t * (1 - spread + spread * 8 * u7));
}

/* Before the first step. */
static uvm_ns opening(const struct uvm_engine *x, const struct uvm_plan *p) {
  const struct uvm_costs *c = &x->machine->costs;
  uint64_t runs, pages;
  count_moved(p, &runs, &pages);
  uvm_ns moving = (runs ? runs - 1 : 0) * c->region_ns + pages * c->page_ns;
  switch ((enum uvm_context)p->context) {
  case UVM_X_GPU_FAULT: return c->block_ns + first_there(x, p) * c->block_first_ns + p->writes * c->write_ns + moving;
  case UVM_X_COUNTER: return c->counter_ns + moving;
  case UVM_X_CPU_FAULT:
    if (pages) return c->cpu_fault_ns + pages * c->cpu_unmap_page_ns;
    return untouched(x, p) ? c->cpu_chunk_ns : c->cpu_populate_ns;
  case UVM_X_EVICT: return c->evict_ns;
  case UVM_X_PREFETCH: return pages && !p->behind ? c->prefetch_ns + unmapped(p) * c->prefetch_unmap_page_ns : 0;
  case UVM_X_ADVISE:
  case UVM_X_UNPIN:
  case UVM_X_COPY: break;
  }
  return 0;
}

/* The end of a CPU fault. A first touch's is in the price of its pages. */
static uvm_ns cpu_map_price(struct uvm_engine *x, const struct uvm_plan *p, uint64_t pages) {
  const struct uvm_costs *c = &x->machine->costs;
  if (!first_move(p)) return 0;
  uvm_ns wake = x->host.waited * c->cpu_wake_ns;
  x->host.waited = false;
  return vary(x, c->cpu_map_ns + pages * c->cpu_page_ns + p->writes * c->cpu_write_ns + wake);
}

static uvm_ns map_price(struct uvm_engine *x, const struct uvm_plan *p, const struct uvm_step *st, uint64_t pages) {
  const struct uvm_costs *c = &x->machine->costs;
  switch (p->context) {
  case UVM_X_CPU_FAULT: return cpu_map_price(x, p, pages);
  case UVM_X_GPU_FAULT: return c->map_ns + p->writes * pages * c->write_page_ns;
  case UVM_X_PREFETCH: return st->proc ? c->prefetch_map_ns : pages * c->prefetch_back_map_page_ns;
  default: return c->map_ns;
  }
}

static enum uvm_traffic traffic(const struct uvm_plan *p, const struct uvm_step *st) {
  if (st->kind == UVM_S_EVICT) return UVM_L_EVICTION;
  return p->context == UVM_X_PREFETCH || st->cause == UVM_C_PREFETCH ? UVM_L_PREFETCH : UVM_L_MIGRATION;
}

/* Somebody waits for these copies: the engines were idle. */
static bool at_once(const struct uvm_plan *p) { return p->context == UVM_X_GPU_FAULT || p->context == UVM_X_CPU_FAULT; }

/* pushed: when the driver handed the plan's copies to the engines, all together; 0 not yet. */
static uvm_ns make_true(struct uvm_engine *x, const struct uvm_plan *p, struct uvm_step *st, uvm_ns *pushed, uvm_ns now) {
  const struct uvm_costs *c = &x->machine->costs;
  uint64_t pages = (uint64_t)uvm_mask_count(&st->pages);
  bool to_cpu = st->dst == x->machine->procs[0].home;
  st->begin = st->pushed = now;
  switch ((enum uvm_step_kind)st->kind) {
  case UVM_S_POPULATE: return now + pages * (to_cpu ? c->cpu_populate_page_ns : c->populate_page_ns);
  case UVM_S_COLLAPSE: return now + pages * c->revoke_page_ns;
  case UVM_S_UNMAP: return now + (st->revoked ? c->map_ns : 0);
  case UVM_S_MAP: return now + map_price(x, p, st, pages);
  case UVM_S_MIGRATE:
  case UVM_S_DUPLICATE:
  case UVM_S_EVICT: break;
  }
  st->pushed = *pushed ? *pushed : now;
  if (!*pushed && at_once(p)) now += c->push_ns;
  *pushed = st->pushed;
  uint64_t fixed = c->transfer_ns + (p->context == UVM_X_PREFETCH ? c->prefetch_block_ns : 0);
  struct uvm_transfer t = {st->src, st->dst, traffic(p, st), pages * UVM_PAGE, fixed};
  struct uvm_reservation r = uvm_machine_reserve(x->machine, &t, now);
  st->begin = r.begin;
  st->wait = r.wait;
  return r.end;
}

uvm_ns uvm__prepare(struct uvm_engine *x, const struct uvm_plan *p, uvm_ns now) { return now + vary(x, opening(x, p)); }

uvm_ns uvm__execute(struct uvm_engine *x, struct uvm_plan *p, uvm_ns now) {
  uvm_machine_pass(x->machine, x->now);
  uvm_ns at = now, pushed = 0;
  for (size_t i = 0; i < p->steps.n; i++) {
    struct uvm_step *st = &p->steps.v[i];
    st->done = st->pages;
    at = st->end = make_true(x, p, st, &pushed, at);
  }
  return p->end = at;
}
