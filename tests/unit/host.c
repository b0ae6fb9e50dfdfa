/* The policies' host: who answers, what state each part has, which answers are refused and with whose name. */
#include "tests/unit/fixture.h"
#include "core/host.h"

/* -- a core without driver and engine; hw.fail keeps what was said -- */

struct bench {
  struct uvm_core c;
  struct uvm_block *b;
  char said[256];
  int fails;
};

static int keep(void *ctx, int code, const char *fmt, ...) {
  struct bench *t = ctx;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(t->said, sizeof t->said, fmt, ap);
  va_end(ap);
  t->fails++;
  return code;
}

static void open_bench(struct bench *t, const struct uvm_policy *const *parts, size_t n) {
  *t = (struct bench){.c.space = small_space(8 * MIB)};
  t->c.hw.fail = keep, t->c.hw.ctx = t;
  t->c.host = uvm_host_create(&t->c, parts, n);
  t->b = uvm_block_get(t->c.space, managed_in(t->c.space, UVM_NEVER, MIB), 0);
}

static void close_bench(struct bench *t) {
  uvm_space_destroy(t->c.space);
  uvm_host_destroy(t->c.host);
}

#define OPEN(t, ...)                                                                                                                       \
  open_bench(t, (const struct uvm_policy *const[]){__VA_ARGS__}, sizeof(const struct uvm_policy *[]){__VA_ARGS__} / sizeof(void *))

static void expect_refusal(struct bench *t, const char *says) {
  if (t->fails != 1 || !strstr(t->said, says)) fail_msg("expected '%s', found %d refusals, the last: %s", says, t->fails, t->said);
  t->fails = 0;
}

/* -- a part that does as it is told to by globals of the test -- */

static struct uvm_place place_answer;
static struct uvm_thrash thrash_answer;
static uvm_mask mask_answer;
static uvm_backing_id victim_answer[4];
static size_t victim_count;
static int finis, block_finis;

struct puppet {
  uint32_t level;
  bool on;
  uint64_t told;
};
static const struct uvm_opt puppet_opts[] = {{"level", UVM_U32, offsetof(struct puppet, level), 1, 9, 5, "A number."},
                                             {"on", UVM_BOOL, offsetof(struct puppet, on), 0, 1, 1, "A switch."},
                                             {0}};
static const char *const puppet_why[] = {"because", "just so", NULL};

static void puppet_fini(void *s) { (void)s, finis++; }
static void puppet_block_fini(void *s, void *bs) { (void)s, block_finis += *(int *)bs; }
static void puppet_event(void *s, const uvm_view *v, const struct uvm_told *e) {
  ((struct puppet *)s)->told += 1;
  if (e->block) *(int *)uvm_block_state(v, e->block) += 1;
}
static void puppet_place(void *s, const uvm_view *v, const struct uvm_fault *f, const struct uvm_thrash *h, struct uvm_place *out) {
  (void)s, (void)v, (void)f, (void)h;
  *out = place_answer;
}
static void puppet_thrash(void *s, const uvm_view *v, const struct uvm_fault *f, struct uvm_thrash *out) {
  (void)s, (void)v, (void)f;
  *out = thrash_answer;
}
static const uvm_mask *puppet_thrashing(void *s, const uvm_view *v, uvm_block_id b) { return (void)s, (void)v, (void)b, &mask_answer; }
static void puppet_prefetch(void *s, const uvm_view *v, uvm_block_id b, uvm_node dst, const uvm_mask *faulted, uvm_mask *more) {
  (void)s, (void)v, (void)b, (void)dst, (void)faulted;
  *more = mask_answer;
}
static size_t puppet_victims(void *s, const uvm_view *v, uvm_node n, uint64_t bytes, uvm_block_id incoming, const uvm_mask *pages,
                             uvm_backing_id *out, size_t max) {
  (void)s, (void)v, (void)n, (void)bytes, (void)incoming, (void)pages, (void)max;
  memcpy(out, victim_answer, (victim_count < max ? victim_count : max) * sizeof *out);
  return victim_count;
}
static uint32_t puppet_counter(void *s, const uvm_view *v, const struct uvm_fault *f, const uvm_mask *touched, uint64_t count,
                               uvm_mask *migrate) {
  (void)s, (void)v, (void)f, (void)touched, (void)count;
  *migrate = mask_answer;
  return 77;
}
static const struct uvm_policy puppet = {.abi = UVM_POLICY_ABI,
                                         .name = "puppet",
                                         .opts = puppet_opts,
                                         .why = puppet_why,
                                         .state_size = sizeof(struct puppet),
                                         .block_size = sizeof(int),
                                         .backing_size = 16,
                                         .fini = puppet_fini,
                                         .block_fini = puppet_block_fini,
                                         .on_event = puppet_event,
                                         .place = puppet_place,
                                         .thrash = puppet_thrash,
                                         .thrashing = puppet_thrashing,
                                         .prefetch = puppet_prefetch,
                                         .victims = puppet_victims,
                                         .counter = puppet_counter};
static const struct uvm_policy listener = {
    .abi = UVM_POLICY_ABI, .name = "listener", .block_size = sizeof(int), .on_event = puppet_event, .state_size = sizeof(struct puppet)};

/* -- who answers -- */

static void more_7(void *s, const uvm_view *v, uvm_block_id b, uvm_node dst, const uvm_mask *faulted, uvm_mask *more) {
  (void)s, (void)v, (void)b, (void)dst, (void)faulted;
  uvm_mask_add(more, 7);
}

static void test_first_hook_answers(void **state) {
  (void)state;
  static const struct uvm_policy seven = {.abi = UVM_POLICY_ABI, .name = "seven", .prefetch = more_7};
  struct bench t;
  uvm_mask more, faulted = {{0}};
  mask_answer = uvm_mask_range(1, 3);
  OPEN(&t, &listener, &seven, &puppet);
  assert_int_equal(uvm_ask_prefetch(t.c.host, t.b->id, HBM0, &faulted, 0, &more), 0);
  assert_true(is_range(&more, 7, 8));
  assert_ptr_equal(uvm_ask_thrashing(t.c.host, t.b->id, 0), &mask_answer); /* nobody in front has that hook */
  assert_true(uvm_host_places(t.c.host));
  assert_string_equal(uvm_host_why(t.c.host, 1), "just so");
  assert_null(uvm_host_why(t.c.host, 2));
  assert_null(uvm_host_why(t.c.host, 255));
  close_bench(&t);
}

static void test_nobody_answers(void **state) {
  (void)state;
  struct bench t;
  OPEN(&t, &listener);
  struct uvm_fault f = {.block = t.b->id, .proc = GPU0};
  struct uvm_thrash hint = {.hint = 9};
  uvm_mask more = uvm_mask_range(0, 9), none = {{0}};
  bool asked = true;
  uvm_ask_thrash(t.c.host, &f, 0, &hint);
  assert_int_equal(hint.hint, UVM_HINT_NONE);
  assert_null(uvm_ask_thrashing(t.c.host, t.b->id, 0));
  assert_int_equal(uvm_ask_prefetch(t.c.host, t.b->id, HBM0, &none, 0, &more), 0);
  assert_true(uvm_mask_empty(&more));
  assert_int_equal(uvm_ask_counter(t.c.host, &f, &none, 256, 0, &more, &asked), 0);
  assert_false(asked || uvm_host_places(t.c.host));
  close_bench(&t);
}

/* -- state -- */

static void test_state(void **state) {
  (void)state;
  struct bench t;
  struct uvm_error e;
  finis = block_finis = 0;
  OPEN(&t, &puppet, &listener);
  assert_int_equal(uvm_host_start(t.c.host, &e), 0);
  struct uvm_block *silent = uvm_block_get(t.c.space, managed_in(t.c.space, UVM_NEVER, MIB), 0);
  for (int i = 0; i < 3; i++) uvm_tell(t.c.host, &(struct uvm_told){.kind = UVM_T_POPULATED, .block = t.b->id}, 5);
  int **own = t.b->policy_state; /* one memory a part */
  assert_true(*own[0] == 3 && *own[1] == 3 && own[0] != own[1]);
  assert_null(silent->policy_state); /* made when asked for */
  uvm_space_destroy(t.c.space);
  assert_int_equal(block_finis, 3); /* the puppet's only, for the block it had asked about */
  uvm_host_destroy(t.c.host);
  assert_int_equal(finis, 1);
}

static void test_split_drops_state(void **state) {
  (void)state;
  struct bench t;
  block_finis = 0;
  OPEN(&t, &puppet);
  uvm_tell(t.c.host, &(struct uvm_told){.kind = UVM_T_POPULATED, .block = t.b->id}, 5);
  size_t n;
  struct uvm_alloc *a = t.b->range->alloc;
  uvm_space_split(t.c.space, a, 4096, MIB, &n);
  assert_int_equal(block_finis, 1);
  assert_true(!uvm_block_find(a, 0)->policy_state && !uvm_block_find(a, 4096)->policy_state);
  close_bench(&t);
}

static void *seen_state;
static void look_at_backing(void *s, const uvm_view *v, const struct uvm_told *e) {
  (void)s;
  seen_state = uvm_backing_state(v, e->backing);
}

static void test_backing_state(void **state) {
  (void)state;
  static const struct uvm_policy looker = {.abi = UVM_POLICY_ABI, .name = "looker", .backing_size = 8, .on_event = look_at_backing};
  struct bench t;
  OPEN(&t, &looker);
  uvm_backing_id k = back(t.c.space, t.b, HBM0);
  uvm_tell(t.c.host, &(struct uvm_told){.kind = UVM_T_SERVICED, .backing = k}, 5);
  void *first = seen_state;
  assert_true(first && *(uint64_t *)first == 0);
  uvm_tell(t.c.host, &(struct uvm_told){.kind = UVM_T_SERVICED, .backing = k}, 5);
  assert_ptr_equal(seen_state, first);
  uvm_tell(t.c.host, &(struct uvm_told){.kind = UVM_T_SERVICED, .backing = k + 1}, 5);
  assert_null(seen_state);
  close_bench(&t);
}

/* -- options and start -- */

static void test_options(void **state) {
  (void)state;
  struct bench t;
  struct uvm_error e;
  int rc = 0;
  OPEN(&t, &listener, &puppet);
  assert_false(uvm_host_option(t.c.host, "stranger", "level", "1", &rc, &e));
  assert_true(uvm_host_option(t.c.host, "puppet", "level", "9", &rc, &e) && rc == 0);
  assert_true(uvm_host_option(t.c.host, "puppet", "level", "10", &rc, &e) && rc == UVM_EUSAGE);
  assert_true(uvm_host_option(t.c.host, "puppet", "nose", "1", &rc, &e) && rc == UVM_EUSAGE);
  assert_string_equal(e.text, "option puppet.nose: unknown key; known: level, on");
  assert_true(uvm_host_option(t.c.host, "listener", "level", "1", &rc, &e) && rc == UVM_EUSAGE);
  assert_string_equal(e.text, "option listener.level: unknown key; known: none");
  close_bench(&t);
}

static uvm_ns look_ahead(void *s, const uvm_view *v, struct uvm_request *out, size_t max, size_t *n) {
  return (void)s, (void)v, (void)out, (void)max, *n = 0;
}
static int refuse_init(void *s, const uvm_view *v) { return (void)s, (void)v, -1; }

static void test_start_refuses(void **state) {
  (void)state;
  static const struct uvm_policy rows[] = {
      {.abi = UVM_POLICY_ABI, .name = "seer", .needs = UVM_NEEDS_FUTURE, .fini = puppet_fini},
      {.abi = UVM_POLICY_ABI + 1, .name = "newer", .fini = puppet_fini},
      {.abi = UVM_POLICY_ABI, .name = "planner", .ahead = look_ahead, .fini = puppet_fini},
      {.abi = UVM_POLICY_ABI, .name = "sulker", .init = refuse_init, .fini = puppet_fini},
  };
  static const char *const says[] = {"policy seer needs the future", "policy newer: expected version 1 of the policy ABI, found 2",
                                     "policy planner has the hook ahead, which no driver asks yet", "policy sulker refuses"};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct bench t;
    struct uvm_error e;
    finis = 0;
    OPEN(&t, &listener, &rows[i]);
    assert_int_equal(uvm_host_needs(t.c.host), rows[i].needs);
    assert_int_equal(uvm_host_start(t.c.host, &e), UVM_EUSAGE);
    assert_non_null(strstr(e.text, says[i]));
    close_bench(&t);
    assert_int_equal(finis, 0); /* what did not start is not ended */
  }
}

static int hits;
static void count_hits(void *s, const uvm_view *v, const struct uvm_run *r) { (void)s, (void)v, hits += (int)r->count; }

static void test_hits_are_for_those_who_need_them(void **state) {
  (void)state;
  static const struct uvm_policy needy = {.abi = UVM_POLICY_ABI, .name = "needy", .needs = UVM_NEEDS_ACCESS, .on_access = count_hits};
  static const struct uvm_policy idle = {.abi = UVM_POLICY_ABI, .name = "idle", .on_access = count_hits};
  struct bench t;
  hits = 0;
  OPEN(&t, &idle);
  uvm_tell_access(t.c.host, &(struct uvm_run){.count = 3}, 0);
  close_bench(&t);
  assert_int_equal(hits, 0);
  OPEN(&t, &idle, &needy);
  uvm_tell_access(t.c.host, &(struct uvm_run){.count = 3}, 0);
  close_bench(&t);
  assert_int_equal(hits, 3);
}

/* -- answers that are refused: page 0 is on dram, pages 1 on hbm0 -- */

static void prepare(struct bench *t) {
  back(t->c.space, t->b, HBM0);
  step(t->c.space, UVM_S_POPULATE, t->b, CPU, 0, 0, DRAM, 0, 1);
  step(t->c.space, UVM_S_POPULATE, t->b, GPU0, 0, 0, HBM0, 1, 2);
}

static void test_places(void **state) {
  (void)state;
  static const struct {
    struct uvm_place a;
    uvm_proc proc;
    uint16_t page;
    const char *says;
  } rows[] = {
      {{UVM_MIGRATE, HBM0, 0}, GPU0, 0, NULL},
      {{UVM_DUPLICATE, DRAM, 0}, GPU0, 0, NULL},
      {{UVM_REMOTE, DRAM, 0}, GPU1, 0, NULL},
      {{UVM_MIGRATE, NODES, 0}, GPU0, 0, "policy puppet, hook place: a node that does not exist"},
      {{UVM_MIGRATE, UVM_NONE, 0}, GPU0, 0, "policy puppet, hook place: a node that does not exist"},
      {{UVM_MIGRATE, HBM1, 0}, GPU0, 0, "a node that the faulting processor does not reach"},
      {{UVM_DUPLICATE, HBM0, 0}, CPU, 0, "a node that the faulting processor does not reach"},
      {{UVM_REMOTE, DRAM, 0}, CPU, 1, "REMOTE for a page that is resident nowhere the processor reaches"},
      {{UVM_REMOTE, DRAM, 0}, GPU0, 2, "REMOTE for a page that is resident nowhere the processor reaches"},
      {{7, DRAM, 0}, GPU0, 0, "an unknown action"},
  };
  struct bench t;
  OPEN(&t, &puppet);
  prepare(&t);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct uvm_fault f = {.block = t.b->id, .page = rows[i].page, .proc = rows[i].proc};
    struct uvm_place out;
    place_answer = rows[i].a;
    int rc = uvm_ask_place(t.c.host, &f, &(struct uvm_thrash){0}, 0, &out);
    assert_int_equal(rc < 0, rows[i].says != NULL);
    if (rows[i].says)
      expect_refusal(&t, rows[i].says);
    else
      assert_memory_equal(&out, &rows[i].a, sizeof out);
  }
  assert_int_equal(t.fails, 0);
  close_bench(&t);
}

static void test_hints(void **state) {
  (void)state;
  static const struct {
    struct uvm_thrash a;
    const char *says;
  } rows[] = {
      {{UVM_HINT_NONE, 0, 0, 0}, NULL},
      {{UVM_HINT_PIN, DRAM, 7, 0}, NULL},
      {{UVM_HINT_THROTTLE, 0, 0, 1000}, NULL},
      {{UVM_HINT_PIN, NODES, 1, 0}, "policy puppet, hook thrash: a PIN on a node that does not exist"},
      {{UVM_HINT_PIN, DRAM, 8, 0}, "a PIN for a processor that does not exist"},
      {{UVM_HINT_THROTTLE, 0, 0, 999}, "a THROTTLE that ends in the past"},
      {{5, 0, 0, 0}, "an unknown hint"},
  };
  struct bench t;
  OPEN(&t, &puppet);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct uvm_thrash out;
    thrash_answer = rows[i].a;
    uvm_ask_thrash(t.c.host, &(struct uvm_fault){.block = t.b->id, .proc = GPU0}, 1000, &out);
    assert_int_equal(out.hint, rows[i].says ? UVM_HINT_NONE : rows[i].a.hint);
    if (rows[i].says) expect_refusal(&t, rows[i].says);
  }
  assert_int_equal(t.fails, 0);
  close_bench(&t);
}

/* The block has pages [0, 256). */
static void test_prefetch_and_counter(void **state) {
  (void)state;
  struct bench t;
  OPEN(&t, &puppet);
  struct uvm_fault f = {.block = t.b->id, .proc = GPU0, .counter = 1};
  uvm_mask more, faulted = uvm_mask_range(0, 4);
  bool asked;
  mask_answer = uvm_mask_range(2, 256);
  assert_int_equal(uvm_ask_prefetch(t.c.host, t.b->id, HBM0, &faulted, 0, &more), 0);
  assert_true(is_range(&more, 4, 256)); /* the faulted ones are no prefetch */
  assert_int_equal(uvm_ask_counter(t.c.host, &f, &faulted, 256, 0, &more, &asked), 77);
  assert_true(asked && is_range(&more, 2, 256));
  uvm_mask_add(&mask_answer, 256);
  assert_true(uvm_ask_prefetch(t.c.host, t.b->id, HBM0, &faulted, 0, &more) < 0);
  assert_true(uvm_mask_empty(&more));
  expect_refusal(&t, "policy puppet, hook prefetch: pages outside the block");
  uvm_ask_counter(t.c.host, &f, &faulted, 256, 0, &more, &asked);
  assert_true(uvm_mask_empty(&more));
  expect_refusal(&t, "policy puppet, hook counter: pages outside the block");
  close_bench(&t);
}

/* -- victims: four blocks on hbm0, backings 1 to 4; 1 and 3 in service order on USED after 4, 2 on UNUSED -- */

static void four_backings(struct bench *t, struct uvm_block *b[4]) {
  struct uvm_space *s = t->c.space;
  for (int i = 0; i < 4; i++) {
    b[i] = uvm_block_get(s, managed_in(s, UVM_NEVER, 2 * MIB), 0);
    assert_int_equal(back(s, b[i], HBM0), i + 1);
  }
  static const uvm_backing_id order[] = {4, 1, 3};
  for (int i = 0; i < 3; i++) uvm_backing_move(s, order[i], UVM_L_USED, 10);
}

static void test_default_victims(void **state) {
  (void)state;
  struct bench t;
  struct uvm_block *b[4];
  uvm_backing_id v[8];
  size_t n;
  OPEN(&t, &listener);
  four_backings(&t, b);
  assert_int_equal(uvm_ask_victims(t.c.host, HBM0, 2 * MIB, 0, NULL, 0, v, 8, &n), 0);
  assert_true(n == 1 && v[0] == 2); /* unused first, and it covers the need */
  uvm_ask_victims(t.c.host, HBM0, 5 * MIB, 0, NULL, 0, v, 8, &n);
  assert_true(n == 3 && v[0] == 2 && v[1] == 4 && v[2] == 1);
  uvm_ask_victims(t.c.host, HBM0, 5 * MIB, 0, NULL, 0, v, 2, &n);
  assert_int_equal(n, 2); /* no more than there is room for */
  b[3]->busy_until = 100;
  uvm_ask_victims(t.c.host, HBM0, 4 * MIB, b[1]->id, NULL, 0, v, 8, &n);
  assert_true(n == 2 && v[0] == 1 && v[1] == 3); /* 2 is the incoming block's, 4 is busy */
  b[3]->busy_until = 0;
  uvm_ask_victims(t.c.host, HBM1, 1, 0, NULL, 0, v, 8, &n);
  assert_int_equal(n, 0);
  close_bench(&t);
}

static void test_chosen_victims(void **state) {
  (void)state;
  struct bench t;
  struct uvm_block *b[4];
  uvm_backing_id v[3];
  size_t n;
  OPEN(&t, &puppet);
  four_backings(&t, b);
  b[3]->busy_until = 100;
  static const struct {
    uvm_backing_id v[3];
    size_t n;
    uvm_node node;
    const char *says;
  } rows[] = {
      {{3, 1}, 2, HBM0, NULL},
      {{0}, 0, HBM0, NULL},
      {{1, 9}, 2, HBM0, "policy puppet, hook victims: a victim that does not exist"},
      {{1}, 1, HBM1, "a victim on another node"},
      {{3, 2}, 2, HBM0, "a victim of the block in service"},
      {{4}, 1, HBM0, "a victim that is busy"},
      {{1, 3, 1}, 3, HBM0, "the same victim twice"},
      {{1, 3, 1}, 4, HBM0, "more victims than there is room for"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    memcpy(victim_answer, rows[i].v, sizeof rows[i].v);
    victim_count = rows[i].n;
    int rc = uvm_ask_victims(t.c.host, rows[i].node, MIB, b[1]->id, NULL, 0, v, 3, &n);
    assert_true((rc < 0) == (rows[i].says != NULL) && n == (rows[i].says ? 0 : rows[i].n));
    if (rows[i].says)
      expect_refusal(&t, rows[i].says);
    else
      assert_memory_equal(v, rows[i].v, n * sizeof *v);
  }
  uvm_backing_move(t.c.space, 1, UVM_NONE, 0);
  victim_answer[0] = 1, victim_count = 1;
  assert_true(uvm_ask_victims(t.c.host, HBM0, MIB, 0, NULL, 0, v, 3, &n) < 0);
  expect_refusal(&t, "a victim that is pinned or already leaving");
  b[3]->busy_until = 0;
  close_bench(&t);
}

/* -- the view -- */

static struct uvm_block *viewed;
static void look_around(void *s, const uvm_view *v, const struct uvm_told *e) {
  (void)s;
  uvm_block_id b = viewed->id;
  assert_int_equal(uvm_now(v), 42);
  assert_int_equal(uvm_topology(v)->nodes[HBM0].free, 6 * MIB);
  assert_true(uvm_block(v, b)->pages == 256 && uvm_block(v, b)->offset == 0 && !uvm_block(v, 99));
  assert_true(uvm_range(v, uvm_block(v, b)->range)->bytes == MIB && !uvm_range(v, 99));
  assert_true(is_range(uvm_resident(v, b, HBM0), 1, 2) && !uvm_resident(v, b, NODES) && !uvm_resident(v, 99, DRAM));
  assert_true(is_range(uvm_mapped(v, b, GPU0, UVM_A_WRITE), 1, 2) && uvm_mask_empty(uvm_mapped(v, b, GPU0, UVM_A_ATOMIC)));
  assert_true(is_range(uvm_mapped(v, b, GPU0, UVM_A_PREFETCH), 1, 2) && !uvm_mapped(v, b, PROCS, UVM_A_READ));
  uvm_backing_id k = uvm_backing_of(v, b, HBM0, 255);
  assert_true(k == 1 && !uvm_backing_of(v, b, HBM0, 256) && !uvm_backing_of(v, b, DRAM, 0) && !uvm_backing_of(v, 99, HBM0, 0));
  assert_true(uvm_oldest(v, HBM0, UVM_L_UNUSED) == k && !uvm_newer(v, k) && !uvm_oldest(v, NODES, UVM_L_USED) && !uvm_newer(v, 99));
  assert_true(uvm_backing(v, k)->dirty && uvm_backing(v, k)->resident == 4096 && !uvm_backing(v, 99));
  const struct uvm_use *uses;
  assert_true(uvm_next_use(v, b, -1, GPU0) == UINT64_MAX && uvm_uses(v, 1, &uses) == 0);
  hits += e->kind == UVM_T_BATCH_END;
}

static void test_view(void **state) {
  (void)state;
  static const struct uvm_policy watcher = {.abi = UVM_POLICY_ABI, .name = "watcher", .on_event = look_around};
  struct bench t;
  hits = 0;
  OPEN(&t, &watcher);
  prepare(&t);
  step(t.c.space, UVM_S_MAP, t.b, GPU0, UVM_A_WRITE, 0, 0, 1, 2);
  viewed = t.b;
  uvm_tell(t.c.host, &(struct uvm_told){.kind = UVM_T_BATCH_END}, 42);
  assert_int_equal(hits, 1);
  close_bench(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_first_hook_answers),
      cmocka_unit_test(test_nobody_answers),
      cmocka_unit_test(test_state),
      cmocka_unit_test(test_split_drops_state),
      cmocka_unit_test(test_backing_state),
      cmocka_unit_test(test_options),
      cmocka_unit_test(test_start_refuses),
      cmocka_unit_test(test_hits_are_for_those_who_need_them),
      cmocka_unit_test(test_places),
      cmocka_unit_test(test_hints),
      cmocka_unit_test(test_prefetch_and_counter),
      cmocka_unit_test(test_default_victims),
      cmocka_unit_test(test_chosen_victims),
      cmocka_unit_test(test_view),
  };
  return UVM_RUN(tests);
}
