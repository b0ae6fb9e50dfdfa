/* What moves the amdkfd driver's pages besides one GPU's faults: eviction (specification 2.8), another GPU, prefetch and advice (2.5),
 * copies, frees; and who waits for whom. */
#include "tests/unit/amdkfd_fixture.h"

/* -- eviction (2.8) -- */

/* Room for two buffer objects of 8 MiB beside device memory: ranges of a 256 MiB GPU are 2048 pages. */
static struct uvm_alloc *crowded(struct world *w) {
  struct uvm_alloc *device;
  struct uvm_error e;
  open_world(w, 256 * MIB);
  start(w);
  assert_int_equal(uvm_space_alloc(w->core.space, "d", "d", UVM_NEVER, 240 * MIB, UVM_DEVICE, HBM0, &device, &e), 0);
  return alloc_pages(w, 0x100000, 0x101800);
}

/* Ranges at 0x100000, 0x100800, 0x101000. The first is mapped again, so the second leaves, entirely, though only a granule
 * comes. */
static void test_eviction(void **state) {
  struct world w;
  struct uvm_alloc *a = crowded(&w);
  (void)state;
  gpu_fault(&w, GPU0, a, 0x100000);
  gpu_fault(&w, GPU0, a, 0x100800);
  w.now += 3 * MS;
  gpu_fault(&w, GPU0, a, 0x100a00);
  w.now += 3 * MS;
  gpu_fault(&w, GPU0, a, 0x100200);
  assert_vram(&w, a, 0x100000, GPU0, 1024);
  assert_vram(&w, a, 0x100800, GPU0, 1024);
  smi[0] = 0;
  gpu_fault(&w, GPU0, a, 0x101000);
  assert_vram(&w, a, 0x100000, GPU0, 1024);
  assert_vram(&w, a, 0x100800, 0, 0);
  assert_vram(&w, a, 0x101000, GPU0, 512);
  assert_int_equal(used(&w, HBM0), 256 * MIB);
  assert_int_equal(world_count(&w, UVM_E_EVICT), 1);
  for (size_t i = 0; i < w.events.n; i++)
    if (w.events.v[i].e.kind == UVM_E_EVICT) assert_true(w.events.v[i].e.bytes == 8 * MIB && w.events.v[i].e.value == 4 * MIB);
  assert_true(maps(&w, CPU, a, 0x100800) && maps(&w, CPU, a, 0x100bff) && !maps(&w, GPU0, a, 0x100800));
  assert_smi("7 @101000(1) W\n5 @100800(800) 1->0 ffffffff:ffffffff 3\nb @100800(800) 1 1\nb @100800(800) 2 1\n6 @100800(800) 1->0 3 0\n"
             "5 @101000(200) 0->1 ffffffff:ffffffff 1\n6 @101000(200) 0->1 1 0\n8 @101000(1) M\n");
  close_world(&w);
}

/* Ranges that share the victim leave together; the one without pages in VRAM has none to move. */
static void test_eviction_shared(void **state) {
  struct world w;
  struct uvm_alloc *a = crowded(&w);
  (void)state;
  prefetch(&w, a, 0x100000, 0x1007ff, HBM0);
  prefetch(&w, a, 0x100000, 0x1000ff, DRAM);
  gpu_fault(&w, GPU0, a, 0x100800);
  advise(&w, a, 0x100400, 0x1007ff, UVM_ADV_SET_READ_MOSTLY, UVM_NONE, CPU);
  smi[0] = 0;
  gpu_fault(&w, GPU0, a, 0x101000);
  assert_vram(&w, a, 0x100100, 0, 0);
  assert_vram(&w, a, 0x100400, 0, 0);
  assert_int_equal(world_count(&w, UVM_E_EVICT), 1);
  assert_smi("7 @101000(1) W\n5 @100100(300) 1->0 1:ffffffff 3\nb @100100(300) 1 1\nb @100100(300) 2 1\n"
             "5 @100400(400) 1->0 1:ffffffff 3\nb @100400(400) 1 1\nb @100400(400) 2 1\n"
             "6 @100100(300) 1->0 3 0\n6 @100400(400) 1->0 3 0\n"
             "5 @101000(200) 0->1 ffffffff:ffffffff 1\n6 @101000(200) 0->1 1 0\n8 @101000(1) M\n");
  close_world(&w);
}

/* Pages that Linux refuses: three tries for a victim, then the migration has failed, which is ignored. */
static void test_eviction_refused(void **state) {
  (void)state;
  for (unsigned refusals = 2; refusals <= 3; refusals++) {
    struct world w;
    struct uvm_alloc *a = crowded(&w);
    gpu_fault(&w, GPU0, a, 0x100000);
    gpu_fault(&w, GPU0, a, 0x100800);
    w.refusals = refusals;
    gpu_fault(&w, GPU0, a, 0x101000);
    assert_vram(&w, a, 0x101000, refusals == 2 ? GPU0 : 0, refusals == 2 ? 512 : 0);
    assert_vram(&w, a, 0x100000, refusals == 2 ? 0 : GPU0, refusals == 2 ? 0 : 512);
    assert_true(maps(&w, GPU0, a, 0x101000));
    close_world(&w);
  }
}

/* A part in VRAM that Linux keeps in system memory is mapped there: partial success is success (2.5). */
static void test_partial(void **state) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, NULL, NULL);
  (void)state;
  cpu_touch(&w, a, 0x1234);
  w.refusals = 1;
  gpu_fault(&w, GPU0, a, 0x1234);
  assert_vram(&w, a, 0x1234, GPU0, 511);
  assert_int_equal(world_count(&w, UVM_E_REMOTE_MAP), 1);
  assert_smi("7 @1234(1) W\n5 @1200(200) 0->1 ffffffff:ffffffff 1\n6 @1200(200) 0->1 1 0\n8 @1234(1) M\n");
  close_world(&w);
}

/* -- two GPUs (2.5): VRAM to VRAM goes through system memory, the whole range first -- */

static void test_other_gpu(void **state) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, NULL, NULL);
  (void)state;
  gpu_fault(&w, GPU0, a, 0x1234);
  w.now += 3 * MS;
  gpu_fault(&w, GPU0, a, 0x1500);
  w.now += 3 * MS;
  smi[0] = 0;
  gpu_fault(&w, GPU1, a, 0x1234);
  assert_vram(&w, a, 0x1234, GPU1, 512);
  assert_int_equal(used(&w, HBM0), 0);
  assert_int_equal(used(&w, HBM1), 128 * MIB);
  assert_true(maps(&w, CPU, a, 0x1500) && maps(&w, GPU1, a, 0x1234) && !maps(&w, GPU0, a, 0x1234));
  assert_smi("7 @1234(2) W\n5 @1000(8000) 1->0 ffffffff:ffffffff 1\nb @1000(8000) 1 1\nb @1000(8000) 2 1\n6 @1000(8000) 1->0 1 0\n"
             "5 @1200(200) 0->2 ffffffff:ffffffff 1\n6 @1200(200) 0->2 1 0\n8 @1234(2) M\n");
  close_world(&w);
}

/* Three attempts to empty the range, then an error; what is left comes to system memory as far as it goes. */
static void test_other_gpu_refused(void **state) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, NULL, NULL);
  (void)state;
  gpu_fault(&w, GPU0, a, 0x1234);
  w.now += 3 * MS;
  smi[0] = 0;
  w.refusals = 4; /* three for the range, one for the window */
  gpu_fault(&w, GPU1, a, 0x1234);
  assert_vram(&w, a, 0x1234, GPU0, 512);
  assert_false(maps(&w, GPU1, a, 0x1234));
  assert_int_equal(w.refusals, 0);
  close_world(&w);
}

/* -- the API -- */

static void test_prefetch(void **state) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, NULL, NULL);
  (void)state;
  prefetch(&w, a, 0x1000, 0x8fff, HBM0); /* the whole range, whatever the granularity */
  assert_vram(&w, a, 0x1000, GPU0, 0x8000);
  assert_true(maps(&w, GPU0, a, 0x1000) && maps(&w, GPU0, a, 0x8fff));
  assert_smi("5 @1000(8000) 0->1 1:ffffffff 0\n6 @1000(8000) 0->1 0 0\n");
  prefetch(&w, a, 0x1000, 0x4fff, DRAM); /* splits; both parts keep the buffer object */
  assert_vram(&w, a, 0x1000, 0, 0);
  assert_vram(&w, a, 0x5000, GPU0, 0x4000);
  assert_int_equal(range(&w, a, 0x1000)->pages.last, 0x4fff);
  assert_int_equal(used(&w, HBM0), 128 * MIB);
  assert_true(maps(&w, CPU, a, 0x1000));
  prefetch(&w, a, 0x5000, 0x8fff, DRAM);
  assert_int_equal(used(&w, HBM0), 0);
  smi[0] = 0;
  size_t plans = w.plans.n;
  prefetch(&w, a, 0x1000, 0x8fff, DRAM); /* nothing to do */
  assert_smi("");
  assert_int_equal(w.plans.n, plans);
  close_world(&w);
}

/* 2.6, with XNACK on: what comes back to system memory is mapped for the GPUs with access, if it was mapped before; a GPU that
 * accesses in place is mapped wherever the pages are. A prefetch to where the pages are does nothing. */
static void test_prefetch_maps(void **state) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, NULL, NULL);
  (void)state;
  prefetch(&w, a, 0x1000, 0x2fff, HBM0);
  prefetch(&w, a, 0x1000, 0x2fff, DRAM);
  assert_true(maps(&w, GPU0, a, 0x1000) && maps(&w, GPU1, a, 0x2fff));
  advise(&w, a, 0x3000, 0x4fff, UVM_ADV_SET_ACCESSED_BY, UVM_NONE, GPU1);
  size_t plans = w.plans.n;
  prefetch(&w, a, 0x3000, 0x4fff, HBM0); /* GPU1 could not reach it there, so it stays where it is */
  prefetch(&w, a, 0x3000, 0x4fff, DRAM);
  assert_int_equal(w.plans.n, plans);
  assert_vram(&w, a, 0x3000, 0, 0);
  close_world(&w);
}

/* A split inside a block: the parts' counts are their own. */
static void test_split(void **state) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, NULL, NULL);
  (void)state;
  gpu_fault(&w, GPU0, a, 0x1234);
  advise(&w, a, 0x1000, 0x12ff, UVM_ADV_SET_READ_MOSTLY, UVM_NONE, CPU);
  assert_vram(&w, a, 0x1234, GPU0, 256);
  assert_vram(&w, a, 0x1300, GPU0, 256);
  assert_int_equal(range(&w, a, 0x1234)->flags, KFD_HOST_ACCESS | KFD_COHERENT | KFD_GPU_READ_MOSTLY);
  assert_int_equal(range(&w, a, 0x1300)->flags, KFD_HOST_ACCESS | KFD_COHERENT);
  advise(&w, a, 0x1000, 0x10ff, UVM_ADV_SET_READ_MOSTLY, UVM_NONE, CPU);
  assert_vram(&w, a, 0x1000, 0, 0);
  advise(&w, a, 0x4000, 0x8fff, UVM_ADV_SET_READ_MOSTLY, UVM_NONE, CPU);
  assert_vram(&w, a, 0x4000, 0, 0); /* it never had any */
  cpu_touch(&w, a, 0x1234);         /* the window is cut at the range's end */
  assert_vram(&w, a, 0x1234, 0, 0);
  assert_vram(&w, a, 0x1300, GPU0, 256);
  assert_int_equal(used(&w, HBM0), 128 * MIB);
  cpu_touch(&w, a, 0x1300);
  assert_int_equal(used(&w, HBM0), 0);
  close_world(&w);
}

static void test_advice(void **state) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, NULL, NULL);
  (void)state;
  advise(&w, a, 0x1000, 0x8fff, UVM_ADV_SET_ACCESSED_BY, UVM_NONE, GPU1);
  const struct kfd_prange *r = range(&w, a, 0x1000);
  assert_true(r->in_place == 1u << GPU1 && r->access == 1u << GPU0);
  gpu_fault(&w, GPU0, a, 0x1234);
  cpu_touch(&w, a, 0x1234); /* either bit gets its line when pages are unmapped */
  assert_smi("7 @1234(1) W\n5 @1200(200) 0->1 ffffffff:ffffffff 1\n6 @1200(200) 0->1 1 0\n8 @1234(1) M\n"
             "5 @1200(200) 1->0 ffffffff:ffffffff 2\nb @1200(200) 1 1\nb @1200(200) 2 1\n6 @1200(200) 1->0 2 0\n");
  w.now += 3 * MS;
  advise(&w, a, 0x1000, 0x8fff, UVM_ADV_UNSET_ACCESSED_BY, UVM_NONE, GPU1);
  assert_true(!r->in_place && r->access == (1u << GPU0 | 1u << GPU1));
  advise(&w, a, 0x1000, 0x8fff, UVM_ADV_SET_COARSE_GRAIN, UVM_NONE, CPU);
  assert_int_equal(r->flags, KFD_HOST_ACCESS);
  advise(&w, a, 0x1000, 0x8fff, UVM_ADV_UNSET_COARSE_GRAIN, UVM_NONE, CPU);
  assert_int_equal(r->flags, KFD_HOST_ACCESS | KFD_COHERENT);
  advise(&w, a, 0x1000, 0x8fff, UVM_ADV_SET_PREFERRED, DRAM, CPU);
  assert_int_equal(r->preferred, 0);
  gpu_fault(&w, GPU0, a, 0x1234);
  assert_vram(&w, a, 0x1234, 0, 0);
  advise(&w, a, 0x1000, 0x8fff, UVM_ADV_UNSET_PREFERRED, UVM_NONE, CPU);
  assert_int_equal(r->preferred, KFD_UNDEFINED);
  assert_int_equal(world_count(&w, UVM_E_ADVISE), 6);
  close_world(&w);
}

/* A memcpy's side makes pages where there are none, and moves nothing. */
static void test_copy(void **state) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, NULL, NULL);
  struct uvm_call k = {.alloc = a, .offset = uvm__kfd_offset(a, 0x13fe), .bytes = 4 * UVM_PAGE, .node = UVM_NONE};
  (void)state;
  gpu_fault(&w, GPU0, a, 0x1234);
  w.core.driver->copy(&w.core, &k, false, w.now);
  world_run(&w);
  assert_int_equal(w.completed, 1);
  assert_vram(&w, a, 0x1234, GPU0, 512);
  assert_true(!maps(&w, CPU, a, 0x13ff) && maps(&w, CPU, a, 0x1400) && maps(&w, CPU, a, 0x1401) && !maps(&w, CPU, a, 0x1402));
  close_world(&w);
}

/* While a migration holds the lock, a CPU fault on the range waits for it; one on another allocation does not. */
static void test_lock(void **state) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, NULL, NULL), *b = alloc_pages(&w, 0x20000, 0x20200);
  struct uvm_cpu_fault on_a = {.alloc = a, .offset = uvm__kfd_offset(a, 0x1234), .access = UVM_A_WRITE},
                       on_b = {.alloc = b, .access = UVM_A_WRITE};
  (void)state;
  gpu_fault(&w, GPU0, a, 0x1500);
  w.now += 3 * MS;
  uvm_ns t = w.now;
  ring(&w, GPU0, a, uvm__kfd_offset(a, 0x1234), UVM_A_WRITE);
  w.now = t + 200; /* the handler wakes at t + 100 and has the lock for two plans, to t + 2100 */
  struct queued handler = w.queue.v[--w.queue.n];
  w.core.driver->wake(&w.core, handler.task, t + 100);
  w.core.driver->cpu_fault(&w.core, &on_a, w.now);
  w.core.driver->cpu_fault(&w.core, &on_b, w.now);
  world_run(&w);
  assert_int_equal(w.resumed, 2);
  for (size_t i = 0; i < w.events.n; i++)
    if (w.events.v[i].e.kind == UVM_E_CPU_FAULT)
      assert_int_equal(w.events.v[i].e.dur, w.events.v[i].e.alloc == b->number ? 1000 : 1900 + 1000);
  assert_vram(&w, a, 0x1234, GPU0, 512);
  close_world(&w);
}

/* A first touch by the CPU under way in a block that the GPU's fault wants: 1000 ns from its begin, then move and map. */
static void test_busy_block(void **state) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, NULL, NULL);
  struct uvm_cpu_fault touch = {.alloc = a, .offset = uvm__kfd_offset(a, 0x1234), .access = UVM_A_WRITE};
  (void)state;
  ring(&w, GPU0, a, uvm__kfd_offset(a, 0x1235), UVM_A_WRITE);
  w.core.driver->cpu_fault(&w.core, &touch, 0);
  world_run(&w);
  assert_vram(&w, a, 0x1234, GPU0, 512);
  for (size_t i = 0; i < w.events.n; i++)
    if (w.events.v[i].e.kind == UVM_E_GPU_BATCH) assert_true(w.events.v[i].e.t == 100 && w.events.v[i].e.dur == 900 + 1000 + 1000);
  close_world(&w);
}

/* -- a policy that places -- */

static const struct uvm_place *answer;
static void place(void *s, const uvm_view *v, const struct uvm_fault *f, const struct uvm_thrash *h, struct uvm_place *out) {
  (void)s, (void)v, (void)f, (void)h;
  *out = *answer;
}
static const struct uvm_policy placer = {.abi = UVM_POLICY_ABI, .name = "placer", .place = place};

static void test_placing(void **state) {
  static const struct uvm_place here = {UVM_MIGRATE, HBM0, 0}, there = {UVM_MIGRATE, DRAM, 0}, stay = {UVM_REMOTE, UVM_NONE, 0};
  const struct uvm_policy *parts[] = {&placer};
  struct world w;
  (void)state;
  world_open(&w, &uvm_driver_amdkfd, topology(PCIE, 256 * MIB, 0), parts, 1);
  start(&w);
  smi[0] = 0;
  struct uvm_alloc *a = alloc_pages(&w, 0x100000, 0x101000);
  answer = &there;
  gpu_fault(&w, GPU0, a, 0x100000);
  assert_smi("7 @100000(1) W\n8 @100000(1) U\n");
  answer = &here;
  gpu_fault(&w, GPU0, a, 0x100800);
  w.now += 3 * MS;
  gpu_fault(&w, GPU0, a, 0x100000);
  assert_vram(&w, a, 0x100000, GPU0, 512);
  assert_true(w.core.space->lists[HBM0][UVM_L_USED].oldest == uvm_page_backing(uvm_block_find(a, 0x800 * UVM_PAGE), HBM0, 0));
  answer = &stay; /* where it is: in VRAM, and its object is used once more */
  gpu_fault(&w, GPU0, a, 0x100800);
  assert_true(w.core.space->lists[HBM0][UVM_L_USED].oldest == uvm_page_backing(uvm_block_find(a, 0), HBM0, 0));
  close_world(&w);
}

static void test_placing_duplicates(void **state) {
  static const struct uvm_place copy = {UVM_DUPLICATE, HBM0, 0};
  const struct uvm_policy *parts[] = {&placer};
  struct world w;
  (void)state;
  world_open(&w, &uvm_driver_amdkfd, topology(PCIE, 256 * MIB, 0), parts, 1);
  start(&w);
  struct uvm_alloc *a = alloc_pages(&w, 0x100000, 0x101000);
  answer = &copy;
  gpu_fault(&w, GPU0, a, 0x100000);
  assert_non_null(strstr(w.failure, "duplicated"));
  w.failure[0] = 0;
  close_world(&w);
}

/* Freed memory is unmapped: trigger 2 (2.7). */
static void test_freeing(void **state) {
  struct world w;
  struct uvm_alloc *a = vector_world(&w, NULL, NULL);
  (void)state;
  gpu_fault(&w, GPU0, a, 0x1234);
  smi[0] = 0;
  w.core.driver->freeing(&w.core, a, w.now);
  uvm_space_free(w.core.space, a);
  assert_smi("b @1000(8000) 1 2\nb @1000(8000) 2 2\n");
  assert_int_equal(used(&w, HBM0), 0);
  close_world(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_eviction),
                                     cmocka_unit_test(test_eviction_shared),
                                     cmocka_unit_test(test_eviction_refused),
                                     cmocka_unit_test(test_partial),
                                     cmocka_unit_test(test_other_gpu),
                                     cmocka_unit_test(test_other_gpu_refused),
                                     cmocka_unit_test(test_prefetch),
                                     cmocka_unit_test(test_prefetch_maps),
                                     cmocka_unit_test(test_split),
                                     cmocka_unit_test(test_advice),
                                     cmocka_unit_test(test_copy),
                                     cmocka_unit_test(test_lock),
                                     cmocka_unit_test(test_busy_block),
                                     cmocka_unit_test(test_placing),
                                     cmocka_unit_test(test_placing_duplicates),
                                     cmocka_unit_test(test_freeing)};
  return UVM_RUN(tests);
}
