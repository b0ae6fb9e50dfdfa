#include "cli/options.h"
#include <stdlib.h>
#include <sys/stat.h>

/* -- names -- */

/* Edit distance (insertions, deletions, replacements), or 99 for words too long to be typing mistakes. */
static int distance(const char *a, const char *b) {
  enum { MAX = 32 };
  size_t n = strlen(a), m = strlen(b);
  if (n >= MAX || m >= MAX) return 99;
  int row[MAX];
  for (size_t j = 0; j <= m; j++) row[j] = (int)j;
  for (size_t i = 1; i <= n; i++) {
    int diagonal = row[0];
    row[0] = (int)i;
    for (size_t j = 1; j <= m; j++) {
      int best = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      row[j] = best;
    }
  }
  return row[m];
}

static const char *nearest(const char *name, const char *const *names) {
  const char *best = NULL;
  int least = strlen(name) > 4 ? 3 : 2; /* fewer than this many mistakes */
  for (; *names; names++) {
    int d = distance(name, *names);
    if (d < least) least = d, best = *names;
  }
  return best;
}

int uvm_unknown(struct uvm_error *e, const char *what, const char *name, const char *const *names) {
  char list[768] = "";
  for (size_t i = 0; names[i]; i++) uvm_list_add(list, sizeof list, ", ", names[i]);
  const char *near = nearest(name, names);
  return uvm_fail(e, UVM_EUSAGE, "unknown %s '%s'%s%s%s known: %s", what, name, near ? "; did you mean '" : ";", near ? near : "",
                  near ? "'?" : "", list);
}

/* -- commands -- */

/* One word, or two ("trace info"); *used: how many. */
static const struct uvm_command *find_command(int argc, char **argv, int *used) {
  for (const struct uvm_command *c = uvm_commands; c->name; c++) {
    const char *blank = strchr(c->name, ' ');
    size_t n = blank ? (size_t)(blank - c->name) : strlen(c->name);
    if (strncmp(c->name, argv[0], n) || argv[0][n]) continue;
    if (blank && (argc < 2 || strcmp(blank + 1, argv[1]))) continue;
    *used = blank ? 2 : 1;
    return c;
  }
  return NULL;
}

/* "trace" alone is the beginning of several commands: the words that may follow. */
static int incomplete_command(int argc, char **argv, struct uvm_error *e) {
  const char *names[32];
  char list[256] = "";
  size_t n = 0, len = strlen(argv[0]), at = 0;
  for (const struct uvm_command *c = uvm_commands; c->name; c++)
    if (!strncmp(c->name, argv[0], len) && c->name[len] == ' ') names[n++] = c->name + len + 1;
  if (!n) return 0;
  names[n] = NULL;
  if (argc > 1 && argv[1][0] != '-') {
    char *what = uvm_format("%s command", argv[0]);
    uvm_unknown(e, what, argv[1], names);
    uvm_mem_free(what);
    return UVM_EUSAGE;
  }
  for (size_t i = 0; i < n; i++)
    at += (size_t)snprintf(list + at, sizeof list - at, "%s`uvmsim %s %s --help`", i ? ", " : "", argv[0], names[i]);
  return uvm_fail(e, UVM_EUSAGE, "%s: expected a second word; see %s", argv[0], list);
}

static int unknown_command(int argc, char **argv, struct uvm_error *e) {
  const char *names[32];
  size_t n = 0;
  int rc = incomplete_command(argc, argv, e);
  if (rc) return rc;
  for (const struct uvm_command *c = uvm_commands; c->name; c++) names[n++] = c->name;
  names[n] = NULL;
  return uvm_unknown(e, "command", argv[0], names);
}

/* -- options -- */

static bool takes(const struct uvm_command *c, const struct uvm_option *o) { return o->commands & c->bit; }

static bool has_sides(const struct uvm_command *c) { return c->bit == UVM_CMD_DIFF; }

/* `name` has `n` characters. *side: 1 for a name with -b. */
static const struct uvm_option *find_long(const struct uvm_command *c, const char *name, size_t n, int *side) {
  for (const struct uvm_option *o = uvm_option_table; o->name; o++) {
    size_t len = strlen(o->name);
    if (!takes(c, o) || strncmp(o->name, name, len)) continue;
    *side = o->sided && has_sides(c) && n == len + 2 && !strncmp(name + len, "-b", 2);
    if (n == len || *side) return o;
  }
  return NULL;
}

static const struct uvm_option *find_letter(const struct uvm_command *c, char letter) {
  for (const struct uvm_option *o = uvm_option_table; o->name; o++)
    if (takes(c, o) && o->letter == letter) return o;
  return NULL;
}

static int unknown_option(const struct uvm_command *c, const char *word, size_t n, struct uvm_error *e) {
  char *known[64], name[64];
  size_t count = 0;
  for (const struct uvm_option *o = uvm_option_table; o->name; o++)
    if (takes(c, o)) known[count++] = uvm_format("--%s", o->name);
  known[count] = NULL;
  snprintf(name, sizeof name, "%.*s", (int)n, word);
  char *what = uvm_format("option of %s", c->name);
  int rc = uvm_unknown(e, what, name, (const char *const *)known);
  while (count) uvm_mem_free(known[--count]);
  uvm_mem_free(what);
  return rc;
}

static int bad_value(struct uvm_error *e, const struct uvm_option *o, const char *expected, const char *value) {
  return uvm_fail(e, UVM_EUSAGE, "--%s: expected %s, found '%s'", o->name, expected, value);
}

static int add_setting(struct uvm_side *side, const struct uvm_option *o, const char *value, struct uvm_error *e) {
  const char *dot = strchr(value, '.'), *equals = strchr(value, '=');
  if (!dot || !equals || dot == value || equals < dot + 2) return bad_value(e, o, "NAME.KEY=VALUE", value);
  char *copy = uvm_copy_string(value); /* owner, key and value lie in one string that owner begins */
  copy[dot - value] = copy[equals - value] = 0;
  UVM_PUSH(&side->settings) = (struct uvm_setting){.owner = copy, .key = copy + (dot - value) + 1, .value = copy + (equals - value) + 1};
  return 0;
}

static int set(struct uvm_options *all, const struct uvm_option *o, int side, const char *value, struct uvm_error *e) {
  void *field = (char *)(o->sided ? (void *)&all->side[side].config : (void *)all) + o->offset;
  switch ((enum uvm_option_type)o->type) {
  case UVM_O_SWITCH: *(bool *)field = true; return 0;
  case UVM_O_TEXT:
    if (!*value) return bad_value(e, o, o->arg, value);
    *(const char **)field = value;
    return 0;
  case UVM_O_SIZE:
    if (!uvm_parse_size(value, field) || !*(uint64_t *)field) return bad_value(e, o, "a size from 1 to 2^63-1, as 512M or 16G", value);
    return 0;
  case UVM_O_FACTOR: {
    double f;
    if (!uvm_parse_f64(value, &f) || f < 0 || (o->sided && f <= 0))
      return bad_value(e, o, o->sided ? "a number above 0" : "a number from 0", value);
    *(double *)field = f;
    return 0;
  }
  case UVM_O_NUMBER:
    if (!uvm_parse_u64(value, INT64_MAX, field)) return bad_value(e, o, "a whole number up to 2^63-1", value);
    return 0;
  case UVM_O_SETTING: return add_setting(&all->side[side], o, value, e);
  }
  return 0;
}

/* -- the parser -- */

struct words {
  int argc, at;
  char **argv;
  uint64_t given_b;
}; /* given_b: options given for the second side, a bit each */

static int value_of(struct words *w, const struct uvm_option *o, const char *attached, const char **value, struct uvm_error *e) {
  if (o->type == UVM_O_SWITCH)
    return attached ? uvm_fail(e, UVM_EUSAGE, "--%s takes no value, found '%s'", o->name, attached) : (*value = NULL, 0);
  if (!attached && w->at >= w->argc) return uvm_fail(e, UVM_EUSAGE, "--%s: %s is missing", o->name, o->arg);
  *value = attached ? attached : w->argv[w->at++];
  return 0;
}

static int parse_option(struct words *w, struct uvm_options *all, const char *word, struct uvm_error *e) {
  const struct uvm_option *o;
  const char *attached = NULL, *value;
  int side = 0, from = w->at - 1;
  size_t n = strcspn(word, "=");
  if (word[1] == '-') {
    o = find_long(all->command, word + 2, n - 2, &side);
    attached = word[n] ? word + n + 1 : NULL;
  } else {
    o = find_letter(all->command, word[1]);
    attached = word[2] ? word + 2 : NULL;
    n = 2;
  }
  if (!o) return unknown_option(all->command, word, n, e);
  int rc = value_of(w, o, attached, &value, e);
  if (rc) return rc;
  if (side) w->given_b |= 1ull << (o - uvm_option_table);
  for (int i = from; o->sided && !side && i < w->at; i++) UVM_PUSH(&all->asked) = w->argv[i];
  return set(all, o, side, value, e);
}

/* What was not said for the second side is as on the first. Every sided field but the settings is a pointer, a number of 64 bits
 * or a double. */
_Static_assert(sizeof(char *) == sizeof(uint64_t) && sizeof(double) == sizeof(uint64_t), "fields of one size");
static void fill_second_side(struct uvm_options *all, uint64_t given_b) {
  struct uvm_session_config *a = &all->side[0].config, *b = &all->side[1].config, own = *b;
  *b = *a;
  for (const struct uvm_option *o = uvm_option_table; o->name; o++) {
    if (!o->sided || o->type == UVM_O_SETTING || !(given_b >> (o - uvm_option_table) & 1)) continue;
    memcpy((char *)b + o->offset, (char *)&own + o->offset, sizeof(uint64_t));
  }
}

/* The second side's settings come after those of the first, so they win. */
static void fill_settings(struct uvm_options *all) {
  struct uvm_side *a = &all->side[0], *b = &all->side[1], own = *b;
  b->settings.v = NULL, b->settings.n = b->settings.cap = 0;
  for (size_t i = 0; i < a->settings.n; i++) UVM_PUSH(&b->settings) = a->settings.v[i];
  for (size_t i = 0; i < own.settings.n; i++) UVM_PUSH(&b->settings) = own.settings.v[i];
  uvm_mem_free(own.settings.v);
  for (int i = 0; i < 2; i++) {
    struct uvm_side *s = &all->side[i];
    s->config.settings = s->settings.v, s->config.nsettings = s->settings.n;
  }
}

/* Devices are never the same: two outputs may both go to /dev/null. */
static bool same_file(const char *a, const char *b) {
  struct stat x, y;
  if (!a || !b) return false;
  if (stat(a, &x) || stat(b, &y)) return !strcmp(a, b);
  return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* No output may overwrite another or what is read, and standard input is read once. */
static int check_files(const struct uvm_options *o, struct uvm_error *e) {
  bool reads = o->command->bit & (UVM_CMD_RUNS | UVM_CMD_INFO | UVM_CMD_CONVERT);
  const char *in[] = {reads ? o->operand[0] : NULL, reads ? o->operand[1] : NULL, o->observed, o->sections};
  const char *out[] = {o->json, o->events, o->timeline, o->output}, *const names[] = {"--json", "--events", "--timeline", "--output"};
  enum { INS = sizeof in / sizeof *in, OUTS = sizeof out / sizeof *out };
  int standard = 0;
  for (size_t i = 0; i < OUTS; i++)
    for (size_t k = i + 1; k < OUTS; k++)
      if (same_file(out[i], out[k]))
        return uvm_fail(e, UVM_EUSAGE, "%s and %s: expected two files, found '%s' twice", names[i], names[k], out[i]);
  for (size_t i = 0; i < INS; i++) {
    standard += in[i] && !strcmp(in[i], "-");
    for (size_t k = 0; k < OUTS; k++)
      if (in[i] && strcmp(in[i], "-") && same_file(in[i], out[k]))
        return uvm_fail(e, UVM_EUSAGE, "%s: expected a file that is not read, found '%s'", names[k], out[k]);
  }
  return standard > 1 ? uvm_fail(e, UVM_EUSAGE, "%s: standard input can be read only once, found '-' twice", o->command->name) : 0;
}

static int check(const struct uvm_options *o, struct uvm_error *e) {
  const struct uvm_command *c = o->command;
  if (o->help) return 0;
  if (o->noperands < c->min) return uvm_fail(e, UVM_EUSAGE, "%s: expected %s; see `uvmsim %s --help`", c->name, c->operands, c->name);
  for (int i = 0; i < 2; i++)
    if (o->side[i].config.gpu_memory && o->side[i].config.oversubscribe > 0)
      return uvm_fail(e, UVM_EUSAGE, "--gpu-memory and --oversubscribe both size the GPU's memory: give one");
  return check_files(o, e);
}

static int parse_words(struct words *w, struct uvm_options *o, struct uvm_error *e) {
  bool options = true;
  while (w->at < w->argc) {
    const char *word = w->argv[w->at++];
    int rc = 0;
    if (options && !strcmp(word, "--")) {
      options = false;
    } else if (options && word[0] == '-' && word[1]) {
      rc = parse_option(w, o, word, e);
    } else if (o->noperands == o->command->max) {
      rc = uvm_fail(e, UVM_EUSAGE, "%s: '%s' is one argument too many; expected %s", o->command->name, word,
                    *o->command->operands ? o->command->operands : "none");
    } else if (!*word) {
      rc = uvm_fail(e, UVM_EUSAGE, "%s: expected %s, found ''", o->command->name, o->command->operands);
    } else {
      o->operand[o->noperands++] = word;
    }
    if (rc) return rc;
  }
  return 0;
}

int uvm_options_parse(int argc, char **argv, struct uvm_options *o, struct uvm_error *e) {
  *o = (struct uvm_options){.page = UVM_NEVER, .tolerance = -1};
  struct words w = {.argc = argc, .argv = argv};
  o->command = find_command(argc, argv, &w.at);
  if (!o->command) return unknown_command(argc, argv, e);
  int rc = parse_words(&w, o, e);
  fill_second_side(o, w.given_b);
  fill_settings(o);
  return rc ? rc : check(o, e);
}

void uvm_options_free(struct uvm_options *o) {
  for (size_t i = 0; i < o->side[1].settings.n; i++) uvm_mem_free((char *)o->side[1].settings.v[i].owner); /* has all of the first's */
  uvm_mem_free(o->side[0].settings.v), uvm_mem_free(o->side[1].settings.v), uvm_mem_free(o->asked.v);
  *o = (struct uvm_options){0};
}
