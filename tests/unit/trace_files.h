/* For the tests of traces: files in a temporary folder, and a trace read from text to its end. */
#ifndef UVM_TRACE_FILES_H
#define UVM_TRACE_FILES_H
#include "tests/unit/files.h"
#include "trace.h"

#define RECORDED "traces/recorded/h200/"

static char folder[] = "/tmp/uvm-trace-XXXXXX";
static const char *in_folder(const char *name) {
  static char path[4][256];
  static int turn;
  char *p = path[turn++ % 4];
  snprintf(p, sizeof path[0], "%s/%s", folder, name);
  return p;
}
static int make_folder(void **state) {
  (void)state;
  strcpy(folder + sizeof folder - 7, "XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}
static int remove_folder(void **state) {
  (void)state;
  char command[300];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

static inline void assert_same(struct blob a, struct blob b) {
  assert_int_equal(a.n, b.n);
  assert_memory_equal(a.v, b.v, a.n);
}

/* Reads a trace to its end and closes it. Returns uvm_trace_next's last answer: 0, or an error in *e. */
static inline int read_all(struct uvm_trace *t, size_t *records, struct uvm_error *e) {
  struct uvm_trace_record r;
  int code;
  size_t n = 0;
  while ((code = uvm_trace_next(t, &r, e)) == 1) n++;
  if (records) *records = n;
  uvm_trace_close(t);
  return code;
}
static inline int read_memory(const void *p, size_t n, size_t *records, struct uvm_error *e) {
  struct uvm_trace *t;
  int code = uvm_trace_open_memory(p, n, &t, e);
  return code ? code : read_all(t, records, e);
}
static inline int read_path(const char *path, size_t *records, struct uvm_error *e) {
  struct uvm_trace *t;
  int code = uvm_trace_open(path, false, &t, e);
  return code ? code : read_all(t, records, e);
}
/* Copies the trace at one path to another, in the format of that one's suffix. */
static inline void convert(const char *from, const char *to) {
  struct uvm_error e;
  struct uvm_trace *t;
  struct uvm_trace_writer *w;
  struct uvm_trace_record r;
  assert_int_equal(uvm_trace_open(from, false, &t, &e), 0);
  assert_int_equal(uvm_trace_create(to, &w, &e), 0);
  int code;
  while ((code = uvm_trace_next(t, &r, &e)) == 1) assert_int_equal(uvm_trace_write(w, t, &r, &e), 0);
  assert_int_equal(code, 0);
  assert_int_equal(uvm_trace_commit(w, &e), 0);
  uvm_trace_close(t);
}

#define RUN_IN_FOLDER(tests) UVM_RUN_WITH(tests, make_folder, remove_folder)
#endif
