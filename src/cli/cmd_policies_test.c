/* policies test: a policy from a file on random traces, where every answer is checked, and beside the driver's own. */
#include "cli/contract.h"
#include "cli/simulate.h"
#include "policy_file.h"
#include "report/metrics.h"
#include "report/table.h"
#include "trace.h"

enum { TRACES = 100, TOO_MANY_EVENTS = 4000000 };
static const struct {
  const char *machine;
  unsigned gpus;
} on[] = {{"nvidia-h200", 1}, {"nvidia-h200x2", 2}, {"amd-mi250x", 2}};

/* -- one run -- */

static int run_text(const char *text, struct uvm_session_config *c, const struct uvm_observer *o, struct uvm_session_result *r,
                    struct uvm_error *e) {
  int rc = uvm_trace_open_memory(text, strlen(text), &c->source, e);
  if (rc) return rc;
  c->observers = o, c->nobservers = 1;
  rc = uvm_session_run(c, r, e);
  uvm_trace_close(c->source);
  return rc;
}

/* -- the contract -- */

struct watch {
  uint64_t events, hash;
};

/* Takes in what was decided and when; a run that does not end is stopped. */
static void watch(void *ctx, const struct uvm_event *e) {
  struct watch *w = ctx;
  const uint64_t told[] = {e->kind, e->t, e->dur, e->alloc, e->offset, e->bytes, e->value, e->proc, e->src, e->dst, e->why, e->hint};
  for (size_t i = 0; i < sizeof told / sizeof *told; i++) w->hash = (w->hash ^ told[i]) * 0x100000001b3ull;
  if (++w->events == TOO_MANY_EVENTS) uvm_stop = true;
}

static int run_watched(const char *text, struct uvm_session_config *c, struct watch *w, struct uvm_error *e) {
  struct uvm_session_result r;
  *w = (struct watch){0};
  int rc = run_text(text, c, &(struct uvm_observer){w, watch}, &r, e);
  bool endless = w->events >= TOO_MANY_EVENTS;
  if (endless) uvm_stop = false;
  return endless ? uvm_fail(e, UVM_ENO, "the run does not end") : rc;
}

static int run_twice(const char *text, struct uvm_session_config *c, struct uvm_error *e) {
  struct watch once, again;
  int rc = run_watched(text, c, &once, e);
  if (!rc) rc = run_watched(text, c, &again, e);
  if (!rc && once.hash != again.hash) rc = uvm_fail(e, UVM_ENO, "the same run twice tells two things");
  return rc;
}

/* The trace stays, and the message says how to run it again. */
static int failed(const char *path, const char *text, const struct uvm_session_config *c, struct uvm_error *e) {
  struct uvm_error why = *e;
  struct uvm_out out;
  char *name = uvm_format("%s-fails.uvt", c->opened->name);
  int rc = uvm_out_open(&out, name, e);
  if (!rc) fputs(text, out.f), rc = uvm_out_commit(&out, e);
  if (!rc)
    rc = uvm_fail(e, UVM_ENO, "%s; again: uvmsim replay %s --policy %s --machine %s --gpu-memory %llu", why.text, name, path, c->machine,
                  (unsigned long long)c->gpu_memory);
  uvm_mem_free(name);
  return rc;
}

/* Each trace with memory for two to six blocks on every GPU. */
static int hold_to_contract(const char *path, const struct uvm_policy *p, struct uvm_error *e) {
  int rc = 0;
  for (uint64_t i = 0; i < TRACES && !rc; i++) {
    size_t where = i % (sizeof on / sizeof *on);
    struct uvm_session_config c = {.opened = p, .machine = on[where].machine, .gpu_memory = (2 + i % 5) * UVM_BLOCK_BYTES};
    char *text = uvm_contract_trace(i, on[where].gpus);
    rc = run_twice(text, &c, e);
    if (rc) rc = failed(path, text, &c, e);
    uvm_mem_free(text);
  }
  return rc;
}

/* -- workloads, beside the driver's policy -- */

static int measure(const struct uvm_contract_workload *w, const struct uvm_policy *p, const struct uvm_places *places, struct uvm_table *t,
                   struct uvm_error *e) {
  struct uvm_session_config c = {.opened = p, .gpu_memory = w->gpu_memory};
  struct uvm_session_result r;
  struct uvm_metrics m;
  char a[32], b[32];
  uvm_metrics_init(&m, places);
  int rc = run_text(w->text, &c, &(struct uvm_observer){&m, uvm_metrics_event}, &r, e);
  if (!rc) {
    uvm_table_cell(t, "%s", w->name), uvm_table_cell(t, "%s", r.policy);
    uvm_table_cell(t, "%s", uvm_ns_text(r.sim_ns, a)), uvm_table_cell(t, "%s", uvm_count_text(m.total.gpu_faults, b));
    uvm_table_cell(t, "%s", uvm_size_text(m.total.h2d_bytes, a)), uvm_table_cell(t, "%s", uvm_size_text(m.total.d2h_bytes, b));
    uvm_table_cell(t, "%s", uvm_count_text(m.total.evictions, b));
  }
  uvm_metrics_free(&m);
  return rc;
}

static int compare(const struct uvm_options *o, const struct uvm_policy *p, struct uvm_error *e) {
  static const char *const header[] = {"workload", "policy", "time", "GPU faults", "to GPU", "to CPU", "evictions"};
  struct uvm_places places;
  struct uvm_table t;
  int rc = uvm_cli_places(o, 0, &places, e);
  if (rc) return rc;
  uvm_table_init(&t, "llrrrrr", header);
  for (const struct uvm_contract_workload *w = uvm_contract_workloads; w->name && !rc; w++) {
    rc = measure(w, NULL, &places, &t, e);
    if (!rc) rc = measure(w, p, &places, &t, e);
  }
  uvm_table_print(&t, stdout);
  return rc;
}

int uvm_cmd_policies_test(const struct uvm_options *o, struct uvm_error *e) {
  const char *path = o->operand[0];
  struct uvm_policy_file file;
  int rc = uvm_policy_file_open(path, &file, e);
  if (rc) return rc;
  if (*file.global)
    rc = uvm_fail(e, UVM_ENO, "%s: expected no variable that outlives a run, found '%s': make it const or part of the state", path,
                  file.global);
  if (!rc) rc = hold_to_contract(path, file.policy, e);
  if (!rc && !o->quiet) {
    printf("%s: policy %s: no global variables; %d random traces, each twice: every answer holds, both tell the same\n\n", path,
           file.policy->name, TRACES);
    rc = compare(o, file.policy, e);
  }
  uvm_policy_file_close(&file);
  return rc;
}
