/* Access counters: driver specification 1.10. */
#include "tests/unit/nvidia_fixture.h"

static struct uvm_alloc *mem;

/* gpu0 maps remote pages of the CPU's memory: 32 pages touched by the CPU, the first mapped for the GPU. */
static struct nv_options *open_world(int hooks, uint32_t version, uint64_t bytes) {
  struct nv_options *o = begin_version(PCIE, 64 * MIB, hooks, version);
  o->access_counters = true;
  mem = managed(bytes);
  for (uint64_t p = 0; p < 40; p++) cpu_touch(mem, p, UVM_A_WRITE);
  mem->ranges.v[0]->info.accessed_by = 1 << GPU0;
  gpu_touch(GPU0, mem, 0, UVM_A_READ);
  assert_mapped(mem, 0, "aw-");
  forget();
  return o;
}

static void notify(uint64_t page, uint32_t touched, uint64_t count) {
  UVM_PUSH(&world->notes) = (struct uvm_counter_note){mem, page * UVM_PAGE, touched, count};
  uvm_driver_nvidia.counters(&world->core, GPU0, world->now);
  settle();
}

/* The touched sub-regions of 64 KiB come, as far as they live where the notified page does; cause access counters. */
static void touched_sub_regions_come(void **state) {
  (void)state;
  open_world(0, 580, 2 * MIB);
  gpu_touch(GPU1, mem, 17, UVM_A_WRITE); /* elsewhere: stays */
  forget();
  notify(0, 1 << 0 | 1 << 1, 256);
  for (uint64_t p = 0; p < 40; p++) assert_int_equal(nodes_of(mem, p), p == 17 ? 1 << HBM1 : p < 32 ? 1 << HBM0 : 1 << DRAM);
  assert_int_equal(event(UVM_E_TRANSFER, 0)->cause, UVM_C_COUNTERS);
  assert_int_equal(event(UVM_E_TRANSFER, 0)->bytes, 17 * UVM_PAGE);
  assert_int_equal(world->cleared.n, 1);
  assert_int_equal(world->cleared.v[0].count, 256);
  assert_int_equal(count_events(UVM_E_GPU_FAULT), 0);
  end();
}

/* A block below 2 MiB is not one piece: only the notified page. */
static void only_the_page_of_a_small_block(void **state) {
  (void)state;
  open_world(0, 580, MIB);
  notify(3, 1 << 0, 256);
  assert_int_equal(resident_pages(mem, HBM0), 1);
  assert_int_equal(nodes_of(mem, 3), 1 << HBM0);
  end();
}

static void rows_that_migrate_nothing(void **state) {
  (void)state;
  struct nv_options *o = open_world(0, 580, 2 * MIB);
  notify(0, 1, 255); /* below the threshold: re-armed with it */
  assert_int_equal(resident_pages(mem, HBM0), 0);
  assert_int_equal(world->cleared.v[0].count, 256);
  o->access_counters = false; /* off by default */
  notify(0, 1, 256);
  assert_int_equal(resident_pages(mem, HBM0), 0);
  assert_int_equal(world->cleared.n, 1);
  o->access_counters = true;
  mem->ranges.v[0]->info.preferred = DRAM; /* rule 9 */
  notify(0, 1, 256);
  assert_int_equal(resident_pages(mem, HBM0), 0);
  assert_int_equal(world->cleared.n, 2);
  end();
}

/* The GPU maps nothing in the block: skipped. */
static void without_a_mapping_nothing_comes(void **state) {
  (void)state;
  open_world(0, 580, 4 * MIB);
  mem->ranges.v[0]->info.accessed_by = 0;
  cpu_touch(mem, 512, UVM_A_WRITE);
  notify(512, 1, 256);
  assert_int_equal(nodes_of(mem, 512), 1 << DRAM);
  end();
}

/* Q9: inert at 595 on hosts with 4 KiB pages, unless corrected. */
static void inert_from_590(void **state) {
  (void)state;
  static const struct {
    uint32_t version, quirk;
    bool comes;
  } rows[] = {
      {580, NV_AS_SHIPPED, true},
      {589, NV_AS_SHIPPED, true},
      {590, NV_AS_SHIPPED, false},
      {595, NV_AS_SHIPPED, false},
      {595, 0, true},
      {580, 1, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    open_world(0, rows[i].version, 2 * MIB)->counters_inert = rows[i].quirk;
    notify(0, 1, 256);
    assert_int_equal(resident_pages(mem, HBM0), rows[i].comes ? 16 : 0);
    assert_int_equal(world->cleared.n, rows[i].comes); /* not cleared: it does not fire again */
    end();
  }
}

/* Throttled pages are skipped; the prefetcher runs as for faults. */
static void hints_and_prefetch(void **state) {
  (void)state;
  open_world(WITH_THRASH | WITH_PREFETCH, 580, 2 * MIB);
  script.prefetch_asked = 0;
  script.hint = (struct uvm_thrash){.hint = UVM_HINT_THROTTLE, .until = UVM_NEVER - 1};
  notify(0, 1, 256);
  assert_int_equal(resident_pages(mem, HBM0), 0);
  assert_int_equal(script.prefetch_asked, 0);
  script.hint = (struct uvm_thrash){0};
  script.more = uvm_mask_range(16, 32);
  notify(0, 1, 256);
  assert_int_equal(script.prefetch_asked, 1);
  assert_int_equal(resident_pages(mem, HBM0), 32);
  end();
}

/* A policy's counter hook chooses the pages and the next threshold. */
static void a_policy_chooses(void **state) {
  (void)state;
  open_world(WITH_COUNTER, 580, 2 * MIB);
  script.migrate = uvm_mask_range(30, 33);
  notify(0, 1, 256);
  assert_int_equal(resident_pages(mem, HBM0), 3);
  assert_int_equal(nodes_of(mem, 32), 1 << HBM0);
  assert_int_equal(world->cleared.v[0].count, 1000);
  end();
}

/* Sorted by address and served block by block; pages already here are dropped. */
static void notes_are_served_block_by_block(void **state) {
  (void)state;
  open_world(0, 580, 4 * MIB);
  cpu_touch(mem, 512, UVM_A_WRITE);
  gpu_touch(GPU0, mem, 512, UVM_A_READ);
  size_t plans = world->plans.n;
  UVM_PUSH(&world->notes) = (struct uvm_counter_note){mem, 512 * UVM_PAGE, 1, 256};
  UVM_PUSH(&world->notes) = (struct uvm_counter_note){mem, 0, 1, 256};
  notify(0, 2, 300);
  assert_int_equal(world->plans.n - plans, 2);
  assert_int_equal(resident_pages(mem, HBM0), 33);
  assert_int_equal(world->cleared.n, 3);
  notify(0, 1, 256);
  assert_int_equal(world->plans.n - plans, 2);
  end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(touched_sub_regions_come),
      cmocka_unit_test(only_the_page_of_a_small_block),
      cmocka_unit_test(rows_that_migrate_nothing),
      cmocka_unit_test(without_a_mapping_nothing_comes),
      cmocka_unit_test(inert_from_590),
      cmocka_unit_test(hints_and_prefetch),
      cmocka_unit_test(a_policy_chooses),
      cmocka_unit_test(notes_are_served_block_by_block),
  };
  return UVM_RUN(tests);
}
