/* The host thread's plainest records: one element on one page that is mapped and in its own memory, while nothing else can happen
 * before the access is over. They pass in a row without a loop and without events; whatever is not so plain ends the row. */
#include "model/model.h"

enum { AHEAD = 12 }; /* records: a long trace lies in memory, so each is fetched while those before it pass */

struct row {
  struct uvm_alloc *alloc; /* the accesses not told yet: of whose memory, */
  uint8_t op;              /* with which operation */
  uint64_t count;          /* and how many */
  int64_t line;            /* of the first */
};

static void tell(struct uvm_engine *x, const struct row *row) {
  if (!row->count) return;
  struct uvm__record all = {.alloc = row->alloc, .op = row->op, .elements = row->count, .line = row->line};
  uvm__tell_summary(x, 0, &all);
}

/* Is the access one of these? Pages that are touched or written for the first time since something brought them are not. */
static bool plain(const struct uvm_space *s, const struct uvm_alloc *a, const struct uvm_trace_access *t) {
  uint64_t page = t->offset / UVM_PAGE;
  if (a->kind != UVM_MANAGED || t->bytes > t->step || (t->offset + t->bytes - 1) / UVM_PAGE != page) return false;
  const struct uvm_block *b = uvm_block_find(a, page * UVM_PAGE);
  if (!b) return false;
  int i = uvm_page_of(a, page * UVM_PAGE);
  bool writes = uvm__writes(t->op);
  uvm_node home = s->procs[0].home;
  return uvm_mask_test(uvm_block_mapped(s, b, 0, writes ? UVM_MAP_WRITE : UVM_MAP_READ), i) &&
         uvm_mask_test(uvm_block_resident(s, b, home), i) && !uvm_mask_test(uvm_block_unproven(s, b, home), i) &&
         !(writes && uvm_mask_test(uvm_block_unwritten(s, b), i));
}

static bool alone(struct uvm_engine *x) { return x->outbox_head == x->outbox.n && !(uvm_host_needs(x->core->host) & UVM_NEEDS_ACCESS); }

size_t uvm__pass_hits(struct uvm_engine *x, const struct uvm_trace_record *r, size_t n) {
  if (!alone(x)) return 0;
  const struct uvm_space *s = x->core->space;
  uint64_t one_ps = uvm__touch_ps(x, 1, 1), at_ps = x->now * 1000 + x->host.loop.ps;
  uint64_t end_ps = uvm_min(uvm__queue_next(&x->queue), UVM__MAX_NS) * 1000;
  struct row row = {0};
  size_t i = 0;
  for (; i < n && r[i].op == UVM_TR_ACCESS && !r[i].proc && at_ps + one_ps < end_ps; i++, at_ps += one_ps) {
    __builtin_prefetch(&r[uvm_min(i + AHEAD, n - 1)]);
    struct uvm_alloc *a = s->allocs.v[r[i].access.alloc];
    if (!plain(s, a, &r[i].access)) break;
    if (a != row.alloc || r[i].access.op != row.op) {
      x->now = at_ps / 1000;
      tell(x, &row);
      row = (struct row){.alloc = a, .op = r[i].access.op, .line = r[i].line};
    }
    row.count++;
  }
  if (!i) return 0;
  x->now = at_ps / 1000;
  tell(x, &row);
  x->host.loop.ps = at_ps % 1000;
  x->host.line = r[i - 1].line;
  return i;
}
