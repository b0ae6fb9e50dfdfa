/* Base: numbers at their limits, masks against a plain array, files that appear whole, options. */
#include "tests/unit/unit.h"
#include "base/base.h"
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_sizes(void **state) {
  (void)state;
  static const struct {
    const char *text;
    bool ok;
    uint64_t value;
  } rows[] = {
      {"0", true, 0},
      {"4096", true, 4096},
      {"1K", true, 1024},
      {"3M", true, 3145728},
      {"2G", true, 2147483648},
      {"1T", true, 1099511627776},
      {"9223372036854775807", true, INT64_MAX},
      {"9223372036854775808", false, 0},
      {"8388607T", true, 8388607ull << 40},
      {"8388608T", false, 0},
      {"", false, 0},
      {"K", false, 0},
      {"1k", false, 0},
      {"1KB", false, 0},
      {"-1", false, 0},
      {" 1", false, 0},
      {"0x10", false, 0},
      {"1.5M", false, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint64_t v = 0;
    assert_int_equal(uvm_parse_size(rows[i].text, &v), rows[i].ok);
    if (rows[i].ok) assert_int_equal(v, rows[i].value);
  }
}

static void test_times(void **state) {
  (void)state;
  uint64_t v;
  assert_true(uvm_parse_ns("500us", &v) && v == 500000);
  assert_true(uvm_parse_ns("7", &v) && v == 7);
  assert_true(uvm_parse_ns("2s", &v) && v == 2000000000);
  assert_false(uvm_parse_ns("2m", &v));
  assert_false(uvm_parse_ns("9223372037s", &v)); /* one second past 2^63-1 ns */
}

static void test_limits(void **state) {
  (void)state;
  uint64_t v;
  assert_true(uvm_parse_u64("7", 7, &v) && v == 7);
  assert_false(uvm_parse_u64("8", 7, &v));
  assert_true(uvm_parse_u64("18446744073709551615", UINT64_MAX, &v) && v == UINT64_MAX);
  assert_false(uvm_parse_u64("18446744073709551616", UINT64_MAX, &v));
  double f;
  assert_true(uvm_parse_f64("0.25", &f) && f == 0.25);
  assert_false(uvm_parse_f64("nan", &f));
  assert_false(uvm_parse_f64("1e999", &f));
  assert_false(uvm_parse_f64("1x", &f));
  assert_false(uvm_parse_f64(" 1", &f));
  assert_false(uvm_parse_f64("0x1p3", &f));
}

static void test_texts(void **state) {
  (void)state;
  char b[24];
  assert_string_equal(uvm_size_text(0, b), "0 B");
  assert_string_equal(uvm_size_text(1024, b), "1 KiB");
  assert_string_equal(uvm_size_text(1536, b), "1.50 KiB");
  assert_string_equal(uvm_ns_text(999, b), "999 ns");
  assert_string_equal(uvm_ns_text(1500000, b), "1.50 ms");
}

/* Runs and gaps against a plain array, on random masks of several densities. */
static void test_mask_runs(void **state) {
  (void)state;
  uint64_t seed = 1;
  for (int round = 0; round < 2000; round++) {
    bool plain[UVM_BLOCK_PAGES + 1] = {false};
    uvm_mask m = {{0}};
    uint64_t density = uvm_random(&seed) % 100;
    for (int p = 0; p < UVM_BLOCK_PAGES; p++)
      if (uvm_random(&seed) % 100 < density) plain[p] = true, uvm_mask_add(&m, p);
    int at = 0, n = 0;
    for (int a, b = 0; uvm_mask_run(&m, &a, &b);) {
      for (; at < a; at++) assert_false(plain[at]);
      for (; at < b; at++) assert_true(plain[at]), n++;
    }
    for (; at < UVM_BLOCK_PAGES; at++) assert_false(plain[at]);
    assert_int_equal(n, uvm_mask_count(&m));
  }
}

static void test_mask_sets(void **state) {
  (void)state;
  for (int a = 0; a <= UVM_BLOCK_PAGES; a += 7)
    for (int b = a; b <= UVM_BLOCK_PAGES; b += 13) {
      uvm_mask m = uvm_mask_range(a, b);
      assert_int_equal(uvm_mask_count(&m), b - a);
      assert_int_equal(uvm_mask_empty(&m), a == b);
      if (a < b) assert_int_equal(uvm_mask_next(&m, 0), a), assert_int_equal(uvm_mask_gap(&m, a), b);
    }
  uvm_mask x = uvm_mask_range(0, 100), y = uvm_mask_range(50, 60);
  assert_true(uvm_mask_subset(&y, &x) && !uvm_mask_subset(&x, &y) && uvm_mask_meets(&x, &y));
  uvm_mask_andnot(&x, &y);
  assert_false(uvm_mask_meets(&x, &y));
  assert_int_equal(uvm_mask_count(&x), 90);
}

static void test_out(void **state) {
  (void)state;
  char dir[] = "/tmp/uvmsim-base-XXXXXX", path[64];
  assert_non_null(mkdtemp(dir));
  snprintf(path, sizeof path, "%s/file", dir);
  struct uvm_out o;
  struct uvm_error e;
  struct stat st;
  assert_int_equal(uvm_out_open(&o, path, &e), 0);
  fputs("half", o.f);
  assert_int_not_equal(stat(path, &st), 0); /* not there before it is whole */
  uvm_out_abandon(&o);
  assert_int_not_equal(stat(path, &st), 0);
  assert_int_equal(uvm_out_open(&o, path, &e), 0);
  fputs("whole", o.f);
  assert_int_equal(uvm_out_commit(&o, &e), 0);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_size, 5);
  unlink(path);
  assert_int_equal(rmdir(dir), 0); /* and nothing else is left */
}

static void test_out_full(void **state) {
  (void)state;
  struct uvm_out o;
  struct uvm_error e;
  assert_int_equal(uvm_out_open(&o, "/dev/full", &e), 0);
  fputs("x", o.f);
  assert_int_equal(uvm_out_commit(&o, &e), UVM_EENV);
  assert_non_null(strstr(e.text, "/dev/full"));
  assert_int_equal(uvm_out_open(&o, "/nowhere/at/all", &e), UVM_EENV);
}

/* The failing allocation ends the process with status 4, a message, and without the file being written. */
static void test_out_of_memory(void **state) {
  (void)state;
  char path[] = "/tmp/uvmsim-oom-XXXXXX";
  close(mkstemp(path)), unlink(path);
  int fds[2];
  assert_int_equal(pipe(fds), 0);
  pid_t child = fork();
  if (!child) {
    dup2(fds[1], 2);
    struct uvm_out o;
    uvm_out_open(&o, path, NULL);
    uvm_mem_fail_at(2);
    uvm_mem_free(uvm_mem(1));
    uvm_mem(77);
    _exit(0);
  }
  close(fds[1]);
  int status;
  waitpid(child, &status, 0);
  char text[128] = "", name[64];
  assert_true(read(fds[0], text, sizeof text - 1) > 0);
  assert_int_equal(WEXITSTATUS(status), 4);
  assert_non_null(strstr(text, "out of memory"));
  assert_non_null(strstr(text, "77"));
  snprintf(name, sizeof name, "%s", path);
  assert_int_not_equal(access(name, F_OK), 0);
}

struct sample {
  bool on;
  uint32_t n;
  uint64_t size, ns;
  double f;
};
static const struct uvm_opt sample_opts[] = {{"on", UVM_BOOL, offsetof(struct sample, on), 0, 1, 1, "a switch"},
                                             {"n", UVM_U32, offsetof(struct sample, n), 1, 20, 5, "a number"},
                                             {"size", UVM_SIZE, offsetof(struct sample, size), 0, 1e12, 4096, "a size"},
                                             {"ns", UVM_NS, offsetof(struct sample, ns), 0, 1e12, 500, "a time"},
                                             {"f", UVM_F64, offsetof(struct sample, f), 0, 1, 0.5, "a fraction"},
                                             {0}};

static void test_options(void **state) {
  (void)state;
  struct sample s = {0};
  struct uvm_error e;
  uvm_opt_defaults(sample_opts, &s);
  assert_true(s.on && s.n == 5 && s.size == 4096 && s.ns == 500 && s.f == 0.5);
  assert_int_equal(uvm_opt_set(sample_opts, &s, "x", "size", "2M", &e), 0);
  assert_int_equal(uvm_opt_set(sample_opts, &s, "x", "ns", "3us", &e), 0);
  assert_int_equal(uvm_opt_set(sample_opts, &s, "x", "on", "0", &e), 0);
  assert_true(!s.on && s.size == 2097152 && s.ns == 3000);
  static const char *const bad[][2] = {{"on", "yes"}, {"n", "0"}, {"n", "21"}, {"n", "x"}, {"f", "1.5"}, {"ns", "1m"}, {"size", "4X"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(uvm_opt_set(sample_opts, &s, "x", bad[i][0], bad[i][1], &e), UVM_EUSAGE);
    assert_non_null(strstr(e.text, bad[i][1]));
  }
  assert_null(uvm_opt_find(sample_opts, "nothing"));
}

/* Objects keep what is written to them, whoever comes and goes beside them, and come zeroed, used before or not. */
static void test_slab(void **state) {
  enum { OBJECTS = 3000, WORDS = 125 }; /* 1000 bytes each: several chunks */
  static uint64_t *at[OBJECTS];
  struct uvm_slab s = {.size = WORDS * sizeof(uint64_t)};
  uint64_t seed = 5;
  (void)state;
  for (int round = 0; round < 20000; round++) {
    size_t i = uvm_random(&seed) % OBJECTS;
    if (at[i]) {
      for (size_t w = 0; w < WORDS; w++) assert_int_equal(at[i][w], i);
      uvm_slab_give(&s, at[i]);
      at[i] = NULL;
    } else {
      at[i] = uvm_slab_take(&s);
      for (size_t w = 0; w < WORDS; w++) assert_int_equal(at[i][w], 0), at[i][w] = i;
    }
  }
  assert_in_range(s.chunks.n, 2, 3); /* 3 MB at most are alive at once */
  uvm_slab_release(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes),         cmocka_unit_test(test_times),     cmocka_unit_test(test_limits),
      cmocka_unit_test(test_texts),         cmocka_unit_test(test_mask_runs), cmocka_unit_test(test_mask_sets),
      cmocka_unit_test(test_out),           cmocka_unit_test(test_out_full),  cmocka_unit_test(test_options),
      cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_slab),
  };
  return UVM_RUN(tests);
}
