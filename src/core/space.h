/* The VA space: pure state. No time of its own, no I/O, no policy.
 *
 *   alloc    what the program allocated; numbered 0, 1, 2 ... in the order of its alloc records
 *   range    an allocation or a part of one with one set of advice (advice on a part splits)
 *   block    the part of a range inside one 2 MiB-aligned window: the unit of locking and service. Mask bit 0 is the
 *            window's first page whatever page the block starts at; pages [first, first + pages) exist
 *   backing  one physical allocation on one node and the unit of eviction; lives on its node's USED or UNUSED list
 *
 * Blocks are made on first use, so cost grows with the pages touched. Everything here is changed by committing plans
 * (plan.h) and by the calls below; nobody else writes a field. Invariants, enforced by uvm_block_check:
 *   a page is resident on one node, or on several and then it is in `duplicated`
 *   resident pages of a limited node have a backing there; backings and device allocations stay within its capacity.
 *     A capacity of 0 or UINT64_MAX means unlimited: such a node has no backings
 *   a processor maps only pages resident on a node it reaches; write-mapped pages are not duplicated (a copy that a
 *     processor may write would be lost)
 *   mapped[ATOMIC] is in mapped[WRITE] is in mapped[READ] */
#ifndef UVM_SPACE_H
#define UVM_SPACE_H
#include "base/base.h"
#include <assert.h>

enum uvm_kind { UVM_MANAGED, UVM_DEVICE, UVM_PINNED, UVM_HOST };
const char *uvm_kind_name(enum uvm_kind kind);  /* as traces write it: "managed" */
enum uvm_level { UVM_MAP_READ, UVM_MAP_WRITE, UVM_MAP_ATOMIC, UVM_MAP_LEVELS };   /* of a mapping; rising */

struct uvm_block;
struct uvm_range {
  struct uvm_range_info info;                   /* what policies see; info.bytes is this part's */
  uvm_range_id id;
  struct uvm_alloc *alloc;
  uint64_t offset;                              /* of the part, in the allocation */
  bool no_duplication;                          /* read duplication explicitly disabled */
};
struct uvm_alloc {
  uint32_t number;
  char *id, *label;
  uint64_t base, bytes;                         /* virtual address, 4 KiB aligned */
  enum uvm_kind kind;
  uvm_node node;                                /* of DEVICE (its GPU's home), PINNED and HOST (the CPU's home) */
  bool live;
  UVM_VEC(struct uvm_range *) ranges;           /* ascending, covering; one for unmanaged kinds too */
  struct uvm_block **blocks;                    /* by window: (address >> 21) - (base >> 21); NULL until used */
  size_t nwindows;
};
struct uvm_block {
  uvm_block_id id;
  uint16_t first, pages;
  struct uvm_block_info info;                   /* what policies see */
  struct uvm_range *range;
  struct uvm_block *split;                      /* next block of the same window: advice splits inside it */
  uvm_ns busy_until;                            /* a plan holds the block until then; 0 when committed */
  uint32_t *backing;                            /* [nnodes] the backing that holds all pages of the block, 0 none */
  uint32_t **page_backing;                      /* NULL or [nnodes]: NULL or a backing id for each page from `first` on */
  void *driver_state;                           /* the driver's; freed by its block_fini */
  void *policy_state;                           /* the policy host's */
  uvm_mask mask[];                              /* use the accessors */
};
struct uvm_piece { struct uvm_block *block; uint16_t first, pages; };   /* pages of a block that a backing holds */
struct uvm_backing {
  uvm_backing_id id;
  struct uvm_backing_info info;                 /* info.block 0 while several blocks share it; info.resident bytes;
                                                   dirty and busy only after uvm_backing_look */
  struct uvm_piece *pieces;
  uint32_t npieces, room;
  uvm_backing_id newer, older;                  /* service order on its list */
  uint8_t list;                                 /* enum uvm_list, or UVM_NONE: on none (pinned, being evicted) */
  void *policy_state;
};
struct uvm_list_ends { uvm_backing_id oldest, newest; };
/* Called before the object goes, so that whoever keeps state on it can free it. NULL: nobody does. */
struct uvm_space_hooks {
  void *ctx;
  void (*block_fini)(void *ctx, struct uvm_block *b);
  void (*backing_fini)(void *ctx, struct uvm_backing *k);
};
struct uvm_space {
  struct uvm_topology topology;                 /* nodes[].free is kept up to date here */
  struct uvm_node_info nodes[UVM_MAX_NODES];
  struct uvm_proc_info procs[UVM_MAX_PROCS];
  UVM_VEC(struct uvm_alloc *) allocs;           /* by number; freed ones stay, not live, without blocks */
  UVM_VEC(struct uvm_alloc *) by_address;       /* live ones, ascending */
  UVM_VEC(struct uvm_range *) ranges;           /* by id; [0] is NULL, dead ids are NULL */
  UVM_VEC(struct uvm_block *) blocks;           /* by id, likewise */
  UVM_VEC(struct uvm_backing *) backings;       /* by id, likewise. Ids are never used again */
  struct uvm_list_ends lists[UVM_MAX_NODES][2];
  uint64_t peak[UVM_MAX_NODES];                 /* of limited nodes: most bytes of backings and device allocations ever held */
  struct uvm_space_hooks hooks;                 /* set by the policies' host */
  struct uvm_slab block_slab;
};

/* Copies the topology but for the names; all memory is free. */
struct uvm_space *uvm_space_create(const struct uvm_topology *t);
void uvm_space_destroy(struct uvm_space *s);
static inline bool uvm_node_limited(const struct uvm_space *s, uvm_node n) {
  return s->nodes[n].capacity && s->nodes[n].capacity != UINT64_MAX;
}

/* New allocation with the next number. base UVM_NEVER: the next free 2 MiB-aligned address. Fails (UVM_EINPUT) on an
 * overlap, an unaligned base, zero or absurd bytes, no room on the node for DEVICE. Whether `id` is free is the caller's
 * matter. */
int uvm_space_alloc(struct uvm_space *s, const char *id, const char *label, uint64_t base, uint64_t bytes,
                    enum uvm_kind kind, uvm_node node, struct uvm_alloc **out, struct uvm_error *e);
/* Everything of the allocation dies: blocks, backings (freed), ranges. No block may be busy. */
void uvm_space_free(struct uvm_space *s, struct uvm_alloc *a);
/* Makes [offset, offset + bytes) ranges of their own by splitting at both ends (4 KiB aligned outwards by the caller).
 * Blocks cut in two become two blocks with new ids, policy state dropped. Returns the first range index; *n how many. */
size_t uvm_space_split(struct uvm_space *s, struct uvm_alloc *a, uint64_t offset, uint64_t bytes, size_t *n);
struct uvm_range *uvm_alloc_range(const struct uvm_alloc *a, uint64_t offset);

static inline int uvm_page_of(const struct uvm_alloc *a, uint64_t offset) {
  return (int)((a->base + offset) >> 12 & (UVM_BLOCK_PAGES - 1));
}
static inline size_t uvm_window_of(const struct uvm_alloc *a, uint64_t offset) {
  return (size_t)((a->base + offset) / UVM_BLOCK_BYTES - a->base / UVM_BLOCK_BYTES);
}
/* The block holding the byte at offset (< bytes) of a managed allocation. find: NULL when not used yet. */
static inline struct uvm_block *uvm_block_find(const struct uvm_alloc *a, uint64_t offset) {
  assert(a->kind == UVM_MANAGED && offset < a->bytes);
  struct uvm_block *b = a->blocks[uvm_window_of(a, offset)];
  int page = uvm_page_of(a, offset);
  while (b && (page < b->first || page >= b->first + b->pages)) b = b->split;
  return b;
}
struct uvm_block *uvm_block_get(struct uvm_space *s, struct uvm_alloc *a, uint64_t offset);
/* Offset in the allocation of page p of the block. */
uint64_t uvm_block_offset(const struct uvm_block *b, int p);
static inline uvm_mask uvm_block_all(const struct uvm_block *b) { return uvm_mask_range(b->first, b->first + b->pages); }

/* Masks. Layout of b->mask: resident[nnodes], mapped[nprocs][3], duplicated, dirty, evicted[nprocs], unproven[nnodes], unwritten. */
static inline uvm_mask *uvm_block_resident(const struct uvm_space *s, const struct uvm_block *b, uvm_node n) {
  (void)s;
  return (uvm_mask *)&b->mask[n];
}
static inline uvm_mask *uvm_block_mapped(const struct uvm_space *s, const struct uvm_block *b, uvm_proc p, enum uvm_level l) {
  return (uvm_mask *)&b->mask[s->topology.nnodes + p * UVM_MAP_LEVELS + l];
}
static inline uvm_mask *uvm_block_duplicated(const struct uvm_space *s, const struct uvm_block *b) {
  return (uvm_mask *)&b->mask[s->topology.nnodes + s->topology.nprocs * UVM_MAP_LEVELS];
}
static inline uvm_mask *uvm_block_dirty(const struct uvm_space *s, const struct uvm_block *b) { return uvm_block_duplicated(s, b) + 1; }
static inline uvm_mask *uvm_block_evicted(const struct uvm_space *s, const struct uvm_block *b, uvm_proc p) {
  return uvm_block_duplicated(s, b) + 2 + p;
}
/* Pages that came to the node by a speculative prefetch and that its own processors have not touched since. */
static inline uvm_mask *uvm_block_unproven(const struct uvm_space *s, const struct uvm_block *b, uvm_node n) {
  return uvm_block_duplicated(s, b) + 2 + s->topology.nprocs + n;
}
/* An engine that sees accesses says that pages [first, first + n) were touched at node: how many of them that proves useful. */
int uvm_block_prove(const struct uvm_space *s, struct uvm_block *b, uvm_node node, int first, int n);
/* Pages that came to the CPU's memory without it having asked for just them, and that it has not written since: its operating
 * system maps them for writing only at the first write. */
static inline uvm_mask *uvm_block_unwritten(const struct uvm_space *s, const struct uvm_block *b) {
  return uvm_block_unproven(s, b, s->topology.nnodes);
}
/* The CPU writes pages [first, first + n): how many of them for the first time. */
int uvm_block_write(const struct uvm_space *s, struct uvm_block *b, int first, int n);
/* Level that an access needs: PREFETCH and READ read, WRITE write, ATOMIC atomic. */
static inline enum uvm_level uvm_level_of(enum uvm_access a) {
  return a <= UVM_A_READ ? UVM_MAP_READ : a == UVM_A_WRITE ? UVM_MAP_WRITE : UVM_MAP_ATOMIC;
}
/* May p access pages on n where they lie? */
static inline bool uvm_reaches(const struct uvm_space *s, uvm_proc p, uvm_node n) {
  return n == s->procs[p].home || s->procs[p].reach >> n & 1;
}
/* Whose memory n is: the first processor at home there, the CPU before GPUs; where nobody is, as on an expander, the CPU. */
uvm_proc uvm_proc_at(const struct uvm_space *s, uvm_node n);
/* Nodes the page is resident on, a bit each. */
uint32_t uvm_page_nodes(const struct uvm_space *s, const struct uvm_block *b, int page);
/* Union of resident masks: pages that exist somewhere. */
uvm_mask uvm_block_populated(const struct uvm_space *s, const struct uvm_block *b);
/* Pages that p reaches where they are. */
uvm_mask uvm_block_in_reach(const struct uvm_space *s, const struct uvm_block *b, uvm_proc p);
/* The node that p's accesses to the page go to: p's home when resident there, else the lowest resident node p reaches;
 * UVM_NONE. */
uvm_node uvm_page_target(const struct uvm_space *s, const struct uvm_block *b, uvm_proc p, int page);

/* Backings. create takes `bytes` off the node's free (which the caller has checked) and enters the tail of UNUSED. */
uvm_backing_id uvm_backing_create(struct uvm_space *s, uvm_node n, uint64_t bytes);
/* Gives pages of a block to a backing (whole blocks: first = block->first, pages = 512). */
void uvm_backing_attach(struct uvm_space *s, uvm_backing_id k, struct uvm_block *b, int first, int pages);
void uvm_backing_destroy(struct uvm_space *s, uvm_backing_id k);   /* none of its pages may be resident; bytes return to free */
void uvm_backing_move(struct uvm_space *s, uvm_backing_id k, uint8_t list, uvm_ns now);   /* to the tail; UVM_NONE: off the lists */
static inline struct uvm_backing *uvm_backing_get(const struct uvm_space *s, uvm_backing_id k) {
  return k && k < s->backings.n ? s->backings.v[k] : NULL;
}
uvm_backing_id uvm_page_backing(const struct uvm_block *b, uvm_node n, int page);
bool uvm_backing_holds(const struct uvm_backing *k, const struct uvm_block *b);   /* pages of the block, resident or not */
uvm_mask uvm_piece_resident(const struct uvm_space *s, const struct uvm_piece *p, uvm_node n);
/* Brings info.dirty and info.busy up to date; NULL for a dead id. */
const struct uvm_backing_info *uvm_backing_look(struct uvm_space *s, uvm_backing_id k);
static inline struct uvm_block *uvm_block_by_id(const struct uvm_space *s, uvm_block_id b) {
  return b && b < s->blocks.n ? s->blocks.v[b] : NULL;
}
static inline struct uvm_range *uvm_range_by_id(const struct uvm_space *s, uvm_range_id r) {
  return r && r < s->ranges.n ? s->ranges.v[r] : NULL;
}

/* All the invariants above for one block: 0, or UVM_EENV with what is wrong. Debug builds call it after each commit. */
int uvm_block_check(const struct uvm_space *s, const struct uvm_block *b, struct uvm_error *e);

/* Between space.c, backing.c and plan.c only. */
void uvm__node_take(struct uvm_space *s, uvm_node n, uint64_t bytes);
void uvm__node_give(struct uvm_space *s, uvm_node n, uint64_t bytes);
/* The resident mask of b on n was `before`: its backings' resident bytes follow. */
void uvm__backing_account(struct uvm_space *s, struct uvm_block *b, uvm_node n, const uvm_mask *before);
/* b dies: nothing of it is resident any more, its backings forget it and go when they hold nothing else. */
void uvm__backing_leave(struct uvm_space *s, struct uvm_block *b);
/* b was cut into lo and hi (masks copied already): its backings hold pieces of them instead. */
void uvm__backing_cut(struct uvm_space *s, struct uvm_block *b, struct uvm_block *lo, struct uvm_block *hi);
size_t uvm__block_masks(const struct uvm_space *s);   /* masks behind a block */
#endif
