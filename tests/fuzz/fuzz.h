/* What every fuzz target includes: LLVMFuzzerTestOneInput takes any bytes; a promise that does not hold aborts. The same function
 * reads the kept corpus in `make test` (replay.c), without a fuzzer. */
#ifndef UVM_FUZZ_H
#define UVM_FUZZ_H
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition) do { if (!(condition)) fprintf(stderr, "broken promise: %s\n", #condition), abort(); } while (0)

/* An error says where and what was expected, in full. */
static inline void fuzz_check_error(int rc, const struct uvm_error *e) {
  MUST(rc == e->code && *e->text && strlen(e->text) + 1 < sizeof e->text);
}

/* For readers of files: the bytes as one, in memory. Valid until fuzz_close. */
struct fuzz_file { int fd; char path[32]; };
static inline struct fuzz_file fuzz_open(const void *data, size_t size) {
  struct fuzz_file f = {.fd = memfd_create("fuzz", 0)};
  MUST(f.fd >= 0 && write(f.fd, data, size) == (ssize_t)size);
  snprintf(f.path, sizeof f.path, "/proc/self/fd/%d", f.fd);
  return f;
}
static inline void fuzz_close(struct fuzz_file *f) { close(f->fd); }
#endif
