/* A trace held in memory, decoded and checked. */
#ifndef UVM_TRACES_HELD_H
#define UVM_TRACES_HELD_H
#include "trace.h"

struct uvm_held {
  UVM_VEC(struct uvm_trace_record) records;
  UVM_VEC(void *) owned;                        /* what they point to */
  size_t at;                                    /* the next to be read */
};
void uvm_held_add(struct uvm_held *h, const struct uvm_trace_record *r);        /* copies all of it */
void uvm_held_free(struct uvm_held *h);
#endif
