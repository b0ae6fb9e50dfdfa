/* Backings: room, service order, pages, what they know of their blocks. Expected values are arithmetic. */
#include "tests/unit/fixture.h"

static void expect_list(const struct uvm_space *s, uvm_node n, enum uvm_list l, const char *ids) {
  char found[64] = "", *at = found;
  uvm_backing_id last = 0;
  for (uvm_backing_id k = s->lists[n][l].oldest; k; last = k, k = s->backings.v[k]->newer) {
    assert_int_equal(s->backings.v[k]->older, last);
    assert_int_equal(s->backings.v[k]->list, l);
    at += sprintf(at, "%u ", k);
  }
  assert_int_equal(s->lists[n][l].newest, last);
  assert_string_equal(found, ids);
}

static void test_service_order(void **state) {
  (void)state;
  struct uvm_space *s = small_space(8 * MIB);
  for (int i = 0; i < 4; i++) uvm_backing_create(s, HBM0, MIB);
  uvm_backing_create(s, HBM1, MIB);
  expect_list(s, HBM0, UVM_L_UNUSED, "1 2 3 4 ");
  expect_list(s, HBM1, UVM_L_UNUSED, "5 ");
  uvm_backing_move(s, 2, UVM_L_USED, 70);
  uvm_backing_move(s, 4, UVM_L_USED, 80);
  uvm_backing_move(s, 1, UVM_L_USED, 80);
  expect_list(s, HBM0, UVM_L_UNUSED, "3 ");
  expect_list(s, HBM0, UVM_L_USED, "2 4 1 ");
  uvm_backing_move(s, 4, UVM_L_USED, 90); /* from the middle to the tail */
  uvm_backing_move(s, 2, UVM_NONE, 95);   /* leaving: on no list, its stamp stays */
  expect_list(s, HBM0, UVM_L_USED, "1 4 ");
  assert_true(s->backings.v[4]->info.serviced == 90 && s->backings.v[2]->info.serviced == 70);
  uvm_backing_destroy(s, 4);
  uvm_backing_destroy(s, 2);
  expect_list(s, HBM0, UVM_L_USED, "1 ");
  assert_int_equal(uvm_backing_create(s, HBM0, MIB), 6); /* ids are never used again */
  expect_list(s, HBM0, UVM_L_UNUSED, "3 6 ");
  assert_null(uvm_backing_get(s, 4));
  assert_null(uvm_backing_look(s, 4));
  uvm_space_destroy(s);
}

static void test_room(void **state) {
  (void)state;
  struct uvm_space *s = small_space(4 * MIB);
  assert_int_equal(s->nodes[HBM0].free, 4 * MIB);
  uvm_backing_id a = uvm_backing_create(s, HBM0, 2 * MIB), b = uvm_backing_create(s, HBM0, 64 << 10);
  assert_int_equal(s->nodes[HBM0].free, 2 * MIB - (64 << 10));
  uvm_backing_destroy(s, a);
  uvm_backing_destroy(s, b);
  uvm_backing_create(s, HBM0, MIB);
  assert_int_equal(s->nodes[HBM0].free, 3 * MIB);
  assert_int_equal(s->nodes[HBM1].free, 4 * MIB);
  assert_int_equal(s->peak[HBM0], 2 * MIB + (64 << 10));
  assert_int_equal(s->topology.nodes[HBM0].free, 3 * MIB); /* what policies see */
  uvm_space_destroy(s);
}

/* A small block on 64 KiB and 4 KiB backings, as the drivers cover blocks below 2 MiB. */
static void test_backings_of_pages(void **state) {
  (void)state;
  struct uvm_space *s = small_space(4 * MIB);
  struct uvm_block *b = uvm_block_get(s, managed_in(s, 0x7f0000010000, 33 * 4096), 0); /* pages [16, 49) */
  uvm_backing_id big = uvm_backing_create(s, HBM0, 64 << 10), small = uvm_backing_create(s, HBM0, 4096);
  for (int p = 16; p < 32; p++) uvm_backing_attach(s, big, b, p, 1);
  uvm_backing_attach(s, small, b, 48, 1);
  assert_true(uvm_backing_get(s, big)->npieces == 1 && uvm_backing_get(s, big)->pieces[0].pages == 16); /* neighbours join */
  assert_true(uvm_page_backing(b, HBM0, 16) == big && uvm_page_backing(b, HBM0, 31) == big);
  assert_true(uvm_page_backing(b, HBM0, 32) == 0 && uvm_page_backing(b, HBM0, 48) == small && uvm_page_backing(b, HBM1, 16) == 0);
  assert_true(uvm_backing_get(s, big)->info.block == b->id && uvm_backing_get(s, small)->info.first == 48);
  step(s, UVM_S_POPULATE, b, GPU0, 0, 0, HBM0, 20, 24);
  step(s, UVM_S_POPULATE, b, GPU0, 0, 0, HBM0, 48, 49);
  assert_true(uvm_backing_get(s, big)->info.resident == 4 * 4096 && uvm_backing_get(s, small)->info.resident == 4096);
  step(s, UVM_S_MIGRATE, b, CPU, 0, HBM0, DRAM, 20, 24);
  uvm_backing_destroy(s, big);
  assert_true(uvm_page_backing(b, HBM0, 16) == 0 && uvm_page_backing(b, HBM0, 48) == small);
  struct uvm_error e;
  assert_int_equal(uvm_block_check(s, b, &e), 0);
  uvm_space_destroy(s);
}

static void test_whole_after_pages(void **state) {
  (void)state;
  struct uvm_space *s = small_space(4 * MIB);
  struct uvm_block *b = uvm_block_get(s, managed_in(s, UVM_NEVER, MIB), 0);
  uvm_backing_id part = uvm_backing_create(s, HBM0, 4096);
  uvm_backing_attach(s, part, b, 7, 1);
  uvm_backing_destroy(s, part);
  uvm_backing_id whole = uvm_backing_create(s, HBM0, MIB);
  uvm_backing_attach(s, whole, b, 0, 256);
  assert_true(uvm_page_backing(b, HBM0, 7) == whole && b->backing[HBM0] == whole);
  uvm_backing_destroy(s, whole);
  assert_int_equal(uvm_page_backing(b, HBM0, 7), 0);
  uvm_space_destroy(s);
}

/* A cut block's pieces follow: pages of one backing, pages of several. */
static void test_cut(void **state) {
  (void)state;
  struct uvm_space *s = small_space(8 * MIB);
  struct uvm_alloc *a = managed_in(s, UVM_NEVER, MIB);
  struct uvm_block *b = uvm_block_get(s, a, 0);
  uvm_backing_id k[2] = {uvm_backing_create(s, HBM0, 64 << 10), uvm_backing_create(s, HBM0, 64 << 10)};
  uvm_backing_attach(s, k[0], b, 0, 16);
  uvm_backing_attach(s, k[1], b, 16, 16);
  step(s, UVM_S_POPULATE, b, GPU0, 0, 0, HBM0, 0, 32);
  size_t n;
  uvm_space_split(s, a, 20 * 4096, MIB, &n);
  struct uvm_block *lo = uvm_block_find(a, 0), *hi = uvm_block_find(a, 20 * 4096);
  assert_true(uvm_page_backing(lo, HBM0, 3) == k[0] && uvm_page_backing(lo, HBM0, 19) == k[1] && uvm_page_backing(hi, HBM0, 20) == k[1]);
  assert_int_equal(uvm_page_backing(hi, HBM0, 32), 0);
  const struct uvm_backing *whole = uvm_backing_get(s, k[0]), *cut = uvm_backing_get(s, k[1]);
  assert_true(whole->npieces == 1 && whole->info.block == lo->id);
  assert_true(cut->npieces == 2 && cut->info.block == 0 && cut->info.resident == 16 * 4096);
  assert_true(cut->pieces[0].block == lo && cut->pieces[0].pages == 4 && cut->pieces[1].block == hi && cut->pieces[1].pages == 12);
  uvm_space_destroy(s);
}

static void test_look(void **state) {
  (void)state;
  struct uvm_space *s = small_space(4 * MIB);
  struct uvm_block *b = uvm_block_get(s, managed_in(s, UVM_NEVER, 2 * MIB), 0);
  uvm_backing_id k = back(s, b, HBM0);
  assert_false(uvm_backing_look(s, k)->dirty);
  step(s, UVM_S_POPULATE, b, CPU, 0, 0, DRAM, 0, 8);
  step(s, UVM_S_MIGRATE, b, GPU0, 0, DRAM, HBM0, 0, 4);
  assert_false(uvm_backing_look(s, k)->dirty); /* what was written lies in dram; the copy is clean */
  step(s, UVM_S_MAP, b, GPU0, UVM_A_WRITE, 0, 0, 2, 3);
  assert_true(uvm_backing_look(s, k)->dirty);
  struct uvm_plan p = {0};
  add(&p, UVM_S_MAP, b, GPU0, 0, 0, 0, 1)->access = UVM_A_READ;
  uvm_plan_hold(&p, 9);
  uvm_plan_begin(s, &p);
  assert_true(uvm_backing_look(s, k)->busy && b->busy_until == 9);
  uvm_plan_commit(s, &p, 9);
  assert_false(uvm_backing_look(s, k)->busy);
  uvm_plan_release(&p);
  uvm_space_destroy(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_service_order),     cmocka_unit_test(test_room), cmocka_unit_test(test_backings_of_pages),
      cmocka_unit_test(test_whole_after_pages), cmocka_unit_test(test_cut),  cmocka_unit_test(test_look),
  };
  return UVM_RUN(tests);
}
