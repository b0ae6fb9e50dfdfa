/* The built-in parts and presets. A new part is a file, its name in policies.h and a line here. */
#include "policies.h"

const char *const uvm_hook_options[UVM_HOOKS] = {
    [UVM_HOOK_PLACE] = "place", [UVM_HOOK_PREFETCH] = "prefetch", [UVM_HOOK_EVICT] = "evict", [UVM_HOOK_THRASH] = "thrash"};

const struct uvm_part uvm_parts[] = {
    {UVM_HOOK_PLACE, "none", NULL},
    {UVM_HOOK_PREFETCH, "none", NULL},
    {UVM_HOOK_PREFETCH, "density", &uvm_policy_density},
    {UVM_HOOK_THRASH, "none", NULL},
    {UVM_HOOK_THRASH, "nvidia", &uvm_policy_nvidia_thrashing},
    {UVM_HOOK_EVICT, "lru-service", &uvm_policy_lru_service},
    {UVM_HOOK_EVICT, "lru", &uvm_policy_lru},
    {UVM_HOOK_EVICT, "fifo", &uvm_policy_fifo},
    {UVM_HOOK_EVICT, "clock", &uvm_policy_clock},
    {UVM_HOOK_EVICT, "sieve", &uvm_policy_sieve},
    {UVM_HOOK_EVICT, "lfu", &uvm_policy_lfu},
    {UVM_HOOK_EVICT, "s3fifo", &uvm_policy_s3fifo},
    {UVM_HOOK_EVICT, "arc", &uvm_policy_arc},
    {UVM_HOOK_EVICT, "random", &uvm_policy_random},
    {0}};

const struct uvm_preset uvm_presets[] = {
    {"nvidia", "what NVIDIA's UVM driver does: tree prefetcher, thrashing control, eviction by service order",
     {&uvm_policy_nvidia_thrashing, &uvm_policy_density, &uvm_policy_lru_service}},
    {"none", "demand migration: no prefetch, no thrashing control, eviction by service order", {0}},
    {0}};
