#include "report/causes.h"
#include <assert.h>
#include <stdlib.h>
#include "core/plan.h"

#define TEXT(name, text) text,
const char *const uvm_time_cause_names[UVM_TIME_CAUSES] = {UVM_CAUSES(TEXT)};
#undef TEXT

/* What may be under way, the one that time belongs to first. */
enum layer {
  COPYING,
  MEMCPY,
  EVICTING,
  PREFETCHING,
  POPULATING,
  CPU_SERVING,
  GPU_SERVING,
  COUNTING,
  ADVISING,
  THROTTLED,
  TRAPPED,
  GPU_STALLED,
  WRITING,
  RUNNING,
  PREFETCH_PENDING,
  WAITING,
  LAYERS,
};
static const struct {
  uint8_t cause;
  bool blocks;  /* the host does nothing else meanwhile */
  bool of_host; /* takes its time whether or not it waits */
} layers[LAYERS] = {
    [COPYING] = {UVM_CAUSE_TRANSFERS, false, false},
    [MEMCPY] = {UVM_CAUSE_MEMCPY, false, false},
    [EVICTING] = {UVM_CAUSE_EVICTIONS, false, false},
    [PREFETCHING] = {UVM_CAUSE_PREFETCH_CALLS, false, false},
    [POPULATING] = {UVM_CAUSE_FIRST_TOUCHES, false, false},
    [CPU_SERVING] = {UVM_CAUSE_CPU_FAULTS, false, false},
    [GPU_SERVING] = {UVM_CAUSE_GPU_FAULTS, false, false},
    [COUNTING] = {UVM_CAUSE_COUNTERS, false, false},
    [ADVISING] = {UVM_CAUSE_ADVICE, false, true},
    [THROTTLED] = {UVM_CAUSE_THROTTLING, false, false},
    [TRAPPED] = {UVM_CAUSE_CPU_FAULTS, true, false},
    [GPU_STALLED] = {UVM_CAUSE_WAKING, false, false},
    [WRITING] = {UVM_CAUSE_FIRST_WRITES, false, true},
    [RUNNING] = {UVM_CAUSE_KERNELS, false, false},
    [PREFETCH_PENDING] = {UVM_CAUSE_PREFETCH_CALLS, false, false},
    [WAITING] = {UVM_CAUSE_SYNC, true, false},
};

/* -- noting -- */

static void note(struct uvm_causes *c, enum layer layer, uvm_ns begin, uvm_ns end) {
  if (begin < end) UVM_PUSH(&c->spans) = (struct uvm_cause_span){begin, end, (uint8_t)layer};
}

static enum layer served_for(const struct uvm_event *e) {
  switch ((enum uvm_context)e->value) {
  case UVM_X_GPU_FAULT: return GPU_SERVING;
  case UVM_X_CPU_FAULT: return e->bytes ? POPULATING : CPU_SERVING;
  case UVM_X_PREFETCH: return PREFETCHING;
  case UVM_X_EVICT: return EVICTING;
  case UVM_X_COUNTER:
  case UVM_X_UNPIN: return COUNTING;
  case UVM_X_COPY: return MEMCPY;
  case UVM_X_ADVISE: break;
  }
  return ADVISING;
}

void uvm_causes_event(void *causes, const struct uvm_event *e) {
  struct uvm_causes *c = causes;
  uvm_ns end = e->t + e->dur;
  switch ((enum uvm_event_kind)e->kind) {
  case UVM_E_TRANSFER: note(c, COPYING, e->t, end); break;
  case UVM_E_COPY: note(c, MEMCPY, e->t, end); break;
  case UVM_E_SERVICE: note(c, served_for(e), e->t, end); break;
  case UVM_E_GPU_BATCH: note(c, GPU_SERVING, e->t + e->wait, end); break;
  case UVM_E_THROTTLE: note(c, THROTTLED, e->t, end); break;
  case UVM_E_STALL: note(c, e->proc ? GPU_STALLED : TRAPPED, e->t, end); break;
  case UVM_E_FIRST_WRITES: note(c, WRITING, e->t, end); break;
  case UVM_E_KERNEL: note(c, RUNNING, e->t, end); break;
  case UVM_E_PREFETCH: note(c, PREFETCH_PENDING, e->t, end); break;
  case UVM_E_WAIT: note(c, WAITING, e->t, end); break;
  default: break;
  }
}

/* -- settling -- */

struct edge {
  uvm_ns at;
  uint8_t layer;
  int8_t by;
};

static int by_time(const void *a, const void *b) {
  const struct edge *x = a, *y = b;
  return x->at < y->at ? -1 : x->at > y->at;
}

static uint8_t cause_of(const int64_t under_way[LAYERS]) {
  bool blocked = false;
  for (int l = 0; l < LAYERS; l++) blocked |= layers[l].blocks && under_way[l];
  for (int l = 0; l < LAYERS; l++)
    if (under_way[l] && (blocked || layers[l].of_host)) return layers[l].cause;
  return UVM_CAUSE_HOST;
}

void uvm_causes_settle(struct uvm_causes *c) {
  size_t n = 2 * c->spans.n;
  struct edge *edges = uvm_mem((n + 1) * sizeof *edges);
  for (size_t i = 0; i < c->spans.n; i++) {
    const struct uvm_cause_span *s = &c->spans.v[i];
    edges[2 * i] = (struct edge){s->begin, s->layer, 1};
    edges[2 * i + 1] = (struct edge){s->end, s->layer, -1};
  }
  qsort(edges, n, sizeof *edges, by_time);
  int64_t under_way[LAYERS] = {0};
  UVM_PUSH(&c->segments) = (struct uvm_cause_segment){0, UVM_CAUSE_HOST};
  for (size_t i = 0; i < n;) {
    uvm_ns at = edges[i].at;
    for (; i < n && edges[i].at == at; i++) under_way[edges[i].layer] += edges[i].by;
    uint8_t cause = cause_of(under_way);
    if (cause != c->segments.v[c->segments.n - 1].cause) UVM_PUSH(&c->segments) = (struct uvm_cause_segment){at, cause};
  }
  uvm_mem_free(edges);
  uvm_mem_free(c->spans.v);
  c->spans.v = NULL, c->spans.n = c->spans.cap = 0;
}

/* -- asking -- */

/* The last segment that begins by t. */
static size_t segment_at(const struct uvm_causes *c, uvm_ns t) {
  size_t a = 0, b = c->segments.n;
  while (b - a > 1) {
    size_t m = (a + b) / 2;
    *(c->segments.v[m].begin <= t ? &a : &b) = m;
  }
  return a;
}

void uvm_causes_add(const struct uvm_causes *c, uvm_ns begin, uvm_ns end, uint64_t ns[UVM_TIME_CAUSES]) {
  assert(c->segments.n);
  for (size_t i = segment_at(c, begin); i < c->segments.n && c->segments.v[i].begin < end; i++) {
    uvm_ns from = uvm_max(c->segments.v[i].begin, begin);
    uvm_ns to = i + 1 < c->segments.n ? uvm_min(c->segments.v[i + 1].begin, end) : end;
    ns[c->segments.v[i].cause] += to - from;
  }
}

void uvm_causes_free(struct uvm_causes *c) {
  uvm_mem_free(c->spans.v), uvm_mem_free(c->segments.v);
  *c = (struct uvm_causes){0};
}
