/* Observed events: one row a line, nine columns. The columns are described in docs/events-format.md. */
#include "input.h"
#include "names.h"
#include "sink.h"
#include "trace.h"
#include <assert.h>

#define HEADER "t_ns,dur_ns,kind,alloc,offset,value,flags,src,dst"
enum { T, DUR, KIND, ALLOC, OFFSET, VALUE, FLAGS, SRC, DST, COLUMNS };
static const char *const column[COLUMNS] = {"t_ns", "dur_ns", "kind", "alloc", "offset", "value", "flags", "src", "dst"};

/* -- reading -- */

struct uvm_csv { struct uvm_input *in; int64_t t; };             /* t: of the row before */

int uvm_csv_open(const char *path, struct uvm_csv **out, struct uvm_error *e) {
  struct uvm_input *in;
  char *line, text[80];
  int code = uvm_input_open(path, false, &in, e);
  if (code) return code;
  code = uvm_input_line(in, &line, e);
  if (code >= 0 && (!code || strcmp(line, HEADER)))
    code = uvm_input_fail(in, 1, e, "expected the header \"" HEADER "\", found %s", code ? uvm_quote(line, text) : "an empty file");
  if (code < 0) {
    uvm_input_close(in);
    return code;
  }
  struct uvm_csv *c = uvm_mem(sizeof *c);
  *c = (struct uvm_csv){.in = in};
  *out = c;
  return 0;
}

static int bad(const struct uvm_csv *c, struct uvm_error *e, int col, const char *expected, const char *found) {
  char text[80];
  return uvm_input_fail(c->in, uvm_input_lineno(c->in), e, "expected %s in column %s, found %s", expected, column[col],
                        *found ? uvm_quote(found, text) : "nothing");
}

static int number(const struct uvm_csv *c, struct uvm_error *e, char *const *field, int col, int64_t *out) {
  uint64_t v;
  if (!uvm_parse_u64(field[col], INT64_MAX, &v)) return bad(c, e, col, "an integer from 0 to 2^63-1", field[col]);
  *out = (int64_t)v;
  return 0;
}

/* A number, or what stands for none: "-1", or nothing at all. */
static int number_or(const struct uvm_csv *c, struct uvm_error *e, char *const *field, int col, const char *none, int64_t *out) {
  *out = -1;
  return strcmp(field[col], none) ? number(c, e, field, col, out) : 0;
}

static int hex(const struct uvm_csv *c, struct uvm_error *e, const char *text, uint64_t *out) {
  size_t n = strlen(text);
  if (n < 3 || n > 18 || text[0] != '0' || text[1] != 'x' || text[2 + strspn(text + 2, "0123456789abcdefABCDEF")])
    return bad(c, e, FLAGS, "flags in hexadecimal (0x...)", text);
  for (*out = 0, text += 2; *text; text++) *out = *out << 4 | (uint64_t)(*text <= '9' ? *text - '0' : (*text | 0x20) - 'a' + 10);
  return 0;
}

/* Undoes %2C %25; any other % stands for itself, as recordings know no escapes. */
static int section_name(const struct uvm_csv *c, struct uvm_error *e, const char *text, char *out, size_t room) {
  size_t n = 0;
  for (const char *p = text; *p; p++) {
    if (n + 1 == room) return bad(c, e, FLAGS, "a name of at most 255 bytes", text);
    bool comma = !strncmp(p, "%2C", 3), percent = !strncmp(p, "%25", 3);
    out[n++] = comma ? ',' : *p;
    if (comma || percent) p += 2;
  }
  out[n] = 0;
  return n ? 0 : bad(c, e, FLAGS, "a section's name", text);
}

static int split(const struct uvm_csv *c, char *line, char **field, struct uvm_error *e) {
  int n = 0;
  for (char *p = line; p; n++) {
    char *comma = strchr(p, ',');
    if (n < COLUMNS) field[n] = p;
    if (comma) *comma++ = 0;
    p = comma;
  }
  if (n == COLUMNS) return 0;
  return uvm_input_fail(c->in, uvm_input_lineno(c->in), e, "expected %d columns (" HEADER "), found %d", COLUMNS, n);
}

int uvm_csv_next(struct uvm_csv *c, struct uvm_csv_event *out, struct uvm_error *e) {
  char *line, *field[COLUMNS];
  int64_t offset = 0, value = 0;
  int code = uvm_input_line(c->in, &line, e);
  if (code != 1) return code;
  *out = (struct uvm_csv_event){.line = uvm_input_lineno(c->in)};
  code = split(c, line, field, e);
  if (!code) code = number(c, e, field, T, &out->t);
  if (!code && out->t < c->t) code = bad(c, e, T, "rows in order of time", field[T]);
  if (!code) code = number(c, e, field, DUR, &out->dur);
  if (!code && (!*field[KIND] || strlen(field[KIND]) >= sizeof out->kind)) code = bad(c, e, KIND, "a name of 1 to 23 bytes", field[KIND]);
  if (code) return code;
  strcpy(out->kind, field[KIND]);
  code = number_or(c, e, field, ALLOC, "-1", &out->alloc);
  if (!code) code = number(c, e, field, OFFSET, &offset);
  if (!code) code = number(c, e, field, VALUE, &value);
  if (!code) code = strcmp(out->kind, "section") ? hex(c, e, field[FLAGS], &out->flags)
                                                 : section_name(c, e, field[FLAGS], out->name, sizeof out->name);
  if (!code) code = number_or(c, e, field, SRC, "", &out->src);
  if (!code) code = number_or(c, e, field, DST, "", &out->dst);
  if (code) return code;
  out->offset = (uint64_t)offset;
  out->value = (uint64_t)value;
  c->t = out->t;
  return 1;
}

void uvm_csv_close(struct uvm_csv *c) {
  if (!c) return;
  uvm_input_close(c->in);
  uvm_mem_free(c);
}

/* -- writing -- */

struct uvm_csv_writer { struct uvm_sink *out; };

int uvm_csv_create(const char *path, struct uvm_csv_writer **out, struct uvm_error *e) {
  struct uvm_sink *sink;
  int code = uvm_sink_open(path, uvm_codec_of(path), &sink, e);
  if (code) return code;
  uvm_sink_text(sink, HEADER "\n");
  struct uvm_csv_writer *w = uvm_mem(sizeof *w);
  w->out = sink;
  *out = w;
  return 0;
}

static void put_name(struct uvm_sink *out, const char *name) {
  for (;;) {
    size_t n = strcspn(name, ",%");
    uvm_sink_write(out, name, n);
    if (!name[n]) return;
    uvm_sink_text(out, name[n] == ',' ? "%2C" : "%25");
    name += n + 1;
  }
}

static void put_flags(struct uvm_sink *out, uint64_t flags) {
  char text[24];
  snprintf(text, sizeof text, "0x%llx", (unsigned long long)flags);
  uvm_sink_text(out, text);
}

static void put_number(struct uvm_sink *out, int64_t v, const char *none) {
  if (v < 0) uvm_sink_text(out, none);
  else uvm_sink_number(out, (uint64_t)v);
}

int uvm_csv_write(struct uvm_csv_writer *w, const struct uvm_csv_event *ev, struct uvm_error *e) {
  bool section = !strcmp(ev->kind, "section");
  const char *why = section ? uvm_name_problem(ev->name) : NULL;
  if (why) return uvm_fail(e, UVM_EINPUT, "a section's name cannot be written among the events: it is or has %s", why);
  assert(ev->t >= 0 && ev->dur >= 0 && ev->alloc >= -1 && *ev->kind && !strpbrk(ev->kind, ",\n"));
  uvm_sink_number(w->out, (uint64_t)ev->t);
  uvm_sink_text(w->out, ",");
  uvm_sink_number(w->out, (uint64_t)ev->dur);
  uvm_sink_text(w->out, ",");
  uvm_sink_text(w->out, ev->kind);
  uvm_sink_text(w->out, ",");
  put_number(w->out, ev->alloc, "-1");
  uvm_sink_text(w->out, ",");
  uvm_sink_number(w->out, ev->offset);
  uvm_sink_text(w->out, ",");
  uvm_sink_number(w->out, ev->value);
  uvm_sink_text(w->out, ",");
  if (section) put_name(w->out, ev->name);
  else put_flags(w->out, ev->flags);
  uvm_sink_text(w->out, ",");
  put_number(w->out, ev->src, "");
  uvm_sink_text(w->out, ",");
  put_number(w->out, ev->dst, "");
  uvm_sink_text(w->out, "\n");
  return 0;
}

int uvm_csv_commit(struct uvm_csv_writer *w, struct uvm_error *e) {
  int code = uvm_sink_commit(w->out, e);
  uvm_mem_free(w);
  return code;
}

void uvm_csv_abandon(struct uvm_csv_writer *w) {
  uvm_sink_abandon(w->out);
  uvm_mem_free(w);
}
