#include "report/metrics.h"
#include <assert.h>

#define INFO(key, unit) {#key, unit, offsetof(struct uvm_counters, key)},
const struct uvm_counter_info uvm_counter_info[] = {UVM_COUNTERS(INFO){NULL, UVM_COUNT, 0}};
#undef INFO
#define INFO(key, unit) {#key, unit, offsetof(struct uvm_proc_counters, key)},
const struct uvm_counter_info uvm_proc_counter_info[] = {UVM_PROC_COUNTERS(INFO){NULL, UVM_COUNT, 0}};
#undef INFO

/* The peak is the session's to say. */
static struct uvm_counters fresh(void) { return (struct uvm_counters){.peak_gpu_bytes = UVM_UNKNOWN}; }

void uvm_counters_add(struct uvm_counters *a, const struct uvm_counters *b) {
  for (const struct uvm_counter_info *i = uvm_counter_info; i->key; i++) {
    uint64_t *to = (uint64_t *)((char *)a + i->offset), from = uvm_counter_get(b, i);
    *to = *to == UVM_UNKNOWN || from == UVM_UNKNOWN ? UVM_UNKNOWN : *to + from;
  }
}

void uvm_metrics_init(struct uvm_metrics *m, const struct uvm_places *places) {
  *m = (struct uvm_metrics){.places = *places, .total = fresh(), .open = SIZE_MAX};
}

void uvm_metrics_free(struct uvm_metrics *m) {
  for (size_t i = 0; i < m->sections.n; i++) uvm_mem_free(m->sections.v[i].name);
  for (size_t i = 0; i < m->allocs.n; i++) {
    struct uvm_alloc_metrics *a = &m->allocs.v[i];
    uvm_mem_free(a->id), uvm_mem_free(a->label), uvm_mem_free(a->procs);
  }
  uvm_mem_free(m->sections.v), uvm_mem_free(m->allocs.v);
  *m = (struct uvm_metrics){0};
}

static void count_transfer(struct uvm_counters *c, const struct uvm_places *p, const struct uvm_event *e) {
  switch (uvm_places_direction(p, e->src, e->dst)) {
  case UVM_H2D: c->h2d_bytes += e->bytes, c->h2d_copies++; break;
  case UVM_D2H: c->d2h_bytes += e->bytes, c->d2h_copies++; break;
  case UVM_D2D: c->d2d_bytes += e->bytes; break;
  case UVM_H2H: break;
  }
  c->link_wait_ns += e->wait;
  if (e->cause == UVM_C_PREFETCH) c->prefetched_bytes += e->bytes;
  if (e->cause == UVM_C_EVICTION) c->evicted_bytes += e->bytes;
}

static void count(struct uvm_counters *c, const struct uvm_places *p, const struct uvm_event *e) {
  switch ((enum uvm_event_kind)e->kind) {
  case UVM_E_TRANSFER: count_transfer(c, p, e); break;
  case UVM_E_GPU_BATCH: c->fault_batches++; break;
  case UVM_E_GPU_FAULT:
    c->gpu_faults += !e->spurious;
    c->throttled_faults += e->hint == UVM_HINT_THROTTLE;
    break;
  case UVM_E_CPU_FAULT: c->cpu_faults++; break;
  case UVM_E_PREFETCH_USED: c->prefetch_used_bytes += e->bytes; break;
  case UVM_E_DUPLICATE: c->duplicated_bytes += uvm_event_pages(e) * UVM_PAGE; break;
  case UVM_E_REVOKE: c->revocations += uvm_event_pages(e); break;
  case UVM_E_EVICT: c->evictions++; break;
  case UVM_E_THRASH: c->thrashing_pages++; break;
  case UVM_E_THROTTLE: c->throttles++; break;
  case UVM_E_REMOTE_MAP: c->remote_maps++; break;
  case UVM_E_ACCESS: c->accesses += e->value, c->remote_bytes += e->bytes, c->link_wait_ns += e->wait; break;
  case UVM_E_STALL: *(e->proc ? &c->fault_stall_ns : &c->cpu_stall_ns) += e->dur; break;
  default: break;
  }
}

/* -- per processor -- */

static void count_access(struct uvm_proc_counters *c, const struct uvm_event *e) {
  *(e->access == UVM_A_ATOMIC ? &c->atomics : e->access == UVM_A_WRITE ? &c->writes : &c->reads) += e->value;
  c->remote_bytes += e->bytes;
}

static void count_proc(struct uvm_proc_counters *procs, const struct uvm_places *p, const struct uvm_event *e) {
  if (e->kind == UVM_E_TRANSFER) { /* the CPU stands for the host's side */
    if (e->src < p->nnodes) procs[p->gpu[e->src] + 1].bytes_out += e->bytes;
    if (e->dst < p->nnodes) procs[p->gpu[e->dst] + 1].bytes_in += e->bytes;
    return;
  }
  unsigned proc = e->kind == UVM_E_CPU_FAULT ? 0 : e->proc;
  if (proc >= p->nprocs) return;
  struct uvm_proc_counters *c = &procs[proc];
  switch ((enum uvm_event_kind)e->kind) {
  case UVM_E_ACCESS: count_access(c, e); break;
  case UVM_E_CPU_FAULT: c->faults++; break;
  case UVM_E_GPU_FAULT: c->faults += !e->spurious, c->throttled_faults += e->hint == UVM_HINT_THROTTLE; break;
  case UVM_E_GPU_BATCH: c->fault_batches++; break;
  case UVM_E_REMOTE_MAP: c->remote_maps++; break;
  case UVM_E_THROTTLE: c->throttles++; break;
  case UVM_E_STALL: c->stall_ns += e->dur; break;
  default: break;
  }
}

/* -- allocations -- */

static struct uvm_alloc_metrics *alloc_at(struct uvm_metrics *m, uint32_t number) {
  while (m->allocs.n <= number) {
    uint32_t n = (uint32_t)m->allocs.n;
    struct uvm_proc_counters *procs = uvm_mem(m->places.nprocs * sizeof *procs);
    struct uvm_alloc_metrics a = {.number = n, .c = fresh(), .procs = procs};
    a.c.fault_stall_ns = a.c.cpu_stall_ns = UVM_UNKNOWN; /* one wait may be for pages of several allocations */
    for (unsigned p = 0; p < m->places.nprocs; p++) procs[p].stall_ns = UVM_UNKNOWN;
    UVM_PUSH(&m->allocs) = a;
  }
  return &m->allocs.v[number];
}

static void learn_alloc(struct uvm_metrics *m, const struct uvm_event *e) {
  struct uvm_alloc_metrics *a = alloc_at(m, e->alloc);
  assert(!a->known && e->allocation);
  a->known = true;
  a->id = uvm_copy_string(e->allocation->id);
  a->label = uvm_copy_string(e->allocation->label);
  a->kind = e->allocation->kind;
  a->bytes = e->allocation->bytes;
}

/* What a CPU fault brings back is told after the fault. */
static void count_rewritten(struct uvm_alloc_metrics *a, const struct uvm_places *p, const struct uvm_event *e) {
  if (e->kind == UVM_E_CPU_FAULT) a->cpu_fault_writes = e->access >= UVM_A_WRITE;
  if (e->kind != UVM_E_TRANSFER || uvm_places_direction(p, e->src, e->dst) != UVM_D2H) return;
  if (a->cpu_fault_writes && (e->cause == UVM_C_FAULT || e->cause == UVM_C_PREFETCH)) a->rewritten_bytes += e->bytes;
}

/* -- sections -- */

static void open_section(struct uvm_metrics *m, const struct uvm_event *e) {
  size_t index = m->sections.n;
  UVM_PUSH(&m->sections) = (struct uvm_section_metrics){
      .name = uvm_copy_string(e->name), .iteration = e->value, .begin = e->t, .end = UVM_NEVER, .parent = m->open, .c = fresh()};
  m->open = index;
}

static void close_section(struct uvm_metrics *m, const struct uvm_event *e) {
  assert(m->open != SIZE_MAX); /* the trace reader has refused an end without a begin */
  struct uvm_section_metrics *s = &m->sections.v[m->open];
  assert(s->begin == e->t);
  s->end = e->t + e->dur;
  m->open = s->parent;
}

/* Sections nest, so those open at t are the last one begun by then and its ancestors, but for the ones already over. */
static void count_sections(struct uvm_metrics *m, const struct uvm_event *e) {
  size_t i = m->sections.n;
  while (i && m->sections.v[i - 1].begin > e->t) i--;
  for (i = i ? i - 1 : SIZE_MAX; i != SIZE_MAX; i = m->sections.v[i].parent)
    if (e->t < m->sections.v[i].end) count(&m->sections.v[i].c, &m->places, e);
}

void uvm_metrics_event(void *metrics, const struct uvm_event *e) {
  struct uvm_metrics *m = metrics;
  switch ((enum uvm_event_kind)e->kind) {
  case UVM_E_ALLOC: learn_alloc(m, e); return;
  case UVM_E_SECTION_BEGIN: open_section(m, e); return;
  case UVM_E_SECTION: close_section(m, e); return;
  default: break;
  }
  count(&m->total, &m->places, e);
  count_proc(m->procs, &m->places, e);
  count_sections(m, e);
  if (!e->has_alloc || e->kind == UVM_E_STALL) return;
  struct uvm_alloc_metrics *a = alloc_at(m, e->alloc);
  count(&a->c, &m->places, e);
  count_proc(a->procs, &m->places, e);
  count_rewritten(a, &m->places, e);
}
