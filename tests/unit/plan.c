/* Plans: how they are built, what they do to a block, which are refused and with what words. Expected values follow from the
 * steps' definitions in core/plan.h. */
#include "tests/unit/fixture.h"

struct bench {
  struct uvm_space *s;
  struct uvm_block *b;
};
static struct bench bench(void) {
  struct uvm_space *s = small_space(8 * MIB);
  struct bench t = {s, uvm_block_get(s, managed_in(s, UVM_NEVER, 2 * MIB), 0)};
  back(s, t.b, HBM0);
  return t;
}

/* -- building -- */

static void test_transfer_runs(void **state) {
  (void)state;
  struct bench t = bench();
  uint8_t why[UVM_BLOCK_PAGES] = {0};
  uvm_mask pages = uvm_mask_range(0, 20), more = uvm_mask_range(4, 6);
  uvm_mask_set(&pages, 63, 66);
  uvm_mask_set(&pages, 510, 512);
  uvm_mask_set(&more, 18, 64); /* also pages that are not moved */
  uvm_mask_set(&more, 511, 512);
  why[6] = 3, why[7] = 9; /* a run has the rule of its first page */
  struct uvm_plan p = {0};
  uvm_plan_transfer(&p, UVM_S_MIGRATE, t.b, GPU0, DRAM, HBM0, &pages, &more, UVM_C_FAULT, why);
  static const struct {
    int a, b;
    uint8_t cause, why;
  } rows[] = {{0, 4, UVM_C_FAULT, 0},      {4, 6, UVM_C_PREFETCH, 0}, {6, 18, UVM_C_FAULT, 3},    {18, 20, UVM_C_PREFETCH, 0},
              {63, 64, UVM_C_PREFETCH, 0}, {64, 66, UVM_C_FAULT, 0},  {510, 511, UVM_C_FAULT, 0}, {511, 512, UVM_C_PREFETCH, 0}};
  assert_int_equal(p.steps.n, sizeof rows / sizeof *rows);
  for (size_t i = 0; i < p.steps.n; i++) {
    const struct uvm_step *st = &p.steps.v[i];
    assert_true(is_range(&st->pages, rows[i].a, rows[i].b));
    assert_true(st->cause == rows[i].cause && st->why == rows[i].why && st->src == DRAM && st->dst == HBM0 && st->proc == GPU0);
  }
  uvm_plan_clear(&p);
  uvm_plan_transfer(&p, UVM_S_DUPLICATE, t.b, GPU0, DRAM, HBM0, &pages, NULL, UVM_C_USER, NULL);
  assert_int_equal(p.steps.n, 3);
  uvm_mask none = {{0}};
  assert_null(uvm_plan_add(&p, UVM_S_MAP, t.b, GPU0, &none));
  assert_int_equal(p.steps.n, 3);
  uvm_plan_release(&p);
  uvm_space_destroy(t.s);
}

/* -- effects -- */

static void test_first_touch_and_maps(void **state) {
  (void)state;
  struct bench t = bench();
  step(t.s, UVM_S_POPULATE, t.b, GPU0, 0, 0, HBM0, 0, 16);
  assert_true(is_range(uvm_block_dirty(t.s, t.b), 0, 16));
  step(t.s, UVM_S_MAP, t.b, GPU0, UVM_A_ATOMIC, 0, 0, 0, 8);
  step(t.s, UVM_S_MAP, t.b, GPU0, UVM_A_READ, 0, 0, 8, 12);
  assert_true(is_range(uvm_block_mapped(t.s, t.b, GPU0, UVM_MAP_READ), 0, 12));
  assert_true(is_range(uvm_block_mapped(t.s, t.b, GPU0, UVM_MAP_WRITE), 0, 8));
  step(t.s, UVM_S_UNMAP, t.b, GPU0, UVM_A_WRITE, 0, 0, 0, 2);      /* keeps writes */
  step(t.s, UVM_S_UNMAP, t.b, GPU0, UVM_A_READ, 0, 0, 2, 4);       /* keeps reads */
  step(t.s, UVM_S_UNMAP, t.b, GPU0, UVM_A_PREFETCH, 0, 0, 10, 12); /* keeps nothing */
  assert_true(is_range(uvm_block_mapped(t.s, t.b, GPU0, UVM_MAP_READ), 0, 10));
  assert_true(is_range(uvm_block_mapped(t.s, t.b, GPU0, UVM_MAP_ATOMIC), 4, 8));
  uvm_mask want = uvm_mask_range(4, 8);
  uvm_mask_set(&want, 0, 2);
  assert_memory_equal(uvm_block_mapped(t.s, t.b, GPU0, UVM_MAP_WRITE), &want, sizeof want);
  uvm_space_destroy(t.s);
}

static void test_duplicate_and_collapse(void **state) {
  (void)state;
  struct bench t = bench();
  back(t.s, t.b, HBM1);
  step(t.s, UVM_S_POPULATE, t.b, CPU, 0, 0, DRAM, 0, 8);
  step(t.s, UVM_S_DUPLICATE, t.b, GPU0, 0, DRAM, HBM0, 0, 6);
  step(t.s, UVM_S_DUPLICATE, t.b, GPU1, 0, DRAM, HBM1, 4, 8);
  assert_true(is_range(uvm_block_duplicated(t.s, t.b), 0, 8));
  step(t.s, UVM_S_COLLAPSE, t.b, CPU, 0, HBM0, 0, 0, 6);
  assert_true(is_range(uvm_block_duplicated(t.s, t.b), 4, 8)); /* pages 4 and 5 still have the copy on gpu1 */
  step(t.s, UVM_S_COLLAPSE, t.b, GPU1, 0, DRAM, 0, 4, 8);
  assert_true(uvm_mask_empty(uvm_block_duplicated(t.s, t.b)));
  assert_true(is_range(uvm_block_resident(t.s, t.b, DRAM), 0, 4));
  assert_int_equal(uvm_backing_get(t.s, 2)->info.resident, 4 * 4096);
  uvm_space_destroy(t.s);
}

static void test_dirt_and_eviction(void **state) {
  (void)state;
  struct bench t = bench();
  step(t.s, UVM_S_POPULATE, t.b, GPU0, 0, 0, HBM0, 0, 8);
  step(t.s, UVM_S_EVICT, t.b, UVM_NONE, 0, HBM0, DRAM, 0, 6);
  assert_true(is_range(uvm_block_evicted(t.s, t.b, GPU0), 0, 6));
  assert_true(uvm_mask_empty(uvm_block_evicted(t.s, t.b, CPU)));
  assert_true(is_range(uvm_block_dirty(t.s, t.b), 6, 8));
  assert_int_equal(uvm_backing_get(t.s, 1)->info.resident, 2 * 4096);
  step(t.s, UVM_S_MIGRATE, t.b, GPU0, 0, DRAM, HBM0, 0, 3);
  assert_true(is_range(uvm_block_evicted(t.s, t.b, GPU0), 3, 6)); /* back again */
  step(t.s, UVM_S_MIGRATE, t.b, CPU, 0, HBM0, DRAM, 0, 3);
  assert_true(is_range(uvm_block_evicted(t.s, t.b, GPU0), 3, 6)); /* leaving without being evicted */
  uvm_space_destroy(t.s);
}

/* UNMAP holds from the begin, the rest at the end, and only what was done. */
static void test_begin_and_commit(void **state) {
  (void)state;
  struct bench t = bench();
  step(t.s, UVM_S_POPULATE, t.b, CPU, 0, 0, DRAM, 0, 8);
  step(t.s, UVM_S_MAP, t.b, CPU, UVM_A_WRITE, 0, 0, 0, 8);
  struct uvm_plan p = {0};
  struct uvm_error e;
  add(&p, UVM_S_UNMAP, t.b, CPU, 0, 0, 0, 8);
  add(&p, UVM_S_MIGRATE, t.b, GPU0, DRAM, HBM0, 0, 8);
  add(&p, UVM_S_MAP, t.b, GPU0, 0, 0, 0, 8)->access = UVM_A_WRITE;
  assert_int_equal(uvm_plan_check(t.s, &p, &e), 0);
  uvm_plan_hold(&p, 30);
  uvm_plan_begin(t.s, &p);
  assert_true(t.b->busy_until == 30 && p.end == 30);
  assert_true(uvm_mask_empty(uvm_block_mapped(t.s, t.b, CPU, UVM_MAP_READ)));
  assert_true(uvm_mask_empty(uvm_block_resident(t.s, t.b, HBM0)));
  struct uvm_plan other = {0};
  add(&other, UVM_S_MAP, t.b, CPU, 0, 0, 0, 1)->access = UVM_A_READ;
  assert_int_equal(uvm_plan_check(t.s, &other, &e), UVM_EENV);
  assert_non_null(strstr(e.text, "the block is busy with another plan"));
  p.steps.v[1].done = p.steps.v[2].done = uvm_mask_range(0, 5);
  uvm_plan_commit(t.s, &p, 30);
  assert_int_equal(t.b->busy_until, 0);
  assert_true(is_range(uvm_block_resident(t.s, t.b, HBM0), 0, 5) && is_range(uvm_block_resident(t.s, t.b, DRAM), 5, 8));
  assert_true(is_range(uvm_block_mapped(t.s, t.b, GPU0, UVM_MAP_WRITE), 0, 5));
  assert_int_equal(uvm_backing_get(t.s, 1)->info.resident, 5 * 4096);
  uvm_plan_release(&p);
  uvm_plan_release(&other);
  uvm_space_destroy(t.s);
}

/* An eviction's plan spans the blocks of a backing; each is checked on its own. */
static void test_two_blocks(void **state) {
  (void)state;
  struct uvm_space *s = small_space(8 * MIB);
  struct uvm_alloc *a = managed_in(s, UVM_NEVER, 4 * MIB);
  struct uvm_block *b[2] = {uvm_block_get(s, a, 0), uvm_block_get(s, a, 2 * MIB)};
  uvm_backing_id k = uvm_backing_create(s, HBM0, 4 * MIB);
  for (int i = 0; i < 2; i++) {
    uvm_backing_attach(s, k, b[i], 0, 512);
    step(s, UVM_S_POPULATE, b[i], GPU0, 0, 0, HBM0, 0, 100);
    step(s, UVM_S_MAP, b[i], GPU0, UVM_A_READ, 0, 0, 0, 100);
  }
  assert_int_equal(uvm_backing_get(s, k)->info.resident, 200 * 4096);
  struct uvm_plan p = {0};
  struct uvm_error e;
  for (int i = 0; i < 2; i++) add(&p, UVM_S_UNMAP, b[i], GPU0, 0, 0, 0, 100);
  for (int i = 0; i < 2; i++) add(&p, UVM_S_EVICT, b[i], UVM_NONE, HBM0, DRAM, 0, 100 + i);
  assert_int_equal(uvm_plan_check(s, &p, &e), UVM_EENV);
  assert_non_null(strstr(e.text, "plan step 3 (EVICT in block 2), page 100: not resident on hbm0"));
  uvm_mask_del(&p.steps.v[3].pages, 100);
  commit(s, &p);
  assert_int_equal(uvm_backing_get(s, k)->info.resident, 0);
  uvm_backing_destroy(s, k);
  assert_int_equal(s->nodes[HBM0].free, 8 * MIB);
  uvm_plan_release(&p);
  uvm_space_destroy(s);
}

/* -- refusals -- */

/* The block: pages [0,8) on dram, mapped for writes by the CPU; [8,16) on hbm0, unmapped; [16,24) on both, gpu0 and the CPU read
 * them; nothing above. hbm1 has no backing. */
static struct bench prepared(void) {
  struct bench t = bench();
  step(t.s, UVM_S_POPULATE, t.b, CPU, 0, 0, DRAM, 0, 8);
  step(t.s, UVM_S_MAP, t.b, CPU, UVM_A_WRITE, 0, 0, 0, 8);
  step(t.s, UVM_S_POPULATE, t.b, GPU0, 0, 0, HBM0, 8, 16);
  step(t.s, UVM_S_POPULATE, t.b, CPU, 0, 0, DRAM, 16, 24);
  step(t.s, UVM_S_DUPLICATE, t.b, GPU0, 0, DRAM, HBM0, 16, 24);
  step(t.s, UVM_S_MAP, t.b, GPU0, UVM_A_READ, 0, 0, 16, 24);
  step(t.s, UVM_S_MAP, t.b, CPU, UVM_A_READ, 0, 0, 16, 24);
  return t;
}

struct refusal {
  enum uvm_step_kind kind;
  uvm_proc proc;
  uint8_t access;
  uvm_node src, dst;
  int first, last;
  const char *says;
};
static const struct refusal refusals[] = {
    {UVM_S_POPULATE, GPU0, 0, 0, HBM0, 23, 30, "page 23: already resident somewhere"},
    {UVM_S_POPULATE, GPU1, 0, 0, HBM1, 30, 31, "page 30: no backing on hbm1"},
    {UVM_S_POPULATE, GPU1, 0, 0, NODES, 30, 31, "page 30: no such node"},
    {UVM_S_MIGRATE, GPU0, 0, DRAM, HBM0, 7, 9, "page 8: not resident on dram"},
    {UVM_S_MIGRATE, GPU0, 0, DRAM, HBM0, 2, 4, "page 2: to be unmapped before it moves from cpu"},
    {UVM_S_MIGRATE, GPU0, 0, HBM0, DRAM, 15, 17, "page 16: already resident on dram"},
    {UVM_S_MIGRATE, GPU1, 0, HBM0, HBM1, 8, 10, "page 8: no backing on hbm1"},
    {UVM_S_MIGRATE, GPU0, 0, UVM_NONE, HBM0, 2, 4, "no such node"},
    {UVM_S_DUPLICATE, GPU0, 0, DRAM, HBM0, 1, 2, "page 1: to be read-only before it is duplicated for cpu"},
    {UVM_S_DUPLICATE, CPU, 0, HBM0, DRAM, 15, 17, "page 16: already resident on dram"},
    {UVM_S_COLLAPSE, GPU0, 0, HBM0, 0, 15, 17, "page 15: the only copy may not be dropped"},
    {UVM_S_COLLAPSE, GPU0, 0, HBM0, 0, 16, 17, "page 16: its copy to be unmapped before it is dropped from gpu0"},
    {UVM_S_COLLAPSE, GPU0, 0, DRAM, 0, 16, 17, "page 16: its copy to be unmapped before it is dropped from cpu"},
    {UVM_S_EVICT, UVM_NONE, 0, HBM0, DRAM, 24, 25, "page 24: not resident on hbm0"},
    {UVM_S_MAP, CPU, UVM_A_READ, 0, 0, 7, 9, "page 8: resident on no node in reach of cpu"},
    {UVM_S_MAP, GPU0, UVM_A_WRITE, 0, 0, 15, 17, "page 16: duplicated and not to be mapped for writes by gpu0"},
    {UVM_S_MAP, GPU0, UVM_A_READ, 0, 0, 23, 25, "page 24: resident on no node in reach of gpu0"},
    {UVM_S_MAP, PROCS, UVM_A_READ, 0, 0, 8, 9, "no such processor"},
};

static void test_refusals(void **state) {
  (void)state;
  struct bench t = prepared();
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    const struct refusal *r = &refusals[i];
    struct uvm_plan p = {0};
    struct uvm_error e;
    add(&p, r->kind, t.b, r->proc, r->src, r->dst, r->first, r->last)->access = r->access;
    assert_int_equal(uvm_plan_check(t.s, &p, &e), UVM_EENV);
    if (!strstr(e.text, r->says)) fail_msg("row %zu says: %s", i, e.text);
    uvm_plan_release(&p);
  }
  uvm_space_destroy(t.s);
}

/* The legal neighbours of the refused: each differs from a row above in what that row's message names. */
static void test_legal_neighbours(void **state) {
  (void)state;
  static const struct refusal rows[] = {
      {UVM_S_POPULATE, GPU0, 0, 0, HBM0, 24, 30, ""},   {UVM_S_MIGRATE, GPU0, 0, HBM0, DRAM, 8, 16, ""},
      {UVM_S_DUPLICATE, CPU, 0, HBM0, DRAM, 8, 16, ""}, {UVM_S_MAP, GPU0, UVM_A_WRITE, 0, 0, 8, 16, ""},
      {UVM_S_MAP, GPU1, UVM_A_READ, 0, 0, 16, 24, ""},  {UVM_S_MAP, GPU0, UVM_A_ATOMIC, 0, 0, 0, 8, ""},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct bench t = prepared();
    step(t.s, rows[i].kind, t.b, rows[i].proc, rows[i].access, rows[i].src, rows[i].dst, rows[i].first, rows[i].last);
    uvm_space_destroy(t.s);
  }
}

/* The dry run goes step by step: what an earlier step allows or spoils counts. */
static void test_refusals_in_sequence(void **state) {
  (void)state;
  struct bench t = prepared();
  struct uvm_plan p = {0};
  struct uvm_error e;
  add(&p, UVM_S_UNMAP, t.b, CPU, 0, 0, 0, 8);
  add(&p, UVM_S_MIGRATE, t.b, GPU0, DRAM, HBM0, 0, 8);
  add(&p, UVM_S_MAP, t.b, GPU0, 0, 0, 0, 8)->access = UVM_A_WRITE;
  assert_int_equal(uvm_plan_check(t.s, &p, &e), 0);
  add(&p, UVM_S_UNMAP, t.b, GPU0, 0, 0, 7, 9);
  assert_int_equal(uvm_plan_check(t.s, &p, &e), UVM_EENV);
  assert_non_null(strstr(e.text, "plan step 3 (UNMAP in block 1), page 7: unmapped after an earlier step of the plan mapped it"));
  p.steps.n = 2;
  add(&p, UVM_S_MIGRATE, t.b, GPU0, DRAM, HBM0, 3, 4);
  assert_int_equal(uvm_plan_check(t.s, &p, &e), UVM_EENV);
  assert_non_null(strstr(e.text, "plan step 2 (MIGRATE in block 1), page 3: not resident on dram"));
  assert_true(is_range(uvm_block_mapped(t.s, t.b, CPU, UVM_MAP_WRITE), 0, 8)); /* and the block is as it was */
  uvm_plan_release(&p);
  uvm_space_destroy(t.s);
}

static void test_outside_the_block(void **state) {
  (void)state;
  struct uvm_space *s = small_space(8 * MIB);
  struct uvm_block *b = uvm_block_get(s, managed_in(s, UVM_NEVER, 4096 * 10), 0);
  struct uvm_plan p = {0};
  struct uvm_error e;
  add(&p, UVM_S_POPULATE, b, CPU, 0, DRAM, 9, 11);
  assert_int_equal(uvm_plan_check(s, &p, &e), UVM_EENV);
  assert_non_null(strstr(e.text, "page 10: outside the block"));
  uvm_plan_release(&p);
  uvm_space_destroy(s);
}

/* uvm_block_check sees what no plan can make: each row breaks one invariant by hand. */
static void test_block_check(void **state) {
  (void)state;
  struct bench t = prepared();
  struct {
    uvm_mask *m;
    int page;
    const char *says;
  } rows[] = {
      {uvm_block_resident(t.s, t.b, HBM1), 40, "page 40: resident without a backing on hbm1"},
      {uvm_block_resident(t.s, t.b, HBM0), 3, "page 3: resident on several nodes but not duplicated"},
      {uvm_block_duplicated(t.s, t.b), 9, "page 9: duplicated but not resident on several nodes"},
      {uvm_block_dirty(t.s, t.b), 50, "page 50: dirty but resident nowhere"},
      {uvm_block_mapped(t.s, t.b, CPU, UVM_MAP_READ), 9, "page 9: resident on no node in reach and mapped by cpu"},
      {uvm_block_mapped(t.s, t.b, GPU0, UVM_MAP_WRITE), 9, "page 9: mapped for writes but not for reads by gpu0"},
      {uvm_block_mapped(t.s, t.b, GPU0, UVM_MAP_ATOMIC), 17, "page 17: mapped for atomics but not for writes by gpu0"},
      {uvm_block_mapped(t.s, t.b, GPU0, UVM_MAP_WRITE), 17, "page 17: duplicated and mapped for writes by gpu0"},
  };
  struct uvm_error e;
  assert_int_equal(uvm_block_check(t.s, t.b, &e), 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uvm_mask_add(rows[i].m, rows[i].page);
    assert_int_equal(uvm_block_check(t.s, t.b, &e), UVM_EENV);
    if (!strstr(e.text, rows[i].says)) fail_msg("row %zu says: %s", i, e.text);
    uvm_mask_del(rows[i].m, rows[i].page);
  }
  uvm_space_destroy(t.s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_transfer_runs),     cmocka_unit_test(test_first_touch_and_maps), cmocka_unit_test(test_duplicate_and_collapse),
      cmocka_unit_test(test_dirt_and_eviction), cmocka_unit_test(test_begin_and_commit),     cmocka_unit_test(test_two_blocks),
      cmocka_unit_test(test_refusals),          cmocka_unit_test(test_legal_neighbours),     cmocka_unit_test(test_refusals_in_sequence),
      cmocka_unit_test(test_outside_the_block), cmocka_unit_test(test_block_check),
  };
  return UVM_RUN(tests);
}
