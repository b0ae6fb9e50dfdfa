/* The report of a run, for people. */
#include <inttypes.h>
#include <stdlib.h>
#include "report/summary.h"
#include "report/table.h"

static void print_head(const struct uvm_summary *s, FILE *f) {
  const struct uvm_session_result *r = s->run;
  char peak[24], capacity[24], time[24];
  fprintf(f, "%s on %s, driver %s, policy %s, engine %s%s\n", s->trace, r->machine, r->driver, r->policy, r->engine,
          r->interrupted ? " -- PARTIAL: interrupted" : "");
  if (r->gpu_capacity) {
    fprintf(f, "GPU memory %s", uvm_size_text(r->gpu_capacity, capacity));
    if (r->nprocs > 2) fprintf(f, " (%u GPUs together)", r->nprocs - 1u);
    fprintf(f, ", of which at most %s was in use\n", uvm_size_text(r->peak_gpu_bytes, peak));
  }
  fprintf(f, "%s of virtual time", uvm_ns_text(r->sim_ns, time));
  if (s->wall_seconds >= 0) fprintf(f, ", simulated in %s", uvm_ns_text((uvm_ns)(s->wall_seconds * 1e9), time));
  fputs("\n\n", f);
}

/* -- totals -- */

/* A line of the totals: nothing is printed for what did not happen (n 0). */
static void line(struct uvm_table *t, const char *name, uint64_t n, enum uvm_unit unit, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
static void line(struct uvm_table *t, const char *name, uint64_t n, enum uvm_unit unit, const char *fmt, ...) {
  char value[32], text[256];
  if (!n) return;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  uvm_table_cell(t, "%s", name);
  uvm_table_cell(t, "%s",
                 unit == UVM_BYTES  ? uvm_size_text(n, value)
                 : unit == UVM_TIME ? uvm_ns_text(n, value)
                                    : uvm_count_text(n, value));
  uvm_table_cell(t, "%s", text);
}

static void copies_line(struct uvm_table *t, const char *name, uint64_t bytes, uint64_t copies) {
  char count[32], size[24];
  if (!copies) return;
  line(t, name, bytes, UVM_BYTES, "in %s %s of %s on average", uvm_count_text(copies, count), copies == 1 ? "copy" : "copies",
       uvm_size_text(bytes / copies, size));
}

static void print_totals(const struct uvm_summary *s, FILE *f) {
  const struct uvm_counters *c = &s->metrics->total;
  char size[24], n[32];
  struct uvm_table t;
  uvm_table_init(&t, "lrl", NULL);
  line(&t, "accesses", s->run->accesses, UVM_COUNT, "elements, as the trace writes them");
  line(&t, "GPU faults", c->gpu_faults, UVM_COUNT, "in %s %s, %.1f a batch", uvm_count_text(c->fault_batches, n),
       c->fault_batches == 1 ? "batch" : "batches", c->fault_batches ? (double)c->gpu_faults / (double)c->fault_batches : 0.0);
  line(&t, "  held back", c->throttled_faults, UVM_COUNT, "by thrashing control");
  line(&t, "CPU faults", c->cpu_faults, UVM_COUNT, "first touches included");
  copies_line(&t, "moved to GPUs", c->h2d_bytes, c->h2d_copies);
  copies_line(&t, "moved to the CPU", c->d2h_bytes, c->d2h_copies);
  line(&t, "moved between GPUs", c->d2d_bytes, UVM_BYTES, "%s", "");
  line(&t, "  of all this prefetched", c->prefetched_bytes, UVM_BYTES, "came along with a fault; %s of it was used",
       uvm_size_text(c->prefetch_used_bytes, size));
  line(&t, "duplicated", c->duplicated_bytes, UVM_BYTES, "for reading on several sides");
  line(&t, "revocations", c->revocations, UVM_COUNT, "pages whose permission was taken away");
  line(&t, "evictions", c->evictions, UVM_COUNT, "moving %s", uvm_size_text(c->evicted_bytes, size));
  line(&t, "accessed remotely", c->remote_bytes, UVM_BYTES, "over a link, without moving");
  line(&t, "remote mappings", c->remote_maps, UVM_COUNT, "pages");
  line(&t, "marked as thrashing", c->thrashing_pages, UVM_COUNT, "pages; a processor held back %" PRIu64 " times", c->throttles);
  line(&t, "GPU stall", c->fault_stall_ns, UVM_TIME, "waiting for faults");
  line(&t, "CPU stall", c->cpu_stall_ns, UVM_TIME, "waiting for faults");
  uvm_table_print(&t, f);
}

static void print_link_waits(const struct uvm_session_result *r, FILE *f) {
  static const char *const header[] = {"links: who waited", "for whom", "time"};
  struct uvm_table t;
  char ns[24];
  if (!r->nlink_waits) return;
  uvm_table_init(&t, "llr", header);
  for (size_t i = 0; i < r->nlink_waits; i++) {
    uvm_table_cell(&t, "%s", r->link_waits[i].waiter);
    uvm_table_cell(&t, "%s", r->link_waits[i].holder);
    uvm_table_cell(&t, "%s", uvm_ns_text(r->link_waits[i].ns, ns));
  }
  fputc('\n', f);
  uvm_table_print(&t, f);
}

/* -- sections, those of one name together -- */

struct group {
  const char *name;
  uint64_t times;
  uvm_ns ns;
  struct uvm_counters c;
};
struct groups {
  UVM_VEC(struct group) v;
};

/* Names repeat in runs, so the search begins at the newest. */
static struct group *group_of(struct groups *g, const char *name) {
  for (size_t i = g->v.n; i; i--)
    if (!strcmp(g->v.v[i - 1].name, name)) return &g->v.v[i - 1];
  UVM_PUSH(&g->v) = (struct group){.name = name};
  return &g->v.v[g->v.n - 1];
}

static void print_group(struct uvm_table *t, const struct group *g) {
  char n[32], ns[24], size[24];
  uvm_table_cell(t, "%s", g->name);
  uvm_table_cell(t, "%s", uvm_count_text(g->times, n));
  uvm_table_cell(t, "%s", uvm_ns_text(g->ns, ns));
  uvm_table_cell(t, "%s", uvm_ns_text(g->ns / g->times, ns));
  uvm_table_cell(t, "%s", uvm_count_text(g->c.gpu_faults, n));
  uvm_table_cell(t, "%s", uvm_count_text(g->c.fault_batches, n));
  uvm_table_cell(t, "%s", uvm_count_text(g->c.cpu_faults, n));
  uvm_table_cell(t, "%s", uvm_size_text(g->c.h2d_bytes, size));
  uvm_table_cell(t, "%s", uvm_size_text(g->c.d2h_bytes, size));
}

static void print_sections(const struct uvm_metrics *m, FILE *f) {
  static const char *const header[] = {"section", "times", "total", "each", "GPU faults", "batches", "CPU faults", "to GPU", "to CPU"};
  struct groups g = {0};
  for (size_t i = 0; i < m->sections.n; i++) {
    const struct uvm_section_metrics *s = &m->sections.v[i];
    struct group *of = group_of(&g, s->name);
    of->times++;
    of->ns += s->end == UVM_NEVER ? 0 : s->end - s->begin;
    uvm_counters_add(&of->c, &s->c);
  }
  if (!g.v.n) return;
  struct uvm_table t;
  uvm_table_init(&t, "lrrrrrrrr", header);
  for (size_t i = 0; i < g.v.n && i < UVM_TABLE_ROWS; i++) print_group(&t, &g.v.v[i]);
  fputc('\n', f);
  uvm_table_print(&t, f);
  uvm_table_rest(g.v.n, f);
  uvm_mem_free(g.v.v);
}

/* -- allocations, the busiest first -- */

static uint64_t traffic(const struct uvm_alloc_metrics *a) { return a->c.h2d_bytes + a->c.d2h_bytes + a->c.d2d_bytes + a->c.remote_bytes; }

static int busiest_first(const void *a, const void *b) {
  const struct uvm_alloc_metrics *const *x = a, *const *y = b;
  uint64_t p = traffic(*x), q = traffic(*y);
  if (p != q) return p > q ? -1 : 1;
  return (*x)->number < (*y)->number ? -1 : 1;
}

/* "cpu rw, gpu0 r" */
static void users(const struct uvm_places *p, const struct uvm_alloc_metrics *a, char *out, size_t size) {
  *out = 0;
  for (unsigned i = 0; i < p->nprocs; i++) {
    const struct uvm_proc_counters *c = &a->procs[i];
    char user[32];
    if (!(c->reads | c->writes | c->atomics)) continue;
    snprintf(user, sizeof user, "%s %s%s%s", p->proc[i], c->reads ? "r" : "", c->writes ? "w" : "", c->atomics ? "a" : "");
    uvm_list_add(out, size, ", ", user);
  }
}

static void print_alloc(struct uvm_table *t, const struct uvm_places *p, const struct uvm_alloc_metrics *a) {
  char n[32], size[24], who[160];
  users(p, a, who, sizeof who);
  uvm_table_cell(t, "%u", a->number);
  uvm_table_cell(t, "%s", a->label);
  uvm_table_cell(t, "%s", uvm_kind_name(a->kind));
  uvm_table_cell(t, "%s", uvm_size_text(a->bytes, size));
  uvm_table_cell(t, "%s", uvm_count_text(a->c.gpu_faults, n));
  uvm_table_cell(t, "%s", uvm_count_text(a->c.cpu_faults, n));
  uvm_table_cell(t, "%s", uvm_size_text(a->c.h2d_bytes, size));
  uvm_table_cell(t, "%s", uvm_size_text(a->c.d2h_bytes, size));
  uvm_table_cell(t, "%s", uvm_count_text(a->c.thrashing_pages, n));
  uvm_table_cell(t, "%s", who);
}

static void print_allocs(const struct uvm_metrics *m, FILE *f) {
  static const char *const header[] = {"alloc",      "label",  "kind",   "size",      "GPU faults",
                                       "CPU faults", "to GPU", "to CPU", "thrashing", "used by"};
  const struct uvm_alloc_metrics **busy = uvm_mem((m->allocs.n + 1) * sizeof *busy);
  size_t n = 0;
  for (size_t i = 0; i < m->allocs.n; i++)
    if (m->allocs.v[i].known) busy[n++] = &m->allocs.v[i];
  if (n) {
    struct uvm_table t;
    qsort(busy, n, sizeof *busy, busiest_first);
    uvm_table_init(&t, "rllrrrrrrl", header);
    for (size_t i = 0; i < n && i < UVM_TABLE_ROWS; i++) print_alloc(&t, &m->places, busy[i]);
    fputc('\n', f);
    uvm_table_print(&t, f);
    uvm_table_rest(n, f);
  }
  uvm_mem_free(busy);
}

void uvm_text_report(const struct uvm_summary *s, FILE *f) {
  print_head(s, f);
  print_totals(s, f);
  print_link_waits(s->run, f);
  print_sections(s->metrics, f);
  print_allocs(s->metrics, f);
  fputc('\n', f);
  uvm_text_meaning(s, f);
}
