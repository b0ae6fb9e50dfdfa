/* replay: one run, reported. */
#include <time.h>
#include "cli/simulate.h"
#include "report/rows.h"
#include "report/summary.h"

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int report(const struct uvm_options *o, const struct uvm_summary *s, struct uvm_rows *rows, struct uvm_error *e) {
  int rc = o->events ? uvm_rows_write(rows, o->events, e) : 0;
  if (!rc && o->json) rc = uvm_json_report(s, o->json, e);
  bool to_stdout = (o->json && !strcmp(o->json, "-")) || (o->events && !strcmp(o->events, "-"));
  if (!rc && !o->quiet && !to_stdout) uvm_text_report(s, stdout);
  if (!rc && s->run->interrupted) rc = uvm_fail(e, UVM_EENV, "%s: interrupted; the report is partial", s->trace);
  return rc;
}

int uvm_cmd_replay(const struct uvm_options *o, struct uvm_error *e) {
  struct uvm_places places;
  int rc = uvm_cli_places(o, 0, &places, e);
  if (rc) return rc;
  struct uvm_metrics metrics;
  struct uvm_rows rows;
  uvm_metrics_init(&metrics, &places);
  uvm_rows_init(&rows, &places);
  struct uvm_observer observers[] = {{&metrics, uvm_metrics_event}, {&rows, uvm_rows_event}};
  struct uvm_session_result result;
  double begin = seconds();
  rc = uvm_cli_simulate(o, 0, observers, o->events ? 2 : 1, &result, e);
  struct uvm_summary summary = {
      .trace = o->operand[0], .run = &result, .metrics = &metrics, .wall_seconds = o->deterministic ? -1 : seconds() - begin};
  if (!rc) rc = report(o, &summary, &rows, e);
  uvm_metrics_free(&metrics);
  uvm_rows_free(&rows);
  return rc;
}
