/* The text format: what it means, what it refuses and how it says so, and that canonical text comes back as it was. Expected values
 * are the format's description (docs/trace-format.md) or arithmetic. */
#include "tests/unit/trace_files.h"

#define START "uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 64K managed a\n"   /* what follows is line 5 */

/* Reads START and the body up to the n-th record of the body (from 0). */
static struct uvm_trace *open_body(const char *body, int n, struct uvm_trace_record *r) {
  static char text[1 << 16];
  struct uvm_error e = {0};
  struct uvm_trace *t;
  snprintf(text, sizeof text, START "%s", body);
  assert_int_equal(uvm_trace_open_memory(text, strlen(text), &t, &e), 0);
  for (int i = 0; i < 3 + n + 1; i++)
    if (uvm_trace_next(t, r, &e) != 1) fail_msg("%s", e.text);
  return t;
}

/* -- meaning -- */

static void test_access(void **state) {
  (void)state;
  struct uvm_trace_record r;
  struct uvm_trace *t = open_body("rw gpu0 a 4K 8K step=64\n", 0, &r);
  assert_int_equal(r.op, UVM_TR_ACCESS);
  assert_int_equal(r.line, 5);
  assert_int_equal(r.proc, 1);
  assert_int_equal(r.access.op, UVM_OP_RW);
  assert_int_equal(r.access.alloc, 0);
  assert_int_equal(r.access.offset, 4096);
  assert_int_equal(r.access.bytes, 8192);
  assert_true(r.access.has_step && !r.access.has_width);
  assert_int_equal(r.access.step, 64);
  assert_int_equal(r.access.width, 8);          /* the default */
  uvm_trace_close(t);
}

static void test_default_step_is_the_page(void **state) {
  (void)state;
  const char *text = "uvmtrace 1\npage 64K\nprocessor cpu\nalloc a 1M managed a\nr cpu a 0 1M\n";
  struct uvm_error e;
  struct uvm_trace *t;
  struct uvm_trace_record r;
  assert_int_equal(uvm_trace_open_memory(text, strlen(text), &t, &e), 0);
  for (int i = 0; i < 4; i++) assert_int_equal(uvm_trace_next(t, &r, &e), 1);
  assert_int_equal(r.access.step, 65536);
  uvm_trace_close(t);
}

static void test_kernel(void **state) {
  (void)state;
  struct uvm_trace_record r;
  struct uvm_trace *t = open_body("kernel gpu0 lanes=100 stream=3 name=my%20kernel ns=7\n"
                                  "  r a 0 4K split=cyclic width=4\n  next\n  # a comment\n"
                                  "  atomic a 4K 16 by=block\n  w a 0 64K split=blocked step=32\n  next\ndone\n", 0, &r);
  assert_int_equal(r.op, UVM_TR_KERNEL);
  assert_int_equal(r.lanes, 100);
  assert_int_equal(r.lanes_per_block, 100);     /* min(N, 256) */
  assert_false(r.has_lanes_per_block);
  assert_true(r.has_stream && r.stream == 3 && r.has_ns && r.ns == 7);
  assert_string_equal(r.label, "my kernel");
  assert_int_equal(r.naccesses, 3);
  const struct uvm_trace_access *a = r.accesses;
  assert_true(a[0].split == UVM_SPLIT_CYCLIC && a[0].width == 4 && a[0].step == 4 && !a[0].next && a[0].line == 6);
  assert_true(a[1].split == UVM_SPLIT_NONE && a[1].by_block && a[1].op == UVM_OP_ATOMIC && a[1].next && a[1].line == 9);
  assert_true(a[2].split == UVM_SPLIT_BLOCKED && a[2].step == 32 && a[2].width == 8 && !a[2].next);
  uvm_trace_close(t);
}

static void test_default_lanes_per_block(void **state) {
  (void)state;
  struct uvm_trace_record r;
  struct uvm_trace *t = open_body("kernel cpu lanes=1000\ndone\n", 0, &r);
  assert_int_equal(r.lanes_per_block, 256);
  assert_null(r.label);
  uvm_trace_close(t);
}

static void test_other_records(void **state) {
  (void)state;
  const char *body = "alloc d 1G device d on=gpu0 base=4294967296\nprefetch hbm0 a 0 64K stream=2\nadvise set_read_mostly gpu9 a 0 4K\n"
                     "advise set_accessed_by gpu0 a 4K 4K\nmemcpy d 1M a 4K 8K\nsync stream=2\nsync gpu0\nsync\nrecord ev stream=2\n"
                     "wait ev stream=0\ndelay cpu 500\n";
  struct uvm_trace_record r;
  uvm_trace_close(open_body(body, 0, &r));
  assert_true(r.kind == UVM_TRK_DEVICE && r.on == 1 && r.has_on && r.has_base && r.base == 4294967296 && r.alloc == 1);
  struct uvm_trace *t = open_body(body, 1, &r);
  assert_string_equal(r.label, "hbm0");
  assert_true(r.has_stream && r.stream == 2 && r.bytes == 65536);
  uvm_trace_close(t);
  uvm_trace_close(open_body(body, 2, &r));
  assert_true(r.advice == UVM_TA_SET_READ_MOSTLY && r.proc == 0);
  uvm_trace_close(open_body(body, 3, &r));
  assert_true(r.advice == UVM_TA_SET_ACCESSED_BY && r.proc == 1 && r.offset == 4096);
  uvm_trace_close(open_body(body, 4, &r));
  assert_true(r.alloc == 1 && r.offset == 1 << 20 && r.src_alloc == 0 && r.src_offset == 4096 && r.bytes == 8192);
  uvm_trace_close(open_body(body, 5, &r));
  assert_true(r.has_stream && !r.has_proc);
  uvm_trace_close(open_body(body, 6, &r));
  assert_true(!r.has_stream && r.has_proc && r.proc == 1);
  uvm_trace_close(open_body(body, 7, &r));
  assert_true(!r.has_stream && !r.has_proc);
  uvm_trace_close(open_body(body, 10, &r));
  assert_true(r.op == UVM_TR_DELAY && r.ns == 500);
}

static void test_sections(void **state) {
  (void)state;
  static const struct { const char *written, *name; bool has; uint64_t iteration; } rows[] = {
    {"epoch/7", "epoch", true, 7},     {"a/b/3", "a/b", true, 3}, {"a/b", "a/b", false, 0},
    {"epoch", "epoch", false, 0},      {"x/", "x/", false, 0},    {"x/1a", "x/1a", false, 0},
    {"n:4096/0", "n:4096", true, 0},   {"%23%25%20/9223372036854775807", "#% ", true, INT64_MAX},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char body[128];
    struct uvm_trace_record r;
    snprintf(body, sizeof body, "begin %s\nend\n", rows[i].written);
    struct uvm_trace *t = open_body(body, 0, &r);
    assert_string_equal(r.label, rows[i].name);
    assert_int_equal(r.has_iteration, rows[i].has);
    assert_int_equal(r.iteration, rows[i].iteration);
    uvm_trace_close(t);
  }
}

static void test_freed_ids_come_again(void **state) {
  (void)state;
  struct uvm_trace_record r;
  struct uvm_trace *t = open_body("free a\nalloc a 4K managed again\nr cpu a 0 4K\n", 2, &r);
  assert_int_equal(r.access.alloc, 1);
  assert_string_equal(uvm_trace_alloc_id(t, 0), "a");
  assert_string_equal(uvm_trace_alloc_id(t, 1), "a");
  assert_null(uvm_trace_alloc_id(t, 2));
  uvm_trace_close(t);
}

static void test_layout_is_free(void **state) {
  (void)state;
  static const char *const same[] = {
    "uvmtrace 1\nprocessor cpu\nalloc a 4096 managed x\nr cpu a 0 4096\n",
    "uvmtrace 1 # says so\r\n\r\n\t processor \t cpu\r\n# alloc b 1 managed b\nalloc a 4K managed x #comment\nr cpu a 0 4K",
  };
  for (size_t i = 0; i < 2; i++) {
    size_t records;
    struct uvm_error e;
    assert_int_equal(read_memory(same[i], strlen(same[i]), &records, &e), 0);
    assert_int_equal(records, 3);
  }
}

static void test_survey(void **state) {
  (void)state;
  const char *text = "uvmtrace 1\npage 64K\nprocessor cpu\nprocessor gpu0\nprocessor gpu1\nalloc a 1M managed a\nalloc b 2M managed b\n"
                     "free a\nalloc a 512K managed a\nalloc p 8M pinned p\nkernel gpu1 lanes=1\nr a 0 8\nw b 0 8\ndone\nr cpu b 0 8\n"
                     "begin s\nbegin t\nend\nend\n";
  struct uvm_error e;
  struct uvm_trace *t;
  struct uvm_trace_facts f;
  assert_int_equal(uvm_trace_open_memory(text, strlen(text), &t, &e), 0);
  for (int pass = 0; pass < 2; pass++) {
    assert_int_equal(uvm_trace_survey(t, &f, &e), 0);
    assert_int_equal(f.records, 15);
    assert_int_equal(f.kernels, 1);
    assert_int_equal(f.accesses, 3);
    assert_int_equal(f.allocs, 4);
    assert_int_equal(f.sections, 2);
    assert_int_equal(f.managed_bytes, (1024 + 2048 + 512) << 10);
    assert_int_equal(f.peak_managed_bytes, 3 << 20);             /* a and b; afterwards b and the second a */
    assert_int_equal(f.gpus, 2);
    assert_int_equal(f.page, 65536);
  }
  uvm_trace_close(t);
}

/* A page a step for the CPU, 16 bytes for the kernel's loop; a record that is not split is one access. */
static void test_survey_counts_elements(void **state) {
  (void)state;
  const char *text = "uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 1M managed a\nw cpu a 0 1M\n"
                     "kernel gpu0 lanes=4\nr a 0 1M split=cyclic width=16\nr a 0 1M\ndone\n";
  struct uvm_error e;
  struct uvm_trace *t;
  struct uvm_trace_facts f;
  assert_int_equal(uvm_trace_open_memory(text, strlen(text), &t, &e), 0);
  assert_int_equal(uvm_trace_survey(t, &f, &e), 0);
  assert_int_equal(f.elements, 256 + 65536 + 1);
  uvm_trace_close(t);
}

/* -- refusals -- */

struct refused { const char *body; int line; const char *says; };   /* body after START; line: that the message names */
static const struct refused refused[] = {
  /* words and fields */
  {"alloca b 4K managed b\n", 5, "expected a record (alloc, free, r, w, kernel, ...), found \"alloca\""},
  {"done\n", 5, "found \"done\""},
  {"next\n", 5, "found \"next\""},
  {"uvmtrace 1\n", 5, "found \"uvmtrace\""},
  {"free\n", 5, "expected the id of an allocation, found the end of the line"},
  {"free a b\n", 5, "found \"b\""},
  {"r cpu a 0\n", 5, "expected a length (bytes; K, M and G allowed), found the end of the line"},
  {"r cpu a 0 8 8\n", 5, "found \"8\""},
  {"r cpu a 0 8 stride=8\n", 5, "found \"stride=8\""},
  {"r cpu a 0 8 step=8 step=8\n", 5, "expected step= once"},
  {"r cpu a 0 8 split=cyclic\n", 5, "found \"split=cyclic\""},
  {"kernel gpu0\ndone\n", 5, "expected lanes=, a number of lanes, found the end of the line"},
  {"record ev\n", 5, "expected stream=, a stream number"},
  {"sync gpu0 gpu0\n", 5, "found \"gpu0\""},
  {"end now\n", 5, "found \"now\""},
  {"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n", 5, "expected the end of the line, found \"17\""},
  {"alloc b 4K shared b\n", 5, "expected managed, device, pinned or host, found \"shared\""},
  {"advise set_nothing cpu a 0 4K\n", 5, "expected an advice"},
  {"delay gpu0 5\n", 5, "expected cpu, found \"gpu0\""},
  {"kernel gpu0 lanes=1\nr a 0 8 split=random\ndone\n", 6, "expected cyclic or blocked, found \"random\""},
  {"kernel gpu0 lanes=1\nr a 0 8 split=\ndone\n", 6, "expected cyclic or blocked, found \"\""},
  {"kernel gpu0 lanes=1\nr a 0 8 by=warp\ndone\n", 6, "expected lane or block, found \"warp\""},
  {"kernel gpu0 lanes=1\nr a 0 8 by=lane by=lane\ndone\n", 6, "expected by= once"},
  {"kernel gpu0 lanes=1\nnext 2\ndone\n", 6, "found \"2\""},
  /* numbers */
  {"alloc b 0 managed b\n", 5, "found 0 bytes"},
  {"alloc b -1 managed b\n", 5, "found \"-1\""},
  {"alloc b 4k managed b\n", 5, "found \"4k\""},
  {"alloc b 4T managed b\n", 5, "found \"4T\""},
  {"alloc b K managed b\n", 5, "found \"K\""},
  {"alloc b 0x1000 managed b\n", 5, "found \"0x1000\""},
  {"alloc b 1.5K managed b\n", 5, "found \"1.5K\""},
  {"alloc b 131073G managed b\n", 5, "expected an allocation of 1 byte to 128 TiB"},
  {"alloc b 9223372036854775808 managed b\n", 5, "expected a number up to 2^63-1, found \"9223372036854775808\""},
  {"alloc b 9007199254740992K managed b\n", 5, "expected a number up to 2^63-1"},     /* 2^53 K is 2^63 */
  {"alloc b 99999999999999999999999 managed b\n", 5, "expected a number up to 2^63-1"},
  {"alloc b 4K managed b base=4096K\n", 5, "expected an address (decimal), found \"4096K\""},
  {"alloc b 4K managed b base=0x1000\n", 5, "found \"0x1000\""},
  {"alloc b 4K managed b base=4097\n", 5, "multiple of 4096"},
  {"alloc b 8K managed b base=140737488351232\n", 5, "below 2^47"},                   /* 2^47 - 4096 */
  {"r cpu a 0 8 step=0\n", 5, "expected a step from 1 to 2^47, found 0"},
  {"r cpu a 0 8 width=0\n", 5, "expected a width from 1 to 2^47, found 0"},
  {"kernel gpu0 lanes=1\nr a 0 8 split=cyclic width=0\ndone\n", 6, "expected a width from 1 to 2^47, found 0"},   /* the step follows it */
  {"r cpu a 0 8 width=140737488355329\n", 5, "expected a width from 1 to 2^47"},
  {"r cpu a 0 8 step=4K\n", 5, "expected a step in bytes (decimal), found \"4K\""},
  {"r cpu a 0 64K step=1 width=65536\nw cpu a 0 64K step=70000 width=140737488355328\nr cpu b 0 8\n", 7, "which no alloc record names"},
  {"alloc b 128M managed b\nr cpu b 0 128M step=1 width=67108865\n", 6,              /* 2^27 elements of 2^26 + 1 bytes */
   "expected elements of at most 2^53 bytes together, found 134217728 of 67108865 bytes"},
  {"delay cpu 9007199254740993\n", 5, "expected a time of at most 2^53 ns (104 days), found 9007199254740993"},
  {"kernel gpu0 lanes=1 ns=9223372036854775807\ndone\n", 5, "expected a time of at most 2^53 ns"},
  {"alloc b 4K pinned b\nprefetch gpu0 b 0 4K\n", 6, "expected managed memory, found \"b\", which is not"},
  {"alloc b 4K device b\nadvise set_read_mostly cpu b 0 4K\n", 6, "expected managed memory, found \"b\", which is not"},
  {"kernel gpu0 lanes=0\ndone\n", 5, "expected a number of lanes from 1 to 2^47, found 0"},
  {"kernel gpu0 lanes=1K\ndone\n", 5, "expected a number of lanes, found \"1K\""},
  {"kernel gpu0 lanes=9 lanes_per_block=0\ndone\n", 5, "expected a number of lanes per block"},
  {"begin s/9223372036854775808\nend\n", 5, "expected a number up to 2^63-1"},
  {"sync stream=-1\n", 5, "expected a stream number, found \"-1\""},
  /* ranges */
  {"r cpu a 0 0\n", 5, "expected a length of at least 1 byte, found 0"},
  {"r cpu a 64K 1\n", 5, "of 65536 bytes, found offset 65536, length 1"},
  {"r cpu a 0 65537\n", 5, "expected a range inside allocation \"a\""},
  {"r cpu a 1 64K\n", 5, "expected a range inside allocation \"a\""},
  {"w cpu a 9223372036854775807 9223372036854775807\n", 5, "expected a range inside"},
  {"prefetch gpu0 a 0 65537\n", 5, "expected a range inside"},
  {"advise set_read_mostly cpu a 65536 1\n", 5, "expected a range inside"},
  {"alloc b 4K managed b\nmemcpy a 0 b 0 8K\n", 6, "expected a range inside allocation \"b\""},
  {"alloc b 4K managed b\nmemcpy b 0 a 0 8K\n", 6, "expected a range inside allocation \"b\""},
  {"kernel gpu0 lanes=1\nr a 0 8\nw a 0 65537\ndone\n", 7, "expected a range inside"},
  /* ids */
  {"free b\n", 5, "found \"b\", which no alloc record names"},
  {"alloc a 4K managed a\n", 5, "expected a new id, found \"a\", alive since line 4"},
  {"free a\nr cpu a 0 8\n", 6, "expected a live allocation, found \"a\", which was freed on line 5"},
  {"free a\nfree a\n", 6, "expected a live allocation"},
  {"free a\nkernel gpu0 lanes=1\nr a 0 8\ndone\n", 7, "expected a live allocation"},
  {"alloc b%41 4K managed b\n", 5, "expected only the escapes %20, %25 and %23, found \"b%41\""},
  {"alloc b 4K managed b%2\n", 5, "found \"b%2\""},
  {"alloc b\1 4K managed b\n", 5, "found a control character"},
  {"kernel gpu0 lanes=1 name=\ndone\n", 5, "found an empty name"},
  {"begin /3\nend\n", 5, "expected a section's name, found an empty name"},
  /* processors */
  {"processor gpu1\n", 5, "expected processors before the first alloc"},
  {"r gpu1 a 0 8\n", 5, "expected a declared processor, found \"gpu1\""},
  {"r gpu a 0 8\n", 5, "expected a processor (cpu, gpu0, ...), found \"gpu\""},
  {"r gpu01 a 0 8\n", 5, "found \"gpu01\""},
  {"r gpu99 a 0 8\n", 5, "found \"gpu99\""},
  {"kernel gpu1 lanes=1\ndone\n", 5, "expected a declared processor"},
  {"prefetch gpu1 a 0 8\n", 5, "expected a declared processor"},
  {"advise set_accessed_by gpu1 a 0 8\n", 5, "expected a declared processor"},
  {"advise set_accessed_by hbm0 a 0 8\n", 5, "expected a processor (cpu, gpu0, ...), found \"hbm0\""},
  {"sync gpu1\n", 5, "expected a declared processor"},
  {"alloc b 4K device b on=gpu1\n", 5, "expected a declared processor, found \"gpu1\""},
  {"alloc b 4K device b on=cpu\n", 5, "expected a GPU in on=, found \"cpu\""},
  {"alloc b 4K managed b on=gpu0\n", 5, "expected on= only with kind device"},
  {"page 4K\n", 5, "expected one page record, before the first alloc"},
  /* kernels, sections, events */
  {"kernel gpu0 lanes=1\nr a 0 8\n", 5, "expected \"done\" for this kernel, found the end of the file"},
  {"kernel gpu0 lanes=1\nkernel gpu0 lanes=1\ndone\ndone\n", 6, "in the kernel of line 5, found \"kernel\""},
  {"kernel gpu0 lanes=1\nfree a\ndone\n", 6, "in the kernel of line 5, found \"free\""},
  {"kernel gpu0 lanes=1\nr a 0 8 width=4\ndone\n", 6, "expected split= beside step= or width="},
  {"kernel gpu0 lanes=1\nr a 0 8 split=cyclic by=block\ndone\n", 6, "expected split= or by=, found both"},
  {"begin s\nsync\n", 5, "expected \"end\" for this \"begin\", found the end of the trace"},
  {"begin s\nbegin t\nend\n", 5, "expected \"end\" for this \"begin\""},
  {"begin s\nbegin t\n", 6, "expected \"end\" for this \"begin\""},
  {"end\n", 5, "expected an open section"},
  {"wait ev stream=0\n", 5, "expected an event that was recorded, found \"ev\""},
};

static void check_refused(const char *text, size_t n, int line, const char *says) {
  struct uvm_error e = {0};
  char start[32];
  int code = read_memory(text, n, NULL, &e);
  snprintf(start, sizeof start, "memory:%d: expected ", line);
  if (code == UVM_EINPUT && e.code == UVM_EINPUT && !strncmp(e.text, start, strlen(start)) && strstr(e.text, says)) return;
  fail_msg("code %d, \"%s\"; wanted \"%s...%s\" for:\n%s", code, e.text, start, says, text);
}

static void test_refusals(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    char text[512];
    int n = snprintf(text, sizeof text, START "%s", refused[i].body);
    check_refused(text, (size_t)n, refused[i].line, refused[i].says);
  }
}

static void test_refused_starts(void **state) {
  (void)state;
  static const struct refused rows[] = {
    {"", 1, "an empty file"},
    {"\n", 1, "something else"},
    {"\x7f" "ELF\2\1\1", 1, "something else"},
    {"# uvmtrace 1\n", 1, "something else"},
    {"uvmtrace\n", 1, "version 1 of the format, found the end of the line"},
    {"uvmtrace 2\n", 1, "version 1 of the format, found \"2\""},
    {"uvmtrace 1 1\n", 1, "expected the end of the line, found \"1\""},
    {"uvmtracer 1\n", 1, "found \"uvmtracer\""},
    {"uvmtrace 1\nprocessor gpu0\n", 2, "expected processor \"cpu\""},
    {"uvmtrace 1\nprocessor cpu\nprocessor gpu1\n", 3, "expected processor \"gpu0\""},
    {"uvmtrace 1\nprocessor cpu\nprocessor cpu\n", 3, "expected processor \"gpu0\""},
    {"uvmtrace 1\npage 2K\n", 2, "a power of two from 4K to 2M, found 2048"},
    {"uvmtrace 1\npage 4M\n", 2, "a power of two from 4K to 2M, found 4194304"},
    {"uvmtrace 1\npage 12K\n", 2, "a power of two from 4K to 2M, found 12288"},
    {"uvmtrace 1\npage 4K\npage 4K\n", 3, "expected one page record"},
    {"uvmtrace 1\nalloc a 4K device a\n", 2, "expected a declared processor, found \"gpu0\""},
    {"uvmtrace 1\nprocessor cpu\nalloc \xff 4K managed a\n", 3, "expected UTF-8 text"},
    {"uvmtrace 1\nprocessor \xed\xa0\x80\n", 2, "expected UTF-8 text"},            /* a surrogate */
    {"uvmtrace 1\n# \xc0\xaf\n", 2, "expected UTF-8 text"},                        /* an overlong form */
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_refused(rows[i].body, strlen(rows[i].body), rows[i].line, rows[i].says);
  check_refused("uvmtrace 1\n#\0\n", 14, 2, "expected text, found a NUL byte");
}

static void test_long_lines(void **state) {
  (void)state;
  enum { LIMIT = 1 << 20, START_LENGTH = 11 };
  char *text = malloc(START_LENGTH + LIMIT + 3);
  memcpy(text, "uvmtrace 1\n", START_LENGTH);
  memset(text + START_LENGTH, '#', LIMIT + 1);
  memcpy(text + START_LENGTH + LIMIT, "\n", 2);
  struct uvm_error e;
  assert_int_equal(read_memory(text, START_LENGTH + LIMIT + 1, NULL, &e), 0);       /* 1 MiB is allowed */
  memcpy(text + START_LENGTH + LIMIT, "#\n", 3);
  check_refused(text, START_LENGTH + LIMIT + 2, 2, "expected a line of at most 1 MiB");
  free(text);
}

/* Cut anywhere, a trace either ends early or is refused on one of its own lines; inside a kernel or a section it is always refused. */
static void test_cut_anywhere(void **state) {
  (void)state;
  const char *text = START "begin s/1\nkernel gpu0 lanes=4 name=k\nr a 0 4096 split=cyclic\ndone\nend\nfree a\n";
  size_t open = strlen(START) + 6, closed = (size_t)(strstr(text, "end\n") - text) + 3;   /* after "begin " and after "end" */
  for (size_t n = 0; n < strlen(text); n++) {
    struct uvm_error e = {0};
    int code = read_memory(text, n, NULL, &e);
    assert_true(code == 0 || code == UVM_EINPUT);
    if (code) assert_true(!strncmp(e.text, "memory:", 7) && e.text[7] >= '1' && e.text[7] <= '9');
    if (n > open && n < closed) assert_int_equal(code, UVM_EINPUT);
  }
}

/* -- writing -- */

static const char canonical[] =
  "uvmtrace 1\npage 65536\nprocessor cpu\nprocessor gpu0\nprocessor gpu1\n"
  "alloc a%20b%25%23 65536 managed label%23\nalloc d 1048576 device d on=gpu1 base=4194304\nalloc h 4096 host h\nalloc p 4096 pinned p\n"
  "r cpu a%20b%25%23 0 65536\nw gpu1 a%20b%25%23 4096 8 step=4096 width=8\nrw cpu h 0 1 width=1\natomic gpu0 p 8 8 step=8\n"
  "kernel gpu0 lanes=1000 lanes_per_block=128 stream=4 name=k%20k ns=12\nr h 0 4096 split=cyclic step=16 width=4\n"
  "next\nw h 0 4096 by=block\natomic h 8 8\nrw h 0 64 split=blocked\ndone\nkernel cpu lanes=1\ndone\n"
  "prefetch gpu1 a%20b%25%23 0 4096 stream=9\nprefetch dram a%20b%25%23 0 4096\nadvise set_preferred_location cpu a%20b%25%23 0 4096\n"
  "advise unset_read_mostly cpu a%20b%25%23 0 4096\nadvise set_coarse_grain gpu1 a%20b%25%23 0 4096\n"
  "memcpy d 0 h 1 2 stream=1\nmemcpy h 0 d 0 2\n"
  "sync\nsync stream=4\nsync gpu1\nsync stream=0 gpu1\nrecord e%20v stream=4\nwait e%20v stream=0\ndelay cpu 1000\n"
  "begin s\nbegin s/3\nbegin a/b/0\nend\nend\nend\nfree h\nalloc h 4096 managed h2\nw cpu h 0 8\n";

static void test_canonical_text_is_kept(void **state) {
  (void)state;
  spew(in_folder("in.uvt"), canonical, strlen(canonical));
  convert(in_folder("in.uvt"), in_folder("out.uvt"));
  struct blob b = slurp(in_folder("out.uvt"));
  assert_string_equal((char *)b.v, canonical);
  free(b.v);
}

/* The recordings are canonical text: they come back byte for byte, through the compressed forms and the binary one too. */
static void test_recordings_are_kept(void **state) {
  (void)state;
  static const char *const names[] = {"advise", "block_read", "chase", "cpufan", "epochs", "fan", "first_touch", "pingpong",
                                      "prefetch", "random", "stream_read", "stream_small", "stream_write", "thrash"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[128], command[512];
    snprintf(path, sizeof path, RECORDED "%s.uvt.gz", names[i]);
    convert(path, in_folder("plain.uvt"));
    convert(in_folder("plain.uvt"), in_folder("a.uvb"));
    convert(in_folder("a.uvb"), in_folder("b.uvt.zst"));
    convert(in_folder("b.uvt.zst"), in_folder("c.uvt.gz"));
    snprintf(command, sizeof command, "cd %s && zcat c.uvt.gz | cmp - plain.uvt", folder);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "zcat %s | cmp - %s/plain.uvt", path, folder);
    assert_int_equal(system(command), 0);
  }
}

static void test_samples(void **state) {
  (void)state;
  static const char *const names[] = {"first_touch", "vecadd", "pingpong", "oversubscribed"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[128];
    struct uvm_error e = {0};
    snprintf(path, sizeof path, "traces/samples/%s.uvt", names[i]);
    if (read_path(path, NULL, &e)) fail_msg("%s", e.text);
  }
}

/* A name that looks as if it had an iteration gets one, so that it is read back as the same name. */
static void test_names_with_slashes(void **state) {
  (void)state;
  struct uvm_error e;
  struct uvm_trace_writer *w;
  struct uvm_trace_record r = {.op = UVM_TR_BEGIN, .label = "layer/3"};
  assert_int_equal(uvm_trace_create(in_folder("n.uvt"), &w, &e), 0);
  assert_int_equal(uvm_trace_write(w, NULL, &r, &e), 0);
  assert_int_equal(uvm_trace_write(w, NULL, &(struct uvm_trace_record){.op = UVM_TR_END}, &e), 0);
  assert_int_equal(uvm_trace_commit(w, &e), 0);
  struct blob b = slurp(in_folder("n.uvt"));
  assert_string_equal((char *)b.v, "uvmtrace 1\nbegin layer/3/0\nend\n");
  free(b.v);
}

static void test_bad_names_are_not_written(void **state) {
  (void)state;
  struct uvm_error e;
  struct uvm_trace_writer *w;
  assert_int_equal(uvm_trace_create(in_folder("bad.uvt"), &w, &e), 0);
  static const char *const names[] = {"", "a\nb", "a\tb", "\xff"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct uvm_trace_record r = {.op = UVM_TR_BEGIN, .label = names[i]};
    assert_int_equal(uvm_trace_write(w, NULL, &r, &e), UVM_EINPUT);
  }
  uvm_trace_abandon(w);
  assert_int_equal(access(in_folder("bad.uvt"), F_OK), -1);      /* nothing is left behind */
}

static void test_unknown_suffix(void **state) {
  (void)state;
  struct uvm_error e;
  struct uvm_trace_writer *w;
  assert_int_equal(uvm_trace_create(in_folder("x.txt"), &w, &e), UVM_EUSAGE);
  assert_non_null(strstr(e.text, ".uvt, .uvt.gz, .uvt.zst or .uvb"));
  assert_int_equal(uvm_trace_create(in_folder("nowhere/x.uvt"), &w, &e), UVM_EENV);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_access),
    cmocka_unit_test(test_default_step_is_the_page),
    cmocka_unit_test(test_kernel),
    cmocka_unit_test(test_default_lanes_per_block),
    cmocka_unit_test(test_other_records),
    cmocka_unit_test(test_sections),
    cmocka_unit_test(test_freed_ids_come_again),
    cmocka_unit_test(test_layout_is_free),
    cmocka_unit_test(test_survey), cmocka_unit_test(test_survey_counts_elements),
    cmocka_unit_test(test_refusals),
    cmocka_unit_test(test_refused_starts),
    cmocka_unit_test(test_long_lines),
    cmocka_unit_test(test_cut_anywhere),
    cmocka_unit_test(test_canonical_text_is_kept),
    cmocka_unit_test(test_recordings_are_kept),
    cmocka_unit_test(test_samples),
    cmocka_unit_test(test_names_with_slashes),
    cmocka_unit_test(test_bad_names_are_not_written),
    cmocka_unit_test(test_unknown_suffix),
  };
  return RUN_IN_FOLDER(tests);
}
