/* NVIDIA's evictor: backings without a resident page first, then the one whose service lies longest back. Hits do not count,
 * so a hot block that no longer faults ages like a cold one. */
#include "victim.h"

static size_t victims(void *state, const uvm_view *v, uvm_node node, uint64_t bytes, uvm_block_id incoming, const uvm_mask *pages,
                      uvm_backing_id *out, size_t max) {
  static const enum uvm_list order[] = {UVM_L_UNUSED, UVM_L_USED};
  size_t n = 0;
  uint64_t freed = 0;
  (void)state, (void)pages;
  for (int l = 0; l < 2; l++)
    for (uvm_backing_id k = uvm_oldest(v, node, order[l]); k && n < max && freed < bytes; k = uvm_newer(v, k)) {
      if (!uvm__may_leave(v, k, incoming)) continue;
      out[n++] = k;
      freed += uvm_backing(v, k)->bytes;
    }
  return n;
}

const struct uvm_policy uvm_policy_lru_service = {
    .abi = UVM_POLICY_ABI,
    .name = "lru-service",
    .help = "evict what was serviced longest ago; hits do not count (NVIDIA)",
    .victims = victims,
};
