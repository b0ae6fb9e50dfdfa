#include "report/timeline.h"
#include "report/tracks.h"

/* Tracks of one processor. The CPU has no kernels of its own but those on threads, and what waits there are threads. */
struct processor {
  unsigned sections, kernels, batches, waits, faults, prefetches, evictions, decisions;
};
struct memory {
  unsigned resident, capacity;
  uint64_t bytes;
  uvm_ns at;    /* of the latest change, which is written when a later one comes */
  bool changed; /* not written yet */
};
struct held { /* an allocation, while it lives */
  char *label;
  uint64_t *bytes; /* [places.nnodes] */
};
struct uvm_timeline {
  struct uvm_tracks *tracks;
  struct uvm_places places;
  struct processor procs[UVM_MAX_PROCS];
  struct memory memories[UVM_MAX_NODES];
  unsigned link[UVM_MAX_NODES][UVM_MAX_NODES]; /* by source and destination */
  UVM_VEC(struct held) allocs;                 /* by number */
  unsigned open_sections;
};
#define ARGS(...) ((const struct uvm_track_arg[]){__VA_ARGS__, {0}})

/* -- the tracks -- */

static void add_processor(struct uvm_timeline *t, unsigned proc, unsigned process) {
  struct processor *p = &t->procs[proc];
  p->sections = uvm_tracks_add(t->tracks, process, "sections");
  p->kernels = uvm_tracks_add(t->tracks, process, "kernels");
  p->batches = uvm_tracks_add(t->tracks, process, "fault service");
  p->waits = uvm_tracks_add(t->tracks, process, proc ? "stalled" : "waits");
  p->faults = uvm_tracks_add(t->tracks, process, "faults");
  p->prefetches = uvm_tracks_add(t->tracks, process, "prefetches");
  p->evictions = uvm_tracks_add(t->tracks, process, "evictions");
  p->decisions = uvm_tracks_add(t->tracks, process, "decisions");
}

static unsigned add_counter(struct uvm_timeline *t, unsigned process, const char *what, unsigned node) {
  char *name = uvm_format("%s %s", what, t->places.node[node]);
  unsigned track = uvm_tracks_add(t->tracks, process, name);
  uvm_mem_free(name);
  return track;
}

static void add_link(struct uvm_timeline *t, unsigned process, unsigned src, unsigned dst) {
  char *name = uvm_format("%s to %s", t->places.node[src], t->places.node[dst]);
  t->link[src][dst] = uvm_tracks_add(t->tracks, process, name);
  uvm_mem_free(name);
}

static void add_tracks(struct uvm_timeline *t) {
  const struct uvm_places *p = &t->places;
  unsigned processes[UVM_MAX_PROCS];
  for (unsigned i = 0; i < p->nprocs; i++) processes[i] = uvm_tracks_process(t->tracks, p->proc[i]);
  unsigned links = uvm_tracks_process(t->tracks, "links");
  for (unsigned i = 0; i < p->nprocs; i++) add_processor(t, i, processes[i]);
  for (unsigned n = 0; n < p->nnodes; n++) {
    unsigned process = processes[p->gpu[n] + 1];
    t->memories[n].resident = add_counter(t, process, "resident", n);
    t->memories[n].capacity = add_counter(t, process, "capacity", n);
    for (unsigned m = 0; m < p->nnodes; m++) add_link(t, links, n, m);
  }
}

/* -- residency: of a plan is told when it is through, so the counters never go back in time -- */

static void write_count(struct uvm_timeline *t, struct memory *m) {
  if (m->changed) uvm_tracks_count(t->tracks, m->resident, m->at, m->bytes);
  m->changed = false;
}

static void change(struct uvm_timeline *t, uvm_node n, uvm_ns at, int64_t bytes) {
  struct memory *m = &t->memories[n];
  if (at > m->at) write_count(t, m), m->at = at;
  m->bytes += (uint64_t)bytes;
  m->changed = true;
}

static struct held *held_at(struct uvm_timeline *t, uint32_t number) {
  while (t->allocs.n <= number) UVM_PUSH(&t->allocs) = (struct held){0};
  return &t->allocs.v[number];
}

/* Pages came to a node's memory, or left it. */
static void moved(struct uvm_timeline *t, const struct uvm_event *e, uvm_node n, bool came) {
  int64_t bytes = (int64_t)(uvm_event_pages(e) * UVM_PAGE) * (came ? 1 : -1);
  if (n >= t->places.nnodes) return;
  struct held *h = held_at(t, e->alloc);
  if (h->bytes) h->bytes[n] += (uint64_t)bytes;
  change(t, n, e->t + e->dur, bytes);
}

static void begin_alloc(struct uvm_timeline *t, const struct uvm_event *e) {
  struct held *h = held_at(t, e->alloc);
  h->label = uvm_copy_string(e->allocation->label);
  h->bytes = uvm_mem(t->places.nnodes * sizeof *h->bytes);
}

static void end_alloc(struct uvm_timeline *t, const struct uvm_event *e) {
  struct held *h = held_at(t, e->alloc);
  for (unsigned n = 0; h->bytes && n < t->places.nnodes; n++)
    if (h->bytes[n]) change(t, (uvm_node)n, e->t, -(int64_t)h->bytes[n]);
  uvm_mem_free(h->label), uvm_mem_free(h->bytes);
  *h = (struct held){0};
}

/* -- slices and instants -- */

static const char *label_of(struct uvm_timeline *t, const struct uvm_event *e) {
  const struct held *h = e->has_alloc ? held_at(t, e->alloc) : NULL;
  return h && h->label ? h->label : "";
}

static struct processor *of(struct uvm_timeline *t, unsigned proc) { return &t->procs[proc < t->places.nprocs ? proc : 0]; }

static void transfer(struct uvm_timeline *t, const struct uvm_event *e) {
  const char *name = e->kind == UVM_E_COPY ? "memcpy" : uvm_cause_word(e->cause);
  uvm_tracks_slice(
      t->tracks, t->link[e->src][e->dst], e->t, e->dur, name,
      ARGS({"bytes", e->bytes, NULL}, {"allocation", 0, label_of(t, e)}, {"offset", e->offset, NULL}, {"waited_ns", e->wait, NULL}));
}

static void batch(struct uvm_timeline *t, const struct uvm_event *e) {
  uvm_tracks_slice(t->tracks, of(t, e->proc)->batches, e->t + e->wait, e->dur - e->wait, "fault batch",
                   ARGS({"faults", e->distinct, NULL}, {"entries", e->raw, NULL}, {"allocation", 0, label_of(t, e)},
                        {"offset", e->offset, NULL}, {"waited_ns", e->wait, NULL}));
}

static void slice(struct uvm_timeline *t, unsigned track, const char *name, const struct uvm_event *e) {
  uvm_tracks_slice(t->tracks, track, e->t, e->dur, name, ARGS({"line", (uint64_t)e->line, NULL}) + !e->line);
}

static void ranged(struct uvm_timeline *t, unsigned track, const char *name, const struct uvm_event *e) {
  uvm_tracks_slice(t->tracks, track, e->t, e->dur, name,
                   ARGS({"bytes", e->bytes, NULL}, {"allocation", 0, label_of(t, e)}, {"offset", e->offset, NULL}));
}

static void page(struct uvm_timeline *t, unsigned track, const char *name, const struct uvm_event *e) {
  uvm_tracks_instant(
      t->tracks, track, e->t, name,
      ARGS({"allocation", 0, label_of(t, e)}, {"offset", e->offset, NULL}, {"rule", 0, e->rule ? e->rule : ""}, {"for_ns", e->dur, NULL}));
}

static void begin_section(struct uvm_timeline *t, const struct uvm_event *e) {
  uvm_tracks_begin(t->tracks, t->procs[0].sections, e->t, e->name, ARGS({"iteration", e->value, NULL}));
  t->open_sections++;
}

static void end_section(struct uvm_timeline *t, uvm_ns at) {
  uvm_tracks_end(t->tracks, t->procs[0].sections, at);
  t->open_sections--;
}

static void evicted(struct uvm_timeline *t, const struct uvm_event *e) {
  int gpu = e->src < t->places.nnodes ? t->places.gpu[e->src] : -1;
  ranged(t, of(t, (unsigned)(gpu + 1))->evictions, "eviction", e);
}

/* -- the observer -- */

static void follow_pages(struct uvm_timeline *t, const struct uvm_event *e) {
  switch ((enum uvm_event_kind)e->kind) {
  case UVM_E_POPULATE: moved(t, e, e->dst, true); break;
  case UVM_E_TRANSFER: moved(t, e, e->src, false), moved(t, e, e->dst, true); break;
  case UVM_E_DUPLICATE: moved(t, e, e->src, true); break; /* told as a transfer before: the source keeps its pages */
  case UVM_E_COLLAPSE: moved(t, e, e->src, false); break;
  case UVM_E_ALLOC: begin_alloc(t, e); break;
  case UVM_E_FREE: end_alloc(t, e); break;
  default: break;
  }
}

void uvm_timeline_event(void *timeline, const struct uvm_event *e) {
  struct uvm_timeline *t = timeline;
  const struct processor *p = of(t, e->proc);
  follow_pages(t, e);
  switch ((enum uvm_event_kind)e->kind) {
  case UVM_E_TRANSFER:
  case UVM_E_COPY: transfer(t, e); break;
  case UVM_E_GPU_BATCH: batch(t, e); break;
  case UVM_E_CPU_FAULT: page(t, t->procs[0].faults, uvm_access_word(e->access), e); break;
  case UVM_E_STALL: slice(t, p->waits, e->proc ? "stalled" : "CPU fault", e); break;
  case UVM_E_WAIT: slice(t, t->procs[0].waits, "sync", e); break;
  case UVM_E_KERNEL: slice(t, p->kernels, e->name ? e->name : "kernel", e); break;
  case UVM_E_PREFETCH: ranged(t, p->prefetches, "prefetch", e); break;
  case UVM_E_EVICT: evicted(t, e); break;
  case UVM_E_THRASH: page(t, p->decisions, "thrashing", e); break;
  case UVM_E_THROTTLE: page(t, p->decisions, "throttled", e); break;
  case UVM_E_REMOTE_MAP: page(t, p->decisions, "remote map", e); break;
  case UVM_E_SECTION_BEGIN: begin_section(t, e); break;
  case UVM_E_SECTION: end_section(t, e->t + e->dur); break;
  default: break;
  }
}

/* -- the file -- */

int uvm_timeline_open(const char *path, const struct uvm_places *places, struct uvm_timeline **out, struct uvm_error *e) {
  struct uvm_tracks *tracks;
  int rc = uvm_tracks_open(path, &tracks, e);
  if (rc) return rc;
  struct uvm_timeline *t = uvm_mem(sizeof *t);
  t->tracks = tracks;
  t->places = *places;
  add_tracks(t);
  return *out = t, 0;
}

static void release(struct uvm_timeline *t) {
  for (size_t i = 0; i < t->allocs.n; i++) uvm_mem_free(t->allocs.v[i].label), uvm_mem_free(t->allocs.v[i].bytes);
  uvm_mem_free(t->allocs.v);
  uvm_mem_free(t);
}

int uvm_timeline_commit(struct uvm_timeline *t, const char *trace, const struct uvm_session_result *r, struct uvm_error *e) {
  while (t->open_sections) end_section(t, r->sim_ns); /* a run that was stopped */
  for (unsigned n = 0; n < t->places.nnodes; n++) {
    write_count(t, &t->memories[n]);
    if (t->places.gpu[n] >= 0) uvm_tracks_count(t->tracks, t->memories[n].capacity, 0, r->node_capacity[n]);
  }
  int rc = uvm_tracks_commit(t->tracks,
                             ARGS({"trace", 0, trace}, {"machine", 0, r->machine}, {"driver", 0, r->driver}, {"policy", 0, r->policy}), e);
  release(t);
  return rc;
}

void uvm_timeline_abandon(struct uvm_timeline *t) {
  uvm_tracks_abandon(t->tracks);
  release(t);
}
