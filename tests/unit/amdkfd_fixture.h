/* What the tests of the amdkfd driver share: its world, what they do to it and what they look at. Pages are absolute, as in
 * the specification. */
#ifndef UVM_AMDKFD_FIXTURE_H
#define UVM_AMDKFD_FIXTURE_H
#include "core/amdkfd/amdkfd.h"
#include "tests/unit/driver_fixture.h"

#define GIB (1ull << 30)
#define MS 1000000ull

static char smi[8192]; /* every event's line, without its time and process */

static inline void hear(void *ctx, const char *line, size_t bytes) {
  (void)ctx;
  char id[4], rest[KFD_SMI_MAX], text[KFD_SMI_MAX + 1];
  snprintf(text, sizeof text, "%.*s", (int)bytes, line); /* a line ends where `bytes` says */
  assert_int_equal(sscanf(text, "%3s %*s -%*u %95[^\n]", id, rest), 2);
  assert_int_equal(line[bytes - 1], '\n');
  snprintf(smi + strlen(smi), sizeof smi - strlen(smi), "%s %s\n", id, rest);
}

static inline void open_world(struct world *w, uint64_t vram) {
  world_open(w, &uvm_driver_amdkfd, topology(PCIE, vram, 0), NULL, 0);
  smi[0] = 0;
}

static inline void start(struct world *w) {
  world_start(w);
  uvm_smi_listen(&w->core, hear, NULL);
}

static inline void close_world(struct world *w) {
  assert_string_equal(w->failure, "");
  world_close(w);
}

static inline struct uvm_alloc *alloc_pages(struct world *w, uint64_t first, uint64_t end) {
  return managed_in(w->core.space, first * UVM_PAGE, (end - first) * UVM_PAGE);
}

/* The world of 2.4: a range [0x1000..0x8fff] on GPUs with 8 GiB, after option=value (NULL none). */
static inline struct uvm_alloc *vector_world(struct world *w, const char *key, const char *value) {
  open_world(w, 8 * GIB);
  if (key) world_option(w, key, value);
  start(w);
  return alloc_pages(w, 0x1000, 0x9000);
}

/* A raw fault arrives; the handler is interrupted at once if it asked to be. */
static inline void ring(struct world *w, uvm_proc gpu, struct uvm_alloc *a, uint64_t offset, enum uvm_access access) {
  UVM_PUSH(&w->ring[gpu]) = (struct uvm_raw_fault){.alloc = a, .offset = offset, .access = (uint8_t)access, .time = w->now};
  if (!w->armed[gpu]) return;
  w->armed[gpu] = false;
  w->core.driver->interrupt(&w->core, gpu, w->now);
}

static inline void gpu_fault(struct world *w, uvm_proc gpu, struct uvm_alloc *a, uint64_t page) {
  ring(w, gpu, a, uvm__kfd_offset(a, page), UVM_A_WRITE);
  world_run(w);
}

static inline void cpu_touch(struct world *w, struct uvm_alloc *a, uint64_t page) {
  struct uvm_cpu_fault f = {.alloc = a, .offset = uvm__kfd_offset(a, page), .access = UVM_A_WRITE};
  w->core.driver->cpu_fault(&w->core, &f, w->now);
  world_run(w);
}

static inline void call(struct world *w, void (*op)(struct uvm_core *, const struct uvm_call *, uvm_ns), struct uvm_alloc *a,
                        uint64_t first, uint64_t last, uvm_node node, uvm_proc proc, enum uvm_advice advice) {
  struct uvm_call k = {.alloc = a,
                       .offset = uvm__kfd_offset(a, first),
                       .bytes = (last - first + 1) * UVM_PAGE,
                       .node = node,
                       .proc = proc,
                       .advice = advice};
  unsigned before = w->completed;
  op(&w->core, &k, w->now);
  world_run(w);
  assert_int_equal(w->completed, before + 1);
}

static inline void prefetch(struct world *w, struct uvm_alloc *a, uint64_t first, uint64_t last, uvm_node to) {
  call(w, w->core.driver->prefetch, a, first, last, to, GPU0, UVM_ADV_SET_READ_MOSTLY);
}

static inline void advise(struct world *w, struct uvm_alloc *a, uint64_t first, uint64_t last, enum uvm_advice advice, uvm_node node,
                          uvm_proc proc) {
  call(w, w->core.driver->advise, a, first, last, node, proc, advice);
}

static inline struct kfd_prange *range(struct world *w, struct uvm_alloc *a, uint64_t page) { return uvm__kfd_find(&w->core, a, page); }

/* The range's VRAM pages and where they are, counted in the masks and as the driver counts them. */
static inline void assert_vram(struct world *w, struct uvm_alloc *a, uint64_t page, uint32_t location, uint64_t pages) {
  const struct kfd_prange *r = range(w, a, page);
  uint64_t n = 0;
  for (struct kfd_span left = r->pages; location && left.first <= left.last;) {
    struct kfd_part p = uvm__kfd_part(w->core.space, a, left);
    uvm_mask_and(&p.pages, uvm_block_resident(w->core.space, p.block, w->core.space->procs[location].home));
    n += (uint64_t)uvm_mask_count(&p.pages);
    left.first = p.next;
  }
  assert_int_equal(n, pages);
  assert_int_equal(r->vram_pages, pages);
  assert_int_equal(r->actual, location);
}

static inline uint64_t used(const struct world *w, uvm_node n) { return w->core.space->nodes[n].capacity - w->core.space->nodes[n].free; }

static inline bool maps(struct world *w, uvm_proc p, struct uvm_alloc *a, uint64_t page) {
  const struct uvm_block *b = uvm_block_find(a, uvm__kfd_offset(a, page));
  return b && uvm_mask_test(uvm_block_mapped(w->core.space, b, p, UVM_MAP_WRITE), (int)(page % UVM_BLOCK_PAGES));
}

static inline void assert_smi(const char *lines) {
  assert_string_equal(smi, lines);
  smi[0] = 0;
}
#endif
