/* NVIDIA's prefetcher. A block is the root of a binary tree whose leaves are its 4 KiB pages. Once a service, the set
 * leaves are the pages already on the destination, those now on their way, and the rest of the 64 KiB pages these lie in.
 * Each faulted page then brings the largest node above it in which more than `threshold` per cent of the leaves are set.
 *
 * Leaf numbers count from the start of the block's first 64 KiB page, so that every 64 KiB page is a node. A block that
 * starts inside such a page has `off` leaves in front of its first page, never set; a block without a whole 64 KiB page
 * counts from its own first page. */
#include "uvmsim/policy.h"

#define WORDS (UVM_BLOCK_PAGES / 64)
#define BIG 16                                  /* pages in a 64 KiB page */
#define THRESHOLD 51
#define MIN_FAULTS 1

struct state { uint32_t threshold, min_faults; bool enable, clamp_quirk; };
struct block { uint32_t count; uint8_t dest; }; /* pages serviced to the last destination; that node + 1, 0: none yet */

struct tree {
  int first, off, leaves;                       /* leaf i is page first - off + i */
  uvm_mask set, seeds;                          /* by leaf: counted; the faulted pages that look for a node */
  int before[WORDS + 1];                        /* set leaves in the words before this one */
};

/* Bit i becomes what bit i + by was. */
static uvm_mask shifted(const uvm_mask *m, int by) {
  if (!by) return *m;
  uvm_mask out = {{0}};
  int skip = by >> 6, bits = by & 63;
  for (int i = 0; i + skip < WORDS; i++) {
    out.w[i] = m->w[i + skip] >> bits;
    if (bits && i + skip + 1 < WORDS) out.w[i] |= m->w[i + skip + 1] << (64 - bits);
  }
  return out;
}

/* Fills every 16-bit lane in which a bit is set. */
static uint64_t whole_lanes(uint64_t w) {
  const uint64_t low = 0x7fff7fff7fff7fff;
  uint64_t tops = (((w & low) + low) | w) & ~low;
  return (tops >> 15) * 0xffff;
}

/* Sets the 64 KiB page around each fault, unless a page in it is thrashing. What the block has of its first and last
 * 64 KiB page counts as one too; a block without a whole one is a single group. */
static void grow(struct tree *t, const uvm_mask *faulted, const uvm_mask *thrashing, bool big) {
  uvm_mask all = {{0}};
  uvm_mask_set(&all, t->off, t->leaves);
  if (!big) {
    if (uvm_mask_next(faulted, 0) >= 0 && uvm_mask_next(thrashing, 0) < 0) t->set = all;
    return;
  }
  for (int i = 0; i < WORDS; i++) t->set.w[i] |= whole_lanes(faulted->w[i]) & ~whole_lanes(thrashing->w[i]) & all.w[i];
}

static struct tree plant(const struct uvm_block_info *info, const uvm_mask *resident, const uvm_mask *faulted, const uvm_mask *thrashing) {
  int end = info->first + info->pages;
  bool big = (info->first + BIG - 1) / BIG < end / BIG;
  struct tree t = {.first = info->first, .off = big ? info->first % BIG : 0};
  int base = t.first - t.off;
  t.leaves = end - base;
  uvm_mask f = shifted(faulted, base), none = {{0}}, thrash = thrashing ? shifted(thrashing, base) : none;
  t.set = shifted(resident, base);
  uvm_mask_or(&t.set, &f);
  grow(&t, &f, &thrash, big);
  t.seeds = f;
  uvm_mask_andnot(&t.seeds, &thrash);
  for (int i = 0; i < WORDS; i++) t.before[i + 1] = t.before[i] + __builtin_popcountll(t.set.w[i]);
  return t;
}

/* The comparison is strict, in integers, and the last node of a level has only the leaves that exist. */
static bool dense(const struct tree *t, int a, int size, uint32_t threshold) {
  int leaves = a + size < t->leaves ? size : t->leaves - a;
  int set = size >= 64 ? t->before[(a + size) >> 6] - t->before[a >> 6]
                       : __builtin_popcountll(t->set.w[a >> 6] >> (a & 63) & ((1ull << size) - 1));
  return 100 * set > (int)threshold * leaves;
}

/* Adds the pages of the leaves [a, b). As shipped, an end in front of the block's first page becomes `off` instead of 0. */
static void take(const struct tree *t, int a, int b, bool quirk, uvm_mask *wanted) {
  int low = quirk ? t->off : 0;
  int from = a < t->off ? low : a - t->off, to = b < t->off ? low : b - t->off;
  uvm_mask_set(wanted, t->first + from, t->first + to);
}

/* A seed takes the largest dense node above it, whether or not a smaller one fails. All seeds see the same tree, and every
 * seed in a taken node would take the same one, so the search goes on behind it. */
static void climb(const struct state *s, const struct tree *t, uvm_mask *wanted) {
  int root = 1;
  while (root < t->leaves) root *= 2;
  for (int leaf = uvm_mask_next(&t->seeds, 0), next; leaf >= 0; leaf = uvm_mask_next(&t->seeds, next)) {
    int size = root;
    while (size && !dense(t, leaf & -size, size, s->threshold)) size /= 2;
    next = leaf + 1;
    if (!size) continue;
    int a = leaf & -size, b = a + size < t->leaves ? a + size : t->leaves;
    take(t, a, b, s->clamp_quirk, wanted);
    next = b;
  }
}

static bool resident_nowhere(const uvm_view *v, uvm_block_id b) {
  for (uvm_node n = 0; n < uvm_topology(v)->nnodes; n++)
    if (uvm_mask_next(uvm_resident(v, b, n), 0) >= 0) return false;
  return true;
}

/* Pages are not pulled out of their preferred home, except by a processor that cannot map them there (recorded: CPU faults
 * on a range that prefers the GPU are grown by the tree). */
static bool may_pull(const uvm_view *v, uvm_node preferred, uvm_node dst) {
  const struct uvm_topology *t = uvm_topology(v);
  if (preferred == UVM_NONE || preferred == dst) return true;
  for (int p = 0; p < t->nprocs; p++)
    if (t->procs[p].home == dst) return !(t->procs[p].reach >> preferred & 1);
  return false;
}

static void prefetch(void *state, const uvm_view *v, uvm_block_id b, uvm_node dst, const uvm_mask *faulted, uvm_mask *more) {
  const struct state *s = state;
  struct block *block = uvm_block_state(v, b);
  const struct uvm_block_info *info = uvm_block(v, b);
  const struct uvm_range_info *range = uvm_range(v, info->range);
  const uvm_mask *resident = uvm_resident(v, b, dst), *thrashing = uvm_thrashing(v, b);
  *more = (uvm_mask){{0}};
  if (!s->enable) return;
  if (block->dest != dst + 1) *block = (struct block){.dest = (uint8_t)(dst + 1)};
  block->count += (uint32_t)uvm_mask_count(faulted);
  if (block->count < s->min_faults) return;

  if (range->preferred == dst && resident_nowhere(v, b)) {
    uvm_mask_set(more, info->first, info->first + info->pages);
  } else if (may_pull(v, range->preferred, dst)) {
    struct tree t = plant(info, resident, faulted, thrashing);
    climb(s, &t, more);
  }
  uvm_mask_andnot(more, faulted);
  if (thrashing) uvm_mask_andnot(more, thrashing);
  if (dst != uvm_topology(v)->procs[0].home || range->system) return;
  const uvm_mask *readable = uvm_mapped(v, b, 0, UVM_A_READ);   /* a GPU is mapped to these again, the CPU is not */
  for (int i = 0; i < WORDS; i++) more->w[i] &= ~(resident->w[i] & readable->w[i]);
}

static int init(void *state, const uvm_view *v) {
  struct state *s = state;
  (void)v;
  if (s->threshold > 100) s->threshold = THRESHOLD;
  if (s->min_faults < 1 || s->min_faults > 20) s->min_faults = MIN_FAULTS;
  return 0;
}

static const struct uvm_opt opts[] = {
    {"enable", UVM_BOOL, offsetof(struct state, enable), 0, 1, 1, "prefetch at all"},
    {"threshold", UVM_U32, offsetof(struct state, threshold), 0, UINT32_MAX, THRESHOLD,
     "per cent of a node's pages that must be exceeded; above 100 means 51, as in the driver"},
    {"min_faults", UVM_U32, offsetof(struct state, min_faults), 0, UINT32_MAX, MIN_FAULTS,
     "pages a block must have had serviced to one destination; outside 1 to 20 means 1, as in the driver"},
    {"clamp_quirk", UVM_BOOL, offsetof(struct state, clamp_quirk), 0, 1, 1,
     "blocks that start inside a 64 KiB page: cut regions as shipped (1) or at the block's start (0)"},
    {0}};

const struct uvm_policy uvm_policy_density = {
    .abi = UVM_POLICY_ABI,
    .name = "density",
    .help = "grow faults to the largest tree node that is dense enough (NVIDIA)",
    .opts = opts,
    .state_size = sizeof(struct state),
    .block_size = sizeof(struct block),
    .init = init,
    .prefetch = prefetch,
};
