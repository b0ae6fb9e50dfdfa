/* Metrics: what happened, as counters: of the whole run, of every section, every processor and every allocation. An observer.
 *
 * An event belongs to every section open at its start. A counter that this run cannot know holds UVM_UNKNOWN and is shown as
 * null: a missing number is better than a wrong one. */
#ifndef UVM_METRICS_H
#define UVM_METRICS_H
#include "core/event.h"
#include "report/places.h"

#define UVM_UNKNOWN UINT64_MAX
enum uvm_unit { UVM_COUNT, UVM_BYTES, UVM_TIME };

/* X(key, unit): the keys of the JSON report, in its order. */
#define UVM_COUNTERS(X)                                                                                                                    \
  X(accesses, UVM_COUNT)                                                                                                                   \
  X(gpu_faults, UVM_COUNT)                                                                                                                 \
  X(throttled_faults, UVM_COUNT)                                                                                                           \
  X(fault_batches, UVM_COUNT) X(cpu_faults, UVM_COUNT) X(h2d_bytes, UVM_BYTES) X(d2h_bytes, UVM_BYTES) X(d2d_bytes, UVM_BYTES)             \
      X(h2d_copies, UVM_COUNT) X(d2h_copies, UVM_COUNT) X(prefetched_bytes, UVM_BYTES) X(prefetch_used_bytes, UVM_BYTES)                   \
          X(duplicated_bytes, UVM_BYTES) X(revocations, UVM_COUNT) X(evictions, UVM_COUNT) X(evicted_bytes, UVM_BYTES)                     \
              X(remote_bytes, UVM_BYTES) X(remote_maps, UVM_COUNT) X(thrashing_pages, UVM_COUNT) X(throttles, UVM_COUNT)                   \
                  X(fault_stall_ns, UVM_TIME) X(cpu_stall_ns, UVM_TIME) X(link_wait_ns, UVM_TIME) X(peak_gpu_bytes, UVM_BYTES)
/* Per processor: its own accesses and faults, and the bytes that came to and left its own memory. */
#define UVM_PROC_COUNTERS(X)                                                                                                               \
  X(reads, UVM_COUNT)                                                                                                                      \
  X(writes, UVM_COUNT)                                                                                                                     \
  X(atomics, UVM_COUNT)                                                                                                                    \
  X(remote_bytes, UVM_BYTES) X(faults, UVM_COUNT) X(throttled_faults, UVM_COUNT) X(fault_batches, UVM_COUNT) X(bytes_in, UVM_BYTES)        \
      X(bytes_out, UVM_BYTES) X(remote_maps, UVM_COUNT) X(throttles, UVM_COUNT) X(stall_ns, UVM_TIME)
#define UVM_FIELD(key, unit) uint64_t key;
struct uvm_counters {
  UVM_COUNTERS(UVM_FIELD)
};
struct uvm_proc_counters {
  UVM_PROC_COUNTERS(UVM_FIELD)
};
struct uvm_counter_info {
  const char *key;
  enum uvm_unit unit;
  size_t offset;
};
extern const struct uvm_counter_info uvm_counter_info[], uvm_proc_counter_info[]; /* end with a NULL key */
static inline uint64_t uvm_counter_get(const void *counters, const struct uvm_counter_info *i) {
  return *(const uint64_t *)((const char *)counters + i->offset);
}

struct uvm_section_metrics {
  char *name;
  uint64_t iteration;
  uvm_ns begin, end; /* end UVM_NEVER: still open */
  size_t parent;     /* index of the enclosing section, SIZE_MAX none */
  struct uvm_counters c;
};
struct uvm_alloc_metrics {
  bool known; /* an ALLOC event told of it */
  uint32_t number;
  char *id, *label;
  enum uvm_kind kind;
  uint64_t bytes;
  struct uvm_counters c;
  struct uvm_proc_counters *procs; /* [places.nprocs] */
  bool cpu_fault_writes;           /* its last CPU fault */
  uint64_t rewritten_bytes;        /* that came to the CPU with faults that write */
};
struct uvm_metrics {
  struct uvm_places places;
  struct uvm_counters total;
  struct uvm_proc_counters procs[UVM_MAX_PROCS];
  UVM_VEC(struct uvm_section_metrics) sections; /* in order of begin */
  UVM_VEC(struct uvm_alloc_metrics) allocs;     /* by number */
  size_t open;                                  /* innermost open section, SIZE_MAX none */
};
void uvm_metrics_init(struct uvm_metrics *m, const struct uvm_places *places);
void uvm_metrics_free(struct uvm_metrics *m);
void uvm_metrics_event(void *metrics, const struct uvm_event *e); /* the observer's function */
/* Adds b to a, key by key; unknown plus anything is unknown. */
void uvm_counters_add(struct uvm_counters *a, const struct uvm_counters *b);
#endif
