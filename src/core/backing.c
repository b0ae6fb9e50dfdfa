#include "core/space.h"
#include <assert.h>

/* -- room on the nodes -- */

void uvm__node_take(struct uvm_space *s, uvm_node n, uint64_t bytes) {
  if (!uvm_node_limited(s, n)) return;
  assert(bytes <= s->nodes[n].free);
  s->nodes[n].free -= bytes;
  uint64_t held = s->nodes[n].capacity - s->nodes[n].free;
  if (held > s->peak[n]) s->peak[n] = held;
}

void uvm__node_give(struct uvm_space *s, uvm_node n, uint64_t bytes) {
  if (!uvm_node_limited(s, n)) return;
  s->nodes[n].free += bytes;
  assert(s->nodes[n].free <= s->nodes[n].capacity);
}

/* -- lists: doubly linked by id -- */

static void list_remove(struct uvm_space *s, struct uvm_backing *k) {
  if (k->list == UVM_NONE) return;
  struct uvm_list_ends *l = &s->lists[k->info.node][k->list];
  if (k->older)
    s->backings.v[k->older]->newer = k->newer;
  else
    l->oldest = k->newer;
  if (k->newer)
    s->backings.v[k->newer]->older = k->older;
  else
    l->newest = k->older;
  k->older = k->newer = 0;
  k->list = UVM_NONE;
}

static void list_append(struct uvm_space *s, struct uvm_backing *k, uint8_t list) {
  assert(k->list == UVM_NONE && list <= UVM_L_UNUSED);
  struct uvm_list_ends *l = &s->lists[k->info.node][list];
  k->list = list;
  k->older = l->newest;
  if (l->newest)
    s->backings.v[l->newest]->newer = k->id;
  else
    l->oldest = k->id;
  l->newest = k->id;
}

void uvm_backing_move(struct uvm_space *s, uvm_backing_id id, uint8_t list, uvm_ns now) {
  struct uvm_backing *k = uvm_backing_get(s, id);
  assert(k);
  list_remove(s, k);
  if (list == UVM_NONE) return;
  list_append(s, k, list);
  k->info.serviced = now;
}

/* -- life -- */

uvm_backing_id uvm_backing_create(struct uvm_space *s, uvm_node n, uint64_t bytes) {
  assert(uvm_node_limited(s, n) && bytes && bytes % UVM_PAGE == 0);
  struct uvm_backing *k = uvm_mem(sizeof *k);
  k->id = (uvm_backing_id)s->backings.n;
  k->info.node = n;
  k->info.bytes = bytes;
  k->list = UVM_NONE;
  UVM_PUSH(&s->backings) = k;
  uvm__node_take(s, n, bytes);
  list_append(s, k, UVM_L_UNUSED);
  return k->id;
}

/* info.block: the only block that has pages here. */
static void find_owner(struct uvm_backing *k) {
  k->info.block = 0, k->info.first = 0;
  if (!k->npieces) return;
  for (uint32_t i = 1; i < k->npieces; i++)
    if (k->pieces[i].block != k->pieces[0].block) return;
  k->info.block = k->pieces[0].block->id;
  k->info.first = k->pieces[0].first;
}

/* Most backings hold one piece for ever, so room starts at one. */
static void piece_add(struct uvm_backing *k, struct uvm_block *b, int first, int pages) {
  struct uvm_piece *last = k->npieces ? &k->pieces[k->npieces - 1] : NULL;
  if (last && last->block == b && last->first + last->pages == first) {
    last->pages = (uint16_t)(last->pages + pages);
    return;
  }
  if (k->npieces == k->room) {
    uint32_t room = k->room ? k->room * 2 : 1;
    k->pieces = uvm_mem_resize(k->pieces, k->room * sizeof *k->pieces, room * sizeof *k->pieces);
    k->room = room;
  }
  k->pieces[k->npieces++] = (struct uvm_piece){b, (uint16_t)first, (uint16_t)pages};
}

static bool has_page_ids(const struct uvm_block *b, uvm_node n) { return b->page_backing && b->page_backing[n]; }

static void set_page_ids(struct uvm_space *s, struct uvm_block *b, uvm_node n, int first, int pages, uvm_backing_id id) {
  if (!b->page_backing) b->page_backing = uvm_mem(s->topology.nnodes * sizeof *b->page_backing);
  if (!b->page_backing[n]) b->page_backing[n] = uvm_mem(b->pages * sizeof(uint32_t));
  for (int p = first; p < first + pages; p++) b->page_backing[n][p - b->first] = id;
}

void uvm_backing_attach(struct uvm_space *s, uvm_backing_id id, struct uvm_block *b, int first, int pages) {
  struct uvm_backing *k = uvm_backing_get(s, id);
  assert(k && pages > 0 && first >= b->first && first + pages <= b->first + b->pages);
  uvm_node n = k->info.node;
  for (int p = first; p < first + pages; p++) assert(!uvm_page_backing(b, n, p));
  if (first == b->first && pages == b->pages)
    b->backing[n] = id;
  else
    set_page_ids(s, b, n, first, pages, id);
  piece_add(k, b, first, pages);
  find_owner(k);
}

void uvm_backing_destroy(struct uvm_space *s, uvm_backing_id id) {
  struct uvm_backing *k = uvm_backing_get(s, id);
  assert(k && !k->info.resident);
  uvm_node n = k->info.node;
  if (s->hooks.backing_fini) s->hooks.backing_fini(s->hooks.ctx, k);
  for (uint32_t i = 0; i < k->npieces; i++) {
    struct uvm_piece *p = &k->pieces[i];
    if (p->block->backing[n] == id)
      p->block->backing[n] = 0;
    else
      set_page_ids(s, p->block, n, p->first, p->pages, 0);
  }
  list_remove(s, k);
  uvm__node_give(s, n, k->info.bytes);
  s->backings.v[id] = NULL;
  uvm_mem_free(k->pieces);
  uvm_mem_free(k);
}

/* -- looking -- */

uvm_backing_id uvm_page_backing(const struct uvm_block *b, uvm_node n, int page) {
  if (b->backing[n]) return b->backing[n];
  return has_page_ids(b, n) ? b->page_backing[n][page - b->first] : 0;
}

bool uvm_backing_holds(const struct uvm_backing *k, const struct uvm_block *b) {
  for (uint32_t i = 0; i < k->npieces; i++)
    if (k->pieces[i].block == b) return true;
  return false;
}

uvm_mask uvm_piece_resident(const struct uvm_space *s, const struct uvm_piece *p, uvm_node n) {
  return uvm_mask_both(uvm_mask_range(p->first, p->first + p->pages), uvm_block_resident(s, p->block, n));
}

const struct uvm_backing_info *uvm_backing_look(struct uvm_space *s, uvm_backing_id id) {
  struct uvm_backing *k = uvm_backing_get(s, id);
  if (!k) return NULL;
  k->info.dirty = k->info.busy = false;
  for (uint32_t i = 0; i < k->npieces; i++) {
    const struct uvm_piece *p = &k->pieces[i];
    uvm_mask m = uvm_piece_resident(s, p, k->info.node);
    k->info.dirty |= uvm_mask_meets(&m, uvm_block_dirty(s, p->block));
    k->info.busy |= p->block->busy_until != 0;
  }
  return &k->info;
}

/* -- following the blocks -- */

void uvm__backing_account(struct uvm_space *s, struct uvm_block *b, uvm_node n, const uvm_mask *before) {
  if (!uvm_node_limited(s, n)) return;
  uvm_mask came = *uvm_block_resident(s, b, n), left = *before;
  uvm_mask_andnot(&came, before);
  uvm_mask_andnot(&left, uvm_block_resident(s, b, n));
  if (b->backing[n]) {
    struct uvm_backing_info *i = &s->backings.v[b->backing[n]]->info;
    i->resident += (uint64_t)uvm_mask_count(&came) * UVM_PAGE;
    i->resident -= (uint64_t)uvm_mask_count(&left) * UVM_PAGE;
    assert(i->resident <= i->bytes);
    return;
  }
  for (int p = -1; (p = uvm_mask_next(&came, p + 1)) >= 0;) s->backings.v[uvm_page_backing(b, n, p)]->info.resident += UVM_PAGE;
  for (int p = -1; (p = uvm_mask_next(&left, p + 1)) >= 0;) s->backings.v[uvm_page_backing(b, n, p)]->info.resident -= UVM_PAGE;
}

static void forget(struct uvm_space *s, uvm_backing_id id, const struct uvm_block *b) {
  struct uvm_backing *k = uvm_backing_get(s, id);
  if (!k) return;
  uint32_t n = 0;
  for (uint32_t i = 0; i < k->npieces; i++)
    if (k->pieces[i].block != b) k->pieces[n++] = k->pieces[i];
  k->npieces = n;
  find_owner(k);
  if (!n) uvm_backing_destroy(s, id);
}

void uvm__backing_leave(struct uvm_space *s, struct uvm_block *b) {
  for (uvm_node n = 0; n < s->topology.nnodes; n++) {
    uvm_mask before = *uvm_block_resident(s, b, n);
    *uvm_block_resident(s, b, n) = (uvm_mask){{0}};
    uvm__backing_account(s, b, n, &before);
    if (b->backing[n]) forget(s, b->backing[n], b);
    if (!has_page_ids(b, n)) continue;
    for (int i = 0; i < b->pages; i++) forget(s, b->page_backing[n][i], b);
  }
}

/* One piece of b becomes at most two: what lies below hi and what does not. */
static void cut_pieces(struct uvm_backing *k, const struct uvm_block *b, struct uvm_block *lo, struct uvm_block *hi) {
  uint32_t n = k->npieces;
  for (uint32_t i = 0; i < n; i++) {
    struct uvm_piece *p = &k->pieces[i];
    if (p->block != b) continue;
    int end = p->first + p->pages;
    p->block = p->first < hi->first ? lo : hi;
    if (p->first >= hi->first || end <= hi->first) continue;
    p->pages = (uint16_t)(hi->first - p->first);
    piece_add(k, hi, hi->first, end - hi->first);
  }
  find_owner(k);
}

void uvm__backing_cut(struct uvm_space *s, struct uvm_block *b, struct uvm_block *lo, struct uvm_block *hi) {
  for (uvm_node n = 0; n < s->topology.nnodes; n++) {
    uvm_backing_id whole = b->backing[n];
    lo->backing[n] = hi->backing[n] = whole;
    if (whole) cut_pieces(s->backings.v[whole], b, lo, hi);
    if (!has_page_ids(b, n)) continue;
    for (int p = b->first; p < b->first + b->pages; p++) {
      uvm_backing_id id = b->page_backing[n][p - b->first];
      if (!id) continue;
      set_page_ids(s, p < hi->first ? lo : hi, n, p, 1, id);
      cut_pieces(s->backings.v[id], b, lo, hi); /* its pieces are found once: then none is of b any more */
    }
  }
}
