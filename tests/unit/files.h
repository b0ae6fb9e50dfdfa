/* Files for a test's time. */
#ifndef UVM_TESTS_FILES_H
#define UVM_TESTS_FILES_H
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "tests/unit/unit.h"

/* Makes an empty file whose name ends so; the caller unlinks it. Returns path. */
static inline const char *temporary(char path[static 64], const char *suffix) {
  snprintf(path, 64, "/tmp/uvmsim-test-XXXXXX%s", suffix);
  int fd = mkstemps(path, (int)strlen(suffix));
  assert_true(fd >= 0);
  close(fd);
  return path;
}

struct blob {
  uint8_t *v; /* a NUL stands behind the n bytes; the caller frees it */
  size_t n;
};
static inline struct blob slurp(const char *path) {
  struct blob b = {0};
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  fseek(f, 0, SEEK_END);
  b.n = (size_t)ftell(f);
  rewind(f);
  b.v = malloc(b.n + 1);
  assert_int_equal(fread(b.v, 1, b.n, f), b.n);
  b.v[b.n] = 0;
  fclose(f);
  return b;
}
static inline void spew(const char *path, const void *p, size_t n) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(p, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}
#endif
