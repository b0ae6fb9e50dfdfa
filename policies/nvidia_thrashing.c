/* NVIDIA's thrashing control. Migrations to a processor and mappings taken from one are events; pages with events close
 * together are thrashing. The processors that fight over such a page take turns: one slot belongs to one of them and the
 * others are throttled until its end. Where turns do not help, or are not needed because the page can be mapped by all,
 * the page is pinned: it stays put for a while and everyone who can is mapped to it.
 *
 * Pages are followed only in blocks that saw two processors within a lapse. Where the driver's code and its intention differ,
 * the default is what it ships; the quirk options switch to what was intended. */
#include "uvmsim/policy.h"

#define US 1000ull
#define LAPSE (500 * US)
#define LAPSE_MIN (5 * US)                      /* the adaptive lapse keeps between these */
#define LAPSE_MAX (500000 * US)
#define LAPSE_STEP_MAX (50000 * US)
#define UNPIN_GRANULARITY (20 * US)             /* pins whose deadlines are so close end together */
#define EVENTS_MAX 7                            /* width of the driver's counters */
#define THROTTLES_MAX 255

enum adapt { ADAPT_OFF, ADAPT_SHIPPED, ADAPT_CORRECTED, ADAPT_BY_VERSION };

struct state {
  uvm_ns lapse;                                 /* events at most so far apart are close together; adapts */
  uint32_t threshold, pin_threshold, nap, epoch, pin, max_resets, adaptive_lapse, vote_threshold;
  bool enable, pinned_count_quirk, reset_keeps_quirk, keep_events_quirk;
  uvm_ns nap_ns, epoch_ns, pin_ns;              /* from the lapse at the start; they do not follow it */
  int vote;                                     /* in favour of a longer lapse; a signed byte in the driver */
};
struct page {
  uvm_ns ts, throttle_end, unpin_at;            /* last event; end of the slot (both in steps of 64 ns); deadline of the pin, 0 none */
  uint32_t procs, throttled;                    /* who took part; who is held, a bit each */
  uint8_t events, throttle_count;
  uvm_proc dnt;                                 /* "do not throttle": whose slot it is */
  uvm_node pinned_at;
  bool revoked;                                 /* one of the events was a revocation */
};
struct track {
  uvm_ns last_thrashing;
  uint32_t pinned_events;
  uvm_mask thrashing, pinned;
  struct page page[UVM_BLOCK_PAGES];
};
struct block {
  struct track *track;                          /* NULL: nothing worth following yet */
  uvm_ns last_ts;
  uint32_t resets;
  uvm_proc last_proc;
};

static uint32_t bit(int i) { return 1u << i; }
static uvm_ns stamp(uvm_ns t) { return t & ~(uvm_ns)63; }
static uvm_ns since(uvm_ns now, uvm_ns then) { return now > then ? now - then : 0; }
static void drop(uvm_mask *m, int p) { m->w[p >> 6] &= ~(1ull << (p & 63)); }

/* -- events -- */

static void end_throttles(struct page *p) {
  if (p->throttled) p->throttle_end = 0;
  p->throttled = 0;
}

static void reset_page(const struct state *s, struct track *t, int i) {
  struct page *p = &t->page[i];
  end_throttles(p);
  if (uvm_mask_test(&t->pinned, i) && !s->pinned_count_quirk) t->pinned_events--;
  drop(&t->pinned, i);
  drop(&t->thrashing, i);
  p->ts = p->unpin_at = 0;
  p->procs = p->events = 0;
  p->pinned_at = UVM_NONE;
  p->revoked = false;
  if (s->reset_keeps_quirk) return;
  p->throttle_count = 0;
  p->dnt = UVM_NONE;
}

static void reset_pages(const struct state *s, struct block *b, const uvm_mask *pages) {
  for (int i = uvm_mask_next(pages, 0); b->track && i >= 0; i = uvm_mask_next(pages, i + 1)) reset_page(s, b->track, i);
}

/* False for the first sign of life or one like the last: only a change of processors within the lapse starts the tracking. */
static bool tracked(const struct state *s, struct block *b, uvm_proc proc, uvm_ns now) {
  if (b->track) return true;
  if (!b->last_ts || b->last_proc == proc || since(now, b->last_ts) > s->lapse) return false;
  b->track = uvm_mem(sizeof *b->track);
  for (int i = 0; i < UVM_BLOCK_PAGES; i++) b->track->page[i].dnt = b->track->page[i].pinned_at = UVM_NONE;
  return true;
}

static void record_page(const struct state *s, struct track *t, int i, uvm_proc proc, uvm_ns now, bool revocation) {
  struct page *p = &t->page[i];
  uvm_ns prev = p->ts;
  p->procs |= bit(proc);
  p->ts = stamp(now);
  if (!prev) return;
  if (since(now, prev) <= s->lapse) {
    if (p->events < EVENTS_MAX) p->events++;
    p->revoked |= revocation;
    if (p->events < s->threshold) return;
    uvm_mask_set(&t->thrashing, i, i + 1);
    t->last_thrashing = now;
  } else if (p->events < s->threshold) {
    if (!s->keep_events_quirk) p->events = 0;
  } else if (!uvm_mask_test(&t->pinned, i)) {
    reset_page(s, t, i);
  }
}

/* One contiguous region [from, to): the driver looks at regions, not at pages, when it asks whether all is pinned. */
static void record(const struct state *s, struct block *b, int from, int to, uvm_proc proc, uvm_ns now, const struct uvm_told *e) {
  bool pinned = b->track != NULL;
  for (int i = from; pinned && i < to; i++) pinned = uvm_mask_test(&b->track->pinned, i);
  if (pinned && e->cause != UVM_C_PREFETCH) return;
  if (tracked(s, b, proc, now))
    for (int i = from; i < to; i++) record_page(s, b->track, i, proc, now, e->kind == UVM_T_REVOKED);
  b->last_ts = now;
  b->last_proc = proc;
}

/* The processor whose memory the node is: the one that asked if it is that, else the first; UVM_NONE for a node of its own. */
static uvm_proc owner(const struct uvm_topology *t, uvm_node n, uvm_proc asked) {
  if (asked < t->nprocs && t->procs[asked].home == n) return asked;
  for (uvm_proc p = 0; p < t->nprocs; p++)
    if (t->procs[p].home == n) return p;
  return UVM_NONE;
}

static void unpin(const struct state *s, struct block *b, const uvm_mask *pages, uvm_ns now) {
  struct track *t = b->track;
  for (int i = uvm_mask_next(pages, 0); t && i >= 0; i = uvm_mask_next(pages, i + 1))   /* a later pin has a later deadline */
    if (uvm_mask_test(&t->pinned, i) && t->page[i].unpin_at <= now + UNPIN_GRANULARITY) reset_page(s, t, i);
}

static void on_event(void *state, const uvm_view *v, const struct uvm_told *e) {
  const struct state *s = state;
  bool moved = e->kind == UVM_T_MIGRATED, copied = e->kind == UVM_T_DUPLICATED;
  if (!s->enable || !(moved || copied || e->kind == UVM_T_REVOKED || e->kind == UVM_T_UNPINNED)) return;
  if ((moved || copied) && e->cause == UVM_C_EVICTION) return;
  struct block *b = uvm_block_state(v, e->block);
  uvm_ns now = e->begin ? e->begin : uvm_now(v); /* of a copy, when the driver pushed it */
  if (e->kind == UVM_T_UNPINNED) {
    unpin(s, b, e->pages, now);
    return;
  }
  bool wanted = moved && e->cause != UVM_C_FAULT && e->cause != UVM_C_COUNTERS && e->cause != UVM_C_PREFETCH;   /* somebody knows best */
  if (copied || wanted || uvm_range(v, uvm_block(v, e->block)->range)->read_mostly) {
    reset_pages(s, b, e->pages);
    return;
  }
  uvm_proc proc = moved ? owner(uvm_topology(v), e->dst, e->proc) : e->proc;
  if (proc == UVM_NONE) return;
  for (int a = uvm_mask_next(e->pages, 0), z; a >= 0; a = uvm_mask_next(e->pages, z)) {
    for (z = a + 1; z < UVM_BLOCK_PAGES && uvm_mask_test(e->pages, z);) z++;
    record(s, b, a, z, proc, now, e);
  }
}

static const uvm_mask *thrashing(void *state, const uvm_view *v, uvm_block_id id) {
  const struct block *b = uvm_block_state(v, id);
  (void)state;
  return b->track && uvm_mask_next(&b->track->thrashing, 0) >= 0 ? &b->track->thrashing : NULL;
}

/* -- where a thrashing page should be -- */

struct question {
  const struct state *s;
  const struct uvm_topology *topo;
  const struct page *page;
  bool pinned;
  uvm_proc r;                                   /* who faults */
  uvm_proc closest;                             /* of the processors that hold the page, to r; UVM_NONE: none does */
  uvm_node preferred;
};
struct answer { enum uvm_hint hint; uvm_node node; };

static const struct answer none = {UVM_HINT_NONE, UVM_NONE}, throttle = {UVM_HINT_THROTTLE, UVM_NONE};
static struct answer pin_at(uvm_node n) { return (struct answer){UVM_HINT_PIN, n}; }

static uvm_node home(const struct question *q, uvm_proc p) { return q->topo->procs[p].home; }
static bool reaches(const struct uvm_topology *t, uvm_proc p, uvm_node n) { return t->procs[p].reach >> n & 1; }

static uint32_t reaching(const struct uvm_topology *t, uint32_t procs, uvm_node n) {
  for (uvm_proc p = 0; p < t->nprocs; p++)
    if (!reaches(t, p, n)) procs &= ~bit(p);
  return procs;
}
static bool all_reach(const struct question *q, uvm_node n) { return reaching(q->topo, q->page->procs, n) == q->page->procs; }

static uvm_proc gpu_first(uint32_t procs) { return (uvm_proc)__builtin_ctz(procs & ~1u ? procs & ~1u : procs); }

/* The processor itself, else one on a fast link, else one whose memory it reaches, GPUs before the CPU; else the first. */
static uvm_proc closest_to(const struct uvm_topology *t, uvm_proc r, uint32_t candidates) {
  if (!candidates) return UVM_NONE;
  if (candidates & bit(r)) return r;
  uint32_t fast = candidates & t->procs[r].fast_link, near = 0;
  if (fast) return gpu_first(fast);
  for (uvm_proc p = 0; p < t->nprocs; p++)
    if (candidates & bit(p) && reaches(t, r, t->procs[p].home)) near |= bit(p);
  return near ? gpu_first(near) : (uvm_proc)__builtin_ctz(candidates);
}

/* Every participant holds the page or works on it over a fast link with atomics of its own, and nobody prefers it theirs. */
static bool shared_fast(const struct question *q) {
  if (q->closest == UVM_NONE) return false;
  for (uvm_proc p = 0; p < q->topo->nprocs; p++) {
    const struct uvm_proc_info *info = &q->topo->procs[p];
    if (!(q->page->procs & bit(p))) continue;
    if (q->preferred != UVM_NONE && info->home == q->preferred) return false;
    if (p != q->closest && !(info->fast_link >> q->closest & info->native_atomics >> home(q, q->closest) & 1)) return false;
  }
  return true;
}

static struct answer hint_shared(const struct question *q) {
  uvm_node mine = home(q, q->r);
  if (q->closest != 0 || !all_reach(q, mine)) return pin_at(home(q, q->closest));
  return q->r ? pin_at(mine) : none;
}

static struct answer hint_preferred(const struct question *q) {
  bool turn = q->page->dnt == q->r;
  if (q->pinned) return turn || q->page->pinned_at == q->preferred ? pin_at(q->preferred) : throttle;
  if (!turn) return throttle;
  return q->page->throttle_count >= q->s->pin_threshold ? pin_at(q->preferred) : none;
}

static struct answer hint_pinned(const struct question *q) {
  if (q->r != q->page->dnt) return reaches(q->topo, q->r, q->page->pinned_at) ? pin_at(q->page->pinned_at) : throttle;
  uint32_t all = 0;
  for (uvm_proc p = 0; p < q->topo->nprocs; p++)
    if (all_reach(q, home(q, p))) all |= bit(p);
  uvm_proc at = closest_to(q->topo, q->r, all);
  return pin_at(home(q, at == UVM_NONE ? q->r : at));
}

/* The first rule that fits. */
static struct answer migration_hint(const struct question *q) {
  if (q->preferred != UVM_NONE && all_reach(q, q->preferred)) return pin_at(q->preferred);
  if (shared_fast(q)) return hint_shared(q);
  if (home(q, q->r) == q->preferred) return hint_preferred(q);
  if (q->pinned) return hint_pinned(q);
  if (q->r != q->page->dnt) return throttle;
  return q->page->throttle_count >= q->s->pin_threshold ? pin_at(home(q, q->r)) : none;
}

/* -- hints -- */

/* As shipped, the vote is compared as an unsigned number: a single vote for a shorter lapse makes it longer. */
static void adapt_lapse(struct state *s, uvm_ns gap) {
  if (s->adaptive_lapse == ADAPT_OFF) return;
  if (gap < s->lapse) s->vote -= s->vote > INT8_MIN;
  else s->vote += s->vote < INT8_MAX;
  int64_t limit = s->vote_threshold;
  bool shipped = s->adaptive_lapse == ADAPT_SHIPPED;
  bool longer = shipped ? (uint32_t)s->vote >= s->vote_threshold : s->vote >= limit;
  bool shorter = shipped ? s->vote >= limit : -s->vote >= limit;
  uvm_ns eighth = s->lapse / 8;
  if (longer && s->lapse < LAPSE_MAX) s->lapse += eighth < LAPSE_STEP_MAX ? eighth : LAPSE_STEP_MAX;
  else if (shorter && s->lapse > LAPSE_MIN) s->lapse -= eighth > LAPSE_MIN ? eighth : LAPSE_MIN;
  else return;
  s->vote /= 2;
}

/* After a long quiet time a block starts afresh, a few times. */
static bool quiet_epoch(const struct state *s, struct block *b, uvm_ns now) {
  const struct track *t = b->track;
  if (!t->last_thrashing || since(now, t->last_thrashing) <= s->epoch_ns || t->pinned_events || b->resets >= s->max_resets) return false;
  uvm_mem_free(b->track);
  *b = (struct block){.resets = b->resets + 1};
  return true;
}

/* Whether r is still held; if its time is over it is let go. */
static bool held(struct page *p, uvm_proc r, uvm_ns now) {
  if (!(p->throttled & bit(r))) return false;
  if (now < p->throttle_end && r != p->dnt) return true;
  p->throttled &= ~bit(r);
  if (!p->throttled) p->throttle_end = 0;
  return false;
}

/* A new slot goes to whoever comes first after the last one, but not to the same processor twice in a row. */
static void take_slot(const struct state *s, struct page *p, uvm_proc r, uvm_ns now) {
  if (now > p->throttle_end) {
    p->throttle_end = stamp(now + s->nap_ns);
    p->dnt = p->dnt == r ? UVM_NONE : r;
  } else if (p->dnt == UVM_NONE) {
    p->dnt = r;
  }
}

/* The pin's deadline is set once, however often it moves. */
static void pin_page(const struct state *s, const uvm_view *v, struct track *t, const struct uvm_fault *f, uvm_node at, uvm_ns now,
                     struct uvm_thrash *out) {
  struct page *p = &t->page[f->page];
  bool pinned = uvm_mask_test(&t->pinned, f->page);
  if (!pinned || !uvm_mask_test(uvm_resident(v, f->block, at), f->page)) end_throttles(p);
  if (!pinned) {
    uvm_mask_set(&t->pinned, f->page, f->page + 1);
    p->unpin_at = s->pin_ns ? now + s->pin_ns : 0;
    t->pinned_events++;
  }
  p->throttle_count = 0;
  p->pinned_at = at;
  *out = (struct uvm_thrash){UVM_HINT_PIN, at, reaching(uvm_topology(v), p->procs, at), p->unpin_at};
}

static void hold(struct page *p, uvm_proc r, bool pinned, struct uvm_thrash *out) {
  if (!(p->throttled & bit(r)) && !pinned && p->throttle_count < THROTTLES_MAX) p->throttle_count++;
  p->throttled |= bit(r);
  *out = (struct uvm_thrash){.hint = UVM_HINT_THROTTLE, .node = UVM_NONE, .until = p->throttle_end};
}

static struct question pose(const struct state *s, const uvm_view *v, const struct track *t, const struct uvm_fault *f) {
  const struct uvm_topology *topo = uvm_topology(v);
  uint32_t holders = 0;
  for (uvm_proc p = 0; p < topo->nprocs; p++)
    if (uvm_mask_test(uvm_resident(v, f->block, topo->procs[p].home), f->page)) holders |= bit(p);
  return (struct question){s, topo, &t->page[f->page], uvm_mask_test(&t->pinned, f->page), f->proc, closest_to(topo, f->proc, holders),
                           uvm_range(v, uvm_block(v, f->block)->range)->preferred};
}

static void thrash(void *state, const uvm_view *v, const struct uvm_fault *f, struct uvm_thrash *out) {
  struct state *s = state;
  struct block *b = uvm_block_state(v, f->block);
  uvm_ns now = uvm_now(v);
  *out = (struct uvm_thrash){.hint = UVM_HINT_NONE, .node = UVM_NONE};
  if (!s->enable || !b->track || quiet_epoch(s, b, now)) return;
  struct track *t = b->track;
  struct page *p = &t->page[f->page];
  bool pinned = uvm_mask_test(&t->pinned, f->page);
  if (p->events < s->threshold) return;
  if (held(p, f->proc, now)) {
    hold(p, f->proc, pinned, out);
    return;
  }
  adapt_lapse(s, since(now, p->ts));
  if (since(now, p->ts) > s->lapse && !pinned) return;
  p->procs |= bit(f->proc);
  take_slot(s, p, f->proc, now);
  struct question q = pose(s, v, t, f);
  struct answer a = pinned && p->revoked && f->proc != p->dnt ? throttle : migration_hint(&q);
  if (a.hint == UVM_HINT_PIN) pin_page(s, v, t, f, a.node, now, out);
  if (a.hint == UVM_HINT_THROTTLE) hold(p, f->proc, pinned, out);
}

/* -- start, end, table -- */

static int init(void *state, const uvm_view *v) {
  struct state *s = state;
  if (s->threshold < 1 || s->threshold > EVENTS_MAX) s->threshold = 3;
  if (s->pin_threshold < 1 || s->pin_threshold > THROTTLES_MAX) s->pin_threshold = 10;
  if (s->nap < 1 || s->nap > 100) s->nap = 1;
  if (s->lapse < US) s->lapse = LAPSE;          /* the driver's is in whole us */
  if (!s->vote_threshold) s->vote_threshold = 500;
  s->nap_ns = s->nap * s->lapse;
  s->epoch_ns = s->epoch * s->lapse;
  s->pin_ns = s->pin * s->lapse;
  if (s->adaptive_lapse == ADAPT_BY_VERSION) s->adaptive_lapse = uvm_topology(v)->driver_version >= 590 ? ADAPT_SHIPPED : ADAPT_OFF;
  if (s->lapse != LAPSE) s->adaptive_lapse = ADAPT_OFF;
  return 0;
}

static void block_fini(void *state, void *block_state) {
  (void)state;
  uvm_mem_free(((struct block *)block_state)->track);
}

#define AT(field) offsetof(struct state, field)
static const struct uvm_opt opts[] = {
    {"enable", UVM_BOOL, AT(enable), 0, 1, 1, "detect and mitigate at all"},
    {"threshold", UVM_U32, AT(threshold), 0, UINT32_MAX, 3, "close events that make a page thrashing; outside 1 to 7 means 3"},
    {"pin_threshold", UVM_U32, AT(pin_threshold), 0, UINT32_MAX, 10, "throttled slots before a page is pinned; outside 1 to 255 means 10"},
    {"lapse", UVM_NS, AT(lapse), 0, 1e9, LAPSE, "events at most this far apart are close; below 1us means 500us"},
    {"nap", UVM_U32, AT(nap), 0, UINT32_MAX, 1, "length of a slot, in lapses; outside 1 to 100 means 1"},
    {"epoch", UVM_U32, AT(epoch), 0, UINT32_MAX, 2000, "quiet time after which a block starts afresh, in lapses"},
    {"pin", UVM_U32, AT(pin), 0, UINT32_MAX, 300, "how long a page stays pinned, in lapses; 0 means for ever"},
    {"max_resets", UVM_U32, AT(max_resets), 0, UINT32_MAX, 4, "fresh starts a block may have"},
    {"lapse_vote_threshold", UVM_U32, AT(vote_threshold), 0, UINT32_MAX, 32, "votes that change an adaptive lapse; 0 means 500"},
    {"adaptive_lapse", UVM_U32, AT(adaptive_lapse), 0, 3, ADAPT_BY_VERSION,
     "0 never, 1 as shipped in 590 and later, 2 corrected, 3 by the driver's version; only when lapse is 500us"},
    {"pinned_count_quirk", UVM_BOOL, AT(pinned_count_quirk), 0, 1, 1,
     "a block that ever had a pin never starts afresh (1), or may once nothing is pinned (0)"},
    {"reset_keeps_quirk", UVM_BOOL, AT(reset_keeps_quirk), 0, 1, 1,
     "a page's reset keeps its throttle count and slot owner (1), or clears them (0)"},
    {"keep_events_quirk", UVM_BOOL, AT(keep_events_quirk), 0, 1, 1,
     "a long gap below the threshold keeps a page's events (1), or clears them (0)"},
    {0}};

const struct uvm_policy uvm_policy_nvidia_thrashing = {
    .abi = UVM_POLICY_ABI,
    .name = "thrashing",
    .help = "throttle the processors that fight over a page, then pin it (NVIDIA)",
    .opts = opts,
    .state_size = sizeof(struct state),
    .block_size = sizeof(struct block),
    .init = init,
    .block_fini = block_fini,
    .on_event = on_event,
    .thrash = thrash,
    .thrashing = thrashing,
};
