/* Thrashing control: vectors T1 to T5 of the driver's specification row by row, the rules for events and hints one a row,
 * and for each quirk what it changes. The policy's file is included, so that counters and lapses can be looked at. */
#include "tests/unit/fake_view.h"
#include "policies/nvidia_thrashing.c"

#define PAGE 7
#define BOTH (1u << CPU | 1u << GPU)
static const struct uvm_policy *const policy = &uvm_policy_nvidia_thrashing;

static uvm_view *open_at(enum fake_machine m, uint32_t version) {
  uvm_view *v = fake_open(policy, m);
  v->topology.driver_version = version;
  return v;
}
static uvm_view *started(enum fake_machine m, uint32_t version) {
  uvm_view *v = open_at(m, version);
  fake_start(v);
  return v;
}
static struct state *state_of(uvm_view *v) { return v->state; }
static struct block *block_of(uvm_view *v) { return v->block_state; }
static struct page *page_of(uvm_view *v, int i) {
  assert_non_null(block_of(v)->track);
  return &block_of(v)->track->page[i];
}
static bool marked(uvm_view *v, int i) {
  const uvm_mask *m = policy->thrashing(v->state, v, 1);
  return m && uvm_mask_test(m, i);
}

static void tell(uvm_view *v, enum uvm_told_kind kind, enum uvm_cause cause, uvm_proc p, const char *pages, uvm_ns now) {
  uvm_mask m = fake_pages(pages, 0);
  struct uvm_told e = {.kind = (uint8_t)kind, .cause = (uint8_t)cause, .proc = p, .dst = p, .block = 1, .pages = &m,
                       .begin = now, .end = now + 10 * US};
  v->now = now;
  policy->on_event(v->state, v, &e);
}
static void migrated(uvm_view *v, uvm_proc to, const char *pages, uvm_ns us) { tell(v, UVM_T_MIGRATED, UVM_C_FAULT, to, pages, us * US); }

static struct uvm_thrash ask(uvm_view *v, uvm_proc r, uvm_ns now) {
  struct uvm_fault f = {.block = 1, .page = PAGE, .proc = r, .access = UVM_A_WRITE};
  struct uvm_thrash out = {0};
  v->now = now;
  policy->thrash(v->state, v, &f, &out);
  return out;
}
static void reside(uvm_view *v, int page, uvm_node n) {
  for (int i = 0; i < 3; i++) uvm_mask_del(&v->resident[i], page);
  uvm_mask_add(&v->resident[n], page);
}

/* -- the fight of section 1.8: served faults are events 20 us later, the loser faults again 80 us after that -- */

struct row {
  int t;                                        /* us, cut; as all times here */
  uvm_proc who;
  uint8_t hint;
  int until, count, lapse, dnt, events;         /* -1 in expectations: not said. events: after this fault's event */
  uvm_node node;
  bool detected, reset;                         /* by this fault's event */
};
struct fight { uvm_view *v; uvm_ns now, period; uvm_proc who; bool over; struct row row[600]; int n; };

static void serve(struct fight *f, struct row *r, uvm_node to) {
  if (uvm_mask_test(&f->v->resident[to], PAGE)) return;
  bool before = marked(f->v, PAGE);
  reside(f->v, PAGE, to);
  tell(f->v, UVM_T_MIGRATED, UVM_C_FAULT, f->who, "7", f->now + 20 * US);
  r->detected = !before && marked(f->v, PAGE);
  r->reset = before && !marked(f->v, PAGE);
  r->events = block_of(f->v)->track ? page_of(f->v, PAGE)->events : -1;
}

static void fault(struct fight *f) {
  struct uvm_thrash h = ask(f->v, f->who, f->now);
  struct track *t = block_of(f->v)->track;
  struct row r = {.t = (int)(f->now / US), .who = f->who, .hint = h.hint, .until = (int)(h.until / US), .events = -1, .node = h.node,
                  .lapse = (int)(state_of(f->v)->lapse / US), .count = t ? t->page[PAGE].throttle_count : 0,
                  .dnt = t ? t->page[PAGE].dnt : UVM_NONE};
  if (h.hint == UVM_HINT_THROTTLE) {            /* the CPU sleeps, at least 1 us; the GPU tries again and again */
    uvm_ns sleep = f->now + US > h.until ? f->now + US : h.until;
    f->now = f->who == CPU ? sleep : f->now + f->period;
  } else {
    serve(f, &r, h.hint == UVM_HINT_PIN ? h.node : f->who);
    f->over = h.hint == UVM_HINT_PIN && h.procs == BOTH;
    f->who = f->who == CPU ? GPU : CPU;
    f->now += 100 * US;
  }
  struct row *last = f->n ? &f->row[f->n - 1] : NULL;
  bool again = last && r.hint == UVM_HINT_THROTTLE && last->hint == r.hint && last->who == r.who;
  if (again) assert_true(last->until == r.until && last->count == r.count);    /* asked again in the same slot: not counted again */
  else f->row[f->n++] = r;
}

static struct fight fight(uvm_view *v, uvm_ns period_us, int until_us) {
  struct fight f = {.v = v, .period = period_us * US, .who = GPU};
  reside(v, PAGE, CPU);
  while (!f.over && f.now < (uvm_ns)until_us * US && f.n < 600) fault(&f);
  return f;
}

static const struct row *row_at(const struct fight *f, int t) {
  for (int i = 0; i < f->n; i++)
    if (f->row[i].t == t) return &f->row[i];
  fail_msg("nobody faults at %d us", t);
  return NULL;
}

static void assert_row(const struct row *want, const struct row *got) {
  static const char *const names[] = {"NONE", "PIN", "THROTTLE"};
#define SAID(field) (want->field == -1 || want->field == got->field)
  if (want->t == got->t && want->who == got->who && want->hint == got->hint && (want->events == 3) == got->detected && SAID(until) &&
      SAID(count) && SAID(lapse) && SAID(dnt) && SAID(events)) return;
  fail_msg("expected t %d who %d %s until %d count %d lapse %d dnt %d events %d, "
           "found t %d who %d %s until %d count %d lapse %d dnt %d events %d",
           want->t, want->who, names[want->hint], want->until, want->count, want->lapse, want->dnt, want->events, got->t, got->who,
           names[got->hint], got->until, got->count, got->lapse, got->dnt, got->events);
}

#define N UVM_HINT_NONE
#define T UVM_HINT_THROTTLE
#define P UVM_HINT_PIN
#define ROW(t_, w_, h_, u_, c_, l_, d_, e_) {.t = t_, .who = w_, .hint = h_, .until = u_, .count = c_, .lapse = l_, .dnt = d_, .events = e_}
static const struct row t1[] = {
    /* t, who, hint, until, count, lapse, dnt, events (3: detected) */
    ROW(0, GPU, N, -1, 0, 500, -1, -1), ROW(100, CPU, N, -1, 0, 500, -1, 0), ROW(200, GPU, N, -1, 0, 500, -1, 1),
    ROW(300, CPU, N, -1, 0, 500, -1, 2), ROW(400, GPU, N, -1, 0, 500, -1, 3), ROW(500, CPU, N, -1, 0, 562, CPU, 4),
    ROW(600, GPU, T, 1000, 1, -1, CPU, -1), ROW(1000, GPU, N, -1, 1, 711, GPU, 5), ROW(1100, CPU, T, 1499, 2, -1, GPU, -1),
    ROW(1499, CPU, N, -1, 2, 901, CPU, 6), ROW(1599, GPU, T, 1999, 3, -1, CPU, -1), ROW(1999, GPU, N, -1, 3, 1140, GPU, 7),
    ROW(2099, CPU, T, -1, 4, -1, GPU, -1), ROW(2499, CPU, N, -1, 4, 1443, CPU, 7), ROW(2599, GPU, T, -1, 5, -1, CPU, -1),
    ROW(2999, GPU, N, -1, 5, 1826, GPU, 7), ROW(3099, CPU, T, -1, 6, -1, GPU, -1), ROW(3499, CPU, N, -1, 6, 2311, CPU, 7),
    ROW(3599, GPU, T, -1, 7, -1, CPU, -1), ROW(3999, GPU, N, -1, 7, 2925, GPU, 7), ROW(4099, CPU, T, -1, 8, -1, GPU, -1),
    ROW(4499, CPU, N, -1, 8, 3703, CPU, 7), ROW(4599, GPU, T, -1, 9, -1, CPU, -1), ROW(4999, GPU, N, -1, 9, 4686, GPU, 7),
    ROW(5099, CPU, T, 5499, 10, -1, GPU, -1), ROW(5499, CPU, P, 155499, 0, -1, CPU, -1),
};
enum { T1_ROWS = sizeof t1 / sizeof *t1 };

static void test_t1(void **state) {
  uvm_view *v = started(PCIE, 595);
  (void)state;
  struct fight f = fight(v, 40, 10000);
  assert_int_equal(f.n, T1_ROWS);
  for (int i = 0; i < T1_ROWS; i++) assert_row(&t1[i], &f.row[i]);
  assert_int_equal(f.row[f.n - 1].node, CPU);
  assert_true(f.over);                          /* GPU mapped remotely */
  fake_close(v);
}

static void test_t2(void **state) {
  uvm_view *v = started(PCIE, 580);
  (void)state;
  struct fight f = fight(v, 40, 20000);
  for (int i = 0; t1[i].t < 1999; i++) {
    struct row want = t1[i];
    want.lapse = 500;
    assert_row(&want, &f.row[i]);
  }
  const struct row *r = row_at(&f, 1999);
  assert_true(r->who == GPU && r->hint == N && r->reset && r->count == 3);
  assert_int_equal(row_at(&f, 2099)->count, 3);    /* survives the reset */
  static const int detections[] = {400, 2399, 3399, 4399};
  for (int i = 0, found = 0; i < f.n && found < 4; i++)
    if (f.row[i].detected) {                    /* 3400.9 and so on, as the CPU sleeps at least 1 us; 7600.9 and 8000.9 follow */
      assert_in_range(f.row[i].t, detections[found], detections[found] + 1);
      found++;
    }
  for (int i = 0; i < f.n && f.row[i].t < 7600; i++) assert_true(f.row[i].count < 10);
  assert_int_equal(row_at(&f, 7600)->count, 10);
  r = row_at(&f, 8000);
  assert_true(r->who == GPU && r->hint == P && r->node == GPU && r->until == 158000);
  r = row_at(&f, 8100);
  assert_true(r->who == CPU && r->hint == T);
  r = row_at(&f, 8500);
  assert_true(r->who == CPU && r->hint == P && r->node == CPU && r->until == 158000);
  assert_true(f.over && r == &f.row[f.n - 1]);
  fake_close(v);
}

static void test_t3(void **state) {
  uvm_view *v = started(PCIE, 580);
  (void)state;
  struct fight f = fight(v, 7, 20000);
  const struct row *r = row_at(&f, 1006);
  assert_true(r->who == GPU && r->hint == N && r->reset);
  assert_true(row_at(&f, 1406)->detected);
  r = row_at(&f, 1506);
  assert_true(r->who == CPU && r->hint == N && r->dnt == CPU);
  r = row_at(&f, 1606);
  assert_true(r->who == GPU && r->hint == T && r->until == 2005 && r->count == 2);
  assert_true(row_at(&f, 2012)->reset);
  r = row_at(&f, 9055);
  assert_true(r->who == GPU && r->hint == P && r->node == GPU && r->until == 159055);
  r = row_at(&f, 9554);
  assert_true(r->who == CPU && r->hint == P && r->node == CPU && r->until == 159055);
  assert_true(f.over && r == &f.row[f.n - 1]);
  fake_close(v);
}

/* Events 100 us apart, the third detected: t + 20, 120 ... 420 us, ending on the GPU as T1's first 400 us. */
static void detect(uvm_view *v, uvm_ns us) {
  for (int i = 0; i < 5; i++) migrated(v, i % 2 ? CPU : GPU, "7", us + 20 + 100 * (uvm_ns)i);
  reside(v, PAGE, GPU);
  assert_true(marked(v, PAGE));
}

static void test_t4(void **state) {
  uvm_view *v = started(PCIE, 580);
  (void)state;
  for (uint32_t resets = 0; resets < 4; resets++) {
    uvm_ns t = resets * 2000000;
    detect(v, t);
    assert_int_equal(ask(v, CPU, (t + 1000420) * US).hint, N);
    assert_int_equal(block_of(v)->resets, resets);              /* exactly an epoch is not longer than one */
    assert_int_equal(ask(v, CPU, (t + 1000421) * US).hint, N);
    assert_int_equal(block_of(v)->resets, resets + 1);
    assert_true(!block_of(v)->track && !block_of(v)->last_ts && !marked(v, PAGE));
  }
  detect(v, 8000000);
  assert_int_equal(ask(v, CPU, 1000000000 * US).hint, N);
  assert_true(block_of(v)->resets == 4 && marked(v, PAGE));     /* for ever */
  fake_close(v);
}

static void test_t5(void **state) {
  uvm_view *v = started(GRACE, 580);
  (void)state;
  struct fight f = fight(v, 40, 10000);
  for (int i = 0; i < 5; i++) assert_row(&t1[i], &f.row[i]);
  const struct row *r = row_at(&f, 500);
  assert_true(r->who == CPU && r->hint == P && r->node == GPU && r->count == 0);
  assert_true(f.over && r == &f.row[f.n - 1]);  /* the CPU is mapped; nobody was throttled */
  fake_close(v);
}

/* -- 1.7.1: events -- */

/* Steps 1 and 2: what is no event, and what starts a page afresh. */
static void test_which_events(void **state) {
  static const struct { enum uvm_told_kind kind; enum uvm_cause cause; bool read_mostly; int events; } rows[] = {
      {UVM_T_MIGRATED, UVM_C_FAULT, false, 4},     {UVM_T_MIGRATED, UVM_C_PREFETCH, false, 4},  {UVM_T_MIGRATED, UVM_C_COUNTERS, false, 4},
      {UVM_T_REVOKED, UVM_C_FAULT, false, 4},      {UVM_T_MIGRATED, UVM_C_USER, false, 0},      {UVM_T_MIGRATED, UVM_C_POLICY, false, 0},
      {UVM_T_DUPLICATED, UVM_C_FAULT, false, 0},   {UVM_T_MIGRATED, UVM_C_FAULT, true, 0},      {UVM_T_MIGRATED, UVM_C_EVICTION, false, 3},
      {UVM_T_DUPLICATED, UVM_C_EVICTION, false, 3}, {UVM_T_POPULATED, UVM_C_FAULT, false, 3},   {UVM_T_EVICTED, UVM_C_EVICTION, false, 3},
      {UVM_T_COLLAPSED, UVM_C_FAULT, false, 3},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uvm_view *v = started(PCIE, 580);
    detect(v, 0);
    v->range.read_mostly = rows[i].read_mostly;
    tell(v, rows[i].kind, rows[i].cause, CPU, "7", 520 * US);
    assert_int_equal(page_of(v, PAGE)->events, rows[i].events);
    assert_int_equal(marked(v, PAGE), rows[i].events != 0);
    assert_int_equal(page_of(v, PAGE)->ts != 0, rows[i].events != 0);
    fake_close(v);
  }
}

/* Step 4: tracking starts with a change of processors within the lapse. */
static void test_tracking_starts(void **state) {
  static const struct { uvm_proc first, second; uvm_ns gap; bool tracked; } rows[] = {
      {GPU, CPU, 500 * US, true}, {GPU, CPU, 500 * US + 1, false}, {GPU, GPU, 100 * US, false}, {CPU, GPU, 0, true}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uvm_view *v = started(PCIE, 580);
    tell(v, UVM_T_MIGRATED, UVM_C_FAULT, rows[i].first, "7", 1000 * US);
    assert_null(block_of(v)->track);
    tell(v, UVM_T_MIGRATED, UVM_C_FAULT, rows[i].second, "7 [100,200)", 1000 * US + rows[i].gap);
    assert_int_equal(block_of(v)->track != NULL, rows[i].tracked);
    if (rows[i].tracked) assert_true(page_of(v, 100)->ts && page_of(v, 199)->ts && !page_of(v, 200)->ts && !page_of(v, 8)->ts);
    fake_close(v);
  }
}

/* Step 5: pages count one by one, prefetched ones too; 7 is the most; the same processor counts; a long gap resets a
 * thrashing page; times are kept in steps of 64 ns. */
static void test_counting(void **state) {
  uvm_view *v = started(PCIE, 580);
  (void)state;
  detect(v, 0);
  for (uvm_ns t = 520; t < 1500; t += 100) tell(v, UVM_T_MIGRATED, UVM_C_PREFETCH, CPU, "7 9", t * US + 77);
  assert_true(page_of(v, PAGE)->events == 7 && page_of(v, 9)->events == 7 && page_of(v, 8)->events == 0);
  assert_int_equal(page_of(v, 9)->procs, 1u << CPU);
  assert_int_equal(page_of(v, PAGE)->procs, BOTH);
  assert_int_equal(page_of(v, 9)->ts, 1420 * US + 32);          /* 1,420,077 cut to 22,188 x 64 */
  assert_int_equal(block_of(v)->track->last_thrashing, 1420 * US + 77);
  assert_false(page_of(v, 9)->revoked);
  tell(v, UVM_T_REVOKED, UVM_C_FAULT, GPU, "9", 1500 * US);
  assert_true(page_of(v, 9)->revoked && page_of(v, 9)->procs == BOTH);
  migrated(v, GPU, "9", 2001);
  assert_true(page_of(v, 9)->ts == 0 && !marked(v, 9) && !page_of(v, 9)->revoked && marked(v, PAGE));
  fake_close(v);
}

/* Step 3, by contiguous region: all pinned and moved by faults or counters: nothing new. */
static void test_pinned_regions(void **state) {
  static const struct { const char *pages; enum uvm_cause cause; bool recorded; } rows[] = {
      {"7", UVM_C_FAULT, false}, {"7", UVM_C_COUNTERS, false}, {"7", UVM_C_PREFETCH, true}, {"7 8", UVM_C_FAULT, true},
      {"7 9", UVM_C_FAULT, false}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uvm_view *v = started(PCIE, 580);
    detect(v, 0);
    uvm_mask_add(&block_of(v)->track->pinned, PAGE);
    tell(v, UVM_T_MIGRATED, rows[i].cause, CPU, rows[i].pages, 520 * US);
    assert_int_equal(page_of(v, PAGE)->events, rows[i].recorded ? 4 : 3);
    migrated(v, CPU, "7 8", 5000);
    assert_true(marked(v, PAGE));               /* a pinned page is not reset by a long gap */
    fake_close(v);
  }
}

/* -- 1.7.2: hints -- */

static void test_no_hint(void **state) {
  uvm_view *v = started(PCIE, 580);
  (void)state;
  assert_int_equal(ask(v, CPU, 10 * US).hint, N);               /* nothing known */
  for (int i = 0; i < 4; i++) migrated(v, i % 2 ? CPU : GPU, "7", 20 + 100 * (uvm_ns)i);
  assert_true(page_of(v, PAGE)->events == 2 && ask(v, GPU, 400 * US).hint == N && page_of(v, PAGE)->dnt == UVM_NONE);
  migrated(v, GPU, "7", 420);
  reside(v, PAGE, GPU);
  ask(v, CPU, 921 * US);                                        /* step 6: the last event is too old, no slot */
  assert_int_equal(page_of(v, PAGE)->dnt, UVM_NONE);
  ask(v, CPU, 919 * US);
  assert_int_equal(page_of(v, PAGE)->dnt, CPU);
  fake_close(v);

  v = open_at(PCIE, 580);
  fake_option(v, "enable", "0");
  fake_start(v);
  for (int i = 0; i < 5; i++) migrated(v, i % 2 ? CPU : GPU, "7", 20 + 100 * (uvm_ns)i);
  assert_true(!block_of(v)->track && !marked(v, PAGE) && ask(v, CPU, 500 * US).hint == N);
  fake_close(v);
}

/* Step 8: a slot is 500 us, its end cut to 64 ns; nobody owns two in a row; an ownerless slot goes to who comes first. */
static void test_slots(void **state) {
  struct page p = {.dnt = UVM_NONE};
  uvm_view *v = started(PCIE, 580);
  static const struct { uvm_ns now; uvm_proc r, dnt; uvm_ns end; } rows[] = {
      {1000 * US, CPU, CPU, 1499968}, {1499968, GPU, CPU, 1499968}, {1499969, CPU, UVM_NONE, 1999936}, {1600 * US, GPU, GPU, 1999936},
      {1700 * US, CPU, GPU, 1999936}, {2000 * US, CPU, CPU, 2499968}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    take_slot(state_of(v), &p, rows[i].r, rows[i].now);
    assert_int_equal(p.dnt, rows[i].dnt);
    assert_int_equal(p.throttle_end, rows[i].end);
  }
  fake_close(v);
}

/* Steps 4, 7 and 8: held until the slot ends, unless the slot is one's own; who asks and is not held takes part. When the last
 * one is let go the slot is over: a new one begins, its own unless the last was. */
static void test_let_go(void **state) {
  static const struct { uvm_proc dnt; uvm_ns now; bool both; uint8_t hint; uint32_t throttled; uvm_ns end; uvm_proc owner; } rows[] = {
      {CPU, 999, false, T, 1u << GPU, 1000 * US, CPU}, {GPU, 999, false, T, 1u << GPU, 1498944, UVM_NONE},
      {CPU, 1000, false, N, 0, 1499968, GPU},      {CPU, 1000, true, T, BOTH, 1000 * US, CPU}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uvm_view *v = started(PCIE, 580);
    detect(v, 0);
    reside(v, PAGE, CPU);
    struct page *p = page_of(v, PAGE);
    *p = (struct page){.ts = 900 * US, .throttle_end = 1000 * US, .procs = 1u << CPU, .throttled = rows[i].both ? BOTH : 1u << GPU,
                       .events = 3, .dnt = rows[i].dnt, .pinned_at = UVM_NONE};
    struct uvm_thrash h = ask(v, GPU, rows[i].now * US);
    assert_int_equal(h.hint, rows[i].hint);
    assert_int_equal(p->throttled, rows[i].throttled);
    assert_int_equal(p->throttle_end, rows[i].end);
    assert_int_equal(p->dnt, rows[i].owner);
    assert_int_equal(p->procs, i ? BOTH : 1u << CPU);
    fake_close(v);
  }
}

/* Steps 4, 9 and 10 on a page pinned at the CPU, in a slot of the GPU's up to 1000 us. */
static void test_pinned_page(void **state) {
  static const struct { uvm_proc r; bool revoked, on_gpu; uint8_t hint; } rows[] = {
      {CPU, false, false, P}, {CPU, true, false, T}, {GPU, true, false, P}, {CPU, false, true, P}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uvm_view *v = started(PCIE, 580);
    detect(v, 0);
    reside(v, PAGE, rows[i].on_gpu ? GPU : CPU);
    struct page *p = page_of(v, PAGE);
    uvm_mask_add(&block_of(v)->track->pinned, PAGE);
    *p = (struct page){.ts = 420 * US, .throttle_end = 1000 * US, .unpin_at = 99 * US, .procs = BOTH, .throttled = 1u << GPU1, .events = 3,
                       .throttle_count = 5, .dnt = GPU, .pinned_at = CPU, .revoked = rows[i].revoked};
    struct uvm_thrash h = ask(v, rows[i].r, 600 * US);
    assert_int_equal(h.hint, rows[i].hint);
    if (h.hint == P) {
      assert_true(h.node == CPU && h.procs == BOTH && h.until == 99 * US);   /* the first pin's deadline */
      assert_int_equal(p->throttle_count, 0);
      assert_int_equal(p->throttled, rows[i].on_gpu ? 0 : 1u << GPU1);       /* let go only if it has to move */
      assert_int_equal(p->throttle_end, rows[i].on_gpu ? 0 : 1000 * US);
    } else {
      assert_true(h.until == 1000 * US && p->throttle_count == 5 && p->throttled == (1u << GPU1 | 1u << CPU));   /* not counted */
    }
    fake_close(v);
  }
}

/* A pin carries those who reach it, has a deadline unless pin is 0, and ends when told; an older deadline says nothing. */
static void test_unpin(void **state) {
  (void)state;
  for (int forever = 0; forever < 2; forever++) {
    uvm_view *v = open_at(GRACE, 580);
    if (forever) fake_option(v, "pin", "0");
    fake_start(v);
    detect(v, 0);
    struct uvm_thrash h = ask(v, CPU, 500 * US);
    assert_true(h.hint == P && h.node == GPU && h.procs == BOTH);
    assert_int_equal(h.until, forever ? 0 : 150500 * US);
    assert_int_equal(page_of(v, PAGE)->pinned_at, GPU);
    if (!forever) {
      tell(v, UVM_T_UNPINNED, 0, 0, "7 8", 150479 * US);        /* deadlines within 20 us end together; this is 21 us early */
      assert_true(marked(v, PAGE));
      tell(v, UVM_T_UNPINNED, 0, 0, "7 8", 150480 * US);
      assert_false(marked(v, PAGE));
      assert_true(page_of(v, PAGE)->ts == 0 && page_of(v, PAGE)->pinned_at == UVM_NONE);
    }
    fake_close(v);
  }
}

/* -- 1.7.3: where to, one row a clause -- */

static void test_migration_hint(void **state) {
  enum { C = 1u << CPU, G = 1u << GPU, H = 1u << GPU1, NO = UVM_NONE };
  static const struct {
    enum fake_machine m;
    uvm_node preferred;
    uint32_t procs, holders;
    uvm_proc r, dnt;
    uvm_node pinned_at;
    uint8_t count, hint;
    uvm_node node;
  } rows[] = {
      {PCIE, CPU, C | G, G, GPU, NO, NO, 0, P, CPU},            /* 1: all can access the preferred location */
      {GRACE, GPU, C | G, G, CPU, NO, NO, 0, P, GPU},
      {GRACE, NO, C | G, G, CPU, CPU, NO, 0, P, GPU},           /* 2: all are fast; at the holder */
      {GRACE, NO, C | G, C, GPU, GPU, NO, 0, P, GPU},           /*    off the CPU to the GPU that asks */
      {GRACE, NO, C | G, C, CPU, CPU, NO, 0, N, NO},            /*    on the CPU for the CPU */
      {NVLINK, NO, C | G, C, GPU, GPU, NO, 0, P, CPU},          /*    the CPU could not access the GPU's memory */
      {NVLINK, NO, C | G, G, CPU, CPU, NO, 0, N, NO},           /*    the CPU has no native atomics there: rule 7 */
      {TWO_GPUS, NO, G | H, G, GPU1, GPU1, NO, 0, P, GPU},
      {TWO_GPUS, NO, C | G | H, G, GPU1, GPU1, NO, 0, N, NO},   /*    the CPU has no fast link: rule 7 */
      {NVLINK, GPU, C | G, C, GPU, CPU, NO, 10, T, NO},         /* 3: at home, not pinned: not its slot */
      {NVLINK, GPU, C | G, C, GPU, GPU, NO, 9, N, NO},          /*    its slot */
      {NVLINK, GPU, C | G, C, GPU, GPU, NO, 10, P, GPU},        /*    throttled often enough */
      {PCIE, GPU, C | G, C, GPU, CPU, CPU, 0, T, NO},           /*    pinned elsewhere, not its slot */
      {PCIE, GPU, C | G, C, GPU, GPU, CPU, 0, P, GPU},          /*    its slot */
      {PCIE, GPU, C | G, G, GPU, CPU, GPU, 0, P, GPU},          /*    pinned at home */
      {PCIE, NO, C | G, G, CPU, CPU, GPU, 0, P, CPU},           /* 4: pinned, its slot: here, all can access it */
      {PCIE, NO, C | G, C, GPU, GPU, CPU, 0, P, CPU},           /*    not here, but there */
      {PCIE, NO, C | G, C, GPU, CPU, CPU, 0, P, CPU},           /*    not its slot, but it can access the pin */
      {PCIE, NO, C | G, G, CPU, GPU, GPU, 0, T, NO},            /*    nor can it */
      {PCIE, NO, C | G, C, GPU, CPU, NO, 10, T, NO},            /* 5: not its slot */
      {PCIE, NO, C | G, C, GPU, GPU, NO, 10, P, GPU},           /* 6: throttled often enough */
      {PCIE, NO, C | G, C, GPU, GPU, NO, 9, N, NO},             /* 7 */
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uvm_view *v = started(rows[i].m, 580);
    struct track *t = calloc(1, sizeof *t);
    t->page[PAGE] = (struct page){.procs = rows[i].procs, .dnt = rows[i].dnt, .pinned_at = rows[i].pinned_at,
                                  .throttle_count = rows[i].count};
    if (rows[i].pinned_at != NO) uvm_mask_add(&t->pinned, PAGE);
    for (int n = 0; n < 3; n++)
      if (rows[i].holders >> n & 1) uvm_mask_add(&v->resident[n], PAGE);
    v->range.preferred = rows[i].preferred;
    struct uvm_fault f = {.block = 1, .page = PAGE, .proc = rows[i].r};
    struct question q = pose(v->state, v, t, &f);
    struct answer a = migration_hint(&q);
    if (a.hint != rows[i].hint || a.node != rows[i].node)
      fail_msg("row %zu: hint %d at %d, expected %d at %d", i, a.hint, a.node, rows[i].hint, rows[i].node);
    free(t);
    fake_close(v);
  }
}

/* Rule 4's last resort: no memory is accessible to all. */
static void test_pin_without_common_memory(void **state) {
  uvm_view *v = started(PCIE, 580);
  (void)state;
  v->procs[GPU].reach = 1u << GPU;
  struct page p = {.procs = BOTH, .dnt = GPU, .pinned_at = CPU};
  struct question q = {v->state, &v->topology, &p, true, GPU, CPU, UVM_NONE};
  struct answer a = migration_hint(&q);
  assert_true(a.hint == P && a.node == GPU);
  fake_close(v);
}

/* Section 0: itself, a fast link, reachable memory (GPUs before the CPU), the first. */
static void test_closest(void **state) {
  enum { C = 1u << CPU, G = 1u << GPU, H = 1u << GPU1 };
  uvm_view *v = started(TWO_GPUS, 580);
  (void)state;
  assert_int_equal(closest_to(&v->topology, GPU, C | G | H), GPU);
  assert_int_equal(closest_to(&v->topology, GPU, C | H), GPU1);
  v->procs[GPU].fast_link = C;
  assert_int_equal(closest_to(&v->topology, GPU, C | H), CPU);
  v->procs[GPU].fast_link = 0;
  assert_int_equal(closest_to(&v->topology, GPU, C | H), GPU1);
  v->procs[GPU].reach = C | G;
  assert_int_equal(closest_to(&v->topology, GPU, C | H), CPU);
  assert_int_equal(closest_to(&v->topology, CPU, G | H), GPU);
  assert_int_equal(closest_to(&v->topology, CPU, 0), UVM_NONE);
  fake_close(v);
}

/* -- 1.7.5 and section 7: quirks -- */

static uvm_ns lapse_after(const char *mode, uint32_t version, const char *lapse, uvm_ns gap, int hints) {
  uvm_view *v = open_at(PCIE, version);
  if (mode) fake_option(v, "adaptive_lapse", mode);
  if (lapse) fake_option(v, "lapse", lapse);
  fake_start(v);
  for (int i = 0; i < hints; i++) adapt_lapse(v->state, gap);
  uvm_ns l = state_of(v)->lapse;
  fake_close(v);
  return l;
}

static void test_q2_adaptive_lapse(void **state) {
  (void)state;
  assert_int_equal(lapse_after(NULL, 580, NULL, 80 * US, 5), 500000);
  assert_int_equal(lapse_after(NULL, 590, NULL, 80 * US, 1), 562500);      /* T1: any negative vote grows it */
  assert_int_equal(lapse_after("0", 595, NULL, 80 * US, 5), 500000);
  assert_int_equal(lapse_after("1", 580, NULL, 80 * US, 3), 711913);       /* 562500, 632812, 711913: T1's 711 */
  assert_int_equal(lapse_after("1", 595, "400us", 80 * US, 5), 400000);    /* only when left at 500 us */
  assert_int_equal(lapse_after("1", 595, NULL, 900 * US, 31), 500000);
  assert_int_equal(lapse_after("1", 595, NULL, 900 * US, 32), 562500);     /* unsigned(32) >= 32 grows as well */
  assert_int_equal(lapse_after("2", 580, NULL, 80 * US, 31), 500000);
  assert_int_equal(lapse_after("2", 580, NULL, 80 * US, 32), 437500);      /* corrected: many short gaps shrink it */
  assert_int_equal(lapse_after("2", 580, NULL, 80 * US, 48), 382813);      /* the vote went back to -16: 16 more */
  assert_int_equal(lapse_after("2", 580, NULL, 900 * US, 32), 562500);
}

/* As shipped the lapse shrinks only at its cap: 500 us grows by an eighth until that is 50 ms, then by 50 ms. */
static void test_q2_limits(void **state) {
  uvm_view *v = started(PCIE, 595);
  struct state *s = v->state;
  (void)state;
  for (int i = 0; i < 1000; i++) adapt_lapse(s, 0);
  uvm_ns cap = s->lapse;
  assert_in_range(cap, LAPSE_MAX, LAPSE_MAX + LAPSE_STEP_MAX - 1);
  s->vote = 0;
  for (int i = 0; i < 31; i++) adapt_lapse(s, cap);
  assert_int_equal(s->lapse, cap);
  adapt_lapse(s, cap);
  assert_int_equal(s->lapse, cap - cap / 8);
  assert_int_equal(s->vote, 16);
  s->adaptive_lapse = ADAPT_CORRECTED;          /* corrected: at least 5 us a step, and not below 5 us */
  s->lapse = 20 * US;
  s->vote = -31;
  adapt_lapse(s, 0);
  assert_int_equal(s->lapse, 15 * US);
  s->lapse = LAPSE;
  for (int i = 0; i < 5000; i++) adapt_lapse(s, 0);
  assert_true(s->lapse <= LAPSE_MIN && s->lapse > 0);
  fake_close(v);
}

/* Q3: as shipped, a block that ever had a pin keeps its state through any quiet time. */
static void test_q3_pinned_count(void **state) {
  (void)state;
  for (int quirk = 0; quirk < 2; quirk++) {
    uvm_view *v = open_at(GRACE, 580);
    fake_option(v, "pinned_count_quirk", quirk ? "1" : "0");
    fake_start(v);
    detect(v, 0);
    assert_int_equal(ask(v, CPU, 500 * US).hint, P);
    ask(v, CPU, 1200000 * US);                  /* an epoch later, still pinned */
    assert_non_null(block_of(v)->track);
    tell(v, UVM_T_UNPINNED, 0, 0, "7", 1200100 * US);
    ask(v, CPU, 1300000 * US);
    assert_int_equal(block_of(v)->track != NULL, quirk);
    assert_int_equal(block_of(v)->resets, !quirk);
    fake_close(v);
  }
}

/* Q4: as shipped, the throttle count and the slot's owner outlive a page's reset. */
static void test_q4_reset_keeps(void **state) {
  (void)state;
  for (int quirk = 0; quirk < 2; quirk++) {
    uvm_view *v = open_at(PCIE, 580);
    fake_option(v, "reset_keeps_quirk", quirk ? "1" : "0");
    fake_start(v);
    detect(v, 0);
    assert_int_equal(ask(v, CPU, 500 * US).hint, N);
    assert_int_equal(ask(v, GPU, 510 * US).hint, T);
    assert_true(page_of(v, PAGE)->throttle_end == 1000 * US);
    tell(v, UVM_T_MIGRATED, UVM_C_USER, CPU, "7", 600 * US);
    const struct page *p = page_of(v, PAGE);
    assert_true(!p->ts && !p->events && !p->procs && !p->throttled && !p->throttle_end && !marked(v, PAGE));
    assert_int_equal(p->throttle_count, quirk);
    assert_int_equal(p->dnt, quirk ? CPU : UVM_NONE);
    fake_close(v);
  }
}

/* Q5: as shipped, close events add up over long gaps until there are three. */
static void test_q5_keep_events(void **state) {
  (void)state;
  for (int quirk = 0; quirk < 2; quirk++) {
    uvm_view *v = open_at(PCIE, 580);
    fake_option(v, "keep_events_quirk", quirk ? "1" : "0");
    fake_start(v);
    migrated(v, GPU, "7", 20);
    static const uvm_ns times[] = {120, 220, 320, 9000, 9100};          /* events: -, 1, 2, (gap) 2 or 0, 3 or 1 */
    for (int i = 0; i < 5; i++) migrated(v, i % 2 ? GPU : CPU, "7", times[i]);
    assert_int_equal(page_of(v, PAGE)->events, quirk ? 3 : 1);
    assert_int_equal(marked(v, PAGE), quirk);
    fake_close(v);
  }
}

/* The parameter table of 1.7: what is out of range means the default; multiples of the lapse are taken once. */
static void test_options(void **state) {
  (void)state;
  uvm_view *v = started(PCIE, 580);
  struct state *s = v->state;
  assert_true(s->threshold == 3 && s->pin_threshold == 10 && s->lapse == 500000 && s->nap_ns == 500000 && s->epoch_ns == 1000000000 &&
              s->pin_ns == 150000000 && s->max_resets == 4 && s->vote_threshold == 32);
  fake_close(v);
  static const char *const odd[] = {"threshold", "8", "pin_threshold", "256", "lapse", "999", "nap", "101", "lapse_vote_threshold", "0"};
  static const char *const ends[] = {"threshold", "7", "pin_threshold", "255", "lapse", "20us", "nap", "100", "epoch", "4294967295"};
  v = open_at(PCIE, 580);
  s = v->state;
  for (int i = 0; i < 10; i += 2) fake_option(v, odd[i], odd[i + 1]);
  fake_start(v);
  assert_true(s->threshold == 3 && s->pin_threshold == 10 && s->lapse == 500000 && s->nap_ns == 500000 && s->vote_threshold == 500);
  fake_close(v);
  v = open_at(PCIE, 580);
  s = v->state;
  for (int i = 0; i < 10; i += 2) fake_option(v, ends[i], ends[i + 1]);
  fake_start(v);
  assert_true(s->threshold == 7 && s->pin_threshold == 255 && s->nap_ns == 2000000 && s->pin_ns == 6000000 &&
              s->epoch_ns == 85899345900000);
  fake_close(v);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_t1), cmocka_unit_test(test_t2), cmocka_unit_test(test_t3), cmocka_unit_test(test_t4), cmocka_unit_test(test_t5),
      cmocka_unit_test(test_which_events), cmocka_unit_test(test_tracking_starts), cmocka_unit_test(test_counting),
      cmocka_unit_test(test_pinned_regions), cmocka_unit_test(test_no_hint), cmocka_unit_test(test_slots), cmocka_unit_test(test_let_go),
      cmocka_unit_test(test_pinned_page), cmocka_unit_test(test_unpin), cmocka_unit_test(test_migration_hint),
      cmocka_unit_test(test_pin_without_common_memory),
      cmocka_unit_test(test_closest), cmocka_unit_test(test_q2_adaptive_lapse), cmocka_unit_test(test_q2_limits),
      cmocka_unit_test(test_q3_pinned_count), cmocka_unit_test(test_q4_reset_keeps), cmocka_unit_test(test_q5_keep_events),
      cmocka_unit_test(test_options)};
  return UVM_RUN(tests);
}
