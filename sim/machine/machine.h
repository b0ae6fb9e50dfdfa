/* A machine: nodes, processors and links with their prices, read from an INI profile (sim/machine/profiles/NAME.ini, built into
 * the binary; a path to a file works too). It never reads the space: it is asked for times and holds its own queues.
 * Every value in a profile carries its unit in the key and its source in a comment. Sizes bytes, times ns (_ps: picoseconds),
 * bandwidths bytes a second. docs: each key of a profile is the field of the same name below. */
#ifndef UVM_MACHINE_H
#define UVM_MACHINE_H
#include "base/base.h"

#define UVM_MAX_LINKS 32
#define UVM_MAX_ENGINES 8
/* What crosses a link: copies by cause, then the accesses of processors. */
enum uvm_traffic { UVM_L_MIGRATION, UVM_L_PREFETCH, UVM_L_EVICTION, UVM_L_MEMCPY, UVM_L_REMOTE, UVM_L_KINDS };
const char *uvm_traffic_name(enum uvm_traffic kind); /* "remote access" */
/* What a wire or an engine is taken for from now on: spans in order, in ps. */
struct uvm_span {
  uint64_t begin, end;
  enum uvm_traffic kind;
};
struct uvm_track {
  UVM_VEC(struct uvm_span) held;
};
/* A direction of a link. */
struct uvm_way {
  struct uvm_track wire, engines[UVM_MAX_ENGINES];
  uint64_t waited_until; /* ps: until then the waiting of accesses is counted */
};
/* What joins two nodes. Its directions share nothing. */
struct uvm_link {
  char name[24];
  uvm_node a, b;
  uint64_t latency_ns; /* of a load across */
  uint64_t engines;    /* copies that may be under way at a time, each way; they share the wire, so that one is set up while
                          another's bytes move */
  double up, down;     /* copies, a to b and back */
  double load, store;  /* a processor's own accesses to memory at the other end */
  struct uvm_way ways[2];
};
/* How a GPU runs kernels and reports faults. */
struct uvm_gpu_model {
  uint64_t sms, lanes_per_sm, blocks_per_sm, warp;
  uint64_t gpcs;                          /* SM s belongs to cluster s / 2 mod gpcs */
  uint64_t utlb_faults;                   /* raw faults one uTLB (one SM's) may have outstanding */
  uint64_t gpc_warps;                     /* warps of one cluster that may be stalled on faults the MMU knows of */
  uint64_t gpc_turn;                      /* warps of one SM that it takes after a replay before those of another */
  uint64_t ring;                          /* entries of the fault ring; a fault that finds it full comes again after the replay */
  uint64_t launch_ns;                     /* the stream's turn to the first step */
  uint64_t finish_ns;                     /* the last step to the kernel's end */
  uint64_t cold_ns;                       /* what the first accesses of a kernel wait for translations */
  uint64_t block_start_ns, warp_start_ns; /* between the starts of blocks; of a block's warps */
  uint64_t start_jitter_ns;               /* a pair of blocks starts up to this much later */
  uint64_t step_ns;                       /* latency of one step of a warp whose pages are mapped */
  uint64_t store_step_ns;                 /* of a step that only writes: nobody waits for a store */
  uint64_t issue_ns;                      /* an SM sends a miss this often */
  uint64_t fault_arrival_ns;              /* miss to the MMU */
  uint64_t walk_ns;                       /* the MMU finds out about one page; all who wait for it enter the ring together */
  uint64_t replay_arrival_ns;             /* replay to the retried accesses */
  uint64_t interrupt_ns, idle_interrupt_ns, deep_interrupt_ns; /* ring entry to bottom half, which last ran shortly, long, very long ago */
  uint64_t first_interrupt_ns;                                 /* the first of a run */
  uint64_t idle_after_ns, deep_after_ns;                       /* after this long without a bottom half */
  double memory_rate;                                          /* from its own memory, resident */
};
/* How the CPU runs loops. */
struct uvm_cpu_model {
  uint64_t threads;             /* of a kernel that run at once */
  uint64_t page_ns, element_ps; /* a touch of a mapped page; each element */
};
/* Prices of the driver's and the host's work; [costs] measured, [costs.traced] overrides some: with a profiler attached. */
struct uvm_costs {
  uint64_t spread_percent;                                      /* how far host-side work varies */
  uint64_t fetch_ns, raw_fault_ns;                              /* a batch; each raw entry of it */
  uint64_t replay_ns, replay_wait_ns, restart_ns;               /* flush and issue; until it has executed; leaving and entering the loop */
  uint64_t block_ns, block_first_ns;                            /* a block service; more, when nothing of it was there yet */
  uint64_t region_ns, page_ns;                                  /* each further separate region in it; each page moved */
  uint64_t write_ns, write_page_ns;                             /* more of it when it writes; of each page mapped then */
  uint64_t populate_page_ns, map_ns;                            /* zeroing on the GPU; the mapping at the end of a block service */
  uint64_t push_ns;                                             /* the copies of a fault: handed over to begun */
  uint64_t transfer_ns;                                         /* fixed part of one copy */
  uint64_t cpu_fault_ns, cpu_unmap_page_ns;                     /* a CPU fault that moves pages, until it copies; each page */
  uint64_t cpu_map_ns, cpu_page_ns, cpu_write_ns, cpu_wake_ns;  /* then; each page; if it writes; the first one after the host waited */
  uint64_t cpu_chunk_ns, cpu_populate_ns, cpu_populate_page_ns; /* first CPU touch of a block; further first touches; each page */
  uint64_t cpu_first_write_ns;                                  /* of a page that came with others: the system's fault, not the driver's */
  uint64_t cpu_spurious_ns, cpu_nap_ns;                         /* nothing to do; a throttled thread's wake-up beyond its time */
  uint64_t prefetch_ns, prefetch_unmap_page_ns;                 /* of a prefetch's first block that moves; each page taken from the CPU */
  uint64_t prefetch_block_ns, prefetch_map_ns;                  /* before each block's copy; mapping it on a GPU */
  uint64_t prefetch_back_map_page_ns, prefetch_skip_ns;         /* mapping a page into the process; a block with nothing to do */
  uint64_t call_ns, sync_ns;                                    /* an API call of the host; its wake-up after a wait */
  uint64_t revoke_page_ns, evict_ns, counter_ns;                /* a permission taken away; an eviction; a counter notification's service */
};
struct uvm_machine {
  char name[48], title[96];
  char like[48]; /* the built-in machine that says what this one's profile does not; "" none */
  char driver[24];
  uint32_t driver_version; /* driver = nvidia-580 */
  uint8_t nnodes, nprocs, nlinks;
  struct uvm_node_info nodes[UVM_MAX_NODES];
  struct uvm_proc_info procs[UVM_MAX_PROCS];
  struct uvm_topology topology; /* points into the above */
  struct uvm_link links[UVM_MAX_LINKS];
  struct uvm_gpu_model gpu;
  struct uvm_cpu_model cpu;
  struct uvm_costs costs;
  uint64_t system_page;
  uint64_t waited_ps[UVM_L_KINDS][UVM_L_KINDS]; /* how long the first was kept waiting by the second */
};
/* name: a built-in one or a path with a '/' or ending in .ini; NULL: nvidia-h200. Unknown: UVM_EUSAGE listing the known; a
 * malformed file: UVM_EINPUT with file:line. costs: "measured" or "traced"; NULL: measured. e may be NULL. */
int uvm_machine_open(const char *name, const char *costs, struct uvm_machine **out, struct uvm_error *e);
void uvm_machine_close(struct uvm_machine *m); /* frees it and its queues */
/* Overrides the capacity of every GPU's node (before the topology is used). */
void uvm_machine_set_gpu_memory(struct uvm_machine *m, uint64_t bytes);
/* One copy of `bytes` from node src to dst that starts no earlier than now, on the links of the way. Where no link joins the
 * nodes it takes two: at once when a processor of one end reaches the other, else one after the other. fixed: a time that the
 * engine takes besides. wait: what others made it wait, before begin or after. Calls come in any order of now, but not before
 * what passed. */
struct uvm_transfer {
  uvm_node src, dst;
  enum uvm_traffic kind;
  uint64_t bytes, fixed;
};
struct uvm_reservation {
  uvm_ns begin, end, wait;
};
struct uvm_reservation uvm_machine_reserve(struct uvm_machine *m, const struct uvm_transfer *t, uvm_ns now);
/* p reads or writes bytes of node n, not its home, at `now`, the present: when the links have carried them, what a load takes
 * besides, and how much longer than known so far accesses have been waiting for copies. */
struct uvm_crossing {
  uint64_t end_ps, latency_ps, waited_ps;
};
struct uvm_crossing uvm_machine_access(struct uvm_machine *m, uvm_proc p, uvm_node n, uvm_ns now, uint64_t bytes, bool write);
/* It is `now`: nothing will be asked for before. */
void uvm_machine_pass(struct uvm_machine *m, uvm_ns now);
struct uvm_machine_entry {
  const char *name, *text;
};
extern const struct uvm_machine_entry uvm_machines[]; /* generated from the profiles; ends with a NULL name */
#endif
