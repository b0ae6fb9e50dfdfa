/* One batch of a GPU's fault ring: taken, merged on the way, sorted. */
#include "core/nvidia/nvidia.h"
#include <assert.h>
#include <stdlib.h>

/* -- merging -- */

static struct nv_utlb *utlb_of(struct nv_batch *b, uint16_t id) {
  while (b->utlbs.n <= id) UVM_PUSH(&b->utlbs) = (struct nv_utlb){0};
  return &b->utlbs.v[id];
}

static uint64_t page_offset(const struct uvm_raw_fault *f) { return f->offset & ~(UVM_PAGE - 1); }
static bool same_page(const struct nv_entry *e, const struct uvm_raw_fault *f) {
  return e->alloc == f->alloc && e->offset == page_offset(f);
}

/* The entry that f merges into: the last one of its own uTLB, or the last one of the batch unless f is the more intrusive. */
static struct nv_entry *find_merge(struct nv_batch *b, const struct nv_utlb *u, const struct uvm_raw_fault *f) {
  if (u->batch == b->number && same_page(&b->entries.v[u->last], f)) return &b->entries.v[u->last];
  if (!b->entries.n) return NULL;
  struct nv_entry *last = &b->entries.v[b->entries.n - 1];
  return same_page(last, f) && f->access <= last->access ? last : NULL;
}

static void take(struct nv_batch *b, const struct uvm_raw_fault *f, bool coalesce) {
  struct nv_utlb *u = utlb_of(b, f->utlb);
  struct nv_entry *e = coalesce ? find_merge(b, u, f) : NULL;
  b->raw++;
  if (e) {
    e->merged++;
    e->access_mask |= (uint8_t)(1u << f->access);
    if (f->access > e->access) e->access = f->access;
    return;
  }
  *u = (struct nv_utlb){b->number, b->entries.n};
  UVM_PUSH(&b->entries) = (struct nv_entry){.alloc = f->alloc,
                                            .offset = page_offset(f),
                                            .time = f->time,
                                            .line = f->line,
                                            .order = b->raw,
                                            .merged = 1,
                                            .access = f->access,
                                            .access_mask = (uint8_t)(1u << f->access)};
}

/* -- order -- */

/* By address; the most intrusive access to a page first; then as they came. */
static int by_address(const void *x, const void *y) {
  const struct nv_entry *a = x, *b = y;
  uint64_t at = a->alloc->base + a->offset, bt = b->alloc->base + b->offset;
  if (at != bt) return at < bt ? -1 : 1;
  if (a->access != b->access) return a->access > b->access ? -1 : 1;
  return a->order < b->order ? -1 : a->order > b->order;
}

/* Entries of one page become one: those that did not stand next to each other when they were fetched. */
static void drop_duplicates(struct nv_batch *b) {
  size_t n = 0;
  for (size_t i = 0; i < b->entries.n; i++) {
    const struct nv_entry *e = &b->entries.v[i];
    struct nv_entry *last = n ? &b->entries.v[n - 1] : NULL;
    if (!last || last->alloc != e->alloc || last->offset != e->offset) {
      b->entries.v[n++] = *e;
      continue;
    }
    last->merged += e->merged;
    last->access_mask |= e->access_mask;
    if (e->time < last->time) last->time = e->time;
  }
  b->entries.n = n;
}

/* -- the ring -- */

bool uvm__nv_fetch(struct uvm_core *c, struct nv_batch *b, uvm_proc gpu, uvm_ns now) {
  const struct nv_options *o = &uvm__nv_state(c)->options;
  const struct uvm_hw *hw = &c->hw;
  b->entries.n = 0, b->raw = 0, b->number++;
  if (b->get == b->put) b->put = hw->ring_put(hw->ctx, gpu, now);
  assert(b->get <= b->put);
  while (b->get != b->put && b->raw < o->fault_batch_count) take(b, hw->ring_entry(hw->ctx, gpu, b->get++), o->fault_coalesce);
  hw->ring_get(hw->ctx, gpu, b->get);
  if (b->entries.n) qsort(b->entries.v, b->entries.n, sizeof *b->entries.v, by_address);
  drop_duplicates(b);
  return b->raw;
}

void uvm__nv_flush(struct uvm_core *c, struct nv_batch *b, uvm_proc gpu, uvm_ns now) {
  uint64_t duplicates = b->raw - b->entries.n;
  if (duplicates * 100 > (uint64_t)b->raw * uvm__nv_state(c)->options.replay_update_put_ratio) b->put = c->hw.ring_put(c->hw.ctx, gpu, now);
  b->get = b->put;
  c->hw.ring_get(c->hw.ctx, gpu, b->get);
}
