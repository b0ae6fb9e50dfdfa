/* Private to sim/machine: the text of a profile becomes a machine. */
#ifndef UVM_PROFILE_H
#define UVM_PROFILE_H
#include "machine/machine.h"

/* file: for messages. traced: [costs.traced] overrides [costs]. The machine is zeroed; names are its own copies, also after
 * a failure. */
int uvm__profile_parse(const char *file, const char *text, bool traced, struct uvm_machine *m, struct uvm_error *e);
/* The profile of a built-in machine, NULL when there is none of that name. */
const char *uvm__machine_text(const char *name);
#endif
