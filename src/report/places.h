/* Names of processors and nodes, and which GPU a node belongs to: what every report needs of a machine. A plain copy, so
 * that a report outlives the machine it describes. And the words that reports use for causes and accesses. */
#ifndef UVM_REPORT_PLACES_H
#define UVM_REPORT_PLACES_H
#include "core/space.h"

struct uvm_places {
  unsigned nprocs, nnodes;
  char proc[UVM_MAX_PROCS][24], node[UVM_MAX_NODES][24];
  int8_t gpu[UVM_MAX_NODES]; /* number of the GPU whose own memory this is; -1: the host's side (an APU's memory too) */
};
void uvm_places_init(struct uvm_places *p, const struct uvm_topology *t);

enum uvm_direction { UVM_H2D, UVM_D2H, UVM_D2D, UVM_H2H };
enum uvm_direction uvm_places_direction(const struct uvm_places *p, uvm_node src, uvm_node dst);
/* Never NULL; "?" for what the machine does not have. */
const char *uvm_places_proc(const struct uvm_places *p, uvm_proc proc);
const char *uvm_places_node(const struct uvm_places *p, uvm_node node);
const char *uvm_cause_word(uint64_t cause);   /* enum uvm_cause, 0 none */
const char *uvm_access_word(uint64_t access); /* enum uvm_access */
#endif
