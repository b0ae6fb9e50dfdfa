/* Comparing rows: every comparison goes allocation by allocation, since rows of different allocations may interleave as times do. */
#include "tests/conformance/conformance.h"
#include <stdlib.h>

typedef UVM_VEC(struct uvm_row) row_list;

static void pick(row_list *out, const struct uvm_rows *rows, uint32_t kinds, int64_t alloc) {
  for (size_t i = 0; i < rows->rows.n; i++)
    if (kinds >> rows->rows.v[i].kind & 1 && rows->rows.v[i].alloc == alloc) UVM_PUSH(out) = rows->rows.v[i];
}

static int64_t allocs_of(const struct uvm_run_of *w) {
  int64_t n = 0;
  const struct uvm_rows *both[] = {&w->recorded, &w->simulated};
  for (int s = 0; s < 2; s++)
    for (size_t i = 0; i < both[s]->rows.n; i++)
      if (both[s]->rows.v[i].alloc >= n) n = both[s]->rows.v[i].alloc + 1;
  return n;
}

/* What makes two rows the same decision: times do not, and transfers of one place and size are one whoever asked first. */
static bool same(const struct uvm_row *a, const struct uvm_row *b) {
  bool sized = a->kind <= UVM_ROW_D2D;
  return a->kind == b->kind && a->offset == b->offset && (!sized || (a->value == b->value && a->flags == b->flags));
}

struct tally {
  size_t recorded, simulated;
  int64_t bad_alloc;
  size_t bad_at;
};
typedef bool compare_fn(row_list *recorded, row_list *simulated, size_t *at);

static void run(struct uvm_score *s, const struct uvm_run_of *w, uint32_t kinds, const char *what, compare_fn *equal) {
  struct tally t = {.bad_alloc = -1};
  int64_t n = allocs_of(w);
  for (int64_t a = 0; a < n; a++) {
    row_list r = {0}, m = {0};
    size_t at = 0;
    pick(&r, &w->recorded, kinds, a), pick(&m, &w->simulated, kinds, a);
    t.recorded += r.n, t.simulated += m.n;
    if (t.bad_alloc < 0 && !equal(&r, &m, &at)) t.bad_alloc = a, t.bad_at = at;
    uvm_mem_free(r.v), uvm_mem_free(m.v);
  }
  if (t.bad_alloc < 0)
    uvm_conform_row(s, true, w->name, what, "%zu recorded, %zu simulated", t.recorded, t.simulated);
  else
    uvm_conform_row(s, false, w->name, what, "%zu recorded, %zu simulated; first difference in allocation %lld, number %zu", t.recorded,
                    t.simulated, (long long)t.bad_alloc, t.bad_at);
}

static bool in_order(row_list *r, row_list *m, size_t *at) {
  for (*at = 0; *at < r->n && *at < m->n; ++*at)
    if (!same(&r->v[*at], &m->v[*at])) return false;
  return r->n == m->n;
}

static bool subsequence(row_list *r, row_list *m, size_t *at) {
  size_t j = 0;
  for (*at = 0; *at < r->n; ++*at) {
    while (j < m->n && !same(&r->v[*at], &m->v[j])) j++;
    if (j++ == m->n) return false;
  }
  return true;
}

/* Pages moved, as sorted lists with repeats: a page that came twice must come twice. */
typedef UVM_VEC(uint64_t) page_list;

int uvm_conform_ascending(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static bool equal_lists(page_list *a, page_list *b, size_t *at) {
  if (a->n) qsort(a->v, a->n, sizeof *a->v, uvm_conform_ascending);
  if (b->n) qsort(b->v, b->n, sizeof *b->v, uvm_conform_ascending);
  for (*at = 0; *at < a->n && *at < b->n; ++*at)
    if (a->v[*at] != b->v[*at]) break;
  bool ok = *at == a->n && *at == b->n;
  uvm_mem_free(a->v), uvm_mem_free(b->v);
  return ok;
}

static page_list pages_of(const row_list *r) {
  page_list p = {0};
  for (size_t i = 0; i < r->n; i++)
    for (uint64_t o = 0; o < r->v[i].value; o += UVM_PAGE) UVM_PUSH(&p) = r->v[i].offset + o;
  return p;
}

static page_list sizes_of(const row_list *r) {
  page_list p = {0};
  for (size_t i = 0; i < r->n; i++) UVM_PUSH(&p) = r->v[i].value;
  return p;
}

static bool same_pages(row_list *r, row_list *m, size_t *at) {
  page_list a = pages_of(r), b = pages_of(m);
  return equal_lists(&a, &b, at);
}

static bool same_sizes(row_list *r, row_list *m, size_t *at) {
  page_list a = sizes_of(r), b = sizes_of(m);
  return equal_lists(&a, &b, at);
}

void uvm_conform_order(struct uvm_score *s, const struct uvm_run_of *w, uint32_t kinds, const char *what) {
  run(s, w, kinds, what, in_order);
}
void uvm_conform_pages(struct uvm_score *s, const struct uvm_run_of *w, uint32_t kinds, const char *what) {
  run(s, w, kinds, what, same_pages);
}
void uvm_conform_sizes(struct uvm_score *s, const struct uvm_run_of *w, uint32_t kinds, const char *what) {
  run(s, w, kinds, what, same_sizes);
}
void uvm_conform_subsequence(struct uvm_score *s, const struct uvm_run_of *w, uint32_t kinds, const char *what) {
  run(s, w, kinds, what, subsequence);
}
