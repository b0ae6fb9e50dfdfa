/* Fuzz target of the whole program behind the reader: any trace runs to its end, is refused, or is stopped after a while; the debug
 * build's checks hold, and so does the memory's limit. The first byte chooses machine and memory. */
#include <signal.h>
#include <sys/time.h>
#include "session.h"
#include "tests/fuzz/fuzz.h"

static void stop(int signal_number) {
  (void)signal_number;
  uvm_stop = true;
}

/* CPU time, as libFuzzer has the real one. */
static void stop_after(long ms) {
  signal(SIGVTALRM, stop);
  setitimer(ITIMER_VIRTUAL, &(struct itimerval){.it_value = {.tv_usec = ms * 1000}}, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const machines[] = {"nvidia-h200", "nvidia-h200x2", "amd-mi250x", "nvidia-titanv"};
  if (!size) return 0;
  struct fuzz_file trace = fuzz_open(data + 1, size - 1);
  struct uvm_session_config c = {.trace = trace.path, .machine = machines[*data % 4], .gpu_memory = (uint64_t)(*data / 4) << 21};
  struct uvm_session_result r;
  struct uvm_error e = {0};
  stop_after(100);
  int rc = uvm_session_run(&c, &r, &e);
  stop_after(0);
  uvm_stop = false;
  if (rc) fuzz_check_error(rc, &e);
  MUST(r.peak_gpu_bytes <= r.gpu_capacity);
  fuzz_close(&trace);
  return 0;
}
