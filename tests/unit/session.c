/* Whole runs: what they count, checked by arithmetic on small traces, and the names a run is asked for. */
#include "tests/unit/unit.h"
#include "session.h"
#include "trace.h"

static struct { uint64_t prefetched, used, h2d, wait, section, evicted; } sum;

static void watch(void *ctx, const struct uvm_event *e) {
  (void)ctx;
  if (e->kind == UVM_E_TRANSFER && e->dst) sum.h2d += e->bytes, sum.prefetched += e->cause == UVM_C_PREFETCH ? e->bytes : 0;
  if (e->kind == UVM_E_TRANSFER || e->kind == UVM_E_ACCESS) sum.wait += e->wait;
  if (e->kind == UVM_E_EVICT) sum.evicted += e->value;
  if (e->kind == UVM_E_SECTION) sum.section += e->dur;
  if (e->kind == UVM_E_PREFETCH_USED) sum.used += e->bytes;
}

static struct uvm_session_result result;
static struct uvm_error error;

static int run(const char *text, struct uvm_session_config c) {
  struct uvm_trace *t;
  struct uvm_observer o = {NULL, watch};
  memset(&sum, 0, sizeof sum);
  assert_int_equal(uvm_trace_open_memory(text, strlen(text), &t, &error), 0);
  c.source = t, c.observers = &o, c.nobservers = 1;
  int rc = uvm_session_run(&c, &result, &error);
  uvm_trace_close(t);
  return rc;
}

#define HEAD "uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 2M managed a\n"

/* A 64 KiB stride over 2 MiB, 32 pages one after the other: 6 of them fault (vector V2: 0, 16, 32, 64, 128, 256), the others
 * came along, and of all that came along only those are used. */
static void test_prefetch_used(void **state) {
  (void)state;
  assert_int_equal(run(HEAD "w cpu a 0 2M\nr gpu0 a 0 2M step=65536\nr gpu0 a 0 2M step=65536\n", (struct uvm_session_config){0}), 0);
  assert_int_equal(sum.h2d, 2 << 20);
  assert_int_equal(sum.prefetched, (512 - 6) * 4096);
  assert_int_equal(sum.used, (32 - 6) * 4096);
  assert_int_equal(result.accesses, 512 + 32 + 32);
}

/* Pages that leave untouched were not worth it, and those that come back have to prove themselves again. */
static void test_prefetch_used_again(void **state) {
  (void)state;
  assert_int_equal(run(HEAD "w cpu a 0 2M\nr gpu0 a 0 8\nw cpu a 0 64K\nr gpu0 a 0 64K\n", (struct uvm_session_config){.thrash = "none"}),
                   0);
  assert_int_equal(sum.prefetched, 2 * 15 * 4096);   /* to the GPU, twice; the CPU's fault also brought 15 pages back */
  assert_int_equal(sum.used, 15 * 4096 + 15 * 4096); /* 15 by the CPU's writes, 15 by the GPU's last loop */
}

/* Two prefetches of one block each in two streams: the second copy waits for the first, which holds the link for at least the
 * 37.9 us that 2 MiB take at 55.3 GB/s; one alone waits for nobody. */
static void test_link_wait(void **state) {
  (void)state;
  assert_int_equal(run(HEAD "w cpu a 0 2M\nprefetch gpu0 a 0 2M\nsync\n", (struct uvm_session_config){0}), 0);
  assert_int_equal(sum.wait, 0);
  assert_int_equal(
      run(HEAD "alloc b 2M managed b\nw cpu a 0 2M\nw cpu b 0 2M\nprefetch gpu0 a 0 2M stream=1\nprefetch gpu0 b 0 2M stream=2\nsync\n",
          (struct uvm_session_config){0}),
      0);
  assert_in_range(sum.wait, 30000, 50000); /* the second call comes 2 us after the first */
}

/* 64 MiB that a kernel reads from pinned memory at 51.4 GB/s (1306 us) while 64 MiB are prefetched at 55.3 GB/s (1214 us): one link
 * carries both, so 2519 us are the least that they take together, and each waits for the other. */
static void test_who_waited(void **state) {
  (void)state;
  assert_int_equal(
      run(HEAD "alloc b 64M managed b\nalloc p 64M pinned p\nw cpu b 0 64M\nbegin both\nkernel gpu0 lanes=65536 lanes_per_block=256 "
               "stream=1\nr p 0 64M split=cyclic\ndone\nprefetch gpu0 b 0 64M stream=2\nsync\nend\n",
          (struct uvm_session_config){0}),
      0);
  assert_in_range(sum.section, 2519000, 2700000);
  assert_int_equal(result.nlink_waits, 2);
  assert_string_equal(result.link_waits[0].waiter, "prefetch");
  assert_string_equal(result.link_waits[0].holder, "remote access");
  assert_string_equal(result.link_waits[1].waiter, "remote access");
  assert_string_equal(result.link_waits[1].holder, "prefetch");
  assert_in_range(result.link_waits[1].ns, 1, 1214000);                                             /* however many wait at a time */
  assert_in_range(result.link_waits[0].ns + result.link_waits[1].ns, sum.wait - 40, sum.wait + 40); /* of 32 copies, rounded */
}

/* 8 MiB of GPU memory, all of it taken by four managed blocks. 3 MiB of device memory push out two of
 * them, 8 MiB all four; more than the GPU has is refused. */
static void test_room_for_device_memory(void **state) {
  (void)state;
  const struct uvm_session_config c = {.gpu_memory = 8 << 20};
#define FULL HEAD "alloc b 6M managed b\nw cpu a 0 2M\nw cpu b 0 6M\nprefetch gpu0 a 0 2M\nprefetch gpu0 b 0 6M\nsync\n"
  assert_int_equal(run(FULL "alloc d 3M device d\nw gpu0 d 0 3M\n", c), 0);
  assert_int_equal(sum.evicted, 4 << 20);
  assert_int_equal(result.resident_gpu_bytes, 4 << 20);
  assert_int_equal(run(FULL "alloc d 8M device d\nfree d\n", c), 0);
  assert_int_equal(sum.evicted, 8 << 20);
  assert_int_equal(run(FULL "alloc d 9M device d\n", c), UVM_EINPUT);
  assert_non_null(strstr(error.text, ":11: allocation d: no room for 9437184 bytes on hbm0"));
}

static void test_names(void **state) {
  (void)state;
  static const struct {
    struct uvm_session_config c;
    const char *says;
  } rows[] = {
      {{.machine = "nvidia-h20"}, "nvidia-h200"}, {{.policy = "nvidea"}, "nvidia"},
      {{.driver = "nouveau"}, "nvidia"},          {{.engine = "warp"}, "model"},
      {{.evict = "lru2"}, "lru-service"},         {{.prefetch = "tree"}, "density"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_int_equal(run(HEAD, rows[i].c), UVM_EUSAGE);
    assert_non_null(strstr(error.text, rows[i].says));
  }
}

static void test_driver_version(void **state) {
  (void)state;
  assert_int_equal(run(HEAD, (struct uvm_session_config){0}), 0);
  assert_string_equal(result.driver, "nvidia-580");
  assert_int_equal(run(HEAD, (struct uvm_session_config){.driver = "nvidia-595"}), 0);
  assert_string_equal(result.driver, "nvidia-595");
  const struct uvm_setting version = {"nvidia", "version", "570"};
  assert_int_equal(run(HEAD, (struct uvm_session_config){.settings = &version, .nsettings = 1}), 0);
  assert_string_equal(result.driver, "nvidia-570");
  assert_int_equal(run(HEAD, (struct uvm_session_config){.driver = "amdkfd"}), 0); /* not amdkfd-580: the machine's version is nvidia's */
  assert_string_equal(result.driver, "amdkfd-6");
}

static void test_settings(void **state) {
  (void)state;
  static const struct {
    struct uvm_setting o;
    const char *says;
  } rows[] = {
      {{"nvidia", "batch", "1"}, "fault_batch_count"}, {{"density", "threshold", "x"}, "threshold"}, {{"lru", "x", "1"}, "density"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_int_equal(run(HEAD, (struct uvm_session_config){.settings = &rows[i].o, .nsettings = 1}), UVM_EUSAGE);
    assert_non_null(strstr(error.text, rows[i].says));
  }
  const struct uvm_setting off = {"density", "enable", "0"}; /* one page a fault then */
  assert_int_equal(run(HEAD "w cpu a 0 2M\nr gpu0 a 0 8\n", (struct uvm_session_config){.settings = &off, .nsettings = 1}), 0);
  assert_int_equal(sum.h2d, 4096);
}

/* Half of 2 MiB is less than a chunk: there is always room for one. Three allocations of 2 MiB at 1.5 leave two chunks. */
static void test_oversubscribe(void **state) {
  (void)state;
  assert_int_equal(run(HEAD "r gpu0 a 0 2M\n", (struct uvm_session_config){.oversubscribe = 4}), 0);
  assert_int_equal(result.gpu_capacity, 2 << 20);
  assert_int_equal(
      run(HEAD "alloc b 2M managed b\nalloc c 2M managed c\nr gpu0 a 0 2M\n", (struct uvm_session_config){.oversubscribe = 1.5}), 0);
  assert_int_equal(result.gpu_capacity, 4 << 20);
  assert_int_equal(run("uvmtrace 1\nprocessor cpu\nalloc p 2M pinned p\n", (struct uvm_session_config){.oversubscribe = 2}), UVM_EUSAGE);
}

static void test_too_many_gpus(void **state) {
  (void)state;
  assert_int_equal(run("uvmtrace 1\nprocessor cpu\nprocessor gpu0\nprocessor gpu1\n", (struct uvm_session_config){0}), UVM_EUSAGE);
  assert_non_null(strstr(error.text, "nvidia-h200x2"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_prefetch_used),
      cmocka_unit_test(test_prefetch_used_again),
      cmocka_unit_test(test_link_wait),
      cmocka_unit_test(test_who_waited),
      cmocka_unit_test(test_room_for_device_memory),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_driver_version),
      cmocka_unit_test(test_settings),
      cmocka_unit_test(test_oversubscribe),
      cmocka_unit_test(test_too_many_gpus),
  };
  return UVM_RUN(tests);
}
