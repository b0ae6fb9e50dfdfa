/* Faults of a GPU on their way to the driver and back.
 *
 * A warp's miss takes one of its SM's few places (an entry) and travels to the MMU. The MMU walks the page table, one page at a
 * time; all who wait for a page enter the fault ring together when its walk ends. Entries keep their places, and their warps
 * stall, until a replay: then every one tries again, oldest first, and those that still miss travel once more. */
#include <assert.h>
#include "model/model.h"

enum { HASH_BITS = 12, HASH = 1 << HASH_BITS };

void uvm__mmu_create(struct uvm__device *d, uint64_t ring) {
  d->ring = uvm_mem(ring * sizeof *d->ring);
  d->walk_hash = uvm_mem(HASH * sizeof *d->walk_hash);
  d->free_entry = d->oldest = d->newest = UVM__NO;
  d->armed = true;
}

void uvm__mmu_destroy(struct uvm__device *d) {
  uvm_mem_free(d->ring);
  uvm_mem_free(d->walk_hash);
  uvm_mem_free(d->entries.v);
  uvm_mem_free(d->walks.v);
}

/* -- entries: a list by age -- */

static uint32_t entry_add(struct uvm__device *d, struct uvm__entry e) {
  uint32_t i = d->free_entry;
  if (i != UVM__NO)
    d->free_entry = d->entries.v[i].newer;
  else
    i = (uint32_t)d->entries.n, (void)UVM_PUSH(&d->entries);
  e.generation = d->entries.v[i].generation + 1;
  e.older = d->newest, e.newer = e.beside = UVM__NO;
  d->entries.v[i] = e;
  if (d->newest != UVM__NO)
    d->entries.v[d->newest].newer = i;
  else
    d->oldest = i;
  d->newest = i;
  d->nentries++;
  return i;
}

static void entry_remove(struct uvm__device *d, uint32_t i) {
  struct uvm__entry *e = &d->entries.v[i];
  *(e->older != UVM__NO ? &d->entries.v[e->older].newer : &d->oldest) = e->newer;
  *(e->newer != UVM__NO ? &d->entries.v[e->newer].older : &d->newest) = e->older;
  e->generation++; /* whatever is under way for it is void */
  e->newer = d->free_entry;
  d->free_entry = i;
  d->nentries--;
}

/* An SM sends its misses one after the other. */
static void send(struct uvm_engine *x, struct uvm__device *d, uint32_t i) {
  struct uvm__entry *e = &d->entries.v[i];
  struct uvm__sm *sm = &d->sms[e->sm];
  uvm_ns at = sm->issue > x->now ? sm->issue : x->now;
  sm->issue = at + x->machine->gpu.issue_ns;
  e->generation++;
  e->sent = false;
  struct uvm__event *arrival = uvm__queue_add(&x->queue, at + x->machine->gpu.fault_arrival_ns);
  arrival->kind = UVM__MISS;
  arrival->a = d->proc;
  arrival->b = i;
  arrival->c = e->generation;
}

/* -- room, and who waits for it -- */

/* SMs come in pairs, and neighbouring pairs belong to different clusters. */
static uint32_t gpc_of(const struct uvm__device *d, uint32_t sm) { return sm / 2 % d->gpcs; }

static bool room(const struct uvm__device *d, const struct uvm__warp *w) {
  return d->sms[w->sm].outstanding < d->utlb && (w->outstanding || d->stalled[gpc_of(d, w->sm)] < d->gpc_warps);
}

/* An SM serves the warp first that started first. */
static void wait_in_line(struct uvm__device *d, uint32_t w) {
  struct uvm__warp *warp = &d->warps.v[w];
  struct uvm__sm *sm = &d->sms[warp->sm];
  struct uvm__waiter me = {warp->age, warp->at.page, &warp->kernel->records.v[warp->at.record], w, warp->at.writing};
  d->refused = true;
  size_t i = sm->line.n;
  if (warp->waiting) {
    while (sm->line.v[--i].warp != w) continue;
  } else {
    (void)UVM_PUSH(&sm->line);
    for (; i && sm->line.v[i - 1].age < me.age; i--) sm->line.v[i] = sm->line.v[i - 1];
  }
  sm->line.v[i] = me;
  warp->waiting = true;
}

static uint32_t first_in_line(const struct uvm__sm *sm) { return sm->line.v[sm->line.n - 1].warp; }

static void leave_line(struct uvm__device *d, struct uvm__sm *sm) { d->warps.v[sm->line.v[--sm->line.n].warp].waiting = false; }

bool uvm__fault(struct uvm_engine *x, struct uvm__device *d, uint32_t w) {
  struct uvm__warp *warp = &d->warps.v[w];
  if (!room(d, warp)) return wait_in_line(d, w), false;
  const struct uvm__cursor *c = &warp->at;
  if (!d->nentries) d->stall_since = x->now;
  if (!warp->kernel->outstanding++) warp->kernel->stall_since = x->now;
  if (!warp->outstanding++) d->stalled[gpc_of(d, warp->sm)]++;
  d->sms[warp->sm].outstanding++;
  send(x, d,
       entry_add(d, (struct uvm__entry){
                        .record = c->record, .k = c->k, .m = c->m, .page = c->page, .warp = w, .sm = warp->sm, .writing = c->writing}));
  return true;
}

static struct uvm__record *record_of(const struct uvm__device *d, const struct uvm__entry *e) {
  return &d->warps.v[e->warp].kernel->records.v[e->record];
}

/* -- interrupts -- */

static void interrupt_in(struct uvm_engine *x, struct uvm__device *d, uvm_ns latency) {
  if (!d->armed || d->interrupting || d->put == d->get) return;
  d->interrupting = d->woken = true;
  uvm__at(x, x->now + latency, UVM__INTERRUPT, d->proc, 0);
}

static void interrupt(struct uvm_engine *x, struct uvm__device *d) {
  const struct uvm_gpu_model *g = &x->machine->gpu;
  uvm_ns quiet = x->now - d->quiet_since;
  uvm_ns latency = !d->woken                   ? g->first_interrupt_ns
                   : quiet >= g->deep_after_ns ? g->deep_interrupt_ns
                   : quiet >= g->idle_after_ns ? g->idle_interrupt_ns
                                               : g->interrupt_ns;
  interrupt_in(x, d, latency);
}

/* -- page walks -- */

static uint32_t hash(const struct uvm_alloc *a, uint64_t page) {
  return (uint32_t)((page + ((uint64_t)a->number << 40)) * 0x9e3779b97f4a7c15ull >> (64 - HASH_BITS));
}

static void start_walk(struct uvm_engine *x, struct uvm__device *d) { uvm__at(x, x->now + x->machine->gpu.walk_ns, UVM__WALK, d->proc, 0); }

void uvm__miss_arrived(struct uvm_engine *x, struct uvm__device *d, uint32_t i, uint64_t generation) {
  struct uvm__entry *e = &d->entries.v[i];
  if (e->generation != generation) return;
  e->beside = UVM__NO;
  struct uvm_alloc *alloc = record_of(d, e)->alloc;
  uint32_t *chain = &d->walk_hash[hash(alloc, e->page)];
  for (uint32_t at = *chain; at; at = d->walks.v[at - 1].chain) {
    struct uvm__walk *k = &d->walks.v[at - 1];
    if (k->alloc != alloc || k->page != e->page) continue;
    d->entries.v[k->last].beside = i;
    k->last = i;
    return;
  }
  bool idle = d->walk_head == d->walks.n;
  UVM_PUSH(&d->walks) = (struct uvm__walk){alloc, e->page, i, i, *chain};
  *chain = (uint32_t)d->walks.n;
  if (idle) start_walk(x, d);
}

static void ring_put(struct uvm_engine *x, struct uvm__device *d, const struct uvm__entry *e) {
  if (d->put - d->get >= x->machine->gpu.ring) return; /* lost; it comes again after the next replay */
  const struct uvm__record *r = record_of(d, e);
  d->ring[d->put++ % x->machine->gpu.ring] = (struct uvm_raw_fault){.alloc = r->alloc,
                                                                    .offset = e->page * UVM_PAGE,
                                                                    .utlb = (uint16_t)e->sm,
                                                                    .access = uvm__access_of(r->op, e->writing),
                                                                    .time = x->now,
                                                                    .line = r->line};
}

/* Walks leave in the order they came, so the oldest of a hash chain is its last. */
static void unhash(struct uvm__device *d, uint32_t number) {
  struct uvm__walk *k = &d->walks.v[number - 1];
  uint32_t *at = &d->walk_hash[hash(k->alloc, k->page)];
  while (*at != number) at = &d->walks.v[*at - 1].chain;
  *at = 0;
}

/* The access happens after all: its entry's place is free. */
static void release(struct uvm_engine *x, struct uvm__device *d, uint32_t i, const struct uvm__look *look) {
  struct uvm__entry *e = &d->entries.v[i];
  struct uvm__warp *warp = &d->warps.v[e->warp];
  uvm__hit(x, d, warp, &(struct uvm__touch){record_of(d, e), e->k, e->m, e->page, e->writing}, look);
  entry_remove(d, i);
  d->sms[warp->sm].outstanding--;
  if (!--warp->outstanding) {
    d->stalled[gpc_of(d, warp->sm)]--;
    if (!warp->waiting) uvm__at(x, x->now, UVM__WARP, d->proc, e->warp);
  }
  struct uvm__kernel *k = warp->kernel;
  if (!--k->outstanding) k->stalled += x->now - k->stall_since;
  if (!d->nentries) uvm__tell_stall(x, d->proc, d->stall_since, 0);
}

static int look_at(struct uvm_engine *x, const struct uvm__device *d, const struct uvm__entry *e, struct uvm__look *out) {
  const struct uvm__record *r = record_of(d, e);
  return uvm__look(x, d->proc, r->alloc, e->page, e->page, uvm__access_of(r->op, e->writing), r->line, out);
}

static bool page_there(struct uvm_engine *x, const struct uvm__device *d, const struct uvm__waiter *w) {
  struct uvm__look look;
  return !uvm__look(x, d->proc, w->record->alloc, w->page, w->page, uvm__access_of(w->record->op, w->writing), w->record->line, &look) &&
         look.hit;
}

/* A turn of one SM. False: nothing more of it can go on now. */
static bool serve_line(struct uvm_engine *x, struct uvm__device *d, struct uvm__sm *sm) {
  for (uint64_t left = x->machine->gpu.gpc_turn; left; left--) {
    if (!sm->line.n || x->failed || !room(d, &d->warps.v[first_in_line(sm)])) return false;
    d->refused = false;
    uvm__warp_run(x, d, first_in_line(sm)); /* refused again, it keeps its place at the head */
    if (!d->refused) leave_line(d, sm);
  }
  return true;
}

/* Lets waiting warps go on while there is room. Clusters take turns, and in each its SMs, beginning with any pair of them: so what
 * faults together lies scattered in pairs over what the SMs work on, as recorded. */
static void serve_lines(struct uvm_engine *x, struct uvm__device *d) {
  uint32_t pairs = (d->nsms + 2 * d->gpcs - 1) / (2 * d->gpcs);
  for (uint32_t g = 0; g < d->gpcs; g++) d->first_pair[g] = (uint32_t)(uvm_random(&d->random) % pairs);
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < 2 * pairs; i++)
      for (uint32_t g = 0; g < d->gpcs; g++) {
        uint32_t pair = (d->first_pair[g] + i / 2) % pairs, s = 2 * (g + d->gpcs * pair) + i % 2;
        if (s < d->nsms) more |= serve_line(x, d, &d->sms[s]);
      }
  }
}

void uvm__walk_ended(struct uvm_engine *x, struct uvm__device *d) {
  uint32_t number = (uint32_t)++d->walk_head;
  unhash(d, number);
  bool freed = false;
  for (uint32_t i = d->walks.v[number - 1].first, next; i != UVM__NO; i = next) {
    struct uvm__entry *e = &d->entries.v[i];
    next = e->beside;
    e->sent = true;
    struct uvm__look look;
    if (look_at(x, d, e, &look)) return;
    if (look.hit)
      release(x, d, i, &look), freed = true; /* mapped while the miss was under way: no fault */
    else
      ring_put(x, d, e);
  }
  if (d->walk_head < d->walks.n)
    start_walk(x, d);
  else
    d->walk_head = d->walks.n = 0;
  if (freed) serve_lines(x, d);
  interrupt(x, d);
}

bool uvm__quiet(const struct uvm__device *d) { return d->armed && d->put == d->get; }

void uvm__rearm(struct uvm_engine *x, struct uvm__device *d) {
  d->armed = true;
  d->quiet_since = x->now;
  interrupt_in(x, d, 0); /* what came meanwhile has interrupted already */
  uvm__host_notice(x);
}

/* -- replay -- */

/* What waited for room and has its page by now needs none. Neighbours in a line mostly want one page. */
static void pass_lines(struct uvm_engine *x, struct uvm__device *d) {
  for (uint32_t s = 0; s < d->nsms; s++) {
    struct uvm__sm *sm = &d->sms[s];
    size_t n = sm->line.n, gone = 0;
    bool there = false;
    for (size_t i = n; i-- > 0;) {
      const struct uvm__waiter *w = &sm->line.v[i], *before = w + 1;
      bool alike = i < n - 1 && w->page == before->page && w->record == before->record && w->writing == before->writing;
      if (!alike) there = page_there(x, d, w);
      if (there) {
        uvm__at(x, x->now, UVM__WARP, d->proc, w->warp);
        d->warps.v[w->warp].waiting = false;
        gone++;
      } else {
        sm->line.v[i + gone] = *w;
      }
    }
    sm->line.n -= gone;
    if (gone) memmove(sm->line.v, sm->line.v + gone, sm->line.n * sizeof *sm->line.v);
  }
}

/* All that had faulted by now try again; what is still on its way to the MMU will find the pages anyway. */
void uvm__retry(struct uvm_engine *x, struct uvm__device *d) {
  uint32_t end = d->newest;
  for (uint32_t i = d->oldest, next; i != UVM__NO && !x->failed; i = next) {
    struct uvm__entry *e = &d->entries.v[i];
    next = i == end ? UVM__NO : e->newer;
    if (!e->sent) continue;
    struct uvm__look look;
    if (look_at(x, d, e, &look)) return;
    if (look.hit)
      release(x, d, i, &look);
    else
      send(x, d, i);
  }
  pass_lines(x, d);
  serve_lines(x, d);
}
