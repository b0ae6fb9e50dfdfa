/* The VA space: addresses, allocations, ranges, blocks, splitting. Expected values are arithmetic on 4 KiB pages and 2 MiB windows. */
#include "tests/unit/fixture.h"
#include <malloc.h>

static void test_numbers_and_addresses(void **state) {
  (void)state;
  struct uvm_space *s = small_space(8 * MIB);
  struct uvm_alloc *a = managed_in(s, UVM_NEVER, 3 * MIB), *b = managed_in(s, UVM_NEVER, 1), *c = managed_in(s, 0x7f0000003000, 5000);
  assert_true(a->number == 0 && b->number == 1 && c->number == 2);
  assert_true(a->base > 0 && a->base % (2 * MIB) == 0);
  assert_int_equal(b->base, a->base + 4 * MIB);
  assert_int_equal(c->base, 0x7f0000003000);
  assert_int_equal(a->nwindows, 2);
  assert_int_equal(b->nwindows, 1);
  uvm_space_free(s, b);
  assert_int_equal(managed_in(s, UVM_NEVER, 1)->number, 3);      /* a freed number is not given again */
  assert_int_equal(managed_in(s, b->base, 4096)->base, b->base); /* its addresses are */
  uvm_space_destroy(s);
}

static void test_no_room_above(void **state) {
  (void)state;
  struct uvm_space *s = small_space(8 * MIB);
  struct uvm_alloc *a, *b;
  struct uvm_error e;
  uint64_t top = (1ull << 47) - 2 * MIB;
  assert_int_equal(uvm_space_alloc(s, "a", "a", top, 2 * MIB, UVM_PINNED, DRAM, &a, &e), 0);
  assert_int_equal(uvm_space_alloc(s, "b", "b", UVM_NEVER, 2 * MIB, UVM_PINNED, DRAM, &b, &e), 0);
  assert_true(b->base < top && b->base % (2 * MIB) == 0);
  assert_int_equal(uvm_space_alloc(s, "c", "c", UVM_NEVER, (1ull << 47) - 8 * MIB, UVM_PINNED, DRAM, &b, &e), 0);
  assert_int_equal(uvm_space_alloc(s, "d", "d", UVM_NEVER, 8 * MIB, UVM_PINNED, DRAM, &b, &e), UVM_EINPUT);
  assert_non_null(strstr(e.text, "no gap of 8388608 bytes"));
  uvm_space_destroy(s);
}

static void test_bad_allocations(void **state) {
  (void)state;
  static const struct {
    uint64_t base, bytes;
    enum uvm_kind kind;
    const char *says;
  } rows[] = {
      {UVM_NEVER, 0, UVM_MANAGED, "at least 1 byte"},
      {UVM_NEVER, INT64_MAX, UVM_MANAGED, "found 9223372036854775807"},
      {UVM_NEVER, UINT64_MAX, UVM_HOST, "expected at most"},
      {0x1000800, 4096, UVM_MANAGED, "multiple of 4096"},
      {(1ull << 47) - 4096, 4097, UVM_MANAGED, "expected an end"},
      {UINT64_MAX - 4095, 4096, UVM_MANAGED, "expected an end"},
      {0x40000000, 4096, UVM_MANAGED, "overlaps allocation old"},
      {0x3ffff000, 4097, UVM_MANAGED, "overlaps allocation old"},
      {0x40001000, 4096, UVM_MANAGED, "overlaps allocation old"}, /* 5000 bytes take two pages */
      {0, 1ull << 46, UVM_MANAGED, "overlaps allocation old"},
      {UVM_NEVER, 8 * MIB + 1, UVM_DEVICE, "no room for 8388609 bytes on hbm0"},
  };
  struct uvm_space *s = small_space(8 * MIB);
  struct uvm_alloc *a;
  struct uvm_error e;
  assert_int_equal(uvm_space_alloc(s, "old", "", 0x40000000, 5000, UVM_MANAGED, UVM_NONE, &a, &e), 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_int_equal(uvm_space_alloc(s, "new", "", rows[i].base, rows[i].bytes, rows[i].kind, HBM0, &a, &e), UVM_EINPUT);
    if (!strstr(e.text, rows[i].says)) fail_msg("row %zu says: %s", i, e.text);
  }
  assert_int_equal(s->allocs.n, 1);
  assert_int_equal(managed_in(s, 0x40002000, 1)->number, 1); /* the next page is free */
  assert_int_equal(managed_in(s, 0x3ffff000, 4096)->number, 2);
  uvm_space_destroy(s);
}

static void test_device_memory(void **state) {
  (void)state;
  struct uvm_space *s = small_space(8 * MIB);
  struct uvm_alloc *a;
  struct uvm_error e;
  assert_int_equal(uvm_space_alloc(s, "a", "", UVM_NEVER, 5 * MIB + 1, UVM_DEVICE, HBM0, &a, &e), 0);
  assert_int_equal(s->nodes[HBM0].free, 3 * MIB - 4096);
  assert_int_equal(uvm_space_alloc(s, "b", "", UVM_NEVER, 3 * MIB, UVM_DEVICE, HBM0, &a, &e), UVM_EINPUT);
  assert_int_equal(uvm_space_alloc(s, "b", "", UVM_NEVER, 8 * MIB, UVM_DEVICE, HBM1, &a, &e), 0);
  uvm_space_free(s, s->allocs.v[0]);
  assert_int_equal(s->nodes[HBM0].free, 8 * MIB);
  assert_int_equal(s->peak[HBM0], 5 * MIB + 4096);
  uvm_space_destroy(s);
}

/* Base three pages into a window, 2 MiB + 1 byte long: 509 pages, then 4. */
static void test_block_extents(void **state) {
  (void)state;
  struct uvm_space *s = small_space(8 * MIB);
  struct uvm_alloc *a = managed_in(s, 0x7f0000003000, 2 * MIB + 1);
  assert_null(uvm_block_find(a, 0));
  struct uvm_block *b = uvm_block_get(s, a, 4096 * 508 + 17), *c = uvm_block_get(s, a, 4096 * 509);
  assert_true(b->first == 3 && b->pages == 509);
  assert_true(c->first == 0 && c->pages == 4);
  assert_ptr_equal(uvm_block_get(s, a, 0), b);
  assert_ptr_equal(uvm_block_find(a, 2 * MIB), c);
  assert_int_equal(uvm_block_offset(b, 3), 0);
  assert_int_equal(uvm_block_offset(b, 511), 4096 * 508);
  assert_int_equal(uvm_block_offset(c, 3), 2 * MIB);
  assert_int_equal(c->info.offset, 4096 * 509);
  assert_int_equal(uvm_page_of(a, 4096), 4);
  assert_ptr_equal(uvm_block_by_id(s, c->id), c);
  uvm_space_destroy(s);
}

static int blocks_gone, backings_gone;
static void count_block(void *ctx, struct uvm_block *b) { (void)ctx, (void)b, blocks_gone++; }
static void count_backing(void *ctx, struct uvm_backing *k) { (void)ctx, (void)k, backings_gone++; }

static void test_freeing(void **state) {
  (void)state;
  struct uvm_space *s = small_space(8 * MIB);
  s->hooks = (struct uvm_space_hooks){NULL, count_block, count_backing};
  blocks_gone = backings_gone = 0;
  struct uvm_alloc *a = managed_in(s, UVM_NEVER, 3 * MIB), *other = managed_in(s, UVM_NEVER, MIB);
  struct uvm_block *b = uvm_block_get(s, a, 0), *half = uvm_block_get(s, a, 2 * MIB), *o = uvm_block_get(s, other, 0);
  uvm_backing_id own = back(s, b, HBM0), shared = uvm_backing_create(s, HBM0, 2 * MIB);
  uvm_backing_attach(s, shared, half, 0, 256);
  uvm_backing_attach(s, shared, o, 0, 256);
  step(s, UVM_S_POPULATE, b, GPU0, 0, 0, HBM0, 0, 512);
  step(s, UVM_S_POPULATE, half, GPU0, 0, 0, HBM0, 0, 10);
  step(s, UVM_S_POPULATE, o, GPU0, 0, 0, HBM0, 0, 7);
  uvm_range_id r = a->ranges.v[0]->id;
  uvm_block_id id = b->id;
  uvm_space_free(s, a);
  assert_false(a->live);
  assert_null(uvm_range_by_id(s, r));
  assert_null(uvm_block_by_id(s, id));
  assert_null(uvm_backing_get(s, own));
  const struct uvm_backing *k = uvm_backing_get(s, shared); /* the other allocation still has pages there */
  assert_true(k && k->info.block == o->id && k->info.resident == 7 * 4096 && k->npieces == 1);
  assert_true(blocks_gone == 2 && backings_gone == 1);
  assert_int_equal(s->nodes[HBM0].free, 6 * MIB);
  uvm_space_destroy(s);
  assert_true(blocks_gone == 3 && backings_gone == 2);
}

static void test_split_ranges(void **state) {
  (void)state;
  struct uvm_space *s = small_space(8 * MIB);
  struct uvm_alloc *a = managed_in(s, UVM_NEVER, 8 * MIB);
  struct uvm_block *low = uvm_block_get(s, a, 0), *high = uvm_block_get(s, a, 6 * MIB);
  uvm_block_id ids[2] = {low->id, high->id};
  a->ranges.v[0]->info.preferred = HBM1;
  size_t n, i = uvm_space_split(s, a, 0, 8 * MIB, &n);
  assert_true(i == 0 && n == 1 && a->ranges.n == 1); /* the whole: nothing to split */
  i = uvm_space_split(s, a, 2 * MIB, 4 * MIB, &n);
  assert_true(i == 1 && n == 1 && a->ranges.n == 3);
  assert_true(a->ranges.v[1]->offset == 2 * MIB && a->ranges.v[1]->info.bytes == 4 * MIB);
  assert_true(a->ranges.v[2]->offset == 6 * MIB && a->ranges.v[2]->info.bytes == 2 * MIB);
  assert_int_equal(a->ranges.v[2]->info.preferred, HBM1); /* advice is inherited */
  assert_true(low->id == ids[0] && high->id == ids[1]);   /* whole blocks stay what they are */
  assert_true(high->range == a->ranges.v[2] && high->info.range == a->ranges.v[2]->id && high->info.offset == 0);
  assert_int_equal(uvm_block_offset(high, 1), 6 * MIB + 4096);
  assert_ptr_equal(uvm_alloc_range(a, 6 * MIB - 1), a->ranges.v[1]);
  i = uvm_space_split(s, a, MIB, 6 * MIB, &n); /* overlaps the old parts: [1,2) [2,6) [6,7) of [0,1) ... [7,8) */
  assert_true(i == 1 && n == 3 && a->ranges.n == 5);
  uvm_space_destroy(s);
}

static void test_split_cuts_blocks(void **state) {
  (void)state;
  struct uvm_space *s = small_space(8 * MIB);
  struct uvm_alloc *a = managed_in(s, UVM_NEVER, 2 * MIB);
  struct uvm_block *b = uvm_block_get(s, a, 0);
  s->hooks = (struct uvm_space_hooks){NULL, count_block, count_backing};
  blocks_gone = backings_gone = 0;
  uvm_backing_id k = back(s, b, HBM0);
  uvm_block_id old = b->id;
  step(s, UVM_S_POPULATE, b, GPU0, 0, 0, HBM0, 50, 300);
  step(s, UVM_S_MAP, b, GPU0, UVM_A_WRITE, 0, 0, 90, 110);
  size_t n;
  assert_int_equal(uvm_space_split(s, a, 100 * 4096, 100 * 4096, &n), 1);
  assert_true(n == 1 && blocks_gone == 2 && backings_gone == 0); /* cut at page 100, then its upper part at 200 */
  struct uvm_block *part[3];
  for (uint64_t i = 0; i < 3; i++) part[i] = uvm_block_find(a, i * 100 * 4096);
  assert_null(uvm_block_by_id(s, old));
  assert_true(part[0]->id > old && part[1]->id > old && part[2]->id > old && part[1]->id != part[2]->id);
  assert_true(part[0]->pages == 100 && part[1]->first == 100 && part[1]->pages == 100 && part[2]->first == 200 && part[2]->pages == 312);
  assert_true(is_range(uvm_block_resident(s, part[0], HBM0), 50, 100));
  assert_true(is_range(uvm_block_resident(s, part[1], HBM0), 100, 200));
  assert_true(is_range(uvm_block_resident(s, part[2], HBM0), 200, 300));
  assert_true(is_range(uvm_block_mapped(s, part[1], GPU0, UVM_MAP_WRITE), 100, 110));
  assert_true(is_range(uvm_block_mapped(s, part[0], GPU0, UVM_MAP_READ), 90, 100));
  const struct uvm_backing *backing = uvm_backing_get(s, k);
  assert_true(backing->npieces == 3 && backing->info.block == 0 && backing->info.resident == 250 * 4096);
  for (int i = 0; i < 3; i++) assert_int_equal(uvm_page_backing(part[i], HBM0, part[i]->first), k);
  struct uvm_error e;
  for (int i = 0; i < 3; i++) assert_int_equal(uvm_block_check(s, part[i], &e), 0);
  step(s, UVM_S_MIGRATE, part[2], CPU, 0, HBM0, DRAM, 200, 300);
  assert_int_equal(backing->info.resident, 150 * 4096);
  uvm_space_free(s, a);
  assert_true(backings_gone == 1 && s->nodes[HBM0].free == 8 * MIB);
  uvm_space_destroy(s);
}

/* Only the middle of a window cut in three was used: the rest is made when asked for. */
static void test_split_before_use(void **state) {
  (void)state;
  struct uvm_space *s = small_space(8 * MIB);
  struct uvm_alloc *a = managed_in(s, UVM_NEVER, 2 * MIB);
  size_t n;
  uvm_space_split(s, a, 4096, 4096, &n);
  struct uvm_block *mid = uvm_block_get(s, a, 4096 + 4095);
  assert_true(mid->first == 1 && mid->pages == 1);
  assert_null(uvm_block_find(a, 0));
  struct uvm_block *low = uvm_block_get(s, a, 4095), *high = uvm_block_get(s, a, 8192);
  assert_true(low->pages == 1 && high->first == 2 && high->pages == 510 && high->info.offset == 0);
  assert_true(a->blocks[0] == low && low->split == mid && mid->split == high);
  uvm_space_destroy(s);
}

static void test_page_target(void **state) {
  (void)state;
  struct uvm_space *s = small_space(8 * MIB);
  struct uvm_block *b = uvm_block_get(s, managed_in(s, UVM_NEVER, 2 * MIB), 0);
  back(s, b, HBM0);
  assert_int_equal(uvm_page_target(s, b, GPU0, 0), UVM_NONE);
  step(s, UVM_S_POPULATE, b, CPU, 0, 0, DRAM, 0, 2);
  assert_int_equal(uvm_page_target(s, b, GPU0, 0), DRAM);
  step(s, UVM_S_DUPLICATE, b, GPU0, 0, DRAM, HBM0, 0, 1);
  assert_int_equal(uvm_page_nodes(s, b, 0), 1 << DRAM | 1 << HBM0);
  assert_int_equal(uvm_page_target(s, b, GPU0, 0), HBM0);
  assert_int_equal(uvm_page_target(s, b, GPU1, 0), DRAM);
  step(s, UVM_S_MIGRATE, b, GPU0, 0, DRAM, HBM0, 1, 2);
  assert_int_equal(uvm_page_target(s, b, CPU, 1), UVM_NONE);
  uvm_mask all = uvm_block_populated(s, b);
  assert_true(is_range(&all, 0, 2));
  uvm_space_destroy(s);
}

#if !defined(__SANITIZE_ADDRESS__)
/* 1 TiB in one allocation, a page in every sixteenth 2 MiB: at most 1280 bytes a block with its
 * backing (which makes 640 MiB of all 524,288), and the 4 MiB table. */
static void test_memory_of_a_terabyte(void **state) {
  (void)state;
  if (!mallinfo2().uordblks) skip(); /* Valgrind's allocator does not count */
  const struct uvm_proc_info procs[] = {{.name = "cpu", .home = DRAM, .reach = 1}, {.name = "gpu0", .home = HBM0, .reach = 3}};
  const struct uvm_node_info nodes[] = {{.name = "dram"}, {.name = "hbm0", .capacity = 1ull << 40}};
  size_t before = mallinfo2().uordblks + mallinfo2().hblkhd, blocks = 0;
  struct uvm_space *s = uvm_space_create(&(struct uvm_topology){.nprocs = 2, .nnodes = 2, .procs = procs, .nodes = nodes});
  struct uvm_alloc *a = managed_in(s, UVM_NEVER, 1ull << 40);
  assert_int_equal(a->nwindows, 524288);
  for (uint64_t offset = 0; offset < a->bytes; offset += 32 * MIB, blocks++) {
    struct uvm_block *b = uvm_block_get(s, a, offset);
    back(s, b, HBM0);
    step(s, UVM_S_POPULATE, b, GPU0, 0, 0, HBM0, 0, 1);
  }
  size_t cost = mallinfo2().uordblks + mallinfo2().hblkhd - before - a->nwindows * sizeof(void *);
  print_message("%zu bytes a block\n", cost / blocks);
  assert_in_range(cost / blocks, 1, 1280);
  uvm_space_destroy(s);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_numbers_and_addresses),
    cmocka_unit_test(test_no_room_above),
    cmocka_unit_test(test_bad_allocations),
    cmocka_unit_test(test_device_memory),
    cmocka_unit_test(test_block_extents),
    cmocka_unit_test(test_freeing),
    cmocka_unit_test(test_split_ranges),
    cmocka_unit_test(test_split_cuts_blocks),
    cmocka_unit_test(test_split_before_use),
    cmocka_unit_test(test_page_target),
#if !defined(__SANITIZE_ADDRESS__)
    cmocka_unit_test(test_memory_of_a_terabyte),
#endif
  };
  return UVM_RUN(tests);
}
