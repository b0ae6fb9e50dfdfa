#include "report/places.h"

void uvm_places_init(struct uvm_places *p, const struct uvm_topology *t) {
  *p = (struct uvm_places){.nprocs = t->nprocs, .nnodes = t->nnodes};
  for (unsigned n = 0; n < t->nnodes; n++) {
    snprintf(p->node[n], sizeof p->node[n], "%s", t->nodes[n].name);
    p->gpu[n] = -1;
  }
  for (unsigned i = 0; i < t->nprocs; i++) {
    snprintf(p->proc[i], sizeof p->proc[i], "%s", t->procs[i].name);
    uvm_node home = t->procs[i].home;
    if (i && home != t->procs[0].home && p->gpu[home] < 0) p->gpu[home] = (int8_t)(i - 1);
  }
}

static bool on_gpu(const struct uvm_places *p, uvm_node n) { return n < p->nnodes && p->gpu[n] >= 0; }

enum uvm_direction uvm_places_direction(const struct uvm_places *p, uvm_node src, uvm_node dst) {
  if (on_gpu(p, src)) return on_gpu(p, dst) ? UVM_D2D : UVM_D2H;
  return on_gpu(p, dst) ? UVM_H2D : UVM_H2H;
}

const char *uvm_places_proc(const struct uvm_places *p, uvm_proc proc) { return proc < p->nprocs ? p->proc[proc] : "?"; }
const char *uvm_places_node(const struct uvm_places *p, uvm_node node) { return node < p->nnodes ? p->node[node] : "?"; }

const char *uvm_cause_word(uint64_t cause) {
  static const char *const words[] = {"no cause", "asked for", "fault", "prefetcher", "eviction", "access counters", "thrashing", "policy"};
  return cause < sizeof words / sizeof *words ? words[cause] : "?";
}

const char *uvm_access_word(uint64_t access) {
  static const char *const words[] = {"prefetch", "read", "write", "atomic"};
  return access < sizeof words / sizeof *words ? words[access] : "?";
}
