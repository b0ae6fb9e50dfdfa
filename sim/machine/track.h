/* Private to sim/machine: what a wire or a copy engine is taken for, and when. Times are picoseconds: an access of a few bytes
 * takes less than a nanosecond. */
#ifndef UVM_TRACK_H
#define UVM_TRACK_H
#include "machine/machine.h"

/* The first moment from `at` on that is free, and in *until how long it stays so (UVM_NEVER: nothing is known after). */
uint64_t uvm__track_free(const struct uvm_track *t, uint64_t at, uint64_t *until);
/* When work of `need` would be through that may go on from `at` in whatever time is free. */
uint64_t uvm__track_end(const struct uvm_track *t, uint64_t at, uint64_t need);
/* Takes that time; the same end. */
uint64_t uvm__track_take(struct uvm_track *t, uint64_t at, uint64_t need, enum uvm_traffic kind);
/* Adds to by[kind] how long each kind holds it in [from, to). */
void uvm__track_blame(const struct uvm_track *t, uint64_t from, uint64_t to, uint64_t by[UVM_L_KINDS]);
/* Forgets what ended by `now`. */
void uvm__track_pass(struct uvm_track *t, uint64_t now);
#endif
