/* What is behind lru.h. */
#include "lru.h"
#include <stdlib.h>

static bool grow(struct uvm__lru *l) {
  if (l->cap > UINT32_MAX / 2) return false;
  uint32_t cap = l->cap ? 2 * l->cap : 64;
  struct uvm__lru_slot *v = realloc(l->v, cap * sizeof *v);
  if (!v) return false;
  if (!l->v) v[0] = (struct uvm__lru_slot){0}, l->n = 1;
  l->v = v;
  l->cap = cap;
  return true;
}

uint32_t uvm__lru_add(struct uvm__lru *l, uint32_t thing) {
  uint32_t slot = l->free;
  if (slot)
    l->free = l->v[slot].newer;
  else if (l->n < l->cap || grow(l))
    slot = l->n++;
  else
    return 0;
  l->v[slot].thing = thing;
  uvm__lru_append(l->v, slot);
  return slot;
}

void uvm__lru_free(struct uvm__lru *l) {
  free(l->v);
  *l = (struct uvm__lru){0};
}
