/* What is behind ghost.h: linear probing, never more than half full. */
#include "ghost.h"

uint64_t uvm__ghost_key(const uvm_view *v, uvm_backing_id k) {
  const struct uvm_backing_info *b = uvm_backing(v, k);
  return b->block ? (uint64_t)b->block << 16 | b->first : 0;
}

static uint32_t home(const struct uvm__ghosts *g, uint64_t key) { return (uint32_t)(key * 0x9e3779b97f4a7c15 >> 32) & (g->cap - 1); }

/* Where the key is in the table, or the empty place where it belongs. */
static uint32_t place(const struct uvm__ghosts *g, uint64_t key) {
  uint32_t i = home(g, key);
  while (g->table[i] && g->key[g->table[i]] != key) i = (i + 1) & (g->cap - 1);
  return i;
}

uint32_t uvm__ghost_find(const struct uvm__ghosts *g, uint64_t key) { return g->cap && key ? g->table[place(g, key)] : 0; }

uint32_t uvm__ghost_of(const struct uvm__ghosts *g, const uvm_view *v, uvm_block_id b, const uvm_mask *pages) {
  const struct uvm_block_info *in = b && g->chain.held ? uvm_block(v, b) : NULL;
  uint32_t slot = 0;
  if (!in) return 0;
  for (int p = uvm_mask_next(pages, 0); p >= in->first && !slot; p--) slot = uvm__ghost_find(g, (uint64_t)b << 16 | (unsigned)p);
  return slot;
}

static void grow(struct uvm__ghosts *g) {
  uint32_t cap = g->cap ? 2 * g->cap : 64;
  g->key = uvm_mem_resize(g->key, g->cap * sizeof *g->key, cap * sizeof *g->key);
  uvm_mem_free(g->table);
  g->table = uvm_mem(cap * sizeof *g->table);
  g->cap = cap;
  for (uint32_t s = uvm__chain_oldest(&g->chain); s; s = uvm__chain_newer(&g->chain, s)) g->table[place(g, g->key[s])] = s;
}

void uvm__ghost_add(struct uvm__ghosts *g, uint64_t key) {
  if (!key || uvm__ghost_find(g, key)) return;
  if (2 * (g->chain.held + 1) >= g->cap) grow(g);
  uint32_t slot = uvm__chain_add(&g->chain, 0);
  g->key[slot] = key;
  g->table[place(g, key)] = slot;
}

/* What probing would no longer reach over the gap moves into it. */
void uvm__ghost_remove(struct uvm__ghosts *g, uint32_t slot) {
  uint32_t last = g->cap - 1, gap = place(g, g->key[slot]);
  for (uint32_t i = (gap + 1) & last; g->table[i]; i = (i + 1) & last) {
    uint32_t from = home(g, g->key[g->table[i]]);
    if (((i - from) & last) < ((i - gap) & last)) continue;
    g->table[gap] = g->table[i];
    gap = i;
  }
  g->table[gap] = 0;
  uvm__chain_remove(&g->chain, slot);
}

void uvm__ghosts_free(struct uvm__ghosts *g) {
  uvm__chain_free(&g->chain);
  uvm_mem_free(g->key);
  uvm_mem_free(g->table);
}
