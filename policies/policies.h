/* The built-in policies: one file each, one line here. A preset names parts; a part is a policy with only its hook. */
#ifndef UVM_POLICIES_H
#define UVM_POLICIES_H
#include "uvmsim/policy.h"

extern const struct uvm_policy uvm_policy_density, uvm_policy_nvidia_thrashing, uvm_policy_lru_service;
extern const struct uvm_policy uvm_policy_lru, uvm_policy_fifo, uvm_policy_random, uvm_policy_clock, uvm_policy_sieve;
extern const struct uvm_policy uvm_policy_lfu, uvm_policy_s3fifo, uvm_policy_arc;

enum uvm_hook { UVM_HOOK_PLACE, UVM_HOOK_PREFETCH, UVM_HOOK_EVICT, UVM_HOOK_THRASH, UVM_HOOKS };
extern const char *const uvm_hook_options[UVM_HOOKS];   /* of the command line: "place" */
struct uvm_part { enum uvm_hook hook; const char *name; const struct uvm_policy *policy; };
extern const struct uvm_part uvm_parts[];       /* ends with a NULL name. A NULL policy answers nothing ("none" is the default) */
struct uvm_preset { const char *name, *help; const struct uvm_policy *parts[8]; };   /* parts end with NULL; none: the core's defaults */
extern const struct uvm_preset uvm_presets[];   /* ends with a NULL name */
extern const char uvm_skeleton[];               /* the text of skeleton/skeleton.c: what `policies new` writes */
#endif
