/* Access counters: the specification's model. A counter a 2 MiB region and GPU, a notification at the threshold (256) with the
 * 64 KiB parts touched since the last clear, silence until it is cleared. */
#include "model/model.h"
#include "tests/unit/unit.h"

struct bench {
  struct uvm_machine *m;
  struct uvm_core core;
  struct uvm_engine *x;
  struct uvm__device *d;
  struct uvm_alloc alloc;
};

static int setup(void **state) {
  struct bench *b = *state = uvm_mem(sizeof *b);
  assert_int_equal(uvm_machine_open("nvidia-h200", "measured", &b->m, NULL), 0);
  assert_int_equal(uvm_engine_model.open(&(struct uvm_engine_config){.core = &b->core, .machine = b->m}, &b->x, NULL), 0);
  b->d = b->x->devices[1];
  b->alloc =
      (struct uvm_alloc){.number = 3, .kind = UVM_MANAGED, .base = 5 << 20, .bytes = 8 << 20, .nwindows = 5}; /* 1 MiB into a region */
  return 0;
}

static int teardown(void **state) {
  struct bench *b = *state;
  uvm_engine_model.close(b->x);
  uvm_machine_close(b->m);
  uvm_mem_free(b);
  return 0;
}

static void touch(struct bench *b, uint64_t page, uint64_t run) { uvm__count_remote(b->x, b->d, &b->alloc, page, run); }

static void the_threshold_makes_one_notification(void **state) {
  struct bench *b = *state;
  struct uvm_counter_note n[4];
  for (int i = 0; i < 255; i++) touch(b, 256, 1);
  assert_int_equal(uvm__take_notes(b->d, n, 4), 0);
  touch(b, 256 + 31, 1);
  touch(b, 256, 1); /* silent now */
  assert_int_equal(uvm__take_notes(b->d, n, 4), 1);
  assert_int_equal(n[0].offset, (256 + 31) * UVM_PAGE);
  assert_int_equal(n[0].count, 256);
  assert_int_equal(n[0].touched, 3); /* the region's first two 64 KiB parts */
  for (int i = 0; i < 300; i++) touch(b, 256, 1);
  assert_int_equal(uvm__take_notes(b->d, n, 4), 0);
}

static void clearing_arms_again_with_a_threshold(void **state) {
  struct bench *b = *state;
  struct uvm_counter_note n[4];
  touch(b, 256, 256);
  assert_int_equal(uvm__take_notes(b->d, n, 4), 1);
  uvm__clear_counter(b->d, &b->alloc, 256 * UVM_PAGE, 16);
  touch(b, 512 + 255, 1); /* the region's last page, offsets counted from its middle */
  touch(b, 256, 15);
  assert_int_equal(uvm__take_notes(b->d, n, 4), 1);
  assert_int_equal(n[0].touched, 1u << 31 | 1);
}

/* The allocation begins in the middle of a region: pages 0 to 255 are one region, 256 to 767 the next. */
static void regions_are_those_of_addresses(void **state) {
  struct bench *b = *state;
  struct uvm_counter_note n[4];
  touch(b, 0, 128);
  touch(b, 256, 128);
  assert_int_equal(uvm__take_notes(b->d, n, 4), 0);
  touch(b, 255, 1);
  for (int i = 0; i < 127; i++) touch(b, 0, 1);
  assert_int_equal(uvm__take_notes(b->d, n, 4), 1);
  assert_int_equal(n[0].touched >> 16, 0x80ff); /* pages 0 to 127 and 255, which begin at the region's page 256 */
}

static void a_freed_allocation_is_forgotten(void **state) {
  struct bench *b = *state;
  struct uvm_counter_note n[4];
  touch(b, 256, 256);
  uvm__forget_counters(b->d, &b->alloc);
  assert_int_equal(uvm__take_notes(b->d, n, 4), 0);
  touch(b, 256, 255);
  assert_int_equal(uvm__take_notes(b->d, n, 4), 0);
}

static void the_driver_is_told_once(void **state) {
  struct bench *b = *state;
  struct uvm_engine_event ev;
  touch(b, 256, 256);
  touch(b, 0, 256);
  assert_int_equal(uvm_engine_model.next(b->x, &ev, NULL), 1);
  assert_int_equal(ev.kind, UVM_N_FEED); /* the host thread begins at 0 */
  assert_int_equal(uvm_engine_model.next(b->x, &ev, NULL), 1);
  assert_int_equal(ev.kind, UVM_N_COUNTERS);
  assert_int_equal(ev.proc, 1);
  assert_int_equal(ev.now, b->m->gpu.interrupt_ns);
  struct uvm_error e;
  assert_int_equal(uvm_engine_model.next(b->x, &ev, &e), UVM_EENV); /* the host waits for a record, and nothing else will come */
}

int main(void) {
#define WITH(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
  const struct CMUnitTest tests[] = {
      WITH(the_threshold_makes_one_notification),
      WITH(clearing_arms_again_with_a_threshold),
      WITH(regions_are_those_of_addresses),
      WITH(a_freed_allocation_is_forgotten),
      WITH(the_driver_is_told_once),
  };
  return UVM_RUN(tests);
}
