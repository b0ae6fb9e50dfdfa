/* What left and may come back: keys by when they left, found by hash. A key is the place of a backing, its block and the first
 * page there, for ids die with their objects. A mark comes with each key. */
#ifndef UVM_GHOST_H
#define UVM_GHOST_H
#include "chain.h"
#include "uvmsim/policy.h"

struct uvm__ghosts {
  struct uvm__chain chain;                      /* things: the marks */
  uint64_t *key;                                /* by slot */
  uint32_t *table, cap;                         /* slots by hash, 0: none; cap: of both, a power of two */
};

/* 0: several blocks share the backing, which has no place then. */
uint64_t uvm__ghost_key(const uvm_view *v, uvm_backing_id k);
uint32_t uvm__ghost_find(const struct uvm__ghosts *g, uint64_t key);     /* its slot in the chain; 0: not there */
/* The ghost of what will hold these pages of the block: the last that begins at or before the first of them. */
uint32_t uvm__ghost_of(const struct uvm__ghosts *g, const uvm_view *v, uvm_block_id b, const uvm_mask *pages);
void uvm__ghost_add(struct uvm__ghosts *g, uint64_t key);        /* as the newest, mark 0; nothing for key 0 or one that is there */
void uvm__ghost_remove(struct uvm__ghosts *g, uint32_t slot);
void uvm__ghosts_free(struct uvm__ghosts *g);
#endif
