/* What an access finds: mapped or not, where the page lies; and what observers are told about accesses. */
#include <assert.h>
#include "model/model.h"

/* Memory outside of managed ranges never faults: it is reached or the program is wrong. */
static int look_elsewhere(struct uvm_engine *x, uvm_proc p, const struct uvm_alloc *a, uint64_t page, uint64_t last, int64_t line,
                          struct uvm__look *out) {
  const struct uvm_proc_info *i = &x->machine->procs[p];
  bool pageable = a->kind == UVM_HOST && p && !(i->fast_link & 1) && !i->apu;
  if (!(i->reach >> a->node & 1) || pageable)
    return uvm__fail(x, line, "expected memory that %s can access, found %s memory '%s' on %s", i->name, uvm_kind_name(a->kind), a->id,
                     x->machine->nodes[a->node].name);
  *out = (struct uvm__look){true, a->node, last - page + 1};
  return 0;
}

/* Of a hit on p's own memory: what a prefetch brought proves to have been worth it. */
static void prove(struct uvm_engine *x, uvm_proc p, struct uvm_block *b, int page, const struct uvm__look *look) {
  int n = uvm_block_prove(x->core->space, b, look->node, page, (int)look->run);
  if (!n) return;
  uvm_observe(x->core, &(struct uvm_event){.kind = UVM_E_PREFETCH_USED,
                                           .proc = p,
                                           .has_alloc = true,
                                           .alloc = b->range->alloc->number,
                                           .t = x->now,
                                           .offset = uvm_block_offset(b, page),
                                           .bytes = (uint64_t)n * UVM_PAGE,
                                           .block = b});
}

static int min_int(int a, int b) { return a < b ? a : b; }

int uvm__look(struct uvm_engine *x, uvm_proc p, struct uvm_alloc *a, uint64_t page, uint64_t last, uint8_t access, int64_t line,
              struct uvm__look *out) {
  assert(page <= last);
  if (a->kind != UVM_MANAGED) return look_elsewhere(x, p, a, page, last, line, out);
  *out = (struct uvm__look){false, UVM_NONE, 1};
  const struct uvm_space *s = x->core->space;
  struct uvm_block *b = uvm_block_find(a, page * UVM_PAGE);
  if (!b) return 0;
  int i = uvm_page_of(a, page * UVM_PAGE);
  const uvm_mask *mapped = uvm_block_mapped(s, b, p, uvm_level_of((enum uvm_access)access));
  if (!uvm_mask_test(mapped, i)) return 0;
  int end = i + 1;
  if (page < last) {
    end = min_int(b->first + b->pages, uvm_mask_gap(mapped, i));
    if (last - page < (uint64_t)(end - i)) end = i + (int)(last - page) + 1;
  }
  uvm_node home = x->machine->procs[p].home;
  const uvm_mask *local = uvm_block_resident(s, b, home);
  if (uvm_mask_test(local, i)) {
    *out = (struct uvm__look){true, home, end == i + 1 ? 1 : (uint64_t)(min_int(end, uvm_mask_gap(local, i)) - i)};
    prove(x, p, b, i, out);
    return 0;
  }
  uvm_node node = uvm_page_target(s, b, p, i);
  assert(node != UVM_NONE);
  int back = uvm_mask_next(local, i);
  if (back >= 0) end = min_int(end, back);
  *out = (struct uvm__look){true, node, (uint64_t)(min_int(end, uvm_mask_gap(uvm_block_resident(s, b, node), i)) - i)};
  return 0;
}

uint64_t uvm__first_writes(struct uvm_engine *x, struct uvm_alloc *a, uint64_t page, uint64_t run) {
  struct uvm_block *b = a->kind == UVM_MANAGED ? uvm_block_find(a, page * UVM_PAGE) : NULL;
  if (!b) return 0;
  int pages = uvm_block_write(x->core->space, b, uvm_page_of(a, page * UVM_PAGE), (int)run);
  uvm_ns ns = (uint64_t)pages * x->machine->costs.cpu_first_write_ns;
  if (ns) uvm_observe(x->core, &(struct uvm_event){.kind = UVM_E_FIRST_WRITES, .t = x->now, .dur = ns});
  return ns;
}

uint64_t uvm__cross(struct uvm_engine *x, uvm_proc p, struct uvm__record *r, uvm_node n, uint64_t bytes, bool writing) {
  struct uvm_crossing c = uvm_machine_access(x->machine, p, n, x->now, bytes, writing);
  r->waited_ps += c.waited_ps;
  return c.end_ps + c.latency_ps;
}

void uvm__tell_hits(struct uvm_engine *x, uvm_proc p, struct uvm_alloc *a, uint64_t page, uint64_t run, uint8_t access, uint64_t count) {
  if (a->kind != UVM_MANAGED || !(uvm_host_needs(x->core->host) & UVM_NEEDS_ACCESS)) return;
  const struct uvm_block *b = uvm_block_find(a, page * UVM_PAGE);
  int i = uvm_page_of(a, page * UVM_PAGE);
  uvm_mask pages = uvm_mask_range(i, i + (int)run);
  uvm_tell_access(x->core->host, &(struct uvm_run){b->id, p, access, count, &pages}, x->now);
}

void uvm__tell_summary(struct uvm_engine *x, uvm_proc p, const struct uvm__record *r) {
  uint8_t access = uvm__access_of(r->op, uvm__writes(r->op));
  uvm_observe(x->core, &(struct uvm_event){.kind = UVM_E_ACCESS,
                                           .access = access,
                                           .proc = p,
                                           .has_alloc = true,
                                           .alloc = r->alloc->number,
                                           .t = x->now,
                                           .wait = r->waited_ps / 1000,
                                           .offset = r->offset,
                                           .bytes = r->remote,
                                           .value = r->elements,
                                           .line = r->line});
}

void uvm__tell_stall(struct uvm_engine *x, uvm_proc p, uvm_ns since, int64_t line) {
  uvm_observe(x->core, &(struct uvm_event){.kind = UVM_E_STALL, .proc = p, .t = since, .dur = x->now - since, .line = line});
}
