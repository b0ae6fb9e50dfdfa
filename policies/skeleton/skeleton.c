/* skeleton: a migration policy, ready to run:
 *
 *   uvmsim replay TRACE --policy ./skeleton.c         what it does with a trace
 *   uvmsim diff TRACE --policy-b ./skeleton.c         where it parts from the policy of the machine's driver
 *   uvmsim policies test ./skeleton.c                 whether its answers hold, whatever the trace
 *   uvmsim policies ./skeleton.c                      its hooks and options
 *
 * It answers two questions. Delete a hook, and the base answers in its place; policy.h has the others, and says what a view can tell.
 * A policy keeps what it knows in its state and never in a global variable: many runs may share the code. */
#include "uvmsim/policy.h"

/* The core keeps one of these for the policy, zeroed, with the options set. */
struct state {
  uint32_t around;
};

/* What comes along with faulted pages: here the pages around each, as many as the option says, as far as the block has them. Pages that
 * are on `dst` already cost nothing. */
static void prefetch(void *state, const uvm_view *v, uvm_block_id b, uvm_node dst, const uvm_mask *faulted, uvm_mask *more) {
  const struct state *s = state;
  const struct uvm_block_info *block = uvm_block(v, b);
  int around = (int)s->around, begin = block->first, end = block->first + block->pages;
  (void)dst;
  for (int p = -1; (p = uvm_mask_next(faulted, p + 1)) >= 0;) {
    int a = p / around * around, z = a + around;
    uvm_mask_set(more, a < begin ? begin : a, z > end ? end : z);
  }
}

/* Neither what is busy may leave nor what the block in service has (0: none is). */
static bool may_leave(const uvm_view *v, uvm_backing_id k, uvm_block_id incoming) {
  const struct uvm_backing_info *backing = uvm_backing(v, k);
  for (int p = -1; incoming && ++p < UVM_BLOCK_PAGES;)
    if (uvm_backing_of(v, incoming, backing->node, p) == k) return false;
  return !backing->busy;
}

/* Who leaves `node` when `bytes` are needed there: here those without pages first, then the longest not serviced. Try another order. */
static size_t victims(void *state, const uvm_view *v, uvm_node node, uint64_t bytes, uvm_block_id incoming, const uvm_mask *pages,
                      uvm_backing_id *out, size_t max) {
  static const enum uvm_list order[] = {UVM_L_UNUSED, UVM_L_USED};
  size_t n = 0;
  uint64_t freed = 0;
  (void)state, (void)pages;
  for (int i = 0; i < 2; i++)
    for (uvm_backing_id k = uvm_oldest(v, node, order[i]); k && n < max && freed < bytes; k = uvm_newer(v, k)) {
      if (!may_leave(v, k, incoming)) continue;
      out[n++] = k;
      freed += uvm_backing(v, k)->bytes;
    }
  return n;
}

/* Name, type, where it is in the state, least, most, default, help: -o skeleton.around=32 */
static const struct uvm_opt opts[] = {
    {"around", UVM_U32, offsetof(struct state, around), 1, UVM_BLOCK_PAGES, 16, "pages that come together, aligned to as many"}, {0}};

const struct uvm_policy uvm_policy = {
    .abi = UVM_POLICY_ABI,
    .name = "skeleton",
    .help = "bring the pages around a fault; evict what was serviced longest ago",
    .base = "nvidia", /* who answers everything else */
    .opts = opts,
    .state_size = sizeof(struct state),
    .prefetch = prefetch,
    .victims = victims,
};
