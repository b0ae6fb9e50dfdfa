#include "base/base.h"

_Atomic bool uvm_stop;

int uvm_fail(struct uvm_error *e, int code, const char *fmt, ...) {
  if (!e) return code;
  e->code = code;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(e->text, sizeof e->text, fmt, ap);
  va_end(ap);
  return code;
}
