/* Records that were decoded once and are kept. */
#include "held.h"

static void *own(struct uvm_held *h, void *p) { return UVM_PUSH(&h->owned) = p; }
static const char *own_string(struct uvm_held *h, const char *s) { return s ? own(h, uvm_copy_string(s)) : NULL; }

void uvm_held_add(struct uvm_held *h, const struct uvm_trace_record *r) {
  struct uvm_trace_record *k = &UVM_PUSH(&h->records);
  *k = *r;
  k->id = own_string(h, r->id);
  k->label = own_string(h, r->label);
  size_t bytes = r->naccesses * sizeof *r->accesses;
  if (bytes) k->accesses = memcpy(own(h, uvm_mem(bytes)), r->accesses, bytes);
}

void uvm_held_free(struct uvm_held *h) {
  if (!h) return;
  for (size_t i = 0; i < h->owned.n; i++) uvm_mem_free(h->owned.v[i]);
  uvm_mem_free(h->owned.v);
  uvm_mem_free(h->records.v);
  uvm_mem_free(h);
}
