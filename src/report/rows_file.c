/* Rows to and from an event file. */
#include "report/rows.h"
#include "trace.h"

/* As much of a name as the column holds, cut between characters. */
static void copy_name(char *out, size_t size, const char *name) {
  size_t n = strlen(name) < size ? strlen(name) : size - 1;
  while (name[n] && n && ((unsigned char)name[n] & 0xc0) == 0x80) n--;
  memcpy(out, name, n);
  out[n] = 0;
}

static int write_row(struct uvm_csv_writer *w, const struct uvm_row *row, struct uvm_error *e) {
  struct uvm_csv_event ev = {.t = row->t,
                             .dur = row->dur,
                             .alloc = row->alloc,
                             .offset = row->offset,
                             .value = row->value,
                             .flags = row->flags,
                             .src = row->src,
                             .dst = row->dst};
  snprintf(ev.kind, sizeof ev.kind, "%s", uvm_row_names[row->kind]);
  if (row->name) copy_name(ev.name, sizeof ev.name, row->name);
  return uvm_csv_write(w, &ev, e);
}

int uvm_rows_write(struct uvm_rows *r, const char *path, struct uvm_error *e) {
  struct uvm_csv_writer *w;
  int rc = uvm_csv_create(path, &w, e);
  if (rc) return rc;
  uvm_rows_sort(r);
  for (size_t i = 0; i < r->rows.n && !rc; i++) rc = write_row(w, &r->rows.v[i], e);
  if (!rc) return uvm_csv_commit(w, e);
  uvm_csv_abandon(w);
  return rc;
}

static int kind_of(const char *name) {
  for (int k = 0; k < UVM_ROW_KINDS; k++)
    if (!strcmp(uvm_row_names[k], name)) return k;
  return -1;
}

static void keep(struct uvm_rows *r, const struct uvm_csv_event *ev, int kind) {
  char *name = NULL;
  if (kind == UVM_ROW_SECTION) name = UVM_PUSH(&r->names) = uvm_copy_string(ev->name);
  struct uvm_row *row = &UVM_PUSH(&r->rows);
  *row = (struct uvm_row){.t = ev->t,
                          .dur = ev->dur,
                          .kind = (uint8_t)kind,
                          .alloc = ev->alloc,
                          .offset = ev->offset,
                          .value = ev->value,
                          .flags = ev->flags,
                          .src = ev->src,
                          .dst = ev->dst,
                          .name = name,
                          .order = r->rows.n};
}

int uvm_rows_read(struct uvm_rows *r, const char *path, struct uvm_error *e) {
  struct uvm_csv *c;
  int rc = uvm_csv_open(path, &c, e);
  if (rc) return rc;
  struct uvm_csv_event ev;
  while ((rc = uvm_csv_next(c, &ev, e)) > 0) {
    int kind = kind_of(ev.kind);
    if (kind >= 0) keep(r, &ev, kind);
  }
  uvm_csv_close(c);
  return rc;
}
