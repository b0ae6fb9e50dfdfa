/* The driver's ranges: how they are cut, found and split, and where a fault's pages go. */
#include "core/amdkfd/amdkfd.h"
#include <assert.h>

static uint64_t down(uint64_t page, uint64_t to) { return page / to * to; }

/* -- pure -- */

uint64_t uvm__kfd_max_pages(uint64_t vram_bytes) {
  uint64_t pages = vram_bytes >> 17, max = 1ull << 9; /* 1/32 of VRAM, between 2 MiB and 1 GiB, a power of two */
  while (max < 1ull << 18 && max * 2 <= pages) max *= 2;
  return max;
}

uint64_t uvm__kfd_piece_last(struct kfd_span s, uint64_t max) { return uvm_min(s.last, down(s.first + max, max) - 1); }

static struct kfd_span granule(uint64_t page, uint8_t granularity) {
  uint64_t first = down(page, 1ull << granularity);
  return (struct kfd_span){first, first + (1ull << granularity) - 1};
}

static struct kfd_span meet(struct kfd_span a, struct kfd_span b) {
  return (struct kfd_span){uvm_max(a.first, b.first), uvm_min(a.last, b.last)};
}

struct kfd_span uvm__kfd_window(const struct kfd_prange *r, uint64_t page) {
  return meet(granule(page, r->granularity), r->pages);
}

struct kfd_span uvm__kfd_unregistered(uint64_t page, struct kfd_span vma, struct kfd_span gap, uint8_t granularity) {
  return meet(granule(page, granularity), meet(vma, gap));
}

bool uvm__kfd_same_hive(const struct uvm_space *s, uvm_proc a, uvm_proc b) { return a == b || s->procs[a].fast_link >> b & 1; }

uint32_t uvm__kfd_location(const struct uvm_space *s, uvm_node n) {
  return uvm_proc_at(s, n); /* the CPU first: an APU's memory is system memory */
}

struct kfd_place uvm__kfd_restore_location(const struct uvm_space *s, const struct kfd_prange *r, uvm_proc gpu) {
  if (s->procs[gpu].apu) return (struct kfd_place){0, KFD_WHY_APU};
  if (r->preferred == gpu || r->preferred == 0) return (struct kfd_place){r->preferred, KFD_WHY_PREFERRED};
  if (r->preferred != KFD_UNDEFINED && uvm__kfd_same_hive(s, gpu, (uvm_proc)r->preferred))
    return (struct kfd_place){r->preferred, KFD_WHY_PREFERRED_IN_HIVE};
  if (r->access >> gpu & 1) return (struct kfd_place){gpu, KFD_WHY_ACCESS};
  if (!(r->in_place >> gpu & 1)) return (struct kfd_place){KFD_UNDEFINED, KFD_WHY_NONE};
  bool near = r->actual && uvm__kfd_same_hive(s, gpu, (uvm_proc)r->actual);
  return (struct kfd_place){near ? r->actual : 0, KFD_WHY_IN_PLACE};
}

uint32_t uvm__kfd_prefetch_location(const struct uvm_space *s, const struct kfd_prange *r) {
  if (r->prefetch == 0 || r->prefetch == KFD_UNDEFINED) return r->prefetch;
  uvm_proc to = (uvm_proc)r->prefetch;
  if (s->procs[to].apu) return 0;
  for (uvm_proc p = 1; p < s->topology.nprocs; p++)
    if (r->in_place >> p & 1 && !uvm__kfd_same_hive(s, p, to)) return 0; /* who may map it could not reach it there */
  return to;
}

uvm_ns *uvm__kfd_quiet(struct kfd_prange *r, uint64_t page) {
  size_t i = r->quiet.n == 1 ? 0 : (size_t)((page >> r->granularity) - (r->pages.first >> r->granularity));
  assert(i < r->quiet.n);
  return &r->quiet.v[i];
}

struct kfd_part uvm__kfd_part(struct uvm_space *s, struct uvm_alloc *a, struct kfd_span pages) {
  struct kfd_part p = {.block = uvm_block_get(s, a, uvm__kfd_offset(a, pages.first))};
  uint64_t window = down(pages.first, UVM_BLOCK_PAGES);
  p.next = uvm_min(pages.last + 1, window + p.block->first + p.block->pages);
  p.pages = uvm_mask_range((int)(pages.first - window), (int)(p.next - window));
  return p;
}

/* -- the ranges of an allocation -- */

static struct kfd_ranges *ranges_of(struct uvm_core *c, const struct uvm_alloc *a) {
  struct kfd_state *s = uvm__kfd(c);
  while (s->ranges.n <= a->number) UVM_PUSH(&s->ranges) = (struct kfd_ranges){0};
  return &s->ranges.v[a->number];
}

/* Index of the first range that ends at or above the page. */
static size_t index_of(const struct kfd_ranges *g, uint64_t page) {
  size_t lo = 0, hi = g->v.n;
  while (lo < hi) {
    size_t mid = lo + (hi - lo) / 2;
    if (g->v.v[mid]->pages.last >= page)
      hi = mid;
    else
      lo = mid + 1;
  }
  return lo;
}

static void insert(struct kfd_ranges *g, size_t at, struct kfd_prange *r) {
  UVM_PUSH(&g->v) = r;
  memmove(&g->v.v[at + 1], &g->v.v[at], (g->v.n - 1 - at) * sizeof(struct kfd_prange *));
  g->v.v[at] = r;
}

static void size_quiet(const struct uvm_core *c, struct kfd_prange *r) {
  uint64_t granules = (r->pages.last >> r->granularity) - (r->pages.first >> r->granularity) + 1;
  if (uvm__kfd(c)->dedupe_per_range) granules = 1;
  while (r->quiet.n < granules) UVM_PUSH(&r->quiet) = 0;
}

/* With XNACK on, every GPU starts with access. */
static struct kfd_prange *create(struct uvm_core *c, struct uvm_alloc *a, struct kfd_span pages) {
  struct kfd_prange *r = uvm_mem(sizeof *r);
  r->alloc = a;
  r->pages = pages;
  r->granularity = (uint8_t)uvm__kfd(c)->granularity;
  r->preferred = r->prefetch = KFD_UNDEFINED;
  r->flags = KFD_HOST_ACCESS | KFD_COHERENT;
  r->access = ((1u << c->space->topology.nprocs) - 1) & ~1u;
  size_quiet(c, r);
  return r;
}

/* Cuts s, which no range meets, into ranges in front of index at. Returns the index behind them. */
static size_t add(struct uvm_core *c, struct uvm_alloc *a, struct kfd_span s, size_t at) {
  struct kfd_ranges *g = ranges_of(c, a);
  for (uint64_t last; s.first <= s.last; s.first = last + 1) {
    last = uvm__kfd_piece_last(s, uvm__kfd(c)->max_pages);
    insert(g, at++, create(c, a, (struct kfd_span){s.first, last}));
  }
  return at;
}

/* Registers what is not yet in s. */
static void fill(struct uvm_core *c, struct uvm_alloc *a, struct kfd_span s) {
  struct kfd_ranges *g = ranges_of(c, a);
  size_t at = index_of(g, s.first);
  while (s.first <= s.last) {
    const struct kfd_prange *r = at < g->v.n ? g->v.v[at] : NULL;
    uint64_t end = r ? uvm_min(s.last + 1, r->pages.first) : s.last + 1;
    if (s.first < end) at = add(c, a, (struct kfd_span){s.first, end - 1}, at);
    s.first = r ? r->pages.last + 1 : end;
    at++;
  }
}

void uvm__kfd_register(struct uvm_core *c, struct uvm_alloc *a) {
  if (uvm__kfd(c)->registered && !ranges_of(c, a)->v.n) fill(c, a, uvm__kfd_all(a));
}

struct kfd_prange *uvm__kfd_at_or_above(struct uvm_core *c, const struct uvm_alloc *a, uint64_t page) {
  const struct kfd_ranges *g = ranges_of(c, a);
  size_t i = index_of(g, page);
  return i < g->v.n ? g->v.v[i] : NULL;
}

struct kfd_prange *uvm__kfd_find(struct uvm_core *c, const struct uvm_alloc *a, uint64_t page) {
  struct kfd_prange *r = uvm__kfd_at_or_above(c, a, page);
  return r && r->pages.first <= page ? r : NULL;
}

struct kfd_prange *uvm__kfd_get(struct uvm_core *c, struct uvm_alloc *a, uint64_t page) {
  uvm__kfd_register(c, a);
  struct kfd_prange *r = uvm__kfd_find(c, a, page);
  if (r) return r;
  struct kfd_ranges *g = ranges_of(c, a);
  size_t at = index_of(g, page);
  struct kfd_span gap = {at ? g->v.v[at - 1]->pages.last + 1 : 0, at < g->v.n ? g->v.v[at]->pages.first - 1 : UINT64_MAX};
  r = create(c, a, uvm__kfd_unregistered(page, uvm__kfd_all(a), gap, (uint8_t)uvm__kfd(c)->granularity));
  insert(g, at, r);
  return r;
}

/* -- splitting, by attributes on a part -- */

static uint64_t vram_pages(const struct uvm_core *c, const struct kfd_prange *r) {
  uint64_t n = 0;
  if (!r->actual) return 0;
  for (struct kfd_span left = r->pages; left.first <= left.last;) {
    struct kfd_part p = uvm__kfd_part(c->space, r->alloc, left);
    uvm_mask_and(&p.pages, uvm_block_resident(c->space, p.block, c->space->procs[r->actual].home));
    n += (uint64_t)uvm_mask_count(&p.pages);
    left.first = p.next;
  }
  return n;
}

/* Both parts keep what the range had; the times of its granules go with them. */
static void split_at(struct uvm_core *c, struct uvm_alloc *a, uint64_t page) {
  struct kfd_ranges *g = ranges_of(c, a);
  size_t i = index_of(g, page);
  struct kfd_prange *r = i < g->v.n ? g->v.v[i] : NULL;
  if (!r || r->pages.first >= page) return;
  struct kfd_prange *upper = uvm_mem(sizeof *upper);
  *upper = *r;
  memset(&upper->quiet, 0, sizeof upper->quiet);
  upper->pages.first = page;
  size_quiet(c, upper);
  for (uint64_t p = page; p <= upper->pages.last; p = granule(p, r->granularity).last + 1)
    *uvm__kfd_quiet(upper, p) = *uvm__kfd_quiet(r, p);
  r->pages.last = page - 1;
  insert(g, i + 1, upper);
  r->vram_pages = vram_pages(c, r), upper->vram_pages = vram_pages(c, upper);
  if (!r->vram_pages) r->actual = 0;
  if (!upper->vram_pages) upper->actual = 0;
}

void uvm__kfd_split(struct uvm_core *c, struct uvm_alloc *a, struct kfd_span s) {
  uvm__kfd_register(c, a);
  fill(c, a, s);
  split_at(c, a, s.first);
  split_at(c, a, s.last + 1);
}

void uvm__kfd_forget(struct uvm_core *c, const struct uvm_alloc *a) {
  struct kfd_ranges *g = ranges_of(c, a);
  for (size_t i = 0; i < g->v.n; i++) {
    uvm_mem_free(g->v.v[i]->quiet.v);
    uvm_mem_free(g->v.v[i]);
  }
  uvm_mem_free(g->v.v);
  *g = (struct kfd_ranges){0};
}
