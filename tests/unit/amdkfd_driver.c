/* The amdkfd driver's faults: the worked vectors of the specification's 2.4, with the order of its events (2.10), quirks Q6, Q7, Q8
 * and Q10 both ways, the filter in front of it (2.3). */
#include "tests/unit/amdkfd_fixture.h"

/* -- 2.4 -- */

/* The rows from "first VRAM migration" to "BO freed", in order. Two GPUs have access, so an unmap prints two lines. */
static void test_vectors(void **state) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, NULL, NULL);
  (void)state;
  gpu_fault(&w, GPU0, a, 0x1234);
  assert_vram(&w, a, 0x1234, GPU0, 512);
  assert_int_equal(used(&w, HBM0), 128 * MIB);
  assert_true(maps(&w, GPU0, a, 0x1200) && maps(&w, GPU0, a, 0x13ff) && !maps(&w, GPU0, a, 0x1400) && !maps(&w, GPU0, a, 0x11ff));
  assert_smi("7 @1234(1) W\n5 @1200(200) 0->1 ffffffff:ffffffff 1\n6 @1200(200) 0->1 1 0\n8 @1234(1) M\n");
  uvm_ns mapped = *uvm__kfd_quiet(range(&w, a, 0x1234), 0x1234) - 2 * MS;

  w.now = mapped + 3 * MS / 2;
  size_t replays = w.replays.n;
  gpu_fault(&w, GPU0, a, 0x1500);
  assert_vram(&w, a, 0x1234, GPU0, 512);
  assert_int_equal(w.replays.n, replays + 1);
  assert_smi("");

  w.now = mapped + 5 * MS / 2;
  gpu_fault(&w, GPU0, a, 0x1500);
  assert_vram(&w, a, 0x1234, GPU0, 1024);
  assert_true(maps(&w, GPU0, a, 0x1400) && maps(&w, GPU0, a, 0x15ff));
  assert_smi(
      "7 @1500(1) W\n5 @1400(200) 0->1 ffffffff:ffffffff 1\nb @1400(200) 1 1\nb @1400(200) 2 1\n6 @1400(200) 0->1 1 0\n8 @1500(1) M\n");

  cpu_touch(&w, a, 0x1234);
  assert_vram(&w, a, 0x1234, GPU0, 512);
  assert_int_equal(used(&w, HBM0), 128 * MIB);
  assert_true(maps(&w, CPU, a, 0x1200) && maps(&w, CPU, a, 0x13ff) && !maps(&w, GPU0, a, 0x1234));
  assert_smi("5 @1200(200) 1->0 ffffffff:ffffffff 2\nb @1200(200) 1 1\nb @1200(200) 2 1\n6 @1200(200) 1->0 2 0\n");
  cpu_touch(&w, a, 0x1500);
  assert_vram(&w, a, 0x1234, 0, 0);
  assert_int_equal(used(&w, HBM0), 0);
  assert_int_equal(w.resumed, 2);
  close_world(&w);
}

/* Pages that the CPU wrote are copied, the holes of the window are cleared VRAM. */
static void test_copies_what_exists(void **state) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, NULL, NULL);
  (void)state;
  cpu_touch(&w, a, 0x1234);
  cpu_touch(&w, a, 0x1235);
  gpu_fault(&w, GPU0, a, 0x1234);
  assert_vram(&w, a, 0x1234, GPU0, 512);
  assert_int_equal(world_count(&w, UVM_E_TRANSFER), 1);
  for (size_t i = 0; i < w.events.n; i++)
    if (w.events.v[i].e.kind == UVM_E_TRANSFER) assert_int_equal(w.events.v[i].e.bytes, 2 * UVM_PAGE);
  assert_false(maps(&w, CPU, a, 0x1234));
  close_world(&w);
}

/* A granularity of 2^18 moves the whole range, one of 2^4 sixteen pages. */
static void test_granularity(void **state) {
  static const struct {
    const char *g;
    uint64_t pages;
  } rows[] = {{"18", 0x8000}, {"4", 16}, {"0", 1}};
  (void)state;
  for (size_t i = 0; i < 3; i++) {
    struct world w;
    struct uvm_alloc *a = vector_world(&w, "granularity", rows[i].g);
    gpu_fault(&w, GPU0, a, 0x1234);
    assert_vram(&w, a, 0x1234, GPU0, rows[i].pages);
    close_world(&w);
  }
}

static void test_preferred_elsewhere(void **state) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, NULL, NULL);
  (void)state;
  advise(&w, a, 0x1000, 0x8fff, UVM_ADV_SET_PREFERRED, HBM1, CPU);
  gpu_fault(&w, GPU0, a, 0x1234);
  assert_vram(&w, a, 0x1234, GPU0, 512);
  assert_smi("7 @1234(1) W\n5 @1200(200) 0->1 ffffffff:2 1\n6 @1200(200) 0->1 1 0\n8 @1234(1) M\n");
  close_world(&w);
}

/* In place: the window's holes get system memory, which GPU and CPU map. */
static void test_in_place(void **state) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, NULL, NULL);
  (void)state;
  advise(&w, a, 0x1000, 0x8fff, UVM_ADV_SET_ACCESSED_BY, UVM_NONE, GPU0);
  gpu_fault(&w, GPU0, a, 0x1234);
  assert_vram(&w, a, 0x1234, 0, 0);
  assert_int_equal(used(&w, HBM0), 0);
  assert_true(maps(&w, GPU0, a, 0x1200) && maps(&w, CPU, a, 0x13ff));
  assert_int_equal(world_count(&w, UVM_E_REMOTE_MAP), 512);
  assert_smi("7 @1234(1) W\n8 @1234(1) U\n");
  close_world(&w);
}

/* Unregistered memory: each fault makes its range; a neighbour limits it. */
static void test_unregistered(void **state) {
  struct world w;
  open_world(&w, 8 * GIB);
  world_option(&w, "registered", "0");
  start(&w);
  struct uvm_alloc *a = alloc_pages(&w, 0x1000, 0x4000), *b = alloc_pages(&w, 0x5210, 0x5333);
  (void)state;
  gpu_fault(&w, GPU0, a, 0x1234);
  assert_int_equal(range(&w, a, 0x1234)->pages.first, 0x1200);
  assert_int_equal(range(&w, a, 0x1234)->pages.last, 0x13ff);
  assert_null(range(&w, a, 0x1400));
  assert_int_equal(used(&w, HBM0), 2 * MIB);
  gpu_fault(&w, GPU0, b, 0x5234);
  assert_int_equal(range(&w, b, 0x5234)->pages.first, 0x5210);
  assert_int_equal(range(&w, b, 0x5234)->pages.last, 0x5332);
  prefetch(&w, a, 0x2000, 0x2220, DRAM); /* sets an attribute, which registers */
  prefetch(&w, a, 0x2300, 0x2400, DRAM);
  gpu_fault(&w, GPU0, a, 0x2234);
  assert_int_equal(range(&w, a, 0x2234)->pages.first, 0x2221);
  assert_int_equal(range(&w, a, 0x2234)->pages.last, 0x22ff);
  close_world(&w);
}

/* -- quirks -- */

/* No room for the range: device memory takes all of VRAM, and it cannot leave. */
static void failed_migration(const char *says_m, const char *end) {
  struct world w;
  struct uvm_alloc *device;
  struct uvm_error e;
  open_world(&w, 64 * MIB);
  world_option(&w, "ignored_failure_says_m", says_m);
  start(&w);
  assert_int_equal(uvm_space_alloc(w.core.space, "d", "d", UVM_NEVER, 63 * MIB, UVM_DEVICE, HBM0, &device, &e), 0);
  struct uvm_alloc *a = alloc_pages(&w, 0x100000, 0x100200);
  gpu_fault(&w, GPU0, a, 0x100034);
  assert_vram(&w, a, 0x100034, 0, 0);
  assert_true(maps(&w, GPU0, a, 0x100034));
  assert_int_equal(used(&w, HBM0), 63 * MIB);
  assert_smi(end);
  close_world(&w);
}

static void test_q6_ignored_failure(void **state) {
  (void)state;
  failed_migration("1", "7 @100034(1) W\n8 @100034(1) M\n");
  failed_migration("0", "7 @100034(1) W\n8 @100034(1) U\n");
}

static char raw[KFD_SMI_MAX];
static size_t raw_bytes;
static void hear_raw(void *ctx, const char *line, size_t bytes) {
  (void)ctx;
  memcpy(raw, line, bytes);
  raw_bytes = bytes;
}

static void restore(const char *nul, const char *line, size_t bytes) {
  struct world w;
  vector_world(&w, "restore_nul", nul);
  uvm_smi_listen(&w.core, hear_raw, NULL);
  uvm__kfd_smi(&w.core, (struct kfd_smi){.id = KFD_QUEUE_RESTORE, .t = 7, .to = 0xc4a1});
  assert_int_equal(raw_bytes, bytes);
  assert_memory_equal(raw, line, bytes);
  close_world(&w);
}

static void test_q7_restore_nul(void **state) {
  (void)state;
  restore("1", "a 7 -1 c4a1 \0\n", sizeof "a 7 -1 c4a1 \0\n" - 1);
  restore("0", "a 7 -1 c4a1 \n", sizeof "a 7 -1 c4a1 \n" - 1);
}

/* The other granule 1.5 ms after the map: dropped for the range, served for the granule. The same granule is dropped anyway. */
static void dedupe(const char *per_range, uint64_t pages) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, "dedupe_per_range", per_range);
  gpu_fault(&w, GPU0, a, 0x1234);
  w.now += 3 * MS / 2;
  gpu_fault(&w, GPU0, a, 0x1235);
  assert_int_equal(world_count(&w, UVM_E_GPU_FAULT), 1);
  gpu_fault(&w, GPU0, a, 0x1500);
  assert_vram(&w, a, 0x1234, GPU0, pages);
  close_world(&w);
}

static void test_q8_dedupe(void **state) {
  (void)state;
  dedupe("1", 512);
  dedupe("0", 1024);
}

static void test_q10_whole_range(void **state) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, "whole_range_vram", "0");
  (void)state;
  gpu_fault(&w, GPU0, a, 0x1234);
  assert_int_equal(used(&w, HBM0), 2 * MIB);
  w.now += 3 * MS;
  gpu_fault(&w, GPU0, a, 0x1500);
  assert_int_equal(used(&w, HBM0), 4 * MIB);
  cpu_touch(&w, a, 0x1234);
  assert_int_equal(used(&w, HBM0), 2 * MIB);
  assert_vram(&w, a, 0x1234, GPU0, 512);
  prefetch(&w, a, 0x1000, 0x8fff, HBM0);
  assert_int_equal(used(&w, HBM0), 128 * MIB);
  assert_vram(&w, a, 0x1234, GPU0, 0x8000);
  close_world(&w);
}

/* -- the filter in front (2.3): the same page within 5000 ticks, here of 10 ns -- */

static void test_filter(void **state) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, NULL, NULL);
  (void)state;
  w.armed[GPU0] = false; /* all are in the ring before the handler looks */
  for (int i = 0; i < 3; i++) ring(&w, GPU0, a, uvm__kfd_offset(a, 0x1234), UVM_A_READ), w.now += 24999;
  w.now = 50000;
  ring(&w, GPU0, a, uvm__kfd_offset(a, 0x1234), UVM_A_WRITE);
  w.core.driver->interrupt(&w.core, GPU0, w.now);
  world_run(&w);
  assert_int_equal(world_count(&w, UVM_E_GPU_FAULT), 1);
  for (size_t i = 0; i < w.events.n; i++)
    if (w.events.v[i].e.kind == UVM_E_GPU_BATCH)
      assert_true(w.events.v[i].e.raw == 3 && w.events.v[i].e.distinct == 1 && w.events.v[i].e.access == UVM_A_READ);
  assert_true(w.armed[GPU0]);
  close_world(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors),
                                     cmocka_unit_test(test_copies_what_exists),
                                     cmocka_unit_test(test_granularity),
                                     cmocka_unit_test(test_preferred_elsewhere),
                                     cmocka_unit_test(test_in_place),
                                     cmocka_unit_test(test_unregistered),
                                     cmocka_unit_test(test_q6_ignored_failure),
                                     cmocka_unit_test(test_q7_restore_nul),
                                     cmocka_unit_test(test_q8_dedupe),
                                     cmocka_unit_test(test_q10_whole_range),
                                     cmocka_unit_test(test_filter)};
  return UVM_RUN(tests);
}
