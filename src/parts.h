/* What a run's policy is made of: the parts of a preset, or a policy file before those of its base, and parts chosen one by one. */
#ifndef UVM_PARTS_H
#define UVM_PARTS_H
#include "policies.h"
#include "policy_file.h"

struct uvm_session_config;
enum { UVM_MAX_PARTS = 16 };
struct uvm_parts {
  const struct uvm_policy *v[UVM_MAX_PARTS]; size_t n;  /* into own: in the order in which they are asked */
  struct uvm_policy own[UVM_MAX_PARTS];         /* without the hooks that another part answers in their place */
  struct uvm_policy_file files[1 + UVM_HOOKS]; size_t nfiles;
  char name[96];                                /* as "nvidia, fifo" */
};

/* By the configuration's policy, place, prefetch, evict and thrash; `otherwise` where it names no policy. Close it after a failure too. */
int uvm_parts_choose(struct uvm_parts *p, const struct uvm_session_config *c, const char *otherwise, struct uvm_error *e);
void uvm_parts_close(struct uvm_parts *p);
/* NULL: e lists the known ones; `what` is what the name was to be. */
const struct uvm_preset *uvm_preset_find(const char *name, const char *what, struct uvm_error *e);
#endif
