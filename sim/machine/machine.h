/* A machine: nodes, processors, links and prices, read from an INI profile (sim/machine/profiles/NAME.ini, built into the
 * binary; a path to a file works too). It never reads the space: it is asked for times and holds its own queues.
 * Every value in a profile carries its unit in the key and its source in a comment. Sizes bytes, times ns, bandwidths
 * bytes a second. */
#ifndef UVM_MACHINE_H
#define UVM_MACHINE_H
#include "base/base.h"

#define UVM_MAX_LINKS 32
struct uvm_link { char name[24]; uint8_t a, b; uint64_t latency_ns; double up, down; uvm_ns free_up, free_down; };   /* up: a to b */
/* How a GPU runs kernels and reports faults. */
struct uvm_gpu_model {
  uint32_t sms, lanes_per_sm, blocks_per_sm, warp;
  uint32_t utlb_faults;                         /* raw faults one uTLB (one SM's) may have outstanding */
  uint32_t ring;                                /* entries of the fault ring */
  uint64_t step_ns;                             /* latency of one step of a warp whose pages are mapped */
  uint64_t launch_ns, fault_arrival_ns, replay_arrival_ns;   /* launch to first step; miss to ring entry; replay to retried access */
  uint64_t ring_entry_ns;                       /* the ring takes an entry this often */
  uint64_t interrupt_ns, idle_interrupt_ns;     /* ring entry to bottom half: hot, and after idle_after_ns without one */
  uint64_t idle_after_ns;
  double memory_rate;                           /* bytes a second from its own memory, resident */
};
/* Prices of the driver's and host's work; two sets in a profile, [costs] and [costs.traced] (with a profiler attached). */
struct uvm_costs {
  uint64_t fetch_ns, raw_fault_ns, replay_ns, restart_ns;
  uint64_t block_ns, block_first_ns, region_ns, page_ns, populate_page_ns, transfer_ns;
  uint64_t cpu_fault_ns, cpu_page_ns, cpu_chunk_ns, cpu_populate_ns, cpu_populate_page_ns, cpu_spurious_ns, cpu_hit_ns, cpu_nap_ns;
  uint64_t prefetch_block_ns, prefetch_map_ns, prefetch_back_map_page_ns, prefetch_skip_ns, call_ns;
  uint64_t revoke_page_ns, evict_ns, map_ns, counter_ns;
};
struct uvm_machine {
  char name[48], title[96];
  char driver[24]; uint32_t driver_version;     /* driver = nvidia-580 */
  uint8_t nnodes, nprocs, nlinks;
  struct uvm_node_info nodes[20];
  struct uvm_proc_info procs[17];
  struct uvm_topology topology;                 /* points into the above */
  struct uvm_link links[UVM_MAX_LINKS];
  struct uvm_gpu_model gpu;
  struct uvm_costs costs;
  uint64_t system_page;
  char *names;                                  /* memory behind the name pointers */
};
/* name: a built-in one or a path with a '/' or ending in .ini. Unknown: UVM_EUSAGE listing the known; a malformed file:
 * UVM_EINPUT with file:line. costs: "measured" or "traced". */
int uvm_machine_open(const char *name, const char *costs, struct uvm_machine **out, struct uvm_error *e);
void uvm_machine_close(struct uvm_machine *m);
/* Overrides the capacity of every GPU's node (before the topology is used). */
void uvm_machine_set_gpu_memory(struct uvm_machine *m, uint64_t bytes);
/* One transfer of `bytes` from node src to dst starting no earlier than now: holds the links on the way. fixed: a fixed time the
 * copy takes besides. */
struct uvm_reservation { uvm_ns begin, end; };
struct uvm_reservation uvm_machine_reserve(struct uvm_machine *m, uvm_node src, uvm_node dst, uvm_ns now, uint64_t bytes, uint64_t fixed);
/* Time for p to read or write bytes of node n through its own accesses, without queueing. */
uvm_ns uvm_machine_access_ns(const struct uvm_machine *m, uvm_proc p, uvm_node n, uint64_t bytes, bool write);
struct uvm_machine_entry { const char *name, *text; };
extern const struct uvm_machine_entry uvm_machines[];           /* generated from the profiles; ends with a NULL name */
#endif
