#include "report/diff.h"
#include "report/json.h"
#include "report/table.h"

#define KIND(k) (1u << (k))
/* What makes two rows the same decision, besides kind and place. A batch's `value` counts duplicates, which depend on time, and a
 * recorded fault's access is the instruction's doing, which a trace need not know. */
enum { BY_VALUE = 1, BY_FLAGS = 2, BY_SRC = 4, BY_DST = 8 };
static const struct {
  const char *name;
  uint32_t kinds;
  bool ours;
  uint8_t by;
} streams[UVM_DIFF_STREAMS] = {
    {"CPU faults", KIND(UVM_ROW_CPU_FAULT), false, 0},
    {"GPU fault batches", KIND(UVM_ROW_GPU_FAULT), false, 0},
    {"transfers to GPUs", KIND(UVM_ROW_H2D), false, BY_VALUE | BY_FLAGS},
    {"transfers to the CPU", KIND(UVM_ROW_D2H), false, BY_VALUE | BY_FLAGS},
    {"transfers between GPUs", KIND(UVM_ROW_D2D), false, BY_VALUE | BY_FLAGS | BY_SRC | BY_DST},
    {"thrashing control", KIND(UVM_ROW_THRASH) | KIND(UVM_ROW_THROTTLE), false, 0},
    {"remote mappings", KIND(UVM_ROW_REMOTE_MAP), true, BY_FLAGS | BY_SRC | BY_DST},
    {"GPU faults", KIND(UVM_ROW_FAULT), true, BY_FLAGS | BY_SRC},
    {"first touches", KIND(UVM_ROW_POPULATE), true, BY_VALUE | BY_DST},
    {"evictions", KIND(UVM_ROW_EVICT), true, BY_SRC},
};

static bool same_decision(const struct uvm_row *a, const struct uvm_row *b, uint8_t by) {
  return a->kind == b->kind && a->alloc == b->alloc && a->offset == b->offset && (!(by & BY_VALUE) || a->value == b->value) &&
         (!(by & BY_FLAGS) || a->flags == b->flags) && (!(by & BY_SRC) || a->src == b->src) && (!(by & BY_DST) || a->dst == b->dst);
}

/* A recording has none of the kinds that only we write. */
static bool is_ours(const struct uvm_rows *r) {
  for (size_t i = 0; i < r->rows.n; i++)
    if (r->rows.v[i].kind > UVM_ROW_SECTION) return true;
  return false;
}

static void fill(struct uvm_diff *d, int side, struct uvm_rows *r) {
  uvm_rows_sort(r);
  for (size_t i = 0; i < r->rows.n; i++)
    for (int s = 0; s < UVM_DIFF_STREAMS; s++)
      if (streams[s].kinds >> r->rows.v[i].kind & 1) UVM_PUSH(&d->stream[s].side[side]) = &r->rows.v[i];
}

static void compare(struct uvm_diff_stream *s, uint8_t by) {
  size_t n = s->side[0].n < s->side[1].n ? s->side[0].n : s->side[1].n, i = 0;
  while (i < n && same_decision(s->side[0].v[i], s->side[1].v[i], by)) i++;
  s->same = i == s->side[0].n && i == s->side[1].n;
  s->first = i;
}

/* When the stream parts, by the first side's clock where it has a row. */
static int64_t parting_time(const struct uvm_diff_stream *s) {
  return s->first < s->side[0].n ? s->side[0].v[s->first]->t : s->side[1].v[s->first]->t;
}

void uvm_diff_make(struct uvm_diff *d, struct uvm_rows *a, struct uvm_rows *b, const char *a_name, const char *b_name) {
  *d = (struct uvm_diff){.name = {a_name, b_name}, .first = -1, .sim_ns = {UVM_NEVER, UVM_NEVER}};
  bool ours = is_ours(a) && is_ours(b);
  fill(d, 0, a);
  fill(d, 1, b);
  for (int i = 0; i < UVM_DIFF_STREAMS; i++) {
    struct uvm_diff_stream *s = &d->stream[i];
    s->name = streams[i].name;
    s->compared = ours || !streams[i].ours;
    compare(s, streams[i].by);
    if (!s->compared || s->same) continue;
    if (d->first < 0 || parting_time(s) < parting_time(&d->stream[d->first])) d->first = i;
  }
}

void uvm_diff_free(struct uvm_diff *d) {
  for (int i = 0; i < UVM_DIFF_STREAMS; i++) uvm_mem_free(d->stream[i].side[0].v), uvm_mem_free(d->stream[i].side[1].v);
}

/* -- printing -- */

/* What the row's flags say, in words. */
static const char *detail(const struct uvm_row *r) {
  static const char *const remote[] = {"", "coherence", "thrashing", "policy", "", "eviction"};
  switch ((enum uvm_row_kind)r->kind) {
  case UVM_ROW_H2D:
  case UVM_ROW_D2H:
  case UVM_ROW_D2D:
  case UVM_ROW_POPULATE:
  case UVM_ROW_EVICT: return r->flags ? uvm_cause_word(r->flags) : "";
  case UVM_ROW_GPU_FAULT:
  case UVM_ROW_CPU_FAULT:
  case UVM_ROW_FAULT: return uvm_access_word(r->flags);
  case UVM_ROW_REMOTE_MAP: return r->flags < 6 ? remote[r->flags] : "?";
  default: return "";
  }
}

static bool has_bytes(enum uvm_row_kind k) {
  return k == UVM_ROW_H2D || k == UVM_ROW_D2H || k == UVM_ROW_D2D || k == UVM_ROW_POPULATE || k == UVM_ROW_EVICT;
}

static void print_row(struct uvm_table *t, const struct uvm_diff_stream *s, const char *side_name, int side, size_t i) {
  if (i > s->side[side].n) return;
  uvm_table_cell(t, "%s", i == s->first ? ">" : "");
  uvm_table_cell(t, "%zu", i);
  uvm_table_cell(t, "%s", side_name);
  if (i == s->side[side].n) {
    uvm_table_cell(t, "%s", ""), uvm_table_cell(t, "(end)");
    for (int k = 0; k < 4; k++) uvm_table_cell(t, "%s", "");
    return;
  }
  const struct uvm_row *r = s->side[side].v[i];
  uvm_table_cell(t, "%lld", (long long)r->t);
  uvm_table_cell(t, "%s", uvm_row_names[r->kind]);
  uvm_table_cell(t, "%lld", (long long)r->alloc);
  uvm_table_cell(t, "%llu", (unsigned long long)r->offset);
  if (has_bytes(r->kind))
    uvm_table_cell(t, "%llu", (unsigned long long)r->value);
  else
    uvm_table_cell(t, "%s", "");
  uvm_table_cell(t, "%s", detail(r));
}

/* Rows that agree stand there once, with the first side's time. */
static void print_context(const struct uvm_diff *d, const struct uvm_diff_stream *s, FILE *f) {
  enum { AROUND = 3 };
  static const char *const header[] = {"", "#", "side", "t (ns)", "what", "alloc", "offset", "bytes", "why"};
  struct uvm_table t;
  uvm_table_init(&t, "lrlrlrrrl", header);
  size_t from = s->first > AROUND ? s->first - AROUND : 0;
  for (size_t i = from; i <= s->first + AROUND && (i <= s->side[0].n || i <= s->side[1].n); i++) {
    if (i < s->first) {
      print_row(&t, s, "both", 0, i);
      continue;
    }
    for (int side = 0; side < 2; side++) print_row(&t, s, d->name[side], side, i);
  }
  uvm_table_print(&t, f);
}

static void print_times(struct uvm_table *t, const struct uvm_diff *d) {
  if (d->sim_ns[0] == UVM_NEVER && d->sim_ns[1] == UVM_NEVER) return;
  uvm_table_cell(t, "virtual time");
  for (int side = 0; side < 2; side++) {
    char ns[24];
    uvm_table_cell(t, "%s", d->sim_ns[side] == UVM_NEVER ? "-" : uvm_ns_text(d->sim_ns[side], ns));
  }
  uvm_table_cell(t, "%s", "");
}

void uvm_diff_print(const struct uvm_diff *d, FILE *f) {
  const char *header[] = {"", d->name[0], d->name[1], "parts at"};
  struct uvm_table t;
  uvm_table_init(&t, "lrrr", header);
  for (int i = 0; i < UVM_DIFF_STREAMS; i++) {
    const struct uvm_diff_stream *s = &d->stream[i];
    if (!s->compared || (!s->side[0].n && !s->side[1].n)) continue;
    uvm_table_cell(&t, "%s", s->name);
    uvm_table_cell(&t, "%zu", s->side[0].n);
    uvm_table_cell(&t, "%zu", s->side[1].n);
    if (s->same)
      uvm_table_cell(&t, "%s", "same");
    else
      uvm_table_cell(&t, "%zu", s->first);
  }
  print_times(&t, d);
  uvm_table_print(&t, f);
  if (d->first < 0) {
    fputs("\nno decision differs\n", f);
    return;
  }
  fprintf(f, "\nthe first decision in which they part: %s, row %zu (from 0)\n", d->stream[d->first].name, d->stream[d->first].first);
  print_context(d, &d->stream[d->first], f);
}

static void json_row(cJSON *in, const char *key, const struct uvm_diff_stream *s, int side) {
  if (s->first >= s->side[side].n) {
    cJSON_AddNullToObject(in, key);
    return;
  }
  const struct uvm_row *r = s->side[side].v[s->first];
  cJSON *o = cJSON_AddObjectToObject(in, key);
  uvm_json_i64(o, "t_ns", r->t);
  uvm_json_text(o, "kind", uvm_row_names[r->kind]);
  uvm_json_i64(o, "alloc", r->alloc);
  uvm_json_u64(o, "offset", r->offset);
  uvm_json_u64(o, "value", r->value);
  uvm_json_u64(o, "flags", r->flags);
}

int uvm_diff_json(const struct uvm_diff *d, const char *path, struct uvm_error *e) {
  cJSON *o = uvm_json_object();
  uvm_json_u64(o, "schema", 1);
  uvm_json_text(o, "a", d->name[0]);
  uvm_json_text(o, "b", d->name[1]);
  uvm_json_u64(o, "a_sim_ns", d->sim_ns[0]); /* UVM_NEVER is null */
  uvm_json_u64(o, "b_sim_ns", d->sim_ns[1]);
  cJSON_AddBoolToObject(o, "same", d->first < 0);
  uvm_json_text(o, "first", d->first < 0 ? NULL : d->stream[d->first].name);
  cJSON *list = uvm_json_list(o, "streams");
  for (int i = 0; i < UVM_DIFF_STREAMS; i++) {
    const struct uvm_diff_stream *s = &d->stream[i];
    if (!s->compared) continue;
    cJSON *item = uvm_json_item(list);
    uvm_json_text(item, "name", s->name);
    uvm_json_u64(item, "a_rows", s->side[0].n);
    uvm_json_u64(item, "b_rows", s->side[1].n);
    uvm_json_u64(item, "parts_at", s->same ? UINT64_MAX : s->first);
    if (!s->same) json_row(item, "a", s, 0), json_row(item, "b", s, 1);
  }
  return uvm_json_write(o, path, e);
}
