/* A policy in a file of its own: MINE.c, compiled on the spot, or MINE.so. It defines `const struct uvm_policy uvm_policy`. */
#ifndef UVM_POLICY_FILE_H
#define UVM_POLICY_FILE_H
#include "base/base.h"

struct uvm_policy_file {
  const struct uvm_policy *policy;
  void *library;
  char global[64];                              /* the first variable that is writable and none of a run's own; "" none */
};

/* A name with a '/', or that ends in .c or .so, is a file's; any other is that of a built-in. */
bool uvm_policy_file_named(const char *name);
/* Compiles (with $CC, else cc; its messages go to standard error), loads, and checks: the ABI before anything else is read.
 * UVM_EINPUT: no policy; UVM_EENV: no compiler, no header, no temporary folder. Nothing is left on the disk. */
int uvm_policy_file_open(const char *path, struct uvm_policy_file *out, struct uvm_error *e);
/* The policy goes, with every text in it. */
void uvm_policy_file_close(struct uvm_policy_file *f);
/* Name of a writable global or static variable in a shared object, of `size` bytes; "" none. */
void uvm_policy_global(const char *library, char *name, size_t size);
#endif
