#include "core/space.h"
#include <assert.h>

/* Addresses of user space with four-level page tables. The first window stays empty, so that address 0 is nobody's. */
#define ADDRESS_FIRST UVM_BLOCK_BYTES
#define ADDRESS_END (1ull << 47)

static uint64_t round_up(uint64_t x, uint64_t to) { return (x + to - 1) / to * to; }
static uint64_t alloc_end(const struct uvm_alloc *a) { return a->base + round_up(a->bytes, UVM_PAGE); }
static uint64_t range_pages(const struct uvm_range *r) { return (r->info.bytes + UVM_PAGE - 1) / UVM_PAGE; }

const char *uvm_kind_name(enum uvm_kind kind) {
  static const char *const names[] = {"managed", "device", "pinned", "host"};
  assert((size_t)kind < sizeof names / sizeof *names);
  return names[kind];
}

/* -- the space -- */

/* One piece of memory: the struct, its masks, its backing ids. */
static size_t block_bytes(const struct uvm_space *s) {
  size_t masks = uvm__block_masks(s) * sizeof(uvm_mask), backings = s->topology.nnodes * sizeof(uint32_t);
  return round_up(sizeof(struct uvm_block) + masks + backings, sizeof(void *));
}

struct uvm_space *uvm_space_create(const struct uvm_topology *t) {
  assert(t->nprocs > 0 && t->nprocs <= UVM_MAX_PROCS && t->nnodes > 0 && t->nnodes <= UVM_MAX_NODES);
  struct uvm_space *s = uvm_mem(sizeof *s);
  s->topology = *t;
  memcpy(s->procs, t->procs, t->nprocs * sizeof *t->procs);
  memcpy(s->nodes, t->nodes, t->nnodes * sizeof *t->nodes);
  s->topology.procs = s->procs;
  s->topology.nodes = s->nodes;
  for (uvm_node n = 0; n < t->nnodes; n++) s->nodes[n].free = uvm_node_limited(s, n) ? s->nodes[n].capacity : UINT64_MAX;
  s->block_slab.size = block_bytes(s);
  UVM_PUSH(&s->ranges) = NULL; /* id 0 is nobody */
  UVM_PUSH(&s->blocks) = NULL;
  UVM_PUSH(&s->backings) = NULL;
  return s;
}

static void alloc_release(struct uvm_alloc *a) {
  uvm_mem_free(a->id);
  uvm_mem_free(a->label);
  uvm_mem_free(a->ranges.v);
  uvm_mem_free(a);
}

void uvm_space_destroy(struct uvm_space *s) {
  for (size_t i = 1; i < s->blocks.n; i++)
    if (s->blocks.v[i]) s->blocks.v[i]->busy_until = 0; /* an interrupted run ends with plans in flight */
  for (size_t i = 0; i < s->allocs.n; i++) {
    if (s->allocs.v[i]->live) uvm_space_free(s, s->allocs.v[i]);
    alloc_release(s->allocs.v[i]);
  }
  for (uvm_backing_id k = 1; k < s->backings.n; k++)
    if (s->backings.v[k]) uvm_backing_destroy(s, k); /* made and never given pages */
  uvm_mem_free(s->allocs.v);
  uvm_mem_free(s->by_address.v);
  uvm_mem_free(s->ranges.v);
  uvm_mem_free(s->blocks.v);
  uvm_mem_free(s->backings.v);
  uvm_slab_release(&s->block_slab);
  uvm_mem_free(s);
}

/* -- addresses -- */

/* First live allocation that ends above the address. */
static size_t find_above(const struct uvm_space *s, uint64_t address) {
  size_t lo = 0, hi = s->by_address.n;
  while (lo < hi) {
    size_t mid = lo + (hi - lo) / 2;
    if (alloc_end(s->by_address.v[mid]) > address)
      hi = mid;
    else
      lo = mid + 1;
  }
  return lo;
}

/* Above all others while there is room, so that a traced program's addresses rise; then the lowest gap. 0: no room. */
static uint64_t find_room(const struct uvm_space *s, uint64_t bytes) {
  size_t n = s->by_address.n;
  uint64_t at = n ? round_up(alloc_end(s->by_address.v[n - 1]), UVM_BLOCK_BYTES) : ADDRESS_FIRST;
  if (at < ADDRESS_FIRST) at = ADDRESS_FIRST;
  if (at <= ADDRESS_END && bytes <= ADDRESS_END - at) return at;
  at = ADDRESS_FIRST;
  for (size_t i = 0; i < n; i++) {
    const struct uvm_alloc *a = s->by_address.v[i];
    if (a->base >= at && a->base - at >= bytes) return at;
    if (alloc_end(a) > at) at = round_up(alloc_end(a), UVM_BLOCK_BYTES);
  }
  return 0;
}

static void insert_by_address(struct uvm_space *s, struct uvm_alloc *a) {
  size_t at = find_above(s, a->base);
  UVM_PUSH(&s->by_address) = a;
  memmove(&s->by_address.v[at + 1], &s->by_address.v[at], (s->by_address.n - 1 - at) * sizeof(struct uvm_alloc *));
  s->by_address.v[at] = a;
}

static void remove_by_address(struct uvm_space *s, const struct uvm_alloc *a) {
  size_t at = find_above(s, a->base);
  assert(at < s->by_address.n && s->by_address.v[at] == a);
  memmove(&s->by_address.v[at], &s->by_address.v[at + 1], (s->by_address.n - 1 - at) * sizeof(struct uvm_alloc *));
  s->by_address.n--;
}

static int check_base(const struct uvm_space *s, const char *id, uint64_t base, uint64_t bytes, struct uvm_error *e) {
  if (base % UVM_PAGE)
    return uvm_fail(e, UVM_EINPUT, "allocation %s: expected a base that is a multiple of 4096, found %#llx", id, (unsigned long long)base);
  if (base > ADDRESS_END - bytes)
    return uvm_fail(e, UVM_EINPUT, "allocation %s: expected an end of at most %#llx, found %llu bytes at %#llx", id, ADDRESS_END,
                    (unsigned long long)bytes, (unsigned long long)base);
  size_t i = find_above(s, base);
  if (i == s->by_address.n || s->by_address.v[i]->base >= base + bytes) return 0;
  const struct uvm_alloc *o = s->by_address.v[i];
  return uvm_fail(e, UVM_EINPUT, "allocation %s: [%#llx, %#llx) overlaps allocation %s at [%#llx, %#llx)", id, (unsigned long long)base,
                  (unsigned long long)(base + bytes), o->id, (unsigned long long)o->base, (unsigned long long)alloc_end(o));
}

/* -- allocations -- */

static struct uvm_range *range_new(struct uvm_space *s, struct uvm_alloc *a, uint64_t offset, uint64_t bytes) {
  struct uvm_range *r = uvm_mem(sizeof *r);
  r->id = (uvm_range_id)s->ranges.n;
  r->alloc = a;
  r->offset = offset;
  r->info.label = a->label;
  r->info.bytes = bytes;
  r->info.number = a->number;
  r->info.preferred = UVM_NONE;
  r->info.system = a->kind == UVM_HOST;
  UVM_PUSH(&s->ranges) = r;
  return r;
}

static int check_size(const struct uvm_space *s, const char *id, uint64_t bytes, enum uvm_kind kind, uvm_node node, struct uvm_error *e) {
  if (!bytes) return uvm_fail(e, UVM_EINPUT, "allocation %s: expected at least 1 byte, found 0", id);
  if (bytes > ADDRESS_END - ADDRESS_FIRST)
    return uvm_fail(e, UVM_EINPUT, "allocation %s: expected at most %llu bytes, found %llu", id, ADDRESS_END - ADDRESS_FIRST,
                    (unsigned long long)bytes);
  if (kind == UVM_DEVICE && round_up(bytes, UVM_PAGE) > s->nodes[node].free)
    return uvm_fail(e, UVM_EINPUT, "allocation %s: no room for %llu bytes on %s, which has %llu of %llu free", id,
                    (unsigned long long)bytes, s->nodes[node].name, (unsigned long long)s->nodes[node].free,
                    (unsigned long long)s->nodes[node].capacity);
  return 0;
}

int uvm_space_alloc(struct uvm_space *s, const char *id, const char *label, uint64_t base, uint64_t bytes, enum uvm_kind kind,
                    uvm_node node, struct uvm_alloc **out, struct uvm_error *e) {
  assert(kind != UVM_DEVICE || node < s->topology.nnodes);
  int rc = check_size(s, id, bytes, kind, node, e);
  if (rc) return rc;
  uint64_t mapped = round_up(bytes, UVM_PAGE);
  if (base != UVM_NEVER)
    rc = check_base(s, id, base, mapped, e);
  else if (!(base = find_room(s, mapped)))
    rc = uvm_fail(e, UVM_EINPUT, "allocation %s: no gap of %llu bytes is left in the address space", id, (unsigned long long)bytes);
  if (rc) return rc;
  if (kind == UVM_DEVICE) uvm__node_take(s, node, mapped);
  struct uvm_alloc *a = uvm_mem(sizeof *a);
  a->number = (uint32_t)s->allocs.n;
  a->id = uvm_copy_string(id);
  a->label = uvm_copy_string(label);
  a->base = base, a->bytes = bytes;
  a->kind = kind, a->node = kind == UVM_MANAGED ? UVM_NONE : node;
  a->live = true;
  if (kind == UVM_MANAGED) {
    a->nwindows = uvm_window_of(a, bytes - 1) + 1;
    a->blocks = uvm_mem(a->nwindows * sizeof(struct uvm_block *));
  }
  UVM_PUSH(&a->ranges) = range_new(s, a, 0, bytes);
  UVM_PUSH(&s->allocs) = a;
  insert_by_address(s, a);
  *out = a;
  return 0;
}

static void block_free(struct uvm_space *s, struct uvm_block *b) {
  assert(!b->busy_until);
  if (s->hooks.block_fini) s->hooks.block_fini(s->hooks.ctx, b);
  if (b->page_backing)
    for (int n = 0; n < s->topology.nnodes; n++) uvm_mem_free(b->page_backing[n]);
  uvm_mem_free(b->page_backing);
  s->blocks.v[b->id] = NULL;
  uvm_slab_give(&s->block_slab, b);
}

void uvm_space_free(struct uvm_space *s, struct uvm_alloc *a) {
  assert(a->live);
  for (size_t w = 0; w < a->nwindows; w++)
    for (struct uvm_block *b = a->blocks[w], *next; b; b = next) {
      next = b->split;
      uvm__backing_leave(s, b);
      block_free(s, b);
    }
  uvm_mem_free(a->blocks);
  a->blocks = NULL, a->nwindows = 0;
  for (size_t i = 0; i < a->ranges.n; i++) {
    s->ranges.v[a->ranges.v[i]->id] = NULL;
    uvm_mem_free(a->ranges.v[i]);
  }
  a->ranges.n = 0;
  if (a->kind == UVM_DEVICE) uvm__node_give(s, a->node, round_up(a->bytes, UVM_PAGE));
  remove_by_address(s, a);
  a->live = false;
}

/* -- ranges -- */

static size_t range_index(const struct uvm_alloc *a, uint64_t offset) {
  size_t lo = 0, hi = a->ranges.n; /* v[lo] starts at or below offset */
  while (hi - lo > 1) {
    size_t mid = lo + (hi - lo) / 2;
    if (a->ranges.v[mid]->offset <= offset)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}

struct uvm_range *uvm_alloc_range(const struct uvm_alloc *a, uint64_t offset) {
  assert(a->live && offset < a->bytes);
  return a->ranges.v[range_index(a, offset)];
}

/* -- blocks -- */

size_t uvm__block_masks(const struct uvm_space *s) {
  return s->topology.nnodes + (size_t)s->topology.nprocs * UVM_MAP_LEVELS + 2 + s->topology.nprocs + s->topology.nnodes + 1;
}

static struct uvm_block *block_new(struct uvm_space *s, struct uvm_range *r, int first, int pages) {
  size_t masks = uvm__block_masks(s);
  struct uvm_block *b = uvm_slab_take(&s->block_slab);
  b->id = (uvm_block_id)s->blocks.n;
  b->first = (uint16_t)first, b->pages = (uint16_t)pages;
  b->range = r;
  b->backing = (uint32_t *)(void *)&b->mask[masks];
  UVM_PUSH(&s->blocks) = b;
  return b;
}

/* info follows range, first and pages. window: the address of the block's window. */
static void block_describe(struct uvm_block *b, uint64_t window) {
  const struct uvm_range *r = b->range;
  b->info.range = r->id;
  b->info.offset = window + b->first * UVM_PAGE - (r->alloc->base + r->offset);
  b->info.first = b->first, b->info.pages = b->pages;
  assert(b->info.offset / UVM_PAGE + b->pages <= range_pages(r));
}

static void chain_insert(struct uvm_block **head, struct uvm_block *b) {
  while (*head && (*head)->first < b->first) head = &(*head)->split;
  b->split = *head;
  *head = b;
}

struct uvm_block *uvm_block_get(struct uvm_space *s, struct uvm_alloc *a, uint64_t offset) {
  struct uvm_block *b = uvm_block_find(a, offset);
  if (b) return b;
  struct uvm_range *r = uvm_alloc_range(a, offset);
  uint64_t window = (a->base + offset) / UVM_BLOCK_BYTES * UVM_BLOCK_BYTES;
  uint64_t begin = a->base + r->offset, end = begin + range_pages(r) * UVM_PAGE;
  int first = begin > window ? (int)((begin - window) / UVM_PAGE) : 0;
  int last = end < window + UVM_BLOCK_BYTES ? (int)((end - window) / UVM_PAGE) : UVM_BLOCK_PAGES;
  b = block_new(s, r, first, last - first);
  block_describe(b, window);
  chain_insert(&a->blocks[uvm_window_of(a, offset)], b);
  return b;
}

uint64_t uvm_block_offset(const struct uvm_block *b, int p) {
  assert(p >= b->first && p < b->first + b->pages);
  return b->range->offset + b->info.offset + (uint64_t)(p - b->first) * UVM_PAGE;
}

/* -- splitting -- */

/* Both parts are new: whoever kept state on the old block starts over. */
static void block_cut(struct uvm_space *s, struct uvm_block **at, int page, uint64_t window, struct uvm_range *upper) {
  struct uvm_block *b = *at;
  assert(!b->busy_until && page > b->first && page < b->first + b->pages);
  struct uvm_block *lo = block_new(s, b->range, b->first, page - b->first);
  struct uvm_block *hi = block_new(s, upper, page, b->first + b->pages - page);
  block_describe(lo, window);
  block_describe(hi, window);
  uvm_mask below = uvm_block_all(lo), above = uvm_block_all(hi);
  for (size_t i = 0; i < uvm__block_masks(s); i++) {
    lo->mask[i] = hi->mask[i] = b->mask[i];
    uvm_mask_and(&lo->mask[i], &below);
    uvm_mask_and(&hi->mask[i], &above);
  }
  uvm__backing_cut(s, b, lo, hi);
  lo->split = hi, hi->split = b->split;
  *at = lo;
  block_free(s, b);
}

/* The blocks of range r from the allocation's offset on now belong to `upper`. */
static void hand_over(struct uvm_space *s, struct uvm_alloc *a, const struct uvm_range *r, struct uvm_range *upper) {
  size_t last = uvm_window_of(a, upper->offset + upper->info.bytes - 1);
  for (size_t w = uvm_window_of(a, upper->offset); w <= last; w++) {
    uint64_t window = (a->base / UVM_BLOCK_BYTES + w) * UVM_BLOCK_BYTES, start = a->base + upper->offset;
    int page = start > window ? (int)((start - window) / UVM_PAGE) : 0;
    for (struct uvm_block **at = &a->blocks[w]; *at; at = &(*at)->split) {
      struct uvm_block *b = *at;
      if (b->range != r || b->first + b->pages <= page) continue;
      if (b->first < page) {
        block_cut(s, at, page, window, upper);
        at = &(*at)->split; /* the upper part is done */
        continue;
      }
      b->range = upper;
      block_describe(b, window);
    }
  }
}

static void split_at(struct uvm_space *s, struct uvm_alloc *a, uint64_t offset) {
  if (offset >= a->bytes) return;
  size_t i = range_index(a, offset);
  struct uvm_range *r = a->ranges.v[i];
  if (r->offset == offset) return;
  assert((a->base + offset) % UVM_PAGE == 0);
  struct uvm_range *upper = range_new(s, a, offset, r->offset + r->info.bytes - offset);
  uvm_range_id id = upper->id;
  uint64_t bytes = upper->info.bytes;
  upper->info = r->info, upper->info.bytes = bytes, upper->id = id;
  upper->no_duplication = r->no_duplication;
  r->info.bytes = offset - r->offset;
  UVM_PUSH(&a->ranges) = upper;
  memmove(&a->ranges.v[i + 2], &a->ranges.v[i + 1], (a->ranges.n - 2 - i) * sizeof(struct uvm_range *));
  a->ranges.v[i + 1] = upper;
  if (a->kind == UVM_MANAGED) hand_over(s, a, r, upper);
}

size_t uvm_space_split(struct uvm_space *s, struct uvm_alloc *a, uint64_t offset, uint64_t bytes, size_t *n) {
  assert(a->live && bytes && offset < a->bytes);
  uint64_t end = bytes < a->bytes - offset ? offset + bytes : a->bytes;
  split_at(s, a, offset);
  split_at(s, a, end);
  size_t first = range_index(a, offset);
  *n = range_index(a, end - 1) - first + 1;
  return first;
}

/* -- what the masks say -- */

uint32_t uvm_page_nodes(const struct uvm_space *s, const struct uvm_block *b, int page) {
  uint32_t nodes = 0;
  for (uvm_node n = 0; n < s->topology.nnodes; n++) nodes |= (uint32_t)uvm_mask_test(uvm_block_resident(s, b, n), page) << n;
  return nodes;
}

/* Takes pages [first, first + n) out of the mask: how many were in it. */
static int take(uvm_mask *m, int first, int n) {
  if (n == 1 && !uvm_mask_test(m, first)) return 0; /* nearly always */
  uvm_mask taken = uvm_mask_range(first, first + n);
  uvm_mask_and(&taken, m);
  uvm_mask_andnot(m, &taken);
  return uvm_mask_count(&taken);
}

int uvm_block_prove(const struct uvm_space *s, struct uvm_block *b, uvm_node node, int first, int n) {
  return take(uvm_block_unproven(s, b, node), first, n);
}

int uvm_block_write(const struct uvm_space *s, struct uvm_block *b, int first, int n) { return take(uvm_block_unwritten(s, b), first, n); }

uvm_mask uvm_block_populated(const struct uvm_space *s, const struct uvm_block *b) {
  uvm_mask m = *uvm_block_resident(s, b, 0);
  for (uvm_node n = 1; n < s->topology.nnodes; n++) uvm_mask_or(&m, uvm_block_resident(s, b, n));
  return m;
}

uvm_mask uvm_block_in_reach(const struct uvm_space *s, const struct uvm_block *b, uvm_proc p) {
  uvm_mask m = {{0}};
  for (uvm_node n = 0; n < s->topology.nnodes; n++)
    if (uvm_reaches(s, p, n)) uvm_mask_or(&m, uvm_block_resident(s, b, n));
  return m;
}

uvm_proc uvm_proc_at(const struct uvm_space *s, uvm_node n) {
  for (uvm_proc p = 0; p < s->topology.nprocs; p++)
    if (s->procs[p].home == n) return p;
  return 0;
}

uvm_node uvm_page_target(const struct uvm_space *s, const struct uvm_block *b, uvm_proc p, int page) {
  uint32_t nodes = uvm_page_nodes(s, b, page) & (s->procs[p].reach | 1u << s->procs[p].home);
  if (nodes >> s->procs[p].home & 1) return s->procs[p].home;
  return nodes ? (uvm_node)__builtin_ctz(nodes) : UVM_NONE;
}
