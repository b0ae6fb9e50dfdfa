/* Validate: a replay beside a recording, allocation by allocation.
 *
 * Sequences (CPU faults; GPU fault batches by their lowest page) are compared in order; moved pages as how often each page moved;
 * transfer sizes as histograms; thrashing control by counts. Verdicts:
 *   exact        the same
 *   subsequence  everything recorded is there, in order (sets and histograms: is contained). Recorders lose rows, they invent none
 *   close        the number of rows, or of pages, is off by no more than the tolerance
 *   differs      anything else: `first` says where */
#ifndef UVM_VALIDATE_H
#define UVM_VALIDATE_H
#include "report/rows.h"

enum uvm_verdict { UVM_V_EXACT, UVM_V_SUBSEQUENCE, UVM_V_CLOSE, UVM_V_DIFFERS };
struct uvm_check {
  int64_t alloc;
  const char *what;             /* "CPU faults", "pages to GPU" ... */
  uint64_t recorded, simulated; /* rows, or pages */
  enum uvm_verdict verdict;
  char *first; /* the first difference; NULL when exact */
};
struct uvm_validation {
  UVM_VEC(struct uvm_check) checks; /* by allocation; only what at least one side has */
  size_t count[4];                  /* of each verdict */
};
/* tolerance in percent. Both sides are regrouped here. */
void uvm_validate(struct uvm_validation *v, struct uvm_rows *recorded, struct uvm_rows *simulated, double tolerance);
void uvm_validation_free(struct uvm_validation *v);
const char *uvm_verdict_name(enum uvm_verdict v);
#endif
