/* The machine-readable report: its keys and their order are a contract, written out here as the description has them. */
#include "report/json.h"
#include "report/summary.h"
#include "tests/unit/files.h"
#include "tests/unit/report.h"

static const char *const counters[] = {"accesses",         "gpu_faults",          "throttled_faults", "fault_batches",   "cpu_faults",
                                       "h2d_bytes",        "d2h_bytes",           "d2d_bytes",        "h2d_copies",      "d2h_copies",
                                       "prefetched_bytes", "prefetch_used_bytes", "duplicated_bytes", "revocations",     "evictions",
                                       "evicted_bytes",    "remote_bytes",        "remote_maps",      "thrashing_pages", "throttles",
                                       "fault_stall_ns",   "cpu_stall_ns",        "link_wait_ns",     "peak_gpu_bytes"};
enum { COUNTERS = sizeof counters / sizeof *counters };

static cJSON *report(double wall, bool interrupted) {
  char path[64];
  struct uvm_places places = test_places();
  struct uvm_metrics m;
  struct uvm_error e;
  struct uvm_alloc a = {.id = "x", .label = "label", .kind = UVM_MANAGED, .bytes = (1ull << 53) + 1};
  struct uvm_session_result r = {.machine = "m",
                                 .driver = "d",
                                 .policy = "p",
                                 .engine = "e",
                                 .sim_ns = (1ull << 62) + 1,
                                 .accesses = 3,
                                 .peak_gpu_bytes = 77,
                                 .link_waits = {{"eviction", "remote access", 12}},
                                 .nlink_waits = 1,
                                 .interrupted = interrupted};
  uvm_metrics_init(&m, &places);
  uvm_metrics_event(&m, &(struct uvm_event){.kind = UVM_E_ALLOC, .has_alloc = true, .allocation = &a});
  uvm_metrics_event(&m, &(struct uvm_event){.kind = UVM_E_SECTION_BEGIN, .name = "s", .value = 2, .t = 5});
  uvm_metrics_event(&m, &(struct uvm_event){.kind = UVM_E_SECTION, .name = "s", .value = 2, .t = 5, .dur = 9});
  uvm_metrics_event(&m, &(struct uvm_event){.kind = UVM_E_SECTION_BEGIN, .name = "open", .t = 20});
  temporary(path, ".json");
  assert_int_equal(uvm_json_report(&(struct uvm_summary){.trace = "t", .run = &r, .metrics = &m, .wall_seconds = wall}, path, &e), 0);
  struct blob file = slurp(path);
  const char *text = (const char *)file.v;
  unlink(path);
  uvm_metrics_free(&m);
  assert_non_null(strstr(text, "4611686018427387905")); /* sim_ns, and below: beyond a double's 53 bits */
  assert_non_null(strstr(text, "9007199254740993"));
  cJSON *o = cJSON_Parse(text);
  free(file.v);
  assert_non_null(o);
  return o;
}

static const cJSON *keys(const cJSON *at, const char *const *names, size_t n) {
  for (size_t i = 0; i < n; i++, at = at->next) {
    assert_non_null(at);
    assert_string_equal(at->string, names[i]);
  }
  return at;
}

static void test_keys_in_order(void **state) {
  (void)state;
  static const char *const top[] = {"schema", "machine", "driver",     "policy",   "engine",
                                    "trace",  "total",   "processors", "sections", "allocations", "link_waits"};
  static const char *const section[] = {"name", "iteration", "ns"}, *const allocation[] = {"id", "number", "label", "kind", "bytes"};
  cJSON *o = report(-1, false);
  assert_null(keys(o->child, top, 11));
  const cJSON *total = cJSON_GetObjectItem(o, "total")->child;
  assert_string_equal(total->string, "sim_ns");
  assert_null(keys(total->next, counters, COUNTERS));
  assert_null(keys(keys(cJSON_GetObjectItem(o, "sections")->child->child, section, 3), counters, COUNTERS));
  const cJSON *procs = keys(keys(cJSON_GetObjectItem(o, "allocations")->child->child, allocation, 5), counters, COUNTERS);
  assert_string_equal(procs->string, "processors");
  assert_string_equal(cJSON_GetObjectItem(o, "processors")->child->child->string, "name");
  cJSON_Delete(o);
}

static void test_values(void **state) {
  (void)state;
  cJSON *o = report(-1, false), *total = cJSON_GetObjectItem(o, "total"), *sections = cJSON_GetObjectItem(o, "sections");
  assert_int_equal(cJSON_GetObjectItem(o, "schema")->valueint, 1);
  assert_int_equal(cJSON_GetObjectItem(total, "accesses")->valueint, 3);
  assert_int_equal(cJSON_GetObjectItem(total, "peak_gpu_bytes")->valueint, 77);
  assert_int_equal(cJSON_GetArraySize(sections), 2);
  assert_int_equal(cJSON_GetObjectItem(cJSON_GetArrayItem(sections, 0), "ns")->valueint, 9);
  assert_int_equal(cJSON_GetObjectItem(cJSON_GetArrayItem(sections, 0), "iteration")->valueint, 2);
  assert_true(cJSON_IsNull(cJSON_GetObjectItem(cJSON_GetArrayItem(sections, 1), "ns"))); /* never left */
  const cJSON *wait = cJSON_GetObjectItem(o, "link_waits")->child;
  assert_string_equal(cJSON_GetObjectItem(wait, "waiter")->valuestring, "eviction");
  assert_string_equal(cJSON_GetObjectItem(wait, "holder")->valuestring, "remote access");
  assert_int_equal(cJSON_GetObjectItem(wait, "ns")->valueint, 12);
  cJSON_Delete(o);
}

/* The wall clock stands under "host" and nowhere else; a run that was stopped says so. */
static void test_host_and_partial(void **state) {
  (void)state;
  cJSON *o = report(1.5, true);
  assert_true(cJSON_GetObjectItem(cJSON_GetObjectItem(o, "host"), "wall_ns")->valuedouble == 1.5e9);
  assert_true(cJSON_IsTrue(cJSON_GetObjectItem(o, "partial")));
  cJSON_Delete(o);
  o = report(-1, false);
  assert_null(cJSON_GetObjectItem(o, "host"));
  assert_null(cJSON_GetObjectItem(o, "partial"));
  cJSON_Delete(o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_keys_in_order), cmocka_unit_test(test_values),
                                     cmocka_unit_test(test_host_and_partial)};
  return UVM_RUN(tests);
}
