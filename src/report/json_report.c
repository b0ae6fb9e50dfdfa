/* The machine-readable report of a run. */
#include "report/json.h"
#include "report/summary.h"

static void add_counters(cJSON *in, const void *counters, const struct uvm_counter_info *info) {
  for (; info->key; info++) uvm_json_u64(in, info->key, uvm_counter_get(counters, info));
}

static void add_procs(cJSON *in, const struct uvm_places *p, const struct uvm_proc_counters *procs) {
  cJSON *list = uvm_json_list(in, "processors");
  for (unsigned i = 0; i < p->nprocs; i++) {
    cJSON *o = uvm_json_item(list);
    uvm_json_text(o, "name", p->proc[i]);
    add_counters(o, &procs[i], uvm_proc_counter_info);
  }
}

static void add_total(cJSON *in, const struct uvm_summary *s) {
  struct uvm_counters total = s->metrics->total;
  total.accesses = s->run->accesses;
  total.peak_gpu_bytes = s->run->peak_gpu_bytes;
  cJSON *o = cJSON_AddObjectToObject(in, "total");
  uvm_json_u64(o, "sim_ns", s->run->sim_ns);
  add_counters(o, &total, uvm_counter_info);
}

/* A section that the run never left has no duration. */
static void add_sections(cJSON *in, const struct uvm_metrics *m) {
  cJSON *list = uvm_json_list(in, "sections");
  for (size_t i = 0; i < m->sections.n; i++) {
    const struct uvm_section_metrics *s = &m->sections.v[i];
    cJSON *o = uvm_json_item(list);
    uvm_json_text(o, "name", s->name);
    uvm_json_u64(o, "iteration", s->iteration);
    uvm_json_u64(o, "ns", s->end == UVM_NEVER ? UVM_UNKNOWN : s->end - s->begin);
    add_counters(o, &s->c, uvm_counter_info);
  }
}

static void add_allocs(cJSON *in, const struct uvm_metrics *m) {
  cJSON *list = uvm_json_list(in, "allocations");
  for (size_t i = 0; i < m->allocs.n; i++) {
    const struct uvm_alloc_metrics *a = &m->allocs.v[i];
    cJSON *o = uvm_json_item(list);
    uvm_json_text(o, "id", a->id);
    uvm_json_u64(o, "number", a->number);
    uvm_json_text(o, "label", a->label);
    uvm_json_text(o, "kind", uvm_kind_name(a->kind));
    uvm_json_u64(o, "bytes", a->bytes);
    add_counters(o, &a->c, uvm_counter_info);
    add_procs(o, &m->places, a->procs);
  }
}

static void add_link_waits(cJSON *in, const struct uvm_session_result *r) {
  cJSON *list = uvm_json_list(in, "link_waits");
  for (size_t i = 0; i < r->nlink_waits; i++) {
    cJSON *o = uvm_json_item(list);
    uvm_json_text(o, "waiter", r->link_waits[i].waiter);
    uvm_json_text(o, "holder", r->link_waits[i].holder);
    uvm_json_u64(o, "ns", r->link_waits[i].ns);
  }
}

int uvm_json_report(const struct uvm_summary *s, const char *path, struct uvm_error *e) {
  cJSON *o = uvm_json_object();
  uvm_json_u64(o, "schema", 1);
  uvm_json_text(o, "machine", s->run->machine);
  uvm_json_text(o, "driver", s->run->driver);
  uvm_json_text(o, "policy", s->run->policy);
  uvm_json_text(o, "engine", s->run->engine);
  uvm_json_text(o, "trace", s->trace);
  if (s->run->interrupted) cJSON_AddTrueToObject(o, "partial");
  add_total(o, s);
  add_procs(o, &s->metrics->places, s->metrics->procs);
  add_sections(o, s->metrics);
  add_allocs(o, s->metrics);
  add_link_waits(o, s->run);
  if (s->wall_seconds >= 0) uvm_json_u64(cJSON_AddObjectToObject(o, "host"), "wall_ns", (uint64_t)(s->wall_seconds * 1e9));
  return uvm_json_write(o, path, e);
}
