/* diff: the first decision in which two runs, or a run and a recording, part. */
#include <sys/stat.h>
#include "cli/simulate.h"
#include "report/diff.h"

/* Two operands are event files or traces; the name says which, so that an event file may have any name but a trace's. */
static bool is_trace(const char *name) {
  static const char *const suffixes[] = {".uvt", ".uvt.gz", ".uvt.zst", ".uvb"};
  size_t n = strlen(name);
  for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
    size_t len = strlen(suffixes[i]);
    if (n >= len && !strcmp(name + n - len, suffixes[i])) return true;
  }
  return false;
}

/* Rows of the run that the options of `side` ask for, and how long it took. */
static int run_side(const struct uvm_options *o, int side, struct uvm_rows *rows, uvm_ns *took, struct uvm_error *e) {
  struct uvm_places places;
  struct uvm_session_result result;
  int rc = uvm_cli_places(o, side, &places, e);
  if (rc) return rc;
  uvm_rows_init(rows, &places);
  rc = uvm_cli_simulate(o, side, &(struct uvm_observer){rows, uvm_rows_event}, 1, &result, e);
  if (!rc && result.interrupted) rc = uvm_fail(e, UVM_EENV, "%s: interrupted", o->operand[0]);
  *took = result.sim_ns;
  return rc;
}

/* The two sides, what to call them, and the time of those that ran. */
static int fill(const struct uvm_options *o, struct uvm_rows rows[2], const char *names[2], uvm_ns took[2], struct uvm_error *e) {
  int rc;
  names[0] = o->operand[0], names[1] = o->operand[1];
  for (int side = 0; o->noperands == 2 && side < 2; side++) {
    rc = is_trace(names[side]) ? run_side(o, side, &rows[side], &took[side], e) : uvm_rows_read(&rows[side], names[side], e);
    if (rc || side) return rc;
  }
  if ((rc = run_side(o, 0, &rows[0], &took[0], e))) return rc;
  names[0] = o->observed ? "simulated" : "first", names[1] = o->observed ? "recorded" : "second";
  return o->observed ? uvm_rows_read(&rows[1], o->observed, e) : run_side(o, 1, &rows[1], &took[1], e);
}

static int report(const struct uvm_options *o, const struct uvm_diff *d, struct uvm_error *e) {
  int rc = o->json ? uvm_diff_json(d, o->json, e) : 0;
  if (rc) return rc;
  if (!o->quiet && !uvm_to_stdout(o->json)) uvm_diff_print(d, stdout);
  return d->first < 0 ? 0 : UVM_ENO;
}

/* What can be read once only: standard input, a named pipe. */
static bool runs_dry(const char *name) {
  struct stat st;
  return !strcmp(name, "-") || (stat(name, &st) == 0 && S_ISFIFO(st.st_mode));
}

int uvm_cmd_diff(const struct uvm_options *o, struct uvm_error *e) {
  if (o->noperands == 2 && o->observed)
    return uvm_fail(e, UVM_EUSAGE, "diff: --observed is the second side already; found '%s' too", o->operand[1]);
  if (!o->observed && o->noperands == 1 && runs_dry(o->operand[0]))
    return uvm_fail(e, UVM_EUSAGE, "diff: a trace on standard input or in a pipe cannot be run twice; give a file");
  struct uvm_rows rows[2];
  const char *names[2];
  uvm_ns took[2] = {UVM_NEVER, UVM_NEVER};
  uvm_rows_init(&rows[0], NULL), uvm_rows_init(&rows[1], NULL);
  int rc = fill(o, rows, names, took, e);
  if (!rc) {
    struct uvm_diff d;
    uvm_diff_make(&d, &rows[0], &rows[1], names[0], names[1]);
    d.sim_ns[0] = took[0], d.sim_ns[1] = took[1];
    rc = report(o, &d, e);
    uvm_diff_free(&d);
  }
  uvm_rows_free(&rows[0]), uvm_rows_free(&rows[1]);
  return rc;
}
