/* Conformance: what one recording and one simulated run of the same trace have to agree on. A check is one row of the table. */
#ifndef UVM_CONFORMANCE_H
#define UVM_CONFORMANCE_H
#include "report/rows.h"
#include "session.h"

struct uvm_batch {
  uint32_t alloc;
  uint64_t raw, distinct;
  bool first; /* of its section, which has one kernel */
};
struct uvm_run_of { /* one workload: recorded and simulated */
  const char *dir, *name;
  struct uvm_rows recorded, simulated;
  UVM_VEC(struct uvm_batch) batches;
  struct uvm_session_result result;
  uint64_t in, out, populated, dropped; /* bytes to and from the GPU; made there without a copy; dropped there or freed */
  bool section_began;                   /* and has had no batch yet */
};
/* Replays NAME's trace at these costs (NULL: measured), oversubscribed by `factor` (0: not), and reads its recording where there is one. */
int uvm_conform_run(struct uvm_run_of *w, const char *dir, const char *name, const char *costs, double factor, struct uvm_error *e);
void uvm_conform_free(struct uvm_run_of *w);

/* Each prints one row and counts it. */
struct uvm_score {
  unsigned passed, failed;
};
int uvm_conform_ascending(const void *a, const void *b); /* for qsort, of uint64_t */
void uvm_conform_row(struct uvm_score *s, bool ok, const char *workload, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* Rows of the kinds in `kinds` (a bit each) agree: in order, page by page as sets, by size as histograms; allocation by
 * allocation. */
void uvm_conform_order(struct uvm_score *s, const struct uvm_run_of *w, uint32_t kinds, const char *what);
void uvm_conform_pages(struct uvm_score *s, const struct uvm_run_of *w, uint32_t kinds, const char *what);
void uvm_conform_sizes(struct uvm_score *s, const struct uvm_run_of *w, uint32_t kinds, const char *what);
/* The recording lost rows: what it has appears in the simulated run, in order. */
void uvm_conform_subsequence(struct uvm_score *s, const struct uvm_run_of *w, uint32_t kinds, const char *what);
/* Replays NAME and works out again, from the faults of each service, which pages must be where (wide.c). */
void uvm_conform_rule(struct uvm_score *s, const char *dir, const char *name);
/* Section times within the recorded spread, and thrashing control at the recorded pace (times.c). */
void uvm_conform_times(struct uvm_score *s, const char *dir);
/* A warp on a Titan V (titanv.c). */
void uvm_conform_titanv(struct uvm_score *s);
#endif
