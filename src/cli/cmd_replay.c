/* replay: one run, reported. */
#include "cli/progress.h"
#include "cli/simulate.h"
#include "report/rows.h"
#include "report/summary.h"
#include "report/timeline.h"

struct listeners {
  struct uvm_metrics metrics;
  struct uvm_rows rows;          /* with --events */
  struct uvm_timeline *timeline; /* with --timeline, until it is written */
  struct uvm_observer observers[3];
  size_t n;
};

static int listen(struct listeners *l, const struct uvm_options *o, const struct uvm_places *places, struct uvm_error *e) {
  uvm_metrics_init(&l->metrics, places);
  uvm_rows_init(&l->rows, places);
  l->observers[l->n++] = (struct uvm_observer){&l->metrics, uvm_metrics_event};
  if (o->events) l->observers[l->n++] = (struct uvm_observer){&l->rows, uvm_rows_event};
  int rc = o->timeline ? uvm_timeline_open(o->timeline, places, &l->timeline, e) : 0;
  if (l->timeline) l->observers[l->n++] = (struct uvm_observer){l->timeline, uvm_timeline_event};
  return rc;
}

static void release(struct listeners *l) {
  uvm_metrics_free(&l->metrics);
  uvm_rows_free(&l->rows);
  if (l->timeline) uvm_timeline_abandon(l->timeline);
}

static int write_timeline(struct listeners *l, const struct uvm_options *o, const struct uvm_session_result *r, struct uvm_error *e) {
  struct uvm_timeline *t = l->timeline;
  l->timeline = NULL;
  return t ? uvm_timeline_commit(t, o->operand[0], r, e) : 0;
}

static int report(const struct uvm_options *o, const struct uvm_summary *s, struct listeners *l, struct uvm_error *e) {
  int rc = write_timeline(l, o, s->run, e);
  if (s->run->interrupted) uvm_rows_interrupted(&l->rows, s->run->sim_ns);
  if (!rc && o->events) rc = uvm_rows_write(&l->rows, o->events, e);
  if (!rc && o->json) rc = uvm_json_report(s, o->json, e);
  bool taken = uvm_to_stdout(o->json) || uvm_to_stdout(o->events) || uvm_to_stdout(o->timeline);
  if (!rc && !o->quiet && !taken) uvm_text_report(s, stdout);
  if (!rc && s->run->interrupted) rc = uvm_fail(e, UVM_EENV, "%s: interrupted; the report is partial", s->trace);
  return rc;
}

int uvm_cmd_replay(const struct uvm_options *o, struct uvm_error *e) {
  struct uvm_places places;
  int rc = uvm_cli_places(o, 0, &places, e);
  if (rc) return rc;
  struct listeners l = {0};
  struct uvm_session_result result;
  double begin = uvm_cli_seconds();
  rc = listen(&l, o, &places, e);
  if (!rc) rc = uvm_cli_simulate(o, 0, l.observers, l.n, &result, e);
  struct uvm_summary summary = {.trace = o->operand[0],
                                .run = &result,
                                .metrics = &l.metrics,
                                .asked = o->asked.v,
                                .nasked = o->asked.n,
                                .wall_seconds = o->deterministic ? -1 : uvm_cli_seconds() - begin};
  if (!rc) rc = report(o, &summary, &l, e);
  release(&l);
  return rc;
}
