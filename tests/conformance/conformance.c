/* Prints, as one table, how the simulation compares with what a real driver was recorded doing.
 * Usage: conformance [--quick] DIRECTORY    (of recordings). Exit 1 when a row fails. */
#include "tests/conformance/conformance.h"
#include <stdlib.h>

#define BIT(k) (1u << UVM_ROW_##k)
enum { CPU_ORDER = 1, D2H_SETS = 2, SUBSEQUENCE = 4, WIDE = 8, TRACED = 16 }; /* TRACED: it depends on time */
static const struct {
  const char *name;
  unsigned checks;
  bool quick;
} workloads[] = {
    {"block_read", CPU_ORDER | D2H_SETS, false},
    {"chase", CPU_ORDER | D2H_SETS, true},
    {"cpufan", CPU_ORDER | D2H_SETS, true},
    {"epochs", CPU_ORDER | D2H_SETS, true},
    {"fan", CPU_ORDER | D2H_SETS, true},
    {"first_touch", CPU_ORDER | D2H_SETS, false},
    {"prefetch", CPU_ORDER | D2H_SETS, true},
    {"random", CPU_ORDER | D2H_SETS, false},
    {"stream_write", CPU_ORDER | D2H_SETS | WIDE, false},
    {"advise", SUBSEQUENCE, false},
    {"stream_small", WIDE | CPU_ORDER | TRACED, false},
};

void uvm_conform_row(struct uvm_score *s, bool ok, const char *workload, const char *what, const char *fmt, ...) {
  printf("%-5s %-13s %-34s ", ok ? "ok" : "FAIL", workload, what);
  va_list ap;
  va_start(ap, fmt);
  vprintf(fmt, ap);
  va_end(ap);
  putchar('\n');
  fflush(stdout);
  ok ? s->passed++ : s->failed++;
}

/* -- numbers about batches -- */

static uint64_t median(uint64_t *v, size_t n) {
  qsort(v, n, sizeof *v, uvm_conform_ascending);
  return n ? v[n / 2] : 0;
}

/* Streaming kernels: the recording's batches held 100-130 different pages first, then a median of 45-100. */
static void streaming_batches(struct uvm_score *s, const struct uvm_run_of *w) {
  UVM_VEC(uint64_t) first = {0}, rest = {0};
  for (size_t i = 0; i < w->batches.n; i++)
    if (w->batches.v[i].first)
      UVM_PUSH(&first) = w->batches.v[i].distinct;
    else
      UVM_PUSH(&rest) = w->batches.v[i].distinct;
  uint64_t f = median(first.v, first.n), r = median(rest.v, rest.n);
  uvm_conform_row(s, f >= 100 && f <= 130, w->name, "pages in a kernel's first batch", "median %llu of %zu (recorded 100-130)",
                  (unsigned long long)f, first.n);
  uvm_conform_row(s, r >= 45 && r <= 100, w->name, "pages in a later batch", "median %llu of %zu (recorded 45-100)", (unsigned long long)r,
                  rest.n);
  uvm_mem_free(first.v), uvm_mem_free(rest.v);
}

static uint64_t bytes_in(const struct uvm_rows *rows, int64_t alloc) {
  uint64_t sum = 0;
  for (size_t i = 0; i < rows->rows.n; i++)
    if (rows->rows.v[i].kind == UVM_ROW_H2D && rows->rows.v[i].alloc == alloc) sum += rows->rows.v[i].value;
  return sum;
}

/* Allocation 0 of `random`: 655 lanes, one page each. Recorded: 22 batches of 13-41 faults. */
static void random_batches(struct uvm_score *s, const struct uvm_run_of *w) {
  size_t n = 0, most = 0, outside = 0;
  for (size_t i = 0; i < w->batches.n; i++) {
    if (w->batches.v[i].alloc != 0) continue;
    n++;
    if (w->batches.v[i].distinct > most) most = w->batches.v[i].distinct;
    if (w->batches.v[i].distinct < 13 || w->batches.v[i].distinct > 41) outside++;
  }
  uvm_conform_row(s, n >= 18 && n <= 26, w->name, "batches at 1 %", "%zu (recorded 22)", n);
  uvm_conform_row(s, outside <= 2, w->name, "faults a batch at 1 %", "%zu of %zu outside 13-41, most %zu", outside, n, most);
  uint64_t r = bytes_in(&w->recorded, 0), m = bytes_in(&w->simulated, 0);
  double share = r ? 100 * (double)m / (double)r : 0;
  uvm_conform_row(s, share > 97 && share < 103, w->name, "bytes to the GPU at 1 %", "%.1f %% of the recorded", share);
}

/* `fan`: one batch up to 128 faults, two at 256. Batches an allocation, recorded and simulated. */
static void fan_batches(struct uvm_score *s, const struct uvm_run_of *w) {
  UVM_VEC(unsigned) r = {0}, m = {0};
  for (size_t i = 0; i < w->recorded.rows.n; i++) {
    const struct uvm_row *row = &w->recorded.rows.v[i];
    if (row->kind != UVM_ROW_GPU_FAULT) continue;
    while (r.n <= (size_t)row->alloc) UVM_PUSH(&r) = 0;
    r.v[row->alloc]++;
  }
  for (size_t i = 0; i < w->batches.n; i++) {
    while (m.n <= w->batches.v[i].alloc) UVM_PUSH(&m) = 0;
    m.v[w->batches.v[i].alloc]++;
  }
  size_t differ = 0, two = 0;
  for (size_t a = 0; a < r.n; a++) differ += a >= m.n || r.v[a] != m.v[a], two += r.v[a] == 2;
  /* 256 faults of 64 KiB each within 8 blocks came in one batch when recorded; of 2 MiB each in two. */
  uvm_conform_row(s, differ <= 5, w->name, "batches of each kernel", "%zu of %zu differ (recorded: %zu kernels of two)", differ, r.n, two);
  uvm_mem_free(r.v), uvm_mem_free(m.v);
}

/* -- one workload -- */

static void compare(struct uvm_score *s, const struct uvm_run_of *w, unsigned checks) {
  if (checks & CPU_ORDER) uvm_conform_order(s, w, BIT(CPU_FAULT), "CPU faults, in order");
  if (checks & D2H_SETS) {
    uvm_conform_pages(s, w, BIT(D2H), "pages to the CPU");
    uvm_conform_sizes(s, w, BIT(D2H), "sizes of transfers to the CPU");
  }
  if (checks & SUBSEQUENCE) {
    uvm_conform_subsequence(s, w, BIT(CPU_FAULT), "CPU faults recorded, in order");
    uvm_conform_subsequence(s, w, BIT(D2H), "transfers to the CPU recorded");
  }
  if (checks & WIDE) streaming_batches(s, w);
  if (!strcmp(w->name, "chase")) {
    uvm_conform_order(s, w, BIT(GPU_FAULT), "GPU faults, in order");
    uvm_conform_pages(s, w, BIT(H2D), "pages to the GPU");
    uvm_conform_sizes(s, w, BIT(H2D), "sizes of transfers to the GPU");
  }
  if (!strcmp(w->name, "prefetch")) uvm_conform_order(s, w, BIT(H2D) | BIT(D2H), "all transfers, in order");
  if (!strcmp(w->name, "random")) random_batches(s, w);
  if (!strcmp(w->name, "fan")) fan_batches(s, w);
}

static void recorded(struct uvm_score *s, const char *dir, bool quick) {
  for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
    if (quick && !workloads[i].quick) continue;
    struct uvm_run_of w;
    struct uvm_error e;
    if (uvm_conform_run(&w, dir, workloads[i].name, workloads[i].checks & TRACED ? "traced" : NULL, 0, &e))
      uvm_conform_row(s, false, w.name, "replay", "%s", e.text);
    else
      compare(s, &w, workloads[i].checks);
    uvm_conform_free(&w);
  }
}

static unsigned long long mib(uint64_t bytes) { return (unsigned long long)bytes >> 20; }

/* -- with less memory than the program uses -- */

static void oversubscribed(struct uvm_score *s, const char *dir, bool quick) {
  static const char *const names[] = {"cpufan",      "epochs",   "chase",  "prefetch",    "fan",          "advise",       "block_read",
                                      "first_touch", "pingpong", "random", "stream_read", "stream_small", "stream_write", "thrash"};
  static const double fractions[] = {0.25, 0.5, 0.9};
  size_t n = quick ? 3 : sizeof names / sizeof *names;
  for (size_t i = 0; i < n; i++)
    for (size_t f = 0; f < 3; f++) {
      struct uvm_run_of w;
      struct uvm_error e;
      char what[48];
      snprintf(what, sizeof what, "memory %.2f of the footprint", fractions[f]);
      if (uvm_conform_run(&w, dir, names[i], NULL, 1 / fractions[f], &e)) {
        uvm_conform_row(s, false, names[i], what, "%s", e.text);
      } else {
        uint64_t kept = w.in + w.populated - w.out - w.dropped;
        bool fits = w.result.peak_gpu_bytes <= w.result.gpu_capacity;
        uvm_conform_row(s, fits && kept == w.result.resident_gpu_bytes, names[i], what,
                        "peak %llu of %llu MiB; came %llu, made there %llu, went %llu, freed %llu, left %llu", mib(w.result.peak_gpu_bytes),
                        mib(w.result.gpu_capacity), mib(w.in), mib(w.populated), mib(w.out), mib(w.dropped),
                        mib(w.result.resident_gpu_bytes));
      }
      uvm_conform_free(&w);
    }
}

static void wide(struct uvm_score *s, const char *dir) {
  static const char *const names[] = {"random", "stream_small", "stream_write", "block_read", "first_touch", "fan"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) uvm_conform_rule(s, dir, names[i]);
}

int main(int argc, char **argv) {
  bool quick = argc == 3 && !strcmp(argv[1], "--quick");
  if (argc != 2 && !quick) return fprintf(stderr, "usage: conformance [--quick] DIRECTORY\n"), 2;
  struct uvm_score s = {0};
  recorded(&s, argv[argc - 1], quick);
  uvm_conform_titanv(&s);
  if (!quick) wide(&s, argv[argc - 1]), uvm_conform_times(&s, argv[argc - 1]);
  oversubscribed(&s, argv[argc - 1], quick);
  printf("%u passed, %u failed\n", s.passed, s.failed);
  return s.failed != 0;
}
