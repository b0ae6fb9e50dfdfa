/* The small machine as reports see it. */
#ifndef UVM_TESTS_REPORT_H
#define UVM_TESTS_REPORT_H
#include "report/places.h"
#include "tests/unit/fixture.h"

static inline struct uvm_places test_places(void) {
  struct uvm_places p;
  uvm_places_init(&p, topology(PCIE, 0, 580));
  return p;
}
#endif
