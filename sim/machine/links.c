/* Transfers and accesses over links. A copy holds an engine from its begin to its end, and the wire while its bytes move; an
 * access holds the wire alone. Both take turns in the order in which they ask, and what is booked for later leaves free what
 * is before it. */
#include <assert.h>
#include <math.h>
#include "machine/track.h"

/* The link that joins two nodes, NULL none. */
static struct uvm_link *joining(struct uvm_machine *m, uvm_node a, uvm_node b) {
  for (int i = 0; i < m->nlinks; i++) {
    struct uvm_link *l = &m->links[i];
    if ((l->a == a && l->b == b) || (l->a == b && l->b == a)) return l;
  }
  return NULL;
}

/* The node by which two links lead from src to dst. */
static uvm_node between(struct uvm_machine *m, uvm_node src, uvm_node dst) {
  for (uvm_node by = 0; by < m->nnodes; by++)
    if (joining(m, src, by) && joining(m, by, dst)) return by;
  assert(!"the profile's check joins all nodes");
  return src;
}

static struct uvm_way *way_from(struct uvm_link *l, uvm_node from) { return &l->ways[l->a != from]; }

static uint64_t moving(double rate, uint64_t bytes) { return (uint64_t)((double)bytes * 1e9 / rate + 0.5) * 1000; }

static uint64_t whole_ns(uint64_t ps) { return (ps + 999) / 1000 * 1000; }

/* -- copies -- */

/* Where in its way's queues a copy goes: all times ps. */
struct slot {
  struct uvm_track *engine;
  uint64_t begin, moves, end;
};

/* The earliest begin at which the engine is free until the copy is through: nothing interrupts it there. */
static struct slot try_engine(const struct uvm_way *w, struct uvm_track *engine, uint64_t asked, uint64_t fixed, uint64_t need) {
  struct slot s = {.engine = engine};
  for (uint64_t at = asked, until;; at = until) {
    s.begin = uvm__track_free(engine, at, &until);
    s.moves = s.begin + fixed;
    s.end = whole_ns(uvm__track_end(&w->wire, s.moves, need));
    if (s.end <= until) return s;
  }
}

static struct uvm_reservation hold(struct uvm_machine *m, struct uvm_link *l, const struct uvm_transfer *t, uvm_node from, uvm_ns now) {
  struct uvm_way *w = way_from(l, from);
  uint64_t need = moving(l->a == from ? l->up : l->down, t->bytes), fixed = t->fixed * 1000, asked = now * 1000;
  struct slot s = try_engine(w, &w->engines[0], asked, fixed, need);
  for (uint64_t i = 1; i < l->engines && s.begin > asked; i++) {
    struct slot other = try_engine(w, &w->engines[i], asked, fixed, need);
    if (other.begin < s.begin) s = other;
  }
  uvm__track_blame(s.engine, asked, s.begin, m->waited_ps[t->kind]);
  uvm__track_blame(&w->wire, s.moves, s.end, m->waited_ps[t->kind]);
  uvm__track_take(s.engine, s.begin, s.end - s.begin, t->kind);
  uvm__track_take(&w->wire, s.moves, need, t->kind);
  return (struct uvm_reservation){whole_ns(s.begin) / 1000, s.end / 1000, (s.end - asked - fixed - need) / 1000};
}

static bool reaches_both(const struct uvm_machine *m, uvm_node a, uvm_node b) {
  for (int p = 0; p < m->nprocs; p++) {
    const struct uvm_proc_info *i = &m->procs[p];
    if ((i->home == a || i->home == b) && i->reach >> a & i->reach >> b & 1) return true;
  }
  return false;
}

struct uvm_reservation uvm_machine_reserve(struct uvm_machine *m, const struct uvm_transfer *t, uvm_ns now) {
  if (t->src == t->dst) return (struct uvm_reservation){now, now + t->fixed + moving(m->gpu.memory_rate, t->bytes) / 1000, 0};
  struct uvm_link *direct = joining(m, t->src, t->dst);
  if (direct) return hold(m, direct, t, t->src, now);
  uvm_node by = between(m, t->src, t->dst);
  struct uvm_reservation in = hold(m, joining(m, t->src, by), t, t->src, now);
  bool staged = !reaches_both(m, t->src, t->dst);
  struct uvm_reservation out = hold(m, joining(m, by, t->dst), t, by, staged ? in.end : in.begin);
  return (struct uvm_reservation){in.begin, uvm_max(in.end, out.end), in.wait + out.wait};
}

/* -- a processor's own accesses -- */

/* Thousands of accesses wait at a time: `waited` is the time in which any of them did. */
static struct uvm_crossing cross(struct uvm_machine *m, struct uvm_link *l, uvm_node from, uint64_t now_ps, uint64_t bytes, bool write) {
  struct uvm_way *w = way_from(l, from);
  uint64_t need = (uint64_t)ceil((double)bytes * 1e12 / (write ? l->store : l->load)), by[UVM_L_KINDS] = {0}, waited = 0;
  uvm__track_pass(&w->wire, now_ps);
  uint64_t end = uvm__track_end(&w->wire, now_ps, need), since = uvm_max(now_ps, w->waited_until);
  uvm__track_blame(&w->wire, since, end, by);
  w->waited_until = end;
  for (int k = 0; k < UVM_L_KINDS; k++) {
    if (k == UVM_L_REMOTE) continue; /* its own kind in front is its rate, not a wait */
    m->waited_ps[UVM_L_REMOTE][k] += by[k];
    waited += by[k];
  }
  uvm__track_take(&w->wire, now_ps, need, UVM_L_REMOTE);
  return (struct uvm_crossing){end, write ? 0 : l->latency_ns * 1000, waited};
}

struct uvm_crossing uvm_machine_access(struct uvm_machine *m, uvm_proc p, uvm_node n, uvm_ns now, uint64_t bytes, bool write) {
  uvm_node src = write ? m->procs[p].home : n, dst = write ? n : m->procs[p].home;
  struct uvm_link *direct = joining(m, src, dst);
  if (direct) return cross(m, direct, src, now * 1000, bytes, write);
  uvm_node by = between(m, src, dst);
  struct uvm_crossing in = cross(m, joining(m, src, by), src, now * 1000, bytes, write);
  struct uvm_crossing out = cross(m, joining(m, by, dst), by, now * 1000, bytes, write);
  return (struct uvm_crossing){uvm_max(in.end_ps, out.end_ps), in.latency_ps + out.latency_ps, in.waited_ps + out.waited_ps};
}

void uvm_machine_pass(struct uvm_machine *m, uvm_ns now) {
  for (int i = 0; i < m->nlinks * 2; i++) {
    struct uvm_way *w = &m->links[i / 2].ways[i % 2];
    uvm__track_pass(&w->wire, now * 1000);
    for (int k = 0; k < UVM_MAX_ENGINES; k++) uvm__track_pass(&w->engines[k], now * 1000);
  }
}

const char *uvm_traffic_name(enum uvm_traffic kind) {
  static const char *const names[UVM_L_KINDS] = {"migration", "prefetch", "eviction", "memcpy", "remote access"};
  return names[kind];
}
