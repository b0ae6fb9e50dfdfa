/* What policies are tried on: random traces, and a few small programs each with one habit. */
#ifndef UVM_CONTRACT_H
#define UVM_CONTRACT_H
#include "base/base.h"

/* The trace of that number, as text: accesses of every kind by the CPU and one or two GPUs, advice, prefetches, allocations of odd sizes
 * that come and go and share blocks. The caller frees. */
char *uvm_contract_trace(uint64_t number, unsigned gpus);

struct uvm_contract_workload { const char *name, *text; uint64_t gpu_memory; };   /* gpu_memory 0: the machine's */
extern const struct uvm_contract_workload uvm_contract_workloads[];               /* ends with a NULL name */
#endif
