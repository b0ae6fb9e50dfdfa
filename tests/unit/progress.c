/* The line of a run under way. Expected values by arithmetic: a quarter of the trace in 10 s leaves 30 s. */
#include <string.h>
#include "cli/progress.h"
#include "tests/unit/unit.h"

static const struct uvm_progress quarter = {.done = 250, .total = 1000, .line = 812, .accesses = 123000000, .now = 1530000000};

static void check(const struct uvm_progress *p, double elapsed, double still, unsigned columns, const char *want) {
  char line[256];
  uvm_progress_line(p, elapsed, still, columns, line, sizeof line);
  assert_string_equal(line, want);
  assert_true(strlen(line) <= columns);
}

static void test_a_quarter(void **state) {
  (void)state;
  check(&quarter, 10, 0, 119, "[##########                              ]  25 %  0:30 left  12.3 M accesses/s  1.530 s simulated");
}

/* Parts give way from the last on; the bar takes what is left, or nothing. */
static void test_narrow_terminals(void **state) {
  (void)state;
  const char *all = " 25 %  0:30 left  12.3 M accesses/s  1.530 s simulated";
  size_t n = strlen(all);
  check(&quarter, 10, 0, (unsigned)n + 15, "[###         ]  25 %  0:30 left  12.3 M accesses/s  1.530 s simulated");
  check(&quarter, 10, 0, (unsigned)n + 12, all);
  check(&quarter, 10, 0, (unsigned)n, all);
  check(&quarter, 10, 0, (unsigned)n - 1, "[###            ]  25 %  0:30 left  12.3 M accesses/s");
  check(&quarter, 10, 0, 16, " 25 %  0:30 left");
  check(&quarter, 10, 0, 5, " 25 %");
  check(&quarter, 10, 0, 4, "");
}

/* One long kernel: the part read says nothing of when it will be over. */
static void test_a_long_record(void **state) {
  (void)state;
  check(&quarter, 10, 1.9, 60, " 25 %  0:30 left  12.3 M accesses/s  1.530 s simulated");
  check(&quarter, 10, 2, 60, " 25 %  in line 812  12.3 M accesses/s  1.530 s simulated");
}

static void test_a_pipe(void **state) {
  (void)state;
  struct uvm_progress p = quarter;
  p.total = 0, p.done = 3 << 20;
  check(&p, 10, 0, 119, "3 MiB read  12.3 M accesses/s  1.530 s simulated");
}

static void test_the_first_moment(void **state) {
  (void)state;
  check(&(struct uvm_progress){.total = 1000}, 1, 0, 40, "[                ]   0 %  0 ns simulated");
}

static void test_figures(void **state) {
  (void)state;
  static const struct {
    uint64_t done, accesses;
    double elapsed;
    const char *want;
  } cases[] = {{500, 999, 1, " 50 %  0:01 left  999 accesses/s"},
               {500, 1000, 1, " 50 %  0:01 left  1.00 k accesses/s"},
               {500, 41000, 10, " 50 %  0:10 left  4.10 k accesses/s"},
               {10, 0, 60, "  1 %  1:39:00 left"},
               {1, 0, 0.5, "  0 %  8:20 left"},
               {1000, 7e12, 100, "100 %  0:00 left  70.0 G accesses/s"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    check(&(struct uvm_progress){.done = cases[i].done, .total = 1000, .accesses = cases[i].accesses}, cases[i].elapsed, 0,
          (unsigned)strlen(cases[i].want), cases[i].want);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_quarter),        cmocka_unit_test(test_narrow_terminals),
                                     cmocka_unit_test(test_a_long_record),    cmocka_unit_test(test_a_pipe),
                                     cmocka_unit_test(test_the_first_moment), cmocka_unit_test(test_figures)};
  return UVM_RUN(tests);
}
