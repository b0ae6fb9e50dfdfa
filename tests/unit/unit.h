/* What every test program includes: CMocka with its own includes, and the runner that honours CASE='glob' (make test T=x CASE='y*'). */
#ifndef UVM_UNIT_H
#define UVM_UNIT_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define UVM_RUN_WITH(tests, setup, teardown)                                                                                               \
  (getenv("CASE") && *getenv("CASE") ? cmocka_set_test_filter(getenv("CASE")) : (void)0, cmocka_run_group_tests(tests, setup, teardown))
#define UVM_RUN(tests) UVM_RUN_WITH(tests, NULL, NULL)
#endif
