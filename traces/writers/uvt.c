/* .uvt: canonical text. One blank between fields, numbers in bytes, keys in the grammar's order, defaults left out. */
#include "format.h"
#include <assert.h>

struct state { struct uvm_sink *out; };

static void *open_text(struct uvm_sink *out) {
  struct state *s = uvm_mem(sizeof *s);
  s->out = out;
  uvm_sink_text(out, "uvmtrace 1\n");
  return s;
}

static void put_name(struct uvm_sink *out, const char *name) {
  for (;;) {
    size_t n = strcspn(name, " %#");
    uvm_sink_write(out, name, n);
    if (!name[n]) return;
    uvm_sink_text(out, name[n] == ' ' ? "%20" : name[n] == '%' ? "%25" : "%23");
    name += n + 1;
  }
}

/* A name that itself ends in '/' and digits needs an iteration, or the last '/' would be taken for its divider. */
static void put_section(struct uvm_sink *out, const struct uvm_trace_record *r) {
  put_name(out, r->label);
  const char *slash = strrchr(r->label, '/');
  bool looks = slash && slash[1] && !slash[1 + strspn(slash + 1, "0123456789")];
  if (!r->has_iteration && !looks) return;
  uvm_sink_text(out, "/");
  uvm_sink_number(out, r->iteration);
}

static void put_field(struct uvm_sink *out, const struct uvm_ids *ids, const struct uvm_field *f, const void *object) {
  char text[8];
  uvm_sink_text(out, " ");
  if (f->key) {
    uvm_sink_text(out, f->key);
    uvm_sink_text(out, "=");
  }
  switch ((enum uvm_field_type)f->type) {
  case UVM_F_SIZE:
  case UVM_F_NUMBER: uvm_sink_number(out, uvm_field_get(f, object)); break;
  case UVM_F_NAME: put_name(out, uvm_field_name(f, object)); break;
  case UVM_F_SECTION: put_section(out, object); break;
  case UVM_F_ALLOC: put_name(out, ids->id(ids->ctx, (uint32_t)uvm_field_get(f, object))); break;
  case UVM_F_PROC:
  case UVM_F_ADVISED: uvm_sink_text(out, uvm_proc_text((uint8_t)uvm_field_get(f, object), text)); break;
  case UVM_F_WORD: uvm_sink_text(out, f->words[uvm_field_get(f, object)]); break;
  }
}

static void put_record(struct uvm_sink *out, const struct uvm_ids *ids, const struct uvm_grammar *g, const void *object) {
  assert(g);
  uvm_sink_text(out, g->name);
  for (size_t i = 0; i < g->nfields; i++)
    if (uvm_field_present(&g->fields[i], object)) put_field(out, ids, &g->fields[i], object);
  uvm_sink_text(out, "\n");
}

static void write_text(void *state, const struct uvm_ids *ids, const struct uvm_trace_record *r) {
  struct uvm_sink *out = ((struct state *)state)->out;
  uint8_t sub = r->op == UVM_TR_ACCESS ? r->access.op : 0;
  put_record(out, ids, uvm_grammar_of(uvm_grammar_top, uvm_grammar_ntop, r->op, sub), r);
  if (r->op != UVM_TR_KERNEL) return;
  for (size_t i = 0; i < r->naccesses; i++) {
    const struct uvm_trace_access *a = &r->accesses[i];
    if (a->next) uvm_sink_text(out, "next\n");
    put_record(out, ids, uvm_grammar_of(uvm_grammar_kernel, uvm_grammar_nkernel, UVM_IN_ACCESS, a->op), a);
  }
  uvm_sink_text(out, "done\n");
}

static void finish_text(void *state) { (void)state; }
static void close_text(void *state) { uvm_mem_free(state); }

const struct uvm_writer_ops uvm_writer_uvt = {open_text, write_text, finish_text, close_text};
