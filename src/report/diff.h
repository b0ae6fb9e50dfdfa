/* Diff: the first decision in which two streams of events part. Decisions are compared stream by stream (CPU faults, GPU
 * faults, transfers ...), each in order and without times: what else happened in between does not matter, and a recording's
 * clock need not be ours. */
#ifndef UVM_DIFF_H
#define UVM_DIFF_H
#include "report/rows.h"

enum { UVM_DIFF_STREAMS = 10 };
struct uvm_diff_stream {
  const char *name;
  bool compared; /* false: one side is a recording, which has no such rows */
  bool same;
  size_t first; /* index of the first difference, when not same */
  UVM_VEC(const struct uvm_row *) side[2];
};
struct uvm_diff {
  const char *name[2];
  struct uvm_diff_stream stream[UVM_DIFF_STREAMS];
  int first;        /* the stream that parts first; -1: none does */
  uvm_ns sim_ns[2]; /* how long each side took, for the reader; UVM_NEVER: unknown */
};
/* Both sides are sorted here; they must outlive the diff. */
void uvm_diff_make(struct uvm_diff *d, struct uvm_rows *a, struct uvm_rows *b, const char *a_name, const char *b_name);
void uvm_diff_free(struct uvm_diff *d);
void uvm_diff_print(const struct uvm_diff *d, FILE *f);
int uvm_diff_json(const struct uvm_diff *d, const char *path, struct uvm_error *e);
#endif
