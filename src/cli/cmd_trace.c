/* trace info, trace convert: what a trace holds, and the same in another form. */
#include "cli/options.h"
#include "report/json.h"
#include "report/table.h"
#include "trace.h"

struct listed_alloc {
  char *id, *label;
  uint8_t kind, on;
  uint64_t bytes;
};
struct info {
  const char *path, *format;
  struct uvm_trace_facts facts;
  UVM_VEC(struct listed_alloc) allocs;
};

static void info_free(struct info *x) {
  for (size_t i = 0; i < x->allocs.n; i++) uvm_mem_free(x->allocs.v[i].id), uvm_mem_free(x->allocs.v[i].label);
  uvm_mem_free(x->allocs.v);
}

static int list_allocs(struct uvm_trace *t, struct info *x, struct uvm_error *e) {
  struct uvm_trace_record r;
  int rc;
  while ((rc = uvm_trace_next(t, &r, e)) > 0) {
    if (r.op != UVM_TR_ALLOC) continue;
    UVM_PUSH(&x->allocs) =
        (struct listed_alloc){.id = uvm_copy_string(r.id), .label = uvm_copy_string(r.label), .kind = r.kind, .on = r.on, .bytes = r.bytes};
  }
  return rc;
}

static void print_info(const struct info *x, FILE *f) {
  static const char *const header[] = {"alloc", "id", "label", "kind", "bytes", ""};
  const struct uvm_trace_facts *a = &x->facts;
  char n[32], size[24], peak[24];
  fprintf(f, "%s: format %s, page %llu, %u GPU%s\n", x->path, x->format, (unsigned long long)a->page, a->gpus, a->gpus == 1 ? "" : "s");
  fprintf(f, "records %s (a kernel is one): allocations %llu, kernels %llu, access records %llu (those in kernels too), sections %llu\n",
          uvm_count_text(a->records, n), (unsigned long long)a->allocs, (unsigned long long)a->kernels, (unsigned long long)a->accesses,
          (unsigned long long)a->sections);
  fprintf(f, "managed memory: %s in all, at most %s at once\n", uvm_size_text(a->managed_bytes, size),
          uvm_size_text(a->peak_managed_bytes, peak));
  if (!x->allocs.n) return;
  struct uvm_table t;
  uvm_table_init(&t, "rlllrr", header);
  for (size_t i = 0; i < x->allocs.n && i < UVM_TABLE_ROWS; i++) {
    const struct listed_alloc *l = &x->allocs.v[i];
    uvm_table_cell(&t, "%zu", i);
    uvm_table_cell(&t, "%s", l->id);
    uvm_table_cell(&t, "%s", l->label);
    uvm_table_cell(&t, "%s", uvm_trace_kinds[l->kind]);
    uvm_table_cell(&t, "%s", uvm_count_text(l->bytes, n));
    uvm_table_cell(&t, "%s", uvm_size_text(l->bytes, size));
  }
  fputc('\n', f);
  uvm_table_print(&t, f);
  uvm_table_rest(x->allocs.n, f);
}

static int json_info(const struct info *x, const char *path, struct uvm_error *e) {
  cJSON *o = uvm_json_object();
  uvm_json_u64(o, "schema", 1);
  uvm_json_text(o, "trace", x->path);
  uvm_json_text(o, "format", x->format);
  uvm_json_u64(o, "page", x->facts.page);
  uvm_json_u64(o, "gpus", x->facts.gpus);
  uvm_json_u64(o, "records", x->facts.records);
  uvm_json_u64(o, "kernels", x->facts.kernels);
  uvm_json_u64(o, "access_records", x->facts.accesses);
  uvm_json_u64(o, "sections", x->facts.sections);
  uvm_json_u64(o, "managed_bytes", x->facts.managed_bytes);
  uvm_json_u64(o, "peak_managed_bytes", x->facts.peak_managed_bytes);
  cJSON *list = uvm_json_list(o, "allocations");
  for (size_t i = 0; i < x->allocs.n; i++) {
    cJSON *item = uvm_json_item(list);
    uvm_json_text(item, "id", x->allocs.v[i].id);
    uvm_json_u64(item, "number", i);
    uvm_json_text(item, "label", x->allocs.v[i].label);
    uvm_json_text(item, "kind", uvm_trace_kinds[x->allocs.v[i].kind]);
    uvm_json_u64(item, "bytes", x->allocs.v[i].bytes);
  }
  return uvm_json_write(o, path, e);
}

int uvm_cmd_trace_info(const struct uvm_options *o, struct uvm_error *e) {
  struct uvm_trace *t;
  int rc = uvm_trace_open(o->operand[0], true, &t, e);
  if (rc) return rc;
  struct info x = {.path = o->operand[0], .format = uvm_trace_format(t)};
  if (!(rc = uvm_trace_survey(t, &x.facts, e))) rc = list_allocs(t, &x, e);
  if (!rc && o->json) rc = json_info(&x, o->json, e);
  if (!rc && !o->quiet && !uvm_to_stdout(o->json)) print_info(&x, stdout);
  info_free(&x);
  uvm_trace_close(t);
  return rc;
}

/* -- convert -- */

static int copy(struct uvm_trace *t, struct uvm_trace_writer *w, uint64_t *records, struct uvm_error *e) {
  struct uvm_trace_record r;
  int rc;
  while ((rc = uvm_trace_next(t, &r, e)) > 0) {
    if ((rc = uvm_trace_write(w, t, &r, e))) return rc;
    ++*records;
  }
  return rc;
}

static int report_conversion(const struct uvm_options *o, uint64_t records, struct uvm_error *e) {
  bool stdout_taken = uvm_to_stdout(o->output) || uvm_to_stdout(o->json);
  if (!o->quiet && !stdout_taken) printf("%s -> %s: %llu records\n", o->operand[0], o->output, (unsigned long long)records);
  if (!o->json) return 0;
  cJSON *doc = uvm_json_object();
  uvm_json_u64(doc, "schema", 1);
  uvm_json_text(doc, "from", o->operand[0]);
  uvm_json_text(doc, "to", o->output);
  uvm_json_u64(doc, "records", records);
  return uvm_json_write(doc, o->json, e);
}

int uvm_cmd_trace_convert(const struct uvm_options *o, struct uvm_error *e) {
  if (!o->output) return uvm_fail(e, UVM_EUSAGE, "trace convert: --output is missing: the file to write");
  struct uvm_trace *t;
  struct uvm_trace_writer *w;
  uint64_t records = 0;
  int rc = uvm_trace_open(o->operand[0], false, &t, e);
  if (rc) return rc;
  if (!(rc = uvm_trace_create(o->output, &w, e))) {
    rc = copy(t, w, &records, e);
    if (rc)
      uvm_trace_abandon(w);
    else
      rc = uvm_trace_commit(w, e);
  }
  uvm_trace_close(t);
  return rc ? rc : report_conversion(o, records, e);
}
