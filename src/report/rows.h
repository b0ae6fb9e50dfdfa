/* Rows: a run's events in the form of the event file, kept in memory: what --events writes, and what diff and validate compare
 * with a recording. An observer.
 *
 * Columns as in the event file: t, dur in ns; alloc the allocation's number, -1 none; src, dst UVM_ROW_CPU or the GPU's number,
 * -1 empty; what offset, value and flags mean depends on the kind. */
#ifndef UVM_ROWS_H
#define UVM_ROWS_H
#include "core/event.h"
#include "report/places.h"

#define UVM_ROW_CPU 4294967295ll
enum { UVM_ROW_THRASHING = 2 }; /* flags of a REMOTE_MAP that thrashing control decided */
enum uvm_row_kind {
  /* kinds that recordings have too */
  UVM_ROW_H2D,
  UVM_ROW_D2H,
  UVM_ROW_D2D,
  UVM_ROW_GPU_FAULT,
  UVM_ROW_CPU_FAULT,
  UVM_ROW_THRASH,
  UVM_ROW_THROTTLE,
  UVM_ROW_REMOTE_MAP,
  UVM_ROW_SECTION,
  /* further ones, ours */
  UVM_ROW_H2H,
  UVM_ROW_FAULT,
  UVM_ROW_POPULATE,
  UVM_ROW_DUPLICATE,
  UVM_ROW_COLLAPSE,
  UVM_ROW_MAP,
  UVM_ROW_UNMAP,
  UVM_ROW_REVOKE,
  UVM_ROW_EVICT,
  UVM_ROW_UNPIN,
  UVM_ROW_PREFETCH,
  UVM_ROW_ADVISE,
  UVM_ROW_KERNEL,
  UVM_ROW_INTERRUPTED, /* the run was stopped here: the rows are a part of it */
  UVM_ROW_KINDS,
};
extern const char *const uvm_row_names[UVM_ROW_KINDS];
struct uvm_row {
  int64_t t, dur;
  uint64_t offset, value, flags;
  int64_t alloc, src, dst;
  const char *name; /* SECTION; belongs to the rows */
  size_t order;     /* in which it came; for SECTION, when it began */
  uint8_t kind;
};
struct uvm_rows {
  struct uvm_places places;
  UVM_VEC(struct uvm_row) rows;
  UVM_VEC(char *) names;
  UVM_VEC(size_t) open; /* rows of the sections now open */
};
void uvm_rows_init(struct uvm_rows *r, const struct uvm_places *places); /* places NULL: only for reading files */
void uvm_rows_free(struct uvm_rows *r);
void uvm_rows_event(void *rows, const struct uvm_event *e); /* the observer's function */
/* Marks rows of a run that was stopped at time t. */
void uvm_rows_interrupted(struct uvm_rows *r, uvm_ns t);
/* By t, ties in service order. */
void uvm_rows_sort(struct uvm_rows *r);
int uvm_rows_write(struct uvm_rows *r, const char *path, struct uvm_error *e);
/* Appends the rows of an event file; kinds it does not know are left out. */
int uvm_rows_read(struct uvm_rows *r, const char *path, struct uvm_error *e);
#endif
