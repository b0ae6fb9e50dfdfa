#include "report/spread.h"
#include <stdlib.h>
#include "input.h"

enum { COLUMNS = 8 };
static const char header[] = "workload,section,part,iterations,runs,min,median,max";

/* Cuts the line at its commas; how many fields it had, at most COLUMNS + 1. */
static int split(char *line, char *fields[COLUMNS]) {
  int n = 0;
  for (char *rest = line; rest; n++) {
    char *field = strsep(&rest, ",");
    if (n < COLUMNS)
      fields[n] = field;
    else
      return n + 1;
  }
  return n;
}

static int parse(struct uvm_spreads *s, const struct uvm_input *in, char *line, const char *workload, struct uvm_error *e) {
  char *f[COLUMNS];
  int64_t number = uvm_input_lineno(in);
  int n = split(line, f);
  if (n != COLUMNS)
    return uvm_input_fail(in, number, e, "expected %d fields (%s), found %s%d", COLUMNS, header, n > COLUMNS ? "at least " : "", n);
  struct uvm_spread row = {0};
  uint64_t runs;
  if (!uvm_parse_u64(f[3], INT64_MAX, &row.iterations) || !row.iterations || !uvm_parse_u64(f[4], INT64_MAX, &runs))
    return uvm_input_fail(in, number, e, "expected whole numbers of iterations (above 0) and runs, found '%.60s' and '%.60s'", f[3], f[4]);
  if (!uvm_parse_f64(f[5], &row.min) || !uvm_parse_f64(f[6], &row.median) || !uvm_parse_f64(f[7], &row.max) ||
      !(0 <= row.min && row.min <= row.median && row.median <= row.max))
    return uvm_input_fail(in, number, e, "expected times min <= median <= max in seconds, found '%.60s', '%.60s', '%.60s'", f[5], f[6],
                          f[7]);
  if (strcmp(f[2], "all") && strcmp(f[2], "first") && strcmp(f[2], "rest"))
    return uvm_input_fail(in, number, e, "expected part all, first or rest, found '%.60s'", f[2]);
  if (strlen(f[1]) >= sizeof row.section)
    return uvm_input_fail(in, number, e, "expected a section name below %zu bytes", sizeof row.section);
  if (strcmp(f[0], workload)) return 0;
  snprintf(row.section, sizeof row.section, "%s", f[1]);
  snprintf(row.part, sizeof row.part, "%s", f[2]);
  UVM_PUSH(&s->v) = row;
  return 0;
}

static int read_lines(struct uvm_spreads *s, struct uvm_input *in, const char *workload, struct uvm_error *e) {
  char *line;
  int code = uvm_input_line(in, &line, e);
  if (code < 0) return code;
  if (!code || strcmp(line, header)) return uvm_input_fail(in, 1, e, "expected the header %s, found '%.60s'", header, code ? line : "");
  while ((code = uvm_input_line(in, &line, e)) > 0)
    if (*line && (code = parse(s, in, line, workload, e))) return code;
  if (code || s->v.n) return code;
  return uvm_fail(e, UVM_EUSAGE, "%s: has no workload '%s'; name one with --workload", uvm_input_path(in), workload);
}

int uvm_spreads_read(struct uvm_spreads *s, const char *path, const char *workload, struct uvm_error *e) {
  struct uvm_input *in;
  int rc = uvm_input_open(path, false, &in, e);
  if (rc) return rc;
  rc = read_lines(s, in, workload, e);
  uvm_input_close(in);
  return rc;
}

void uvm_spreads_free(struct uvm_spreads *s) {
  uvm_mem_free(s->v.v);
  *s = (struct uvm_spreads){0};
}

/* -- predictions -- */

static int by_duration(const void *a, const void *b) {
  const struct uvm_row *const *x = a, *const *y = b;
  if ((*x)->dur != (*y)->dur) return (*x)->dur < (*y)->dur ? -1 : 1;
  return (*x)->order < (*y)->order ? -1 : (*x)->order > (*y)->order;
}

static bool belongs(const struct uvm_spread *s, uint64_t iteration) {
  return !strcmp(s->part, "all") || (*s->part == 'f') == (iteration == 0);
}

static void add(struct uvm_spread *s, const struct uvm_row *r, const struct uvm_causes *causes) {
  s->predicted = true;
  s->seconds += (double)r->dur * 1e-9;
  uvm_causes_add(causes, (uvm_ns)r->t, (uvm_ns)(r->t + r->dur), s->ns);
}

static void predict(struct uvm_spread *s, const struct uvm_rows *simulated, const struct uvm_causes *causes) {
  UVM_VEC(const struct uvm_row *) found = {0};
  for (size_t i = 0; i < simulated->rows.n; i++) {
    const struct uvm_row *r = &simulated->rows.v[i];
    if (r->kind == UVM_ROW_SECTION && !strcmp(r->name, s->section) && belongs(s, r->value)) UVM_PUSH(&found) = r;
  }
  if (found.n > s->iterations) {
    qsort(found.v, found.n, sizeof *found.v, by_duration);
    found.n = s->iterations;
  }
  for (size_t i = 0; i < found.n; i++) add(s, found.v[i], causes);
  for (int i = 0; i < UVM_TIME_CAUSES; i++)
    if (s->ns[i] > s->ns[s->largest]) s->largest = (enum uvm_time_cause)i;
  if (s->predicted && s->seconds > s->max) s->outside = (s->seconds / s->max - 1) * 100;
  if (s->predicted && s->seconds < s->min) s->outside = (1 - s->seconds / s->min) * 100;
  uvm_mem_free(found.v);
}

void uvm_spreads_predict(struct uvm_spreads *s, const struct uvm_rows *simulated, const struct uvm_causes *causes) {
  for (size_t i = 0; i < s->v.n; i++) predict(&s->v.v[i], simulated, causes);
}
