/* Fuzz target of the event files: any bytes are read or refused; rows keep the promises of trace.h, and a file compared with itself
 * is the same. */
#include "report/diff.h"
#include "report/validate.h"
#include "tests/fuzz/fuzz.h"
#include "trace.h"

static bool check_rows(const char *path) {
  struct uvm_csv *c;
  struct uvm_csv_event ev;
  struct uvm_error e = {0};
  int64_t t = 0;
  int rc = uvm_csv_open(path, &c, &e);
  if (!rc) {
    while ((rc = uvm_csv_next(c, &ev, &e)) > 0) {
      MUST(ev.t >= t && ev.dur >= 0 && ev.alloc >= -1 && ev.src >= -1 && ev.dst >= -1 && *ev.kind);
      MUST(strcmp(ev.kind, "section") || *ev.name);
      t = ev.t;
    }
    uvm_csv_close(c);
  }
  if (rc) fuzz_check_error(rc, &e);
  return !rc;
}

static void compare_with_itself(const char *path) {
  struct uvm_rows a, b;
  struct uvm_error e;
  struct uvm_validation v = {0};
  struct uvm_diff d;
  uvm_rows_init(&a, NULL), uvm_rows_init(&b, NULL);
  MUST(!uvm_rows_read(&a, path, &e) && !uvm_rows_read(&b, path, &e));
  uvm_validate(&v, &a, &b, -1);
  MUST(!v.count[UVM_V_DIFFERS] && !v.count[UVM_V_CLOSE]);
  uvm_diff_make(&d, &a, &b, "a", "b");
  MUST(d.first < 0);
  uvm_diff_free(&d), uvm_validation_free(&v), uvm_rows_free(&a), uvm_rows_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct fuzz_file f = fuzz_open(data, size);
  if (check_rows(f.path)) compare_with_itself(f.path);
  fuzz_close(&f);
  return 0;
}
