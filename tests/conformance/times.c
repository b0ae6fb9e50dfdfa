/* Times: sections beside the recorded spread of eleven runs, and what thrashing control, which looks at a clock, did. */
#include "tests/conformance/conformance.h"
#include "report/spread.h"
#include <math.h>
#include <stdlib.h>

/* Prices were calibrated on these; all other rows are predictions. */
static const char *const calibrated[] = {"chase", "fan", "cpufan", "prefetch", "stream_small", NULL};
static const char *const held_out[] = {"advise", "block_read",  "epochs",       "first_touch", "pingpong",
                                       "random", "stream_read", "stream_write", "thrash",      NULL};
/* Rows that belong elsewhere. */
static const struct {
  const char *section, *workload; /* NULL: of any */
} exceptions[] = {
    {"readmostly_gpu_write:268435456", NULL}, /* the price of a revocation was calibrated on it */
    {"grid_stride:2097152", "stream_read"},   /* stream_small repeats these */
    {"grid_stride:16777216", "stream_read"},   {"grid_stride:67108864", "stream_read"},   {"resident_read:2097152", "stream_read"},
    {"resident_read:16777216", "stream_read"}, {"resident_read:67108864", "stream_read"}, {"cpu_read_back:16777216", "stream_read"},
    {"cpu_read_back:67108864", "stream_read"}, {"cpu_read_back:2097152", NULL}, /* bistable */
};

struct times {
  UVM_VEC(double) outside, error; /* percent: beyond the spread, from the median */
  double worst;                   /* factor from the median */
  char worst_row[300];
};

static bool excepted(const char *workload, const char *section) {
  for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
    if (!strcmp(exceptions[i].section, section)) return !exceptions[i].workload || !strcmp(exceptions[i].workload, workload);
  return false;
}

static void take(struct times *t, const char *workload, const struct uvm_spread *s) {
  if (!s->predicted || excepted(workload, s->section)) return;
  double off = s->seconds / s->median, factor = off > 1 ? off : 1 / off;
  UVM_PUSH(&t->outside) = s->outside;
  UVM_PUSH(&t->error) = fabs(off - 1) * 100;
  if (factor <= t->worst) return;
  t->worst = factor;
  snprintf(t->worst_row, sizeof t->worst_row, "%s %s", workload, s->section);
}

static int measure(struct times *t, const char *dir, const char *workload, struct uvm_error *e) {
  struct uvm_spreads spreads = {0};
  struct uvm_causes causes = {0};
  struct uvm_run_of w;
  int rc = uvm_conform_run(&w, dir, workload, NULL, 0, e);
  char *path = uvm_format("%s/sections.csv", dir);
  if (!rc) rc = uvm_spreads_read(&spreads, path, workload, e);
  uvm_mem_free(path);
  if (!rc) {
    uvm_causes_settle(&causes);
    uvm_spreads_predict(&spreads, &w.simulated, &causes);
    for (size_t i = 0; i < spreads.v.n; i++) take(t, workload, &spreads.v.v[i]);
  }
  uvm_causes_free(&causes);
  uvm_spreads_free(&spreads);
  uvm_conform_free(&w);
  return rc;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* What one real run scores against the others: 82 % inside, 27 % at the 90th percentile, 6.5 % at the median. */
static void score(struct uvm_score *s, const char *dir, const char *const *workloads, const char *name) {
  bool predictions = workloads == held_out;
  struct times t = {0};
  struct uvm_error e;
  for (; *workloads; workloads++)
    if (measure(&t, dir, *workloads, &e)) uvm_conform_row(s, false, *workloads, "times", "%s", e.text);
  qsort(t.outside.v, t.outside.n, sizeof *t.outside.v, by_value);
  qsort(t.error.v, t.error.n, sizeof *t.error.v, by_value);
  size_t n = t.outside.n, inside = 0;
  while (inside < n && t.outside.v[inside] <= 0) inside++;
  if (n) {
    double at90 = t.outside.v[(9 * n + 9) / 10 - 1], median = t.error.v[n / 2];
    uvm_conform_row(s, inside * 10 >= n * 7, name, "sections inside the recorded spread", "%zu of %zu (70 %%)", inside, n);
    uvm_conform_row(s, at90 <= 20, name, "nine of ten outside it by", "at most %.1f %% (20 %%)", at90);
    uvm_conform_row(s, median <= 10, name, "from the recorded median", "%.1f %% at the median (10 %%)", median);
  }
  if (n && predictions) uvm_conform_row(s, t.worst < 2, name, "the worst section", "by %.2f times, %s (2 times)", t.worst, t.worst_row);
  uvm_mem_free(t.outside.v), uvm_mem_free(t.error.v);
}

/* -- thrashing control, with the costs of the recorded events -- */

struct counts {
  unsigned thrash, throttle, remote;
};

/* Rows within the sections of this name. */
static struct counts count(const struct uvm_rows *rows, const char *section) {
  struct counts n = {0};
  for (size_t i = 0; i < rows->rows.n; i++) {
    const struct uvm_row *s = &rows->rows.v[i];
    if (s->kind != UVM_ROW_SECTION || strcmp(s->name, section)) continue;
    for (size_t k = i + 1; k < rows->rows.n && rows->rows.v[k].t < s->t + s->dur; k++) {
      n.thrash += rows->rows.v[k].kind == UVM_ROW_THRASH;
      n.throttle += rows->rows.v[k].kind == UVM_ROW_THROTTLE;
      n.remote += rows->rows.v[k].kind == UVM_ROW_REMOTE_MAP;
    }
  }
  return n;
}

static unsigned apart(unsigned a, unsigned b) { return a > b ? a - b : b - a; }

/* Pages found thrashing within a quarter, throttles within a quarter or 4, remote mappings within 2. */
static void compare_counts(struct uvm_score *s, const char *workload, const char *section, struct counts r, struct counts m) {
  bool ok = apart(r.thrash, m.thrash) * 4 <= r.thrash &&
            (apart(r.throttle, m.throttle) * 4 <= r.throttle || apart(r.throttle, m.throttle) <= 4) && apart(r.remote, m.remote) <= 2;
  uvm_conform_row(s, ok, workload, section, "thrashing %u (recorded %u), throttles %u (%u), mapped remotely %u (%u)", m.thrash, r.thrash,
                  m.throttle, r.throttle, m.remote, r.remote);
}

static bool named_before(const struct uvm_rows *rows, size_t i) {
  for (size_t k = 0; k < i; k++)
    if (rows->rows.v[k].kind == UVM_ROW_SECTION && !strcmp(rows->rows.v[k].name, rows->rows.v[i].name)) return true;
  return false;
}

static void thrashing(struct uvm_score *s, const char *dir, const char *workload) {
  struct uvm_run_of w;
  struct uvm_error e;
  if (uvm_conform_run(&w, dir, workload, "traced", 0, &e)) {
    uvm_conform_row(s, false, workload, "thrashing control", "%s", e.text);
  } else {
    uvm_rows_sort(&w.recorded);
    for (size_t i = 0; i < w.recorded.rows.n; i++) {
      const struct uvm_row *r = &w.recorded.rows.v[i];
      if (r->kind == UVM_ROW_SECTION && !named_before(&w.recorded, i))
        compare_counts(s, workload, r->name, count(&w.recorded, r->name), count(&w.simulated, r->name));
    }
  }
  uvm_conform_free(&w);
}

void uvm_conform_times(struct uvm_score *s, const char *dir) {
  score(s, dir, calibrated, "calibrated");
  score(s, dir, held_out, "held out");
  thrashing(s, dir, "thrash");
  thrashing(s, dir, "pingpong");
}
