/* Where a page goes: the first rule that matches decides. The enum in nvidia.h numbers the rules. */
#include "core/nvidia/nvidia.h"
#include <assert.h>

static bool home_in(const struct uvm_space *s, uvm_proc q, uint32_t nodes) { return nodes >> s->procs[q].home & 1; }

/* Home of the first processor in `procs` that is in `nodes`: GPUs before the CPU. */
static uvm_node first_home(const struct uvm_space *s, uint32_t procs, uint32_t nodes) {
  for (uvm_proc q = 1; q < s->topology.nprocs; q++)
    if (procs >> q & 1 && home_in(s, q, nodes)) return s->procs[q].home;
  return procs & 1 && home_in(s, 0, nodes) ? s->procs[0].home : UVM_NONE;
}

uvm_node uvm__nv_closest(const struct uvm_space *s, uvm_proc p, uint32_t nodes) {
  const struct uvm_proc_info *i = &s->procs[p];
  assert(nodes);
  if (home_in(s, p, nodes)) return i->home;
  uvm_node n = first_home(s, i->fast_link, nodes);
  if (n != UVM_NONE) return n;
  n = first_home(s, UINT32_MAX, nodes & i->reach);
  if (n != UVM_NONE) return n;
  if (nodes & i->reach) return (uvm_node)__builtin_ctz(nodes & i->reach);
  n = s->procs[0].home; /* unreachable all: the first by processor number */
  if (nodes >> n & 1) return n;
  n = first_home(s, UINT32_MAX, nodes);
  return n != UVM_NONE ? n : (uvm_node)__builtin_ctz(nodes);
}

uvm_node uvm__nv_keeper(const struct uvm_space *s, const struct uvm_block *b, int page) {
  uint32_t nodes = uvm_page_nodes(s, b, page);
  uvm_node preferred = b->range->info.preferred, cpu = s->procs[0].home;
  assert(nodes);
  if (preferred != UVM_NONE && nodes >> preferred & 1) return preferred;
  return nodes >> cpu & 1 ? cpu : (uvm_node)__builtin_ctz(nodes);
}

bool uvm__nv_can_duplicate(const struct uvm_core *c, const struct uvm_block *b, int page, uint8_t hint) {
  if (b->range->info.read_mostly) return true;
  return !b->range->no_duplication && hint != UVM_HINT_PIN && uvm_mask_test(uvm_block_duplicated(c->space, b), page);
}

/* Rule 8: atomics of a GPU on another GPU's memory, where the link does them. */
static bool atomics_stay(const struct uvm_core *c, const struct uvm_fault *f, uvm_node copy) {
  const struct uvm_space *s = c->space;
  return uvm__nv_state(c)->options.map_remote_on_native_atomics_fault && f->access_mask == 1u << UVM_A_ATOMIC && f->proc != 0 &&
         copy != s->procs[0].home && first_home(s, UINT32_MAX - 1, 1u << copy) == copy && uvm__nv_atomics(s, f->proc, copy);
}

static struct nv_place choose(const struct uvm_core *c, const struct uvm_block *b, const struct uvm_fault *f,
                              const struct uvm_thrash *hint) {
  const struct uvm_space *s = c->space;
  const struct uvm_range_info *range = &b->range->info;
  uvm_node home = s->procs[f->proc].home, preferred = range->preferred;
  bool preferred_reached = preferred != UVM_NONE && uvm_reaches(s, f->proc, preferred);
  uint32_t nodes = uvm_page_nodes(s, b, f->page);
  if (uvm__nv_state(c)->options.fault_force_sysmem) return (struct nv_place){s->procs[0].home, false, NV_WHY_SYSMEM};
  if (uvm__nv_can_duplicate(c, b, f->page, hint->hint)) return (struct nv_place){home, f->access <= UVM_A_READ, NV_WHY_DUPLICATION};
  if (home == preferred) return (struct nv_place){home, false, NV_WHY_AT_PREFERRED};
  if (f->proc == 0 && range->system) return (struct nv_place){home, false, NV_WHY_CPU_PAGEABLE};
  if (hint->hint == UVM_HINT_PIN) return (struct nv_place){hint->node, false, NV_WHY_PINNED};
  if (!nodes) return (struct nv_place){preferred_reached ? preferred : home, false, NV_WHY_FIRST_TOUCH};
  uvm_node copy = uvm__nv_closest(s, f->proc, nodes);
  if (range->accessed_by >> f->proc & 1 && !f->counter && uvm_reaches(s, f->proc, copy))
    return (struct nv_place){copy, false, NV_WHY_ACCESSED_BY};
  if (atomics_stay(c, f, copy)) return (struct nv_place){copy, false, NV_WHY_ATOMICS};
  /* System memory on another node is the CPU's own. */
  if (f->proc == 0 && uvm_proc_at(s, copy) == 0) return (struct nv_place){copy, false, NV_WHY_REQUESTER};
  if (copy != home && preferred_reached) return (struct nv_place){preferred, false, NV_WHY_TO_PREFERRED};
  return (struct nv_place){home, false, NV_WHY_REQUESTER};
}

struct nv_place uvm__nv_residency(const struct uvm_core *c, const struct uvm_block *b, const struct uvm_fault *f,
                                  const struct uvm_thrash *hint) {
  struct nv_place a = choose(c, b, f, hint);
  if (a.node == UVM_NONE) a.node = c->space->procs[0].home; /* a GPU without memory of its own */
  return a;
}
