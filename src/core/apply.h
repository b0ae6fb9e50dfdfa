/* What a step does to a block's masks: shared by the commit (plan.c) and the dry run before it (check.c). */
#ifndef UVM_APPLY_H
#define UVM_APPLY_H
#include "core/plan.h"

void uvm__step_apply(const struct uvm_space *s, struct uvm_block *b, const struct uvm_step *st, const uvm_mask *pages);
uvm_mask uvm__held_twice(const struct uvm_space *s, const struct uvm_block *b); /* pages more than one node holds */
#endif
