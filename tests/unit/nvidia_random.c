/* Everything at once, at random, with little memory: faults of two GPUs and of CPU threads, prefetches, advice, copies,
 * notifications, hints of every kind, blocks of all sizes. Whatever the order: no plan is refused, the invariants hold (the
 * checks of a debug build and uvm_block_check), every call completes, every thread goes on and every GPU access that waits is
 * served in the end; and what came to a GPU less what left it is what is there. */
#include "tests/unit/nvidia_fixture.h"

#define WANTS 96 /* accesses a GPU has outstanding */
struct want {
  struct uvm_alloc *a;
  uint64_t page;
  enum uvm_access access;
  bool waits;
  uint64_t entry;
}; /* entry: of the ring */
static struct want wants[PROCS][WANTS];
static struct uvm_alloc *allocs[6];
static uint64_t dice;
static uint64_t roll(uint64_t n) { return uvm_random(&dice) % n; }
static struct uvm_alloc *any_alloc(void) { return allocs[roll(sizeof allocs / sizeof *allocs)]; }
static uint64_t pages_of(const struct uvm_alloc *a) { return (a->bytes + UVM_PAGE - 1) / UVM_PAGE; }

static bool served(uvm_proc g, const struct want *w) {
  const struct uvm_block *b = block_of(w->a, w->page);
  return b && uvm_mask_test(uvm_block_mapped(world->core.space, b, g, uvm_level_of(w->access)), uvm_page_of(w->a, w->page * UVM_PAGE));
}

/* The ring is in order of arrival. */
static void arrive(uvm_proc g, struct want *w, uint16_t utlb, uvm_ns at) {
  uvm_ns last = world->ring[g].n ? world->ring[g].v[world->ring[g].n - 1].time : 0;
  w->entry = world->ring[g].n;
  raw(g, w->a, w->page, w->access, utlb, last > at ? last : at);
}

/* A stalled access that still misses faults again after a replay; one whose fault is still in the ring does not add to it. */
static void try_again(uvm_proc g) {
  for (int i = 0; i < WANTS; i++) {
    struct want *w = &wants[g][i];
    if (!w->waits || !(w->waits = !served(g, w)) || w->entry >= world->get[g]) continue;
    arrive(g, w, (uint16_t)(i / 8), world->now + roll(3 * US));
  }
}

static void gpu_access(void) {
  uvm_proc g = (uvm_proc)(1 + roll(2));
  struct want *w = &wants[g][roll(WANTS)];
  if (w->waits) return;
  w->a = any_alloc();
  w->page = roll(pages_of(w->a));
  w->access = (enum uvm_access)(UVM_A_READ + roll(3));
  if ((w->waits = !served(g, w))) arrive(g, w, 0, world->now);
}

/* Throttles also end what would go on for ever: two GPUs that take one page from each other in step. */
static void random_hint(const struct uvm_fault *f, struct uvm_thrash *out) {
  *out = (struct uvm_thrash){0};
  if (roll(12) == 0) *out = (struct uvm_thrash){.hint = UVM_HINT_THROTTLE, .until = world->now + 1 + roll(100 * US)};
  if (roll(12) == 0) *out = (struct uvm_thrash){UVM_HINT_PIN, DRAM, 1u << f->proc | 1u << roll(PROCS), world->now + 1 + roll(200 * US)};
}

static unsigned calls, threads;
static struct uvm_call random_call(void) {
  struct uvm_alloc *a = any_alloc();
  uint64_t first = roll(pages_of(a)), pages = 1 + roll(pages_of(a) - first);
  uvm_proc p = (uvm_proc)roll(PROCS);
  struct uvm_call call = {
      .alloc = a, .offset = first * UVM_PAGE, .bytes = pages * UVM_PAGE, .node = p, .proc = p, .advice = (enum uvm_advice)roll(8)};
  if (call.bytes > a->bytes - call.offset) call.bytes = a->bytes - call.offset;
  return call;
}

static void something(void) {
  struct uvm_call call = random_call();
  struct uvm_core *c = &world->core;
  for (int i = 0; i < UVM_BLOCK_PAGES / 64; i++) script.more.w[i] = 0;
  switch (roll(40)) {
  case 0: calls++, uvm_driver_nvidia.prefetch(c, &call, world->now); break;
  case 1: calls++, uvm_driver_nvidia.advise(c, &call, world->now); break;
  case 2: calls++, uvm_driver_nvidia.copy(c, &call, roll(2), world->now); break;
  case 3:
    UVM_PUSH(&world->notes) = (struct uvm_counter_note){call.alloc, call.offset, (uint32_t)uvm_random(&dice), 256 + roll(2)};
    uvm_driver_nvidia.counters(c, (uvm_proc)(1 + roll(2)), world->now);
    break;
  case 4:
  case 5:
  case 6:
  case 7:
  case 8:
  case 9: cpu_fault(call.alloc, call.offset / UVM_PAGE, roll(2) ? UVM_A_READ : UVM_A_WRITE, threads++); break;
  default: gpu_access(); break;
  }
}

/* 256 KiB around the first faulted page, as far as the block goes. */
static void random_prefetch(void *s, const uvm_view *v, uvm_block_id b, uvm_node dst, const uvm_mask *faulted, uvm_mask *more) {
  (void)s, (void)dst;
  const struct uvm_block_info *i = uvm_block(v, b);
  int from = uvm_mask_next(faulted, 0) & ~63, to = from + 64;
  if (from < i->first) from = i->first;
  if (to > i->first + i->pages) to = i->first + i->pages;
  *more = (uvm_mask){{0}};
  if (roll(3)) uvm_mask_set(more, from, to);
}

static uint64_t moved(uvm_node from, uvm_node to) {
  uint64_t n = 0;
  for (size_t i = 0; i < world->events.n; i++) {
    const struct uvm_event *e = &world->events.v[i].e;
    bool comes = e->kind == UVM_E_POPULATE || e->kind == UVM_E_TRANSFER, dropped = e->kind == UVM_E_COLLAPSE;
    if (to != UVM_NONE && comes && e->dst == to) n += e->bytes;
    if (from != UVM_NONE && (dropped || e->kind == UVM_E_TRANSFER) && e->src == from) n += e->bytes;
  }
  for (size_t i = 0; from != UVM_NONE && i < world->events.n; i++) /* a copy does not leave its source */
    if (world->events.v[i].e.kind == UVM_E_DUPLICATE && world->events.v[i].e.src == from) n -= world->events.v[i].e.bytes;
  return n;
}

static void check_the_end(void) {
  struct uvm_error e;
  assert_string_equal(world->failure, "");
  assert_int_equal(world->completed, calls);
  assert_int_equal(world->resumed, threads);
  for (uvm_proc g = 1; g < PROCS; g++)
    for (int i = 0; i < WANTS; i++) assert_false(wants[g][i].waits);
  for (uvm_node n = HBM0; n < NODES; n++) {
    uint64_t here = 0;
    for (size_t i = 0; i < sizeof allocs / sizeof *allocs; i++) here += resident_pages(allocs[i], n) * UVM_PAGE;
    assert_int_equal(moved(UVM_NONE, n) - moved(n, UVM_NONE), here);
    assert_true(world->core.space->peak[n] <= world->core.space->nodes[n].capacity);
  }
  const struct uvm_space *s = world->core.space;
  for (size_t i = 1; i < s->blocks.n; i++) {
    if (!s->blocks.v[i]) continue;
    assert_int_equal(s->blocks.v[i]->busy_until, 0);
    if (uvm_block_check(s, s->blocks.v[i], &e)) fail_msg("%s", e.text);
  }
}

static void any_order(enum link l, uint64_t seed) {
  static const uint64_t bytes[] = {5 * MIB + 12345, 2 * MIB, MIB, 300000, 4096, 8 * MIB};
  struct nv_options *o = begin(l, (seed % 3 + 1) * 4 * MIB, WITH_THRASH | WITH_PREFETCH);
  memset(wants, 0, sizeof wants);
  dice = seed, calls = threads = 0;
  o->access_counters = true;
  o->fault_replay_policy = (uint32_t)roll(4);
  script.thrash = random_hint;
  script.policy.prefetch = random_prefetch;
  world->on_replay = try_again;
  for (size_t i = 0; i < sizeof allocs / sizeof *allocs; i++) allocs[i] = managed_at(64 * MIB * (i + 1) + roll(300) * UVM_PAGE, bytes[i]);
  for (int i = 0; i < 4000; i++) {
    something();
    for (uint64_t k = roll(4); k > 0; k--) next_event();
  }
  settle();
  check_the_end();
  end();
}

static void over_pcie(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 8; seed++) any_order(PCIE, seed);
  any_order(PCIE, 88); /* advice splits a block without pages in a chunk that is being evicted */
}
static void over_a_coherent_link(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 8; seed++) any_order(COHERENT, seed);
}
static void over_nvlink(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 8; seed++) any_order(NVLINK, seed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(over_pcie), cmocka_unit_test(over_a_coherent_link), cmocka_unit_test(over_nvlink)};
  return UVM_RUN(tests);
}
