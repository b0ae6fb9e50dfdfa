/* The evictors: who is chosen, in which order, and who never is. Backings are named by letters, A has id 1. */
#include "tests/unit/fake_view.h"
#include "policies/policies.h"

#define MIB2 (2ull << 20)
#define INCOMING 9999 /* the block in service */

static const struct uvm_policy *const all[] = {&uvm_policy_lru_service, &uvm_policy_lru,    &uvm_policy_fifo,
                                               &uvm_policy_random,      &uvm_policy_clock,  &uvm_policy_sieve,
                                               &uvm_policy_lfu,         &uvm_policy_s3fifo, &uvm_policy_arc};
enum { ALL = sizeof all / sizeof *all };

static uvm_view *opened(const struct uvm_policy *p, const char *seed) {
  uvm_view *v = fake_open(p, PCIE);
  if (seed) fake_option(v, "seed", seed);
  fake_start(v);
  return v;
}
static void forget_order(uvm_view *v, uvm_backing_id k) {
  int n = 0;
  for (int i = 0; i < v->norder; i++)
    if (v->order[i] != k) v->order[n++] = v->order[i];
  v->norder = n;
}
/* Service moves a backing to the newest end and tells the policy; the first time it is allocated. */
static void serve(uvm_view *v, uvm_backing_id k, uvm_node node, uvm_block_id block) {
  struct fake_backing *b = &v->backing[k];
  if (!b->live) *b = (struct fake_backing){.live = true, .info = {.node = node, .bytes = MIB2, .resident = MIB2, .block = block}};
  forget_order(v, k);
  v->order[v->norder++] = k;
  struct uvm_told e = {.kind = UVM_T_SERVICED, .backing = k, .block = block};
  if (v->policy->on_event) v->policy->on_event(v->state, v, &e);
}
static void die(uvm_view *v, uvm_backing_id k) {
  v->backing[k].live = false;
  forget_order(v, k);
}
static size_t victims(uvm_view *v, uint64_t bytes, uvm_block_id incoming, uvm_backing_id *out, size_t max) {
  uvm_mask pages = uvm_mask_range(0, 1);
  return v->policy->victims(v->state, v, GPU, bytes, incoming, &pages, out, max);
}
static void assert_victims(uvm_view *v, uint64_t bytes, size_t max, const char *expected) {
  uvm_backing_id out[FAKE_BACKINGS];
  char found[FAKE_BACKINGS + 1] = "";
  size_t n = victims(v, bytes, INCOMING, out, max);
  for (size_t i = 0; i < n; i++) found[i] = (char)('A' + out[i] - 1);
  assert_string_equal(found, expected);
}

/* Section 1.9, E1: the lists as they stand before each fault that finds the memory full, and who leaves. */
static void test_e1(void **state) {
  static const struct { const char *used, *unused, *victim; } rows[] = {{"BCA", "", "B"}, {"AD", "C", "C"}, {"ABD", "", "A"}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uvm_view *v = opened(&uvm_policy_lru_service, NULL);
    for (const char *s = rows[i].used; *s; s++) serve(v, (uvm_backing_id)(*s - 'A' + 1), GPU, (uvm_block_id)(*s - 'A' + 1));
    for (const char *s = rows[i].unused; *s; s++) {
      serve(v, (uvm_backing_id)(*s - 'A' + 1), GPU, (uvm_block_id)(*s - 'A' + 1));
      v->backing[*s - 'A' + 1].list = UVM_L_UNUSED;
    }
    assert_victims(v, MIB2, 1, rows[i].victim);
    fake_close(v);
  }
}

/* A to H in order of allocation, then A and C serviced again: D busy, F of the incoming block, G elsewhere, E without
 * resident pages. */
static uvm_view *eight(const struct uvm_policy *p, const char *seed) {
  uvm_view *v = opened(p, seed);
  for (uvm_backing_id k = 1; k <= 8; k++) serve(v, k, k == 7 ? CPU : GPU, k == 6 ? INCOMING : k);
  serve(v, 1, GPU, 1);
  serve(v, 3, GPU, 3);
  v->backing[4].info.busy = true;
  v->backing[5].list = UVM_L_UNUSED;
  return v;
}

static void test_order(void **state) {
  static const struct {
    const struct uvm_policy *policy;
    uint64_t bytes;
    size_t max;
    const char *victims;
  } rows[] = {{&uvm_policy_lru_service, 100 * MIB2, 16, "EBHAC"},
              {&uvm_policy_fifo, 100 * MIB2, 16, "ABCEH"},
              {&uvm_policy_lru_service, 100 * MIB2, 2, "EB"},
              {&uvm_policy_fifo, 100 * MIB2, 2, "AB"},
              {&uvm_policy_lru_service, 2 * MIB2, 16, "EB"},
              {&uvm_policy_fifo, 2 * MIB2, 16, "AB"},
              {&uvm_policy_lru_service, 2 * MIB2 + 1, 16, "EBH"},
              {&uvm_policy_fifo, 2 * MIB2 + 1, 16, "ABC"},
              {&uvm_policy_lru_service, 1, 16, "E"},
              {&uvm_policy_fifo, 1, 16, "A"},
              {&uvm_policy_clock, 100 * MIB2, 16, "EABCH"},
              {&uvm_policy_clock, 2 * MIB2, 16, "EA"},
              {&uvm_policy_sieve, 100 * MIB2, 16, "EABCH"},
              {&uvm_policy_sieve, 2 * MIB2, 16, "EA"},
              {&uvm_policy_lfu, 100 * MIB2, 16, "EABCH"},
              {&uvm_policy_lfu, 2 * MIB2, 16, "EA"},
              {&uvm_policy_s3fifo, 100 * MIB2, 16, "EABCH"},
              {&uvm_policy_s3fifo, 2 * MIB2, 16, "EA"},
              {&uvm_policy_arc, 100 * MIB2, 16, "EABCH"},
              {&uvm_policy_arc, 2 * MIB2, 16, "EA"}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uvm_view *v = eight(rows[i].policy, NULL);
    assert_victims(v, rows[i].bytes, rows[i].max, rows[i].victims);
    assert_victims(v, rows[i].bytes, rows[i].max, rows[i].victims); /* being asked changes nothing */
    fake_close(v);
  }
}

/* A backing shared by several blocks stays if one of its pages is the incoming block's. Fake: page 0 of these blocks. */
static void test_shared_backing(void **state) {
  (void)state;
  for (int i = 0; i < ALL; i++) {
    uvm_view *v = opened(all[i], NULL);
    v->block.pages = 1;
    serve(v, 1, GPU, 0);
    serve(v, 2, GPU, 0);
    v->backing[1].pages_of[0] = 7, v->backing[1].pages_of[1] = 1;
    v->backing[2].pages_of[0] = 8;
    uvm_backing_id out[4];
    assert_int_equal(victims(v, 100 * MIB2, 1, out, 4), 1);
    assert_int_equal(out[0], 2);
    fake_close(v);
  }
}

/* Section 5.9's trace in three frames. Every access services its block, so service order is LRU. */
static void test_cache_vectors(void **state) {
  static const struct {
    const struct uvm_policy *policy;
    int misses;
    const char *victims;
  } rows[] = {{&uvm_policy_lru_service, 10, "2345234"}, {&uvm_policy_fifo, 12, "123415231"}, {&uvm_policy_lru, 10, "2345234"}};
  (void)state;
  for (int i = 0; i < 3; i++) {
    uvm_view *v = opened(rows[i].policy, NULL);
    uvm_backing_id of[6] = {0}, next = 1; /* by block; ids are never used again */
    char found[16] = "";
    int misses = 0, evicted = 0;
    for (const char *s = "123141521314512"; *s; s++) {
      int block = *s - '0';
      if (!of[block]) {
        if (++misses > 3) {
          uvm_backing_id k;
          assert_int_equal(victims(v, MIB2, (uvm_block_id)block, &k, 1), 1);
          uvm_block_id b = v->backing[k].info.block;
          found[evicted++] = (char)('0' + b);
          die(v, k);
          of[b] = 0;
        }
        of[block] = next++;
      }
      serve(v, of[block], GPU, (uvm_block_id)block);
    }
    assert_int_equal(misses, rows[i].misses);
    assert_string_equal(found, rows[i].victims);
    fake_close(v);
  }
}

static void hit(uvm_view *v, uvm_block_id block, const char *pages) {
  uvm_mask m = fake_pages(pages, 0);
  v->policy->on_access(v->state, v, &(struct uvm_run){.block = block, .proc = GPU, .access = UVM_A_READ, .count = 1, .pages = &m});
}

/* A hit is a use: of the backing that holds the page where it is resident, and of no other. */
static void test_hits_count(void **state) {
  (void)state;
  uvm_view *v = opened(&uvm_policy_lru, NULL);
  for (uvm_backing_id k = 1; k <= 4; k++) {
    serve(v, k, GPU, k);
    v->backing[k].pages_of[0] = k;
    v->backing[k].info.first = (uint16_t)(10 * k);
  }
  v->resident[GPU] = fake_pages("10 20 30 40", 0);
  assert_victims(v, 100 * MIB2, 16, "ABCD");
  hit(v, 1, "10");
  hit(v, 3, "[0,512)");
  assert_victims(v, 100 * MIB2, 16, "BDAC");
  hit(v, 2, "21"); /* not resident there */
  assert_victims(v, 100 * MIB2, 16, "BDAC");
  serve(v, 2, GPU, 2);
  assert_victims(v, 100 * MIB2, 16, "DACB");
  die(v, 1);
  v->backing[2].list = UVM_L_UNUSED;
  v->backing[2].info.resident = 0;
  assert_victims(v, 100 * MIB2, 16, "BDC");
  hit(v, 4, "40");
  assert_victims(v, 3 * MIB2, 16, "BCD");
  fake_close(v);
}

/* Allocation order holds while the pool of known backings grows and drops its dead. */
static void test_fifo_grows(void **state) {
  uvm_view *v = opened(&uvm_policy_fifo, NULL);
  uvm_backing_id out[FAKE_BACKINGS];
  (void)state;
  for (uvm_backing_id k = 1; k < FAKE_BACKINGS; k++) {
    serve(v, k, GPU, k);
    if (k > 20 && k < 150) die(v, k - (k % 2 ? 20 : 3));
    size_t n = victims(v, UINT64_MAX, INCOMING, out, FAKE_BACKINGS), live = 0;
    for (uvm_backing_id j = 1; j <= k; j++)
      if (v->backing[j].live) assert_true(live < n && out[live++] == j);
    assert_int_equal(live, n);
  }
  fake_close(v);
}

static void draw(const char *seed, uvm_backing_id *out, size_t n) {
  uvm_view *v = eight(&uvm_policy_random, seed);
  for (size_t i = 0; i < n; i++) assert_int_equal(victims(v, MIB2, INCOMING, &out[i], 1), 1);
  fake_close(v);
}

/* The same seed draws the same, another one does not; everybody who may leave comes up about as often, nobody else does. */
static void test_random_draws(void **state) {
  enum { DRAWS = 5000 };
  static uvm_backing_id a[DRAWS], b[DRAWS], c[DRAWS];
  int count[9] = {0};
  (void)state;
  draw("1", a, DRAWS);
  draw("1", b, DRAWS);
  draw("2", c, DRAWS);
  assert_memory_equal(a, b, sizeof a);
  assert_memory_not_equal(a, c, sizeof a);
  for (int i = 0; i < DRAWS; i++) count[a[i]]++;
  for (int k = 1; k <= 8; k++) {
    bool may_leave = k != 4 && k != 6 && k != 7;
    if (may_leave)
      assert_in_range(count[k], 850, 1150); /* 1000 +- 5 standard deviations */
    else
      assert_int_equal(count[k], 0);
  }
}

/* One question draws nobody twice and everybody in the end; the dead are forgotten and newcomers join. */
static void test_random_exhausts(void **state) {
  uvm_view *v = opened(&uvm_policy_random, NULL);
  (void)state;
  for (uvm_backing_id k = 1; k < FAKE_BACKINGS; k++) {
    serve(v, k, GPU, k);
    if (k % 3 == 0) die(v, k - 1);
    if (k % 7) continue;
    uvm_backing_id out[FAKE_BACKINGS];
    bool seen[FAKE_BACKINGS] = {false};
    size_t n = victims(v, UINT64_MAX, INCOMING, out, FAKE_BACKINGS), live = 0;
    for (size_t i = 0; i < n; i++) {
      assert_true(v->backing[out[i]].live && !seen[out[i]]);
      seen[out[i]] = true;
    }
    for (uvm_backing_id j = 1; j <= k; j++) live += v->backing[j].live;
    assert_int_equal(n, live);
  }
  fake_close(v);
}

static void test_nobody(void **state) {
  (void)state;
  for (int i = 0; i < ALL; i++) {
    uvm_view *v = opened(all[i], NULL);
    uvm_backing_id out[1];
    assert_int_equal(victims(v, MIB2, INCOMING, out, 1), 0);
    serve(v, 1, GPU, INCOMING);
    assert_int_equal(victims(v, MIB2, INCOMING, out, 1), 0);
    fake_close(v);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_e1),
                                     cmocka_unit_test(test_order),
                                     cmocka_unit_test(test_shared_backing),
                                     cmocka_unit_test(test_cache_vectors),
                                     cmocka_unit_test(test_hits_count),
                                     cmocka_unit_test(test_fifo_grows),
                                     cmocka_unit_test(test_random_draws),
                                     cmocka_unit_test(test_random_exhausts),
                                     cmocka_unit_test(test_nobody)};
  return UVM_RUN(tests);
}
