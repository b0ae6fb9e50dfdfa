/* Timeline: a run as ui.perfetto.dev shows it. An observer that writes while it listens.
 *
 * The CPU has its sections, its waits (for streams; in faults) and its faults; each GPU its kernels, the driver's service of its fault
 * batches, the times when it was stalled, prefetches, evictions and what was decided about its pages; each direction of each link its
 * transfers; each memory how much is resident in it. */
#ifndef UVM_TIMELINE_H
#define UVM_TIMELINE_H
#include "core/event.h"
#include "report/places.h"
#include "session.h"

struct uvm_timeline;
int uvm_timeline_open(const char *path, const struct uvm_places *places, struct uvm_timeline **out, struct uvm_error *e);
void uvm_timeline_event(void *timeline, const struct uvm_event *e); /* the observer's function */
/* Both free. trace: its name, for the file to tell. */
int uvm_timeline_commit(struct uvm_timeline *t, const char *trace, const struct uvm_session_result *r, struct uvm_error *e);
void uvm_timeline_abandon(struct uvm_timeline *t);
#endif
