/* One page's biography, and the first decision in which two streams part. Expected values: by hand. */
#include "unit.h"
#include "report.h"
#include "report/diff.h"
#include "report/why.h"

/* -- why: page 5 of allocation 0, in a block that starts with the allocation -- */

static struct uvm_why why;
static struct uvm_alloc alloc = {.id = "a", .label = "A", .bytes = 2 << 20};
static struct uvm_range range = {.alloc = &alloc};
static struct uvm_block *block;

static int setup(void **state) {
  (void)state;
  struct uvm_places p = test_places();
  block = calloc(1, sizeof *block);
  block->pages = 512, block->range = &range, block->info.pages = 512;
  uvm_why_init(&why, &p, "a", 5);
  uvm_why_event(&why, &(struct uvm_event){.kind = UVM_E_ALLOC, .has_alloc = true, .allocation = &alloc});
  return 0;
}

static int teardown(void **state) {
  (void)state;
  uvm_why_free(&why);
  free(block);
  return 0;
}

static const struct uvm_why_line *tell(struct uvm_event e, int first, int last) {
  uvm_mask pages = uvm_mask_range(first, last);
  if (last > first) e.mask = &pages, e.block = block;
  e.has_alloc = true;
  uvm_why_event(&why, &e);
  return why.lines.n ? &why.lines.v[why.lines.n - 1] : NULL;
}

static void test_only_its_page(void **state) {
  (void)state;
  tell((struct uvm_event){.kind = UVM_E_POPULATE, .dst = DRAM}, 0, 5);
  tell((struct uvm_event){.kind = UVM_E_POPULATE, .dst = DRAM}, 6, 9);
  tell((struct uvm_event){.kind = UVM_E_CPU_FAULT, .offset = 4 * 4096}, 0, 0);
  uvm_why_event(&why, &(struct uvm_event){.kind = UVM_E_CPU_FAULT, .offset = 5 * 4096, .has_alloc = true, .alloc = 1});
  assert_int_equal(why.lines.n, 0);
  tell((struct uvm_event){.kind = UVM_E_CPU_FAULT, .offset = 5 * 4096}, 0, 0);
  tell((struct uvm_event){.kind = UVM_E_PREFETCH, .offset = 0, .bytes = 6 * 4096, .dst = HBM0}, 0, 0);
  tell((struct uvm_event){.kind = UVM_E_PREFETCH, .offset = 0, .bytes = 5 * 4096, .dst = HBM0}, 0, 0);
  assert_int_equal(why.lines.n, 2);
}

static void test_state_follows(void **state) {
  (void)state;
  const struct uvm_why_line *l = tell((struct uvm_event){.kind = UVM_E_POPULATE, .dst = DRAM}, 5, 6);
  assert_true(l->resident == 1u << DRAM && !l->mapped[CPU]);
  l = tell((struct uvm_event){.kind = UVM_E_MAP, .proc = CPU, .access = UVM_A_WRITE}, 5, 6);
  assert_int_equal(l->mapped[CPU], UVM_A_WRITE);
  l = tell((struct uvm_event){.kind = UVM_E_REVOKE, .proc = CPU, .access = UVM_A_READ}, 5, 6);
  assert_int_equal(l->mapped[CPU], UVM_A_READ);
  l = tell((struct uvm_event){.kind = UVM_E_TRANSFER, .src = DRAM, .dst = HBM0, .cause = UVM_C_FAULT, .rule = "here"}, 5, 6);
  assert_true(l->resident == 1u << HBM0);
  assert_string_equal(l->rule, "here");
  l = tell((struct uvm_event){.kind = UVM_E_DUPLICATE, .src = DRAM, .dst = HBM0}, 5, 6);
  assert_true(l->resident == (1u << HBM0 | 1u << DRAM));
  l = tell((struct uvm_event){.kind = UVM_E_COLLAPSE, .src = DRAM}, 5, 6);
  assert_true(l->resident == 1u << HBM0);
  l = tell((struct uvm_event){.kind = UVM_E_UNMAP, .proc = CPU, .access = UVM_A_PREFETCH}, 5, 6);
  assert_int_equal(l->mapped[CPU], 0);
  l = tell((struct uvm_event){.kind = UVM_E_FREE}, 0, 0);
  assert_int_equal(l->resident, 0);
}

/* A throttled processor's faults, all alike, are one line. */
static void test_repeats_are_one_line(void **state) {
  (void)state;
  const struct uvm_why_line *l = NULL;
  for (uvm_ns t = 10; t <= 40; t += 10)
    l = tell((struct uvm_event){.kind = UVM_E_GPU_FAULT, .proc = GPU0, .offset = 5 * 4096, .t = t}, 0, 0);
  assert_int_equal(why.lines.n, 1);
  assert_true(l->t == 10 && l->last == 40 && l->times == 4);
  tell((struct uvm_event){.kind = UVM_E_GPU_FAULT, .proc = GPU1, .offset = 5 * 4096, .t = 50}, 0, 0);
  assert_int_equal(why.lines.n, 2);
}

/* -- diff -- */

static void row(struct uvm_rows *r, enum uvm_row_kind kind, int64_t t, uint64_t offset, uint64_t value) {
  size_t n = r->rows.n;
  UVM_PUSH(&r->rows) = (struct uvm_row){.kind = kind, .t = t, .offset = offset, .value = value, .order = n};
}

/* The stream that parts first, -1: none; *at its index. */
static int parts(struct uvm_rows *a, struct uvm_rows *b, size_t *at) {
  struct uvm_diff d;
  uvm_diff_make(&d, a, b, "a", "b");
  int first = d.first;
  *at = first < 0 ? 0 : d.stream[first].first;
  uvm_diff_free(&d), uvm_rows_free(a), uvm_rows_free(b);
  return first;
}

enum { CPU_FAULTS, BATCHES, TO_GPU, TO_CPU };

static void test_times_do_not_matter(void **state) {
  (void)state;
  struct uvm_rows a = {0}, b = {0};
  size_t at;
  row(&a, UVM_ROW_CPU_FAULT, 1, 0, 1), row(&a, UVM_ROW_H2D, 2, 0, 4096), row(&a, UVM_ROW_CPU_FAULT, 3, 4096, 1);
  row(&b, UVM_ROW_H2D, 7, 0, 4096), row(&b, UVM_ROW_CPU_FAULT, 8, 0, 1), row(&b, UVM_ROW_CPU_FAULT, 9, 4096, 1);
  assert_int_equal(parts(&a, &b, &at), -1);
}

static void test_earliest_parting(void **state) {
  (void)state;
  struct uvm_rows a = {0}, b = {0};
  size_t at;
  row(&a, UVM_ROW_CPU_FAULT, 1, 0, 1), row(&a, UVM_ROW_H2D, 2, 0, 4096), row(&a, UVM_ROW_CPU_FAULT, 3, 4096, 1);
  row(&b, UVM_ROW_CPU_FAULT, 1, 0, 1), row(&b, UVM_ROW_H2D, 2, 0, 8192), row(&b, UVM_ROW_CPU_FAULT, 3, 8192, 1);
  assert_int_equal(parts(&a, &b, &at), TO_GPU);
  assert_int_equal(at, 0);
}

static void test_one_side_ends(void **state) {
  (void)state;
  struct uvm_rows a = {0}, b = {0};
  size_t at;
  row(&a, UVM_ROW_CPU_FAULT, 1, 0, 1);
  row(&b, UVM_ROW_CPU_FAULT, 1, 0, 1), row(&b, UVM_ROW_CPU_FAULT, 3, 4096, 1);
  assert_int_equal(parts(&a, &b, &at), CPU_FAULTS);
  assert_int_equal(at, 1);
}

/* A recording has no rows of our own kinds: their absence is no difference. The number of merged entries is none either. */
static void test_recording(void **state) {
  (void)state;
  struct uvm_rows a = {0}, b = {0};
  size_t at;
  row(&a, UVM_ROW_GPU_FAULT, 1, 0, 1), row(&a, UVM_ROW_FAULT, 1, 0, 1), row(&a, UVM_ROW_EVICT, 2, 0, 4096);
  row(&b, UVM_ROW_GPU_FAULT, 1, 0, 13);
  assert_int_equal(parts(&a, &b, &at), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_only_its_page, setup, teardown),
                                     cmocka_unit_test_setup_teardown(test_state_follows, setup, teardown),
                                     cmocka_unit_test_setup_teardown(test_repeats_are_one_line, setup, teardown),
                                     cmocka_unit_test(test_times_do_not_matter),
                                     cmocka_unit_test(test_earliest_parting),
                                     cmocka_unit_test(test_one_side_ends),
                                     cmocka_unit_test(test_recording)};
  return UVM_RUN(tests);
}
