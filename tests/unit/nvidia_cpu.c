/* CPU faults, throttles and pins: driver specification 1.11 and 1.7.4. */
#include "tests/unit/nvidia_fixture.h"

static struct uvm_alloc *mem;
static void open_world(int hooks) {
  begin(PCIE, 64 * MIB, hooks);
  mem = managed(4 * MIB);
}

/* One event a fault, at the trap; then the thread goes on. The prefetcher is asked on the CPU's side too. */
static void one_fault(void **state) {
  (void)state;
  open_world(WITH_PREFETCH);
  gpu_touch(GPU0, mem, 0, UVM_A_WRITE);
  gpu_touch(GPU0, mem, 1, UVM_A_WRITE);
  forget();
  script.more = uvm_mask_range(0, 2);
  uvm_ns trap = world->now;
  cpu_touch(mem, 0, UVM_A_READ);
  assert_int_equal(count_events(UVM_E_CPU_FAULT), 1);
  assert_int_equal(event(UVM_E_CPU_FAULT, 0)->t, trap);
  assert_int_equal(event(UVM_E_CPU_FAULT, 0)->access, UVM_A_READ);
  assert_int_equal(event(UVM_E_CPU_FAULT, 0)->why, NV_WHY_REQUESTER);
  assert_int_equal(script.prefetch_node, DRAM);
  assert_int_equal(nodes_of(mem, 1), 1 << DRAM);
  assert_int_equal(world->resumed, 1);
  end();
}

static bool cpu_went_on;
static void note_mapping(void) { cpu_went_on = mapping(mem, 0, CPU) == 'a'; }
/* A GPU that waits for the block takes the page only after the CPU thread has had it: nobody starves without thrashing control. */
static void the_thread_gets_its_access(void **state) {
  (void)state;
  open_world(0);
  gpu_touch(GPU0, mem, 0, UVM_A_WRITE);
  cpu_went_on = false;
  world->on_resume = note_mapping;
  uvm_ns start = world->now;
  cpu_fault(mem, 0, UVM_A_WRITE, 1);
  raw(GPU0, mem, 0, UVM_A_WRITE, 0, start + 5 * US); /* waits from 6 us on */
  settle();
  assert_true(cpu_went_on);
  assert_mapped(mem, 0, "-a-");
  end();
}

/* A fault on a mapped page: the first is remembered and ignored; a second one of the same thread and page maps again; others
 * are ignored for 300 us. */
static void spurious_faults(void **state) {
  (void)state;
  static const struct {
    uint32_t thread;
    uint64_t page;
    uvm_ns after;
    bool served;
  } rows[] = {
      {1, 0, 200 * US, true},
      {2, 0, 200 * US, false},
      {1, 1, 200 * US, false},
      {1, 0, 301 * US, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    open_world(0);
    cpu_touch(mem, 0, UVM_A_WRITE);
    cpu_touch(mem, 1, UVM_A_WRITE);
    uvm_ns start = world->now;
    size_t plans = world->plans.n;
    cpu_fault(mem, 0, UVM_A_WRITE, 1);
    settle();
    assert_int_equal(world->plans.n, plans);
    assert_int_equal(count_prices(UVM_W_CPU_SPURIOUS), 1);
    world->now = start + rows[i].after;
    cpu_fault(mem, rows[i].page, UVM_A_WRITE, rows[i].thread);
    settle();
    assert_int_equal(world->plans.n - plans, rows[i].served);
    assert_int_equal(world->resumed, 4);
    end();
  }
}

static void throttle_until_600(const struct uvm_fault *f, struct uvm_thrash *out) {
  *out = world->now < 600 * US ? (struct uvm_thrash){.hint = UVM_HINT_THROTTLE, .until = 600 * US} : (struct uvm_thrash){0};
  (void)f;
}
/* A throttled thread sleeps the time left, plus what its wake-up costs, and tries again: one fault, one throttle. */
static void a_throttled_thread_sleeps(void **state) {
  (void)state;
  open_world(WITH_THRASH);
  script.thrash = throttle_until_600;
  world->now = 100 * US;
  cpu_touch(mem, 0, UVM_A_WRITE);
  assert_int_equal(count_events(UVM_E_CPU_FAULT), 1);
  assert_int_equal(count_events(UVM_E_THROTTLE), 1);
  assert_int_equal(event(UVM_E_THROTTLE, 0)->t, 100 * US);
  assert_int_equal(event(UVM_E_THROTTLE, 0)->dur, 502 * US);
  assert_int_equal(event(UVM_E_THROTTLE, 0)->proc, CPU);
  assert_int_equal(world->prices.v[0].work, UVM_W_CPU_NAP);
  assert_int_equal(world->prices.v[0].n, 500 * US);
  assert_int_equal(world->now, 602 * US + PLAN_NS);
  assert_mapped(mem, 0, "a--");
  end();
}

/* A GPU held in two slots is two throttles; letting everybody go at a pin ends the hold. */
static void holds_end_with_their_slot_or_a_pin(void **state) {
  (void)state;
  open_world(WITH_THRASH);
  script.hint = (struct uvm_thrash){.hint = UVM_HINT_THROTTLE, .until = 500 * US};
  raw(GPU0, mem, 0, UVM_A_READ, 0, 0);
  settle();
  raw(GPU0, mem, 0, UVM_A_READ, 0, 100 * US);
  settle();
  assert_int_equal(count_events(UVM_E_THROTTLE), 0);
  script.hint.until = 1000 * US;
  raw(GPU0, mem, 0, UVM_A_READ, 0, 600 * US);
  settle();
  assert_int_equal(count_events(UVM_E_THROTTLE), 1);
  assert_int_equal(event(UVM_E_THROTTLE, 0)->dur, 600 * US);
  script.hint = (struct uvm_thrash){.hint = UVM_HINT_PIN, .node = DRAM, .procs = 1 << CPU | 1 << GPU0};
  world->now = 700 * US;
  cpu_touch(mem, 0, UVM_A_WRITE);
  assert_int_equal(count_events(UVM_E_THROTTLE), 2);
  assert_int_equal(event(UVM_E_THROTTLE, 1)->proc, GPU0);
  assert_int_equal(event(UVM_E_THROTTLE, 1)->dur, 99 * US); /* from 601 us, when the batch was served */
  end();
}

static void pin(uint64_t page, uvm_ns until) {
  script.hint = (struct uvm_thrash){UVM_HINT_PIN, DRAM, 1 << CPU | 1 << GPU0, until};
  cpu_fault(mem, page, UVM_A_WRITE, 1);
  settle_until(world->now + 2 * PLAN_NS);
  script.hint = (struct uvm_thrash){0};
}

/* At the deadline the page goes from who holds no copy and is not in accessed-by; pages within 20 us go together. */
static void pins_end(void **state) {
  (void)state;
  open_world(WITH_THRASH);
  pin(0, 1000 * US);
  pin(1, 1020 * US);
  pin(2, 1021 * US);
  assert_mapped(mem, 0, "aw-");
  settle_until(1001 * US);
  assert_mapped(mem, 0, "a--");
  assert_mapped(mem, 1, "a--");
  assert_mapped(mem, 2, "aw-");
  settle();
  assert_mapped(mem, 2, "a--");
  assert_int_equal(count_told(UVM_T_UNPINNED), 2);
  for (size_t i = 0; i < script.tolds.n; i++)
    if (script.tolds.v[i].t.kind == UVM_T_UNPINNED) {
      assert_int_equal(uvm_mask_count(&script.tolds.v[i].pages), 2);
      break;
    }
  assert_int_equal(count_events(UVM_E_UNPIN), 2);
  end();
}

static void the_first_pin_sets_the_deadline(void **state) {
  (void)state;
  open_world(WITH_THRASH);
  pin(0, 1000 * US);
  script.hint = (struct uvm_thrash){UVM_HINT_PIN, DRAM, 1 << CPU | 1 << GPU0, 2000 * US};
  raw(GPU0, mem, 0, UVM_A_ATOMIC, 0, 500 * US); /* more than it may: pinned again */
  settle_until(999 * US);
  assert_mapped(mem, 0, "ra-");
  script.hint = (struct uvm_thrash){0};
  settle();
  assert_int_equal(count_events(UVM_E_UNPIN), 1);
  assert_int_equal(event(UVM_E_UNPIN, 0)->t, 1000 * US + PLAN_NS);
  assert_mapped(mem, 0, "r--");
  end();
}

static void accessed_by_outlives_a_pin(void **state) {
  (void)state;
  open_world(WITH_THRASH);
  pin(0, 1000 * US);
  mem->ranges.v[0]->info.accessed_by = 1 << GPU0;
  settle();
  assert_mapped(mem, 0, "aw-");
  assert_int_equal(count_told(UVM_T_UNPINNED), 1);
  end();
}

static void a_pin_without_end(void **state) {
  (void)state;
  open_world(WITH_THRASH);
  pin(0, 0);
  settle();
  assert_mapped(mem, 0, "aw-");
  assert_int_equal(count_told(UVM_T_UNPINNED), 0);
  end();
}

/* An explicit prefetch resets the pages' thrashing state (cause USER), and the pin with it; so does freeing. */
static void pins_dropped(void **state) {
  (void)state;
  open_world(WITH_THRASH);
  pin(0, 1000 * US);
  prefetch(mem, 0, 512, HBM0);
  settle();
  assert_int_equal(count_told(UVM_T_UNPINNED), 0);
  assert_mapped(mem, 0, "-a-");
  struct uvm_alloc *other = mem;
  mem = managed(2 * MIB);
  pin(0, world->now + 1000 * US);
  uvm_driver_nvidia.freeing(&world->core, mem, world->now);
  uvm_space_free(world->core.space, mem);
  settle();
  assert_int_equal(count_told(UVM_T_UNPINNED), 0);
  mem = other;
  end();
}

/* Advice that splits the block leaves the pin's deadline in force. */
static void a_pin_survives_a_split(void **state) {
  (void)state;
  open_world(WITH_THRASH);
  pin(0, 1000 * US);
  struct uvm_call call = {
      .alloc = mem, .offset = 8 * UVM_PAGE, .bytes = UVM_PAGE, .node = DRAM, .proc = CPU, .advice = UVM_ADV_SET_PREFERRED};
  uvm_driver_nvidia.advise(&world->core, &call, world->now);
  settle();
  assert_mapped(mem, 0, "a--");
  assert_int_equal(count_events(UVM_E_UNPIN), 1);
  end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_fault),
      cmocka_unit_test(the_thread_gets_its_access),
      cmocka_unit_test(spurious_faults),
      cmocka_unit_test(a_throttled_thread_sleeps),
      cmocka_unit_test(holds_end_with_their_slot_or_a_pin),
      cmocka_unit_test(pins_end),
      cmocka_unit_test(the_first_pin_sets_the_deadline),
      cmocka_unit_test(accessed_by_outlives_a_pin),
      cmocka_unit_test(a_pin_without_end),
      cmocka_unit_test(pins_dropped),
      cmocka_unit_test(a_pin_survives_a_split),
  };
  return UVM_RUN(tests);
}
