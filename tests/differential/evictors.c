/* The evictors against naive ones, written from the specification's text (5.9) with arrays and loops: random requests, and
 * allocations freed in between, in a few frames; each victim must be the same. A page is a block with a backing of its own.
 * The evictors are told what a driver tells: a service when a backing is allocated and another when its block is done, hits,
 * evictions, and an allocation's end before its backings die. */
#include "tests/unit/fake_view.h"
#include "policies/policies.h"

enum { PAGES = 40, MAX_FRAMES = 24, ARRIVALS = FAKE_BACKINGS - 1, RUNS = 60 };
#define MIB2 (2ull << 20)

/* -- a naive cache: what every reference knows -- */

struct naive {
  int frames, n, page[2 * MAX_FRAMES]; /* in memory, in the reference's own order */
  int hand, bit[PAGES], uses[PAGES], last[PAGES], now;
  int t1[PAGES], t2[PAGES], b1[PAGES], b2[PAGES], nt1, nt2, nb1, nb2; /* two queues, and the ghosts of each */
  double p; /* ARC's target, and the page that comes, and the one that leaves no ghost */
  int asked, lost;
};
struct reference {
  void (*come)(struct naive *m, int page), (*hit)(struct naive *m, int page);
  int (*victim)(struct naive *m, int page); /* for this page to come; it stays until it goes */
  void (*go)(struct naive *m, int page, bool evicted);
};

static int find(const int *v, int n, int page) {
  for (int i = 0; i < n; i++)
    if (v[i] == page) return i;
  return -1;
}
static void insert(int *v, int *n, int at, int page) {
  for (int i = (*n)++; i > at; i--) v[i] = v[i - 1];
  v[at] = page;
}
static void cut(int *v, int *n, int at) {
  for (--*n; at < *n; at++) v[at] = v[at + 1];
}

/* FIFO and LRU: by arrival and by last use. */
static void come(struct naive *m, int page) {
  insert(m->page, &m->n, m->n, page);
  m->bit[page] = 0, m->uses[page] = 1, m->last[page] = ++m->now;
}
static void stamp(struct naive *m, int page) { m->uses[page]++, m->last[page] = ++m->now; }
static void go(struct naive *m, int page, bool evicted) {
  (void)evicted;
  cut(m->page, &m->n, find(m->page, m->n, page));
}
static int fifo_victim(struct naive *m, int page) {
  (void)page;
  return m->page[0];
}
static int lru_victim(struct naive *m, int page) {
  int oldest = m->page[0];
  (void)page;
  for (int i = 0; i < m->n; i++)
    if (m->last[m->page[i]] < m->last[oldest]) oldest = m->page[i];
  return oldest;
}

/* LFU: by how often, then by last use. */
static int lfu_victim(struct naive *m, int page) {
  int least = m->page[0];
  (void)page;
  for (int i = 0; i < m->n; i++) {
    int p = m->page[i];
    if (m->uses[p] < m->uses[least] || (m->uses[p] == m->uses[least] && m->last[p] < m->last[least])) least = p;
  }
  return least;
}

/* CLOCK: frames in a ring, a hand on one of them, a new page just behind the hand. */
static void clock_come(struct naive *m, int page) {
  m->bit[page] = 0;
  insert(m->page, &m->n, m->hand++, page);
  if (m->hand == m->n) m->hand = 0;
}
static void set_bit(struct naive *m, int page) { m->bit[page] = 1; }
static int clock_victim(struct naive *m, int page) {
  (void)page;
  while (m->bit[m->page[m->hand]]) {
    m->bit[m->page[m->hand]] = 0;
    m->hand = (m->hand + 1) % m->n;
  }
  return m->page[m->hand];
}
static void clock_go(struct naive *m, int page, bool evicted) {
  int at = find(m->page, m->n, page);
  (void)evicted;
  cut(m->page, &m->n, at);
  if (at < m->hand) m->hand--;
  if (m->hand >= m->n) m->hand = 0;
}

/* SIEVE: new pages at the right end; the hand goes right and stays where it is. hand -1: at the left end. */
static int sieve_victim(struct naive *m, int page) {
  int at = m->hand < 0 ? 0 : m->hand;
  (void)page;
  for (; m->bit[m->page[at]]; at = at + 1 < m->n ? at + 1 : 0) m->bit[m->page[at]] = 0;
  return m->page[m->hand = at];
}
static void sieve_go(struct naive *m, int page, bool evicted) {
  int at = find(m->page, m->n, page);
  (void)evicted;
  cut(m->page, &m->n, at);
  if (at < m->hand) m->hand--;
  if (m->hand == m->n) m->hand = -1;
}

/* S3-FIFO: two queues, old end left, and the ghosts of the small one. */
static void s3_come(struct naive *m, int page) {
  int ghost = find(m->b1, m->nb1, page);
  m->uses[page] = 0;
  m->n++;
  if (ghost < 0) {
    insert(m->t1, &m->nt1, m->nt1, page);
  } else {
    cut(m->b1, &m->nb1, ghost);
    insert(m->t2, &m->nt2, m->nt2, page);
  }
}
static void s3_hit(struct naive *m, int page) { m->uses[page] += m->uses[page] < 3; }
static int s3_victim(struct naive *m, int page) {
  int small = m->frames / 10, main = m->frames - small;
  (void)page;
  if (m->nt2 <= main)
    while (m->nt1) {
      int oldest = m->t1[0];
      if (m->uses[oldest] < 2) return oldest;
      m->uses[oldest] = 0;
      cut(m->t1, &m->nt1, 0);
      insert(m->t2, &m->nt2, m->nt2, oldest);
    }
  while (m->uses[m->t2[0]]) {
    int oldest = m->t2[0];
    m->uses[oldest]--;
    cut(m->t2, &m->nt2, 0);
    insert(m->t2, &m->nt2, m->nt2, oldest);
  }
  return m->t2[0];
}
static void s3_go(struct naive *m, int page, bool evicted) {
  int at = find(m->t1, m->nt1, page);
  m->n--;
  if (at < 0) {
    cut(m->t2, &m->nt2, find(m->t2, m->nt2, page));
    return;
  }
  cut(m->t1, &m->nt1, at);
  if (evicted) insert(m->b1, &m->nb1, m->nb1, page);
  if (m->nb1 > m->frames - m->frames / 10) cut(m->b1, &m->nb1, 0);
}

/* ARC, with its directory as the paper keeps it: what is over goes before a page comes, not after. */
static void arc_learn(struct naive *m, int page) {
  double up = m->nb2 > m->nb1 ? (double)m->nb2 / m->nb1 : 1, down = m->nb1 > m->nb2 ? (double)m->nb1 / m->nb2 : 1;
  if (m->asked == page) return;
  m->asked = page;
  if (find(m->b1, m->nb1, page) >= 0) {
    m->p = m->p + up < m->frames ? m->p + up : m->frames;
  } else if (find(m->b2, m->nb2, page) >= 0) {
    m->p = m->p > down ? m->p - down : 0;
  } else if (m->nt1 + m->nb1 == m->frames) {
    if (m->nb1)
      cut(m->b1, &m->nb1, 0);
    else
      m->lost = m->t1[0]; /* it leaves without a ghost */
  } else if (m->nt1 + m->nt2 + m->nb1 + m->nb2 == 2 * m->frames) {
    cut(m->b2, &m->nb2, 0);
  }
}
static int arc_victim(struct naive *m, int page) {
  arc_learn(m, page);
  if (m->lost) return m->lost;
  bool returns = find(m->b2, m->nb2, page) >= 0;
  return m->nt1 >= 1 && (m->nt1 > m->p || (returns && m->nt1 == m->p)) ? m->t1[0] : m->t2[0];
}
static void arc_come(struct naive *m, int page) {
  arc_learn(m, page);
  int in_b1 = find(m->b1, m->nb1, page), in_b2 = find(m->b2, m->nb2, page);
  if (in_b1 >= 0) cut(m->b1, &m->nb1, in_b1);
  if (in_b2 >= 0) cut(m->b2, &m->nb2, in_b2);
  if (in_b1 >= 0 || in_b2 >= 0)
    insert(m->t2, &m->nt2, m->nt2, page);
  else
    insert(m->t1, &m->nt1, m->nt1, page);
  m->asked = m->lost = 0;
  m->n++;
}
static void arc_hit(struct naive *m, int page) {
  int once = find(m->t1, m->nt1, page);
  if (once >= 0)
    cut(m->t1, &m->nt1, once);
  else
    cut(m->t2, &m->nt2, find(m->t2, m->nt2, page));
  insert(m->t2, &m->nt2, m->nt2, page);
}
static void arc_go(struct naive *m, int page, bool evicted) {
  int once = find(m->t1, m->nt1, page);
  if (once >= 0)
    cut(m->t1, &m->nt1, once);
  else
    cut(m->t2, &m->nt2, find(m->t2, m->nt2, page));
  if (evicted && !m->lost) {
    if (once >= 0)
      insert(m->b1, &m->nb1, m->nb1, page);
    else
      insert(m->b2, &m->nb2, m->nb2, page);
  }
  m->n--;
}

static const struct evictor {
  const struct uvm_policy *policy;
  struct reference ref;
  int misses;
  const char *victims;
} evictors[] = {
    {&uvm_policy_fifo, {come, stamp, fifo_victim, go}, 12, "123415231"},
    {&uvm_policy_lru, {come, stamp, lru_victim, go}, 10, "2345234"},
    {&uvm_policy_clock, {clock_come, set_bit, clock_victim, clock_go}, 10, "2345234"},
    {&uvm_policy_sieve, {come, set_bit, sieve_victim, sieve_go}, 0, NULL},
    {&uvm_policy_lfu, {come, stamp, lfu_victim, go}, 10, "2345234"},
    {&uvm_policy_s3fifo, {s3_come, s3_hit, s3_victim, s3_go}, 0, NULL},
    {&uvm_policy_arc, {arc_come, arc_hit, arc_victim, arc_go}, 10, "2345234"},
};
enum { EVICTORS = sizeof evictors / sizeof *evictors };

/* -- both, side by side -- */

struct pair {
  const struct evictor *e;
  struct naive naive;
  uvm_view *view;
  struct uvm_block_info blocks[PAGES]; /* page p is block p, of allocation 1 + p % 4 */
  uvm_backing_id of[PAGES], next;
};

static void open_pair(struct pair *t, const struct evictor *e, int frames) {
  memset(t, 0, sizeof *t);
  t->e = e, t->naive.frames = frames, t->next = 1;
  t->view = fake_open(e->policy, PCIE);
  for (int p = 1; p < PAGES; p++) t->blocks[p] = (struct uvm_block_info){.range = (uvm_range_id)(1 + p % 4), .pages = UVM_BLOCK_PAGES};
  t->view->blocks = t->blocks;
  t->view->resident[GPU] = uvm_mask_range(0, UVM_BLOCK_PAGES);
  fake_start(t->view);
}
static void tell(struct pair *t, struct uvm_told e) {
  if (e.block) e.backing = t->of[e.block], e.src = GPU;
  if (t->view->policy->on_event) t->view->policy->on_event(t->view->state, t->view, &e);
}
static void gone(struct pair *t, int page, bool evicted) {
  if (evicted) tell(t, (struct uvm_told){.kind = UVM_T_EVICTED, .block = (uvm_block_id)page});
  t->view->backing[t->of[page]].live = false;
  t->of[page] = 0;
  t->e->ref.go(&t->naive, page, evicted);
}
static int evict_for(struct pair *t, int page) {
  uvm_mask pages = uvm_mask_range(7, 8); /* the page that faulted need not be the backing's first */
  uvm_backing_id k = 0;
  size_t n = t->view->policy->victims(t->view->state, t->view, GPU, MIB2, (uvm_block_id)page, &pages, &k, 1);
  assert_int_equal(n, 1);
  int victim = (int)t->view->backing[k].info.block;
  assert_int_equal(victim, t->e->ref.victim(&t->naive, page));
  gone(t, victim, true);
  return victim;
}
static void arrive(struct pair *t, int page) {
  uvm_backing_id k = t->of[page] = t->next++;
  t->view->backing[k] = (struct fake_backing){
      .live = true, .info = {.node = GPU, .bytes = MIB2, .resident = MIB2, .block = (uvm_block_id)page}, .pages_of[0] = (uint32_t)page};
  tell(t, (struct uvm_told){.kind = UVM_T_SERVICED, .block = (uvm_block_id)page});
  tell(t, (struct uvm_told){.kind = UVM_T_SERVICED, .block = (uvm_block_id)page});
  t->e->ref.come(&t->naive, page);
}
static void hit(struct pair *t, int page) {
  uvm_mask m = uvm_mask_range(0, 1);
  struct uvm_run r = {.block = (uvm_block_id)page, .proc = GPU, .access = UVM_A_READ, .count = 1, .pages = &m};
  if (t->view->policy->on_access) t->view->policy->on_access(t->view->state, t->view, &r);
  t->e->ref.hit(&t->naive, page);
}
/* The page that left, 0: none. */
static int request(struct pair *t, int page) {
  if (t->of[page]) return hit(t, page), 0;
  int victim = t->naive.n == t->naive.frames ? evict_for(t, page) : 0;
  arrive(t, page);
  return victim;
}
static void free_range(struct pair *t, uvm_range_id r) {
  tell(t, (struct uvm_told){.kind = UVM_T_FREE, .range = r});
  for (int p = 1; p < PAGES; p++)
    if (t->of[p] && t->blocks[p].range == r) gone(t, p, false);
}

static void each_victim_is_the_same(void **state) {
  (void)state;
  for (int i = 0; i < EVICTORS; i++)
    for (uint64_t seed = 0; seed < RUNS; seed++) {
      uint64_t random = seed;
      struct pair t;
      open_pair(&t, &evictors[i], 1 + (int)(uvm_random(&random) % MAX_FRAMES));
      uint64_t pages = 2 + uvm_random(&random) % (PAGES - 2), frees = uvm_random(&random) % 2 ? 40 : UINT64_MAX;
      while (t.next <= ARRIVALS) {
        if (uvm_random(&random) % frees == 1) free_range(&t, 1 + (uvm_range_id)(uvm_random(&random) % 4));
        request(&t, 1 + (int)(uvm_random(&random) % (1 + uvm_random(&random) % (pages - 1))));
        if (pages < (uint64_t)t.naive.frames + 2 && frees > 40) break; /* they all fit */
      }
      fake_close(t.view);
    }
}

/* Section 5.9's trace in three frames. */
static void vectors(void **state) {
  (void)state;
  for (int i = 0; i < EVICTORS; i++) {
    if (!evictors[i].victims) continue; /* the specification has none */
    struct pair t;
    char found[16] = "";
    int evicted = 0;
    open_pair(&t, &evictors[i], 3);
    for (const char *s = "123141521314512"; *s; s++) {
      int victim = request(&t, *s - '0');
      if (victim) found[evicted++] = (char)('0' + victim);
    }
    assert_int_equal(t.next - 1, evictors[i].misses);
    assert_string_equal(found, evictors[i].victims);
    fake_close(t.view);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_victim_is_the_same), cmocka_unit_test(vectors)};
  return UVM_RUN(tests);
}
