/* Where a page goes: driver specification 1.3, one row a case. Each row sets the scene (advice, where the page is), lets one
 * processor ask, and names the node and the rule. */
#include "tests/unit/nvidia_fixture.h"

#define NOBODY UVM_NONE
struct row {
  const char *name;
  enum link link;
  uvm_node at;        /* where the page is; NOBODY: untouched */
  uvm_proc preferred; /* advice; NOBODY: none */
  uint32_t accessed_by;
  bool read_mostly, force_sysmem, map_atomics, counter;
  uint8_t hint;
  uvm_node pin;
  uvm_proc who;
  enum uvm_access access;
  uvm_node node;
  bool duplicate;
  enum nv_why why;
};
#define R UVM_A_READ
#define W UVM_A_WRITE
#define A UVM_A_ATOMIC

static const struct row rows[] = {
    {"1: forced into system memory", PCIE, NOBODY, NOBODY, .force_sysmem = true, .who = GPU0, .access = W, .node = DRAM,
     .why = NV_WHY_SYSMEM},
    {"1 before 2: no duplication either", PCIE, DRAM, NOBODY, .force_sysmem = true, .read_mostly = true, .who = GPU0, .access = R,
     .node = DRAM, .why = NV_WHY_SYSMEM},
    {"2: a read copies", PCIE, DRAM, NOBODY, .read_mostly = true, .who = GPU0, .access = R, .node = HBM0, .duplicate = true,
     .why = NV_WHY_DUPLICATION},
    {"2: a write moves", PCIE, DRAM, NOBODY, .read_mostly = true, .who = GPU0, .access = W, .node = HBM0, .why = NV_WHY_DUPLICATION},
    {"2 before 3: preferred elsewhere", PCIE, DRAM, CPU, .read_mostly = true, .who = GPU0, .access = R, .node = HBM0, .duplicate = true,
     .why = NV_WHY_DUPLICATION},
    {"2 before 5: duplication set beats a pin", PCIE, DRAM, NOBODY, .read_mostly = true, .hint = UVM_HINT_PIN, .pin = DRAM, .who = GPU0,
     .access = R, .node = HBM0, .duplicate = true, .why = NV_WHY_DUPLICATION},
    {"2: counters duplicate, they count as prefetch", PCIE, DRAM, NOBODY, .read_mostly = true, .counter = true, .who = GPU0,
     .access = UVM_A_PREFETCH, .node = HBM0, .duplicate = true, .why = NV_WHY_DUPLICATION},
    {"3: the preferred location asks", PCIE, DRAM, GPU0, .who = GPU0, .access = R, .node = HBM0, .why = NV_WHY_AT_PREFERRED},
    {"3 before 5: even when pinned elsewhere", PCIE, DRAM, GPU0, .hint = UVM_HINT_PIN, .pin = DRAM, .who = GPU0, .access = R, .node = HBM0,
     .why = NV_WHY_AT_PREFERRED},
    {"5: pinned", PCIE, DRAM, NOBODY, .hint = UVM_HINT_PIN, .pin = DRAM, .who = GPU0, .access = W, .node = DRAM, .why = NV_WHY_PINNED},
    {"5 before 7: pinned beats accessed-by", PCIE, DRAM, NOBODY, .accessed_by = 1 << GPU0, .hint = UVM_HINT_PIN, .pin = HBM0, .who = GPU0,
     .access = W, .node = HBM0, .why = NV_WHY_PINNED},
    {"6: first touch", PCIE, NOBODY, NOBODY, .who = GPU0, .access = W, .node = HBM0, .why = NV_WHY_FIRST_TOUCH},
    {"6: first touch by the CPU", PCIE, NOBODY, NOBODY, .who = CPU, .access = R, .node = DRAM, .why = NV_WHY_FIRST_TOUCH},
    {"6: first touch, preferred in reach", PCIE, NOBODY, CPU, .who = GPU0, .access = W, .node = DRAM, .why = NV_WHY_FIRST_TOUCH},
    {"6: first touch, preferred out of reach", PCIE, NOBODY, GPU0, .who = CPU, .access = W, .node = DRAM, .why = NV_WHY_FIRST_TOUCH},
    {"7: accessed-by leaves it", PCIE, DRAM, NOBODY, .accessed_by = 1 << GPU0, .who = GPU0, .access = W, .node = DRAM,
     .why = NV_WHY_ACCESSED_BY},
    {"7: not what it cannot reach", PCIE, HBM0, NOBODY, .accessed_by = 1 << CPU, .who = CPU, .access = R, .node = DRAM,
     .why = NV_WHY_REQUESTER},
    {"7: not for counters", PCIE, DRAM, NOBODY, .accessed_by = 1 << GPU0, .counter = true, .who = GPU0, .access = UVM_A_PREFETCH,
     .node = HBM0, .why = NV_WHY_REQUESTER},
    {"7: somebody else's advice", PCIE, DRAM, NOBODY, .accessed_by = 1 << GPU1, .who = GPU0, .access = R, .node = HBM0,
     .why = NV_WHY_REQUESTER},
    {"8: native atomics between GPUs", NVLINK, HBM1, NOBODY, .map_atomics = true, .who = GPU0, .access = A, .node = HBM1,
     .why = NV_WHY_ATOMICS},
    {"8: off by default", NVLINK, HBM1, NOBODY, .who = GPU0, .access = A, .node = HBM0, .why = NV_WHY_REQUESTER},
    {"8: only atomics", NVLINK, HBM1, NOBODY, .map_atomics = true, .who = GPU0, .access = W, .node = HBM0, .why = NV_WHY_REQUESTER},
    {"8: only on a GPU's memory", COHERENT, DRAM, NOBODY, .map_atomics = true, .who = GPU0, .access = A, .node = HBM0,
     .why = NV_WHY_REQUESTER},
    {"9: to the preferred location", PCIE, DRAM, CPU, .who = GPU0, .access = W, .node = DRAM, .why = NV_WHY_TO_PREFERRED},
    {"9: to a preferred peer", NVLINK, DRAM, GPU1, .who = GPU0, .access = W, .node = HBM1, .why = NV_WHY_TO_PREFERRED},
    {"9: out of reach, so to who asks", PCIE, HBM0, GPU0, .who = CPU, .access = R, .node = DRAM, .why = NV_WHY_REQUESTER},
    {"11: to who asks", PCIE, DRAM, NOBODY, .who = GPU0, .access = R, .node = HBM0, .why = NV_WHY_REQUESTER},
    {"11: the CPU on a coherent link too", COHERENT, HBM0, NOBODY, .who = CPU, .access = R, .node = DRAM, .why = NV_WHY_REQUESTER},
};

static void run_row(const struct row *r) {
  struct nv_options *o = begin(r->link, 64 * MIB, 0);
  struct uvm_alloc *a = managed(2 * MIB);
  if (r->at != NOBODY) touch(r->at, a, 5, W); /* nodes are numbered as their processors */
  struct uvm_range *range = a->ranges.v[0];
  range->info.preferred = r->preferred;
  range->info.accessed_by = r->accessed_by;
  range->info.read_mostly = r->read_mostly;
  o->fault_force_sysmem = r->force_sysmem;
  o->map_remote_on_native_atomics_fault = r->map_atomics;
  struct uvm_block *b = uvm_block_get(world->core.space, a, 0);
  struct uvm_fault f = {.block = b->id,
                        .page = 5,
                        .merged = 1,
                        .proc = r->who,
                        .access = (uint8_t)r->access,
                        .access_mask = (uint8_t)(1u << r->access),
                        .counter = r->counter};
  struct uvm_thrash hint = {.hint = r->hint, .node = r->pin};
  struct nv_place p = uvm__nv_residency(&world->core, b, &f, &hint);
  if (p.node != r->node || p.duplicate != r->duplicate || p.why != r->why)
    fail_msg("%s: node %u duplicate %d why %u, expected %u %d %u", r->name, p.node, p.duplicate, p.why, r->node, r->duplicate, r->why);
  end();
}

static void every_rule(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) run_row(&rows[i]);
}

/* Rule 4: HMM memory always comes back to the CPU. */
static void pageable_memory_comes_to_the_cpu(void **state) {
  (void)state;
  begin(COHERENT, 64 * MIB, 0);
  struct uvm_alloc *a = managed(2 * MIB);
  gpu_touch(GPU0, a, 0, W);
  a->ranges.v[0]->info.system = 1;
  struct uvm_fault f = {.block = block_of(a, 0)->id, .proc = CPU, .access = R, .access_mask = 1 << R};
  struct uvm_thrash pin = {.hint = UVM_HINT_PIN, .node = HBM0};
  struct nv_place p = uvm__nv_residency(&world->core, block_of(a, 0), &f, &pin);
  assert_int_equal(p.node, DRAM);
  assert_int_equal(p.why, NV_WHY_CPU_PAGEABLE);
  end();
}

/* Rule 2, second half: pages that have copies go on being copied, unless that is disabled or the page is pinned. */
static void pages_with_copies_are_copied(void **state) {
  (void)state;
  begin(PCIE, 64 * MIB, WITH_PLACE);
  struct uvm_alloc *a = managed(2 * MIB);
  script.place = (struct uvm_place){UVM_MIGRATE, DRAM, 0};
  cpu_touch(a, 0, W);
  script.place = (struct uvm_place){UVM_DUPLICATE, HBM0, 0};
  gpu_touch(GPU0, a, 0, R);
  assert_int_equal(nodes_of(a, 0), 1 << DRAM | 1 << HBM0);
  struct uvm_block *b = block_of(a, 0);
  assert_true(uvm__nv_can_duplicate(&world->core, b, 0, UVM_HINT_NONE));
  assert_false(uvm__nv_can_duplicate(&world->core, b, 0, UVM_HINT_PIN));
  assert_false(uvm__nv_can_duplicate(&world->core, b, 1, UVM_HINT_NONE));
  b->range->no_duplication = true;
  assert_false(uvm__nv_can_duplicate(&world->core, b, 0, UVM_HINT_NONE));
  end();
}

/* Section 0: P itself, fast links (GPUs before the CPU), what is in reach (GPUs before the CPU), the first by number. */
static void closest_copy(void **state) {
  (void)state;
  static const struct {
    enum link link;
    uvm_proc p;
    uint32_t nodes;
    uvm_node n;
  } cases[] = {
      {PCIE, GPU0, 1 << DRAM | 1 << HBM0, HBM0},    {NVLINK, GPU0, 1 << DRAM | 1 << HBM1, HBM1}, /* a fast peer before the CPU over PCIe */
      {PCIE, GPU0, 1 << DRAM | 1 << HBM1, DRAM},                                                 /* the peer is out of reach */
      {COHERENT, CPU, 1 << HBM0 | 1 << HBM1, HBM0}, {PCIE, CPU, 1 << HBM0 | 1 << HBM1, HBM0},    /* none in reach: the first */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    begin(cases[i].link, 64 * MIB, 0);
    assert_int_equal(uvm__nv_closest(world->core.space, cases[i].p, cases[i].nodes), cases[i].n);
    end();
  }
}

/* A placing policy answers instead of the rules, and its reasons are named from its table. */
static void a_placing_policy_decides(void **state) {
  (void)state;
  static const char *const why[] = {"because", "remotely", NULL};
  begin(PCIE, 64 * MIB, WITH_PLACE);
  script.policy.why = why;
  struct uvm_alloc *a = managed(2 * MIB);
  script.place = (struct uvm_place){UVM_MIGRATE, DRAM, 0};
  cpu_touch(a, 0, W);
  script.place = (struct uvm_place){UVM_REMOTE, UVM_NONE, 1};
  gpu_touch(GPU0, a, 0, W);
  assert_int_equal(nodes_of(a, 0), 1 << DRAM);
  assert_string_equal(event(UVM_E_GPU_FAULT, 0)->rule, "remotely");
  assert_mapped(a, 0, "aw-");
  script.place = (struct uvm_place){UVM_MIGRATE, HBM0, 0};
  gpu_touch(GPU0, a, 0, A);
  assert_int_equal(nodes_of(a, 0), 1 << HBM0);
  end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_rule),
      cmocka_unit_test(pageable_memory_comes_to_the_cpu),
      cmocka_unit_test(closest_copy),
      cmocka_unit_test(pages_with_copies_are_copied),
      cmocka_unit_test(a_placing_policy_decides),
  };
  return UVM_RUN(tests);
}
