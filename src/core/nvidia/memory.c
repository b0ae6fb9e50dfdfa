/* Physical memory. A block of 2 MiB takes one root chunk of 2 MiB at the first touch of any page. Smaller blocks take, page
 * group by page group, the largest naturally aligned sub-chunk, 64 KiB or 4 KiB, from root chunks that they share. How full
 * a shared root chunk is, is counted; where in it a sub-chunk lies is not modelled. A chunk stays with its block until the
 * block dies or it is evicted. */
#include "core/nvidia/nvidia.h"
#include <assert.h>

static bool whole(const struct uvm_block *b) { return b->pages == UVM_BLOCK_PAGES; }

void uvm__nv_chunk_serviced(struct uvm_core *c, uvm_backing_id k, const struct uvm_block *b, uvm_proc p, uvm_ns now) {
  uvm_backing_move(c->space, k, UVM_L_USED, now);
  struct uvm_told t = {.kind = UVM_T_SERVICED, .proc = p, .range = b->range->id, .block = b->id, .backing = k, .begin = now, .end = now};
  t.src = t.dst = c->space->backings.v[k]->info.node;
  uvm_tell(c->host, &t, now);
}

void uvm__nv_settle(struct uvm_core *c, struct uvm_block *b, uint32_t serviced, uvm_proc p, uvm_ns now) {
  if (!whole(b)) return;
  for (uvm_node n = 0; n < c->space->topology.nnodes; n++) {
    uvm_backing_id k = b->backing[n];
    if (!k) continue;
    bool empty = uvm_mask_empty(uvm_block_resident(c->space, b, n));
    if (!empty && serviced >> n & 1)
      uvm__nv_chunk_serviced(c, k, b, p, now);
    else if (empty && c->space->backings.v[k]->list == UVM_L_USED)
      uvm_backing_move(c->space, k, UVM_L_UNUSED, now);
  }
}

/* -- sub-chunks -- */

struct group {
  int first, pages;
};

static struct group group_of(const struct uvm_block *b, int page) {
  int big = page & ~(NV_BIG_PAGES - 1);
  bool fits = big >= b->first && big + NV_BIG_PAGES <= b->first + b->pages;
  return fits ? (struct group){big, NV_BIG_PAGES} : (struct group){page, 1};
}

static int room_in(const struct uvm_backing *k) {
  int used = 0;
  for (uint32_t i = 0; i < k->npieces; i++) used += k->pieces[i].pages;
  return UVM_BLOCK_PAGES - used;
}

/* A shared root chunk with room, or 0. Dead and full ones are dropped from the list on the way. */
static uvm_backing_id partial_root(struct uvm_core *c, uvm_node n, int pages) {
  struct nv_state *st = uvm__nv_state(c);
  uvm_backing_id found = 0;
  size_t kept = 0;
  for (size_t i = 0; i < st->partial[n].n; i++) {
    uvm_backing_id id = st->partial[n].v[i];
    const struct uvm_backing *k = uvm_backing_get(c->space, id);
    int room = k ? room_in(k) : 0;
    if (!room) continue;
    st->partial[n].v[kept++] = id;
    if (!found && room >= pages && k->list != UVM_NONE) found = id;
  }
  st->partial[n].n = kept;
  return found;
}

static uvm_backing_id new_root(struct uvm_core *c, uvm_node n) {
  if (c->space->nodes[n].free < UVM_BLOCK_BYTES) return 0;
  return uvm_backing_create(c->space, n, UVM_BLOCK_BYTES);
}

static bool allocate_group(struct uvm_core *c, struct uvm_block *b, uvm_node n, struct group g, uvm_proc p, uvm_ns now) {
  uvm_backing_id k = partial_root(c, n, g.pages);
  if (!k && (k = new_root(c, n))) UVM_PUSH(&uvm__nv_state(c)->partial[n]) = k;
  if (!k) return false;
  uvm_backing_attach(c->space, k, b, g.first, g.pages);
  uvm__nv_chunk_serviced(c, k, b, p, now);
  return true;
}

/* -- chunks for a decision -- */

static bool allocate(struct uvm_core *c, struct uvm_block *b, uvm_node n, const uvm_mask *pages, uvm_proc p, uvm_ns now) {
  if (whole(b)) {
    if (b->backing[n]) return true;
    uvm_backing_id k = new_root(c, n);
    if (!k) return false;
    uvm_backing_attach(c->space, k, b, b->first, b->pages);
    uvm__nv_chunk_serviced(c, k, b, p, now);
    return true;
  }
  for (int i = -1; (i = uvm_mask_next(pages, i + 1)) >= 0;)
    if (!uvm_page_backing(b, n, i) && !allocate_group(c, b, n, group_of(b, i), p, now)) return false;
  return true;
}

enum nv_room uvm__nv_find_room(struct uvm_core *c, struct nv_service *v, uvm_ns now) {
  for (uint32_t left = v->d.nodes; left; left &= left - 1) {
    uvm_node n = (uvm_node)__builtin_ctz(left);
    if (!uvm_node_limited(c->space, n)) continue;
    uvm_mask coming = v->d.to[n];
    uvm_mask_andnot(&coming, uvm_block_resident(c->space, v->block, n));
    while (!uvm_mask_empty(&coming) && !allocate(c, v->block, n, &coming, v->asker, now)) {
      enum nv_room room = uvm__nv_evict_begin(c, v, n, &coming, now);
      if (room != NV_ROOM) return room;
    }
  }
  return NV_ROOM;
}
