/* Observed events: rows as recorded, rows refused, and a file written and read back. */
#include "tests/unit/trace_files.h"

#define HEADER "t_ns,dur_ns,kind,alloc,offset,value,flags,src,dst\n"

static int read_rows(const char *rows, struct uvm_csv_event *last, struct uvm_error *e) {
  struct uvm_csv *c;
  spew(in_folder("e.csv"), rows, strlen(rows));
  int code = uvm_csv_open(in_folder("e.csv"), &c, e);
  if (code) return code;
  struct uvm_csv_event ev;
  while ((code = uvm_csv_next(c, &ev, e)) == 1)
    if (last) *last = ev;
  uvm_csv_close(c);
  return code;
}

static void test_rows(void **state) {
  (void)state;
  struct uvm_csv_event v;
  struct uvm_error e;
  assert_int_equal(read_rows(HEADER "46084,600095,section,-1,0,3,gpu_first_touch:2097152,,\n", &v, &e), 0);
  assert_true(v.t == 46084 && v.dur == 600095 && v.alloc == -1 && v.value == 3 && v.src == -1 && v.dst == -1 && v.line == 2);
  assert_string_equal(v.kind, "section");
  assert_string_equal(v.name, "gpu_first_touch:2097152");        /* the length a recording adds is kept */
  assert_int_equal(read_rows(HEADER "1,2,throttle,7,4096,5,0xAb,4294967295,0\r\n", &v, &e), 0);
  assert_true(v.t == 1 && v.dur == 2 && v.alloc == 7 && v.offset == 4096 && v.value == 5 && v.flags == 0xab);
  assert_true(v.src == 4294967295 && v.dst == 0);
  assert_int_equal(read_rows(HEADER "1,0,something_new,-1,0,0,0x0,,", &v, &e), 0);
  assert_string_equal(v.kind, "something_new");
}

static void test_refusals(void **state) {
  (void)state;
  static const struct { const char *rows; int line; const char *says; } rows[] = {
    {"", 1, "an empty file"},
    {"t,dur,kind\n", 1, "expected the header"},
    {HEADER "1,2,h2d,0,0,0,0x1,0\n", 2, "expected 9 columns"},
    {HEADER "1,2,h2d,0,0,0,0x1,0,0,0\n", 2, "found 10"},
    {HEADER "\n", 2, "found 1"},
    {HEADER "x,2,h2d,0,0,0,0x1,0,0\n", 2, "in column t_ns, found \"x\""},
    {HEADER "-1,2,h2d,0,0,0,0x1,0,0\n", 2, "in column t_ns"},
    {HEADER "1,9223372036854775808,h2d,0,0,0,0x1,0,0\n", 2, "in column dur_ns"},
    {HEADER "1,,h2d,0,0,0,0x1,0,0\n", 2, "in column dur_ns, found nothing"},
    {HEADER "1,2,,0,0,0,0x1,0,0\n", 2, "in column kind"},
    {HEADER "1,2,abcdefghijklmnopqrstuvwx,0,0,0,0x1,0,0\n", 2, "in column kind"},
    {HEADER "1,2,h2d,-2,0,0,0x1,0,0\n", 2, "in column alloc"},
    {HEADER "1,2,h2d,0,a,0,0x1,0,0\n", 2, "in column offset"},
    {HEADER "1,2,h2d,0,0,1K,0x1,0,0\n", 2, "in column value"},
    {HEADER "1,2,h2d,0,0,0,1,0,0\n", 2, "expected flags in hexadecimal (0x...) in column flags, found \"1\""},
    {HEADER "1,2,h2d,0,0,0,0x,0,0\n", 2, "in column flags"},
    {HEADER "1,2,h2d,0,0,0,0xg,0,0\n", 2, "in column flags"},
    {HEADER "1,2,h2d,0,0,0,0x11111111111111111,0,0\n", 2, "in column flags"},
    {HEADER "1,2,section,-1,0,0,,,\n", 2, "expected a section's name"},
    {HEADER "1,2,h2d,0,0,0,0x1,cpu,0\n", 2, "in column src"},
    {HEADER "1,2,h2d,0,0,0,0x1,0,-1\n", 2, "in column dst"},
    {HEADER "5,0,h2d,0,0,0,0x1,0,0\n5,0,h2d,0,0,0,0x1,0,0\n4,0,h2d,0,0,0,0x1,0,0\n", 4, "expected rows in order of time"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct uvm_error e = {0};
    char where[300];
    snprintf(where, sizeof where, "%s:%d: expected ", in_folder("e.csv"), rows[i].line);
    int code = read_rows(rows[i].rows, NULL, &e);
    if (code != UVM_EINPUT || strncmp(e.text, where, strlen(where)) || !strstr(e.text, rows[i].says))
      fail_msg("row %zu: code %d, \"%s\"", i, code, e.text);
  }
}

static void test_long_names(void **state) {
  (void)state;
  char rows[512], name[257];
  struct uvm_error e;
  memset(name, 'n', 256);
  name[256] = 0;
  snprintf(rows, sizeof rows, HEADER "1,2,section,-1,0,0,%s,,\n", name);
  assert_int_equal(read_rows(rows, NULL, &e), UVM_EINPUT);
  name[255] = 0;
  snprintf(rows, sizeof rows, HEADER "1,2,section,-1,0,0,%s,,\n", name);
  assert_int_equal(read_rows(rows, NULL, &e), 0);
}

/* Every recording, read and written, is what it was: rows lose nothing. */
static void test_recordings_are_kept(void **state) {
  (void)state;
  static const char *const names[] = {"advise", "block_read", "chase", "cpufan", "epochs", "fan", "first_touch", "pingpong",
                                      "prefetch", "random", "stream_small", "stream_write", "thrash"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[128], command[512];
    struct uvm_error e;
    struct uvm_csv *c;
    struct uvm_csv_writer *w;
    struct uvm_csv_event ev;
    snprintf(path, sizeof path, RECORDED "%s.events.csv.gz", names[i]);
    assert_int_equal(uvm_csv_open(path, &c, &e), 0);
    assert_int_equal(uvm_csv_create(in_folder("o.csv.gz"), &w, &e), 0);
    int code;
    while ((code = uvm_csv_next(c, &ev, &e)) == 1) assert_int_equal(uvm_csv_write(w, &ev, &e), 0);
    if (code) fail_msg("%s", e.text);
    uvm_csv_close(c);
    assert_int_equal(uvm_csv_commit(w, &e), 0);
    snprintf(command, sizeof command, "zcat %s > %s/i.csv && zcat %s/o.csv.gz | cmp - %s/i.csv", path, folder, folder, folder);
    assert_int_equal(system(command), 0);
  }
}

static void test_names_are_escaped(void **state) {
  (void)state;
  struct uvm_error e;
  struct uvm_csv_writer *w;
  struct uvm_csv *c;
  struct uvm_csv_event ev = {.kind = "section", .alloc = -1, .name = "add<int, 4> 100%", .src = -1, .dst = -1}, back;
  assert_int_equal(uvm_csv_create(in_folder("n.csv"), &w, &e), 0);
  assert_int_equal(uvm_csv_write(w, &ev, &e), 0);
  assert_int_equal(uvm_csv_commit(w, &e), 0);
  struct blob b = slurp(in_folder("n.csv"));
  assert_string_equal((char *)b.v, HEADER "0,0,section,-1,0,0,add<int%2C 4> 100%25,,\n");
  free(b.v);
  assert_int_equal(uvm_csv_open(in_folder("n.csv"), &c, &e), 0);
  assert_int_equal(uvm_csv_next(c, &back, &e), 1);
  assert_string_equal(back.name, ev.name);
  uvm_csv_close(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_rows),
    cmocka_unit_test(test_refusals),
    cmocka_unit_test(test_long_names),
    cmocka_unit_test(test_recordings_are_kept),
    cmocka_unit_test(test_names_are_escaped),
  };
  return RUN_IN_FOLDER(tests);
}
