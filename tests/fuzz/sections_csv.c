/* Fuzz target of recorded section times: any bytes are read or refused, and what was read is a spread. */
#include <math.h>
#include "report/spread.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct fuzz_file f = fuzz_open(data, size);
  struct uvm_spreads s = {0};
  struct uvm_rows none;
  struct uvm_error e = {0};
  int rc = uvm_spreads_read(&s, f.path, "w", &e);
  if (rc) fuzz_check_error(rc, &e);
  MUST(rc || s.v.n);
  for (size_t i = 0; i < s.v.n; i++) {
    const struct uvm_spread *x = &s.v.v[i];
    MUST(x->iterations && 0 <= x->min && x->min <= x->median && x->median <= x->max && isfinite(x->max));
  }
  uvm_rows_init(&none, NULL);
  struct uvm_causes causes = {0};
  uvm_causes_settle(&causes);
  uvm_spreads_predict(&s, &none, &causes);
  uvm_causes_free(&causes);
  uvm_spreads_free(&s);
  fuzz_close(&f);
  return 0;
}
