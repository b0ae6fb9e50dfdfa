/* The driver against a naive model: an array of pages, a list of chunks, a loop over the trace, the density rule counted out page by
 * page. Both replay single-lane traces, with full and with too little memory; residency must agree at every section's end.
 * Thrashing control is off on both sides (it depends on time), allocations are multiples of 2 MiB and carry no advice. */
#include "tests/unit/files.h"
#include "session.h"
#include "trace.h"
#include "tests/naive_density.h"

enum where { NOWHERE, CPU, GPU };
enum { N = UVM_BLOCK_PAGES };
struct block {
  uint8_t where[N];
  bool cpu_mapped[N];
  bool chunk;     /* holds 2 MiB of the GPU */
  uint64_t stamp; /* of its last service: the order of its list */
};
struct naive {
  UVM_VEC(struct block *) allocs; /* by number: an array of blocks */
  UVM_VEC(size_t) sizes;          /* in blocks */
  size_t chunks, capacity;
  uint64_t clock;
  UVM_VEC(uint64_t) section_sums; /* of all pages' places, at each section's end */
};

/* A sum over live allocations that any misplaced page changes. */
static uint64_t mix(uint64_t sum, uint64_t alloc, uint64_t page, unsigned where) {
  uint64_t state = (alloc << 40 | page << 2 | where) ^ 0x5555;
  return sum + (where ? uvm_random(&state) : 0);
}

static uint64_t places_sum(const struct naive *m) {
  uint64_t sum = 0;
  for (size_t a = 0; a < m->allocs.n; a++)
    for (size_t p = 0; m->allocs.v[a] && p < m->sizes.v[a] * N; p++) sum = mix(sum, a, p, m->allocs.v[a][p / N].where[p % N]);
  return sum;
}

static size_t held(const struct block *b, enum where w) {
  size_t n = 0;
  for (int p = 0; p < N; p++) n += b->where[p] == w;
  return n;
}

/* UNUSED chunks (no page left) before USED ones, each in order of service. */
static struct block *victim(struct naive *m, const struct block *serving) {
  struct block *best = NULL;
  bool best_unused = false;
  for (size_t a = 0; a < m->allocs.n; a++)
    for (size_t i = 0; m->allocs.v[a] && i < m->sizes.v[a]; i++) {
      struct block *b = &m->allocs.v[a][i];
      if (!b->chunk || b == serving) continue;
      bool unused = held(b, GPU) == 0;
      if (!best || unused > best_unused || (unused == best_unused && b->stamp < best->stamp)) best = b, best_unused = unused;
    }
  return best;
}

static void take_chunk(struct naive *m, struct block *b) {
  if (!b->chunk && m->chunks == m->capacity) {
    struct block *v = victim(m, b);
    assert_non_null(v);
    for (int p = 0; p < N; p++)
      if (v->where[p] == GPU) v->where[p] = CPU, v->cpu_mapped[p] = false;
    v->chunk = false;
    m->chunks--;
  }
  if (!b->chunk) b->chunk = true, m->chunks++;
  b->stamp = ++m->clock;
}

static void move(struct naive *m, struct block *b, int p, enum where to) {
  bool had = held(b, GPU) > 0;
  b->where[p] = to;
  b->cpu_mapped[p] = to == CPU;
  if (had && held(b, GPU) == 0) b->stamp = ++m->clock; /* to the tail of UNUSED */
}

static void touch(struct naive *m, uint32_t alloc, uint64_t offset, enum where by) {
  struct block *b = &m->allocs.v[alloc][offset / UVM_BLOCK_BYTES];
  int p = (int)(offset / UVM_PAGE % N);
  if (by == GPU ? b->where[p] == GPU : b->where[p] == CPU && b->cpu_mapped[p]) return;
  bool there[N], faulted[N] = {false}, wanted[N];
  for (int q = 0; q < N; q++) there[q] = b->where[q] == by;
  faulted[p] = true;
  naive_density(there, faulted, wanted);
  if (by == GPU) take_chunk(m, b);
  for (int q = 0; q < N; q++)
    if (wanted[q] && b->where[q] != by)
      move(m, b, q, by);
    else if (wanted[q] && by == CPU)
      b->cpu_mapped[q] = true;
}

static void prefetch(struct naive *m, uint32_t alloc, uint64_t offset, uint64_t bytes, enum where to) {
  for (uint64_t o = offset; o < offset + bytes; o += UVM_PAGE) {
    struct block *b = &m->allocs.v[alloc][o / UVM_BLOCK_BYTES];
    int p = (int)(o / UVM_PAGE % N);
    if (to == GPU && (o == offset || p == 0)) take_chunk(m, b);
    if (b->where[p] != to) move(m, b, p, to);
    b->cpu_mapped[p] = to == CPU;
  }
}

static void release(struct naive *m, uint32_t a) {
  for (size_t i = 0; i < m->sizes.v[a]; i++) m->chunks -= m->allocs.v[a][i].chunk;
  uvm_mem_free(m->allocs.v[a]);
  m->allocs.v[a] = NULL;
}

static void loop(struct naive *m, const struct uvm_trace_access *x, enum where by) {
  uint64_t step = x->split == UVM_SPLIT_NONE && x->step ? x->step : x->bytes;
  uint64_t width = x->width ? x->width : x->bytes;
  for (uint64_t o = x->offset; o < x->offset + x->bytes; o += step) {
    uint64_t last = o + width < x->offset + x->bytes ? o + width : x->offset + x->bytes;
    for (uint64_t q = o / UVM_PAGE; q <= (last - 1) / UVM_PAGE; q++) touch(m, x->alloc, q * UVM_PAGE, by);
  }
}

static void record(struct naive *m, const struct uvm_trace_record *r) {
  switch (r->op) {
  case UVM_TR_ALLOC:
    assert_int_equal(r->bytes % UVM_BLOCK_BYTES, 0);
    UVM_PUSH(&m->allocs) = uvm_mem(r->bytes / UVM_BLOCK_BYTES * sizeof(struct block));
    UVM_PUSH(&m->sizes) = r->bytes / UVM_BLOCK_BYTES;
    break;
  case UVM_TR_FREE: release(m, r->alloc); break;
  case UVM_TR_ACCESS: loop(m, &r->access, r->proc ? GPU : CPU); break;
  case UVM_TR_KERNEL:
    assert_int_equal(r->lanes, 1);
    for (size_t i = 0; i < r->naccesses; i++) {
      struct uvm_trace_access whole = r->accesses[i];
      whole.step = whole.bytes, whole.width = whole.bytes; /* one access to its whole range */
      loop(m, &whole, GPU);
    }
    break;
  case UVM_TR_PREFETCH: prefetch(m, r->alloc, r->offset, r->bytes, strcmp(r->label, "cpu") ? GPU : CPU); break;
  case UVM_TR_END: UVM_PUSH(&m->section_sums) = places_sum(m); break;
  default: break;
  }
}

/* -- the real one: places kept from its events -- */

struct watched {
  UVM_VEC(uint8_t *) allocs;
  UVM_VEC(size_t) pages;
  const struct naive *expected;
  size_t section;
  uint64_t wrong;
};

static void set_places(struct watched *w, const struct uvm_event *e, uint64_t offset, uint64_t bytes) {
  for (uint64_t o = offset; o < offset + bytes; o += UVM_PAGE) w->allocs.v[e->alloc][o / UVM_PAGE] = e->dst == 0 ? CPU : GPU;
}

static void check_section(struct watched *w) {
  uint64_t sum = 0;
  for (size_t a = 0; a < w->allocs.n; a++)
    for (size_t p = 0; w->allocs.v[a] && p < w->pages.v[a]; p++) sum = mix(sum, a, p, w->allocs.v[a][p]);
  if (w->section >= w->expected->section_sums.n || w->expected->section_sums.v[w->section] != sum) w->wrong++;
  w->section++;
}

static void watch(void *ctx, const struct uvm_event *e) {
  struct watched *w = ctx;
  switch (e->kind) {
  case UVM_E_ALLOC:
    UVM_PUSH(&w->allocs) = uvm_mem(e->allocation->bytes / UVM_PAGE);
    UVM_PUSH(&w->pages) = e->allocation->bytes / UVM_PAGE;
    break;
  case UVM_E_FREE:
    uvm_mem_free(w->allocs.v[e->alloc]);
    w->allocs.v[e->alloc] = NULL;
    break;
  case UVM_E_TRANSFER: set_places(w, e, e->offset, e->bytes); break;
  case UVM_E_POPULATE:
    for (int a, b = 0; uvm_mask_run(e->mask, &a, &b);) set_places(w, e, uvm_block_offset(e->block, a), (uint64_t)(b - a) * UVM_PAGE);
    break;
  case UVM_E_SECTION: check_section(w); break;
  default: break;
  }
}

static void compare(const char *path, double factor) {
  struct uvm_error e;
  struct uvm_trace *t;
  struct uvm_trace_facts facts;
  assert_int_equal(uvm_trace_open(path, true, &t, &e), 0);
  assert_int_equal(uvm_trace_survey(t, &facts, &e), 0);
  struct naive m = {.capacity = SIZE_MAX};
  if (factor > 0) m.capacity = (size_t)((double)facts.peak_managed_bytes / factor / (double)UVM_BLOCK_BYTES + 0.5);
  if (!m.capacity) m.capacity = 1;
  struct uvm_trace_record r;
  while (uvm_trace_next(t, &r, &e) > 0) record(&m, &r);
  uvm_trace_close(t);

  struct watched w = {.expected = &m};
  struct uvm_observer o = {&w, watch};
  struct uvm_session_config c = {.trace = path, .thrash = "none", .oversubscribe = factor, .observers = &o, .nobservers = 1};
  struct uvm_session_result result;
  if (uvm_session_run(&c, &result, &e)) fail_msg("%s: %s", path, e.text);
  assert_true(m.section_sums.n > 0);
  assert_int_equal(w.section, m.section_sums.n);
  if (w.wrong)
    fail_msg("%s at %g: residency differs at the end of %llu of %zu sections", path, factor, (unsigned long long)w.wrong, w.section);
  for (size_t a = 0; a < m.allocs.n; a++)
    if (m.allocs.v[a]) release(&m, (uint32_t)a);
  for (size_t a = 0; a < w.allocs.n; a++) uvm_mem_free(w.allocs.v[a]);
  uvm_mem_free(m.allocs.v), uvm_mem_free(m.sizes.v), uvm_mem_free(m.section_sums.v), uvm_mem_free(w.allocs.v), uvm_mem_free(w.pages.v);
}

static const double factors[] = {0, 1 / 0.9, 2, 4};

static void test_recordings(void **state) {
  (void)state;
  for (size_t f = 0; f < 4; f++) {
    compare("traces/recorded/h200/chase.uvt.gz", factors[f]);
    compare("traces/recorded/h200/cpufan.uvt.gz", factors[f]);
  }
}

/* Random loops of one lane, CPU loops and prefetches over two allocations of a few blocks. */
static void write_random(const char *path, uint64_t seed) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fprintf(f, "uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a %d managed a\nalloc b %d managed b\n", 4 << 21, 3 << 21);
  for (int i = 0; i < 60; i++) {
    bool second = uvm_random(&seed) & 1;
    uint64_t pages = (second ? 3 : 4) * N, from = uvm_random(&seed) % pages, n = 1 + uvm_random(&seed) % (pages - from);
    unsigned step = 1u << uvm_random(&seed) % 7;
    const char *id = second ? "b" : "a", *op = uvm_random(&seed) & 1 ? "r" : "w";
    fprintf(f, "begin s/%d\n", i);
    switch (uvm_random(&seed) % 4) {
    case 0:
      fprintf(f, "%s cpu %s %llu %llu step=%u\n", op, id, (unsigned long long)from << 12, (unsigned long long)n << 12, step << 12);
      break;
    case 1:
      fprintf(f, "prefetch %s %s %llu %llu\nsync\n", uvm_random(&seed) & 1 ? "gpu0" : "cpu", id, (unsigned long long)from << 12,
              (unsigned long long)n << 12);
      break;
    default:
      fprintf(f, "kernel gpu0 lanes=1\n");
      for (int k = 0; k < 20; k++) fprintf(f, "%s %s %llu 8\n", op, id, (unsigned long long)(uvm_random(&seed) % pages) << 12);
      fprintf(f, "done\nsync\n");
    }
    fprintf(f, "end\n");
  }
  fclose(f);
}

static void test_random(void **state) {
  (void)state;
  char path[64];
  temporary(path, ".uvt");
  for (uint64_t seed = 1; seed <= 40; seed++) {
    write_random(path, seed);
    for (size_t f = 0; f < 4; f++) compare(path, factors[f]);
  }
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_recordings), cmocka_unit_test(test_random)};
  return UVM_RUN(tests);
}
