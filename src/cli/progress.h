/* The progress of a run: one line on a terminal, while it takes longer than a second. */
#ifndef UVM_PROGRESS_H
#define UVM_PROGRESS_H
#include "session.h"

double uvm_cli_seconds(void); /* of a clock that never goes back */

struct uvm_progress_bar { /* begin with the trace's name, all else zero */
  const char *trace;
  double began, moved, shown; /* seconds of a clock: the run began; something was read or done; a line was shown. 0: not yet */
  uint64_t elements;          /* of a trace so small that it is read at once: what there is to access; 0: measured by its bytes */
  uint64_t done, accesses;    /* the latest */
};
void uvm_progress_show(void *bar, const struct uvm_progress *p); /* the session's callback */
void uvm_progress_erase(const struct uvm_progress_bar *bar);

/* The line, at most `columns` wide: a bar, the part of the trace that is read, the time left at this pace, elements accessed a second, the
 * virtual time. Parts that do not fit are left out, the last first; the bar takes the rest. A trace of unknown size (a pipe) has no part,
 * bar and time left. While one record has been under way for long (still, in seconds), its line stands for the time left. */
void uvm_progress_line(const struct uvm_progress *p, double elapsed, double still, unsigned columns, char *out, size_t size);
#endif
