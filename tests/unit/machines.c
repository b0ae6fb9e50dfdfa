/* Every built-in machine runs every sample to its end and makes sense of it: time passes, memory is not exceeded, no copy is faster
 * than its links. And the two whose memories are unlike the others': one that is shared, one that is nobody's home. */
#include "machine/machine.h"
#include "session.h"
#include "tests/unit/files.h"

static const char *const samples[] = {"first_touch", "oversubscribed", "pingpong", "vecadd"};

static struct {
  double fastest; /* of the machine's links, bytes a ns; rounding aside */
  uint64_t copied, between_hosts, remote, remote_maps, cpu_faults;
  uvm_ns cpu_read; /* sections of this name */
} seen;

static void watch(void *ctx, const struct uvm_event *e) {
  (void)ctx;
  if (e->kind == UVM_E_TRANSFER) {
    assert_true((double)e->bytes <= seen.fastest * (double)(e->dur + 1));
    seen.copied += e->bytes;
    if (e->src != 1 && e->dst != 1) seen.between_hosts += e->bytes;
  }
  if (e->kind == UVM_E_ACCESS) seen.remote += e->bytes;
  if (e->kind == UVM_E_REMOTE_MAP) seen.remote_maps++;
  if (e->kind == UVM_E_CPU_FAULT) seen.cpu_faults++;
  if (e->kind == UVM_E_SECTION && !strcmp(e->name, "cpu_read")) seen.cpu_read += e->dur;
}

static double fastest_link(const char *name) {
  struct uvm_machine *m;
  assert_int_equal(uvm_machine_open(name, "measured", &m, NULL), 0);
  double rate = 0;
  for (int i = 0; i < m->nlinks; i++) {
    if (m->links[i].up > rate) rate = m->links[i].up;
    if (m->links[i].down > rate) rate = m->links[i].down;
  }
  uvm_machine_close(m);
  return rate * 1e-9;
}

static void run(const char *machine, const char *trace, double oversubscribe) {
  struct uvm_session_result r;
  struct uvm_error e;
  struct uvm_observer o = {NULL, watch};
  memset(&seen, 0, sizeof seen);
  seen.fastest = fastest_link(machine);
  struct uvm_session_config c = {
      .trace = trace, .machine = machine, .oversubscribe = oversubscribe, .observers = &o, .nobservers = 1};
  int rc = uvm_session_run(&c, &r, &e);
  if (rc) fail_msg("%s on %s: %s", trace, machine, e.text);
  assert_true(r.sim_ns > 0);
  assert_true(r.peak_gpu_bytes <= r.gpu_capacity);
}

static void every_machine_runs_every_sample(void **state) {
  (void)state;
  for (const struct uvm_machine_entry *m = uvm_machines; m->name; m++)
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
      char *path = uvm_format("traces/samples/%s.uvt", samples[i]);
      run(m->name, path, 0);
      run(m->name, path, 2);
      uvm_mem_free(path);
    }
}

/* One memory: nothing moves and nothing is far, however little of it the trace is given. */
static void on_one_memory_nothing_moves(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
    char *path = uvm_format("traces/samples/%s.uvt", samples[i]);
    run("amd-mi300a", path, i % 2 ? 2 : 0);
    assert_int_equal(seen.copied, 0);
    assert_int_equal(seen.remote, 0);
    assert_int_equal(seen.remote_maps, 0);
    uvm_mem_free(path);
  }
}

/* 4 MiB that the CPU has written go to the expander when asked to, 12 first touches (6 a block) after they were made in DRAM, where
 * first touches belong. The CPU reads them there without a fault: 4 MiB at 17.7 GB/s take 237 us. The GPU's fault takes them into
 * its memory. */
static void pages_on_an_expander_are_the_cpus(void **state) {
  (void)state;
  static const char before[] = "uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 4M managed a\nw cpu a 0 4M\n",
                    after[] = "begin cpu_read\nr cpu a 0 4M step=64 width=64\nend\nr gpu0 a 0 4M\n";
  for (int moved = 0; moved < 2; moved++) {
    char path[64], *text = uvm_format("%s%s%s", before, moved ? "prefetch cxl0 a 0 4M\nsync\n" : "", after);
    spew(temporary(path, ".uvt"), text, strlen(text));
    uvm_mem_free(text);
    run("cxl-host", path, 0);
    assert_int_equal(seen.cpu_faults, 12);
    assert_int_equal(seen.between_hosts, moved ? 4 << 20 : 0);
    assert_int_equal(seen.remote, moved ? 4 << 20 : 0);
    assert_int_equal(seen.remote_maps, 0);
    assert_int_equal(seen.copied - seen.between_hosts, 4 << 20);
    if (moved) assert_in_range(seen.cpu_read, 236000, 240000);
    unlink(path);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_machine_runs_every_sample), cmocka_unit_test(on_one_memory_nothing_moves),
                                     cmocka_unit_test(pages_on_an_expander_are_the_cpus)};
  return UVM_RUN(tests);
}
