/* Section times beside their recorded spread: a file of workload,section,part,iterations,runs,min,median,max in seconds. Part `all`
 * is the sum over iterations; `first` is the first iteration, `rest` the others. */
#ifndef UVM_SPREAD_H
#define UVM_SPREAD_H
#include "report/causes.h"
#include "report/rows.h"

struct uvm_spread {
  char section[256], part[8];
  uint64_t iterations;
  double min, median, max;      /* seconds */
  bool predicted;               /* the replay has such a section */
  double seconds;               /* what the replay says */
  double outside;               /* percent beyond the nearer end of the spread; 0 within */
  uint64_t ns[UVM_TIME_CAUSES]; /* what the prediction went to: its sum */
  enum uvm_time_cause largest;
};
struct uvm_spreads {
  UVM_VEC(struct uvm_spread) v;
};
/* Rows of this workload; UVM_EINPUT with file:line for a malformed file, UVM_EUSAGE when it has none of the workload. */
int uvm_spreads_read(struct uvm_spreads *s, const char *path, const char *workload, struct uvm_error *e);
/* Fills in the predictions from the replay's sections, and from its settled causes what their time went to. Where the trace repeats a
 * section more often than the recording counted it, the fastest repetitions stand for it, as in the recording. */
void uvm_spreads_predict(struct uvm_spreads *s, const struct uvm_rows *simulated, const struct uvm_causes *causes);
void uvm_spreads_free(struct uvm_spreads *s);
#endif
