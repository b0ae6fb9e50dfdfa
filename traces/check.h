/* What a trace promises whatever its format: ids known and live, ranges inside their allocations, processors declared,
 * sections closed, events recorded before they are waited for. Also fills in what a record leaves out. */
#ifndef UVM_TRACES_CHECK_H
#define UVM_TRACES_CHECK_H
#include "grammar.h"
#include "input.h"
#include "names.h"

struct uvm_check_alloc { uint32_t id; bool live, managed; uint64_t bytes; int64_t line; };   /* line: of the alloc, or of the free */
struct uvm_check {
  const struct uvm_input *in;                   /* for messages */
  struct uvm_names ids, events;
  UVM_VEC(uint32_t) last;                       /* by id: the number of its latest allocation */
  UVM_VEC(struct uvm_check_alloc) allocs;       /* by number */
  UVM_VEC(int64_t) sections;                    /* lines of the open ones */
  unsigned procs;                               /* declared so far */
  uint64_t page;                                /* 0: not given yet */
  uint64_t bytes;                               /* allocated, freed or not */
};
/* The number that an id means now: of its latest allocation, live or freed. */
bool uvm_check_find(const struct uvm_check *c, const char *id, uint32_t *number);
int uvm_check_record(struct uvm_check *c, struct uvm_trace_record *r, struct uvm_error *e);
int uvm_check_end(const struct uvm_check *c, struct uvm_error *e);
void uvm_check_clear(struct uvm_check *c);      /* frees everything but in; ready for use again */
#endif
