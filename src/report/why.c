#include "report/why.h"
#include "report/json.h"
#include "report/table.h"
#include "trace.h"

void uvm_why_init(struct uvm_why *w, const struct uvm_places *places, const char *alloc, uint64_t page) {
  *w = (struct uvm_why){.places = *places, .wanted = alloc, .page = page};
}

static void forget(struct uvm_why *w) {
  for (size_t i = 0; i < w->lines.n; i++) uvm_mem_free(w->lines.v[i].what);
  for (size_t i = 0; i < w->rules.n; i++) uvm_mem_free(w->rules.v[i]);
  uvm_mem_free(w->lines.v), uvm_mem_free(w->rules.v), uvm_mem_free(w->label);
  memset(&w->lines, 0, sizeof w->lines), memset(&w->rules, 0, sizeof w->rules), w->label = NULL;
}

void uvm_why_free(struct uvm_why *w) {
  forget(w);
  *w = (struct uvm_why){0};
}

/* -- words -- */

static char *mapping_text(const struct uvm_event *e, const char *proc) {
  static const char *const allowed[] = {"nothing", "read", "read and write", "all access"};
  const char *may = e->access < 4 ? allowed[e->access] : "?";
  if (e->kind == UVM_E_MAP) return uvm_format("mapped for %s: %s", proc, may);
  const char *verb = e->kind == UVM_E_REVOKE ? "permission revoked" : "unmapped";
  if (e->access == UVM_A_PREFETCH) return uvm_format("%s: %s", verb, proc);
  return uvm_format("%s: %s keeps %s", verb, proc, may);
}

static char *fault_text(const struct uvm_event *e, const char *proc) {
  static const char *const hints[] = {"", "; pinned: thrashing", "; held back: thrashing"};
  char merged[48] = "";
  if (e->value > 1) snprintf(merged, sizeof merged, ", %llu entries merged", (unsigned long long)e->value);
  return uvm_format("%s %s fault%s%s", proc, uvm_access_word(e->access), merged, e->hint < 3 ? hints[e->hint] : "");
}

static char *advice_text(uint64_t advice) {
  return uvm_format("advice %s", advice <= UVM_TA_UNSET_COARSE_GRAIN ? uvm_trace_advices[advice] : "?");
}

/* What an event did to a page, or NULL for events that are not about pages. */
static char *describe(const struct uvm_why *w, const struct uvm_event *e) {
  const char *proc = uvm_places_proc(&w->places, e->proc), *src = uvm_places_node(&w->places, e->src),
             *dst = uvm_places_node(&w->places, e->dst);
  char size[24];
  switch ((enum uvm_event_kind)e->kind) {
  case UVM_E_GPU_FAULT: return fault_text(e, proc);
  case UVM_E_CPU_FAULT: return fault_text(e, uvm_places_proc(&w->places, 0));
  case UVM_E_POPULATE: return uvm_format("first touch: zeroed on %s", dst);
  case UVM_E_TRANSFER: return uvm_format("copied %s -> %s: %s, %s copy", src, dst, uvm_cause_word(e->cause), uvm_size_text(e->bytes, size));
  case UVM_E_DUPLICATE: return uvm_format("duplicated: both %s and %s keep it", src, dst);
  case UVM_E_COLLAPSE: return uvm_format("copy on %s dropped", src);
  case UVM_E_MAP:
  case UVM_E_UNMAP:
  case UVM_E_REVOKE: return mapping_text(e, proc);
  case UVM_E_EVICT: return uvm_format("its backing is evicted from %s", src);
  case UVM_E_THRASH: return uvm_copy_string("marked as thrashing");
  case UVM_E_THROTTLE: return uvm_format("%s held back: thrashing", proc);
  case UVM_E_REMOTE_MAP: return uvm_format("%s reaches it on %s: %s", proc, src, uvm_cause_word(e->cause));
  case UVM_E_UNPIN: return uvm_copy_string("pin ended");
  case UVM_E_PREFETCH: return uvm_format("prefetch call to %s", dst);
  case UVM_E_ADVISE: return advice_text(e->value);
  case UVM_E_FREE: return uvm_copy_string("allocation freed");
  default: return NULL;
  }
}

/* -- does the event concern the page? -- */

static bool concerns(const struct uvm_why *w, const struct uvm_event *e) {
  uint64_t offset = w->page * UVM_PAGE;
  if (!w->found || !e->has_alloc || e->alloc != w->alloc) return false;
  if (e->mask) {
    int p = uvm_page_of(e->block->range->alloc, offset);
    return uvm_mask_test(e->mask, p) && p >= e->block->first && p < e->block->first + e->block->pages &&
           uvm_block_offset(e->block, p) == offset;
  }
  if (e->kind == UVM_E_FREE) return true;
  return e->offset / UVM_PAGE <= w->page && (w->page == e->offset / UVM_PAGE || offset < e->offset + e->bytes);
}

/* An allocation is asked for by number, id or label: then the first one with that id, else with that label. */
static void find(struct uvm_why *w, const struct uvm_event *e) {
  uint64_t number;
  bool by_number = uvm_parse_u64(w->wanted, UINT32_MAX, &number);
  bool exact = by_number ? number == e->alloc : !strcmp(e->allocation->id, w->wanted);
  bool label = !by_number && !w->found && !strcmp(e->allocation->label, w->wanted);
  if ((w->found && !w->by_label) || (!exact && !label)) return;
  forget(w);
  w->found = true, w->by_label = !exact;
  w->alloc = e->alloc;
  w->bytes = e->allocation->bytes;
  w->label = uvm_copy_string(e->allocation->label);
}

/* -- the page's state, followed through the events -- */

static void follow(struct uvm_why_line *l, const struct uvm_event *e) {
  switch ((enum uvm_event_kind)e->kind) {
  case UVM_E_POPULATE: l->resident = 1u << e->dst; break;
  case UVM_E_TRANSFER: l->resident = (l->resident & ~(1u << e->src)) | 1u << e->dst; break; /* a DUPLICATE puts the source back */
  case UVM_E_DUPLICATE: l->resident |= 1u << e->src | 1u << e->dst; break;
  case UVM_E_COLLAPSE: l->resident &= ~(1u << e->src); break;
  case UVM_E_MAP:
    if (e->access > l->mapped[e->proc]) l->mapped[e->proc] = e->access;
    break;
  case UVM_E_UNMAP:
  case UVM_E_REVOKE:
    if (e->access < l->mapped[e->proc]) l->mapped[e->proc] = e->access;
    break;
  case UVM_E_FREE:
    l->resident = 0;
    memset(l->mapped, 0, sizeof l->mapped);
    break;
  default: break;
  }
}

/* A processor that is held back asks again and again; that is told once. */
static bool repeats(const struct uvm_why_line *a, const struct uvm_why_line *b) {
  return !strcmp(a->what, b->what) && a->rule == b->rule && a->line == b->line && a->resident == b->resident &&
         !memcmp(a->mapped, b->mapped, sizeof a->mapped);
}

static const char *keep_rule(struct uvm_why *w, const char *rule) {
  if (!rule) return NULL;
  for (size_t i = 0; i < w->rules.n; i++)
    if (!strcmp(w->rules.v[i], rule)) return w->rules.v[i];
  return UVM_PUSH(&w->rules) = uvm_copy_string(rule);
}

/* An eviction is told when it is over, and so is a fault by a driver that says how long it took. */
static bool told_late(const struct uvm_event *e) {
  return e->kind == UVM_E_EVICT || (e->dur && (e->kind == UVM_E_CPU_FAULT || e->kind == UVM_E_GPU_FAULT));
}

/* What was told late goes before the steps that it made, with the state of then. */
static void insert_earlier(struct uvm_why *w, struct uvm_why_line l) {
  size_t i = w->lines.n;
  while (i && w->lines.v[i - 1].t > l.t) i--;
  if (i < w->lines.n) {
    struct uvm_why_line none = {0};
    const struct uvm_why_line *before = i ? &w->lines.v[i - 1] : &none;
    l.resident = before->resident;
    memcpy(l.mapped, before->mapped, sizeof l.mapped);
  }
  UVM_PUSH(&w->lines) = l;
  for (size_t k = w->lines.n - 1; k > i; k--) w->lines.v[k] = w->lines.v[k - 1];
  w->lines.v[i] = l;
}

void uvm_why_event(void *why, const struct uvm_event *e) {
  struct uvm_why *w = why;
  if (e->kind == UVM_E_ALLOC) find(w, e);
  if (!concerns(w, e)) return;
  char *what = describe(w, e);
  if (!what) return;
  struct uvm_why_line l = w->lines.n ? w->lines.v[w->lines.n - 1] : (struct uvm_why_line){0};
  l.t = l.last = e->t, l.dur = e->dur, l.what = what, l.rule = keep_rule(w, e->rule), l.line = e->line, l.times = 1;
  follow(&l, e);
  if (told_late(e)) {
    insert_earlier(w, l);
    return;
  }
  struct uvm_why_line *before = w->lines.n ? &w->lines.v[w->lines.n - 1] : NULL;
  if (!before || !repeats(before, &l)) {
    UVM_PUSH(&w->lines) = l;
    return;
  }
  before->times++, before->last = l.t, before->dur += l.dur;
  uvm_mem_free(what);
}

/* -- printing -- */

static const char *resident_text(const struct uvm_why *w, const struct uvm_why_line *l, char *out, size_t size) {
  *out = 0;
  for (unsigned i = 0; i < w->places.nnodes; i++)
    if (l->resident >> i & 1) uvm_list_add(out, size, "+", w->places.node[i]);
  return *out ? out : "nowhere";
}

static const char *mapped_text(const struct uvm_why *w, const struct uvm_why_line *l, char *out, size_t size) {
  static const char *const levels[] = {"", "r", "rw", "rwa"};
  *out = 0;
  for (unsigned i = 0; i < w->places.nprocs; i++) {
    char one[32];
    snprintf(one, sizeof one, "%s:%s", w->places.proc[i], levels[l->mapped[i]]);
    if (l->mapped[i]) uvm_list_add(out, size, " ", one);
  }
  return *out ? out : "-";
}

static void print_line(struct uvm_table *t, const struct uvm_why *w, const struct uvm_why_line *l) {
  char text[128], ns[24];
  uvm_table_cell(t, "%llu", (unsigned long long)l->t);
  if (l->times > 1)
    uvm_table_cell(t, "%s (%llu times, until %llu)", l->what, (unsigned long long)l->times, (unsigned long long)l->last);
  else
    uvm_table_cell(t, "%s", l->what);
  uvm_table_cell(t, "%s", l->rule ? l->rule : "-");
  uvm_table_cell(t, "%s", resident_text(w, l, text, sizeof text));
  uvm_table_cell(t, "%s", mapped_text(w, l, text, sizeof text));
  uvm_table_cell(t, "%s", l->dur ? uvm_ns_text(l->dur, ns) : "");
  if (l->line)
    uvm_table_cell(t, "%lld", (long long)l->line);
  else
    uvm_table_cell(t, "%s", "");
}

void uvm_why_print(const struct uvm_why *w, FILE *f) {
  static const char *const header[] = {"t (ns)", "what", "rule", "resident", "mapped", "took", "line"};
  fprintf(f, "allocation %u (%s), page %llu, offset %llu\n", w->alloc, w->label, (unsigned long long)w->page,
          (unsigned long long)(w->page * UVM_PAGE));
  if (!w->lines.n) {
    fputs("nothing ever happened to it: nobody touched it\n", f);
    return;
  }
  struct uvm_table t;
  uvm_table_init(&t, "rllllrr", header);
  for (size_t i = 0; i < w->lines.n; i++) print_line(&t, w, &w->lines.v[i]);
  uvm_table_print(&t, f);
}

int uvm_why_json(const struct uvm_why *w, const char *path, struct uvm_error *e) {
  cJSON *o = uvm_json_object();
  uvm_json_u64(o, "schema", 1);
  uvm_json_u64(o, "allocation", w->alloc);
  uvm_json_text(o, "label", w->label);
  uvm_json_u64(o, "page", w->page);
  cJSON *list = uvm_json_list(o, "events");
  for (size_t i = 0; i < w->lines.n; i++) {
    const struct uvm_why_line *l = &w->lines.v[i];
    char text[128];
    cJSON *item = uvm_json_item(list);
    uvm_json_u64(item, "t_ns", l->t);
    uvm_json_u64(item, "times", l->times);
    uvm_json_u64(item, "last_t_ns", l->last);
    uvm_json_u64(item, "dur_ns", l->dur);
    uvm_json_text(item, "what", l->what);
    uvm_json_text(item, "rule", l->rule);
    uvm_json_text(item, "resident", resident_text(w, l, text, sizeof text));
    uvm_json_text(item, "mapped", mapped_text(w, l, text, sizeof text));
    uvm_json_u64(item, "line", l->line ? (uint64_t)l->line : UINT64_MAX);
  }
  return uvm_json_write(o, path, e);
}
