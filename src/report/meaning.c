/* What the numbers of a run mean, and what to try next. Each finding looks at one cause and says nothing when it does not
 * apply; all say what the numbers show, not what they might. */
#include <inttypes.h>
#include "report/summary.h"
#include "report/table.h"

static double share(uint64_t part, uint64_t of) { return of ? 100.0 * (double)part / (double)of : 0; }

/* The allocation that a counter concerns most; NULL when none has any. */
static const struct uvm_alloc_metrics *worst(const struct uvm_metrics *m, size_t offset) {
  const struct uvm_alloc_metrics *best = NULL;
  uint64_t most = 0;
  for (size_t i = 0; i < m->allocs.n; i++) {
    uint64_t v = *(const uint64_t *)((const char *)&m->allocs.v[i].c + offset);
    if (m->allocs.v[i].known && v > most) most = v, best = &m->allocs.v[i];
  }
  return best;
}

/* Stalls are summed over processors that overlap, so they are compared with the run's time only as an order of size. */
static bool tell_faults(const struct uvm_summary *s, FILE *f) {
  const struct uvm_counters *c = &s->metrics->total;
  const struct uvm_alloc_metrics *a = worst(s->metrics, offsetof(struct uvm_counters, gpu_faults));
  char size[24], ns[24];
  if (!a || !c->fault_batches || !s->run->sim_ns) return false;
  fprintf(f, "* GPUs waited %s for page faults, %.0f %% of the run: %" PRIu64 " batches.", uvm_ns_text(c->fault_stall_ns, ns),
          share(c->fault_stall_ns, s->run->sim_ns), c->fault_batches);
  if (c->h2d_bytes && share(c->fault_stall_ns, s->run->sim_ns) >= 5)
    fprintf(f,
            " Prefetching %s (%s) before the kernel that needs it moves the same bytes in large copies without these faults:\n"
            "  put `prefetch gpu0 %s 0 %" PRIu64 "` in the trace and replay it again.",
            a->label, uvm_size_text(a->bytes, size), a->id, a->bytes);
  fputc('\n', f);
  return true;
}

static bool tell_eviction(const struct uvm_summary *s, FILE *f) {
  const struct uvm_counters *c = &s->metrics->total;
  char out[24], capacity[24];
  if (!c->evictions) return false;
  fprintf(f, "* Memory was full: %" PRIu64 " evictions moved %s out of %s of GPU memory", c->evictions,
          uvm_size_text(c->evicted_bytes, out), uvm_size_text(s->run->gpu_capacity, capacity));
  if (c->h2d_bytes) fprintf(f, ", %.0f %% of what had come in", share(c->evicted_bytes, c->h2d_bytes));
  fputs(".\n  Compare evictors (--evict), or give it more (--gpu-memory) to see what fitting would save.\n", f);
  return true;
}

static bool tell_thrashing(const struct uvm_summary *s, FILE *f) {
  const struct uvm_counters *c = &s->metrics->total;
  const struct uvm_alloc_metrics *a = worst(s->metrics, offsetof(struct uvm_counters, thrashing_pages));
  if (!a) return false;
  fprintf(f,
          "* Pages went back and forth: %" PRIu64 " were marked as thrashing, most of them (%" PRIu64 ") in %s; %" PRIu64
          " were held back for a "
          "while, %" PRIu64 " mapped remotely.\n  If one side uses %s more, tell the driver: `advise set_preferred_location` there and "
          "`advise set_accessed_by` for the other.\n",
          c->thrashing_pages, a->c.thrashing_pages, a->label, c->throttles, c->remote_maps, a->label);
  return true;
}

static bool tell_round_trips(const struct uvm_summary *s, FILE *f) {
  const struct uvm_counters *c = &s->metrics->total;
  const struct uvm_alloc_metrics *a = worst(s->metrics, offsetof(struct uvm_counters, d2h_bytes));
  uint64_t back = c->d2h_bytes > c->evicted_bytes ? c->d2h_bytes - c->evicted_bytes : 0;
  char size[24], out[24];
  if (!a || !back || back < c->h2d_bytes / 10) return false;
  fprintf(f, "* %s came back to the CPU because the CPU touched it (or it was prefetched back); most (%s) is %s.",
          uvm_size_text(back, size), uvm_size_text(a->c.d2h_bytes, out), a->label);
  if (a->procs[0].reads && !a->procs[0].writes)
    fprintf(f, " The CPU only reads it: `advise set_read_mostly` would let both sides keep a copy, if the GPU seldom writes it.");
  fputc('\n', f);
  return true;
}

static bool tell_revocations(const struct uvm_summary *s, FILE *f) {
  const struct uvm_counters *c = &s->metrics->total;
  const struct uvm_alloc_metrics *a = worst(s->metrics, offsetof(struct uvm_counters, revocations));
  char size[24];
  if (!a || !c->duplicated_bytes) return false;
  fprintf(f,
          "* %s was duplicated for reading, and %" PRIu64
          " pages lost a permission or a copy again, most in %s: a write to a duplicated page is "
          "dear.\n  Unset read_mostly before the phase that writes it.\n",
          uvm_size_text(c->duplicated_bytes, size), c->revocations, a->label);
  return true;
}

static bool tell_remote(const struct uvm_summary *s, FILE *f) {
  const struct uvm_counters *c = &s->metrics->total;
  const struct uvm_alloc_metrics *a = worst(s->metrics, offsetof(struct uvm_counters, remote_bytes));
  char size[24];
  if (!a) return false;
  fprintf(f, "* %s crossed a link without the page moving, most of it in %s. That pays when a page is touched once or seldom.\n",
          uvm_size_text(c->remote_bytes, size), a->label);
  return true;
}

void uvm_text_meaning(const struct uvm_summary *s, FILE *f) {
  static bool (*const findings[])(const struct uvm_summary *, FILE *) = {tell_faults,      tell_eviction,    tell_thrashing,
                                                                         tell_round_trips, tell_revocations, tell_remote};
  bool any = false;
  fputs("What it means\n", f);
  for (size_t i = 0; i < sizeof findings / sizeof *findings; i++) any |= findings[i](s, f);
  if (!any) fputs("* No GPU fault, no page that came back, nothing evicted: page migration costs this program nothing here.\n", f);
  fputs("One page's story: uvmsim why TRACE --alloc N --page P. Another policy's first different decision: uvmsim diff TRACE --prefetch-b "
        "none.\n",
        f);
}
