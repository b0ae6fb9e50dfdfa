/* Events to counters. Expected values: sums of the events each test feeds; meanings from the list of JSON keys. */
#include "unit.h"
#include "report.h"
#include "report/metrics.h"

static struct uvm_metrics m;

static int setup(void **state) {
  (void)state;
  struct uvm_places p = test_places();
  uvm_metrics_init(&m, &p);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  uvm_metrics_free(&m);
  return 0;
}

static void feed(struct uvm_event e) { uvm_metrics_event(&m, &e); }
static void transfer(uvm_node src, uvm_node dst, uint64_t bytes, enum uvm_cause cause) {
  feed((struct uvm_event){.kind = UVM_E_TRANSFER, .src = src, .dst = dst, .bytes = bytes, .cause = cause, .has_alloc = true, .proc = GPU0});
}

static void test_transfers_by_direction(void **state) {
  (void)state;
  transfer(DRAM, HBM0, 4096, UVM_C_FAULT);
  transfer(DRAM, HBM1, 61440, UVM_C_PREFETCH);
  transfer(HBM0, DRAM, 8192, UVM_C_EVICTION);
  transfer(HBM0, HBM1, 12288, UVM_C_USER);
  assert_int_equal(m.total.h2d_bytes, 65536);
  assert_int_equal(m.total.h2d_copies, 2);
  assert_int_equal(m.total.d2h_bytes, 8192);
  assert_int_equal(m.total.d2h_copies, 1);
  assert_int_equal(m.total.d2d_bytes, 12288);
  assert_int_equal(m.total.prefetched_bytes, 61440);
  assert_int_equal(m.total.evicted_bytes, 8192);
}

static void test_transfers_by_processor(void **state) {
  (void)state;
  transfer(DRAM, HBM0, 4096, UVM_C_FAULT);
  transfer(HBM0, HBM1, 8192, UVM_C_USER);
  assert_int_equal(m.procs[CPU].bytes_out, 4096);
  assert_int_equal(m.procs[GPU0].bytes_in, 4096);
  assert_int_equal(m.procs[GPU0].bytes_out, 8192);
  assert_int_equal(m.procs[GPU1].bytes_in, 8192);
}

static void test_faults(void **state) {
  (void)state;
  feed((struct uvm_event){.kind = UVM_E_GPU_BATCH, .proc = GPU0});
  feed((struct uvm_event){.kind = UVM_E_GPU_FAULT, .proc = GPU0});
  feed((struct uvm_event){.kind = UVM_E_GPU_FAULT, .proc = GPU0, .spurious = true});   /* served by another: none of ours */
  feed((struct uvm_event){.kind = UVM_E_GPU_FAULT, .proc = GPU0, .hint = UVM_HINT_THROTTLE});
  feed((struct uvm_event){.kind = UVM_E_GPU_FAULT, .proc = GPU1, .hint = UVM_HINT_PIN});
  feed((struct uvm_event){.kind = UVM_E_CPU_FAULT, .proc = CPU});
  assert_int_equal(m.total.fault_batches, 1);
  assert_int_equal(m.total.gpu_faults, 3);
  assert_int_equal(m.total.throttled_faults, 1);
  assert_int_equal(m.total.cpu_faults, 1);
  assert_int_equal(m.procs[GPU0].faults, 2);
  assert_int_equal(m.procs[GPU0].throttled_faults, 1);
  assert_int_equal(m.procs[GPU1].faults, 1);
  assert_int_equal(m.procs[CPU].faults, 1);
}

static void test_pages_are_counted_in_masks(void **state) {
  (void)state;
  uvm_mask five = uvm_mask_range(3, 8);
  feed((struct uvm_event){.kind = UVM_E_REVOKE, .proc = CPU, .mask = &five});
  feed((struct uvm_event){.kind = UVM_E_DUPLICATE, .src = DRAM, .dst = HBM0, .mask = &five});
  feed((struct uvm_event){.kind = UVM_E_REVOKE, .proc = CPU, .bytes = 8192});
  assert_int_equal(m.total.revocations, 7);
  assert_int_equal(m.total.duplicated_bytes, 5 * 4096);
}

static void test_thrashing_remote_stalls(void **state) {
  (void)state;
  feed((struct uvm_event){.kind = UVM_E_THRASH});
  feed((struct uvm_event){.kind = UVM_E_THROTTLE, .proc = GPU1});
  feed((struct uvm_event){.kind = UVM_E_REMOTE_MAP, .proc = GPU0, .src = DRAM});
  feed((struct uvm_event){.kind = UVM_E_EVICT, .src = HBM0});
  feed((struct uvm_event){.kind = UVM_E_STALL, .proc = CPU, .dur = 70});
  feed((struct uvm_event){.kind = UVM_E_STALL, .proc = GPU1, .dur = 30});
  feed((struct uvm_event){.kind = UVM_E_ACCESS, .proc = GPU1, .access = UVM_A_WRITE, .value = 100, .bytes = 800});
  feed((struct uvm_event){.kind = UVM_E_ACCESS, .proc = GPU1, .access = UVM_A_READ, .value = 11});
  feed((struct uvm_event){.kind = UVM_E_ACCESS, .proc = CPU, .access = UVM_A_ATOMIC, .value = 1});
  assert_int_equal(m.total.thrashing_pages, 1);
  assert_int_equal(m.total.throttles, 1);
  assert_int_equal(m.total.remote_maps, 1);
  assert_int_equal(m.total.evictions, 1);
  assert_int_equal(m.total.cpu_stall_ns, 70);
  assert_int_equal(m.total.fault_stall_ns, 30);
  assert_int_equal(m.total.accesses, 112);
  assert_int_equal(m.total.remote_bytes, 800);
  assert_int_equal(m.procs[GPU1].writes, 100);
  assert_int_equal(m.procs[GPU1].reads, 11);
  assert_int_equal(m.procs[CPU].atomics, 1);
}

static void test_unknown_stays_unknown(void **state) {
  (void)state;
  struct uvm_counters sum = m.total;
  sum.cpu_faults = 2;
  uvm_counters_add(&sum, &sum);
  assert_true(sum.peak_gpu_bytes == UVM_UNKNOWN);
  assert_int_equal(sum.cpu_faults, 4);
}

static void test_allocations(void **state) {
  (void)state;
  struct uvm_alloc a = {.number = 1, .id = "x", .label = "weights", .kind = UVM_PINNED, .bytes = 123};
  feed((struct uvm_event){.kind = UVM_E_ALLOC, .has_alloc = true, .alloc = 1, .allocation = &a});
  feed((struct uvm_event){.kind = UVM_E_ACCESS, .proc = GPU0, .access = UVM_A_READ, .value = 9, .has_alloc = true, .alloc = 1});
  feed((struct uvm_event){.kind = UVM_E_STALL, .proc = GPU0, .dur = 5, .has_alloc = true, .alloc = 1});
  assert_int_equal(m.allocs.n, 2);
  assert_true(m.allocs.v[1].c.fault_stall_ns == UVM_UNKNOWN && m.allocs.v[1].procs[GPU0].stall_ns == UVM_UNKNOWN);
  assert_false(m.allocs.v[0].known);
  assert_string_equal(m.allocs.v[1].id, "x");
  assert_string_equal(m.allocs.v[1].label, "weights");
  assert_int_equal(m.allocs.v[1].kind, UVM_PINNED);
  assert_int_equal(m.allocs.v[1].bytes, 123);
  assert_int_equal(m.allocs.v[1].c.accesses, 9);
  assert_int_equal(m.allocs.v[1].procs[GPU0].reads, 9);
}

/* -- sections: an event belongs to every section open at its start -- */

static void begin(const char *name, uint64_t iteration, uvm_ns t) {
  feed((struct uvm_event){.kind = UVM_E_SECTION_BEGIN, .name = name, .value = iteration, .t = t});
}
static void end(const char *name, uint64_t iteration, uvm_ns t, uvm_ns until) {
  feed((struct uvm_event){.kind = UVM_E_SECTION, .name = name, .value = iteration, .t = t, .dur = until - t});
}
static void fault_at(uvm_ns t) { feed((struct uvm_event){.kind = UVM_E_CPU_FAULT, .t = t}); }

static void test_sections_nest(void **state) {
  (void)state;
  fault_at(5);
  begin("outer", 0, 10);
  fault_at(11);
  begin("inner", 0, 20);
  fault_at(21);
  end("inner", 0, 20, 30);
  fault_at(31);
  end("outer", 0, 10, 40);
  fault_at(41);
  assert_int_equal(m.total.cpu_faults, 5);
  assert_int_equal(m.sections.n, 2);
  assert_string_equal(m.sections.v[0].name, "outer");
  assert_int_equal(m.sections.v[0].c.cpu_faults, 3);
  assert_int_equal(m.sections.v[1].c.cpu_faults, 1);
  assert_int_equal(m.sections.v[1].end - m.sections.v[1].begin, 10);
}

/* A copy told after its section's end, or after the next one's begin, belongs to where it started. */
static void test_sections_late_news(void **state) {
  (void)state;
  begin("a", 0, 10);
  end("a", 0, 10, 20);
  fault_at(15);
  begin("a", 1, 30);
  fault_at(19);
  fault_at(25);
  fault_at(35);
  assert_int_equal(m.sections.v[0].c.cpu_faults, 2);
  assert_int_equal(m.sections.v[1].c.cpu_faults, 1);
  assert_int_equal(m.sections.v[1].iteration, 1);
}

static void test_section_end_is_open(void **state) {
  (void)state;
  begin("a", 0, 10);
  end("a", 0, 10, 20);
  begin("b", 0, 20);
  fault_at(20);
  assert_int_equal(m.sections.v[0].c.cpu_faults, 0);
  assert_int_equal(m.sections.v[1].c.cpu_faults, 1);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(test_transfers_by_direction),  T(test_transfers_by_processor), T(test_faults),      T(test_pages_are_counted_in_masks),
      T(test_thrashing_remote_stalls), T(test_unknown_stays_unknown),  T(test_allocations), T(test_sections_nest),
      T(test_sections_late_news),      T(test_section_end_is_open)};
  return UVM_RUN(tests);
}
