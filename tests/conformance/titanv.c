/* One warp of a Titan V adds vectors of one element a page, c[i] = a[i] + b[i]: its 64 reads fault in batches of 56 (all that one
 * uTLB may have outstanding) and 8, then its 32 writes, as four public logs of a patched driver without prefetching show. */
#include "tests/conformance/conformance.h"
#include "trace.h"

static const char trace[] = "uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 2M managed a\nalloc b 2M managed b\nalloc c 2M managed c\n"
                            "w cpu a 0 2M\nw cpu b 0 2M\nw cpu c 0 2M\nkernel gpu0 lanes=32 name=add\n"
                            "r a 0 128K split=cyclic step=4096 width=4\nr b 0 128K split=cyclic step=4096 width=4\n"
                            "w c 0 128K split=cyclic step=4096 width=4\ndone\nsync\n";

struct batches {
  size_t n;
  unsigned raw[8];
};

static void watch(void *ctx, const struct uvm_event *e) {
  struct batches *b = ctx;
  if (e->kind == UVM_E_GPU_BATCH && b->n < 8) b->raw[b->n++] = (unsigned)e->raw;
}

void uvm_conform_titanv(struct uvm_score *s) {
  struct uvm_trace *t = NULL;
  struct uvm_error e;
  int rc = uvm_trace_open_memory(trace, sizeof trace - 1, &t, &e);
  struct batches b = {0};
  struct uvm_observer o = {&b, watch};
  struct uvm_session_config c = {.source = t, .machine = "nvidia-titanv", .prefetch = "none", .observers = &o, .nobservers = 1};
  struct uvm_session_result result;
  if (rc || uvm_session_run(&c, &result, &e))
    uvm_conform_row(s, false, "titanv", "batches of one warp", "%s", e.text);
  else
    uvm_conform_row(s, b.n == 3 && b.raw[0] == 56 && b.raw[1] == 8 && b.raw[2] == 32, "titanv", "batches of one warp",
                    "%u, %u, %u (recorded 56, 8, 32)", b.raw[0], b.raw[1], b.raw[2]);
  uvm_trace_close(t);
}
