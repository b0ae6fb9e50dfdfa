/* The fault loop: driver specification 1.2. */
#include "tests/unit/nvidia_fixture.h"

static struct uvm_alloc *mem;

static void open_world(int hooks) {
  begin(PCIE, 64 * MIB, hooks);
  mem = managed(16 * MIB);
}

/* Step 3: by page ascending; a page once, with its most intrusive access first. */
static void order_and_duplicates(void **state) {
  (void)state;
  open_world(0);
  raw(GPU0, mem, 700, UVM_A_READ, 0, 0);
  raw(GPU0, mem, 3, UVM_A_READ, 1, 0);
  raw(GPU0, mem, 700, UVM_A_ATOMIC, 2, 0);
  raw(GPU0, mem, 3, UVM_A_WRITE, 3, 0);
  raw(GPU0, mem, 3, UVM_A_READ, 1, 0);
  settle();
  assert_int_equal(count_events(UVM_E_GPU_FAULT), 2);
  assert_int_equal(event(UVM_E_GPU_FAULT, 0)->offset, 3 * UVM_PAGE);
  assert_int_equal(event(UVM_E_GPU_FAULT, 0)->access, UVM_A_WRITE);
  assert_int_equal(event(UVM_E_GPU_FAULT, 0)->value, 3);
  assert_int_equal(event(UVM_E_GPU_FAULT, 1)->offset, 700 * UVM_PAGE);
  assert_int_equal(event(UVM_E_GPU_FAULT, 1)->access, UVM_A_ATOMIC);
  assert_int_equal(event(UVM_E_GPU_FAULT, 1)->value, 2);
  const struct uvm_event *b = event(UVM_E_GPU_BATCH, 0);
  assert_int_equal(b->offset, 3 * UVM_PAGE);
  assert_int_equal(b->value, 3);
  assert_int_equal(b->raw, 5);
  assert_int_equal(b->distinct, 2);
  end();
}

/* Step 2 a: into the last fault of the own uTLB, whatever came between, and the more intrusive one represents both. */
static void merges_within_a_utlb(void **state) {
  (void)state;
  open_world(0);
  raw(GPU0, mem, 5, UVM_A_READ, 0, 0);
  raw(GPU0, mem, 6, UVM_A_READ, 1, 0);
  raw(GPU0, mem, 5, UVM_A_WRITE, 0, 0);
  struct nv_batch batch = {0};
  assert_true(uvm__nv_fetch(&world->core, &batch, GPU0, 0));
  assert_int_equal(batch.raw, 3);
  assert_int_equal(batch.entries.n, 2);
  assert_int_equal(batch.entries.v[0].merged, 2);
  assert_int_equal(batch.entries.v[0].access, UVM_A_WRITE);
  assert_int_equal(batch.entries.v[0].access_mask, 1 << UVM_A_READ | 1 << UVM_A_WRITE);
  assert_int_equal(batch.entries.v[0].order, 1);
  uvm_mem_free(batch.entries.v), uvm_mem_free(batch.utlbs.v);
  world->get[GPU0] = world->ring[GPU0].n;
  end();
}

/* A batch takes 256 raw entries, duplicates included (step 1); the flush drops what lay beyond (step 6). */
static void limit_counts_raw_entries(void **state) {
  (void)state;
  open_world(0);
  for (uint64_t i = 0; i < 300; i++) raw(GPU0, mem, i, UVM_A_READ, (uint16_t)i, 0);
  settle();
  assert_int_equal(count_events(UVM_E_GPU_BATCH), 1);
  assert_int_equal(event(UVM_E_GPU_BATCH, 0)->raw, 256);
  assert_int_equal(event(UVM_E_GPU_BATCH, 0)->distinct, 256);
  assert_int_equal(world->get[GPU0], 300);
  assert_int_equal(world->replays.n, 1);
  end();
}

/* Entries that arrive during the service: dropped only when more than half of the batch were duplicates (step 6). */
static size_t batches_with_late_entry(uint64_t pages, uint64_t raws) {
  open_world(0);
  for (uint64_t i = 0; i < raws; i++) raw(GPU0, mem, i % pages, UVM_A_READ, (uint16_t)i, 0);
  raw(GPU0, mem, 1000, UVM_A_READ, 0, 5 * US);
  settle();
  size_t n = count_events(UVM_E_GPU_BATCH);
  end();
  return n;
}
static void flush_rereads_put_above_half(void **state) {
  (void)state;
  assert_int_equal(batches_with_late_entry(4, 8), 2); /* 4 of 8: not above 50 % */
  assert_int_equal(batches_with_late_entry(4, 9), 1); /* 5 of 9 */
}

static void replay_policies(void **state) {
  (void)state;
  static const struct {
    uint32_t policy;
    size_t replays, batches, events;
  } rows[] = {
      {NV_REPLAY_BLOCK, 3 + 1, 2, 4},   /* one a block: 3 in the first batch, 1 in the second */
      {NV_REPLAY_BATCH, 2, 2, 2},       /* the 44 entries beyond the limit are still there */
      {NV_REPLAY_BATCH_FLUSH, 1, 1, 1}, /* they were dropped */
      {NV_REPLAY_ONCE, 1, 2, 2},
  };
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    struct nv_options *o = begin(PCIE, 64 * MIB, 0);
    mem = managed(16 * MIB);
    o->fault_replay_policy = rows[r].policy;
    for (uint64_t i = 0; i < 256; i++) raw(GPU0, mem, i % 3 * 512 + i / 3, UVM_A_READ, (uint16_t)i, 0);
    for (uint64_t i = 0; i < 44; i++) raw(GPU0, mem, 1800 + i, UVM_A_READ, (uint16_t)i, 0);
    settle();
    assert_int_equal(world->replays.n, rows[r].replays);
    assert_int_equal(count_told(UVM_T_BATCH_BEGIN), rows[r].batches);
    assert_int_equal(count_told(UVM_T_BATCH_END), rows[r].batches);
    assert_int_equal(count_events(UVM_E_GPU_BATCH), rows[r].events);
    assert_true(world->armed[GPU0]);
    end();
  }
}

/* Each replay brings one more fault. */
static void fault_again(uvm_proc g) {
  if (world->replays.n < 30) raw(g, mem, world->replays.n * 16, UVM_A_READ, 0, world->now);
}
static void twenty_batches_a_service(void **state) {
  (void)state;
  open_world(0);
  world->on_replay = fault_again;
  raw(GPU0, mem, 0, UVM_A_READ, 0, 0);
  settle();
  assert_int_equal(count_events(UVM_E_GPU_BATCH), 30);
  assert_int_equal(count_prices(UVM_W_RESTART), 1);
  size_t fetches = 0;
  for (size_t i = 0; world->prices.v[i].work != UVM_W_RESTART; i++) fetches += world->prices.v[i].work == UVM_W_FETCH;
  assert_int_equal(fetches, 20);
  end();
}

static void throttled_again(uvm_proc g) {
  if (world->now < 400 * US) raw(g, mem, 7, UVM_A_READ, 0, world->now);
}
/* Throttled pages are left out and fault again; the loop ends after every fifth such batch. The hold is one event. */
static void five_throttled_batches_a_service(void **state) {
  (void)state;
  open_world(WITH_THRASH);
  world->on_replay = throttled_again;
  script.hint = (struct uvm_thrash){.hint = UVM_HINT_THROTTLE, .until = 300 * US};
  raw(GPU0, mem, 7, UVM_A_READ, 0, 0);
  settle_until(20 * US);
  assert_int_equal(nodes_of(mem, 7), 0);
  assert_int_equal(count_events(UVM_E_THROTTLE), 0);
  size_t fetches = 0;
  for (size_t i = 0; i < world->prices.n && world->prices.v[i].work != UVM_W_RESTART; i++)
    fetches += world->prices.v[i].work == UVM_W_FETCH;
  assert_int_equal(fetches, 5);
  settle_until(300 * US);
  script.hint = (struct uvm_thrash){0};
  settle();
  assert_int_equal(nodes_of(mem, 7), 1 << HBM0);
  assert_int_equal(count_events(UVM_E_THROTTLE), 1);
  assert_int_equal(event(UVM_E_THROTTLE, 0)->proc, GPU0);
  assert_int_equal(event(UVM_E_THROTTLE, 0)->t, 1 * US); /* when the first batch was served */
  assert_in_range(event(UVM_E_THROTTLE, 0)->t + event(UVM_E_THROTTLE, 0)->dur, 300 * US, 310 * US);
  end();
}

/* "If no replay was issued at all: issue one." */
static void empty_ring_replays_once(void **state) {
  (void)state;
  open_world(0);
  uvm_driver_nvidia.interrupt(&world->core, GPU0, 0);
  settle();
  assert_int_equal(world->replays.n, 1);
  assert_int_equal(count_events(UVM_E_GPU_BATCH), 0);
  end();
}

/* The event lasts from the first arrival until the replay is issued. */
static void batch_event_lasts_until_the_replay(void **state) {
  (void)state;
  open_world(0);
  raw(GPU0, mem, 9, UVM_A_WRITE, 0, 5 * US);
  settle();
  const struct uvm_event *b = event(UVM_E_GPU_BATCH, 0);
  assert_int_equal(b->t, 5 * US);
  assert_int_equal(b->dur, 1 * US + PLAN_NS + 1 * US);
  assert_int_equal(b->access, UVM_A_WRITE);
  assert_int_equal(b->t + b->dur, world->replays.v[0]);
  end();
}

/* Step 5: one block service for each block, one question to the prefetcher each; a fault on a mapped page is skipped. */
static void one_service_a_block(void **state) {
  (void)state;
  open_world(WITH_PREFETCH);
  raw(GPU0, mem, 0, UVM_A_READ, 0, 0);
  raw(GPU0, mem, 5, UVM_A_READ, 0, 0);
  raw(GPU0, mem, 512, UVM_A_READ, 0, 0);
  settle();
  assert_int_equal(world->plans.n, 2);
  assert_int_equal(script.prefetch_asked, 2);
  forget();
  gpu_touch(GPU0, mem, 5, UVM_A_ATOMIC);
  assert_int_equal(world->plans.n, 2);
  assert_int_equal(event(UVM_E_GPU_FAULT, 0)->why, NV_WHY_MAPPED);
  end();
}

static void unmanaged_memory_is_an_error(void **state) {
  (void)state;
  struct uvm_error e;
  struct uvm_alloc *a;
  open_world(0);
  assert_int_equal(uvm_space_alloc(world->core.space, "h", "h", UVM_NEVER, 4096, UVM_HOST, DRAM, &a, &e), 0);
  raw(GPU0, a, 0, UVM_A_READ, 0, 0);
  settle();
  assert_string_equal(world->failure, "gpu0 faults on allocation h, which is not managed memory, at offset 0");
  end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(order_and_duplicates),
      cmocka_unit_test(merges_within_a_utlb),
      cmocka_unit_test(limit_counts_raw_entries),
      cmocka_unit_test(flush_rereads_put_above_half),
      cmocka_unit_test(replay_policies),
      cmocka_unit_test(twenty_batches_a_service),
      cmocka_unit_test(five_throttled_batches_a_service),
      cmocka_unit_test(empty_ring_replays_once),
      cmocka_unit_test(batch_event_lasts_until_the_replay),
      cmocka_unit_test(one_service_a_block),
      cmocka_unit_test(unmanaged_memory_is_an_error),
  };
  return UVM_RUN(tests);
}
