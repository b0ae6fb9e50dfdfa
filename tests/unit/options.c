/* The command line. Expected values: the command line's own description. */
#include "unit.h"
#include "cli/options.h"

static struct uvm_options o;
static struct uvm_error e;

/* Parses words separated by blanks; "_" stands for an empty word. */
static int parse(const char *line) {
  static char text[512];
  char *argv[32];
  int n = 0;
  uvm_options_free(&o);
  snprintf(text, sizeof text, "%s", line);
  for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) argv[n++] = strcmp(word, "_") ? word : "";
  e.text[0] = 0;
  return uvm_options_parse(n, argv, &o, &e);
}

static void test_values(void **state) {
  (void)state;
  assert_int_equal(parse("replay t.uvt --machine m --gpu-memory=3M -ppol --seed 7 -o a.b=c=d --json -"), 0);
  const struct uvm_session_config *c = &o.side[0].config;
  assert_string_equal(o.operand[0], "t.uvt");
  assert_string_equal(c->machine, "m");
  assert_string_equal(c->policy, "pol");
  assert_string_equal(o.json, "-");
  assert_true(c->gpu_memory == 3 << 20 && c->seed == 7 && c->nsettings == 1);
  assert_string_equal(c->settings[0].owner, "a");
  assert_string_equal(c->settings[0].key, "b");
  assert_string_equal(c->settings[0].value, "c=d");
}

static void test_nothing_given(void **state) {
  (void)state;
  assert_int_equal(parse("replay -"), 0);
  assert_string_equal(o.operand[0], "-");
  assert_null(o.side[0].config.machine);
  assert_true(o.page == UVM_NEVER && o.tolerance < 0 && !o.quiet && !o.side[0].config.gpu_memory);
}

static void test_two_words_and_dashes(void **state) {
  (void)state;
  assert_int_equal(parse("trace convert in -o out"), 0);
  assert_string_equal(o.command->name, "trace convert");
  assert_string_equal(o.output, "out");
  assert_int_equal(parse("replay --quiet -- --odd-name"), 0);
  assert_string_equal(o.operand[0], "--odd-name");
  assert_true(o.quiet);
}

/* The second side of diff is the first but for what ends in -b; its settings win. */
static void test_sides(void **state) {
  (void)state;
  assert_int_equal(parse("diff t --policy x --seed-b 5 --prefetch-b none --seed 4 -o a.k=1 --option-b a.k=2"), 0);
  const struct uvm_session_config *a = &o.side[0].config, *b = &o.side[1].config;
  assert_string_equal(b->policy, "x");
  assert_null(a->prefetch);
  assert_string_equal(b->prefetch, "none");
  assert_true(a->seed == 4 && b->seed == 5 && a->nsettings == 1 && b->nsettings == 2);
  assert_string_equal(b->settings[0].value, "1");
  assert_string_equal(b->settings[1].value, "2");
}

static void test_errors(void **state) {
  (void)state;
  static const struct {
    const char *line, *says;
  } cases[] = {{"replya t", "did you mean 'replay'?"},
               {"nonsense", "unknown command 'nonsense'; known: replay"},
               {"trace", "trace: expected a second word"},
               {"trace nothing t", "unknown trace command 'nothing'; known: info"},
               {"replay", "expected TRACE"},
               {"replay a b", "'b' is one argument too many"},
               {"policies a b", "'b' is one argument too many"},
               {"replay t --machin m", "did you mean '--machine'?"},
               {"replay t --alloc 1", "unknown option of replay '--alloc'"},
               {"replay t --policy-b x", "unknown option of replay '--policy-b'"},
               {"replay t -z", "unknown option of replay '-z'"},
               {"replay t --machine", "--machine: NAME is missing"},
               {"replay t --machine _", "--machine: expected NAME"},
               {"replay _", "replay: expected TRACE"},
               {"replay t --quiet=1", "--quiet takes no value"},
               {"replay t --gpu-memory 0", "expected a size from 1 to 2^63-1"},
               {"replay t --gpu-memory 1X", "expected a size from 1 to 2^63-1"},
               {"replay t --gpu-memory 99999999999G", "expected a size from 1 to 2^63-1"},
               {"replay t --oversubscribe 0", "expected a number above 0"},
               {"replay t --oversubscribe nan", "expected a number above 0"},
               {"replay t --seed -1", "expected a whole number"},
               {"replay t -o x=1", "expected NAME.KEY=VALUE"},
               {"replay t -o .x=1", "expected NAME.KEY=VALUE"},
               {"replay t -o a.=1", "expected NAME.KEY=VALUE"},
               {"replay t -o a=b.c", "expected NAME.KEY=VALUE"},
               {"replay t --gpu-memory 1G --oversubscribe 2", "give one"},
               {"diff t --gpu-memory 1G --oversubscribe-b 2", "give one"},
               {"validate t --tolerance -1", "expected a number from 0"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(parse(cases[i].line), UVM_EUSAGE);
    if (!strstr(e.text, cases[i].says)) fail_msg("%s: '%s' does not say '%s'", cases[i].line, e.text, cases[i].says);
  }
}

/* --help needs no operands; each command has every text that help prints, and each option is taken by someone. */
static void test_tables(void **state) {
  (void)state;
  uint32_t seen = 0;
  for (const struct uvm_command *c = uvm_commands; c->name; c++) {
    char line[64];
    snprintf(line, sizeof line, "%s --help", c->name);
    assert_int_equal(parse(line), 0);
    assert_true(o.help && c->operands && *c->summary && *c->about && *c->example && c->run && c->min <= c->max);
    assert_false(seen & c->bit);
    seen |= c->bit;
  }
  assert_int_equal(seen, UVM_CMD_ALL);
  for (const struct uvm_option *a = uvm_option_table; a->name; a++) {
    assert_true((a->commands & UVM_CMD_ALL) && *a->help && (a->type == UVM_O_SWITCH) == !a->arg);
    for (const struct uvm_option *b = a + 1; b->name; b++)
      if (a->commands & b->commands) assert_true(strcmp(a->name, b->name) && (!a->letter || a->letter != b->letter));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values), cmocka_unit_test(test_nothing_given), cmocka_unit_test(test_two_words_and_dashes),
      cmocka_unit_test(test_sides),  cmocka_unit_test(test_errors),        cmocka_unit_test(test_tables)};
  int failed = UVM_RUN(tests);
  uvm_options_free(&o);
  return failed;
}
