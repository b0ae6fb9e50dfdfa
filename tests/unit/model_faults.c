/* How faults of a GPU come to the driver: batches as the hardware makes them. Expected values are recordings', or follow from
 * the profile by arithmetic, as each case says. Without the density prefetcher, which would hide what the lanes touch. */
#include "machine/machine.h"
#include "tests/unit/model_fixture.h"

static const struct uvm_event *batch(const struct replay *r, size_t n) {
  const struct uvm_event *e = replay_event(r, UVM_E_GPU_BATCH, n);
  if (!e) fail_msg("no batch number %zu", n);
  return e;
}

static struct uvm_gpu_model model_of(const char *name) {
  struct uvm_machine *m;
  assert_int_equal(uvm_machine_open(name, "measured", &m, NULL), 0);
  struct uvm_gpu_model g = m->gpu;
  uvm_machine_close(m);
  return g;
}

/* Recorded on a Titan V in four runs: c[p] = a[p] + b[p] by one warp, a page a lane: batches of 56, 8 and 32 faults. */
static void titan_v_adds_in_batches_of_56_8_and_32(void **state) {
  (void)state;
  struct replay r =
      replay_good(HEAD "alloc a 2M managed a\nalloc b 2M managed b\nalloc c 2M managed c\n"
                       "w cpu a 0 2M\nw cpu b 0 2M\nw cpu c 0 2M\n"
                       "kernel gpu0 lanes=32\nr a 0 128K split=cyclic step=4096 width=4\nr b 0 128K split=cyclic step=4096 width=4\n"
                       "w c 0 128K split=cyclic step=4096 width=4\ndone\nsync\n",
                  "nvidia-titanv", "none");
  const uint64_t recorded[] = {56, 8, 32};
  assert_int_equal(replay_count(&r, UVM_E_GPU_BATCH), 3);
  for (size_t i = 0; i < 3; i++) assert_int_equal(batch(&r, i)->raw, recorded[i]);
  assert_int_equal(batch(&r, 2)->access, UVM_A_WRITE);
  replay_free(&r);
}

/* One lane waits for each access: a fault a batch. */
static void one_lane_makes_one_fault_a_batch(void **state) {
  (void)state;
  struct replay r = replay_good(HEAD "alloc a 2M managed a\nw cpu a 0 2M\nkernel gpu0 lanes=1\n"
                                     "r a 0 8\nr a 8192 8\nr a 4096 8\nr a 4100 8\nw a 0 8\ndone\nsync\n",
                                NULL, "none");
  const uint64_t pages[] = {0, 2, 1}; /* the rest finds its pages mapped, for writing too */
  assert_int_equal(replay_count(&r, UVM_E_GPU_BATCH), 3);
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(batch(&r, i)->raw, 1);
    assert_int_equal(batch(&r, i)->offset, pages[i] * UVM_PAGE);
  }
  assert_int_equal(batch(&r, 0)->wait, model_of("nvidia-h200").first_interrupt_ns); /* from the ring to the driver */
  replay_free(&r);
}

/* A fan of one-lane blocks, each with a block of memory of its own. */
static struct replay fan(unsigned lanes) {
  char *text = uvm_format(HEAD "alloc a %uM managed a\nw cpu a 0 %uM step=2097152\nkernel gpu0 lanes=%u lanes_per_block=1\n", 2 * lanes,
                          2 * lanes, lanes);
  for (unsigned i = 0; i < lanes; i++) {
    char *more = uvm_format("%sr a %uM 8\n", text, 2 * i);
    uvm_mem_free(text);
    text = more;
  }
  char *whole = uvm_format("%sdone\nsync\n", text);
  struct replay r = replay_good(whole, NULL, NULL);
  uvm_mem_free(text);
  uvm_mem_free(whole);
  return r;
}

/* Recorded: one batch up to 128 blocks. */
static void a_fan_of_128_is_one_batch(void **state) {
  (void)state;
  struct replay r = fan(128);
  assert_int_equal(replay_count(&r, UVM_E_GPU_BATCH), 1);
  assert_int_equal(batch(&r, 0)->distinct, 128);
  replay_free(&r);
}

/* Recorded: two batches at 256, of which the first serves 204 to 238 in ten runs. */
static void a_fan_of_256_is_two(void **state) {
  (void)state;
  struct replay r = fan(256);
  assert_int_equal(replay_count(&r, UVM_E_GPU_BATCH), 2);
  assert_in_range(batch(&r, 0)->distinct, 204, 238);
  assert_int_equal(batch(&r, 0)->distinct + batch(&r, 1)->distinct, 256);
  replay_free(&r);
}

/* Two blocks of 256 lanes, a page a lane: each SM's uTLB holds so many, and a step of a warp is issued together. */
static void a_utlb_limits_what_an_sm_has_outstanding(void **state) {
  (void)state;
  struct replay r = replay_good(HEAD "alloc a 2M managed a\nw cpu a 0 2M\nkernel gpu0 lanes=512 lanes_per_block=256\n"
                                     "r a 0 2M split=cyclic step=4096\ndone\nsync\n",
                                NULL, "none");
  uint64_t most = 2 * model_of("nvidia-h200").utlb_faults, faults = 0;
  assert_int_equal(batch(&r, 0)->raw, most);
  for (size_t i = 0; i < replay_count(&r, UVM_E_GPU_BATCH); i++) {
    assert_true(batch(&r, i)->raw <= most);
    faults += batch(&r, i)->distinct;
  }
  assert_int_equal(faults, 512); /* each page faults once */
  replay_free(&r);
}

/* Eight warps of a block touch one page: eight raw entries, one fault. */
static void warps_of_one_page_fault_each_for_themselves(void **state) {
  (void)state;
  struct replay r = replay_good(
      HEAD "alloc a 2M managed a\nw cpu a 0 2M\nkernel gpu0 lanes=256\nr a 0 4K split=cyclic width=16\ndone\nsync\n", NULL, "none");
  assert_int_equal(replay_count(&r, UVM_E_GPU_BATCH), 1);
  assert_int_equal(batch(&r, 0)->distinct, 1);
  assert_int_equal(batch(&r, 0)->raw, 8);
  replay_free(&r);
}

/* An access touches every page it overlaps; the pages of one access are issued together. */
static void an_access_over_a_page_end_faults_on_both(void **state) {
  (void)state;
  struct replay r = replay_good(HEAD "alloc a 2M managed a\nw cpu a 0 2M\nkernel gpu0 lanes=1\nr a 4092 8\ndone\nsync\n", NULL, "none");
  assert_int_equal(replay_count(&r, UVM_E_GPU_BATCH), 1);
  assert_int_equal(batch(&r, 0)->distinct, 2);
  assert_int_equal(batch(&r, 0)->offset, 0);
  replay_free(&r);
}

/* Read-mostly pages come as copies: the write of rw faults after its read has. */
static void a_read_modify_write_reads_first(void **state) {
  (void)state;
  struct replay r =
      replay_good(HEAD "alloc a 2M managed a\nadvise set_read_mostly cpu a 0 2M\nw cpu a 0 2M\nkernel gpu0 lanes=1\nrw a 0 8\ndone\nsync\n",
                  NULL, "none");
  assert_int_equal(replay_count(&r, UVM_E_GPU_BATCH), 2);
  assert_int_equal(batch(&r, 0)->access, UVM_A_READ);
  assert_int_equal(batch(&r, 1)->access, UVM_A_WRITE);
  replay_free(&r);
}

/* Records of one loop go on step by step; after `next` the second loop begins only when the lane is through with the first. */
static void loops_follow_one_another(void **state) {
  (void)state;
  const char *head = HEAD "alloc a 2M managed a\nalloc b 2M managed b\nw cpu a 0 2M\nw cpu b 0 2M\nkernel gpu0 lanes=1\n";
  for (int next = 0; next < 2; next++) {
    char *text =
        uvm_format("%sr a 0 8K split=cyclic step=4096\n%sr b 0 8K split=cyclic step=4096\ndone\nsync\n", head, next ? "next\n" : "");
    struct replay r = replay_good(text, NULL, "none");
    if (next) {
      assert_int_equal(replay_count(&r, UVM_E_GPU_BATCH), 4);
      assert_int_equal(batch(&r, 1)->alloc, 0);
      assert_int_equal(batch(&r, 2)->alloc, 1);
    } else {
      assert_int_equal(replay_count(&r, UVM_E_GPU_BATCH), 2); /* a step's reads are issued together */
      assert_int_equal(batch(&r, 0)->distinct, 2);
    }
    uvm_mem_free(text);
    replay_free(&r);
  }
}

/* by=block: access number r is made by block r mod blocks, whose lane waits for it; by lane all are issued at once. */
static void single_accesses_go_to_their_lane_or_block(void **state) {
  (void)state;
  for (int by_block = 0; by_block < 2; by_block++) {
    const char *by = by_block ? " by=block" : "";
    char *text = uvm_format(HEAD "alloc a 2M managed a\nw cpu a 0 2M\nkernel gpu0 lanes=4 lanes_per_block=2\n"
                                 "r a 0 8%s\nr a 4K 8%s\nr a 8K 8%s\nr a 12K 8%s\ndone\nsync\n",
                            by, by, by, by);
    struct replay r = replay_good(text, NULL, "none");
    assert_int_equal(replay_count(&r, UVM_E_GPU_BATCH), by_block ? 2 : 1);
    assert_int_equal(batch(&r, 0)->distinct, by_block ? 2 : 4);
    uvm_mem_free(text);
    replay_free(&r);
  }
}

/* A million million lanes of which one hundred have work need no memory for the rest; blocks end and others take their place. */
static void lanes_without_work_cost_nothing(void **state) {
  (void)state;
  struct replay r = replay_good(HEAD "alloc a 4M managed a\nprefetch gpu0 a 0 4M\nsync\n"
                                     "kernel gpu0 lanes=1000000000000\nr a 0 1600 split=cyclic width=16\ndone\n"
                                     "kernel gpu0 lanes=1000000 lanes_per_block=1\nw a 0 4000000 split=cyclic width=4\ndone\nsync\n",
                                NULL, NULL);
  assert_int_equal(replay_count(&r, UVM_E_KERNEL), 2);
  assert_int_equal(r.result.accesses, 100 + 1000000);
  replay_free(&r);
}

/* All lanes together are a machine full: wide streaming, as recorded: 100 to 130 pages in the first batch, medians of 45 to
 * 100 afterwards. */
static void a_wide_stream_batches_as_recorded(void **state) {
  (void)state;
  struct replay r = replay_good(HEAD "alloc a 64M managed a\nw cpu a 0 64M\nkernel gpu0 lanes=270336 lanes_per_block=256\n"
                                     "r a 0 64M split=cyclic width=16\ndone\nsync\n",
                                NULL, NULL);
  size_t n = replay_count(&r, UVM_E_GPU_BATCH), below = 0, above = 0;
  assert_in_range(batch(&r, 0)->distinct, 100, 130);
  for (size_t i = 1; i < n; i++) below += batch(&r, i)->distinct<45, above += batch(&r, i)->distinct> 100;
  assert_true(2 * below < n && 2 * above < n);
  replay_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(titan_v_adds_in_batches_of_56_8_and_32),
      cmocka_unit_test(one_lane_makes_one_fault_a_batch),
      cmocka_unit_test(a_fan_of_128_is_one_batch),
      cmocka_unit_test(a_fan_of_256_is_two),
      cmocka_unit_test(a_utlb_limits_what_an_sm_has_outstanding),
      cmocka_unit_test(warps_of_one_page_fault_each_for_themselves),
      cmocka_unit_test(an_access_over_a_page_end_faults_on_both),
      cmocka_unit_test(a_read_modify_write_reads_first),
      cmocka_unit_test(loops_follow_one_another),
      cmocka_unit_test(single_accesses_go_to_their_lane_or_block),
      cmocka_unit_test(lanes_without_work_cost_nothing),
      cmocka_unit_test(a_wide_stream_batches_as_recorded),
  };
  return UVM_RUN(tests);
}
