/* Chunks and eviction: driver specification 1.1 and 1.9. */
#include "tests/unit/nvidia_fixture.h"

#define A 0
#define B 512
#define C 1024
#define D 1536 /* first pages of four blocks of 2 MiB */
static struct uvm_alloc *mem;

static struct nv_options *open_world(uint64_t gpu_bytes, int hooks) {
  struct nv_options *o = begin(PCIE, gpu_bytes, hooks);
  mem = managed(8 * MIB);
  return o;
}

/* A list of gpu0's memory, head to tail, as letters of blocks. */
static void assert_list(enum uvm_list l, const char *want) {
  char found[16] = "";
  const struct uvm_space *s = world->core.space;
  size_t n = 0;
  for (uvm_backing_id k = s->lists[HBM0][l].oldest; k; k = s->backings.v[k]->newer)
    found[n++] = (char)('A' + uvm_block_offset(s->backings.v[k]->pieces[0].block, s->backings.v[k]->pieces[0].first) / (2 * MIB));
  assert_string_equal(found, want);
}

/* E1, row by row. "CPU reads all pages" is a prefetch to the CPU: only that every page leaves matters. */
static void worked_trace(void **state) {
  (void)state;
  open_world(3 * 2 * MIB, 0);
  gpu_touch(GPU0, mem, A, UVM_A_WRITE);
  gpu_touch(GPU0, mem, B, UVM_A_WRITE);
  gpu_touch(GPU0, mem, C, UVM_A_WRITE);
  assert_list(UVM_L_USED, "ABC");
  assert_int_equal(world->core.space->nodes[HBM0].free, 0);
  gpu_touch(GPU0, mem, A + 1, UVM_A_WRITE); /* a second fault in A */
  assert_list(UVM_L_USED, "BCA");
  assert_int_equal(count_events(UVM_E_EVICT), 0);
  gpu_touch(GPU0, mem, D, UVM_A_WRITE);
  assert_list(UVM_L_USED, "CAD");
  assert_int_equal(event(UVM_E_EVICT, 0)->offset, B * UVM_PAGE);
  assert_int_equal(nodes_of(mem, B), 1 << DRAM);
  cpu_touch(mem, C, UVM_A_READ); /* takes the only page of C */
  assert_list(UVM_L_USED, "AD");
  assert_list(UVM_L_UNUSED, "C");
  size_t copies = count_events(UVM_E_TRANSFER);
  gpu_touch(GPU0, mem, B, UVM_A_WRITE); /* takes C's chunk: only B's page is copied, to the GPU */
  assert_list(UVM_L_USED, "ADB");
  assert_list(UVM_L_UNUSED, "");
  assert_int_equal(count_events(UVM_E_TRANSFER), copies + 1);
  assert_int_equal(event(UVM_E_TRANSFER, -1)->dst, HBM0);
  cpu_touch(mem, A, UVM_A_READ); /* one page of A remains */
  assert_list(UVM_L_USED, "ADB");
  prefetch(mem, D, 512, HBM0);
  prefetch(mem, D, 512, HBM0); /* nothing to do any more, and still a touch */
  assert_list(UVM_L_USED, "ABD");
  gpu_touch(GPU0, mem, C, UVM_A_WRITE);
  assert_list(UVM_L_USED, "BDC");
  assert_int_equal(event(UVM_E_EVICT, -1)->offset, A * UVM_PAGE);
  assert_int_equal(event(UVM_E_EVICT, -1)->value, UVM_PAGE); /* only the page that was on the GPU */
  assert_int_equal(event(UVM_E_EVICT, -1)->bytes, 2 * MIB);
  end();
}

/* A service that only changes permissions touches the chunk too. */
static void a_change_of_permissions_is_a_service(void **state) {
  (void)state;
  open_world(3 * 2 * MIB, 0);
  mem->ranges.v[0]->info.read_mostly = 1;
  gpu_touch(GPU0, mem, A, UVM_A_READ);
  gpu_touch(GPU0, mem, B, UVM_A_READ);
  assert_list(UVM_L_USED, "AB");
  gpu_touch(GPU0, mem, A, UVM_A_WRITE);
  assert_mapped(mem, A, "-a-");
  assert_list(UVM_L_USED, "BA");
  end();
}

static unsigned hints_asked;
static void count_hints(const struct uvm_fault *f, struct uvm_thrash *out) {
  hints_asked += f->page == 7;
  *out = (struct uvm_thrash){0};
}
/* Eviction drops the block's lock: the hint is asked for again, the fault is told of once (1.2 step 5). */
static void eviction_restarts_the_service(void **state) {
  (void)state;
  open_world(2 * MIB, WITH_THRASH);
  script.thrash = count_hints;
  hints_asked = 0;
  gpu_touch(GPU0, mem, A, UVM_A_WRITE);
  forget();
  gpu_touch(GPU0, mem, B + 7, UVM_A_WRITE);
  assert_int_equal(hints_asked, 2);
  assert_int_equal(count_events(UVM_E_GPU_FAULT), 1);
  assert_int_equal(count_told(UVM_T_EVICTED), 1);
  assert_int_equal(nodes_of(mem, A), 1 << DRAM);
  assert_int_equal(nodes_of(mem, B + 7), 1 << HBM0);
  assert_true(uvm_mask_test(uvm_block_evicted(world->core.space, block_of(mem, A), GPU0), 0));
  end();
}

/* Clean pages are copied; pages the CPU has a copy of are dropped, and are single afterwards. */
static void duplicates_are_only_dropped(void **state) {
  (void)state;
  open_world(2 * MIB, 0);
  mem->ranges.v[0]->info.read_mostly = 1;
  cpu_touch(mem, A, UVM_A_WRITE);
  gpu_touch(GPU0, mem, A, UVM_A_READ);     /* two copies */
  gpu_touch(GPU0, mem, A + 1, UVM_A_READ); /* on the GPU only, never written */
  assert_int_equal(nodes_of(mem, A), 1 << DRAM | 1 << HBM0);
  forget();
  gpu_touch(GPU0, mem, B, UVM_A_READ);
  assert_int_equal(count_events(UVM_E_TRANSFER), 1);
  assert_int_equal(event(UVM_E_TRANSFER, 0)->offset, (A + 1) * UVM_PAGE);
  assert_int_equal(event(UVM_E_TRANSFER, 0)->cause, UVM_C_EVICTION);
  assert_int_equal(nodes_of(mem, A), 1 << DRAM);
  assert_true(uvm_mask_empty(uvm_block_duplicated(world->core.space, block_of(mem, A))));
  assert_mapped(mem, A, "r--"); /* the CPU goes on reading */
  end();
}

/* A page with copies on two GPUs and none on the CPU becomes the CPU's alone. */
static void eviction_ends_duplication_between_gpus(void **state) {
  (void)state;
  begin(NVLINK, 2 * MIB, 0);
  mem = managed(8 * MIB);
  mem->ranges.v[0]->info.read_mostly = 1;
  gpu_touch(GPU0, mem, A, UVM_A_READ);
  gpu_touch(GPU1, mem, A, UVM_A_READ);
  assert_int_equal(nodes_of(mem, A), 1 << HBM0 | 1 << HBM1);
  gpu_touch(GPU0, mem, B, UVM_A_READ);
  assert_int_equal(nodes_of(mem, A), 1 << DRAM);
  assert_mapped(mem, A, "---");
  end();
}

/* Afterwards accessed-by processors are mapped to the CPU's copy; the GPU itself only with access counters. */
static void mappings_after_eviction(void **state) {
  (void)state;
  static const struct {
    uint32_t by;
    bool counters, remote;
    const char *mapped;
  } rows[] = {
      {0, false, true, "---"}, {1 << CPU | 1 << GPU1, false, true, "a-w"}, {1 << GPU0, false, true, "-w-"}, {0, true, true, "-w-"},
      {0, true, false, "---"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct nv_options *o = open_world(2 * MIB, 0);
    o->access_counters = rows[i].counters;
    o->map_remote_on_eviction = rows[i].remote;
    gpu_touch(GPU0, mem, A, UVM_A_WRITE);
    mem->ranges.v[0]->info.accessed_by = rows[i].by;
    forget();
    gpu_touch(GPU0, mem, B, UVM_A_WRITE);
    assert_mapped(mem, A, rows[i].mapped);
    bool remote = rows[i].mapped[GPU0] != '-' || rows[i].mapped[GPU1] != '-';
    assert_int_equal(count_events(UVM_E_REMOTE_MAP), remote);
    if (remote) assert_int_equal(event(UVM_E_REMOTE_MAP, 0)->cause, UVM_C_EVICTION);
    end();
  }
}

/* Blocks below 2 MiB share root chunks, in 64 KiB and 4 KiB pieces, and age from allocation: a later service is no touch. */
static void small_blocks_share_and_age_from_allocation(void **state) {
  (void)state;
  struct uvm_alloc *small[3];
  begin(PCIE, 2 * 2 * MIB, 0);
  for (int i = 0; i < 3; i++) small[i] = managed(MIB); /* each in a window of its own, 256 pages */
  for (int i = 0; i < 3; i++)
    for (uint64_t p = 0; p < 256; p++) raw(GPU0, small[i], p, UVM_A_WRITE, 0, world->now), settle();
  assert_int_equal(world->core.space->nodes[HBM0].free, 0); /* 3 MiB in two root chunks */
  const struct uvm_space *s = world->core.space;
  assert_int_equal(s->backings.v[1]->info.resident, 2 * MIB);
  assert_int_equal(s->backings.v[2]->info.resident, MIB);
  assert_int_equal(s->lists[HBM0][UVM_L_USED].oldest, 1);
  small[0]->ranges.v[0]->info.preferred = HBM0;
  cpu_touch(small[0], 0, UVM_A_READ);
  gpu_touch(GPU0, small[0], 0, UVM_A_WRITE); /* serviced, not allocated */
  assert_int_equal(s->lists[HBM0][UVM_L_USED].oldest, 1);
  struct uvm_alloc *big = managed(2 * MIB);
  gpu_touch(GPU0, big, 0, UVM_A_WRITE);
  assert_int_equal(event(UVM_E_EVICT, 0)->value, 2 * MIB); /* both blocks' pages */
  assert_int_equal(nodes_of(small[0], 0), 1 << DRAM);
  assert_int_equal(nodes_of(small[1], 255), 1 << DRAM);
  assert_int_equal(nodes_of(small[2], 0), 1 << HBM0);
  end();
}

/* 1.1: pages of a small block outside its whole 64 KiB pages take 4 KiB each; one touch takes one piece. */
static void pieces_of_small_blocks(void **state) {
  (void)state;
  begin(PCIE, 2 * MIB, 0);
  struct uvm_alloc *a = managed_at(4 * MIB + 12 * UVM_PAGE, 24 * UVM_PAGE); /* pages 12 to 35 of the window */
  gpu_touch(GPU0, a, 0, UVM_A_WRITE);                                       /* page 12: 4 KiB */
  gpu_touch(GPU0, a, 8, UVM_A_WRITE);                                       /* page 20: the 64 KiB from page 16 */
  const struct uvm_backing *k = world->core.space->backings.v[1];
  assert_int_equal(k->npieces, 2);
  assert_int_equal(k->pieces[0].first, 12);
  assert_int_equal(k->pieces[0].pages, 1);
  assert_int_equal(k->pieces[1].first, 16);
  assert_int_equal(k->pieces[1].pages, 16);
  end();
}

static void freed_memory_is_used_again(void **state) {
  (void)state;
  struct uvm_alloc *small[2];
  begin(PCIE, 2 * MIB, 0);
  for (int i = 0; i < 2; i++) small[i] = managed(MIB);
  for (int i = 0; i < 2; i++) prefetch(small[i], 0, 256, HBM0);
  uvm_driver_nvidia.freeing(&world->core, small[0], world->now);
  uvm_space_free(world->core.space, small[0]);
  struct uvm_alloc *again = managed(MIB);
  prefetch(again, 0, 256, HBM0);
  assert_int_equal(count_events(UVM_E_EVICT), 0);
  assert_int_equal(resident_pages(again, HBM0), 256);
  end();
}

/* 1.12 step 7 and 1.9: out of memory ends the run, and what was done stays. */
static void out_of_memory(void **state) {
  (void)state;
  struct nv_options *o = open_world(2 * MIB, 0);
  o->oversubscription = false;
  prefetch(mem, A, 1024, HBM0);
  assert_string_equal(world->failure,
                      "hbm0 (2 MiB) has no memory left: 2 MiB of allocation a need a 2 MiB chunk, and oversubscription is off");
  assert_int_equal(world->completed, 0);
  assert_int_equal(resident_pages(mem, HBM0), 512);
  end();
  open_world(MIB, 0);
  gpu_touch(GPU0, mem, A, UVM_A_WRITE);
  assert_string_equal(world->failure,
                      "hbm0 (1 MiB) has no memory left: 4 KiB of allocation a need a 2 MiB chunk, and no chunk can be evicted");
  end();
}

/* Two services want the only chunk at the same time: the second waits for the first, then evicts. */
static void chunks_in_service_are_waited_for(void **state) {
  (void)state;
  open_world(2 * MIB, 0);
  struct uvm_call call = {.alloc = mem, .offset = 0, .bytes = 2 * MIB, .node = HBM0, .proc = GPU0};
  uvm_driver_nvidia.prefetch(&world->core, &call, 0);
  raw(GPU0, mem, B, UVM_A_WRITE, 0, 1 * US);
  settle();
  assert_string_equal(world->failure, "");
  assert_int_equal(nodes_of(mem, A), 1 << DRAM);
  assert_int_equal(nodes_of(mem, B), 1 << HBM0);
  assert_int_equal(count_events(UVM_E_EVICT), 1);
  assert_true(event(UVM_E_EVICT, 0)->t >= PLAN_NS);
  end();
}

/* Two GPU-bound services at once, two victims; a block whose page leaves is waited for by who wants it. */
static void a_block_being_evicted_is_waited_for(void **state) {
  (void)state;
  open_world(2 * MIB, 0);
  gpu_touch(GPU0, mem, A, UVM_A_WRITE);
  raw(GPU0, mem, B, UVM_A_WRITE, 0, world->now);
  uvm_ns start = world->now;
  settle_until(start + 2 * US); /* the eviction of A is under way */
  cpu_fault(mem, A, UVM_A_READ, 1);
  settle();
  assert_int_equal(nodes_of(mem, A), 1 << DRAM);
  assert_int_equal(event(UVM_E_CPU_FAULT, 0)->t, start + 1 * US);
  assert_int_equal(world->resumed, 1);
  assert_mapped(mem, A, "a--");
  end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(worked_trace),
      cmocka_unit_test(a_change_of_permissions_is_a_service),
      cmocka_unit_test(eviction_restarts_the_service),
      cmocka_unit_test(duplicates_are_only_dropped),
      cmocka_unit_test(eviction_ends_duplication_between_gpus),
      cmocka_unit_test(mappings_after_eviction),
      cmocka_unit_test(small_blocks_share_and_age_from_allocation),
      cmocka_unit_test(pieces_of_small_blocks),
      cmocka_unit_test(freed_memory_is_used_again),
      cmocka_unit_test(out_of_memory),
      cmocka_unit_test(chunks_in_service_are_waited_for),
      cmocka_unit_test(a_block_being_evicted_is_waited_for),
  };
  return UVM_RUN(tests);
}
