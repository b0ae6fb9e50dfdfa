/* Access-counter notifications: pages that a GPU keeps reading remotely come to it. A notification names a page and the 64 KiB
 * sub-regions of its 2 MiB that were touched; those that live where the page lives go together. */
#include "core/nvidia/nvidia.h"
#include <assert.h>
#include <stdlib.h>

#define NOTES 256

static void serve(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now);
static struct nv_counters *counters_of(struct uvm_driver_task *t) { return (struct nv_counters *)t; }

/* Servicing returned early on hosts with 4 KiB pages from 590 on. */
static bool inert(const struct uvm_core *c) {
  uint32_t o = uvm__nv_state(c)->options.counters_inert;
  return o == NV_AS_SHIPPED ? c->space->topology.driver_version >= 590 : o != 0;
}

/* -- one block -- */

static struct uvm_block *locate(struct uvm_core *c, struct nv_service *v) {
  struct nv_counters *k = counters_of(v->task);
  const struct uvm_counter_note *n = k->notes;
  struct uvm_block *b = uvm_block_get(c->space, n[k->next].alloc, n[k->next].offset);
  uint64_t end = uvm__nv_block_end(b);
  for (k->end = k->next + 1; k->end < k->n; k->end++)
    if (n[k->end].alloc != n[k->next].alloc || n[k->end].offset >= end) break;
  return b;
}

/* The pages of the touched sub-regions that are with the notified page; only that one where the copy is not 2 MiB in one piece. */
static uvm_mask touched_pages(const struct uvm_core *c, const struct uvm_block *b, const struct uvm_counter_note *n, int page) {
  uvm_mask m = uvm_mask_range(page, page + 1);
  uint32_t nodes = uvm_page_nodes(c->space, b, page);
  for (int r = 0; b->pages == UVM_BLOCK_PAGES && r < 32; r++)
    if (n->touched >> r & 1) uvm_mask_set(&m, r * NV_REGION_PAGES, (r + 1) * NV_REGION_PAGES);
  if (!nodes) return (uvm_mask){{0}};
  uvm_mask_and(&m, uvm_block_resident(c->space, b, (uvm_node)__builtin_ctz(nodes)));
  return m;
}

static void admit_note(struct uvm_core *c, struct nv_service *v, size_t i, uvm_ns now) {
  struct nv_counters *k = counters_of(v->task);
  const struct uvm_counter_note *n = &k->notes[i];
  uvm_mask chosen, pages;
  bool asked;
  struct uvm_fault f = {.block = v->block->id,
                        .page = (uint16_t)uvm_page_of(n->alloc, n->offset),
                        .merged = 1,
                        .proc = k->proc,
                        .access = UVM_A_PREFETCH,
                        .access_mask = 1u << UVM_A_PREFETCH,
                        .counter = 1};
  pages = touched_pages(c, v->block, n, f.page);
  k->thresholds[i] = uvm_ask_counter(c->host, &f, &pages, n->count, now, &chosen, &asked);
  if (asked) pages = chosen;
  uvm_mask_andnot(&pages, uvm_block_resident(c->space, v->block, c->space->procs[k->proc].home));
  uvm_mask_andnot(&pages, &v->d.faulted);
  for (int p = -1; (p = uvm_mask_next(&pages, p + 1)) >= 0;) {
    f.page = (uint16_t)p;
    struct nv_verdict r = uvm__nv_admit(c, v, &f, now);
    if (r.outcome == NV_HELD) uvm__nv_hold(c, v->block, p, k->proc, r.until, now);
  }
}

static bool decide(struct uvm_core *c, struct nv_service *v, uvm_ns now) {
  struct nv_counters *k = counters_of(v->task);
  if (uvm_mask_empty(uvm_block_mapped(c->space, v->block, k->proc, UVM_MAP_READ))) return false;
  for (size_t i = k->next; i < k->end; i++) admit_note(c, v, i, now);
  return !uvm_mask_empty(&v->d.faulted) && uvm__nv_prefetch(c, v, now);
}

/* -- the notifications -- */

static int by_address(const void *x, const void *y) {
  const struct uvm_counter_note *a = x, *b = y;
  uint64_t at = a->alloc->base + a->offset, bt = b->alloc->base + b->offset;
  return at < bt ? -1 : at > bt;
}

static void rearm(struct uvm_core *c, const struct nv_counters *k, size_t from, size_t to) {
  for (size_t i = from; i < to; i++) {
    uint32_t threshold = k->thresholds[i] ? k->thresholds[i] : uvm__nv_state(c)->options.access_counter_threshold;
    c->hw.clear_counter(c->hw.ctx, k->proc, k->notes[i].alloc, k->notes[i].offset, threshold);
  }
}

/* Takes the next notifications, less those below the threshold in force: their counters were not armed by this driver yet. */
static bool take(struct uvm_core *c, struct nv_counters *k) {
  size_t n = c->hw.notes(c->hw.ctx, k->proc, k->notes, NOTES), kept = 0;
  memset(k->thresholds, 0, NOTES * sizeof *k->thresholds);
  for (size_t i = 0; i < n; i++) {
    if (k->notes[i].count >= uvm__nv_state(c)->options.access_counter_threshold)
      k->notes[kept++] = k->notes[i];
    else
      c->hw.clear_counter(c->hw.ctx, k->proc, k->notes[i].alloc, k->notes[i].offset, uvm__nv_state(c)->options.access_counter_threshold);
  }
  qsort(k->notes, kept, sizeof *k->notes, by_address);
  k->n = kept, k->next = 0;
  return n;
}

static void serve(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct nv_counters *k = counters_of(t);
  t->step = serve;
  do
    while (k->next < k->n) {
      if (!uvm__nv_service_step(c, &k->service, now)) return;
      rearm(c, k, k->next, k->end);
      k->next = k->end;
    }
  while (take(c, k));
  k->running = false;
}

void uvm__nv_notified(struct uvm_core *c, uvm_proc gpu, uvm_ns now) {
  struct nv_counters *k = &uvm__nv_state(c)->counters[gpu];
  assert(gpu > 0 && gpu < c->space->topology.nprocs);
  if (k->running) return;
  if (!k->notes) k->notes = uvm_mem(NOTES * sizeof *k->notes), k->thresholds = uvm_mem(NOTES * sizeof *k->thresholds);
  if (!uvm__nv_state(c)->options.access_counters || inert(c)) {
    while (c->hw.notes(c->hw.ctx, gpu, k->notes, NOTES)) continue; /* not cleared: they do not fire again */
    return;
  }
  k->service = (struct nv_service){.task = &k->task,
                                   .locate = locate,
                                   .decide = decide,
                                   .proc = gpu,
                                   .asker = gpu,
                                   .context = UVM_X_COUNTER,
                                   .cause = UVM_C_COUNTERS,
                                   .mapping = NV_MAP_ACCESS,
                                   .plan = k->service.plan};
  k->proc = gpu;
  k->running = true;
  k->n = k->next = 0;
  serve(c, &k->task, now);
}
