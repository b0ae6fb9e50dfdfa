#include "report/rows.h"
#include <assert.h>
#include <stdlib.h>
#include "trace.h"

const char *const uvm_row_names[UVM_ROW_KINDS] = {
    "h2d",      "d2h",       "d2d",      "gpu_fault", "cpu_fault", "thrash", "throttle", "remote_map", "section",  "h2h",    "fault",
    "populate", "duplicate", "collapse", "map",       "unmap",     "revoke", "evict",    "unpin",      "prefetch", "advise", "kernel",
    "interrupted"};

void uvm_rows_init(struct uvm_rows *r, const struct uvm_places *places) {
  *r = (struct uvm_rows){0};
  if (places) r->places = *places;
}

void uvm_rows_free(struct uvm_rows *r) {
  for (size_t i = 0; i < r->names.n; i++) uvm_mem_free(r->names.v[i]);
  uvm_mem_free(r->names.v), uvm_mem_free(r->rows.v), uvm_mem_free(r->open.v);
  *r = (struct uvm_rows){0};
}

/* Thousands of iterations share few names; the last one is nearly always the same. */
static const char *keep_name(struct uvm_rows *r, const char *name) {
  for (size_t i = r->names.n; i && i + 64 > r->names.n; i--)
    if (!strcmp(r->names.v[i - 1], name)) return r->names.v[i - 1];
  return UVM_PUSH(&r->names) = uvm_copy_string(name);
}

static struct uvm_row *add(struct uvm_rows *r, enum uvm_row_kind kind, const struct uvm_event *e) {
  struct uvm_row *row = &UVM_PUSH(&r->rows);
  *row = (struct uvm_row){.t = (int64_t)e->t,
                          .dur = (int64_t)e->dur,
                          .kind = kind,
                          .offset = e->offset,
                          .value = e->value,
                          .alloc = e->has_alloc ? (int64_t)e->alloc : -1,
                          .src = -1,
                          .dst = -1,
                          .order = r->rows.n};
  return row;
}

static int64_t node_code(const struct uvm_places *p, uvm_node n) { return n >= p->nnodes ? -1 : p->gpu[n] < 0 ? UVM_ROW_CPU : p->gpu[n]; }
static int64_t proc_code(uvm_proc p) { return p == UVM_NONE ? -1 : p == 0 ? UVM_ROW_CPU : p - 1; }

static void add_transfer(struct uvm_rows *r, const struct uvm_event *e) {
  static const uint8_t kinds[] = {[UVM_H2D] = UVM_ROW_H2D, [UVM_D2H] = UVM_ROW_D2H, [UVM_D2D] = UVM_ROW_D2D, [UVM_H2H] = UVM_ROW_H2H};
  enum uvm_direction way = uvm_places_direction(&r->places, e->src, e->dst);
  struct uvm_row *row = add(r, kinds[way], e);
  row->value = e->bytes, row->flags = e->cause;
  row->src = node_code(&r->places, way == UVM_H2D ? e->dst : e->src); /* the GPU in both columns of h2d and d2h */
  row->dst = node_code(&r->places, way == UVM_D2H ? e->src : e->dst);
}

/* One row a run of pages: value its bytes. */
static void add_pages(struct uvm_rows *r, enum uvm_row_kind kind, const struct uvm_event *e, int64_t src, int64_t dst, uint64_t flags) {
  if (!e->mask) {
    struct uvm_row *row = add(r, kind, e);
    row->value = e->bytes, row->src = src, row->dst = dst, row->flags = flags;
    return;
  }
  for (int a, b = 0; uvm_mask_run(e->mask, &a, &b);) {
    struct uvm_row *row = add(r, kind, e);
    row->offset = uvm_block_offset(e->block, a);
    row->value = (uint64_t)(b - a) * UVM_PAGE, row->src = src, row->dst = dst, row->flags = flags;
  }
}

static void add_fault(struct uvm_rows *r, enum uvm_row_kind kind, const struct uvm_event *e) {
  struct uvm_row *row = add(r, kind, e);
  row->flags = e->access;
  if (kind == UVM_ROW_CPU_FAULT) row->value = 1;
  row->src = row->dst = proc_code(kind == UVM_ROW_CPU_FAULT ? 0 : e->proc);
}

static void add_remote_map(struct uvm_rows *r, const struct uvm_event *e) {
  static const uint8_t flags[] = {[UVM_C_FAULT] = 1, [UVM_C_THRASHING] = UVM_ROW_THRASHING, [UVM_C_POLICY] = 3, [UVM_C_EVICTION] = 5};
  struct uvm_row *row = add(r, UVM_ROW_REMOTE_MAP, e);
  row->value = 1, row->src = proc_code(e->proc), row->dst = node_code(&r->places, e->src);
  row->flags = e->cause < sizeof flags ? flags[e->cause] : 0;
}

/* The row takes its place at the section's begin; its end fills in how long it was. */
static void begin_section(struct uvm_rows *r, const struct uvm_event *e) {
  UVM_PUSH(&r->open) = r->rows.n;
  add(r, UVM_ROW_SECTION, e)->name = keep_name(r, e->name);
}

static void end_section(struct uvm_rows *r, const struct uvm_event *e) {
  assert(r->open.n); /* the trace reader has refused an end without a begin */
  struct uvm_row *row = &r->rows.v[r->open.v[--r->open.n]];
  assert(row->kind == UVM_ROW_SECTION && row->t == (int64_t)e->t);
  row->dur = (int64_t)e->dur;
}

static void add_evict(struct uvm_rows *r, const struct uvm_event *e) {
  struct uvm_row *row = add(r, UVM_ROW_EVICT, e);
  row->flags = UVM_C_EVICTION, row->src = node_code(&r->places, e->src), row->dst = UVM_ROW_CPU;
}

void uvm_rows_event(void *rows, const struct uvm_event *e) {
  struct uvm_rows *r = rows;
  int64_t src = node_code(&r->places, e->src), dst = node_code(&r->places, e->dst), proc = proc_code(e->proc);
  switch ((enum uvm_event_kind)e->kind) {
  case UVM_E_TRANSFER: add_transfer(r, e); break;
  case UVM_E_GPU_BATCH: add_fault(r, UVM_ROW_GPU_FAULT, e); break;
  case UVM_E_GPU_FAULT: add_fault(r, UVM_ROW_FAULT, e); break;
  case UVM_E_CPU_FAULT: add_fault(r, UVM_ROW_CPU_FAULT, e); break;
  case UVM_E_POPULATE: add_pages(r, UVM_ROW_POPULATE, e, dst, dst, e->cause); break;
  case UVM_E_DUPLICATE: add_pages(r, UVM_ROW_DUPLICATE, e, src, dst, e->cause); break;
  case UVM_E_COLLAPSE: add_pages(r, UVM_ROW_COLLAPSE, e, src, src, e->cause); break;
  case UVM_E_MAP: add_pages(r, UVM_ROW_MAP, e, proc, proc, e->access); break;
  case UVM_E_UNMAP: add_pages(r, UVM_ROW_UNMAP, e, proc, proc, e->access); break;
  case UVM_E_REVOKE: add_pages(r, UVM_ROW_REVOKE, e, proc, proc, e->access); break;
  case UVM_E_UNPIN: add_pages(r, UVM_ROW_UNPIN, e, -1, -1, 0); break;
  case UVM_E_PREFETCH: add_pages(r, UVM_ROW_PREFETCH, e, -1, dst, 0); break;
  case UVM_E_ADVISE: add(r, UVM_ROW_ADVISE, e)->flags = e->value; break;
  case UVM_E_EVICT: add_evict(r, e); break;
  case UVM_E_THRASH: add(r, UVM_ROW_THRASH, e)->value = 1; break;
  case UVM_E_THROTTLE: {
    struct uvm_row *row = add(r, UVM_ROW_THROTTLE, e);
    row->value = 1, row->src = proc, row->flags = e->access;
    break;
  }
  case UVM_E_REMOTE_MAP: add_remote_map(r, e); break;
  case UVM_E_KERNEL: add(r, UVM_ROW_KERNEL, e)->src = proc; break;
  case UVM_E_SECTION_BEGIN: begin_section(r, e); break;
  case UVM_E_SECTION: end_section(r, e); break;
  case UVM_E_ALLOC:
  case UVM_E_FREE:
  case UVM_E_PREFETCH_USED:
  case UVM_E_ACCESS:
  case UVM_E_STALL:
  case UVM_E_SERVICE:
  case UVM_E_FIRST_WRITES:
  case UVM_E_COPY:
  case UVM_E_WAIT: break;
  }
}

void uvm_rows_interrupted(struct uvm_rows *r, uvm_ns t) { add(r, UVM_ROW_INTERRUPTED, &(struct uvm_event){.t = t}); }

static int by_time(const void *a, const void *b) {
  const struct uvm_row *x = a, *y = b;
  if (x->t != y->t) return x->t < y->t ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

void uvm_rows_sort(struct uvm_rows *r) {
  assert(!r->open.n || r->rows.n);
  if (r->rows.n) qsort(r->rows.v, r->rows.n, sizeof *r->rows.v, by_time);
  r->open.n = 0; /* indices of open sections mean nothing any more */
}
