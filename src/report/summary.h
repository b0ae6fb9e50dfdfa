/* What a run's reports have in common: what ran, and what was counted. */
#ifndef UVM_SUMMARY_H
#define UVM_SUMMARY_H
#include "report/metrics.h"
#include "session.h"

struct uvm_summary {
  const char *trace;
  const struct uvm_session_result *run;
  const struct uvm_metrics *metrics;
  const char *const *asked; /* the words that said how to run it, for the commands that the report proposes */
  size_t nasked;
  double wall_seconds; /* how long the simulation took here; negative: not to be told (--deterministic) */
};
/* The machine-readable report, keys as in docs/report-format.md; path "-": standard output. */
int uvm_json_report(const struct uvm_summary *s, const char *path, struct uvm_error *e);
/* The report for people: what ran, totals, sections, allocations, what it means. */
void uvm_text_report(const struct uvm_summary *s, FILE *f);
/* The last paragraph alone: what the numbers mean and what to try. */
void uvm_text_meaning(const struct uvm_summary *s, FILE *f);
#endif
