/* Fuzz target of machine profiles: any bytes are read or refused; on a machine that was accepted every transfer has a way and takes
 * its time, and a small trace runs to its end or is refused. */
#include "machine/machine.h"
#include "session.h"
#include "tests/fuzz/fuzz.h"

static const char trace[] = "uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 4M managed a\nw cpu a 0 64K\n"
                            "kernel gpu0 lanes=128\nr a 0 1M split=cyclic step=4K\ndone\nprefetch cpu a 0 4M\nsync\nr cpu a 0 64K\n";

static void check_transfers(struct uvm_machine *m) {
  for (uvm_node a = 0; a < m->nnodes; a++)
    for (uvm_node b = 0; b < m->nnodes; b++) {
      if (a == b) continue;
      const struct uvm_transfer t = {a, b, UVM_L_MIGRATION, 4096, 10};
      struct uvm_reservation r = uvm_machine_reserve(m, &t, 1000);
      MUST(r.begin >= 1000 && r.end >= r.begin + 10);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct fuzz_file f = fuzz_open(data, size), t = fuzz_open(trace, sizeof trace - 1);
  struct uvm_machine *m;
  struct uvm_error e = {0};
  int rc = uvm_machine_open(f.path, "traced", &m, &e);
  if (!rc) {
    check_transfers(m);
    uvm_machine_close(m);
    struct uvm_session_result r;
    rc = uvm_session_run(&(struct uvm_session_config){.trace = t.path, .machine = f.path, .gpu_memory = 2 << 20}, &r, &e);
  }
  if (rc) fuzz_check_error(rc, &e);
  fuzz_close(&f), fuzz_close(&t);
  return 0;
}
