/* Verdicts of a replay beside a recording, and predicted section times. Expected values: the definitions in validate.h, by hand. */
#include "report/page_moves.h"
#include "report/spread.h"
#include "report/validate.h"
#include "tests/unit/files.h"

static void add(struct uvm_rows *r, enum uvm_row_kind kind, int64_t alloc, uint64_t offset, uint64_t value, uint64_t flags) {
  size_t n = r->rows.n;
  UVM_PUSH(&r->rows) =
      (struct uvm_row){.kind = kind, .alloc = alloc, .offset = offset, .value = value, .flags = flags, .t = (int64_t)n, .order = n};
}

/* Compares, and returns the only check of this name. */
static struct uvm_check check(struct uvm_rows *recorded, struct uvm_rows *simulated, double tolerance, const char *what) {
  struct uvm_validation v;
  struct uvm_check found = {.alloc = -2};
  uvm_validate(&v, recorded, simulated, tolerance);
  for (size_t i = 0; i < v.checks.n; i++)
    if (!strcmp(v.checks.v[i].what, what)) found = v.checks.v[i];
  uvm_validation_free(&v);
  uvm_rows_free(recorded), uvm_rows_free(simulated);
  found.first = NULL;
  return found;
}

static void faults(struct uvm_rows *r, const uint64_t *pages, size_t n) {
  for (size_t i = 0; i < n; i++) add(r, UVM_ROW_CPU_FAULT, 0, pages[i] * 4096, 1, 2);
}

static void test_sequences(void **state) {
  (void)state;
  static const struct {
    uint64_t recorded[4], simulated[4];
    size_t nr, ns;
    enum uvm_verdict want;
  } cases[] = {{{1, 2, 3}, {1, 2, 3}, 3, 3, UVM_V_EXACT}, {{1, 3}, {1, 2, 3}, 2, 3, UVM_V_SUBSEQUENCE}, {{0}, {1}, 0, 1, UVM_V_SUBSEQUENCE},
               {{3, 1}, {1, 2, 3}, 2, 3, UVM_V_DIFFERS},  {{1, 2}, {1}, 2, 1, UVM_V_DIFFERS},           {{1}, {0}, 1, 0, UVM_V_DIFFERS}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct uvm_rows a = {0}, b = {0};
    faults(&a, cases[i].recorded, cases[i].nr), faults(&b, cases[i].simulated, cases[i].ns);
    struct uvm_check c = check(&a, &b, -1, "CPU faults");
    assert_int_equal(c.verdict, cases[i].want);
    assert_true(c.recorded == cases[i].nr && c.simulated == cases[i].ns);
  }
}

/* Recorded: the CPU's `w` of a trace can fault as a read (the program adds to what is there). */
static void test_access_does_not_matter(void **state) {
  (void)state;
  struct uvm_rows a = {0}, b = {0};
  add(&a, UVM_ROW_CPU_FAULT, 0, 0, 1, 1), add(&b, UVM_ROW_CPU_FAULT, 0, 0, 1, 2);
  assert_int_equal(check(&a, &b, -1, "CPU faults").verdict, UVM_V_EXACT);
}

/* 4 + 60 KiB and one copy of 64 KiB move the same pages in other sizes. */
static void test_pages_and_sizes(void **state) {
  (void)state;
  struct uvm_rows a = {0}, b = {0};
  add(&a, UVM_ROW_H2D, 0, 0, 4096, 2), add(&a, UVM_ROW_H2D, 0, 4096, 61440, 3), add(&b, UVM_ROW_H2D, 0, 0, 65536, 2);
  struct uvm_rows a2 = {0}, b2 = {0};
  for (size_t i = 0; i < a.rows.n; i++) UVM_PUSH(&a2.rows) = a.rows.v[i];
  for (size_t i = 0; i < b.rows.n; i++) UVM_PUSH(&b2.rows) = b.rows.v[i];
  struct uvm_check pages = check(&a, &b, -1, "pages to GPU"), sizes = check(&a2, &b2, -1, "sizes to GPU");
  assert_int_equal(pages.verdict, UVM_V_EXACT);
  assert_true(pages.recorded == 16 && pages.simulated == 16);
  assert_int_equal(sizes.verdict, UVM_V_DIFFERS);
  assert_true(sizes.recorded == 2 && sizes.simulated == 1);
}

static void test_pages_moved_twice(void **state) {
  (void)state;
  struct uvm_rows a = {0}, b = {0};
  add(&a, UVM_ROW_D2H, 0, 0, 8192, 2);
  add(&b, UVM_ROW_D2H, 0, 0, 8192, 2), add(&b, UVM_ROW_D2H, 0, 4096, 4096, 2);
  assert_int_equal(check(&a, &b, -1, "pages to CPU").verdict, UVM_V_SUBSEQUENCE);
  struct uvm_rows c = {0}, d = {0};
  add(&c, UVM_ROW_D2H, 0, 0, 8192, 2), add(&c, UVM_ROW_D2H, 0, 0, 4096, 2), add(&d, UVM_ROW_D2H, 0, 0, 8192, 2),
      add(&d, UVM_ROW_D2H, 0, 4096, 4096, 2);
  assert_int_equal(check(&c, &d, -1, "pages to CPU").verdict, UVM_V_DIFFERS);
}

static void test_tolerance(void **state) {
  (void)state;
  for (int percent = 0; percent <= 20; percent += 20) {
    struct uvm_rows a = {0}, b = {0};
    for (uint64_t i = 0; i < 10; i++) add(&a, UVM_ROW_THRASH, 0, i * 4096, 1, 0);
    for (uint64_t i = 0; i < 12; i++) add(&b, UVM_ROW_THRASH, 0, i * 4096, 1, 0);
    assert_int_equal(check(&a, &b, percent, "thrashing").verdict, percent ? UVM_V_CLOSE : UVM_V_DIFFERS);
  }
}

/* Recordings tell of remote mappings only where thrashing control made them (flags 2). */
static void test_mappings_by_advice_do_not_count(void **state) {
  (void)state;
  struct uvm_rows a = {0}, b = {0};
  add(&a, UVM_ROW_REMOTE_MAP, 0, 0, 1, 2), add(&b, UVM_ROW_REMOTE_MAP, 0, 0, 1, 2), add(&b, UVM_ROW_REMOTE_MAP, 0, 4096, 1, 3);
  struct uvm_check c = check(&a, &b, -1, "thrashing maps");
  assert_int_equal(c.verdict, UVM_V_EXACT);
  assert_true(c.recorded == 1 && c.simulated == 1);
}

static void test_by_allocation(void **state) {
  (void)state;
  struct uvm_rows a = {0}, b = {0};
  add(&a, UVM_ROW_CPU_FAULT, 3, 0, 1, 2), add(&a, UVM_ROW_CPU_FAULT, 1, 0, 1, 2);
  add(&b, UVM_ROW_CPU_FAULT, 1, 0, 1, 2), add(&b, UVM_ROW_CPU_FAULT, 4, 0, 1, 2);
  struct uvm_validation v;
  uvm_validate(&v, &a, &b, -1);
  assert_int_equal(v.checks.n, 3);
  assert_true(v.checks.v[0].alloc == 1 && v.checks.v[0].verdict == UVM_V_EXACT);
  assert_true(v.checks.v[1].alloc == 3 && v.checks.v[1].verdict == UVM_V_DIFFERS);
  assert_true(v.checks.v[2].alloc == 4 && v.checks.v[2].verdict == UVM_V_SUBSEQUENCE);
  uvm_validation_free(&v), uvm_rows_free(&a), uvm_rows_free(&b);
}

/* -- section times -- */

static void write_file(char *path, const char *text) { spew(temporary(path, ".csv"), text, strlen(text)); }

#define HEADER "workload,section,part,iterations,runs,min,median,max\n"

static void section(struct uvm_rows *r, char *name, uint64_t iteration, int64_t ns) {
  UVM_PUSH(&r->rows) = (struct uvm_row){.kind = UVM_ROW_SECTION, .alloc = -1, .name = name, .value = iteration, .dur = ns};
}

/* first: iteration 0; rest: the others; all: the sum; more repetitions than recorded: the fastest. */
static void test_parts(void **state) {
  (void)state;
  char path[64];
  struct uvm_spreads s = {0};
  struct uvm_error e;
  write_file(path, HEADER "w,a,first,1,11,1,2,3\nw,a,rest,2,11,1,1.5,2\nother,a,all,1,1,1,1,1\nw,b,all,1,11,1,1,1\nw,c,all,1,11,1,1,1\n");
  assert_int_equal(uvm_spreads_read(&s, path, "w", &e), 0);
  unlink(path);
  struct uvm_rows r = {0};
  section(&r, "a", 0, 6000000000), section(&r, "a", 1, 400000000), section(&r, "a", 2, 100000000);
  section(&r, "b", 0, 3000000000), section(&r, "b", 1, 1000000000);
  struct uvm_causes none = {0};
  uvm_causes_settle(&none);
  uvm_spreads_predict(&s, &r, &none);
  uvm_causes_free(&none);
  assert_int_equal(s.v.n, 4);
  assert_true(s.v.v[0].seconds > 5.999 && s.v.v[0].seconds < 6.001 && s.v.v[0].outside > 99.9 && s.v.v[0].outside < 100.1);
  assert_true(s.v.v[1].seconds > 0.499 && s.v.v[1].seconds < 0.501 && s.v.v[1].outside > 49.9 && s.v.v[1].outside < 50.1);
  assert_true(s.v.v[2].predicted && s.v.v[2].outside == 0);
  assert_int_equal(s.v.v[1].ns[UVM_CAUSE_HOST], 500000000);
  assert_true(!s.v.v[3].predicted && s.v.v[3].outside == 0);
  uvm_rows_free(&r), uvm_spreads_free(&s);
}

static void test_bad_files(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int code;
    const char *says;
  } cases[] = {{"", UVM_EINPUT, ":1: expected the header"},
               {"a,b\n", UVM_EINPUT, ":1: expected the header"},
               {HEADER "w,a,all,1,11,1,1\n", UVM_EINPUT, ":2: expected 8 fields"},
               {HEADER "w,a,all,1,11,1,1,1,1\n", UVM_EINPUT, ":2: expected 8 fields"},
               {HEADER "w,a,half,1,11,1,1,1\n", UVM_EINPUT, ":2: expected part"},
               {HEADER "w,a,all,0,11,1,1,1\n", UVM_EINPUT, ":2: expected whole numbers"},
               {HEADER "w,a,all,1,11,2,1,1\n", UVM_EINPUT, ":2: expected times"},
               {HEADER "w,a,all,1,11,1,3,2\n", UVM_EINPUT, ":2: expected times"},
               {HEADER "w,a,all,1,11, 1,1,0x2\n", UVM_EINPUT, ":2: expected times"},
               {HEADER "v,a,all,1,11,1,1,1\n\xff\n", UVM_EINPUT, ":3: expected UTF-8"},
               {HEADER "v,a,all,1,11,1,1,1\n", UVM_EUSAGE, "no workload"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char path[64];
    struct uvm_spreads s = {0};
    struct uvm_error e;
    write_file(path, cases[i].text);
    assert_int_equal(uvm_spreads_read(&s, path, "w", &e), cases[i].code);
    assert_non_null(strstr(e.text, cases[i].says));
    unlink(path);
    uvm_spreads_free(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sequences),       cmocka_unit_test(test_access_does_not_matter),
                                     cmocka_unit_test(test_pages_and_sizes), cmocka_unit_test(test_pages_moved_twice),
                                     cmocka_unit_test(test_tolerance),       cmocka_unit_test(test_mappings_by_advice_do_not_count),
                                     cmocka_unit_test(test_by_allocation),   cmocka_unit_test(test_parts),
                                     cmocka_unit_test(test_bad_files)};
  return UVM_RUN(tests);
}
