/* amdkfd's rules by themselves: how ranges are cut (specification 2.1), windows (2.4), where a page goes (2.3, 2.5), and the
 * event text (2.10). */
#include "core/amdkfd/amdkfd.h"
#include "tests/unit/fixture.h"

#define GIB (1ull << 30)

static void assert_span(struct kfd_span s, uint64_t first, uint64_t last) {
  if (s.first != first || s.last != last)
    fail_msg("expected [%#llx..%#llx], found [%#llx..%#llx]", (unsigned long long)first, (unsigned long long)last,
             (unsigned long long)s.first, (unsigned long long)s.last);
}

/* 2.1: 1/32 of VRAM, clamped to 2 MiB .. 1 GiB, a power of two; in pages. */
static void test_max_pages(void **state) {
  static const struct {
    uint64_t vram, pages;
  } rows[] = {{8 * GIB, 0x10000},   {16 * GIB, 0x20000},  {24 * GIB, 0x20000}, {32 * GIB, 0x40000},  {64 * GIB, 0x40000},
              {192 * GIB, 0x40000}, {32ull << 20, 0x200}, {1ull << 20, 0x200}, {64ull << 20, 0x200}, {128ull << 20, 0x400}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) assert_int_equal(uvm__kfd_max_pages(rows[i].vram), rows[i].pages);
}

/* 2.1's example, max 2^18. */
static void test_pieces(void **state) {
  static const uint64_t lasts[] = {0x3ffff, 0x7ffff, 0xbffff, 0xe00ff};
  struct kfd_span s = {0x20100, 0xe00ff};
  (void)state;
  for (size_t i = 0; i < 4; i++) {
    uint64_t last = uvm__kfd_piece_last(s, 1 << 18);
    assert_int_equal(last, lasts[i]);
    s.first = last + 1;
  }
  assert_true(s.first > s.last);
}

/* 2.4: windows. */
static void test_windows(void **state) {
  static const struct {
    struct kfd_span range, window;
    uint8_t g;
  } rows[] = {{{0x1000, 0x8fff}, {0x1200, 0x13ff}, 9},
              {{0x1000, 0x8fff}, {0x1230, 0x123f}, 4},
              {{0x1000, 0x8fff}, {0x1234, 0x1234}, 0},
              {{0x1000, 0x8fff}, {0x1000, 0x8fff}, 18},
              {{0x1210, 0x1332}, {0x1210, 0x1332}, 9}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct kfd_prange r = {.pages = rows[i].range, .granularity = rows[i].g};
    assert_span(uvm__kfd_window(&r, 0x1234), rows[i].window.first, rows[i].window.last);
  }
}

/* 2.4: ranges made by a fault on page 0x1234; a VMA's end is exclusive there. */
static void test_unregistered(void **state) {
  const struct kfd_span open = {0, UINT64_MAX};
  (void)state;
  assert_span(uvm__kfd_unregistered(0x1234, (struct kfd_span){0x1000, 0x3fff}, open, 9), 0x1200, 0x13ff);
  assert_span(uvm__kfd_unregistered(0x1234, (struct kfd_span){0x1210, 0x1332}, open, 9), 0x1210, 0x1332);
  assert_span(uvm__kfd_unregistered(0x1234, (struct kfd_span){0x1000, 0x3fff}, (struct kfd_span){0x1221, 0x12ff}, 9), 0x1221, 0x12ff);
}

/* 2.3: best_restore_location, first match, for a fault of GPU0 (location 1). hive: GPU1 (2) is in its hive. */
static void test_restore_location(void **state) {
  static const struct {
    uint32_t preferred, actual, access, in_place;
    bool apu, hive;
    uint32_t location;
  } rows[] = {{1, 0, 2, 0, true, false, 0}, /* rule 1 before 2 */
              {1, 0, 0, 0, false, false, 1},
              {0, 1, 2, 0, false, false, 0},            /* rule 2 */
              {2, 0, 2, 0, false, true, 2},             /* rule 3 */
              {2, 0, 2, 0, false, false, 1},            /* rule 4, and 2.4's row: preferred GPU outside the hive */
              {KFD_UNDEFINED, 2, 2, 0, false, true, 1}, /* rule 4 whatever has it */
              {KFD_UNDEFINED, 0, 0, 2, false, true, 0},
              {KFD_UNDEFINED, 2, 0, 2, false, true, 2},
              {KFD_UNDEFINED, 2, 0, 2, false, false, 0},             /* rule 5 */
              {KFD_UNDEFINED, 0, 4, 4, false, true, KFD_UNDEFINED}}; /* rule 6: another GPU's bits */
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct uvm_space *s = small_space(GIB);
    s->procs[GPU0].apu = rows[i].apu;
    s->procs[GPU0].fast_link = rows[i].hive ? 1u << GPU1 : 0;
    struct kfd_prange r = {
        .preferred = rows[i].preferred, .actual = rows[i].actual, .access = rows[i].access, .in_place = rows[i].in_place};
    assert_int_equal(uvm__kfd_restore_location(s, &r, GPU0).location, rows[i].location);
    uvm_space_destroy(s);
  }
}

/* 2.5: best_prefetch_location. */
static void test_prefetch_location(void **state) {
  static const struct {
    uint32_t prefetch, in_place;
    bool apu, hive;
    uint32_t location;
  } rows[] = {{0, 4, false, false, 0}, {KFD_UNDEFINED, 0, false, false, KFD_UNDEFINED},
              {1, 0, true, false, 0},  {1, 0, false, false, 1},
              {1, 2, false, false, 1}, {1, 6, false, true, 1},
              {1, 4, false, false, 0}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct uvm_space *s = small_space(GIB);
    s->procs[GPU0].apu = rows[i].apu;
    s->procs[GPU1].fast_link = rows[i].hive ? 1u << GPU0 : 0;
    struct kfd_prange r = {.prefetch = rows[i].prefetch, .access = 6, .in_place = rows[i].in_place};
    assert_int_equal(uvm__kfd_prefetch_location(s, &r), rows[i].location);
    uvm_space_destroy(s);
  }
}

/* 2.10's example, line by line. */
static void test_smi_example(void **state) {
  static const struct {
    struct kfd_smi e;
    const char *line;
  } rows[] = {{{.id = KFD_PAGE_FAULT_START, .t = 10250000111222, .pages = {0x1234, 0x1234}, .to = 0xc4a1, .mark = 'W'},
               "7 10250000111222 -4217 @1234(c4a1) W\n"},
              {{.id = KFD_MIGRATE_START,
                .t = 10250000115000,
                .pages = {0x1200, 0x13ff},
                .to = 0xc4a1,
                .prefetch = KFD_UNDEFINED,
                .preferred = KFD_UNDEFINED,
                .trigger = KFD_T_GPU_FAULT},
               "5 10250000115000 -4217 @1200(200) 0->c4a1 ffffffff:ffffffff 1\n"},
              {{.id = KFD_UNMAP_FROM_GPU, .t = 10250000119000, .pages = {0x1200, 0x13ff}, .to = 0xc4a1, .trigger = KFD_U_MIGRATE},
               "b 10250000119000 -4217 @1200(200) c4a1 1\n"},
              {{.id = KFD_MIGRATE_END, .t = 10250000203000, .pages = {0x1200, 0x13ff}, .to = 0xc4a1, .trigger = KFD_T_GPU_FAULT},
               "6 10250000203000 -4217 @1200(200) 0->c4a1 1 0\n"},
              {{.id = KFD_PAGE_FAULT_END, .t = 10250000230000, .pages = {0x1234, 0x1234}, .to = 0xc4a1, .mark = 'M'},
               "8 10250000230000 -4217 @1234(c4a1) M\n"},
              {{.id = KFD_QUEUE_EVICTION, .t = 10250001000000, .to = 0xc4a1}, "9 10250001000000 -4217 c4a1 0\n"},
              {{.id = KFD_QUEUE_RESTORE, .t = 10250002100000, .to = 0xc4a1, .mark = 'R'}, "a 10250002100000 -4217 c4a1 R\n"}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct kfd_smi e = rows[i].e;
    char line[KFD_SMI_MAX];
    e.pid = 4217;
    size_t n = uvm_smi_format(&e, true, line);
    assert_int_equal(n, strlen(rows[i].line));
    assert_memory_equal(line, rows[i].line, n);
  }
}

/* No record is longer than 96 bytes, whatever it says. */
static void test_smi_longest(void **state) {
  struct kfd_smi e = {.id = KFD_MIGRATE_START,
                      .t = INT64_MAX,
                      .pid = 4194304,
                      .pages = {0x7ffffffff, 0x7ffffffff + 0x3ffff},
                      .from = 0xffff,
                      .to = 0xffff,
                      .prefetch = KFD_UNDEFINED,
                      .preferred = KFD_UNDEFINED,
                      .trigger = KFD_T_EVICTION};
  char line[KFD_SMI_MAX];
  (void)state;
  size_t n = uvm_smi_format(&e, true, line);
  assert_true(n <= KFD_SMI_MAX && line[n - 1] == '\n');
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_max_pages),        cmocka_unit_test(test_pieces),
                                     cmocka_unit_test(test_windows),          cmocka_unit_test(test_unregistered),
                                     cmocka_unit_test(test_restore_location), cmocka_unit_test(test_prefetch_location),
                                     cmocka_unit_test(test_smi_example),      cmocka_unit_test(test_smi_longest)};
  return UVM_RUN(tests);
}
