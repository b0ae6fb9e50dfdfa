/* A chain of numbers, each in a slot from which it can be taken wherever it stands: by last use if what is used is renewed,
 * first in first out if not. The owner of a thing keeps its slot's number. Slots are linked by index, so a renewal costs a
 * few writes and a million things take 12 MB. */
#ifndef UVM_CHAIN_H
#define UVM_CHAIN_H
#include <stdbool.h>
#include <stdint.h>

struct uvm__chain {
  struct uvm__slot {
    uint32_t newer, older, thing;
  } *v;                         /* [0] is both ends, and no slot; a free slot's `newer` is the next free one */
  uint32_t n, cap, free, held;  /* held: how many things are in it */
};

/* The thing becomes the newest. Returns its slot, which is never 0. */
uint32_t uvm__chain_add(struct uvm__chain *c, uint32_t thing);
void uvm__chain_free(struct uvm__chain *c);

static inline void uvm__chain_unlink(struct uvm__slot *v, uint32_t slot) {
  v[v[slot].older].newer = v[slot].newer;
  v[v[slot].newer].older = v[slot].older;
}
static inline void uvm__chain_append(struct uvm__slot *v, uint32_t slot) {
  v[slot].newer = 0;
  v[slot].older = v[0].older;
  v[v[0].older].newer = slot;
  v[0].older = slot;
}
/* It becomes the newest again. */
static inline void uvm__chain_renew(struct uvm__chain *c, uint32_t slot) {
  if (c->v[0].older == slot) return;
  uvm__chain_unlink(c->v, slot);
  uvm__chain_append(c->v, slot);
}
static inline void uvm__chain_remove(struct uvm__chain *c, uint32_t slot) {
  uvm__chain_unlink(c->v, slot);
  c->v[slot].newer = c->free;
  c->free = slot;
  c->held--;
}
/* Slots from the oldest on; 0: no more. */
static inline uint32_t uvm__chain_oldest(const struct uvm__chain *c) { return c->v ? c->v[0].newer : 0; }
static inline uint32_t uvm__chain_newer(const struct uvm__chain *c, uint32_t slot) { return c->v[slot].newer; }
#endif
