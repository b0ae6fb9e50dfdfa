/* Moving pages of a range between system memory and VRAM.
 *
 * To VRAM: a buffer object for the whole range (so shipped; or one a granule), other buffer objects leaving until it fits,
 * then the pages: those that exist are copied, holes are cleared VRAM. To system memory: the pages come back and the CPU's
 * page table points at them again; a buffer object without pages is freed. From one GPU's VRAM to another's goes through
 * system memory, the whole range first. */
#include "core/amdkfd/amdkfd.h"
#include <assert.h>

static uvm_node cpu_home(const struct uvm_core *c) { return c->space->procs[0].home; }
static uvm_node home(const struct uvm_core *c, uint32_t location) { return c->space->procs[location].home; }

/* -- plans -- */

static void plan_unmap(struct uvm_core *c, struct uvm_driver_task *t, struct uvm_block *b, const uvm_mask *pages) {
  for (uvm_proc p = 0; p < c->space->topology.nprocs; p++) {
    uvm_mask m = *pages;
    uvm_mask_and(&m, uvm_block_mapped(c->space, b, p, UVM_MAP_READ));
    struct uvm_step *st = uvm_plan_add(&t->plan, UVM_S_UNMAP, b, p, &m);
    if (st) st->access = UVM_A_PREFETCH; /* nothing stays */
  }
}

static void plan_to_vram(struct uvm_core *c, struct uvm_driver_task *t, struct uvm_block *b, const uvm_mask *pages) {
  uvm_node dst = home(c, t->move.to);
  uvm_mask there = uvm_block_populated(c->space, b), holes = *pages, moving = *pages;
  uvm_mask_andnot(&holes, &there);
  uvm_mask_and(&moving, uvm_block_resident(c->space, b, cpu_home(c)));
  plan_unmap(c, t, b, &moving);
  struct uvm_step *st = uvm_plan_add(&t->plan, UVM_S_POPULATE, b, t->proc, &holes);
  if (st) st->src = st->dst = dst;
  uvm_plan_transfer(&t->plan, UVM_S_MIGRATE, b, t->proc, cpu_home(c), dst, &moving, NULL, (enum uvm_cause)t->cause, NULL);
}

/* The pages leave a GPU's node; the CPU finds them mapped again. */
static void plan_to_ram(struct uvm_core *c, struct uvm_driver_task *t, struct uvm_block *b, enum uvm_step_kind kind, uvm_node src,
                        uvm_mask pages) {
  uvm_mask_and(&pages, uvm_block_resident(c->space, b, src));
  plan_unmap(c, t, b, &pages);
  uvm_plan_transfer(&t->plan, kind, b, t->proc, src, cpu_home(c), &pages, NULL, (enum uvm_cause)t->cause, NULL);
  uvm__kfd_plan_map(t, b, 0, &pages);
}

static void build_move(struct uvm_core *c, struct uvm_driver_task *t, struct uvm_block *b, const uvm_mask *pages) {
  if (t->move.to)
    plan_to_vram(c, t, b, pages);
  else if (t->range->actual)
    plan_to_ram(c, t, b, UVM_S_MIGRATE, home(c, t->range->actual), *pages);
}

/* -- buffer objects -- */

/* Pages that one buffer object serves, round this page. */
static struct kfd_span object_span(const struct uvm_core *c, const struct kfd_prange *r, uint64_t page) {
  return uvm__kfd(c)->whole_range_vram ? r->pages : uvm__kfd_window(r, page);
}

static uint64_t bytes_of(struct kfd_span s) { return (s.last - s.first + 1) * UVM_PAGE; }

static uvm_backing_id object_of(struct uvm_alloc *a, uvm_node n, uint64_t page) {
  const struct uvm_block *b = uvm_block_find(a, uvm__kfd_offset(a, page));
  return b ? uvm_page_backing(b, n, (int)(page % UVM_BLOCK_PAGES)) : 0;
}

static void create_object(struct uvm_core *c, struct uvm_alloc *a, uvm_node n, struct kfd_span s) {
  uvm_backing_id k = uvm_backing_create(c->space, n, bytes_of(s));
  for (struct kfd_part p; s.first <= s.last; s.first = p.next) {
    p = uvm__kfd_part(c->space, a, s);
    uvm_backing_attach(c->space, k, p.block, uvm_mask_next(&p.pages, 0), uvm_mask_count(&p.pages));
  }
}

/* Frees the buffer objects of s that hold nothing any more. */
static void free_empty(struct uvm_core *c, struct kfd_prange *r, uvm_node n, struct kfd_span s) {
  for (uint64_t page = s.first; page <= s.last; page = object_span(c, r, page).last + 1) {
    uvm_backing_id k = object_of(r->alloc, n, page);
    if (k && !uvm_backing_get(c->space, k)->info.resident) uvm_backing_destroy(c->space, k);
  }
}

void uvm__kfd_used(struct uvm_core *c, struct uvm_driver_task *t, struct kfd_span s, uvm_ns now) {
  struct kfd_prange *r = t->range;
  for (uint64_t page = s.first; r->actual && page <= s.last; page = object_span(c, r, page).last + 1) {
    uvm_backing_id k = object_of(r->alloc, home(c, r->actual), page);
    if (!k) continue;
    uvm_backing_move(c->space, k, UVM_L_USED, now);
    const struct uvm_block *b = uvm_block_find(r->alloc, uvm__kfd_offset(r->alloc, page));
    uvm_tell(c->host, &(struct uvm_told){.kind = UVM_T_SERVICED, .backing = k, .block = b->id, .proc = t->proc, .begin = now, .end = now},
             now);
  }
}

/* -- eviction: every range that shares the buffer object, entirely, to system memory -- */

static void smi_migrate(struct uvm_core *c, enum kfd_smi_id id, struct kfd_prange *r, struct kfd_span s, uint32_t from, uint32_t to,
                        enum kfd_trigger trigger, uvm_ns now) {
  uvm__kfd_smi(c, (struct kfd_smi){.id = (uint8_t)id,
                                   .t = now,
                                   .pages = s,
                                   .from = from,
                                   .to = to,
                                   .prefetch = r->prefetch,
                                   .preferred = r->preferred,
                                   .trigger = (int)trigger});
  if (id == KFD_MIGRATE_START) uvm__kfd_smi_unmap(c, r, s, KFD_U_MIGRATE, now);
}

/* The ranges that share the object were one range once, so they lie side by side. */
static void smi_eviction(struct uvm_core *c, enum kfd_smi_id id, const struct uvm_backing *k, uvm_ns now) {
  struct uvm_alloc *a = k->pieces[0].block->range->alloc;
  uint32_t from = uvm__kfd_location(c->space, k->info.node);
  struct kfd_span s = {UINT64_MAX, 0};
  for (uint32_t i = 0; i < k->npieces; i++) {
    uint64_t first = uvm__kfd_page(a, uvm_block_offset(k->pieces[i].block, k->pieces[i].first)), last = first + k->pieces[i].pages - 1;
    if (first < s.first) s.first = first;
    if (last > s.last) s.last = last;
  }
  for (struct kfd_prange *r; s.first <= s.last; s.first = r->pages.last + 1) {
    r = uvm__kfd_find(c, a, s.first);
    if (r->actual) smi_migrate(c, id, r, r->pages, from, 0, KFD_T_EVICTION, now);
  }
}

static void plan_eviction(struct uvm_core *c, struct uvm_driver_task *t, const struct uvm_backing *k) {
  uvm_plan_clear(&t->plan);
  t->plan.context = UVM_X_EVICT, t->plan.proc = t->proc, t->plan.backing = k->id;
  for (uint32_t i = 0; i < k->npieces; i++) {
    const struct uvm_piece *p = &k->pieces[i];
    plan_to_ram(c, t, p->block, UVM_S_EVICT, k->info.node, uvm_mask_range(p->first, p->first + p->pages));
  }
  assert(t->plan.steps.n); /* an object without pages is freed when the last one leaves */
  t->plan.block = t->plan.steps.v[0].block;
}

static kfd_step find_room;

static void evicted(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct kfd_move *m = &t->move;
  const struct uvm_backing *k = uvm_backing_get(c->space, m->victim);
  smi_eviction(c, KFD_MIGRATE_END, k, now);
  uvm__kfd_plan_finish(c, t, now);
  if (!k->info.resident) {
    uvm_backing_destroy(c->space, m->victim);
    m->victim = 0;
  }
  find_room(c, t, now);
}

static void evict(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  const struct uvm_backing *k = uvm_backing_get(c->space, t->move.victim);
  uvm_backing_move(c->space, k->id, UVM_NONE, now);
  t->move.tries--;
  plan_eviction(c, t, k);
  smi_eviction(c, KFD_MIGRATE_START, k, now);
  uint8_t cause = t->cause, why = t->why;
  t->cause = UVM_C_EVICTION, t->why = KFD_WHY_EVICTED;
  uvm_ns end = uvm__kfd_plan_run(c, t, now);
  t->cause = cause, t->why = why;
  if (end != UVM_NEVER) uvm__kfd_sleep(c, t, evicted, end);
}

/* The victim stays the same while some of its pages are refused. False: nothing can leave. */
static bool choose_victim(struct uvm_core *c, struct uvm_driver_task *t, uint64_t bytes, uvm_ns now) {
  struct kfd_move *m = &t->move;
  if (m->victim && m->tries) return true;
  if (m->victim) return uvm_backing_move(c->space, m->victim, UVM_L_USED, now), false;
  struct kfd_part p = uvm__kfd_part(c->space, t->range->alloc, m->portion);
  size_t n;
  m->tries = uvm__kfd(c)->retries_to_ram;
  return !uvm_ask_victims(c->host, home(c, m->to), bytes, p.block->id, &p.pages, now, &m->victim, 1, &n) && n;
}

/* -- one leg, a portion at a time -- */

static kfd_step next_portion;

static void portion_moved(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct kfd_move *m = &t->move;
  free_empty(c, t->range, home(c, m->to ? m->to : m->from), m->portion);
  if (m->to) uvm__kfd_used(c, t, m->portion, now);
  smi_migrate(c, KFD_MIGRATE_END, t->range, m->portion, m->from, m->to, (enum kfd_trigger)t->trigger, now);
  m->left.first = m->portion.last + 1;
  uvm__kfd_sleep(c, t, next_portion, now); /* not by calling: portions may be many */
}

static void move_portion(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct kfd_move *m = &t->move;
  smi_migrate(c, KFD_MIGRATE_START, t->range, m->portion, m->from, m->to, (enum kfd_trigger)t->trigger, now);
  uvm__kfd_sweep(c, t, t->range->alloc, m->portion, build_move, portion_moved, now);
}

static void find_room(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct kfd_move *m = &t->move;
  struct kfd_span object = object_span(c, t->range, m->portion.first);
  uvm_node n = home(c, m->to);
  bool exists = object_of(t->range->alloc, n, object.first);
  if (exists || bytes_of(object) <= c->space->nodes[n].free) {
    if (!exists) create_object(c, t->range->alloc, n, object);
    move_portion(c, t, now);
  } else if (choose_victim(c, t, bytes_of(object), now)) {
    evict(c, t, now);
  } else {
    m->failed = true;
    m->over(c, t, now);
  }
}

static void next_portion(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct kfd_move *m = &t->move;
  if (m->left.first > m->left.last) {
    m->over(c, t, now);
    return;
  }
  m->portion = m->left;
  uint64_t last = object_span(c, t->range, m->left.first).last;
  if (last < m->portion.last) m->portion.last = last;
  m->victim = 0;
  if (m->to)
    find_room(c, t, now);
  else
    move_portion(c, t, now);
}

static void leg(struct uvm_core *c, struct uvm_driver_task *t, struct kfd_span pages, uint32_t to, kfd_step *over, uvm_ns now) {
  struct kfd_move *m = &t->move;
  m->left = pages;
  m->from = to ? 0 : t->range->actual, m->to = to; /* what comes to VRAM comes from system memory */
  m->over = over;
  next_portion(c, t, now);
}

/* -- the whole -- */

static void arrived(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) { t->move.after(c, t, now); }

/* Some pages may be refused: asked again a few times before the second leg. */
static void emptied(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct kfd_move *m = &t->move;
  m->failed = t->range->actual && !--m->tries;
  if (m->failed)
    m->after(c, t, now);
  else if (t->range->actual)
    leg(c, t, t->range->pages, 0, emptied, now);
  else
    leg(c, t, m->pages, m->final, arrived, now);
}

void uvm__kfd_move(struct uvm_core *c, struct uvm_driver_task *t, struct kfd_span pages, uint32_t to, kfd_step *after, uvm_ns now) {
  struct kfd_move *m = &t->move;
  uint32_t actual = t->range->actual;
  m->after = after;
  m->failed = false;
  m->pages = pages, m->final = to;
  m->tries = uvm__kfd(c)->retries_to_ram;
  if (!to && !actual)
    after(c, t, now);
  else if (to && actual && to != actual)
    leg(c, t, t->range->pages, 0, emptied, now);
  else
    leg(c, t, pages, to, arrived, now);
}
