/* The host thread, streams, sections and what accesses cost and count. Times follow from the profile by arithmetic. */
#include "machine/machine.h"
#include "tests/unit/model_fixture.h"

static struct uvm_machine *machine(void) {
  struct uvm_machine *m;
  assert_int_equal(uvm_machine_open("nvidia-h200", "measured", &m, NULL), 0);
  return m;
}

/* -- CPU loops -- */

static const struct uvm_event *summary(const struct replay *r, uint32_t line) {
  for (size_t i = 0; i < replay_count(r, UVM_E_ACCESS); i++)
    if (replay_event(r, UVM_E_ACCESS, i)->line == line) return replay_event(r, UVM_E_ACCESS, i);
  fail_msg("no accesses of line %u", line);
  return NULL;
}

/* Elements as the trace writes them: ceil(LEN / step). */
static void loops_count_elements(void **state) {
  (void)state;
  struct replay r = replay_good(
      HEAD "alloc a 4M managed a\n"
           "w cpu a 0 4M step=4 width=4\nr cpu a 0 4M\nr cpu a 10 10000 step=3000 width=5000\nrw cpu a 4090 12 step=12 width=12\n",
      NULL, NULL);
  assert_int_equal(summary(&r, 5)->value, 1 << 20);
  assert_int_equal(summary(&r, 5)->access, UVM_A_WRITE);
  assert_int_equal(summary(&r, 6)->value, 1 << 10);
  assert_int_equal(summary(&r, 7)->value, 4);
  assert_int_equal(summary(&r, 8)->value, 1);
  assert_int_equal(r.result.accesses, (1 << 20) + (1 << 10) + 4 + 1);
  replay_free(&r);
}

/* Recorded: a touch of a mapped page 9 ns, an element 0.5 ns. A loop that finds everything mapped takes just that. */
static void hits_take_their_time(void **state) {
  (void)state;
  struct uvm_machine *m = machine();
  struct replay r = replay_good(
      HEAD "alloc a 4M managed a\nw cpu a 0 4M\nbegin dense\nr cpu a 0 4M step=4 width=4\nend\nbegin sparse\nr cpu a 0 4M\nend\n", NULL,
      NULL);
  uint64_t pages = 1024 * m->cpu.page_ns;
  assert_int_equal(replay_time_of(&r, "dense"), pages + (1 << 20) * m->cpu.element_ps / 1000);
  assert_int_equal(replay_time_of(&r, "sparse"), pages + 1024 * m->cpu.element_ps / 1000);
  uvm_machine_close(m);
  replay_free(&r);
}

/* The element at 4090 lies on two pages: both fault, the lower first. */
static void an_access_over_a_page_end_faults_twice(void **state) {
  (void)state;
  struct replay r = replay_good(HEAD "alloc a 2M managed a\nw cpu a 4090 12 step=12 width=12\n", NULL, "none");
  assert_int_equal(replay_count(&r, UVM_E_CPU_FAULT), 2);
  assert_int_equal(replay_event(&r, UVM_E_CPU_FAULT, 0)->offset, 0);
  assert_int_equal(replay_event(&r, UVM_E_CPU_FAULT, 1)->offset, 4096);
  replay_free(&r);
}

/* Recorded: six faults bring a 2 MiB block back, the density rule growing them; each stalls the thread. */
static void every_cpu_fault_stalls_the_thread(void **state) {
  (void)state;
  struct replay r = replay_good(HEAD "alloc a 2M managed a\nw cpu a 0 2M\nprefetch gpu0 a 0 2M\nsync\nr cpu a 0 2M\n", NULL, NULL);
  size_t first = 0, stalls = 0;
  for (size_t i = 0; i < replay_count(&r, UVM_E_CPU_FAULT); i++) first += replay_event(&r, UVM_E_CPU_FAULT, i)->line == 5;
  for (size_t i = 0; i < replay_count(&r, UVM_E_STALL); i++) stalls += replay_event(&r, UVM_E_STALL, i)->line == 8;
  assert_int_equal(replay_count(&r, UVM_E_CPU_FAULT) - first, 6);
  assert_int_equal(stalls, 6);
  replay_free(&r);
}

/* -- sections, waits, streams -- */

static void sections_nest_and_are_host_time(void **state) {
  (void)state;
  struct replay r = replay_good(HEAD "begin outer/3\ndelay cpu 1000\nbegin inner\ndelay cpu 500\nend\nend\n", NULL, NULL);
  const struct uvm_event *inner = replay_event(&r, UVM_E_SECTION, 0), *outer = replay_event(&r, UVM_E_SECTION, 1);
  assert_int_equal(inner->dur, 500);
  assert_int_equal(outer->dur, 1500);
  assert_int_equal(outer->value, 3);
  assert_int_equal(inner->t, outer->t + 1000);
  assert_int_equal(replay_event(&r, UVM_E_SECTION_BEGIN, 0)->t, outer->t);
  replay_free(&r);
}

/* A section waits for nothing; sync waits; two kernels of 1 ms in one stream take 2 ms, in two streams 1 ms and a call. */
static void work_in_a_stream_runs_in_order_and_streams_side_by_side(void **state) {
  (void)state;
  struct uvm_machine *m = machine();
  struct replay r = replay_good(
      HEAD "begin launch\nkernel gpu0 lanes=1 ns=1000000\ndone\nend\nsync\n"
           "begin one\nkernel gpu0 lanes=1 ns=1000000 stream=1\ndone\nkernel gpu0 lanes=1 ns=1000000 stream=1\ndone\nsync stream=1\nend\n"
           "begin two\nkernel gpu0 lanes=1 ns=1000000 stream=1\ndone\nkernel gpu0 lanes=1 ns=1000000 stream=2\ndone\nsync\nend\n",
      NULL, NULL);
  assert_int_equal(replay_time_of(&r, "launch"), m->costs.call_ns);
  assert_int_equal(replay_time_of(&r, "one"), 2000000 + m->costs.sync_ns);
  assert_int_equal(replay_time_of(&r, "two"), 1000000 + m->costs.call_ns + m->costs.sync_ns);
  uvm_machine_close(m);
  replay_free(&r);
}

/* Pages that came back with others are written for the first time at a price of the operating system's, read at none. */
static void first_writes_cost_the_cpu(void **state) {
  (void)state;
  struct uvm_machine *m = machine();
  struct replay r = replay_good(HEAD "alloc a 2M managed a\nw cpu a 0 2M\nprefetch gpu0 a 0 2M\nprefetch cpu a 0 2M\nsync\n"
                                     "begin read\nr cpu a 0 2M step=4096\nend\nbegin first\nw cpu a 0 2M step=4096\nend\n"
                                     "begin again\nw cpu a 0 2M step=4096\nend\n",
                                NULL, NULL);
  assert_int_equal(replay_time_of(&r, "read"), replay_time_of(&r, "again"));
  assert_int_equal(replay_time_of(&r, "first") - replay_time_of(&r, "again"), 512 * m->costs.cpu_first_write_ns);
  uint64_t told = 0;
  for (size_t i = 0; i < replay_count(&r, UVM_E_FIRST_WRITES); i++) told += replay_event(&r, UVM_E_FIRST_WRITES, i)->dur;
  assert_int_equal(told, 512 * m->costs.cpu_first_write_ns);
  uvm_machine_close(m);
  replay_free(&r);
}

/* Nobody waits for a store: 512 steps that only write pass faster than 512 that read, by the difference of their latencies. */
static void steps_that_write_do_not_wait(void **state) {
  (void)state;
  struct uvm_machine *m = machine();
  struct replay r = replay_good(HEAD "alloc a 2M managed a\nw cpu a 0 2M\nprefetch gpu0 a 0 2M\nsync\n"
                                     "begin read\nkernel gpu0 lanes=1\nr a 0 2M split=cyclic step=4096\ndone\nsync\nend\n"
                                     "begin write\nkernel gpu0 lanes=1\nw a 0 2M split=cyclic step=4096\ndone\nsync\nend\n",
                                NULL, NULL);
  assert_int_equal(replay_time_of(&r, "read") - replay_time_of(&r, "write"), 512 * (m->gpu.step_ns - m->gpu.store_step_ns));
  uvm_machine_close(m);
  replay_free(&r);
}

/* ns= is the duration when nothing faults; a stall adds to it. */
static void faults_add_to_a_kernels_duration(void **state) {
  (void)state;
  struct replay r = replay_good(HEAD "alloc a 2M managed a\nw cpu a 0 2M\n"
                                     "kernel gpu0 lanes=1 ns=50000\nr a 0 8\ndone\nkernel gpu0 lanes=1 ns=50000\nr a 0 8\ndone\nsync\n",
                                NULL, NULL);
  const struct uvm_event *stall = NULL;
  for (size_t i = 0; i < replay_count(&r, UVM_E_STALL); i++)
    if (replay_event(&r, UVM_E_STALL, i)->proc == 1) stall = replay_event(&r, UVM_E_STALL, i);
  assert_non_null(stall);
  assert_int_equal(replay_event(&r, UVM_E_KERNEL, 0)->dur, 50000 + stall->dur);
  assert_int_equal(replay_event(&r, UVM_E_KERNEL, 1)->dur, 50000);
  replay_free(&r);
}

/* A wait holds its stream until the event's record has run, and means the latest record. */
static void a_wait_holds_its_stream(void **state) {
  (void)state;
  struct replay r = replay_good(
      HEAD "kernel gpu0 lanes=1 ns=1000000 stream=1 name=first\ndone\nrecord e stream=1\nwait e stream=2\n"
           "kernel gpu0 lanes=1 ns=1000 stream=2 name=second\ndone\nkernel gpu0 lanes=1 ns=1000 stream=3 name=free\ndone\nsync\n",
      NULL, NULL);
  const struct uvm_event *free_one = replay_event(&r, UVM_E_KERNEL, 0), *first = replay_event(&r, UVM_E_KERNEL, 1),
                         *second = replay_event(&r, UVM_E_KERNEL, 2);
  assert_true(free_one->t < first->t + first->dur);
  assert_int_equal(second->t, first->t + first->dur);
  replay_free(&r);
}

/* free waits for everything in flight first. */
static void free_waits(void **state) {
  (void)state;
  struct replay r = replay_good(HEAD "alloc a 2M managed a\nkernel gpu0 lanes=1 ns=1000000\nw a 0 8\ndone\nfree a\n", NULL, NULL);
  const struct uvm_event *k = replay_event(&r, UVM_E_KERNEL, 0), *f = replay_event(&r, UVM_E_FREE, 0);
  assert_true(f->t >= k->t + k->dur);
  replay_free(&r);
}

/* -- resident kernels -- */

/* Recorded: launch and wait, then bytes / 4.16 TB/s; once computed without steps (the host waits), once by steps (it does not). */
static void a_resident_read_takes_its_bytes_either_way(void **state) {
  (void)state;
  const char *head = HEAD "alloc a 256M managed a\nprefetch gpu0 a 0 256M\nsync\nkernel gpu0 lanes=270336 lanes_per_block=256\nr a 0 256M "
                          "split=cyclic width=16\ndone\n";
  const char *tails[] = {"sync\n", "delay cpu 10000000\nsync\n"};
  uint64_t moving = (256ull << 20) / 4160;
  for (int i = 0; i < 2; i++) {
    char *text = uvm_format("%s%s", head, tails[i]);
    struct replay r = replay_good(text, NULL, NULL);
    assert_int_equal(replay_count(&r, UVM_E_GPU_BATCH), 0);
    uint64_t dur = replay_event(&r, UVM_E_KERNEL, 0)->dur;
    assert_in_range(dur, moving, moving + 10000);
    assert_int_equal(replay_event(&r, UVM_E_ACCESS, 0)->value, 16 << 20);
    uvm_mem_free(text);
    replay_free(&r);
  }
}

/* Recorded: 51.4 GB/s; all bytes are told as remote, and nothing faults after the advice. */
static void remote_reads_are_counted_and_slow(void **state) {
  (void)state;
  struct replay r = replay_good(
      HEAD "alloc a 16M managed a\nadvise set_preferred_location cpu a 0 16M\nadvise set_accessed_by gpu0 a 0 16M\nw cpu a 0 16M\n"
           "kernel gpu0 lanes=270336 lanes_per_block=256\nr a 0 16M split=cyclic width=16\ndone\nsync\n",
      NULL, NULL);
  assert_int_equal(replay_count(&r, UVM_E_GPU_BATCH), 0);
  assert_int_equal(summary(&r, 9)->bytes, 16 << 20);
  uint64_t moving = (16ull << 20) * 10 / 514;
  assert_in_range(replay_event(&r, UVM_E_KERNEL, 0)->dur, moving, moving + moving / 10);
  replay_free(&r);
}

/* -- kernels of the CPU -- */

/* N host threads: each page faults for the thread that touches it; more lanes than threads take turns. */
static void cpu_kernels_run_on_threads(void **state) {
  (void)state;
  struct replay r = replay_good(
      HEAD "alloc a 2M managed a\nkernel cpu lanes=1000 lanes_per_block=1000\nw a 0 2M split=cyclic step=4096\ndone\nsync cpu\n", NULL,
      "none");
  assert_int_equal(replay_count(&r, UVM_E_CPU_FAULT), 512);
  assert_int_equal(summary(&r, 6)->value, 512);
  assert_int_equal(replay_event(&r, UVM_E_KERNEL, 0)->proc, 0);
  replay_free(&r);
}

/* A loop by a GPU is one lane that the host waits for. */
static void a_gpu_loop_is_synchronous(void **state) {
  (void)state;
  struct replay r = replay_good(HEAD "alloc a 2M managed a\nw cpu a 0 2M\nr gpu0 a 0 16384\nw cpu a 0 8\n", NULL, "none");
  const struct uvm_event *k = replay_event(&r, UVM_E_KERNEL, 0);
  assert_int_equal(replay_count(&r, UVM_E_GPU_BATCH), 4);
  size_t n = replay_count(&r, UVM_E_CPU_FAULT);
  assert_true(replay_event(&r, UVM_E_CPU_FAULT, n - 1)->t >= k->t + k->dur);
  replay_free(&r);
}

/* -- memory that does not migrate, copies -- */

static void unmanaged_memory_never_faults(void **state) {
  (void)state;
  struct replay r =
      replay_good(HEAD "alloc d 2M device d\nalloc p 2M pinned p\nalloc h 2M host h\nw cpu p 0 2M\nw cpu h 0 2M\nmemcpy d 0 h 0 2M\n"
                       "kernel gpu0 lanes=32\nr p 0 4096 split=cyclic\nw d 0 4096 split=cyclic\ndone\nsync\n",
                  NULL, NULL);
  assert_int_equal(replay_count(&r, UVM_E_GPU_BATCH) + replay_count(&r, UVM_E_CPU_FAULT), 0);
  assert_int_equal(summary(&r, 11)->bytes, 4096); /* pinned memory is remote for the GPU */
  assert_int_equal(summary(&r, 12)->bytes, 0);
  replay_free(&r);
}

/* Recorded link: 256 MiB in 4.85 ms at 55.3 GB/s. */
static void a_memcpy_takes_its_bytes(void **state) {
  (void)state;
  struct replay r =
      replay_good(HEAD "alloc d 256M device d\nalloc p 256M pinned p\nbegin copy\nmemcpy d 0 p 0 256M\nsync\nend\n", NULL, NULL);
  uint64_t moving = (256ull << 20) * 10 / 553;
  assert_in_range(replay_time_of(&r, "copy"), moving, moving + 10000);
  const struct uvm_event *copy = replay_event(&r, UVM_E_COPY, 0), *wait = replay_event(&r, UVM_E_WAIT, 0);
  assert_true(copy->bytes == 256 << 20 && copy->src == 0 && copy->dst == 1 && copy->dur >= moving);
  struct uvm_machine *m = machine();
  assert_int_equal(wait->dur, replay_time_of(&r, "copy") - m->costs.call_ns); /* the host called, then waited */
  assert_int_equal(wait->t + wait->dur, copy->t + copy->dur + m->costs.sync_ns);
  uvm_machine_close(m);
  replay_free(&r);
}

/* A managed side's pages are made to exist, and stay where they are. */
static void a_memcpy_moves_no_page(void **state) {
  (void)state;
  struct replay r =
      replay_good(HEAD "alloc a 2M managed a\nalloc d 2M device d\nw cpu a 0 1M\nmemcpy d 0 a 0 2M\nsync\nr cpu a 0 2M\n", NULL, "none");
  assert_int_equal(replay_count(&r, UVM_E_TRANSFER), 0);
  replay_free(&r);
}

struct bad {
  const char *text, *said;
};
static const struct bad bads[] = {
    {"alloc d 2M device d\nr cpu d 0 8\n", ":5: expected memory that cpu can access"},
    {"alloc h 2M host h\nkernel gpu0 lanes=1\nr h 0 8\ndone\nsync\n", ":6: expected memory that gpu0 can access"},
    {"kernel gpu0 lanes=5000 lanes_per_block=5000\ndone\nsync\n", ":4: expected at most 2048 lanes in a block"},
    {"alloc a 2M managed a\nprefetch hbm7 a 0 2M\n", ":5: expected a processor or a node of machine nvidia-h200"},
    {"alloc d 200G device d\n", ":4: "},
};

static void impossible_accesses_name_their_line(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
    char *text = uvm_format(HEAD "%s", bads[i].text);
    struct replay r = replay_text(text, NULL, NULL);
    if (r.rc != UVM_EINPUT || !strstr(r.error.text, bads[i].said)) fail_msg("%d: %s", r.rc, r.error.text);
    uvm_mem_free(text);
    replay_free(&r);
  }
}

/* -- the same again -- */

static void a_run_repeats_exactly(void **state) {
  (void)state;
  const char *text = HEAD "alloc a 32M managed a\nw cpu a 0 32M\nkernel gpu0 lanes=270336 lanes_per_block=256\nrw a 0 32M split=blocked "
                          "width=16\ndone\nr cpu a 0 32M\nsync\n";
  struct replay a = replay_good(text, NULL, NULL), b = replay_good(text, NULL, NULL);
  assert_int_equal(a.events.n, b.events.n);
  for (size_t i = 0; i < a.events.n; i++) {
    const struct uvm_event *x = &a.events.v[i].e, *y = &b.events.v[i].e;
    assert_true(x->kind == y->kind && x->t == y->t && x->dur == y->dur && x->offset == y->offset && x->value == y->value);
  }
  assert_int_equal(a.result.sim_ns, b.result.sim_ns);
  replay_free(&a);
  replay_free(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loops_count_elements),
      cmocka_unit_test(hits_take_their_time),
      cmocka_unit_test(an_access_over_a_page_end_faults_twice),
      cmocka_unit_test(every_cpu_fault_stalls_the_thread),
      cmocka_unit_test(sections_nest_and_are_host_time),
      cmocka_unit_test(work_in_a_stream_runs_in_order_and_streams_side_by_side),
      cmocka_unit_test(first_writes_cost_the_cpu),
      cmocka_unit_test(steps_that_write_do_not_wait),
      cmocka_unit_test(faults_add_to_a_kernels_duration),
      cmocka_unit_test(a_wait_holds_its_stream),
      cmocka_unit_test(free_waits),
      cmocka_unit_test(a_resident_read_takes_its_bytes_either_way),
      cmocka_unit_test(remote_reads_are_counted_and_slow),
      cmocka_unit_test(cpu_kernels_run_on_threads),
      cmocka_unit_test(a_gpu_loop_is_synchronous),
      cmocka_unit_test(unmanaged_memory_never_faults),
      cmocka_unit_test(a_memcpy_takes_its_bytes),
      cmocka_unit_test(a_memcpy_moves_no_page),
      cmocka_unit_test(impossible_accesses_name_their_line),
      cmocka_unit_test(a_run_repeats_exactly),
  };
  return UVM_RUN(tests);
}
