/* What the time of sections went to. Expected values: the rules in causes.h, by hand; for recorded workloads what each was made to
 * measure. */
#include "report/causes.h"
#include "core/plan.h"
#include "report/spread.h"
#include "session.h"
#include "tests/unit/report.h"
#include "tests/unit/unit.h"

static struct uvm_causes causes;

static int setup(void **state) {
  (void)state;
  causes = (struct uvm_causes){0};
  return 0;
}

static int teardown(void **state) {
  (void)state;
  uvm_causes_free(&causes);
  return 0;
}

static void feed(struct uvm_event e) { uvm_causes_event(&causes, &e); }
static void span(enum uvm_event_kind kind, uvm_proc proc, uvm_ns begin, uvm_ns end) {
  feed((struct uvm_event){.kind = kind, .proc = proc, .t = begin, .dur = end - begin});
}
static void service(enum uvm_context context, uint64_t first_touched, uvm_ns begin, uvm_ns end) {
  feed((struct uvm_event){.kind = UVM_E_SERVICE, .value = context, .bytes = first_touched, .t = begin, .dur = end - begin});
}

/* The time of [begin, end) by cause, which must be all of it. */
static const uint64_t *split(uvm_ns begin, uvm_ns end) {
  static uint64_t ns[UVM_TIME_CAUSES];
  uint64_t sum = 0;
  memset(ns, 0, sizeof ns);
  uvm_causes_add(&causes, begin, end, ns);
  for (int i = 0; i < UVM_TIME_CAUSES; i++) sum += ns[i];
  assert_int_equal(sum, end - begin);
  return ns;
}

/* The host waits from 100 to 1000 for a kernel that faults once: 150 miss, 200 the driver begins, 300 to 340 the copy, 400 replay, 450
 * the access; the kernel ends at 900. */
static void test_a_fault_in_a_kernel(void **state) {
  (void)state;
  span(UVM_E_TRANSFER, GPU0, 300, 340);
  service(UVM_X_GPU_FAULT, 0, 250, 390);
  feed((struct uvm_event){.kind = UVM_E_GPU_BATCH, .proc = GPU0, .t = 160, .wait = 40, .dur = 240});
  span(UVM_E_STALL, GPU0, 150, 450);
  span(UVM_E_KERNEL, GPU0, 110, 900);
  span(UVM_E_WAIT, CPU, 100, 1000);
  uvm_causes_settle(&causes);
  const uint64_t *ns = split(0, 1100);
  assert_int_equal(ns[UVM_CAUSE_HOST], 100 + 100);
  assert_int_equal(ns[UVM_CAUSE_SYNC], 10 + 100);
  assert_int_equal(ns[UVM_CAUSE_KERNELS], 40 + 450);
  assert_int_equal(ns[UVM_CAUSE_WAKING], 50 + 50);
  assert_int_equal(ns[UVM_CAUSE_GPU_FAULTS], 200 - 40);
  assert_int_equal(ns[UVM_CAUSE_TRANSFERS], 40);
  assert_int_equal(split(310, 320)[UVM_CAUSE_TRANSFERS], 10);
}

/* A trap from 100 to 200 with 60 of service, 20 of it a copy; a first touch from 300 to 400, all service. */
static void test_cpu_faults(void **state) {
  (void)state;
  span(UVM_E_TRANSFER, CPU, 130, 150);
  service(UVM_X_CPU_FAULT, 0, 120, 180);
  span(UVM_E_STALL, CPU, 100, 200);
  service(UVM_X_CPU_FAULT, 4096, 300, 400);
  span(UVM_E_STALL, CPU, 300, 400);
  uvm_causes_settle(&causes);
  const uint64_t *ns = split(50, 450);
  assert_int_equal(ns[UVM_CAUSE_CPU_FAULTS], 80);
  assert_int_equal(ns[UVM_CAUSE_TRANSFERS], 20);
  assert_int_equal(ns[UVM_CAUSE_FIRST_TOUCHES], 100);
  assert_int_equal(ns[UVM_CAUSE_HOST], 200);
}

/* The host computes while a kernel runs and pages move: its time is its own, but for what the system and advice take of it. */
static void test_a_host_that_does_not_wait(void **state) {
  (void)state;
  span(UVM_E_KERNEL, GPU0, 0, 1000);
  span(UVM_E_TRANSFER, GPU0, 100, 900);
  span(UVM_E_FIRST_WRITES, CPU, 200, 230);
  service(UVM_X_ADVISE, 0, 300, 340);
  uvm_causes_settle(&causes);
  const uint64_t *ns = split(0, 1000);
  assert_int_equal(ns[UVM_CAUSE_HOST], 930);
  assert_int_equal(ns[UVM_CAUSE_FIRST_WRITES], 30);
  assert_int_equal(ns[UVM_CAUSE_ADVICE], 40);
}

/* What else waits are made of; a hold shows only where nothing else happens. */
static void test_other_work(void **state) {
  (void)state;
  span(UVM_E_WAIT, CPU, 0, 1000);
  service(UVM_X_PREFETCH, 0, 0, 100);
  span(UVM_E_PREFETCH, GPU0, 0, 150);
  service(UVM_X_EVICT, 0, 200, 300);
  service(UVM_X_COUNTER, 0, 300, 400);
  span(UVM_E_COPY, GPU0, 400, 470);
  span(UVM_E_THROTTLE, GPU0, 450, 600);
  uvm_causes_settle(&causes);
  const uint64_t *ns = split(0, 1000);
  assert_int_equal(ns[UVM_CAUSE_PREFETCH_CALLS], 150);
  assert_int_equal(ns[UVM_CAUSE_EVICTIONS], 100);
  assert_int_equal(ns[UVM_CAUSE_COUNTERS], 100);
  assert_int_equal(ns[UVM_CAUSE_MEMCPY], 70);
  assert_int_equal(ns[UVM_CAUSE_THROTTLING], 130);
  assert_int_equal(ns[UVM_CAUSE_SYNC], 1000 - 550);
}

static void test_nothing_happened(void **state) {
  (void)state;
  uvm_causes_settle(&causes);
  assert_int_equal(split(7, 19)[UVM_CAUSE_HOST], 12);
}

/* -- recorded workloads -- */

/* The section's row of the table, after a replay. */
static struct uvm_spread replay(const char *workload, const char *section) {
  struct uvm_places places = test_places();
  struct uvm_rows rows;
  struct uvm_spreads s = {0};
  struct uvm_session_result result;
  struct uvm_error e;
  uvm_rows_init(&rows, &places);
  struct uvm_observer observers[] = {{&rows, uvm_rows_event}, {&causes, uvm_causes_event}};
  char *trace = uvm_format("traces/recorded/h200/%s.uvt.gz", workload);
  assert_int_equal(uvm_session_run(&(struct uvm_session_config){.trace = trace, .observers = observers, .nobservers = 2}, &result, &e), 0);
  assert_int_equal(uvm_spreads_read(&s, "traces/recorded/h200/sections.csv", workload, &e), 0);
  uvm_causes_settle(&causes);
  uvm_spreads_predict(&s, &rows, &causes);
  struct uvm_spread found = {0};
  for (size_t i = 0; i < s.v.n; i++)
    if (!strcmp(s.v.v[i].section, section)) found = s.v.v[i];
  assert_true(found.predicted);
  uvm_mem_free(trace);
  uvm_rows_free(&rows), uvm_spreads_free(&s);
  return found;
}

static void test_recorded_workloads(void **state) {
  static const struct {
    const char *workload, *section;
    enum uvm_time_cause cause;
  } cases[] = {{"chase", "rand4K:67108864", UVM_CAUSE_GPU_FAULTS},
               {"chase", "stride2M:536870912", UVM_CAUSE_GPU_FAULTS},
               {"prefetch", "h2d:1073741824", UVM_CAUSE_TRANSFERS},
               {"cpufan", "cpu_touch_stride2M:268435456", UVM_CAUSE_CPU_FAULTS},
               {"first_touch", "cpu_first_touch:536870912", UVM_CAUSE_FIRST_TOUCHES}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct uvm_spread s = replay(cases[i].workload, cases[i].section);
    uint64_t sum = 0;
    for (int k = 0; k < UVM_TIME_CAUSES; k++) sum += s.ns[k];
    assert_int_equal(sum, (uint64_t)(s.seconds * 1e9 + 0.5));
    assert_string_equal(uvm_time_cause_names[s.largest], uvm_time_cause_names[cases[i].cause]);
    teardown(state);
  }
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {T(test_a_fault_in_a_kernel), T(test_cpu_faults),       T(test_a_host_that_does_not_wait),
                                     T(test_other_work),          T(test_nothing_happened), T(test_recorded_workloads)};
  return UVM_RUN(tests);
}
