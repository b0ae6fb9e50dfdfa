/* A view without a core: the accessors of policy.h over plain fields, for testing one policy with one block, one range and
 * a few backings. A test links these instead of the library's. Node 0 is the CPU's memory, node i GPU i-1's. */
#ifndef UVM_FAKE_VIEW_H
#define UVM_FAKE_VIEW_H
#include "base/base.h"
#include "tests/unit/unit.h"

#define CPU 0
#define GPU 1
#define GPU1 2
#define FAKE_BACKINGS 256
enum fake_machine { PCIE, NVLINK, GRACE, TWO_GPUS };    /* TWO_GPUS: on PCIe, with NVLink between them */

struct fake_backing { struct uvm_backing_info info; bool live; uint8_t list; uint64_t state[4]; uint32_t pages_of[4]; };
struct uvm_view {
  uvm_ns now;
  struct uvm_proc_info procs[3];
  struct uvm_node_info nodes[3];
  struct uvm_topology topology;
  struct uvm_range_info range;
  struct uvm_block_info block;                  /* 1 */
  const struct uvm_block_info *blocks;          /* by id, where there are more */
  uvm_mask resident[3], readable[3];            /* readable: what each processor has mapped at least to read */
  const uvm_mask *thrashing;
  const struct uvm_policy *policy;
  void *state, *block_state;
  struct fake_backing backing[FAKE_BACKINGS];   /* by id; order: service order, oldest first */
  uvm_backing_id order[FAKE_BACKINGS];
  int norder;
};

uvm_ns uvm_now(const uvm_view *v) { return v->now; }
const struct uvm_topology *uvm_topology(const uvm_view *v) { return &v->topology; }
const struct uvm_range_info *uvm_range(const uvm_view *v, uvm_range_id r) { assert_int_equal(r, 1); return &v->range; }
const struct uvm_block_info *uvm_block(const uvm_view *v, uvm_block_id b) {
  if (v->blocks) return &v->blocks[b];
  assert_int_equal(b, 1);
  return &v->block;
}
const uvm_mask *uvm_resident(const uvm_view *v, uvm_block_id b, uvm_node n) { (void)b; assert_in_range(n, 0, 2); return &v->resident[n]; }
const uvm_mask *uvm_mapped(const uvm_view *v, uvm_block_id b, uvm_proc p, uint8_t access) {
  (void)b;
  assert_int_equal(access, UVM_A_READ);
  return &v->readable[p];
}
const uvm_mask *uvm_thrashing(const uvm_view *v, uvm_block_id b) { (void)b; return v->thrashing; }
const struct uvm_backing_info *uvm_backing(const uvm_view *v, uvm_backing_id k) {
  return k < FAKE_BACKINGS && v->backing[k].live ? &v->backing[k].info : NULL;
}
uvm_backing_id uvm_backing_of(const uvm_view *v, uvm_block_id b, uvm_node n, int page) {
  for (uvm_backing_id k = 1; k < FAKE_BACKINGS; k++)
    if (v->backing[k].live && v->backing[k].info.node == n)
      for (int i = 0; i < 4; i++)
        if (v->backing[k].pages_of[i] == b && v->backing[k].info.first == page) return k;
  return 0;
}
static inline uvm_backing_id fake_on_list(const uvm_view *v, int at, uvm_node n, enum uvm_list l) {
  for (; at < v->norder; at++) {
    const struct fake_backing *b = &v->backing[v->order[at]];
    if (b->live && b->info.node == n && b->list == l) return v->order[at];
  }
  return 0;
}
uvm_backing_id uvm_oldest(const uvm_view *v, uvm_node n, enum uvm_list l) { return fake_on_list(v, 0, n, l); }
uvm_backing_id uvm_newer(const uvm_view *v, uvm_backing_id k) {
  for (int i = 0; i < v->norder; i++)
    if (v->order[i] == k) return fake_on_list(v, i + 1, v->backing[k].info.node, v->backing[k].list);
  return 0;
}
void *uvm_block_state(const uvm_view *v, uvm_block_id b) { assert_int_equal(b, 1); return v->block_state; }
void *uvm_backing_state(const uvm_view *v, uvm_backing_id k) {
  assert_true(v->policy->backing_size <= sizeof v->backing[k].state);
  return (void *)v->backing[k].state;
}

static inline void fake_machine(uvm_view *v, enum fake_machine m) {
  bool coherent = m == NVLINK || m == GRACE;
  int ngpus = m == TWO_GPUS ? 2 : 1;
  v->procs[CPU] = (struct uvm_proc_info){.name = "cpu", .home = 0, .reach = m == GRACE ? 3 : 1, .native_atomics = m == GRACE ? 3 : 1,
                                         .fast_link = coherent ? 1u << GPU : 0};
  for (int g = 1; g <= ngpus; g++) {
    uint32_t own = 1u << g, peer = m == TWO_GPUS ? 1u << (3 - g) : 0;
    v->procs[g] = (struct uvm_proc_info){.name = g == 1 ? "gpu0" : "gpu1", .home = (uvm_node)g, .reach = 1 | own | peer,
                                         .native_atomics = own | peer | coherent, .fast_link = peer | (coherent ? 1u << CPU : 0)};
  }
  v->topology = (struct uvm_topology){.nprocs = (uint8_t)(1 + ngpus), .nnodes = (uint8_t)(1 + ngpus), .procs = v->procs, .nodes = v->nodes,
                                      .machine = "fake", .driver = "nvidia", .driver_version = 580};
}

/* A whole block of a range without advice, the policy's options at their defaults. Options and fields may change until
 * fake_start. */
static inline uvm_view *fake_open(const struct uvm_policy *p, enum fake_machine m) {
  uvm_view *v = calloc(1, sizeof *v);
  fake_machine(v, m);
  v->range = (struct uvm_range_info){.label = "a", .bytes = UVM_BLOCK_BYTES, .preferred = UVM_NONE};
  v->block = (struct uvm_block_info){.range = 1, .pages = UVM_BLOCK_PAGES};
  v->policy = p;
  v->state = calloc(1, p->state_size + 1);
  v->block_state = calloc(1, p->block_size + 1);
  uvm_opt_defaults(p->opts, v->state);
  return v;
}
static inline void fake_option(uvm_view *v, const char *key, const char *value) {
  struct uvm_error e = {0};
  assert_non_null(uvm_opt_find(v->policy->opts, key));
  assert_int_equal(uvm_opt_set(v->policy->opts, v->state, v->policy->name, key, value, &e), 0);
}
static inline void fake_start(uvm_view *v) {
  if (v->policy->init) assert_int_equal(v->policy->init(v->state, v), 0);
}
static inline void fake_close(uvm_view *v) {
  if (v->policy->block_fini) v->policy->block_fini(v->state, v->block_state);
  if (v->policy->fini) v->policy->fini(v->state);
  free(v->state);
  free(v->block_state);
  free(v);
}

/* Pages as the specification writes them, "3 40" and "[0,16) [32,48)", counted from the block's first page. */
static inline uvm_mask fake_pages(const char *text, int first) {
  uvm_mask m = {{0}};
  for (const char *s = text; s && *(s += strspn(s, " "));) {
    char *end;
    if (*s == '[') {
      int a = (int)strtol(s + 1, &end, 10), b = (int)strtol(end + 1, &end, 10);
      assert_true(*end == ')' && a < b);
      uvm_mask_set(&m, first + a, first + b);
      s = end + 1;
    } else {
      int p = (int)strtol(s, &end, 10);
      assert_true(end > s);
      uvm_mask_set(&m, first + p, first + p + 1);
      s = end;
    }
  }
  return m;
}
/* The same text of a mask; a static buffer. */
static inline const char *fake_text(const uvm_mask *m, int first) {
  static char buf[2][4096];
  static int turn;
  char *out = buf[turn ^= 1], *s = out;
  *s = 0;
  for (int a, b = 0; uvm_mask_run(m, &a, &b);) s += sprintf(s, "%s[%d,%d)", s > out ? " " : "", a - first, b - first);
  return out;
}
#endif
