/* A small machine for the tests of the core and of drivers: a CPU whose memory is unlimited and two GPUs; and short ways to make
 * allocations, plans and committed steps. */
#ifndef UVM_FIXTURE_H
#define UVM_FIXTURE_H
#include "tests/unit/unit.h"
#include "core/plan.h"

#define MIB (1ull << 20)
enum { CPU, GPU0, GPU1, PROCS };
enum { DRAM, HBM0, HBM1, NODES }; /* numbered as the processors whose homes they are */
/* Between CPU and GPUs PCIe, unless coherent. The GPUs reach each other's memory only over NVLink. */
enum link { PCIE, COHERENT, NVLINK };

static inline const struct uvm_topology *topology(enum link l, uint64_t gpu_bytes, uint32_t version) {
  static struct uvm_proc_info procs[PROCS];
  static struct uvm_node_info nodes[NODES];
  static struct uvm_topology t;
  uint32_t cpu = 1 << DRAM, g0 = 1 << HBM0, g1 = 1 << HBM1;
  procs[CPU] = (struct uvm_proc_info){.name = "cpu", .home = DRAM, .reach = cpu, .native_atomics = cpu};
  procs[GPU0] = (struct uvm_proc_info){.name = "gpu0", .home = HBM0, .reach = cpu | g0, .native_atomics = g0};
  procs[GPU1] = (struct uvm_proc_info){.name = "gpu1", .home = HBM1, .reach = cpu | g1, .native_atomics = g1};
  if (l == COHERENT) {
    for (int p = 0; p < PROCS; p++)
      procs[p].reach = cpu | (p == GPU1 ? g1 : g0) | (p == CPU ? g1 : 0), procs[p].native_atomics = procs[p].reach;
    procs[CPU].fast_link = 1 << GPU0 | 1 << GPU1;
    procs[GPU0].fast_link = procs[GPU1].fast_link = 1 << CPU;
  }
  if (l == NVLINK) {
    procs[GPU0].reach |= g1, procs[GPU0].native_atomics |= g1, procs[GPU0].fast_link = 1 << GPU1;
    procs[GPU1].reach |= g0, procs[GPU1].native_atomics |= g0, procs[GPU1].fast_link = 1 << GPU0;
  }
  nodes[DRAM] = (struct uvm_node_info){.name = "dram"};
  nodes[HBM0] = (struct uvm_node_info){.name = "hbm0", .capacity = gpu_bytes};
  nodes[HBM1] = (struct uvm_node_info){.name = "hbm1", .capacity = gpu_bytes};
  t = (struct uvm_topology){
      .nprocs = PROCS, .nnodes = NODES, .procs = procs, .nodes = nodes, .machine = "small", .driver = "nvidia", .driver_version = version};
  return &t;
}
static inline struct uvm_space *small_space(uint64_t gpu_bytes) { return uvm_space_create(topology(PCIE, gpu_bytes, 580)); }

static inline struct uvm_alloc *managed_in(struct uvm_space *s, uint64_t base, uint64_t bytes) {
  struct uvm_alloc *a;
  struct uvm_error e;
  if (uvm_space_alloc(s, "a", "label", base, bytes, UVM_MANAGED, UVM_NONE, &a, &e)) fail_msg("%s", e.text);
  return a;
}

/* A 2 MiB backing for the whole block. */
static inline uvm_backing_id back(struct uvm_space *s, struct uvm_block *b, uvm_node n) {
  uvm_backing_id k = uvm_backing_create(s, n, UVM_BLOCK_BYTES);
  uvm_backing_attach(s, k, b, b->first, b->pages);
  return k;
}

static inline struct uvm_step *add(struct uvm_plan *p, enum uvm_step_kind kind, struct uvm_block *b, uvm_proc proc, uvm_node src,
                                   uvm_node dst, int first, int last) {
  uvm_mask m = uvm_mask_range(first, last);
  struct uvm_step *st = uvm_plan_add(p, kind, b, proc, &m);
  st->src = src, st->dst = dst;
  return st;
}

/* Everything is done at once. */
static inline void commit(struct uvm_space *s, struct uvm_plan *p) {
  struct uvm_error e;
  if (uvm_plan_check(s, p, &e)) fail_msg("%s", e.text);
  uvm_plan_hold(p, 1);
  uvm_plan_begin(s, p);
  for (size_t i = 0; i < p->steps.n; i++) p->steps.v[i].done = p->steps.v[i].pages;
  uvm_plan_commit(s, p, 1);
  for (size_t i = 0; i < p->steps.n; i++)
    if (uvm_block_check(s, p->steps.v[i].block, &e)) fail_msg("%s", e.text);
  uvm_plan_clear(p);
}

static inline void step(struct uvm_space *s, enum uvm_step_kind kind, struct uvm_block *b, uvm_proc proc, uint8_t access, uvm_node src,
                        uvm_node dst, int first, int last) {
  struct uvm_plan p = {0};
  add(&p, kind, b, proc, src, dst, first, last)->access = access;
  commit(s, &p);
  uvm_plan_release(&p);
}

static inline bool is_range(const uvm_mask *m, int first, int last) {
  uvm_mask want = uvm_mask_range(first, last);
  return !memcmp(m, &want, sizeof want);
}
#endif
