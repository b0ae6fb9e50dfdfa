/* .uvt: the text format, one record a line, walked by the grammar table. */
#include "format.h"
#include <assert.h>

enum { FIELDS = 16 };                           /* more than any record has */

struct state {
  struct uvm_input *in;
  const struct uvm_check *names;
  bool started;                                 /* the first line was read */
  UVM_VEC(struct uvm_trace_access) accesses;    /* of the kernel being read */
  char *kernel_name;                            /* kept while further lines are read; NULL: none */
};
struct line { int64_t number; size_t n; char *field[FIELDS]; };

static bool probe(const uint8_t *head, size_t n) { return n >= 8 && !memcmp(head, "uvmtrace", 8); }

static void *open_text(struct uvm_input *in, const struct uvm_check *names) {
  struct state *s = uvm_mem(sizeof *s);
  *s = (struct state){.in = in, .names = names};
  return s;
}

static void rewind_text(void *state) { ((struct state *)state)->started = false; }

static void close_text(void *state) {
  struct state *s = state;
  uvm_mem_free(s->accesses.v);
  uvm_mem_free(s->kernel_name);
  uvm_mem_free(s);
}

static int expected(const struct state *s, int64_t line, struct uvm_error *e, const char *what, const char *found) {
  char text[80];
  return uvm_input_fail(s->in, line, e, "expected %s, found %s", what, found ? uvm_quote(found, text) : "the end of the line");
}

/* Fields are NUL-terminated in place; one that begins with # starts a comment. */
static int split(struct state *s, char *p, struct line *l, struct uvm_error *e) {
  *l = (struct line){.number = uvm_input_lineno(s->in)};
  for (;;) {
    p += strspn(p, " \t");
    if (!*p || *p == '#') return 0;
    if (l->n == FIELDS) return expected(s, l->number, e, "the end of the line", p);
    l->field[l->n++] = p;
    p += strcspn(p, " \t");
    if (*p) *p++ = 0;
  }
}

/* The next line that holds a record. 1, 0 at the end, < 0. */
static int next_line(struct state *s, struct line *l, struct uvm_error *e) {
  char *text;
  int code;
  while ((code = uvm_input_line(s->in, &text, e)) == 1) {
    code = split(s, text, l, e);
    if (code || l->n) return code ? code : 1;
  }
  return code;
}

/* -- values -- */

/* Why text is no number up to 2^63-1, for the message; NULL: it is one. */
static const char *number(const char *text, size_t n, uint64_t *out) {
  if (!n) return "a number";
  uint64_t v = 0;
  for (size_t i = 0; i < n; i++) {
    unsigned d = (unsigned)text[i] - '0';
    if (d > 9) return "a number";
    if (v > (UVM_TRACE_MAX_NUMBER - d) / 10) return "a number up to 2^63-1";
    v = v * 10 + d;
  }
  *out = v;
  return NULL;
}

static const char *size(const char *text, uint64_t *out) {
  size_t n = strlen(text);
  char last = n ? text[n - 1] : 0;
  unsigned shift = last == 'K' ? 10 : last == 'M' ? 20 : last == 'G' ? 30 : 0;
  const char *why = number(text, n - (shift != 0), out);
  if (why) return why;
  if (*out > UVM_TRACE_MAX_NUMBER >> shift) return "a number up to 2^63-1";
  *out <<= shift;
  return NULL;
}

static char escaped(const char *p) {
  return !strncmp(p, "%20", 3) ? ' ' : !strncmp(p, "%25", 3) ? '%' : !strncmp(p, "%23", 3) ? '#' : 0;
}

/* Undoes %20 %25 %23 in place. What it expected instead, with the text as it was; NULL: done. */
static const char *unescape(char *text) {
  for (const char *p = text; (p = strchr(p, '%')); p += 3)
    if (!escaped(p)) return "only the escapes %20, %25 and %23";
  char *to = text;
  for (const char *p = text; *p; to++) {
    size_t n = *p == '%' ? 3 : 1;
    *to = n == 3 ? escaped(p) : *p;
    p += n;
  }
  *to = 0;
  return NULL;
}

static int set_name(struct state *s, int64_t line, const struct uvm_field *f, void *object, char *text, struct uvm_error *e) {
  const char *why = unescape(text);
  if (why) return expected(s, line, e, why, text);
  why = uvm_name_problem(text);
  if (why) return uvm_input_fail(s->in, line, e, "expected %s, found %s", f->what, why);
  uvm_field_set_name(f, object, text);
  return 0;
}

/* NAME[/ITERATION]: what follows the last '/' counts only if it is a number. */
static int set_section(struct state *s, int64_t line, const struct uvm_field *f, struct uvm_trace_record *r, char *text,
                       struct uvm_error *e) {
  char *slash = strrchr(text, '/');
  if (slash && slash[1] && !slash[1 + strspn(slash + 1, "0123456789")]) {
    const char *why = number(slash + 1, strlen(slash + 1), &r->iteration);
    if (why) return expected(s, line, e, why, slash + 1);
    r->has_iteration = true;
    *slash = 0;
  }
  return set_name(s, line, f, r, text, e);
}

static int set_word(struct state *s, int64_t line, const struct uvm_field *f, void *object, const char *text, struct uvm_error *e) {
  for (uint64_t i = 0; f->words[i]; i++)
    if (*text && !strcmp(text, f->words[i])) {
      uvm_field_set(f, object, i);
      return 0;
    }
  return expected(s, line, e, f->what, text);
}

static int set_alloc(struct state *s, int64_t line, const struct uvm_field *f, void *object, char *text, struct uvm_error *e) {
  char found[80];
  uint32_t n;
  const char *why = unescape(text);
  if (why) return expected(s, line, e, why, text);
  if (!uvm_check_find(s->names, text, &n))
    return uvm_input_fail(s->in, line, e, "expected %s, found %s, which no alloc record names", f->what, uvm_quote(text, found));
  uvm_field_set(f, object, n);
  return 0;
}

/* An offset, length or number; a bad one is explained by what the field is, one out of range by the range. */
static int set_number(struct state *s, int64_t line, const struct uvm_field *f, void *object, const char *text, struct uvm_error *e) {
  uint64_t v = 0;
  const char *why = f->type == UVM_F_SIZE ? size(text, &v) : number(text, strlen(text), &v);
  if (why) return expected(s, line, e, strcmp(why, "a number") ? why : f->what, text);
  uvm_field_set(f, object, v);
  return 0;
}

static int set_proc(struct state *s, int64_t line, const struct uvm_field *f, void *object, const char *text, struct uvm_error *e) {
  uint8_t proc;
  if (!uvm_proc_parse(text, &proc)) {
    bool ignored = f->type == UVM_F_ADVISED && uvm_advice_ignores_proc(((struct uvm_trace_record *)object)->advice);
    if (!ignored) return expected(s, line, e, f->what, text);
  }
  uvm_field_set(f, object, proc);
  return 0;
}

static int set(struct state *s, int64_t line, const struct uvm_field *f, void *object, char *text, struct uvm_error *e) {
  switch ((enum uvm_field_type)f->type) {
  case UVM_F_SIZE:
  case UVM_F_NUMBER: return set_number(s, line, f, object, text, e);
  case UVM_F_NAME: return set_name(s, line, f, object, text, e);
  case UVM_F_SECTION: return set_section(s, line, f, object, text, e);
  case UVM_F_ALLOC: return set_alloc(s, line, f, object, text, e);
  case UVM_F_PROC:
  case UVM_F_ADVISED: return set_proc(s, line, f, object, text, e);
  case UVM_F_WORD: return set_word(s, line, f, object, text, e);
  }
  assert(!"an unknown field type");
  return 0;
}

/* -- records -- */

static const struct uvm_field *keyed(const struct uvm_grammar *g, const char *text, size_t keylen) {
  for (size_t i = 0; i < g->nfields; i++) {
    const char *key = g->fields[i].key;
    if (key && strlen(key) == keylen && !memcmp(key, text, keylen)) return &g->fields[i];
  }
  return NULL;
}

/* The field that a piece of the line fills: KEY=value, or the first positional one not yet filled. */
static const struct uvm_field *field_of(const struct uvm_grammar *g, uint32_t filled, char **text) {
  const struct uvm_field *next = NULL;
  for (size_t i = 0; i < g->nfields && !next; i++)
    if (!g->fields[i].key && !(filled >> i & 1)) next = &g->fields[i];
  char *equals = strchr(*text, '=');
  if (next && !(next->optional && equals)) return next;
  if (!equals) return NULL;
  const struct uvm_field *f = keyed(g, *text, (size_t)(equals - *text));
  if (f) *text = equals + 1;
  return f;
}

static int parse_fields(struct state *s, const struct line *l, const struct uvm_grammar *g, void *object, struct uvm_error *e) {
  char text[80];
  uint32_t filled = 0;
  for (size_t i = 1; i < l->n; i++) {
    char *value = l->field[i];
    const struct uvm_field *f = field_of(g, filled, &value);
    if (!f)
      return uvm_input_fail(s->in, l->number, e, "expected %s of a %s record, found %s",
                            strchr(value, '=') ? "a key" : "no further field", g->name, uvm_quote(value, text));
    uint32_t bit = 1u << (f - g->fields);
    if (filled & bit) return uvm_input_fail(s->in, l->number, e, "expected %s= once, found it again", f->key);
    filled |= bit;
    int code = set(s, l->number, f, object, value, e);
    if (code) return code;
  }
  for (size_t i = 0; i < g->nfields; i++) {
    const struct uvm_field *f = &g->fields[i];
    if (filled >> i & 1 || f->optional) continue;
    return uvm_input_fail(s->in, l->number, e, "expected %s%s%s, found the end of the line", f->key ? f->key : "", f->key ? "=, " : "",
                          f->what);
  }
  return 0;
}

static int first_line(struct state *s, struct uvm_error *e) {
  struct line l;
  int code = next_line(s, &l, e);
  if (code < 0) return code;
  assert(code == 1 && l.number == 1);           /* the probe saw its first bytes */
  if (strcmp(l.field[0], "uvmtrace")) return expected(s, 1, e, "\"uvmtrace 1\"", l.field[0]);
  if (l.n < 2 || strcmp(l.field[1], "1")) return expected(s, 1, e, "version 1 of the format", l.n < 2 ? NULL : l.field[1]);
  if (l.n > 2) return expected(s, 1, e, "the end of the line", l.field[2]);
  s->started = true;
  return 0;
}

/* The lines of a kernel up to its "done". */
static int read_kernel(struct state *s, struct uvm_trace_record *r, struct uvm_error *e) {
  bool next = false;
  s->accesses.n = 0;
  for (;;) {
    struct line l;
    int code = next_line(s, &l, e);
    if (code < 0) return code;
    if (!code) return uvm_input_fail(s->in, r->line, e, "expected \"done\" for this kernel, found the end of the file");
    const struct uvm_grammar *g = uvm_grammar_find(uvm_grammar_kernel, uvm_grammar_nkernel, l.field[0]);
    if (!g) {
      char what[96];
      snprintf(what, sizeof what, "r, w, rw, atomic, next or done in the kernel of line %lld", (long long)r->line);
      return expected(s, l.number, e, what, l.field[0]);
    }
    struct uvm_trace_access a = {.op = g->sub, .next = next, .line = l.number};
    code = parse_fields(s, &l, g, &a, e);
    if (code) return code;
    if (g->op == UVM_IN_DONE) return 0;
    next = g->op == UVM_IN_NEXT;
    if (!next) UVM_PUSH(&s->accesses) = a;
  }
}

static int read_text(void *state, struct uvm_trace_record *r, struct uvm_error *e) {
  struct state *s = state;
  struct line l;
  int code = s->started ? 0 : first_line(s, e);
  if (code) return code;
  code = next_line(s, &l, e);
  if (code != 1) return code;
  const struct uvm_grammar *g = uvm_grammar_find(uvm_grammar_top, uvm_grammar_ntop, l.field[0]);
  if (!g) return expected(s, l.number, e, "a record (alloc, free, r, w, kernel, ...)", l.field[0]);
  r->op = g->op;
  r->line = l.number;
  r->access.op = g->sub;
  r->access.line = l.number;
  code = parse_fields(s, &l, g, r, e);
  if (code || r->op != UVM_TR_KERNEL) return code ? code : 1;
  uvm_mem_free(s->kernel_name);
  s->kernel_name = r->label ? uvm_copy_string(r->label) : NULL;
  r->label = s->kernel_name;
  code = read_kernel(s, r, e);
  r->accesses = s->accesses.v;
  r->naccesses = s->accesses.n;
  return code ? code : 1;
}

const struct uvm_trace_reader uvm_reader_uvt = {"uvt", probe, open_text, read_text, rewind_text, close_text};
