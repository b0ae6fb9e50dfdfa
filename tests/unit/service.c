/* Running a plan and telling what came of it: what policies and observers hear, in which words and order. Expected values follow from
 * policy.h's list of what is told and event.h's list of what is observed. */
#include "tests/unit/fixture.h"
#include "core/host.h"

static const char *const told_names[] = {"alloc",     "free",      "advised",  "kernel_begin", "kernel_end", "batch_begin",
                                         "batch_end", "populated", "migrated", "duplicated",   "collapsed",  "revoked",
                                         "mapped",    "evicted",   "serviced", "unpinned"};
static const char *const event_names[] = {"TRANSFER", "BATCH", "GPU_FAULT", "CPU_FAULT", "POPULATE", "DUPLICATE", "COLLAPSE",
                                          "MAP",      "UNMAP", "REVOKE",    "EVICT",     "THRASH",   "THROTTLE",  "REMOTE_MAP"};

/* One line a thing heard: lower case by the policy, upper case by the observer. */
struct bench {
  struct uvm_core c;
  struct uvm_alloc *a;
  struct uvm_block *b;
  char log[4096], said[512];
  struct uvm_event service; /* of the latest plan; the last thing told of it */
  bool marks;
  uvm_mask marked;
};
static struct bench *now_on;

static void note(const char *fmt, ...) {
  size_t n = strlen(now_on->log);
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(now_on->log + n, sizeof now_on->log - n, fmt, ap);
  va_end(ap);
}

static void hear(void *s, const uvm_view *v, const struct uvm_told *e) {
  (void)s;
  note("%s %d+%d %d>%d p%d c%d %llu..%llu @%llu k%u\n", told_names[e->kind], uvm_mask_next(e->pages, 0), uvm_mask_count(e->pages), e->src,
       e->dst, e->proc, e->cause, (unsigned long long)e->begin, (unsigned long long)e->end, (unsigned long long)uvm_now(v), e->backing);
  if (now_on->marks && e->kind == UVM_T_MIGRATED) uvm_mask_or(&now_on->marked, e->pages);
}

static const uvm_mask *marks(void *s, const uvm_view *v, uvm_block_id b) { return (void)s, (void)v, (void)b, &now_on->marked; }

static void observe(void *ctx, const struct uvm_event *e) {
  (void)ctx;
  assert_true(e->has_alloc && e->alloc == now_on->a->number && !now_on->service.dur);
  if (e->kind == UVM_E_SERVICE) {
    now_on->service = *e;
    return;
  }
  note("%s %llu+%llu %d>%d p%d c%d t%llu+%llu v%llu %s\n", event_names[e->kind], (unsigned long long)e->offset / 4096,
       (unsigned long long)e->bytes / 4096, e->src, e->dst, e->proc, e->cause, (unsigned long long)e->t, (unsigned long long)e->dur,
       (unsigned long long)e->value, e->rule ? e->rule : "-");
}

static int keep(void *ctx, int code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(((struct bench *)ctx)->said, sizeof now_on->said, fmt, ap);
  va_end(ap);
  return code;
}

static uvm_ns prepare(void *ctx, const struct uvm_plan *p, uvm_ns now) {
  (void)ctx;
  for (size_t i = 0; i < p->steps.n; i++) assert_int_equal(p->steps.v[i].block->busy_until, 0);
  return now;
}

/* Step i takes [now + 10 i, now + 10 i + 10) and everything is done but page 500. */
static uvm_ns execute(void *ctx, struct uvm_plan *p, uvm_ns now) {
  (void)ctx;
  for (size_t i = 0; i < p->steps.n; i++) {
    struct uvm_step *st = &p->steps.v[i];
    assert_int_equal(st->block->busy_until, now);
    st->begin = st->pushed = now + 10 * i, st->end = st->begin + 10;
    st->done = st->pages;
    uvm_mask_del(&st->done, 500);
  }
  return now + 10 * p->steps.n;
}

static const char *const whys[] = {"none", "rule 11", NULL};
static const struct uvm_driver driver = {.name = "test", .why = whys};
static const struct uvm_policy ear = {.abi = UVM_POLICY_ABI, .name = "ear", .on_event = hear, .thrashing = marks};
static const struct uvm_observer observer = {NULL, observe};

/* Pages 8 on: page 0 of the allocation is page 8 of its block, which ends at page 512. */
static void open_bench(struct bench *t) {
  *t = (struct bench){.c = {.space = small_space(8 * MIB), .driver = &driver, .observers = &observer, .nobservers = 1}};
  t->c.hw.fail = keep, t->c.hw.ctx = t, t->c.hw.prepare = prepare, t->c.hw.execute = execute;
  const struct uvm_policy *parts[] = {&ear};
  t->c.host = uvm_host_create(&t->c, parts, 1);
  t->a = managed_in(t->c.space, 0x7f0000008000, 504 * 4096);
  t->b = uvm_block_get(t->c.space, t->a, 0);
  now_on = t;
}

static void close_bench(struct bench *t) {
  uvm_space_destroy(t->c.space);
  uvm_host_destroy(t->c.host);
}

static void run_at(struct bench *t, struct uvm_plan *p, uvm_ns now) {
  p->block = t->b;
  t->log[0] = 0;
  t->service = (struct uvm_event){0};
  uvm_ns end = uvm_plan_run(&t->c, p, now);
  if (end == UVM_NEVER) fail_msg("%s", t->said);
  assert_true(end == now + 10 * p->steps.n && t->b->busy_until == end && p->begin == now && p->end == end);
  uvm_plan_finish(&t->c, p, end);
  assert_int_equal(t->b->busy_until, 0);
  assert_true(t->service.t == now && t->service.dur == end - now && t->service.value == p->context && t->service.proc == p->proc);
}

static void test_first_touch_then_migration(void **state) {
  (void)state;
  struct bench t;
  struct uvm_plan p = {0};
  open_bench(&t);
  back(t.c.space, t.b, HBM0);
  add(&p, UVM_S_POPULATE, t.b, CPU, 0, DRAM, 8, 16)->cause = UVM_C_FAULT;
  struct uvm_step *st = add(&p, UVM_S_MAP, t.b, CPU, 0, 0, 8, 16);
  st->access = UVM_A_WRITE, st->cause = UVM_C_FAULT;
  run_at(&t, &p, 100);
  assert_string_equal(t.log, "populated 8+8 0>0 p0 c2 100..110 @110 k0\n"
                             "POPULATE 0+8 0>0 p0 c2 t100+10 v0 none\n"
                             "mapped 8+8 0>0 p0 c2 110..120 @120 k0\n"
                             "MAP 0+8 0>0 p0 c2 t110+10 v0 none\n");
  assert_int_equal(t.service.bytes, 8 * 4096);
  uvm_plan_clear(&p);
  uvm_mask pages = uvm_mask_range(8, 12), more = uvm_mask_range(9, 12);
  uint8_t why[UVM_BLOCK_PAGES] = {[8] = 1};
  add(&p, UVM_S_UNMAP, t.b, CPU, 0, 0, 8, 12)->cause = UVM_C_FAULT;
  uvm_plan_transfer(&p, UVM_S_MIGRATE, t.b, GPU0, DRAM, HBM0, &pages, &more, UVM_C_FAULT, why);
  run_at(&t, &p, 200);
  assert_string_equal(t.log, "UNMAP 0+4 0>0 p0 c2 t200+10 v0 none\n"
                             "migrated 8+1 0>1 p1 c2 210..220 @220 k0\n"
                             "TRANSFER 0+1 0>1 p1 c2 t210+10 v0 rule 11\n"
                             "migrated 9+3 0>1 p1 c3 220..230 @230 k0\n"
                             "TRANSFER 1+3 0>1 p1 c3 t220+10 v0 none\n");
  assert_int_equal(t.service.bytes, 0);
  uvm_plan_release(&p);
  close_bench(&t);
}

/* Pages 8 and 9 on hbm0, 10 and 11 on dram: a GPU maps all four, the last two remotely, one event a page. */
static void test_remote_maps(void **state) {
  (void)state;
  struct bench t;
  struct uvm_plan p = {0};
  open_bench(&t);
  back(t.c.space, t.b, HBM0);
  step(t.c.space, UVM_S_POPULATE, t.b, GPU0, 0, 0, HBM0, 8, 10);
  step(t.c.space, UVM_S_POPULATE, t.b, CPU, 0, 0, DRAM, 10, 12);
  struct uvm_step *st = add(&p, UVM_S_MAP, t.b, GPU0, 0, 0, 8, 12);
  st->access = UVM_A_READ, st->cause = UVM_C_THRASHING;
  run_at(&t, &p, 0);
  assert_string_equal(t.log, "mapped 8+2 1>0 p1 c6 0..10 @10 k0\n"
                             "MAP 0+2 1>0 p1 c6 t0+10 v0 none\n"
                             "mapped 10+2 0>0 p1 c6 0..10 @10 k0\n"
                             "MAP 2+2 0>0 p1 c6 t0+10 v0 none\n"
                             "REMOTE_MAP 2+1 0>0 p1 c6 t10+0 v0 none\n"
                             "REMOTE_MAP 3+1 0>0 p1 c6 t10+0 v0 none\n");
  uvm_plan_release(&p);
  close_bench(&t);
}

static void test_duplicate_collapse_revoke(void **state) {
  (void)state;
  struct bench t;
  struct uvm_plan p = {0};
  open_bench(&t);
  back(t.c.space, t.b, HBM0);
  step(t.c.space, UVM_S_POPULATE, t.b, CPU, 0, 0, DRAM, 8, 12);
  step(t.c.space, UVM_S_MAP, t.b, CPU, UVM_A_READ, 0, 0, 8, 12);
  add(&p, UVM_S_DUPLICATE, t.b, GPU0, DRAM, HBM0, 8, 12)->cause = UVM_C_FAULT;
  struct uvm_step *st = add(&p, UVM_S_UNMAP, t.b, CPU, 0, 0, 8, 10);
  st->revoked = true, st->cause = UVM_C_FAULT;
  add(&p, UVM_S_COLLAPSE, t.b, GPU0, DRAM, HBM0, 8, 10)->cause = UVM_C_FAULT;
  run_at(&t, &p, 0);
  assert_string_equal(t.log, "duplicated 8+4 0>1 p1 c2 0..10 @10 k0\n"
                             "TRANSFER 0+4 0>1 p1 c2 t0+10 v0 none\n"
                             "DUPLICATE 0+4 0>1 p1 c2 t0+10 v0 none\n"
                             "revoked 8+2 0>0 p0 c2 10..20 @20 k0\n"
                             "REVOKE 0+2 0>0 p0 c2 t10+10 v0 none\n"
                             "collapsed 8+2 0>1 p1 c2 20..30 @30 k0\n"
                             "COLLAPSE 0+2 0>1 p1 c2 t20+10 v0 none\n");
  uvm_plan_release(&p);
  close_bench(&t);
}

/* The death of a backing is told once, after its transfers; page 500 could not move. */
static void test_eviction(void **state) {
  (void)state;
  struct bench t;
  struct uvm_plan p = {0};
  open_bench(&t);
  uvm_backing_id k = back(t.c.space, t.b, HBM0);
  step(t.c.space, UVM_S_POPULATE, t.b, GPU0, 0, 0, HBM0, 20, 22);
  step(t.c.space, UVM_S_POPULATE, t.b, GPU0, 0, 0, HBM0, 498, 504);
  p.context = UVM_X_EVICT, p.backing = k, p.proc = GPU0;
  uvm_mask pages = *uvm_block_resident(t.c.space, t.b, HBM0);
  uvm_plan_transfer(&p, UVM_S_EVICT, t.b, GPU0, HBM0, DRAM, &pages, NULL, UVM_C_EVICTION, NULL);
  run_at(&t, &p, 0);
  assert_string_equal(t.log, "TRANSFER 12+2 1>0 p1 c4 t0+10 v0 none\n"
                             "TRANSFER 490+2 1>0 p1 c4 t10+10 v0 none\n"
                             "TRANSFER 493+3 1>0 p1 c4 t10+10 v0 none\n"
                             "evicted 20+7 1>0 p1 c4 0..20 @20 k1\n"
                             "EVICT 0+512 1>0 p1 c4 t0+20 v28672 none\n"); /* 2 MiB; 7 pages */
  assert_int_equal(uvm_backing_get(t.c.space, k)->info.resident, 4096);
  uvm_plan_release(&p);
  close_bench(&t);
}

/* A policy that marks pages on being told: one event for each page not marked before, after the step's own. */
static void test_thrash_events(void **state) {
  (void)state;
  struct bench t;
  struct uvm_plan p = {0};
  open_bench(&t);
  back(t.c.space, t.b, HBM0);
  step(t.c.space, UVM_S_POPULATE, t.b, CPU, 0, 0, DRAM, 8, 11);
  t.marks = true;
  uvm_mask_add(&t.marked, 9);
  add(&p, UVM_S_MIGRATE, t.b, GPU0, DRAM, HBM0, 8, 11)->cause = UVM_C_FAULT;
  run_at(&t, &p, 0);
  assert_string_equal(t.log, "migrated 8+3 0>1 p1 c2 0..10 @10 k0\n"
                             "TRANSFER 0+3 0>1 p1 c2 t0+10 v0 none\n"
                             "THRASH 0+1 0>1 p1 c2 t10+0 v0 none\n"
                             "THRASH 2+1 0>1 p1 c2 t10+0 v0 none\n");
  uvm_plan_release(&p);
  close_bench(&t);
}

static void test_refused_plan(void **state) {
  (void)state;
  struct bench t;
  struct uvm_plan p = {0};
  open_bench(&t);
  add(&p, UVM_S_MIGRATE, t.b, GPU0, DRAM, HBM0, 8, 11);
  assert_int_equal(uvm_plan_run(&t.c, &p, 0), UVM_NEVER);
  assert_string_equal(t.said, "driver test: plan step 0 (MIGRATE in block 1), page 8: not resident on dram");
  assert_int_equal(t.b->busy_until, 0);
  uvm_plan_release(&p);
  close_bench(&t);
}

static void place_nowhere(void *s, const uvm_view *v, const struct uvm_fault *f, const struct uvm_thrash *h, struct uvm_place *out) {
  (void)s, (void)v, (void)f, (void)h, (void)out;
}

/* The rule's name comes from the placing policy where there is one and it knows the number. */
static void test_rule_names(void **state) {
  (void)state;
  static const char *const own[] = {"mine", NULL};
  static const struct uvm_policy placer = {.abi = UVM_POLICY_ABI, .name = "placer", .place = place_nowhere, .why = own};
  struct bench t;
  struct uvm_plan p = {0};
  open_bench(&t);
  uvm_host_destroy(t.c.host);
  const struct uvm_policy *parts[] = {&placer};
  t.c.host = uvm_host_create(&t.c, parts, 1);
  for (int i = 0; i < 3; i++) add(&p, UVM_S_POPULATE, t.b, CPU, 0, DRAM, 8 + i, 9 + i)->why = (uint8_t)i;
  run_at(&t, &p, 0);
  assert_string_equal(t.log, "POPULATE 0+1 0>0 p0 c0 t0+10 v0 mine\n"
                             "POPULATE 1+1 0>0 p0 c0 t10+10 v0 rule 11\n"
                             "POPULATE 2+1 0>0 p0 c0 t20+10 v0 -\n");
  uvm_plan_release(&p);
  close_bench(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_first_touch_then_migration),
      cmocka_unit_test(test_remote_maps),
      cmocka_unit_test(test_duplicate_collapse_revoke),
      cmocka_unit_test(test_eviction),
      cmocka_unit_test(test_thrash_events),
      cmocka_unit_test(test_refused_plan),
      cmocka_unit_test(test_rule_names),
  };
  return UVM_RUN(tests);
}
