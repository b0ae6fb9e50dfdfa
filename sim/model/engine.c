/* The model engine: takes events off the queue and hands each to its owner, until the session is needed. */
#include <assert.h>
#include "model/model.h"

void uvm__emit(struct uvm_engine *x, struct uvm_engine_event ev) {
  ev.now = x->now;
  UVM_PUSH(&x->outbox) = ev;
}

void uvm__at(struct uvm_engine *x, uvm_ns time, enum uvm__happening kind, uint32_t a, uint32_t b) {
  assert(time >= x->now);
  struct uvm__event *e = uvm__queue_add(&x->queue, time);
  e->kind = (uint8_t)kind;
  e->a = (uint16_t)a;
  e->b = b;
}

int uvm__fail(struct uvm_engine *x, int64_t line, const char *fmt, ...) {
  if (x->failed) return x->failed;
  char text[900];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  return x->failed = uvm_fail(x->error, UVM_EINPUT, "%s:%lld: %s", x->trace ? x->trace : "trace", (long long)line, text);
}

static void interrupted(struct uvm_engine *x, struct uvm__device *d) {
  d->armed = d->interrupting = false;
  uvm__emit(x, (struct uvm_engine_event){.kind = UVM_N_INTERRUPT, .proc = d->proc});
}

static void happen(struct uvm_engine *x, const struct uvm__event *e) {
  struct uvm__device *d = x->devices[e->a];
  switch ((enum uvm__happening)e->kind) {
  case UVM__HOST: uvm__host_run(x); break;
  case UVM__OP: uvm__op_run(x, e->p); break;
  case UVM__WARP: uvm__warp_turn(x, d, e->b); break;
  case UVM__MISS: uvm__miss_arrived(x, d, e->b, e->c); break;
  case UVM__WALK: uvm__walk_ended(x, d); break;
  case UVM__REPLAY: uvm__retry(x, d); break;
  case UVM__INTERRUPT: interrupted(x, d); break;
  case UVM__COUNTERS:
    d->noted = false;
    uvm__emit(x, (struct uvm_engine_event){.kind = UVM_N_COUNTERS, .proc = d->proc});
    break;
  case UVM__WAKE: uvm__emit(x, (struct uvm_engine_event){.kind = UVM_N_WAKE, .task = e->p}); break;
  }
}

/* A GPU's warps are more than the caches near the processor hold: the next one is fetched while this one runs. */
static void fetch_ahead(const struct uvm_engine *x) {
  const struct uvm__event *e = uvm__queue_peek(&x->queue);
  if (!e || e->kind != UVM__WARP) return;
  const char *warp = (const char *)&x->devices[e->a]->warps.v[e->b];
  for (size_t at = 0; at < sizeof(struct uvm__warp); at += 64) __builtin_prefetch(warp + at);
}

/* -- the interface -- */

static int next(struct uvm_engine *x, struct uvm_engine_event *ev, struct uvm_error *e) {
  x->error = e;
  if (x->host.state == UVM__WAITING && x->host.then != UVM_TR_SYNC) uvm__host_notice(x); /* the driver may have come to rest */
  struct uvm__event event;
  while (x->outbox_head == x->outbox.n && !x->failed && !uvm_stop) {
    x->outbox_head = x->outbox.n = 0;
    if (!uvm__queue_pop(&x->queue, &event))
      return uvm_fail(e, UVM_EENV, "nothing is left to happen, but the trace is not through: the driver forgot an access or a call");
    if (event.time > UVM__MAX_NS) return uvm__fail(x, x->host.line, "expected a run of at most 2^53 ns (104 days), found a longer one");
    assert(event.time >= x->now);
    x->now = event.time;
    fetch_ahead(x);
    happen(x, &event);
  }
  if (x->failed) return x->failed;
  if (x->outbox_head == x->outbox.n) return 0;
  *ev = x->outbox.v[x->outbox_head++];
  return 1;
}

static int feed(struct uvm_engine *x, const struct uvm_trace_record *r, size_t n, struct uvm_error *e) {
  x->error = e;
  size_t hits = uvm__pass_hits(x, r, n);
  if (hits) return uvm__emit(x, (struct uvm_engine_event){.kind = UVM_N_FEED}), (int)hits;
  int rc = uvm__host_feed(x, n ? r : NULL);
  return rc < 0 ? rc : n > 0;
}

static int open_model(const struct uvm_engine_config *c, struct uvm_engine **out, struct uvm_error *e) {
  struct uvm_engine *x = uvm_mem(sizeof *x);
  x->error = e;
  x->core = c->core;
  x->machine = c->machine;
  x->trace = c->trace;
  x->host.last_gpu = c->machine->nprocs > 1;
  x->random = c->core->seed;
  for (uvm_proc p = 0; p < c->machine->nprocs; p++) x->devices[p] = uvm__device_create(c->machine, p, c->core->seed);
  x->host.state = UVM__PAUSING;
  uvm__at(x, 0, UVM__HOST, 0, 0);
  *out = x;
  return 0;
}

static void close_model(struct uvm_engine *x) {
  uvm__streams_close(x);
  uvm__host_forget(x);
  for (uvm_proc p = 0; p < x->machine->nprocs; p++) uvm__device_destroy(x->devices[p]);
  for (size_t i = 0; i < x->host.sections.n; i++) uvm_mem_free(x->host.sections.v[i].name);
  uvm_mem_free(x->host.sections.v);
  uvm_mem_free(x->outbox.v);
  uvm__queue_release(&x->queue);
  uvm_mem_free(x);
}

static uvm_ns now(const struct uvm_engine *x) { return x->now; }

const struct uvm_engine_ops uvm_engine_model = {
    .name = "model",
    .help = "virtual time: an event queue with SMs, warps, faults, copy engines and links",
    .capabilities = UVM_CAN_ACCESS | UVM_CAN_COUNTERS,
    .open = open_model,
    .hw = uvm__hw,
    .feed = feed,
    .next = next,
    .now = now,
    .close = close_model,
};
