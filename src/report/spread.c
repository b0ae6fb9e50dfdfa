#include "report/spread.h"
#include <errno.h>
#include <stdlib.h>

enum { COLUMNS = 8, LINE = 4096 };
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

static int parse(struct uvm_spreads *s, char *line, const char *where, const char *workload, struct uvm_error *e) {
  char *f[COLUMNS];
  int n = split(line, f);
  if (n != COLUMNS)
    return uvm_fail(e, UVM_EINPUT, "%s: expected %d fields (%s), found %s%d", where, COLUMNS, header, n > COLUMNS ? "at least " : "", n);
  struct uvm_spread row = {0};
  uint64_t runs;
  if (!uvm_parse_u64(f[3], INT64_MAX, &row.iterations) || !row.iterations || !uvm_parse_u64(f[4], INT64_MAX, &runs))
    return uvm_fail(e, UVM_EINPUT, "%s: expected whole numbers of iterations (above 0) and runs, found '%s' and '%s'", where, f[3], f[4]);
  if (!uvm_parse_f64(f[5], &row.min) || !uvm_parse_f64(f[6], &row.median) || !uvm_parse_f64(f[7], &row.max) ||
      !(0 <= row.min && row.min <= row.max))
    return uvm_fail(e, UVM_EINPUT, "%s: expected times min <= max in seconds, found '%s', '%s', '%s'", where, f[5], f[6], f[7]);
  if (strcmp(f[2], "all") && strcmp(f[2], "first") && strcmp(f[2], "rest"))
    return uvm_fail(e, UVM_EINPUT, "%s: expected part all, first or rest, found '%s'", where, f[2]);
  if (strlen(f[1]) >= sizeof row.section)
    return uvm_fail(e, UVM_EINPUT, "%s: expected a section name below %zu bytes", where, sizeof row.section);
  if (strcmp(f[0], workload)) return 0;
  snprintf(row.section, sizeof row.section, "%s", f[1]);
  snprintf(row.part, sizeof row.part, "%s", f[2]);
  UVM_PUSH(&s->v) = row;
  return 0;
}

static int read_lines(struct uvm_spreads *s, FILE *f, const char *path, const char *workload, struct uvm_error *e) {
  char line[LINE], where[LINE];
  for (long number = 1; fgets(line, sizeof line, f); number++) {
    size_t n = strlen(line);
    snprintf(where, sizeof where, "%s:%ld", path, number);
    if (n == sizeof line - 1 && line[n - 1] != '\n') return uvm_fail(e, UVM_EINPUT, "%s: expected a line below %d bytes", where, LINE);
    line[strcspn(line, "\r\n")] = 0;
    if (number == 1 && strcmp(line, header))
      return uvm_fail(e, UVM_EINPUT, "%s: expected the header %s, found '%.60s'", where, header, line);
    int rc = number > 1 && *line ? parse(s, line, where, workload, e) : 0;
    if (rc) return rc;
  }
  if (ferror(f)) return uvm_fail(e, UVM_EENV, "%s: cannot be read: %s", path, strerror(errno));
  return s->v.n ? 0 : uvm_fail(e, UVM_EUSAGE, "%s: has no workload '%s'; name one with --workload", path, workload);
}

int uvm_spreads_read(struct uvm_spreads *s, const char *path, const char *workload, struct uvm_error *e) {
  FILE *f = fopen(path, "r");
  if (!f) return uvm_fail(e, errno == ENOENT ? UVM_EINPUT : UVM_EENV, "%s: cannot be read: %s", path, strerror(errno));
  int rc = read_lines(s, f, path, workload, e);
  fclose(f);
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
