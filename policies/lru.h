/* Things by last use: exact LRU of as many as there are. A thing is a number that the owner gives it and has a slot for as long as
 * it is in the list; the owner keeps the slot's number. Slots are linked by index, so a use costs a few writes and a million things
 * take 12 MB. */
#ifndef UVM_LRU_H
#define UVM_LRU_H
#include <stdbool.h>
#include <stdint.h>

struct uvm__lru {
  struct uvm__lru_slot { uint32_t newer, older, thing; } *v;     /* [0] is both ends, and no slot; a free slot's `newer` is the next
                                                                    free one */
  uint32_t n, cap, free;
};

/* The thing becomes the newest. Returns its slot; 0: no memory, or too many things. */
uint32_t uvm__lru_add(struct uvm__lru *l, uint32_t thing);
void uvm__lru_free(struct uvm__lru *l);

static inline void uvm__lru_unlink(struct uvm__lru_slot *v, uint32_t slot) {
  v[v[slot].older].newer = v[slot].newer;
  v[v[slot].newer].older = v[slot].older;
}
static inline void uvm__lru_append(struct uvm__lru_slot *v, uint32_t slot) {
  v[slot].newer = 0;
  v[slot].older = v[0].older;
  v[v[0].older].newer = slot;
  v[0].older = slot;
}
/* Used now: it becomes the newest. */
static inline void uvm__lru_use(struct uvm__lru *l, uint32_t slot) {
  if (l->v[0].older == slot) return;
  uvm__lru_unlink(l->v, slot);
  uvm__lru_append(l->v, slot);
}
static inline void uvm__lru_remove(struct uvm__lru *l, uint32_t slot) {
  uvm__lru_unlink(l->v, slot);
  l->v[slot].newer = l->free;
  l->free = slot;
}
/* Slots in order of use; 0: no more. */
static inline uint32_t uvm__lru_oldest(const struct uvm__lru *l) { return l->v ? l->v[0].newer : 0; }
static inline uint32_t uvm__lru_newer(const struct uvm__lru *l, uint32_t slot) { return l->v[slot].newer; }
#endif
