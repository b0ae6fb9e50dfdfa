/* The space against a naive model: an array of pages and loops over them. Random steps, legal or not, random advice splits and
 * evictions; the model decides page by page what is legal and what comes out, and everything is compared each time. */
#include "tests/unit/fixture.h"

enum { WINDOWS = 3, FIRST = 37, PAGES = 2 * 512 + 300, ROUNDS = 30000, SEEDS = 4 };

struct page {
  bool resident[NODES], evicted[PROCS], dirty;
  int level[PROCS]; /* -1 unmapped, else enum uvm_level */
  uvm_backing_id backing[NODES];
};
struct model {
  struct uvm_space *s;
  struct uvm_alloc *a;
  uint64_t random;
  struct page page[PAGES]; /* by offset / 4096 */
  bool border[PAGES];      /* a range begins here */
  size_t refused, done;
};

static unsigned below(struct model *m, unsigned n) { return (unsigned)(uvm_random(&m->random) % n); }
static const uint32_t reach[PROCS] = {1 << DRAM, 1 << DRAM | 1 << HBM0, 1 << DRAM | 1 << HBM1};

/* -- what the model holds for legal -- */

static int copies(const struct page *g) { return g->resident[DRAM] + g->resident[HBM0] + g->resident[HBM1]; }
static bool arrives(const struct page *g, uvm_node n) { return !g->resident[n] && (n == DRAM || g->backing[n]); }

/* Home is node = processor here, and a GPU reaches nothing else but dram. */
static int target(const struct page *g, uvm_proc p) { return g->resident[p] ? p : g->resident[DRAM] && p != CPU ? DRAM : -1; }

static bool nobody_above(const struct page *g, int level) {
  for (int p = 0; p < PROCS; p++)
    if (g->level[p] > level) return false;
  return true;
}

static bool reaches_a_copy(const struct page *g, uvm_proc p) {
  for (int n = 0; n < NODES; n++)
    if (g->resident[n] && reach[p] >> n & 1) return true;
  return false;
}

static bool legal(const struct page *g, const struct uvm_step *st) {
  switch ((enum uvm_step_kind)st->kind) {
  case UVM_S_POPULATE: return !copies(g) && arrives(g, st->dst);
  case UVM_S_MIGRATE:
  case UVM_S_EVICT: return g->resident[st->src] && copies(g) == 1 && arrives(g, st->dst) && nobody_above(g, -1);
  case UVM_S_DUPLICATE: return g->resident[st->src] && arrives(g, st->dst) && nobody_above(g, UVM_MAP_READ);
  case UVM_S_COLLAPSE:
    for (uvm_proc p = 0; p < PROCS; p++)
      if (g->level[p] >= 0 && target(g, p) == st->src) return false;
    return g->resident[st->src] && copies(g) > 1;
  case UVM_S_UNMAP: return true;
  case UVM_S_MAP: return reaches_a_copy(g, st->proc) && (st->access <= UVM_A_READ || copies(g) == 1);
  }
  return false;
}

static void come(struct page *g, uvm_node n) { g->resident[n] = true, g->evicted[n] = false; }

static void apply(struct page *g, const struct uvm_step *st) {
  int level = st->access <= UVM_A_READ ? 0 : st->access - 1;
  switch ((enum uvm_step_kind)st->kind) {
  case UVM_S_POPULATE: come(g, st->dst), g->dirty = true; break;
  case UVM_S_EVICT: g->evicted[st->src] = true; /* fall through */
  case UVM_S_MIGRATE: g->resident[st->src] = false, come(g, st->dst), g->dirty = false; break;
  case UVM_S_DUPLICATE: come(g, st->dst); break;
  case UVM_S_COLLAPSE:
    g->resident[st->src] = false;
    if (st->cause == UVM_C_EVICTION) g->evicted[st->src] = true;
    break;
  case UVM_S_UNMAP:
    if (st->access == UVM_A_PREFETCH) level = -1;
    if (g->level[st->proc] > level) g->level[st->proc] = level;
    break;
  case UVM_S_MAP:
    if (g->level[st->proc] < level) g->level[st->proc] = level;
    if (level > 0) g->dirty = true;
    break;
  }
}

/* -- comparing -- */

static void compare_page(const struct model *m, const struct uvm_block *b, int p, const struct page *g) {
  const struct uvm_space *s = m->s;
  bool same = uvm_mask_test(uvm_block_dirty(s, b), p) == g->dirty && uvm_mask_test(uvm_block_duplicated(s, b), p) == (copies(g) > 1);
  for (uvm_node n = 0; n < NODES; n++) {
    same &= uvm_mask_test(uvm_block_resident(s, b, n), p) == g->resident[n];
    same &= uvm_page_backing(b, n, p) == g->backing[n];
  }
  for (uvm_proc q = 0; q < PROCS; q++) {
    same &= uvm_mask_test(uvm_block_evicted(s, b, q), p) == g->evicted[q];
    for (int l = 0; l < UVM_MAP_LEVELS; l++) same &= uvm_mask_test(uvm_block_mapped(s, b, q, (enum uvm_level)l), p) == (g->level[q] >= l);
    same &= (uvm_page_target(s, b, q, p) == UVM_NONE ? -1 : uvm_page_target(s, b, q, p)) == target(g, q);
  }
  if (!same) fail_msg("block %u, page %d differs from the model", b->id, p);
}

static void compare_pages(const struct model *m) {
  struct uvm_error e;
  for (int i = 0; i < PAGES; i++) {
    const struct uvm_block *b = uvm_block_find(m->a, (uint64_t)i * UVM_PAGE);
    if (!b) {
      assert_true(!copies(&m->page[i]));
      continue;
    }
    int p = uvm_page_of(m->a, (uint64_t)i * UVM_PAGE);
    assert_int_equal(uvm_block_offset(b, p), (uint64_t)i * UVM_PAGE);
    assert_true(p == b->first || !m->border[i]);
    compare_page(m, b, p, &m->page[i]);
    if (p == b->first && uvm_block_check(m->s, b, &e)) fail_msg("%s", e.text);
  }
}

static void compare_backings(const struct model *m) {
  uint64_t held[NODES] = {0};
  for (uvm_backing_id k = 1; k < m->s->backings.n; k++) {
    const struct uvm_backing *backing = uvm_backing_get(m->s, k);
    uint64_t resident = 0;
    for (int i = 0; backing && i < PAGES; i++)
      if (m->page[i].backing[backing->info.node] == k) resident += m->page[i].resident[backing->info.node] * UVM_PAGE;
    if (!backing) continue;
    assert_int_equal(backing->info.resident, resident);
    held[backing->info.node] += backing->info.bytes;
  }
  for (uvm_node n = HBM0; n < NODES; n++) assert_int_equal(m->s->nodes[n].capacity - m->s->nodes[n].free, held[n]);
}

/* -- random work -- */

static int index_of(const struct uvm_block *b, int p) { return (int)(uvm_block_offset(b, p) / UVM_PAGE); }
static struct uvm_block *some_block(struct model *m) { return uvm_block_get(m->s, m->a, (uint64_t)below(m, PAGES) * UVM_PAGE); }

static uvm_mask some_pages(struct model *m, const struct uvm_block *b) {
  uvm_mask pages = {{0}};
  int a = b->first + (int)below(m, b->pages), n = 1 + (int)below(m, 40);
  uvm_mask_set(&pages, a, a + n > b->first + b->pages ? b->first + b->pages : a + n);
  return pages;
}

/* The whole block, or 16 pages, where nothing is yet. */
static void give_backing(struct model *m, struct uvm_block *b, uvm_node n) {
  int a = b->first + (int)below(m, b->pages) / 16 * 16, end = a + 16;
  if (below(m, 2)) a = b->first, end = b->first + b->pages;
  if (end > b->first + b->pages) return;
  for (int p = a; p < end; p++)
    if (uvm_page_backing(b, n, p)) return;
  uvm_backing_id k = uvm_backing_create(m->s, n, (uint64_t)(end - a) * UVM_PAGE);
  uvm_backing_attach(m->s, k, b, a, end - a);
  for (int p = a; p < end; p++) m->page[index_of(b, p)].backing[n] = k;
}

/* One or two random steps: the space must agree with the model on whether they may be, then on what they did. */
static void random_plan(struct model *m) {
  struct uvm_plan plan = {0};
  struct uvm_error e;
  struct uvm_block *b = some_block(m);
  for (unsigned i = 0, n = 1 + below(m, 2); i < n; i++) {
    uvm_mask pages = some_pages(m, b);
    struct uvm_step *st = uvm_plan_add(&plan, (enum uvm_step_kind)below(m, UVM_S_MAP + 1), b, (uvm_proc)below(m, PROCS), &pages);
    st->src = (uvm_node)below(m, NODES), st->dst = (uvm_node)below(m, NODES);
    st->access = (uint8_t)below(m, UVM_A_ATOMIC + 1);
    st->cause = below(m, 2) ? UVM_C_EVICTION : UVM_C_FAULT;
    if (st->kind == UVM_S_POPULATE) give_backing(m, b, HBM0 + (uvm_node)below(m, 2));
  }
  struct page *work = malloc(sizeof m->page);
  memcpy(work, m->page, sizeof m->page);
  bool ok = true;
  for (size_t i = 0; i < plan.steps.n; i++)
    for (int p = -1; (p = uvm_mask_next(&plan.steps.v[i].pages, p + 1)) >= 0;) {
      const struct uvm_step *st = &plan.steps.v[i], *before = &plan.steps.v[0];
      ok &= legal(&work[index_of(b, p)], st);
      ok &= !(i && st->kind == UVM_S_UNMAP && before->kind == UVM_S_MAP && uvm_mask_test(&before->pages, p)); /* give, then take */
      apply(&work[index_of(b, p)], st);
    }
  int rc = uvm_plan_check(m->s, &plan, &e);
  if ((rc == 0) != ok) fail_msg("the model says %s, the space says %s", ok ? "legal" : "illegal", rc ? e.text : "legal");
  if (ok)
    memcpy(m->page, work, sizeof m->page), commit(m->s, &plan), m->done++;
  else
    m->refused++;
  free(work);
  uvm_plan_release(&plan);
}

static void random_split(struct model *m) {
  int a = (int)below(m, PAGES), b = a + 1 + (int)below(m, PAGES - (unsigned)a);
  size_t n;
  size_t i = uvm_space_split(m->s, m->a, (uint64_t)a * UVM_PAGE, (uint64_t)(b - a) * UVM_PAGE, &n);
  m->border[a] = true;
  if (b < PAGES) m->border[b] = true;
  assert_int_equal(m->a->ranges.v[i]->offset, (uint64_t)a * UVM_PAGE);
  uint64_t end = m->a->ranges.v[i + n - 1]->offset + m->a->ranges.v[i + n - 1]->info.bytes;
  assert_int_equal(end, b < PAGES ? (uint64_t)b * UVM_PAGE : m->a->bytes);
}

/* Everything leaves a random backing, as the drivers evict: unmapped, copies dropped, the rest moved to dram. */
static void random_eviction(struct model *m) {
  uvm_backing_id k = 1 + below(m, (unsigned)m->s->backings.n);
  struct uvm_backing *backing = uvm_backing_get(m->s, k);
  if (!backing) return;
  uvm_node n = backing->info.node;
  for (int i = 0; i < PAGES; i++) {
    struct page *g = &m->page[i];
    if (g->backing[n] != k) continue;
    struct uvm_block *b = uvm_block_find(m->a, (uint64_t)i * UVM_PAGE);
    int p = uvm_page_of(m->a, (uint64_t)i * UVM_PAGE);
    struct uvm_plan plan = {0};
    for (uvm_proc q = 0; q < PROCS && g->resident[n]; q++) add(&plan, UVM_S_UNMAP, b, q, 0, 0, p, p + 1);
    if (g->resident[n]) {
      enum uvm_step_kind kind = copies(g) > 1 ? UVM_S_COLLAPSE : UVM_S_EVICT;
      add(&plan, kind, b, n, n, DRAM, p, p + 1)->cause = UVM_C_EVICTION;
    }
    for (size_t j = 0; j < plan.steps.n; j++) apply(g, &plan.steps.v[j]);
    commit(m->s, &plan);
    uvm_plan_release(&plan);
    g->backing[n] = 0;
  }
  assert_int_equal(backing->info.resident, 0);
  uvm_backing_destroy(m->s, k);
}

static void one_seed(uint64_t seed) {
  struct model *m = calloc(1, sizeof *m);
  m->random = seed;
  m->s = small_space(64 * UVM_BLOCK_BYTES);
  m->a = managed_in(m->s, 0x7f0000000000 + FIRST * UVM_PAGE, (PAGES - 1) * UVM_PAGE + 1); /* the last page is one byte */
  assert_int_equal(m->a->nwindows, WINDOWS);
  for (int i = 0; i < PAGES; i++)
    for (int p = 0; p < PROCS; p++) m->page[i].level[p] = -1;
  for (int i = 0; i < ROUNDS; i++) {
    unsigned what = below(m, 2000);
    if (what == 0)
      random_split(m);
    else if (what < 10)
      random_eviction(m);
    else
      random_plan(m);
    if (i % 100 == 0 || what < 10) compare_pages(m), compare_backings(m);
  }
  assert_true(m->done > ROUNDS / 10 && m->refused > ROUNDS / 10); /* the dice are fair enough to test both */
  uvm_space_free(m->s, m->a);
  assert_true(m->s->nodes[HBM0].free == m->s->nodes[HBM0].capacity && m->s->nodes[HBM1].free == m->s->nodes[HBM1].capacity);
  uvm_space_destroy(m->s);
  free(m);
}

static void test_against_the_model(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    print_message("seed %llu\n", (unsigned long long)seed);
    one_seed(seed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_the_model)};
  return UVM_RUN(tests);
}
