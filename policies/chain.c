/* What is behind chain.h. */
#include "chain.h"
#include "uvmsim/policy.h"
#include <assert.h>

uint32_t uvm__chain_add(struct uvm__chain *c, uint32_t thing) {
  if (!c->free && c->n == c->cap) {
    uint32_t cap = c->cap ? 2 * c->cap : 64;
    assert(cap > c->cap);
    c->v = uvm_mem_resize(c->v, c->cap * sizeof *c->v, cap * sizeof *c->v);
    c->cap = cap;
    if (!c->n) c->n = 1;
  }
  uint32_t slot = c->free;
  if (slot)
    c->free = c->v[slot].newer;
  else
    slot = c->n++;
  c->v[slot].thing = thing;
  uvm__chain_append(c->v, slot);
  c->held++;
  return slot;
}

void uvm__chain_free(struct uvm__chain *c) {
  uvm_mem_free(c->v);
  *c = (struct uvm__chain){0};
}
