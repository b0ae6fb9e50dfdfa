/* What the driver stands on. */
#include <assert.h>
#include "model/model.h"

static struct uvm__device *gpu_of(void *ctx, uvm_proc gpu) {
  struct uvm_engine *x = ctx;
  assert(gpu && gpu < x->machine->nprocs);
  return x->devices[gpu];
}

static uint64_t ring_put(void *ctx, uvm_proc gpu, uvm_ns now) {
  (void)now; /* entries are put when their time has come */
  return gpu_of(ctx, gpu)->put;
}

static uint64_t ring_get(void *ctx, uvm_proc gpu, uint64_t get) {
  struct uvm__device *d = gpu_of(ctx, gpu);
  if (get == UVM_NEVER) return d->get;
  assert(get >= d->get && get <= d->put);
  return d->get = get;
}

static const struct uvm_raw_fault *ring_entry(void *ctx, uvm_proc gpu, uint64_t i) {
  struct uvm_engine *x = ctx;
  const struct uvm__device *d = gpu_of(ctx, gpu);
  assert(i >= d->get && i < d->put);
  return &d->ring[i % x->machine->gpu.ring];
}

static void replay(void *ctx, uvm_proc gpu, uvm_ns now) {
  struct uvm_engine *x = ctx;
  uvm__at(x, now + x->machine->gpu.replay_arrival_ns, UVM__REPLAY, gpu, 0);
}

static void rearm(void *ctx, uvm_proc gpu, uvm_ns now) {
  (void)now;
  uvm__rearm(ctx, gpu_of(ctx, gpu));
}

static size_t notes(void *ctx, uvm_proc gpu, struct uvm_counter_note *out, size_t max) {
  return uvm__take_notes(gpu_of(ctx, gpu), out, max);
}

static void clear_counter(void *ctx, uvm_proc gpu, struct uvm_alloc *a, uint64_t offset, uint32_t threshold) {
  uvm__clear_counter(gpu_of(ctx, gpu), a, offset, threshold);
}

static uvm_ns prepare(void *ctx, const struct uvm_plan *p, uvm_ns now) { return uvm__prepare(ctx, p, now); }
static uvm_ns execute(void *ctx, struct uvm_plan *p, uvm_ns now) { return uvm__execute(ctx, p, now); }

static uvm_ns price(void *ctx, enum uvm_work w, uvm_proc p, uint64_t n) {
  (void)p;
  return uvm__price(ctx, w, n);
}

static void wake(void *ctx, struct uvm_driver_task *t, uvm_ns at) {
  struct uvm_engine *x = ctx;
  uvm__queue_push(&x->queue, (struct uvm__event){.time = uvm_max(at, x->now), .kind = UVM__WAKE, .p = t});
}

static void resume(void *ctx, uint32_t thread, uvm_ns now) {
  if (thread)
    uvm__at(ctx, now, UVM__WARP, 0, thread - 1);
  else
    uvm__at(ctx, now, UVM__HOST, 0, 0);
}

static void complete(void *ctx, uint64_t cookie, uvm_ns now) {
  (void)now;
  if (cookie)
    uvm__op_complete(ctx, cookie);
  else
    uvm__host_complete(ctx);
}

static int fail(void *ctx, int code, const char *fmt, ...) {
  struct uvm_engine *x = ctx;
  if (x->failed) return x->failed; /* the first cause is the one to tell */
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(x->error->text, sizeof x->error->text, fmt, ap);
  va_end(ap);
  x->error->code = code;
  return x->failed = code;
}

void uvm__hw(struct uvm_engine *x, struct uvm_hw *out) {
  *out = (struct uvm_hw){.ctx = x,
                         .ring_put = ring_put,
                         .ring_get = ring_get,
                         .ring_entry = ring_entry,
                         .replay = replay,
                         .rearm = rearm,
                         .notes = notes,
                         .clear_counter = clear_counter,
                         .prepare = prepare,
                         .execute = execute,
                         .price = price,
                         .wake = wake,
                         .resume = resume,
                         .complete = complete,
                         .fail = fail};
}
