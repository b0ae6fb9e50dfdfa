/* Timelines of whole runs, read again: the rules of the Trace Event Format as its viewer's importer applies them, and sums that must
 * be those of the run's metrics. */
#include <cjson/cJSON.h>
#include "machine/machine.h"
#include "report/metrics.h"
#include "report/timeline.h"
#include "report/tracks.h"
#include "tests/unit/files.h"
#include "tests/unit/report.h"

/* -- a file, and what stands in it -- */

struct row { /* one tid */
  int pid;
  const char *name;
};
struct slice {
  int tid;
  int64_t begin, end; /* ns */
};
struct file {
  cJSON *document;
  const char *processes[32];
  struct row rows[512];
  UVM_VEC(struct slice) slices;
};

static const cJSON *get(const cJSON *o, const char *key) { return cJSON_GetObjectItemCaseSensitive(o, key); }
static const char *text(const cJSON *o, const char *key) { return cJSON_GetStringValue(get(o, key)); }
static bool is(const cJSON *e, const char *phase) { return !strcmp(text(e, "ph"), phase); }
static int number(const cJSON *o, const char *key) {
  assert_true(cJSON_IsNumber(get(o, key)));
  return get(o, key)->valueint;
}
static int64_t ns(const cJSON *e, const char *key) {
  assert_true(cJSON_IsNumber(get(e, key)) && get(e, key)->valuedouble >= 0);
  return (int64_t)(get(e, key)->valuedouble * 1000 + 0.5);
}

static void learn(struct file *f, const cJSON *e) {
  int pid = number(e, "pid"), tid = number(e, "tid");
  const char *what = text(e, "name"), *name = text(get(e, "args"), "name");
  assert_in_range(pid, 1, 31), assert_in_range(tid, 1, 511);
  if (!strcmp(what, "process_name")) {
    assert_true(name && !f->processes[pid]);
    f->processes[pid] = name;
  } else if (!strcmp(what, "thread_name")) {
    assert_true(name && !f->rows[tid].name); /* a tid is one row's, whatever its process */
    f->rows[tid] = (struct row){pid, name};
  } else {
    assert_true(!strcmp(what, "process_sort_index") || !strcmp(what, "thread_sort_index"));
    assert_true(cJSON_IsNumber(get(get(e, "args"), "sort_index")));
  }
}

/* Keys that each phase needs. */
static void check_event(struct file *f, const cJSON *e) {
  int pid = number(e, "pid"), tid = number(e, "tid");
  ns(e, "ts");
  assert_non_null(f->processes[pid]);
  assert_true(is(e, "E") || (text(e, "name") && *text(e, "name")));
  if (is(e, "C")) {
    for (const cJSON *a = get(e, "args")->child; a; a = a->next) assert_true(cJSON_IsNumber(a) && a->valuedouble >= 0);
    return;
  }
  assert_true(f->rows[tid].name && f->rows[tid].pid == pid);
  if (is(e, "i")) assert_string_equal(text(e, "s"), "t");
  if (is(e, "X"))
    UVM_PUSH(&f->slices) = (struct slice){tid, ns(e, "ts"), ns(e, "ts") + ns(e, "dur")};
  else
    assert_true(is(e, "B") || is(e, "E") || is(e, "i"));
}

static int by_row(const void *a, const void *b) {
  const struct slice *x = a, *y = b;
  if (x->tid != y->tid) return x->tid - y->tid;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return (x->end > y->end) - (x->end < y->end);
}

static void check_slices_are_apart(struct file *f) {
  if (f->slices.n) qsort(f->slices.v, f->slices.n, sizeof *f->slices.v, by_row);
  for (size_t i = 1; i < f->slices.n; i++)
    assert_true(f->slices.v[i - 1].tid != f->slices.v[i].tid || f->slices.v[i - 1].end <= f->slices.v[i].begin);
}

/* Begins and ends pair, and time does not go back between them. */
static void check_sections(const struct file *f, size_t sections) {
  int open = 0;
  int64_t last = 0;
  const cJSON *e;
  cJSON_ArrayForEach(e, get(f->document, "traceEvents")) {
    if (!is(e, "B") && !is(e, "E")) continue;
    open += is(e, "B") ? 1 : -1;
    sections -= is(e, "B");
    assert_true(open >= 0 && ns(e, "ts") >= last);
    last = ns(e, "ts");
  }
  assert_true(!open && !sections);
}

static struct file read_file(const char *path) {
  struct file f = {0};
  struct blob json = slurp(path);
  f.document = cJSON_Parse((const char *)json.v);
  free(json.v);
  assert_non_null(f.document);
  assert_string_equal(text(f.document, "displayTimeUnit"), "ns");
  assert_true(cJSON_IsArray(get(f.document, "traceEvents")));
  const cJSON *e;
  cJSON_ArrayForEach(e, get(f.document, "traceEvents")) is(e, "M") ? learn(&f, e) : check_event(&f, e);
  check_slices_are_apart(&f);
  return f;
}

static void free_file(struct file *f) {
  cJSON_Delete(f->document);
  uvm_mem_free(f->slices.v);
}

/* -- sums -- */

static bool in_row(const struct file *f, const cJSON *e, const char *row) {
  if (!row) return !strcmp(f->processes[number(e, "pid")], "links");
  return !strncmp(f->rows[number(e, "tid")].name, row, strlen(row));
}

/* Events of this phase in rows whose name begins so (NULL: of links), and what their argument adds up to. */
static uint64_t count(const struct file *f, const char *phase, const char *row, const char *name, const char *arg, uint64_t *sum) {
  uint64_t n = 0;
  const cJSON *e;
  if (sum) *sum = 0;
  cJSON_ArrayForEach(e, get(f->document, "traceEvents")) {
    if (!is(e, phase) || !in_row(f, e, row)) continue;
    if (name && strcmp(text(e, "name"), name)) continue;
    n++;
    if (sum) *sum += (uint64_t)get(get(e, "args"), arg)->valuedouble;
  }
  return n;
}

/* Bytes that the counter shows last: of the latest time, the last written. */
static uint64_t last_count(const struct file *f, const char *counter) {
  int64_t at = -1;
  double bytes = 0;
  const cJSON *e;
  cJSON_ArrayForEach(e, get(f->document, "traceEvents")) {
    if (!is(e, "C") || strcmp(text(e, "name"), counter)) continue;
    assert_true(ns(e, "ts") >= at);
    at = ns(e, "ts"), bytes = get(get(e, "args"), "bytes")->valuedouble;
  }
  return (uint64_t)bytes;
}

struct tally {
  uint64_t kernels, prefetches, copied;
};
static void tally_event(void *ctx, const struct uvm_event *e) {
  struct tally *t = ctx;
  t->kernels += e->kind == UVM_E_KERNEL, t->prefetches += e->kind == UVM_E_PREFETCH;
  if (e->kind == UVM_E_COPY) t->copied += e->bytes;
}

static void check_sums(const struct file *f, const struct uvm_metrics *m, const struct tally *t, const struct uvm_session_result *r) {
  const struct uvm_counters *c = &m->total;
  uint64_t bytes, copied = 0, faults, resident = 0;
  count(f, "X", NULL, NULL, "bytes", &bytes), count(f, "X", NULL, "memcpy", "bytes", &copied);
  assert_int_equal(bytes - copied, c->h2d_bytes + c->d2h_bytes + c->d2d_bytes);
  assert_int_equal(copied, t->copied);
  assert_int_equal(count(f, "X", "kernels", NULL, "line", NULL), t->kernels);
  assert_int_equal(count(f, "X", "prefetches", NULL, "bytes", NULL), t->prefetches);
  assert_int_equal(count(f, "X", "fault service", NULL, "faults", &faults), c->fault_batches);
  assert_true(faults >= c->gpu_faults);
  assert_int_equal(count(f, "i", "faults", NULL, "offset", NULL), c->cpu_faults);
  assert_int_equal(count(f, "X", "evictions", NULL, "bytes", NULL), c->evictions);
  assert_int_equal(count(f, "i", "decisions", "thrashing", "offset", NULL), c->thrashing_pages);
  assert_int_equal(count(f, "i", "decisions", "throttled", "offset", NULL), c->throttles);
  assert_int_equal(count(f, "i", "decisions", "remote map", "offset", NULL), c->remote_maps);
  for (unsigned n = 0; n < m->places.nnodes; n++) {
    char name[64];
    if (m->places.gpu[n] < 0) continue;
    snprintf(name, sizeof name, "resident %s", m->places.node[n]);
    resident += last_count(f, name);
    snprintf(name, sizeof name, "capacity %s", m->places.node[n]);
    assert_int_equal(last_count(f, name), r->node_capacity[n]);
  }
  assert_int_equal(resident, r->resident_gpu_bytes);
  check_sections(f, m->sections.n);
}

/* -- runs -- */

static void check_run(const char *trace, const char *machine, uint64_t gpu_memory) {
  char path[64];
  temporary(path, ".json");
  struct uvm_machine *mc;
  struct uvm_places places;
  assert_int_equal(uvm_machine_open(machine, "measured", &mc, NULL), 0);
  uvm_places_init(&places, &mc->topology);
  uvm_machine_close(mc);
  struct uvm_metrics m;
  struct uvm_timeline *t;
  struct tally tally = {0};
  struct uvm_session_result r;
  struct uvm_error e = {0};
  uvm_metrics_init(&m, &places);
  assert_int_equal(uvm_timeline_open(path, &places, &t, &e), 0);
  struct uvm_observer observers[] = {{&m, uvm_metrics_event}, {t, uvm_timeline_event}, {&tally, tally_event}};
  struct uvm_session_config c = {.trace = trace, .machine = machine, .gpu_memory = gpu_memory, .observers = observers, .nobservers = 3};
  int rc = uvm_session_run(&c, &r, &e);
  if (rc) fail_msg("%s", e.text);
  assert_int_equal(uvm_timeline_commit(t, trace, &r, &e), 0);
  struct file f = read_file(path);
  check_sums(&f, &m, &tally, &r);
  assert_true(!gpu_memory || m.total.evictions);
  assert_string_equal(text(get(f.document, "otherData"), "trace"), trace);
  free_file(&f);
  uvm_metrics_free(&m);
  unlink(path);
}

static void test_samples(void **state) {
  (void)state;
  check_run("traces/samples/vecadd.uvt", "nvidia-h200", 0);
  check_run("traces/samples/pingpong.uvt", "nvidia-h200", 0);
  check_run("traces/samples/first_touch.uvt", "amd-mi250x", 0);
}

static void test_recordings(void **state) {
  (void)state;
  check_run("traces/recorded/h200/epochs.uvt.gz", "nvidia-h200", 0);
  check_run("traces/recorded/h200/cpufan.uvt.gz", "nvidia-h200", 0);
}

/* Two GPUs, copies of pages, streams side by side, threads of the CPU, memcpy, names that JSON must escape, frees. */
static void test_everything_at_once(void **state) {
  (void)state;
  char path[64];
  const char *trace = "uvmtrace 1\nprocessor cpu\nprocessor gpu0\nprocessor gpu1\n"
                      "alloc a 8M managed \"a\\b\"\nalloc b 6M managed b\nalloc d 2M device d\n"
                      "begin out\"er\nw cpu a 0 8M\nadvise set_read_mostly cpu a 0 4M\n"
                      "begin in\\ner\nkernel gpu0 lanes=256 stream=1 name=\"k\"\nr a 0 8M split=cyclic width=64\ndone\n"
                      "kernel gpu0 lanes=32 stream=2\nrw b 0 6M split=blocked width=64\ndone\n"
                      "kernel gpu1 lanes=64 stream=3\nr a 0 4M split=cyclic width=64\nw b 0 1M split=cyclic width=64\ndone\nsync\nend\n"
                      "kernel cpu lanes=16\nrw a 0 8M split=blocked width=64\ndone\nsync\nend\n"
                      "memcpy d 0 a 0 2M\nprefetch gpu1 a 0 8M\nprefetch cpu b 0 2M stream=4\nsync\nfree b\n"
                      "alloc b 4M managed again\nkernel gpu0 lanes=32\nw b 0 4M split=cyclic width=64\ndone\nsync\n";
  spew(temporary(path, ".uvt"), trace, strlen(trace));
  check_run(path, "nvidia-h200x2", 0);
  check_run(path, "nvidia-h200x2", 4 << 20);
  check_run(path, "amd-mi250x", 0);
  unlink(path);
}

/* -- rows -- */

/* Slices that overlap go to rows of their own, and back to the first when they fit, also between two told before. */
static void test_rows(void **state) {
  (void)state;
  static const struct {
    uvm_ns begin, dur;
    const char *row;
  } cases[] = {{10, 10, "work"}, {15, 10, "work 2"}, {20, 10, "work"},  {40, 10, "work"},
               {30, 10, "work"}, {29, 2, "work 2"},  {28, 14, "work 3"}};
  char path[64];
  temporary(path, ".json");
  struct uvm_tracks *t;
  struct uvm_error e;
  struct uvm_track_arg none = {0};
  assert_int_equal(uvm_tracks_open(path, &t, &e), 0);
  unsigned work = uvm_tracks_add(t, uvm_tracks_process(t, "p"), "work");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) uvm_tracks_slice(t, work, cases[i].begin, cases[i].dur, cases[i].row, &none);
  assert_int_equal(uvm_tracks_commit(t, &none, &e), 0);
  struct file f = read_file(path);
  assert_int_equal(f.slices.n, sizeof cases / sizeof *cases);
  const cJSON *x;
  cJSON_ArrayForEach(x, get(f.document, "traceEvents")) if (is(x, "X")) assert_string_equal(text(x, "name"), f.rows[number(x, "tid")].name);
  free_file(&f);
  unlink(path);
}

/* 2^53 ns and a fraction of a microsecond are exact. */
static void test_times(void **state) {
  (void)state;
  char path[64];
  temporary(path, ".json");
  struct uvm_tracks *t;
  struct uvm_error e;
  assert_int_equal(uvm_tracks_open(path, &t, &e), 0);
  uvm_tracks_instant(t, uvm_tracks_add(t, uvm_tracks_process(t, "p"), "x"), 9007199254740987, "i", &(struct uvm_track_arg){0});
  assert_int_equal(uvm_tracks_commit(t, &(struct uvm_track_arg){0}, &e), 0);
  struct blob json = slurp(path);
  assert_non_null(strstr((const char *)json.v, "\"ts\":9007199254740.987,"));
  free(json.v);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples), cmocka_unit_test(test_recordings),
                                     cmocka_unit_test(test_everything_at_once), cmocka_unit_test(test_rows), cmocka_unit_test(test_times)};
  return UVM_RUN(tests);
}
