/* Events to rows of the event file and back. Expected values: the description of the file's columns. */
#include "report/rows.h"
#include "tests/unit/files.h"
#include "tests/unit/report.h"

static struct uvm_rows rows;

static int setup(void **state) {
  (void)state;
  struct uvm_places p = test_places();
  uvm_rows_init(&rows, &p);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  uvm_rows_free(&rows);
  return 0;
}

static const struct uvm_row *feed(struct uvm_event e) {
  uvm_rows_event(&rows, &e);
  return rows.rows.n ? &rows.rows.v[rows.rows.n - 1] : NULL;
}

static void test_copies(void **state) {
  (void)state;
  struct uvm_event e = {.kind = UVM_E_TRANSFER,
                        .src = DRAM,
                        .dst = HBM1,
                        .bytes = 61440,
                        .cause = UVM_C_PREFETCH,
                        .offset = 4096,
                        .has_alloc = true,
                        .alloc = 7,
                        .t = 5,
                        .dur = 3};
  const struct uvm_row *r = feed(e);
  assert_int_equal(r->kind, UVM_ROW_H2D);
  assert_true(r->t == 5 && r->dur == 3 && r->alloc == 7 && r->offset == 4096 && r->value == 61440 && r->flags == 3);
  assert_true(r->src == 1 && r->dst == 1); /* the GPU in both columns */
  e.src = HBM1, e.dst = DRAM;
  r = feed(e);
  assert_true(r->kind == UVM_ROW_D2H && r->src == 1 && r->dst == 1);
  e.dst = HBM0;
  r = feed(e);
  assert_true(r->kind == UVM_ROW_D2D && r->src == 1 && r->dst == 0);
}

static void test_faults(void **state) {
  (void)state;
  const struct uvm_row *r =
      feed((struct uvm_event){.kind = UVM_E_GPU_BATCH, .proc = GPU1, .access = UVM_A_WRITE, .offset = 8192, .value = 13, .dur = 9});
  assert_true(r->kind == UVM_ROW_GPU_FAULT && r->flags == 2 && r->value == 13 && r->src == 1 && r->dur == 9 && r->alloc == -1);
  r = feed((struct uvm_event){.kind = UVM_E_CPU_FAULT, .access = UVM_A_READ, .offset = 8192});
  assert_true(r->kind == UVM_ROW_CPU_FAULT && r->flags == 1 && r->value == 1 && r->src == UVM_ROW_CPU);
  r = feed((struct uvm_event){.kind = UVM_E_GPU_FAULT, .proc = GPU0, .access = UVM_A_READ, .value = 2});
  assert_true(r->kind == UVM_ROW_FAULT && r->value == 2);
}

static void test_thrashing_control(void **state) {
  (void)state;
  const struct uvm_row *r = feed((struct uvm_event){.kind = UVM_E_THROTTLE, .proc = CPU, .dur = 500000});
  assert_true(r->kind == UVM_ROW_THROTTLE && r->src == UVM_ROW_CPU && r->dur == 500000);
  static const struct {
    enum uvm_cause cause;
    uint64_t flags;
  } causes[] = {{UVM_C_FAULT, 1}, {UVM_C_THRASHING, 2}, {UVM_C_POLICY, 3}, {UVM_C_EVICTION, 5}};
  for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
    r = feed((struct uvm_event){.kind = UVM_E_REMOTE_MAP, .proc = GPU0, .src = DRAM, .cause = causes[i].cause});
    assert_true(r->kind == UVM_ROW_REMOTE_MAP && r->flags == causes[i].flags && r->src == 0 && r->dst == UVM_ROW_CPU);
  }
}

/* A mask of two runs is two rows, each with its offset in the allocation. */
static void test_masks_become_runs(void **state) {
  (void)state;
  struct uvm_alloc a = {.base = 2 << 20, .bytes = 4 << 20};
  struct uvm_range range = {.alloc = &a};
  struct uvm_block *b = test_calloc(1, sizeof *b);
  b->first = 0, b->pages = 512, b->range = &range;
  b->info = (struct uvm_block_info){.offset = 2 << 20, .first = 0, .pages = 512};
  uvm_mask pages = uvm_mask_range(1, 3);
  uvm_mask_set(&pages, 5, 6);
  feed((struct uvm_event){.kind = UVM_E_MAP, .proc = GPU0, .access = UVM_A_WRITE, .mask = &pages, .block = b});
  assert_int_equal(rows.rows.n, 2);
  assert_true(rows.rows.v[0].offset == (2 << 20) + 4096 && rows.rows.v[0].value == 8192 && rows.rows.v[0].flags == 2);
  assert_true(rows.rows.v[1].offset == (2 << 20) + 5 * 4096 && rows.rows.v[1].value == 4096);
  test_free(b);
}

/* Sections are told at their end but stand at their begin, before what else began then. */
static void test_order(void **state) {
  (void)state;
  feed((struct uvm_event){.kind = UVM_E_SECTION_BEGIN, .name = "outer", .t = 10});
  feed((struct uvm_event){.kind = UVM_E_SECTION_BEGIN, .name = "inner", .value = 4, .t = 10});
  feed((struct uvm_event){.kind = UVM_E_CPU_FAULT, .t = 10});
  feed((struct uvm_event){.kind = UVM_E_CPU_FAULT, .offset = 4096, .t = 30});
  feed((struct uvm_event){.kind = UVM_E_GPU_BATCH, .proc = GPU0, .t = 20});
  feed((struct uvm_event){.kind = UVM_E_SECTION, .name = "inner", .value = 4, .t = 10, .dur = 21});
  feed((struct uvm_event){.kind = UVM_E_SECTION, .name = "outer", .t = 10, .dur = 30});
  uvm_rows_sort(&rows);
  static const struct {
    int64_t t;
    uint8_t kind;
  } want[] = {{10, UVM_ROW_SECTION}, {10, UVM_ROW_SECTION}, {10, UVM_ROW_CPU_FAULT}, {20, UVM_ROW_GPU_FAULT}, {30, UVM_ROW_CPU_FAULT}};
  assert_int_equal(rows.rows.n, 5);
  for (size_t i = 0; i < 5; i++) assert_true(rows.rows.v[i].t == want[i].t && rows.rows.v[i].kind == want[i].kind);
  assert_true(!strcmp(rows.rows.v[0].name, "outer") && rows.rows.v[0].dur == 30);
  assert_true(!strcmp(rows.rows.v[1].name, "inner") && rows.rows.v[1].dur == 21 && rows.rows.v[1].value == 4);
}

static void test_file(void **state) {
  (void)state;
  char path[64];
  temporary(path, ".csv");
  feed((struct uvm_event){.kind = UVM_E_SECTION_BEGIN, .name = "walk", .value = 2, .t = 1});
  feed((struct uvm_event){
      .kind = UVM_E_TRANSFER, .src = DRAM, .dst = HBM0, .bytes = 4096, .cause = UVM_C_FAULT, .has_alloc = true, .t = 9, .dur = 2});
  feed((struct uvm_event){.kind = UVM_E_SECTION, .name = "walk", .value = 2, .t = 1, .dur = 20});
  struct uvm_error e;
  assert_int_equal(uvm_rows_write(&rows, path, &e), 0);
  struct blob text = slurp(path);
  assert_string_equal(text.v, "t_ns,dur_ns,kind,alloc,offset,value,flags,src,dst\n1,20,section,-1,0,2,walk,,\n9,2,h2d,0,0,4096,0x2,0,0\n");
  free(text.v);
  struct uvm_rows back;
  uvm_rows_init(&back, NULL);
  assert_int_equal(uvm_rows_read(&back, path, &e), 0);
  assert_int_equal(back.rows.n, 2);
  assert_string_equal(back.rows.v[0].name, "walk");
  assert_true(back.rows.v[1].kind == UVM_ROW_H2D && back.rows.v[1].value == 4096 && back.rows.v[1].dst == 0);
  uvm_rows_free(&back);
  unlink(path);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {T(test_copies), T(test_faults), T(test_thrashing_control), T(test_masks_become_runs),
                                     T(test_order),  T(test_file)};
  return UVM_RUN(tests);
}
