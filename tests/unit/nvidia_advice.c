/* Advice, explicit prefetch and memcpy: driver specification 1.12. */
#include "tests/unit/nvidia_fixture.h"

static struct uvm_alloc *mem;
static void open_world(enum link l, int hooks) {
  begin(l, 64 * MIB, hooks);
  mem = managed(8 * MIB);
}
static size_t bytes_moved(enum uvm_cause cause) {
  size_t n = 0;
  for (size_t i = 0; i < world->events.n; i++)
    if (world->events.v[i].e.kind == UVM_E_TRANSFER && world->events.v[i].e.cause == cause) n += world->events.v[i].e.bytes;
  return n;
}

/* -- ranges -- */

/* Advice splits at the ends of its part, and only where the value differs. */
static void ranges_split_where_the_value_differs(void **state) {
  (void)state;
  open_world(PCIE, 0);
  gpu_touch(GPU0, mem, 0, UVM_A_WRITE);
  advise(mem, 100, 100, UVM_ADV_SET_ACCESSED_BY, GPU0);
  assert_int_equal(mem->ranges.n, 3);
  assert_int_equal(mem->ranges.v[1]->offset, 100 * UVM_PAGE);
  assert_int_equal(mem->ranges.v[1]->info.accessed_by, 1 << GPU0);
  assert_int_equal(mem->ranges.v[2]->info.accessed_by, 0);
  assert_int_equal(block_of(mem, 0)->pages, 100);
  advise(mem, 120, 10, UVM_ADV_SET_ACCESSED_BY, GPU0); /* has it already */
  assert_int_equal(mem->ranges.n, 3);
  advise(mem, 150, 100, UVM_ADV_SET_ACCESSED_BY, GPU0); /* only [200, 250) has not */
  assert_int_equal(mem->ranges.n, 4);
  assert_int_equal(mem->ranges.v[2]->offset, 200 * UVM_PAGE);
  assert_int_equal(count_told(UVM_T_ADVISED), 2);
  assert_int_equal(count_events(UVM_E_ADVISE), 3);
  assert_int_equal(world->completed, 3);
  end();
}

/* A block that a plan holds is not cut under it. */
static void splitting_waits_for_the_block(void **state) {
  (void)state;
  open_world(PCIE, 0);
  raw(GPU0, mem, 0, UVM_A_WRITE, 0, 0);
  settle_until(2 * US);
  struct uvm_call call = {
      .alloc = mem, .offset = 4 * UVM_PAGE, .bytes = UVM_PAGE, .node = HBM0, .proc = GPU0, .advice = UVM_ADV_SET_PREFERRED};
  uvm_driver_nvidia.advise(&world->core, &call, 2 * US);
  assert_int_equal(mem->ranges.n, 1);
  settle();
  assert_int_equal(mem->ranges.n, 3);
  assert_int_equal(event(UVM_E_ADVISE, 0)->t, 1 * US + PLAN_NS);
  assert_mapped(mem, 0, "-a-");
  end();
}

static void coarse_grain_is_another_drivers(void **state) {
  (void)state;
  open_world(PCIE, 0);
  advise(mem, 0, 10, UVM_ADV_SET_COARSE_GRAIN, GPU0);
  assert_int_equal(mem->ranges.n, 1);
  assert_int_equal(world->completed, 1);
  end();
}

/* -- read-mostly -- */

static void read_mostly_copies_for_readers(void **state) {
  (void)state;
  open_world(PCIE, 0);
  cpu_touch(mem, 0, UVM_A_WRITE);
  advise(mem, 0, 2048, UVM_ADV_SET_READ_MOSTLY, UVM_NONE);
  assert_mapped(mem, 0, "r--"); /* the holder's mapping is reduced */
  gpu_touch(GPU0, mem, 0, UVM_A_READ);
  gpu_touch(GPU1, mem, 0, UVM_A_READ);
  assert_int_equal(nodes_of(mem, 0), 1 << DRAM | 1 << HBM0 | 1 << HBM1);
  assert_mapped(mem, 0, "rrr");
  assert_int_equal(count_events(UVM_E_DUPLICATE), 2);
  forget();
  gpu_touch(GPU0, mem, 0, UVM_A_WRITE); /* moves to the writer and drops the others */
  assert_int_equal(nodes_of(mem, 0), 1 << HBM0);
  assert_mapped(mem, 0, "-a-");
  assert_int_equal(count_events(UVM_E_TRANSFER), 0); /* it had a copy */
  assert_int_equal(count_told(UVM_T_COLLAPSED), 2);
  cpu_touch(mem, 0, UVM_A_READ); /* the writer becomes a reader again */
  assert_mapped(mem, 0, "rr-");
  cpu_touch(mem, 0, UVM_A_WRITE);
  assert_mapped(mem, 0, "a--");
  end();
}

static void read_mostly_unmaps_all_but_the_holder(void **state) {
  (void)state;
  open_world(PCIE, 0);
  cpu_touch(mem, 0, UVM_A_WRITE);
  advise(mem, 0, 512, UVM_ADV_SET_ACCESSED_BY, GPU0);
  assert_mapped(mem, 0, "aw-");
  advise(mem, 0, 512, UVM_ADV_SET_READ_MOSTLY, UVM_NONE);
  assert_mapped(mem, 0, "r--");
  advise(mem, 0, 512, UVM_ADV_SET_ACCESSED_BY, GPU1); /* advice creates no mappings while it is set */
  assert_mapped(mem, 0, "r--");
  end();
}

/* Writes are not promoted reads here: a first touch by reading is read-only. */
static void a_read_of_a_read_mostly_range_is_read_only(void **state) {
  (void)state;
  open_world(PCIE, WITH_PREFETCH);
  advise(mem, 0, 2048, UVM_ADV_SET_READ_MOSTLY, UVM_NONE);
  cpu_touch(mem, 1, UVM_A_WRITE);
  script.more = uvm_mask_range(0, 2);
  gpu_touch(GPU0, mem, 0, UVM_A_READ);
  assert_mapped(mem, 0, "-r-");
  assert_int_equal(nodes_of(mem, 1), 1 << DRAM | 1 << HBM0); /* prefetched pages are copied as well */
  end();
}

/* Kept: the preferred location's copy, else the CPU's, else the first; accessed-by mappings return. */
static void unset_read_mostly_drops_copies(void **state) {
  (void)state;
  static const struct {
    bool cpu;
    uvm_node preferred, kept;
    const char *mapped;
  } rows[] = {
      {true, UVM_NONE, DRAM, "r-w"},
      {true, HBM0, HBM0, "-r-"}, /* gpu1 does not reach it */
      {false, UVM_NONE, HBM0, "-r-"},
  };
  for (size_t i = 0; i < 3; i++) {
    open_world(PCIE, 0);
    advise(mem, 0, 2048, UVM_ADV_SET_READ_MOSTLY, UVM_NONE);
    if (rows[i].preferred != UVM_NONE) advise(mem, 0, 2048, UVM_ADV_SET_PREFERRED, rows[i].preferred);
    advise(mem, 0, 2048, UVM_ADV_SET_ACCESSED_BY, GPU1);
    if (rows[i].cpu) cpu_touch(mem, 0, UVM_A_READ);
    gpu_touch(GPU0, mem, 0, UVM_A_READ);
    gpu_touch(GPU1, mem, 0, UVM_A_READ);
    advise(mem, 0, 2048, UVM_ADV_UNSET_READ_MOSTLY, UVM_NONE);
    assert_int_equal(nodes_of(mem, 0), 1 << rows[i].kept);
    assert_mapped(mem, 0, rows[i].mapped);
    end();
  }
}

/* -- preferred location -- */

static void preferred_location_moves_nothing_by_itself(void **state) {
  (void)state;
  open_world(PCIE, 0);
  cpu_touch(mem, 0, UVM_A_WRITE);
  advise(mem, 0, 512, UVM_ADV_SET_ACCESSED_BY, GPU0);
  assert_mapped(mem, 0, "aw-");
  forget();
  advise(mem, 0, 512, UVM_ADV_SET_PREFERRED, GPU0);
  assert_int_equal(count_events(UVM_E_TRANSFER), 0);
  assert_mapped(mem, 0, "a--"); /* its remote mapping goes, so that it faults */
  gpu_touch(GPU0, mem, 0, UVM_A_READ);
  assert_int_equal(nodes_of(mem, 0), 1 << HBM0);
  cpu_touch(mem, 0, UVM_A_READ); /* cannot map it: comes, and goes back at the next fault */
  assert_int_equal(nodes_of(mem, 0), 1 << DRAM);
  assert_mapped(mem, 0, "a--");
  gpu_touch(GPU0, mem, 0, UVM_A_READ);
  assert_int_equal(nodes_of(mem, 0), 1 << HBM0);
  end();
}

static void preferred_cpu_is_mapped_not_moved(void **state) {
  (void)state;
  open_world(PCIE, 0);
  advise(mem, 0, 512, UVM_ADV_SET_PREFERRED, CPU);
  gpu_touch(GPU0, mem, 0, UVM_A_WRITE);
  assert_int_equal(nodes_of(mem, 0), 1 << DRAM);
  assert_mapped(mem, 0, "-w-");
  assert_int_equal(event(UVM_E_REMOTE_MAP, 0)->cause, UVM_C_FAULT);
  advise(mem, 0, 512, UVM_ADV_UNSET_PREFERRED, UVM_NONE);
  assert_int_equal(mem->ranges.v[0]->info.preferred, UVM_NONE);
  end();
}

/* -- accessed-by -- */

static void accessed_by_maps_what_is_populated(void **state) {
  (void)state;
  open_world(PCIE, 0);
  cpu_touch(mem, 0, UVM_A_WRITE);
  gpu_touch(GPU0, mem, 1, UVM_A_WRITE);
  forget();
  advise(mem, 0, 512, UVM_ADV_SET_ACCESSED_BY, GPU0);
  assert_mapped(mem, 0, "aw-");
  assert_int_equal(count_events(UVM_E_REMOTE_MAP), 1);
  assert_int_equal(event(UVM_E_REMOTE_MAP, 0)->cause, UVM_C_POLICY);
  advise(mem, 0, 512, UVM_ADV_SET_ACCESSED_BY, CPU); /* a PCIe GPU's memory is out of its reach: no effect */
  assert_mapped(mem, 1, "-a-");
  assert_mapped(mem, 2, "---");
  advise(mem, 0, 512, UVM_ADV_UNSET_ACCESSED_BY, GPU0);
  assert_int_equal(block_of(mem, 0)->range->info.accessed_by, 1 << CPU);
  end();
}

/* Where somebody's atomics depend on the others only reading, a new mapping only reads. */
static void accessed_by_respects_atomics(void **state) {
  (void)state;
  open_world(PCIE, 0);
  cpu_touch(mem, 0, UVM_A_WRITE);
  advise(mem, 0, 512, UVM_ADV_SET_PREFERRED, CPU);
  gpu_touch(GPU0, mem, 0, UVM_A_ATOMIC);
  assert_mapped(mem, 0, "ra-");
  advise(mem, 0, 512, UVM_ADV_SET_ACCESSED_BY, GPU1);
  assert_mapped(mem, 0, "rar");
  end();
}

/* -- explicit prefetch -- */

static void prefetch_populates_untouched_pages(void **state) {
  (void)state;
  open_world(PCIE, WITH_PREFETCH);
  cpu_touch(mem, 3, UVM_A_WRITE);
  script.prefetch_asked = 0;
  forget();
  prefetch(mem, 0, 512, HBM0);
  assert_int_equal(resident_pages(mem, HBM0), 512);
  assert_int_equal(bytes_moved(UVM_C_USER), UVM_PAGE);
  assert_int_equal(script.prefetch_asked, 0);
  assert_mapped(mem, 3, "-a-"); /* mapped by nobody: everything */
  assert_mapped(mem, 511, "-a-");
  assert_int_equal(event(UVM_E_PREFETCH, 0)->bytes, 2 * MIB);
  assert_int_equal(event(UVM_E_PREFETCH, 0)->dur, PLAN_NS); /* one block, one pass */
  assert_int_equal(world->completed, 1);
  assert_int_equal(count_told(UVM_T_MIGRATED), 1);
  end();
}

/* Recorded: one copy of 2 MiB a block; then the mapping pass. */
static void several_blocks_take_two_passes(void **state) {
  (void)state;
  open_world(PCIE, 0);
  prefetch(mem, 0, 2048, DRAM);
  forget();
  size_t before = world->plans.n;
  prefetch(mem, 0, 2048, HBM0);
  assert_int_equal(count_events(UVM_E_TRANSFER), 4);
  assert_int_equal(event(UVM_E_TRANSFER, 0)->bytes, 2 * MIB);
  assert_int_equal(world->plans.n - before, 8);
  for (size_t i = 0; i < 4; i++)
    for (size_t k = 0; k < world->plans.v[before + i].steps; k++) assert_int_not_equal(world->plans.v[before + i].v[k].kind, UVM_S_MAP);
  for (size_t i = 4; i < 8; i++) {
    assert_int_equal(world->plans.v[before + i].steps, 1);
    assert_int_equal(world->plans.v[before + i].v[0].kind, UVM_S_MAP);
  }
  forget();
  prefetch(mem, 0, 2048, HBM0); /* nothing to do: a price a block, once */
  assert_int_equal(world->plans.n - before, 8);
  assert_int_equal(count_prices(UVM_W_SKIP), 4);
  prefetch(mem, 0, 512, HBM0); /* and none for a single block */
  assert_int_equal(count_prices(UVM_W_SKIP), 4);
  end();
}

static struct uvm_alloc *raced;
static void race(const struct uvm_plan *p) {
  if (p->context != UVM_X_PREFETCH || world->now < 3 * PLAN_NS) return;
  world->on_plan = NULL;
  cpu_fault(raced, 5, UVM_A_WRITE, 1);
}
/* The second pass copies again what raced away. */
static void the_second_pass_copies_what_raced_away(void **state) {
  (void)state;
  open_world(PCIE, 0);
  raced = mem;
  world->on_plan = race;
  prefetch(mem, 0, 2048, HBM0);
  assert_int_equal(count_events(UVM_E_CPU_FAULT), 1);
  assert_int_equal(nodes_of(mem, 5), 1 << HBM0);
  assert_int_equal(bytes_moved(UVM_C_USER), UVM_PAGE);
  assert_mapped(mem, 5, "-a-");
  end();
}

/* Pages that others map where they are get what a read would; accessed-by processors follow. */
static void prefetch_and_other_mappings(void **state) {
  (void)state;
  open_world(PCIE, 0);
  prefetch(mem, 0, 512, DRAM);
  advise(mem, 0, 512, UVM_ADV_SET_ACCESSED_BY, GPU0);
  assert_mapped(mem, 0, "aw-");
  prefetch(mem, 0, 512, HBM1);
  assert_mapped(mem, 0, "--a");
  prefetch(mem, 0, 512, DRAM);
  assert_mapped(mem, 0, "aw-");
  end();
}

static void prefetch_of_a_read_mostly_range_copies(void **state) {
  (void)state;
  open_world(PCIE, 0);
  prefetch(mem, 0, 2048, DRAM);
  advise(mem, 0, 2048, UVM_ADV_SET_READ_MOSTLY, UVM_NONE);
  prefetch(mem, 0, 2048, HBM0);
  assert_int_equal(resident_pages(mem, DRAM), 2048);
  assert_int_equal(resident_pages(mem, HBM0), 2048);
  assert_mapped(mem, 0, "rr-");
  end();
}

/* A part that begins and ends inside blocks. */
static void prefetch_of_a_part(void **state) {
  (void)state;
  open_world(PCIE, 0);
  prefetch(mem, 500, 24, HBM0);
  assert_int_equal(resident_pages(mem, HBM0), 24);
  assert_int_equal(nodes_of(mem, 500), 1 << HBM0);
  assert_int_equal(nodes_of(mem, 523), 1 << HBM0);
  assert_int_equal(nodes_of(mem, 524), 0);
  end();
}

/* -- memcpy -- */

static void copies(struct uvm_alloc *a, uint64_t pages, uvm_proc p, bool write) {
  struct uvm_call call = {.alloc = a, .offset = 0, .bytes = pages * UVM_PAGE, .node = UVM_NONE, .proc = p};
  uvm_driver_nvidia.copy(&world->core, &call, write, world->now);
  settle();
}
static void memcpy_reads_change_nothing(void **state) {
  (void)state;
  open_world(PCIE, 0);
  copies(mem, 100, GPU0, false);
  assert_int_equal(world->plans.n, 0);
  assert_int_equal(world->completed, 1);
  end();
}
static void memcpy_writes_populate_and_collapse(void **state) {
  (void)state;
  open_world(PCIE, 0);
  advise(mem, 0, 2048, UVM_ADV_SET_READ_MOSTLY, UVM_NONE);
  cpu_touch(mem, 0, UVM_A_WRITE);
  gpu_touch(GPU0, mem, 0, UVM_A_READ);
  cpu_touch(mem, 1, UVM_A_WRITE);
  forget();
  copies(mem, 4, GPU0, true);
  assert_int_equal(nodes_of(mem, 0), 1 << DRAM); /* of two copies the CPU's stays */
  assert_int_equal(nodes_of(mem, 1), 1 << DRAM); /* where it was */
  assert_int_equal(nodes_of(mem, 2), 1 << HBM0); /* new */
  assert_int_equal(nodes_of(mem, 4), 0);
  assert_mapped(mem, 2, "---");
  assert_int_equal(count_events(UVM_E_TRANSFER), 0);
  assert_int_equal(world->completed, 1);
  end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranges_split_where_the_value_differs),
      cmocka_unit_test(splitting_waits_for_the_block),
      cmocka_unit_test(coarse_grain_is_another_drivers),
      cmocka_unit_test(read_mostly_copies_for_readers),
      cmocka_unit_test(read_mostly_unmaps_all_but_the_holder),
      cmocka_unit_test(a_read_of_a_read_mostly_range_is_read_only),
      cmocka_unit_test(unset_read_mostly_drops_copies),
      cmocka_unit_test(preferred_location_moves_nothing_by_itself),
      cmocka_unit_test(preferred_cpu_is_mapped_not_moved),
      cmocka_unit_test(accessed_by_maps_what_is_populated),
      cmocka_unit_test(accessed_by_respects_atomics),
      cmocka_unit_test(prefetch_populates_untouched_pages),
      cmocka_unit_test(several_blocks_take_two_passes),
      cmocka_unit_test(the_second_pass_copies_what_raced_away),
      cmocka_unit_test(prefetch_and_other_mappings),
      cmocka_unit_test(prefetch_of_a_read_mostly_range_copies),
      cmocka_unit_test(prefetch_of_a_part),
      cmocka_unit_test(memcpy_reads_change_nothing),
      cmocka_unit_test(memcpy_writes_populate_and_collapse),
  };
  return UVM_RUN(tests);
}
