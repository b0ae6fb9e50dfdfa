/* Access counters: for each GPU and 2 MiB region of memory it reaches elsewhere, 16 bits of coalesced accesses. At the
 * threshold one notification is made, and the counter is silent until it is cleared. */
#include "model/model.h"

enum { THRESHOLD = 256, COUNT_MAX = UINT16_MAX, SUB_PAGES = 16 };

static struct uvm__counter *counter_of(struct uvm__device *d, const struct uvm_alloc *a, uint64_t page) {
  while (d->counters.n <= a->number) UVM_PUSH(&d->counters) = NULL;
  struct uvm__counter **of = &d->counters.v[a->number];
  if (!*of) *of = uvm_mem(a->nwindows * sizeof **of);
  return &(*of)[((a->base / UVM_PAGE + page) / UVM_BLOCK_PAGES) - a->base / UVM_BLOCK_BYTES];
}

static void notify(struct uvm_engine *x, struct uvm__device *d, struct uvm__counter *c, struct uvm_alloc *a, uint64_t page) {
  c->silent = true;
  UVM_PUSH(&d->notes) = (struct uvm_counter_note){a, page * UVM_PAGE, c->touched, c->count};
  if (d->noted) return;
  d->noted = true;
  uvm__at(x, x->now + x->machine->gpu.interrupt_ns, UVM__COUNTERS, d->proc, 0);
}

/* The run lies in one block, hence in one region. */
void uvm__count_remote(struct uvm_engine *x, struct uvm__device *d, struct uvm_alloc *a, uint64_t page, uint64_t run) {
  if (a->kind != UVM_MANAGED) return;
  struct uvm__counter *c = counter_of(d, a, page);
  uint32_t first = (uint32_t)uvm_page_of(a, page * UVM_PAGE) / SUB_PAGES,
           last = (uint32_t)uvm_page_of(a, (page + run - 1) * UVM_PAGE) / SUB_PAGES;
  c->touched |= (UINT32_MAX >> (31 - last)) & (UINT32_MAX << first);
  c->count = c->count + run > COUNT_MAX ? COUNT_MAX : c->count + run;
  if (!c->silent && c->count >= (c->threshold ? c->threshold : THRESHOLD)) notify(x, d, c, a, page);
}

size_t uvm__take_notes(struct uvm__device *d, struct uvm_counter_note *out, size_t max) {
  size_t n = d->notes.n < max ? d->notes.n : max;
  if (n) memcpy(out, d->notes.v, n * sizeof *out);
  d->notes.n -= n;
  if (d->notes.n) memmove(d->notes.v, d->notes.v + n, d->notes.n * sizeof *out);
  return n;
}

void uvm__clear_counter(struct uvm__device *d, struct uvm_alloc *a, uint64_t offset, uint32_t threshold) {
  *counter_of(d, a, offset / UVM_PAGE) = (struct uvm__counter){.threshold = threshold};
}

void uvm__forget_counters(struct uvm__device *d, const struct uvm_alloc *a) {
  size_t n = 0;
  for (size_t i = 0; i < d->notes.n; i++)
    if (d->notes.v[i].alloc != a) d->notes.v[n++] = d->notes.v[i];
  d->notes.n = n;
  if (a->number >= d->counters.n) return;
  uvm_mem_free(d->counters.v[a->number]);
  d->counters.v[a->number] = NULL;
}
