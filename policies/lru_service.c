/* NVIDIA's evictor: backings without a resident page first, then the one whose service lies longest back. Hits do not count,
 * so a hot block that no longer faults ages like a cold one. */
#include "victim.h"

static size_t victims(void *state, const uvm_view *v, uvm_node node, uint64_t bytes, uvm_block_id incoming, const uvm_mask *pages,
                      uvm_backing_id *out, size_t max) {
  struct uvm__answer a = {v, node, bytes, incoming, out, max, 0};
  (void)state, (void)pages;
  uvm__take_unused(&a);
  for (uvm_backing_id k = uvm_oldest(v, node, UVM_L_USED); k && uvm__wants(&a); k = uvm_newer(v, k)) uvm__take(&a, k);
  return a.n;
}

const struct uvm_policy uvm_policy_lru_service = {
    .abi = UVM_POLICY_ABI,
    .name = "lru-service",
    .help = "evict what was serviced longest ago; hits do not count (NVIDIA)",
    .victims = victims,
};
