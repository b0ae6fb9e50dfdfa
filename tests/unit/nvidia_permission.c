/* Mappings: driver specification 1.4. "cpu gpu0 gpu1", each '-' none, 'r', 'w' read-write, 'a' with atomics. */
#include "tests/unit/nvidia_fixture.h"

static struct uvm_alloc *mem;
static void open_world(enum link l, int hooks) {
  begin(l, 64 * MIB, hooks);
  mem = managed(4 * MIB);
}

/* "A plain read fault on a private GPU page normally yields a read-write-atomic mapping, and later writes do not fault." */
static void read_of_a_private_page_is_promoted(void **state) {
  (void)state;
  open_world(PCIE, 0);
  gpu_touch(GPU0, mem, 0, UVM_A_READ);
  assert_mapped(mem, 0, "-a-");
  cpu_touch(mem, 1, UVM_A_READ);
  assert_mapped(mem, 1, "a--");
  cpu_touch(mem, 2, UVM_A_WRITE); /* a CPU write counts as an atomic */
  assert_mapped(mem, 2, "a--");
  end();
}

/* A move unmaps the page everywhere. */
static void a_move_takes_all_mappings(void **state) {
  (void)state;
  open_world(PCIE, 0);
  cpu_touch(mem, 0, UVM_A_WRITE);
  gpu_touch(GPU0, mem, 0, UVM_A_READ);
  assert_mapped(mem, 0, "-a-");
  gpu_touch(GPU1, mem, 0, UVM_A_WRITE);
  assert_mapped(mem, 0, "--a");
  assert_int_equal(count_events(UVM_E_REVOKE), 0);
  end();
}

/* Remote mappings of CPU memory over PCIe, where a GPU's atomics are not native. Preferred: the CPU, so that nothing moves. */
static void remote_mappings_over_pcie(void **state) {
  (void)state;
  static const struct {
    uvm_proc who[2];
    enum uvm_access access[2];
    const char *mapped;
    size_t revoked;
  } rows[] = {
      {{GPU0, UVM_NONE}, {UVM_A_READ}, "aw-", 0}, /* the CPU, native, is exempt and no bar to promotion */
      {{GPU0, UVM_NONE}, {UVM_A_WRITE}, "aw-", 0},
      {{GPU0, UVM_NONE}, {UVM_A_ATOMIC}, "ra-", 1},          /* the GPU's atomics need the CPU read-only */
      {{GPU0, GPU1}, {UVM_A_ATOMIC, UVM_A_READ}, "rar", 1},  /* and bar promotion */
      {{GPU0, GPU1}, {UVM_A_ATOMIC, UVM_A_WRITE}, "rww", 2}, /* a write reduces atomics to read-write */
      {{GPU0, GPU1}, {UVM_A_WRITE, UVM_A_ATOMIC}, "rra", 2}, /* atomics without native support: everybody else read-only */
      {{GPU0, CPU}, {UVM_A_ATOMIC, UVM_A_WRITE}, "aw-", 2},  /* the CPU takes its page back */
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    open_world(PCIE, 0);
    cpu_touch(mem, 0, UVM_A_WRITE);
    mem->ranges.v[0]->info.preferred = DRAM;
    for (int k = 0; k < 2 && rows[i].who[k] != UVM_NONE; k++) touch(rows[i].who[k], mem, 0, rows[i].access[k]);
    assert_int_equal(nodes_of(mem, 0), 1 << DRAM);
    assert_mapped(mem, 0, rows[i].mapped);
    assert_int_equal(count_events(UVM_E_REVOKE), rows[i].revoked);
    assert_int_equal(count_told(UVM_T_REVOKED), rows[i].revoked);
    end();
  }
}

/* Where everybody's atomics are native nobody loses anything. */
static void remote_mappings_on_a_coherent_link(void **state) {
  (void)state;
  open_world(COHERENT, 0);
  cpu_touch(mem, 0, UVM_A_WRITE);
  mem->ranges.v[0]->info.preferred = DRAM;
  gpu_touch(GPU0, mem, 0, UVM_A_ATOMIC);
  gpu_touch(GPU1, mem, 0, UVM_A_READ);
  assert_mapped(mem, 0, "aaa");
  assert_int_equal(count_events(UVM_E_REVOKE), 0);
  end();
}

/* After a move the accessed-by processors in reach are mapped: level by level of the requester's. */
static void accessed_by_follows_a_move(void **state) {
  (void)state;
  static const struct {
    enum link link;
    uint32_t by;
    uvm_proc mover;
    enum uvm_access access;
    const char *mapped;
  } rows[] = {
      {PCIE, 1 << GPU0, CPU, UVM_A_WRITE, "aw-"}, /* requester with native atomics: others get what they can do */
      {COHERENT, 1 << GPU0, CPU, UVM_A_WRITE, "aa-"}, {PCIE, 1 << CPU, GPU0, UVM_A_WRITE, "-a-"}, /* out of reach */
      {COHERENT, 1 << CPU, GPU0, UVM_A_READ, "aa-"},  {NVLINK, 1 << GPU1, GPU0, UVM_A_WRITE, "-aa"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    open_world(rows[i].link, 0);
    touch(rows[i].mover == CPU ? GPU0 : CPU, mem, 0, UVM_A_WRITE);
    mem->ranges.v[0]->info.accessed_by = rows[i].by;
    touch(rows[i].mover, mem, 0, rows[i].access);
    assert_int_equal(nodes_of(mem, 0), 1u << rows[i].mover);
    assert_mapped(mem, 0, rows[i].mapped);
    end();
  }
}

/* Nor does the preferred location's processor while the data is elsewhere: it is to fault and pull it in. */
static void the_preferred_location_is_not_mapped_to_data_elsewhere(void **state) {
  (void)state;
  open_world(PCIE, 0);
  gpu_touch(GPU0, mem, 0, UVM_A_WRITE);
  mem->ranges.v[0]->info.accessed_by = 1 << GPU0 | 1 << GPU1;
  mem->ranges.v[0]->info.preferred = HBM0;
  cpu_touch(mem, 0, UVM_A_WRITE);
  assert_mapped(mem, 0, "a-w");
  end();
}

/* A pinned page is mapped for everybody in the hint who reaches it, and the cause is thrashing. */
static void pins_map_who_thrashes(void **state) {
  (void)state;
  open_world(PCIE, WITH_THRASH);
  cpu_touch(mem, 0, UVM_A_WRITE);
  gpu_touch(GPU0, mem, 0, UVM_A_WRITE);
  script.hint = (struct uvm_thrash){UVM_HINT_PIN, DRAM, 1 << CPU | 1 << GPU0, 0};
  cpu_touch(mem, 0, UVM_A_WRITE);
  assert_int_equal(nodes_of(mem, 0), 1 << DRAM);
  assert_mapped(mem, 0, "aw-");
  assert_int_equal(count_events(UVM_E_REMOTE_MAP), 1);
  assert_int_equal(event(UVM_E_REMOTE_MAP, 0)->proc, GPU0);
  assert_int_equal(event(UVM_E_REMOTE_MAP, 0)->src, DRAM);
  assert_int_equal(event(UVM_E_REMOTE_MAP, 0)->cause, UVM_C_THRASHING);
  end();
}

/* Prefetched pages are mapped too, those already there included, and promoted like reads. */
static void prefetched_pages_are_mapped(void **state) {
  (void)state;
  open_world(PCIE, WITH_PREFETCH);
  cpu_touch(mem, 1, UVM_A_WRITE);
  script.more = uvm_mask_range(0, 16);
  gpu_touch(GPU0, mem, 0, UVM_A_READ);
  assert_mapped(mem, 1, "-a-");
  assert_mapped(mem, 15, "-a-");
  assert_mapped(mem, 16, "---");
  assert_int_equal(count_events(UVM_E_TRANSFER), 1);
  assert_int_equal(event(UVM_E_TRANSFER, 0)->cause, UVM_C_PREFETCH);
  end();
}

/* Recorded on an H200: a fault on the first page of CPU-resident 64 KiB is copied as 4 KiB (fault) and 60 KiB (prefetch). */
static void transfers_are_cut_where_the_cause_changes(void **state) {
  (void)state;
  open_world(PCIE, WITH_PREFETCH);
  for (uint64_t p = 0; p < 16; p++) cpu_touch(mem, p, UVM_A_WRITE);
  script.more = uvm_mask_range(0, 16);
  gpu_touch(GPU0, mem, 0, UVM_A_READ);
  assert_int_equal(count_events(UVM_E_TRANSFER), 2);
  assert_int_equal(event(UVM_E_TRANSFER, 0)->bytes, 4096);
  assert_int_equal(event(UVM_E_TRANSFER, 0)->cause, UVM_C_FAULT);
  assert_int_equal(event(UVM_E_TRANSFER, 1)->bytes, 15 * 4096);
  assert_int_equal(event(UVM_E_TRANSFER, 1)->cause, UVM_C_PREFETCH);
  end();
}

/* 1.5: several destinations, no prefetch. */
static void one_destination_or_no_prefetch(void **state) {
  (void)state;
  open_world(PCIE, WITH_PREFETCH);
  cpu_touch(mem, 0, UVM_A_WRITE);
  mem->ranges.v[0]->info.accessed_by = 1 << GPU0;
  script.prefetch_asked = 0;
  raw(GPU0, mem, 0, UVM_A_READ, 0, world->now); /* stays on the CPU, rule 7 */
  raw(GPU0, mem, 9, UVM_A_READ, 0, world->now); /* first touch, to the GPU */
  settle();
  assert_int_equal(script.prefetch_asked, 0);
  assert_int_equal(nodes_of(mem, 9), 1 << HBM0);
  gpu_touch(GPU0, mem, 10, UVM_A_READ);
  assert_int_equal(script.prefetch_asked, 1);
  assert_int_equal(script.prefetch_node, HBM0);
  end();
}

static void a_pin_out_of_reach_is_refused(void **state) {
  (void)state;
  open_world(PCIE, WITH_THRASH);
  script.hint = (struct uvm_thrash){UVM_HINT_PIN, HBM1, 0, 0};
  gpu_touch(GPU0, mem, 0, UVM_A_WRITE);
  assert_string_equal(world->failure, "thrashing control pins a page on hbm1, which gpu0 does not reach");
  end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(read_of_a_private_page_is_promoted),
      cmocka_unit_test(a_move_takes_all_mappings),
      cmocka_unit_test(remote_mappings_over_pcie),
      cmocka_unit_test(remote_mappings_on_a_coherent_link),
      cmocka_unit_test(accessed_by_follows_a_move),
      cmocka_unit_test(the_preferred_location_is_not_mapped_to_data_elsewhere),
      cmocka_unit_test(pins_map_who_thrashes),
      cmocka_unit_test(prefetched_pages_are_mapped),
      cmocka_unit_test(transfers_are_cut_where_the_cause_changes),
      cmocka_unit_test(one_destination_or_no_prefetch),
      cmocka_unit_test(a_pin_out_of_reach_is_refused),
  };
  return UVM_RUN(tests);
}
