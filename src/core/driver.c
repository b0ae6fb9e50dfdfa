/* The table of drivers. */
#include "core/driver.h"

const struct uvm_driver *const uvm_drivers[] = {&uvm_driver_nvidia, &uvm_driver_amdkfd, NULL};

const struct uvm_driver *uvm_driver_find(const char *name, struct uvm_error *e) {
  char known[256] = "";
  for (size_t i = 0; uvm_drivers[i]; i++) {
    if (!strcmp(uvm_drivers[i]->name, name)) return uvm_drivers[i];
    uvm_list_add(known, sizeof known, ", ", uvm_drivers[i]->name);
  }
  uvm_fail(e, UVM_EUSAGE, "unknown driver '%s': expected one of %s", name, known);
  return NULL;
}
