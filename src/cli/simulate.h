/* A run on behalf of a command: names of the machine's places, the progress bar, stopping on a signal. */
#ifndef UVM_SIMULATE_H
#define UVM_SIMULATE_H
#include "cli/options.h"
#include "report/places.h"

/* The names of the machine that the run will use. */
int uvm_cli_places(const struct uvm_options *o, int side, struct uvm_places *out, struct uvm_error *e);
/* Runs the trace o->operand[0], or the side's own where there are two, as o->side[side] asks, with these observers. A run that a signal
 * ended is no error: r->interrupted says so. */
int uvm_cli_simulate(const struct uvm_options *o, int side, const struct uvm_observer *observers, size_t n, struct uvm_session_result *r,
                     struct uvm_error *e);
/* For main: signals end a run at the next event, and anything else at once, leaving no half-written file. */
void uvm_cli_catch_signals(void);
#endif
