/* A machine of two GPUs, and events made by hand: what the tests of observers share. */
#ifndef UVM_TESTS_REPORT_H
#define UVM_TESTS_REPORT_H
#include "report/places.h"

enum { DRAM, HBM0, HBM1, CPU = 0, GPU0, GPU1 };

static inline struct uvm_places test_places(void) {
  static const struct uvm_node_info nodes[] = {{.name = "dram"}, {.name = "hbm0"}, {.name = "hbm1"}};
  static const struct uvm_proc_info procs[] = {
      {.name = "cpu", .home = DRAM}, {.name = "gpu0", .home = HBM0}, {.name = "gpu1", .home = HBM1}};
  struct uvm_places p;
  uvm_places_init(&p, &(struct uvm_topology){.nprocs = 3, .nnodes = 3, .procs = procs, .nodes = nodes});
  return p;
}
#endif
