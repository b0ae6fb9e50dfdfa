/* validate: a replay beside a recording. */
#include "cli/simulate.h"
#include "report/json.h"
#include "report/spread.h"
#include "report/table.h"
#include "report/validate.h"

struct outcome {
  struct uvm_validation decisions;
  struct uvm_spreads times;
  bool has_decisions;
};

/* "dir/chase.uvt.gz" is workload "chase". */
static char *workload_of(const struct uvm_options *o) {
  if (o->workload) return uvm_copy_string(o->workload);
  const char *slash = strrchr(o->operand[0], '/');
  char *name = uvm_copy_string(slash ? slash + 1 : o->operand[0]);
  char *suffix = strstr(name, ".uv");
  if (suffix) *suffix = 0;
  return name;
}

/* Times are judged only when a tolerance says how. */
static bool time_fails(const struct uvm_options *o, const struct uvm_spread *s) {
  return o->tolerance >= 0 && s->predicted && s->outside > o->tolerance;
}

static size_t failures(const struct uvm_options *o, const struct outcome *x) {
  size_t n = x->decisions.count[UVM_V_DIFFERS];
  for (size_t i = 0; i < x->times.v.n; i++) n += time_fails(o, &x->times.v.v[i]);
  return n;
}

/* -- for people -- */

enum { MAX_ALLOCS = 12 }; /* more are only shown where they differ */

static void print_decisions(const struct uvm_validation *v, FILE *f) {
  static const char *const header[] = {"alloc", "what", "recorded", "simulated", "verdict", "first difference"};
  bool all = !v->checks.n || v->checks.v[v->checks.n - 1].alloc < MAX_ALLOCS;
  struct uvm_table t;
  uvm_table_init(&t, "rlrrll", header);
  for (size_t i = 0; i < v->checks.n; i++) {
    const struct uvm_check *c = &v->checks.v[i];
    char n[32];
    if (!all && c->verdict == UVM_V_EXACT) continue;
    uvm_table_cell(&t, "%lld", (long long)c->alloc);
    uvm_table_cell(&t, "%s", c->what);
    uvm_table_cell(&t, "%s", uvm_count_text(c->recorded, n));
    uvm_table_cell(&t, "%s", uvm_count_text(c->simulated, n));
    uvm_table_cell(&t, "%s", uvm_verdict_name(c->verdict));
    uvm_table_cell(&t, "%s", c->first ? c->first : "");
  }
  uvm_table_print(&t, f);
  fprintf(f, "\n%zu checks: %zu exact, %zu subsequence, %zu close, %zu differ%s\n", v->checks.n, v->count[UVM_V_EXACT],
          v->count[UVM_V_SUBSEQUENCE], v->count[UVM_V_CLOSE], v->count[UVM_V_DIFFERS],
          all ? "" : " (exact ones are not listed: there are many allocations)");
}

static void time_cell(struct uvm_table *t, double seconds) {
  char ns[24];
  uvm_table_cell(t, "%s", uvm_ns_text((uvm_ns)(seconds * 1e9 + 0.5), ns));
}

static void falls_cell(struct uvm_table *t, const struct uvm_spread *x) {
  if (!x->predicted)
    uvm_table_cell(t, "%s", "not in the trace");
  else if (x->outside <= 0)
    uvm_table_cell(t, "%s", "within");
  else
    uvm_table_cell(t, "%.1f %% %s", x->outside, x->seconds > x->max ? "above" : "below");
}

/* "transfers 83 %": of the predicted time. */
static void cause_cell(struct uvm_table *t, const struct uvm_spread *x) {
  double share = x->seconds > 0 ? (double)x->ns[x->largest] * 1e-7 / x->seconds : 0;
  if (share > 0)
    uvm_table_cell(t, "%s %.0f %%", uvm_time_cause_names[x->largest], share);
  else
    uvm_table_cell(t, "%s", "-");
}

static void print_times(const struct uvm_options *o, const struct uvm_spreads *s, FILE *f) {
  static const char *const header[] = {"section", "part", "recorded min", "median", "max", "predicted", "falls", "largest cause"};
  struct uvm_table t;
  size_t within = 0, predicted = 0, failed = 0;
  uvm_table_init(&t, "llrrrrll", header);
  for (size_t i = 0; i < s->v.n; i++) {
    const struct uvm_spread *x = &s->v.v[i];
    predicted += x->predicted, within += x->predicted && x->outside <= 0, failed += time_fails(o, x);
    uvm_table_cell(&t, "%s", x->section);
    uvm_table_cell(&t, "%s", x->part);
    time_cell(&t, x->min), time_cell(&t, x->median), time_cell(&t, x->max);
    if (x->predicted)
      time_cell(&t, x->seconds);
    else
      uvm_table_cell(&t, "%s", "-");
    falls_cell(&t, x);
    cause_cell(&t, x);
  }
  uvm_table_print(&t, f);
  fprintf(f, "\n%zu of %zu predicted times fall within the recorded spread", within, predicted);
  if (o->tolerance >= 0) fprintf(f, ", %zu outside it by more than %g %%", failed, o->tolerance);
  fputc('\n', f);
}

/* -- for programs -- */

static void json_decisions(cJSON *in, const struct uvm_validation *v) {
  cJSON *list = uvm_json_list(in, "checks");
  for (size_t i = 0; i < v->checks.n; i++) {
    const struct uvm_check *c = &v->checks.v[i];
    cJSON *o = uvm_json_item(list);
    uvm_json_i64(o, "alloc", c->alloc);
    uvm_json_text(o, "what", c->what);
    uvm_json_u64(o, "recorded", c->recorded);
    uvm_json_u64(o, "simulated", c->simulated);
    uvm_json_text(o, "verdict", uvm_verdict_name(c->verdict));
    uvm_json_text(o, "first_difference", c->first);
  }
}

/* The causes that the time went to; together they are the prediction. */
static void json_causes(cJSON *in, const struct uvm_spread *x) {
  uvm_json_text(in, "largest_cause", x->predicted && x->ns[x->largest] ? uvm_time_cause_names[x->largest] : NULL);
  cJSON *o = cJSON_AddObjectToObject(in, "causes_ns");
  for (int i = 0; i < UVM_TIME_CAUSES; i++)
    if (x->ns[i]) uvm_json_u64(o, uvm_time_cause_names[i], x->ns[i]);
}

static uint64_t to_ns(double seconds) { return (uint64_t)(seconds * 1e9 + 0.5); }

static void json_times(cJSON *in, const struct uvm_spreads *s) {
  cJSON *list = uvm_json_list(in, "sections");
  for (size_t i = 0; i < s->v.n; i++) {
    const struct uvm_spread *x = &s->v.v[i];
    cJSON *o = uvm_json_item(list);
    uvm_json_text(o, "name", x->section);
    uvm_json_text(o, "part", x->part);
    uvm_json_u64(o, "predicted_ns", x->predicted ? to_ns(x->seconds) : UINT64_MAX);
    uvm_json_u64(o, "min_ns", to_ns(x->min));
    uvm_json_u64(o, "median_ns", to_ns(x->median));
    uvm_json_u64(o, "max_ns", to_ns(x->max));
    if (x->predicted)
      cJSON_AddNumberToObject(o, "outside_percent", x->outside);
    else
      cJSON_AddNullToObject(o, "outside_percent");
    json_causes(o, x);
  }
}

static int write_json(const struct uvm_options *o, const struct outcome *x, const struct uvm_session_result *r, struct uvm_error *e) {
  cJSON *doc = uvm_json_object();
  uvm_json_u64(doc, "schema", 1);
  uvm_json_text(doc, "machine", r->machine);
  uvm_json_text(doc, "driver", r->driver);
  uvm_json_text(doc, "policy", r->policy);
  uvm_json_text(doc, "trace", o->operand[0]);
  cJSON_AddBoolToObject(doc, "ok", !failures(o, x));
  if (x->has_decisions) json_decisions(doc, &x->decisions);
  if (x->times.v.n) json_times(doc, &x->times);
  return uvm_json_write(doc, o->json, e);
}

/* -- the command -- */

static int report(const struct uvm_options *o, const struct outcome *x, const struct uvm_session_result *r, struct uvm_error *e) {
  int rc = o->json ? write_json(o, x, r, e) : 0;
  if (rc) return rc;
  if (!o->quiet && !uvm_to_stdout(o->json)) {
    printf("%s on %s, driver %s, policy %s\n\n", o->operand[0], r->machine, r->driver, r->policy);
    if (x->has_decisions) print_decisions(&x->decisions, stdout);
    if (x->has_decisions && x->times.v.n) putchar('\n');
    if (x->times.v.n) print_times(o, &x->times, stdout);
  }
  return failures(o, x) ? UVM_ENO : 0;
}

/* The recordings are read first: a mistake in them should not cost a run. */
static int read_recordings(const struct uvm_options *o, struct uvm_rows *recorded, struct outcome *x, struct uvm_error *e) {
  int rc = o->observed ? uvm_rows_read(recorded, o->observed, e) : 0;
  if (rc || !o->sections) return rc;
  char *workload = workload_of(o);
  rc = uvm_spreads_read(&x->times, o->sections, workload, e);
  uvm_mem_free(workload);
  return rc;
}

static int validate(const struct uvm_options *o, struct uvm_rows *recorded, struct uvm_rows *simulated, struct outcome *x,
                    struct uvm_error *e) {
  struct uvm_session_result r;
  struct uvm_causes causes = {0};
  struct uvm_observer observers[] = {{simulated, uvm_rows_event}, {&causes, uvm_causes_event}};
  int rc = read_recordings(o, recorded, x, e);
  if (!rc) rc = uvm_cli_simulate(o, 0, observers, o->sections ? 2 : 1, &r, e);
  if (!rc && r.interrupted) rc = uvm_fail(e, UVM_EENV, "%s: interrupted", o->operand[0]);
  if (!rc && o->sections) {
    uvm_causes_settle(&causes);
    uvm_spreads_predict(&x->times, simulated, &causes);
  }
  uvm_causes_free(&causes);
  if (rc) return rc;
  x->has_decisions = o->observed != NULL;
  if (o->observed) uvm_validate(&x->decisions, recorded, simulated, o->tolerance);
  return report(o, x, &r, e);
}

int uvm_cmd_validate(const struct uvm_options *o, struct uvm_error *e) {
  if (!o->observed && !o->sections)
    return uvm_fail(e, UVM_EUSAGE, "validate: nothing to compare with: give --observed FILE, --sections FILE or both");
  struct uvm_places places;
  struct uvm_rows recorded, simulated;
  struct outcome x = {0};
  int rc = uvm_cli_places(o, 0, &places, e);
  if (rc) return rc;
  uvm_rows_init(&recorded, NULL), uvm_rows_init(&simulated, &places);
  rc = validate(o, &recorded, &simulated, &x, e);
  uvm_rows_free(&recorded), uvm_rows_free(&simulated);
  uvm_validation_free(&x.decisions), uvm_spreads_free(&x.times);
  return rc;
}
