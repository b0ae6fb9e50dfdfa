/* Input of every kind: files, pipes, gzip and zstd, damaged and cut, read once and read again. */
#include "tests/unit/trace_files.h"
#include <fcntl.h>
#include <zlib.h>
#include <zstd.h>

static const char text[] = "uvmtrace 1\nprocessor cpu\nalloc a 65536 managed a\nw cpu a 0 65536\nfree a\n";   /* 4 records */
enum { TEXT = sizeof text - 1, RECORDS = 4 };

static struct blob gzipped(const void *p, size_t n) {
  z_stream z = {0};
  assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  struct blob b = {malloc(n / 100 + 1024), 0};
  z.next_in = (uint8_t *)(uintptr_t)p;
  z.avail_in = (uInt)n;
  z.next_out = b.v;
  z.avail_out = (uInt)(n / 100 + 1024);
  assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
  b.n = z.total_out;
  deflateEnd(&z);
  return b;
}

static struct blob zstded(const void *p, size_t n) {
  struct blob b = {malloc(ZSTD_compressBound(n)), 0};
  size_t size = ZSTD_compress(b.v, ZSTD_compressBound(n), p, n, 3);
  assert_false(ZSTD_isError(size));
  b.n = size;
  return b;
}

static void check_read(const struct blob *b) {
  struct uvm_error e = {0};
  size_t records;
  if (read_memory(b->v, b->n, &records, &e)) fail_msg("%s", e.text);
  assert_int_equal(records, RECORDS);
}

static void test_compressed(void **state) {
  (void)state;
  struct blob g = gzipped(text, TEXT), z = zstded(text, TEXT);
  check_read(&g);
  check_read(&z);
  free(g.v);
  free(z.v);
}

/* gzip members and zstd frames one after the other are one file, as their tools have it. */
static void test_several_members(void **state) {
  (void)state;
  struct blob (*const packers[])(const void *, size_t) = {gzipped, zstded};
  for (size_t i = 0; i < 2; i++) {
    struct blob a = packers[i](text, 20), b = packers[i](text + 20, TEXT - 20);
    a.v = realloc(a.v, a.n + b.n);
    memcpy(a.v + a.n, b.v, b.n);
    a.n += b.n;
    check_read(&a);
    free(a.v);
    free(b.v);
  }
}

/* Cut: always refused, with a line. Damaged: refused, or (a byte of gzip's header that says nothing) read as it was. */
static void test_damaged(void **state) {
  (void)state;
  struct blob (*const packers[])(const void *, size_t) = {gzipped, zstded};
  for (size_t i = 0; i < 2; i++) {
    struct blob b = packers[i](text, TEXT);
    struct uvm_error e;
    for (size_t n = 4; n < b.n; n++) {
      assert_int_equal(read_memory(b.v, n, NULL, &e), UVM_EINPUT);
      assert_non_null(strstr(e.text, "found the end of the compressed data"));
      assert_memory_equal(e.text, "memory:", 7);
    }
    for (size_t at = 0; at < b.n; at++) {
      size_t records = 0;
      b.v[at] ^= 0x55;
      int code = read_memory(b.v, b.n, &records, &e);
      assert_true(code == UVM_EINPUT || (code == 0 && i == 0 && records == RECORDS && at < 10));
      b.v[at] ^= 0x55;
    }
    free(b.v);
  }
}

static void test_rubbish_after_gzip(void **state) {
  (void)state;
  struct blob b = gzipped(text, TEXT);
  b.v = realloc(b.v, b.n + 8);
  memcpy(b.v + b.n, "rubbish!", 8);
  struct uvm_error e;
  assert_int_equal(read_memory(b.v, b.n + 8, NULL, &e), UVM_EINPUT);
  assert_non_null(strstr(e.text, "damaged gzip data"));
  free(b.v);
}

/* 64 MiB without an end of line, in 64 KiB: the reader stops at the limit of a line, not at the end of memory. */
static void test_bomb(void **state) {
  (void)state;
  enum { SIZE = 64 << 20 };
  char *big = malloc(SIZE);
  memset(big, '#', SIZE);
  memcpy(big, "uvmtrace 1\n", 11);
  struct blob b = gzipped(big, SIZE);
  free(big);
  struct uvm_error e;
  assert_in_range(b.n, 1, 128 << 10);
  assert_int_equal(read_memory(b.v, b.n, NULL, &e), UVM_EINPUT);
  assert_string_equal(e.text, "memory:2: expected a line of at most 1 MiB, found a longer one");
  free(b.v);
}

/* -- standard input -- */

static int saved = -1;
static void stdin_from(int fd) {
  saved = dup(STDIN_FILENO);
  assert_true(saved >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
  close(fd);
}
static void stdin_back(void) {
  dup2(saved, STDIN_FILENO);
  close(saved);
}
static void stdin_from_pipe(const void *p, size_t n) {
  int fd[2];
  assert_int_equal(pipe(fd), 0);
  assert_int_equal(write(fd[1], p, n), n);                       /* fits the pipe */
  close(fd[1]);
  stdin_from(fd[0]);
}

static void test_pipe_read_again(void **state) {
  (void)state;
  struct blob b = gzipped(text, TEXT);
  stdin_from_pipe(b.v, b.n);
  free(b.v);
  struct uvm_error e;
  struct uvm_trace *t;
  struct uvm_trace_facts f;
  struct uvm_trace_record r;
  assert_int_equal(uvm_trace_open("-", true, &t, &e), 0);
  assert_string_equal(uvm_trace_name(t), "-");
  assert_int_equal(uvm_trace_next(t, &r, &e), 1);                /* rewound in the middle, too */
  for (int pass = 0; pass < 2; pass++) {
    assert_int_equal(uvm_trace_survey(t, &f, &e), 0);
    assert_int_equal(f.records, RECORDS);
  }
  uvm_trace_close(t);
  stdin_back();
}

static void test_pipe_read_once(void **state) {
  (void)state;
  stdin_from_pipe(text, TEXT);
  struct uvm_error e;
  struct uvm_trace *t;
  struct uvm_trace_record r;
  assert_int_equal(uvm_trace_open("-", false, &t, &e), 0);
  assert_int_equal(uvm_trace_next(t, &r, &e), 1);
  assert_int_equal(uvm_trace_rewind(t, &e), UVM_EINPUT);
  assert_string_equal(e.text, "standard input: a pipe can be read only once here");
  uvm_trace_close(t);
  stdin_back();
}

static void test_messages_name_standard_input(void **state) {
  (void)state;
  stdin_from_pipe("uvmtrace 1\nnonsense\n", 20);
  struct uvm_error e;
  assert_int_equal(read_path("-", NULL, &e), UVM_EINPUT);
  assert_memory_equal(e.text, "standard input:2: expected ", 27);
  stdin_back();
}

/* A file behind standard input can be rewound, to where it was when it was opened. */
static void test_redirected_file(void **state) {
  (void)state;
  spew(in_folder("x.uvt"), text, TEXT);
  stdin_from(open(in_folder("x.uvt"), O_RDONLY));
  struct uvm_error e;
  struct uvm_trace *t;
  struct uvm_trace_facts f;
  assert_int_equal(uvm_trace_open("-", false, &t, &e), 0);
  assert_int_equal(uvm_trace_survey(t, &f, &e), 0);
  assert_int_equal(f.records, RECORDS);
  uvm_trace_close(t);
  stdin_back();
}

static void test_unreadable(void **state) {
  (void)state;
  struct uvm_error e;
  assert_int_equal(read_path(in_folder("none.uvt"), NULL, &e), UVM_EINPUT);
  assert_non_null(strstr(e.text, "none.uvt: No such file"));
  assert_int_equal(read_path(folder, NULL, &e), UVM_EINPUT);
  assert_non_null(strstr(e.text, "Is a directory"));
}

/* Progress: stored bytes, all of them at the end. */
static void test_position(void **state) {
  (void)state;
  struct blob b = gzipped(text, TEXT);
  spew(in_folder("p.uvt.gz"), b.v, b.n);
  struct uvm_error e;
  struct uvm_trace *t;
  struct uvm_trace_record r;
  uint64_t total;
  assert_int_equal(uvm_trace_open(in_folder("p.uvt.gz"), false, &t, &e), 0);
  while (uvm_trace_next(t, &r, &e) == 1) assert_true(uvm_trace_position(t, &total) <= b.n);
  assert_int_equal(uvm_trace_position(t, &total), b.n);
  assert_int_equal(total, b.n);
  uvm_trace_close(t);
  free(b.v);
}

/* -- held decoded -- */

static const char every_kind[] =
    "uvmtrace 1\nprocessor cpu\nprocessor gpu0\npage 65536\nalloc a 65536 managed weights\nalloc d 4096 device d on=gpu0\nw cpu a 0 65536\n"
    "begin s/1\nkernel gpu0 lanes=64 name=k\nr a 0 65536 split=cyclic\nnext\natomic a 0 8 by=block\ndone\nend\nprefetch cpu a 0 4096\n"
    "advise set_read_mostly gpu0 a 0 65536\nmemcpy d 0 a 0 4096\nrecord e stream=1\nwait e stream=2\nsync\ndelay cpu 5\nfree a\n";

/* Takes two records at a time and gives one back now and then. */
static void write_all(struct uvm_trace *t, const char *path) {
  struct uvm_error e;
  struct uvm_trace_writer *w;
  const struct uvm_trace_record *r;
  assert_int_equal(uvm_trace_create(path, &w, &e), 0);
  for (int n, turn = 0; (n = uvm_trace_take(t, 2, &r, &e)); turn++) {
    assert_in_range(n, 1, 2);
    int back = n == 2 && turn % 3 == 0;
    uvm_trace_give_back(t, (size_t)back);
    for (int i = 0; i < n - back; i++) assert_int_equal(uvm_trace_write(w, NULL, &r[i], &e), 0);
  }
  assert_int_equal(uvm_trace_commit(w, &e), 0);
}

static void test_held(void **state) {
  (void)state;
  struct uvm_error e;
  struct uvm_trace *t;
  struct uvm_trace_record r;
  assert_int_equal(uvm_trace_open_memory(every_kind, sizeof every_kind - 1, &t, &e), 0);
  for (int i = 0; i < 3; i++) assert_int_equal(uvm_trace_next(t, &r, &e), 1);   /* held from the start all the same */
  assert_int_equal(uvm_trace_hold(t, &e), 0);
  for (int pass = 0; pass < 2; pass++) {
    write_all(t, in_folder("held.uvt"));
    struct blob b = slurp(in_folder("held.uvt"));
    assert_string_equal((char *)b.v, every_kind);
    free(b.v);
    assert_int_equal(uvm_trace_next(t, &r, &e), 0);
    assert_string_equal(uvm_trace_alloc_id(t, 1), "d");
    assert_int_equal(uvm_trace_rewind(t, &e), 0);
  }
  uvm_trace_close(t);
}

/* What is wrong with a trace is told as ever, and nothing is held. */
static void test_held_not(void **state) {
  (void)state;
  struct uvm_error e;
  struct uvm_trace *t;
  static const char bad[] = "uvmtrace 1\nprocessor cpu\nfree b\n";
  assert_int_equal(uvm_trace_open_memory(bad, sizeof bad - 1, &t, &e), 0);
  assert_int_equal(uvm_trace_hold(t, &e), UVM_EINPUT);
  assert_non_null(strstr(e.text, ":3: "));
  uvm_trace_close(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_compressed),
    cmocka_unit_test(test_several_members),
    cmocka_unit_test(test_damaged),
    cmocka_unit_test(test_rubbish_after_gzip),
    cmocka_unit_test(test_bomb),
    cmocka_unit_test(test_pipe_read_again),
    cmocka_unit_test(test_pipe_read_once),
    cmocka_unit_test(test_messages_name_standard_input),
    cmocka_unit_test(test_redirected_file),
    cmocka_unit_test(test_unreadable),
    cmocka_unit_test(test_position),
    cmocka_unit_test(test_held),
    cmocka_unit_test(test_held_not),
  };
  return RUN_IN_FOLDER(tests);
}
