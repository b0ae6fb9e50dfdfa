/* What the numbers of a run mean, and what to try next. Each finding looks at one cause and says nothing when it does not apply; all
 * say what the numbers show, not what they might. */
#include <inttypes.h>
#include "report/summary.h"
#include "report/table.h"

struct text {
  char s[2048];
  size_t n;
};

static void say(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct text *t, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(t->s + t->n, sizeof t->s - t->n, fmt, ap);
  va_end(ap);
  t->n += (size_t)n;
  if (t->n >= sizeof t->s) t->n = sizeof t->s - 1; /* a label may be long; the text ends there */
}

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
#define WORST(s, counter) worst((s)->metrics, offsetof(struct uvm_counters, counter))

/* Of what faults copied in, the allocation with most of the faults: first touches copy nothing, a prefetch leaves no faults. */
static const struct uvm_alloc_metrics *worth_prefetching(const struct uvm_metrics *m) {
  const struct uvm_alloc_metrics *best = NULL;
  for (size_t i = 0; i < m->allocs.n; i++) {
    const struct uvm_alloc_metrics *a = &m->allocs.v[i];
    if (a->known && a->c.h2d_bytes && a->c.gpu_faults > (best ? best->c.gpu_faults : 0)) best = a;
  }
  return best;
}

/* The GPU that most of an allocation went to. */
static const char *receiver(const struct uvm_metrics *m, const struct uvm_alloc_metrics *a) {
  unsigned best = 1;
  for (unsigned p = 2; p < m->places.nprocs; p++)
    if (a->procs[p].bytes_in > a->procs[best].bytes_in) best = p;
  return uvm_places_proc(&m->places, (uvm_proc)best);
}

/* Stalls are summed over processors that overlap, so they are compared with the run's time only as an order of size. */
static void tell_faults(const struct uvm_summary *s, struct text *t) {
  const struct uvm_counters *c = &s->metrics->total;
  const struct uvm_alloc_metrics *a = worth_prefetching(s->metrics), *most = WORST(s, gpu_faults);
  char size[24], ns[24], n[32];
  double stalled = share(c->fault_stall_ns, s->run->sim_ns);
  if (!c->fault_batches) return;
  say(t, "GPUs waited %s for page faults, %.0f %% of the run, in %s %s.", uvm_ns_text(c->fault_stall_ns, ns), stalled,
      uvm_count_text(c->fault_batches, n), c->fault_batches == 1 ? "batch" : "batches");
  if (most && s->metrics->allocs.n > 1 && most->c.gpu_faults > c->gpu_faults / 2)
    say(t, " Of the faults %.0f %% were in %s%s.", share(most->c.gpu_faults, c->gpu_faults), most->label,
        most->c.h2d_bytes ? "" : " (first touches: nothing is copied)");
  if (!a || stalled < 5 || a->c.thrashing_pages || c->evictions) return;
  say(t,
      " Prefetching %s (%s) before the kernel that needs it moves the same bytes in large copies, without these faults: put `prefetch "
      "%s %s 0 %" PRIu64 "` there in the trace and replay it again.",
      a->label, uvm_size_text(a->bytes, size), receiver(s->metrics, a), a->id, a->bytes);
}

static void tell_eviction(const struct uvm_summary *s, struct text *t) {
  const struct uvm_counters *c = &s->metrics->total;
  char out[24], in[24], n[32];
  if (!c->evictions) return;
  say(t, "%s was full: %s eviction%s moved %s out of it", s->run->nprocs > 2 ? "A GPU's memory" : "Memory", uvm_count_text(c->evictions, n),
      c->evictions == 1 ? "" : "s", uvm_size_text(c->evicted_bytes, out));
  if (c->h2d_bytes) say(t, "; %s were copied in", uvm_size_text(c->h2d_bytes, in));
  say(t, ". Compare evictors (--evict), or give it more (--gpu-memory) to see what fitting would save.");
}

static void tell_thrashing(const struct uvm_summary *s, struct text *t) {
  const struct uvm_counters *c = &s->metrics->total;
  const struct uvm_alloc_metrics *a = WORST(s, thrashing_pages);
  char n[32], in[32];
  if (!a) return;
  say(t,
      "Pages went back and forth (marks as thrashing: %s, of which in %s: %s; processors held back: %" PRIu64
      "; pages mapped remotely: %" PRIu64 "). If one side uses %s more, tell the driver: `advise set_preferred_location` there and "
      "`advise set_accessed_by` for the other.",
      uvm_count_text(c->thrashing_pages, n), a->label, uvm_count_text(a->c.thrashing_pages, in), c->throttles, c->remote_maps, a->label);
}

static bool gpu_writes(const struct uvm_metrics *m, const struct uvm_alloc_metrics *a) {
  uint64_t n = 0;
  for (unsigned p = 1; p < m->places.nprocs; p++) n += a->procs[p].writes + a->procs[p].atomics;
  return n > 0;
}

static void tell_round_trips(const struct uvm_summary *s, struct text *t) {
  const struct uvm_counters *c = &s->metrics->total;
  const struct uvm_alloc_metrics *a = WORST(s, d2h_bytes);
  uint64_t back = c->d2h_bytes > c->evicted_bytes ? c->d2h_bytes - c->evicted_bytes : 0;
  char size[24], out[24];
  if (!a || !back || back < c->h2d_bytes / 10) return;
  say(t, "%s went to the CPU because it touched it or asked for it", uvm_size_text(back, size));
  if (a->c.d2h_bytes < c->d2h_bytes)
    say(t, ", most of it (%s) from %s.", uvm_size_text(a->c.d2h_bytes, out), a->label);
  else
    say(t, ", all of it from %s.", a->label);
  if (a->rewritten_bytes > a->c.d2h_bytes / 2)
    say(t,
        " The CPU writes there what the GPU had: call it back in large copies (`prefetch cpu %s 0 %" PRIu64
        "` before the CPU writes), or let the CPU fill a pinned allocation and `memcpy` from it, so that nothing comes back.",
        a->id, a->bytes);
  else if (!gpu_writes(s->metrics, a) && a->c.h2d_bytes)
    say(t, " The GPU only reads it: `advise set_read_mostly`, once the CPU has filled it, lets both sides keep a copy.");
}

static void tell_duplication(const struct uvm_summary *s, struct text *t) {
  const struct uvm_counters *c = &s->metrics->total;
  const struct uvm_alloc_metrics *a = WORST(s, revocations);
  char size[24], n[32];
  if (!a || !c->duplicated_bytes) return;
  say(t,
      "%s was duplicated for reading, and %s pages lost a permission again, most of them in %s: a write to a duplicated page is dear. "
      "Unset "
      "read_mostly before the phase that writes it.",
      uvm_size_text(c->duplicated_bytes, size), uvm_count_text(c->revocations, n), a->label);
}

static void tell_remote(const struct uvm_summary *s, struct text *t) {
  const struct uvm_alloc_metrics *a = WORST(s, remote_bytes);
  char size[24];
  if (!a) return;
  say(t, "%s crossed a link without the page moving, most of it in %s. That pays for pages touched once or seldom.",
      uvm_size_text(s->metrics->total.remote_bytes, size), a->label);
}

static void tell_nothing(const struct uvm_summary *s, struct text *t) {
  const struct uvm_counters *c = &s->metrics->total;
  if (c->fault_batches || c->evictions || c->d2h_bytes || c->remote_bytes) return;
  say(t, "No GPU fault, nothing that came back, nothing evicted: page migration costs this program nothing here.");
}

/* A policy that does otherwise what this run is about, NULL when there was nothing to decide. */
static const char *other_policy(const struct uvm_counters *c) {
  return c->thrashing_pages ? "--thrash-b none" : c->evictions ? "--evict-b random" : c->prefetched_bytes ? "--prefetch-b none" : NULL;
}

/* The same run again, as another command and with one more option. */
static void tell_command(const struct uvm_summary *s, const char *command, FILE *f) {
  fprintf(f, "  uvmsim %s %s", command, s->trace);
  for (size_t i = 0; i < s->nasked; i++) fprintf(f, " %s", s->asked[i]);
}

/* Commands worth typing: a page's story, and the first decision that another policy takes otherwise. */
static void tell_next(const struct uvm_summary *s, FILE *f) {
  const struct uvm_alloc_metrics *a = WORST(s, thrashing_pages);
  if (!a) a = WORST(s, gpu_faults);
  if (!a) a = WORST(s, cpu_faults);
  if (!a || !strcmp(s->trace, "-")) return;
  const char *other = other_policy(&s->metrics->total);
  fputs("Next\n", f);
  tell_command(s, "why", f);
  fprintf(f, " --alloc %u --page 0\n", a->number);
  if (!other) return;
  tell_command(s, "diff", f);
  fprintf(f, " %s\n", other);
}

void uvm_text_meaning(const struct uvm_summary *s, FILE *f) {
  static void (*const findings[])(const struct uvm_summary *, struct text *) = {
      tell_faults, tell_eviction, tell_thrashing, tell_round_trips, tell_duplication, tell_remote, tell_nothing};
  fputs("What it means\n", f);
  for (size_t i = 0; i < sizeof findings / sizeof *findings; i++) {
    struct text t = {.n = 0};
    findings[i](s, &t);
    if (!t.n) continue;
    fputs("* ", f);
    uvm_wrap(f, t.s, 2, 2);
  }
  tell_next(s, f);
}
