#include "report/validate.h"
#include <inttypes.h>
#include <stdlib.h>
#include "report/page_moves.h"

const char *uvm_verdict_name(enum uvm_verdict v) {
  static const char *const names[] = {"exact", "subsequence", "close", "differs"};
  return names[v];
}

/* -- rows of one kind and allocation, in order of time -- */

static int by_group(const void *a, const void *b) {
  const struct uvm_row *x = a, *y = b;
  if (x->alloc != y->alloc) return x->alloc < y->alloc ? -1 : 1;
  if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
  if (x->t != y->t) return x->t < y->t ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

static size_t lower(const struct uvm_rows *r, int64_t alloc, int kind) {
  size_t a = 0, b = r->rows.n;
  while (a < b) {
    size_t m = (a + b) / 2;
    const struct uvm_row *x = &r->rows.v[m];
    if (x->alloc < alloc || (x->alloc == alloc && x->kind < kind))
      a = m + 1;
    else
      b = m;
  }
  return a;
}

static struct uvm_row_slice slice(const struct uvm_rows *r, int64_t alloc, enum uvm_row_kind kind) {
  size_t a = lower(r, alloc, (int)kind), b = lower(r, alloc, (int)kind + 1);
  return (struct uvm_row_slice){r->rows.n ? r->rows.v + a : NULL, b - a};
}

/* -- one comparison: fills verdict and first -- */

static bool near(uint64_t recorded, uint64_t simulated, double tolerance) {
  double off = recorded > simulated ? (double)(recorded - simulated) : (double)(simulated - recorded);
  return tolerance > 0 && off * 100 <= tolerance * (double)recorded;
}

static const char *place_text(struct uvm_row_slice s, size_t i, char buf[static 32]) {
  if (i >= s.n) return "nothing";
  snprintf(buf, 32, "offset %" PRIu64, s.v[i].offset);
  return buf;
}

/* Places only: whether a fault counts as a read or a write is the instruction's doing, which a trace need not know. */
static bool same_fault(const struct uvm_row *a, const struct uvm_row *b) { return a->offset == b->offset; }

static void compare_order(struct uvm_check *c, struct uvm_row_slice recorded, struct uvm_row_slice simulated) {
  size_t i = 0, found = 0;
  while (i < recorded.n && i < simulated.n && same_fault(&recorded.v[i], &simulated.v[i])) i++;
  if (i == recorded.n && i == simulated.n) return;
  for (size_t k = 0; k < simulated.n && found < recorded.n; k++) found += same_fault(&recorded.v[found], &simulated.v[k]);
  c->verdict = found == recorded.n ? UVM_V_SUBSEQUENCE : UVM_V_DIFFERS;
  char a[32], b[32];
  c->first = uvm_format("number %zu: recorded %s, simulated %s", i, place_text(recorded, i, a), place_text(simulated, i, b));
}

static void compare_pages(struct uvm_check *c, struct uvm_row_slice recorded, struct uvm_row_slice simulated) {
  struct uvm_page_moves a, b;
  uint64_t offset, times_a, times_b;
  uvm_page_moves_make(&a, recorded), uvm_page_moves_make(&b, simulated);
  c->recorded = a.pages, c->simulated = b.pages;
  if (!uvm_page_moves_within(&a, &b, &offset, &times_a, &times_b)) {
    c->verdict = UVM_V_DIFFERS;
    c->first = uvm_format("offset %" PRIu64 ": recorded %" PRIu64 " moves, simulated %" PRIu64, offset, times_a, times_b);
  } else if (!uvm_page_moves_within(&b, &a, &offset, &times_b, &times_a)) {
    c->verdict = UVM_V_SUBSEQUENCE;
    c->first = uvm_format("offset %" PRIu64 ": recorded %" PRIu64 " moves, simulated %" PRIu64, offset, times_a, times_b);
  }
  uvm_page_moves_free(&a), uvm_page_moves_free(&b);
}

static int by_size(const void *a, const void *b) {
  const uint64_t *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

static uint64_t *sizes_of(struct uvm_row_slice s) {
  uint64_t *v = uvm_mem((s.n + 1) * sizeof *v);
  for (size_t i = 0; i < s.n; i++) v[i] = s.v[i].value;
  qsort(v, s.n, sizeof *v, by_size);
  return v;
}

/* Sorted sizes are a histogram; the smallest size with different counts is the first difference. */
static void compare_sizes(struct uvm_check *c, struct uvm_row_slice recorded, struct uvm_row_slice simulated) {
  uint64_t *a = sizes_of(recorded), *b = sizes_of(simulated);
  for (size_t i = 0, j = 0; i < recorded.n || j < simulated.n;) {
    uint64_t size = j >= simulated.n || (i < recorded.n && a[i] < b[j]) ? a[i] : b[j], of_a = 0, of_b = 0;
    for (; i < recorded.n && a[i] == size; i++) of_a++;
    for (; j < simulated.n && b[j] == size; j++) of_b++;
    if (of_a == of_b) continue;
    enum uvm_verdict now = of_a < of_b ? UVM_V_SUBSEQUENCE : UVM_V_DIFFERS;
    if (now > c->verdict) c->verdict = now;
    if (!c->first) c->first = uvm_format("%" PRIu64 " bytes: recorded %" PRIu64 " copies, simulated %" PRIu64, size, of_a, of_b);
  }
  uvm_mem_free(a), uvm_mem_free(b);
}

/* Only what thrashing control decided: recorders do not tell of mappings that advice made. */
static uint64_t thrashing_maps(struct uvm_row_slice s) {
  uint64_t n = 0;
  for (size_t i = 0; i < s.n; i++) n += s.v[i].flags == UVM_ROW_THRASHING;
  return n;
}

static void judge_counts(struct uvm_check *c) {
  if (c->recorded == c->simulated) return;
  c->verdict = UVM_V_DIFFERS;
  c->first = uvm_copy_string("the counts differ");
}

static void compare_thrashing_maps(struct uvm_check *c, struct uvm_row_slice recorded, struct uvm_row_slice simulated) {
  c->recorded = thrashing_maps(recorded), c->simulated = thrashing_maps(simulated);
  judge_counts(c);
}

static void compare_count(struct uvm_check *c, struct uvm_row_slice recorded, struct uvm_row_slice simulated) {
  (void)recorded, (void)simulated; /* how many rows there are is known already */
  judge_counts(c);
}

/* -- all comparisons of an allocation -- */

static const struct {
  const char *what;
  enum uvm_row_kind kind;
  void (*compare)(struct uvm_check *, struct uvm_row_slice recorded, struct uvm_row_slice simulated);
} comparisons[] = {{"CPU faults", UVM_ROW_CPU_FAULT, compare_order},
                   {"GPU batches", UVM_ROW_GPU_FAULT, compare_order},
                   {"pages to GPU", UVM_ROW_H2D, compare_pages},
                   {"sizes to GPU", UVM_ROW_H2D, compare_sizes},
                   {"pages to CPU", UVM_ROW_D2H, compare_pages},
                   {"sizes to CPU", UVM_ROW_D2H, compare_sizes},
                   {"pages GPU to GPU", UVM_ROW_D2D, compare_pages},
                   {"sizes GPU to GPU", UVM_ROW_D2D, compare_sizes},
                   {"thrashing", UVM_ROW_THRASH, compare_count},
                   {"throttles", UVM_ROW_THROTTLE, compare_count},
                   {"thrashing maps", UVM_ROW_REMOTE_MAP, compare_thrashing_maps}};

static void check_alloc(struct uvm_validation *v, int64_t alloc, const struct uvm_rows *recorded, const struct uvm_rows *simulated,
                        double tolerance) {
  for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++) {
    struct uvm_row_slice a = slice(recorded, alloc, comparisons[i].kind), b = slice(simulated, alloc, comparisons[i].kind);
    if (!a.n && !b.n) continue;
    struct uvm_check c = {.alloc = alloc, .what = comparisons[i].what, .recorded = a.n, .simulated = b.n};
    comparisons[i].compare(&c, a, b);
    if (!c.recorded && !c.simulated) continue;
    if (c.verdict == UVM_V_DIFFERS && near(c.recorded, c.simulated, tolerance)) c.verdict = UVM_V_CLOSE;
    v->count[c.verdict]++;
    UVM_PUSH(&v->checks) = c;
  }
}

/* The smallest allocation number above `after` that either side mentions; INT64_MAX none. */
static int64_t next_alloc(const struct uvm_rows *a, const struct uvm_rows *b, int64_t after) {
  size_t i = lower(a, after + 1, 0), j = lower(b, after + 1, 0);
  int64_t x = i < a->rows.n ? a->rows.v[i].alloc : INT64_MAX, y = j < b->rows.n ? b->rows.v[j].alloc : INT64_MAX;
  return x < y ? x : y;
}

void uvm_validate(struct uvm_validation *v, struct uvm_rows *recorded, struct uvm_rows *simulated, double tolerance) {
  *v = (struct uvm_validation){0};
  if (recorded->rows.n) qsort(recorded->rows.v, recorded->rows.n, sizeof *recorded->rows.v, by_group);
  if (simulated->rows.n) qsort(simulated->rows.v, simulated->rows.n, sizeof *simulated->rows.v, by_group);
  for (int64_t alloc = -1; (alloc = next_alloc(recorded, simulated, alloc)) != INT64_MAX;)
    check_alloc(v, alloc, recorded, simulated, tolerance);
}

void uvm_validation_free(struct uvm_validation *v) {
  for (size_t i = 0; i < v->checks.n; i++) uvm_mem_free(v->checks.v[i].first);
  uvm_mem_free(v->checks.v);
  *v = (struct uvm_validation){0};
}
