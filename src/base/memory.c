#include "base/base.h"
#include <stdlib.h>
#include <unistd.h>

static uint64_t fail_at;                        /* allocations until the injected failure; 0: none */
static bool fail_read;                          /* the environment was looked at */

static bool injected(void) {
  if (!fail_read) {
    fail_read = true;
    const char *s = getenv("UVMSIM_FAIL_ALLOC");
    if (s && !uvm_parse_u64(s, UINT64_MAX, &fail_at)) fail_at = 0;
  }
  return fail_at && !--fail_at;
}

void uvm_mem_fail_at(uint64_t n) { fail_read = true, fail_at = n; }

_Noreturn void uvm_mem_gone(size_t bytes) {
  uvm_out_remove_all();
  if (bytes) fprintf(stderr, "uvmsim: out of memory: no room for another %zu bytes\n", bytes);
  else fprintf(stderr, "uvmsim: out of memory\n");
  _exit(-UVM_EENV);
}

void *uvm_mem(size_t bytes) {
  void *p = injected() ? NULL : calloc(1, bytes ? bytes : 1);
  if (!p) uvm_mem_gone(bytes);
  return p;
}

void *uvm_mem_resize(void *p, size_t old_bytes, size_t bytes) {
  void *q = injected() ? NULL : realloc(p, bytes ? bytes : 1);
  if (!q) uvm_mem_gone(bytes);
  if (bytes > old_bytes) memset((char *)q + old_bytes, 0, bytes - old_bytes);
  return q;
}

void uvm_mem_free(void *p) { free(p); }

char *uvm_copy_string(const char *s) {
  size_t n = strlen(s) + 1;
  return memcpy(uvm_mem(n), s, n);
}

char *uvm_format(const char *fmt, ...) {
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  char *s = uvm_mem((size_t)(n < 0 ? 0 : n) + 1);
  if (n > 0) vsnprintf(s, (size_t)n + 1, fmt, again);
  va_end(again);
  return s;
}

void uvm_list_add(char *list, size_t size, const char *between, const char *item) {
  size_t n = strlen(list);
  snprintf(list + n, size - n, "%s%s", n ? between : "", item);
}

void uvm__grow(void **v, size_t *cap, size_t item) {
  size_t more = *cap ? *cap * 2 : 8;
  *v = uvm_mem_resize(*v, *cap * item, more * item);
  *cap = more;
}
