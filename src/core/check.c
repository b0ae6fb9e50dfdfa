/* The invariants: of a block as it is, and of a plan before it runs. */
#include "core/apply.h"
#include <assert.h>

/* Pages of m without a backing on n, which needs one. */
static uvm_mask unbacked(const struct uvm_space *s, const struct uvm_block *b, uvm_node n, const uvm_mask *m) {
  uvm_mask bad = {{0}};
  if (!uvm_node_limited(s, n) || b->backing[n]) return bad;
  for (int p = -1; (p = uvm_mask_next(m, p + 1)) >= 0;)
    if (!uvm_page_backing(b, n, p)) uvm_mask_add(&bad, p);
  return bad;
}

/* -- a block -- */

/* Fails with the first page of `bad`, if it has one. */
static int block_bad(const struct uvm_block *b, const uvm_mask *bad, const char *what, const char *who, struct uvm_error *e) {
  int p = uvm_mask_next(bad, 0);
  return p < 0 ? 0 : uvm_fail(e, UVM_EENV, "block %u, page %d: %s%s", b->id, p, what, who);
}

static int check_residency(const struct uvm_space *s, const struct uvm_block *b, struct uvm_error *e) {
  uvm_mask all = uvm_block_all(b), twice = uvm__held_twice(s, b), bad;
  int rc = 0;
  for (uvm_node n = 0; n < s->topology.nnodes && !rc; n++) {
    bad = uvm_mask_minus(*uvm_block_resident(s, b, n), &all);
    if ((rc = block_bad(b, &bad, "outside the block and resident on ", s->nodes[n].name, e))) break;
    bad = unbacked(s, b, n, uvm_block_resident(s, b, n));
    if ((rc = block_bad(b, &bad, "resident without a backing on ", s->nodes[n].name, e))) break;
    if (uvm_node_limited(s, n) && s->nodes[n].free > s->nodes[n].capacity)
      rc = uvm_fail(e, UVM_EENV, "%s has more free bytes than its capacity", s->nodes[n].name);
  }
  if (rc) return rc;
  bad = uvm_mask_minus(twice, uvm_block_duplicated(s, b));
  if ((rc = block_bad(b, &bad, "resident on several nodes but not duplicated", "", e))) return rc;
  bad = uvm_mask_minus(*uvm_block_duplicated(s, b), &twice);
  if ((rc = block_bad(b, &bad, "duplicated but not resident on several nodes", "", e))) return rc;
  all = uvm_block_populated(s, b);
  bad = uvm_mask_minus(*uvm_block_dirty(s, b), &all);
  return block_bad(b, &bad, "dirty but resident nowhere", "", e);
}

static int check_mappings(const struct uvm_space *s, const struct uvm_block *b, struct uvm_error *e) {
  int rc = 0;
  for (uvm_proc p = 0; p < s->topology.nprocs && !rc; p++) {
    const uvm_mask *read = uvm_block_mapped(s, b, p, UVM_MAP_READ), *write = read + 1, *atomic = read + 2;
    uvm_mask reach = uvm_block_in_reach(s, b, p), bad = uvm_mask_minus(*read, &reach);
    if ((rc = block_bad(b, &bad, "resident on no node in reach and mapped by ", s->procs[p].name, e))) break;
    bad = uvm_mask_minus(*write, read);
    if ((rc = block_bad(b, &bad, "mapped for writes but not for reads by ", s->procs[p].name, e))) break;
    bad = uvm_mask_minus(*atomic, write);
    if ((rc = block_bad(b, &bad, "mapped for atomics but not for writes by ", s->procs[p].name, e))) break;
    bad = uvm_mask_both(*write, uvm_block_duplicated(s, b));
    rc = block_bad(b, &bad, "duplicated and mapped for writes by ", s->procs[p].name, e);
  }
  return rc;
}

int uvm_block_check(const struct uvm_space *s, const struct uvm_block *b, struct uvm_error *e) {
  int rc = check_residency(s, b, e);
  return rc ? rc : check_mappings(s, b, e);
}

/* -- a plan -- */

struct dry_run {
  const struct uvm_space *s;
  struct uvm_block *b; /* a copy: the real one's id, extent and backings; masks of our own */
  const struct uvm_step *st;
  size_t number;  /* of the step, from 0 */
  uvm_mask given; /* pages some processor was mapped to so far */
  struct uvm_error *e;
};

static const char *const kind_names[] = {"POPULATE", "MIGRATE", "DUPLICATE", "COLLAPSE", "EVICT", "UNMAP", "MAP"};

static int refuse(const struct dry_run *d, int page, const char *rule, const char *who) {
  return uvm_fail(d->e, UVM_EENV, "plan step %zu (%s in block %u), page %d: %s%s", d->number, kind_names[d->st->kind], d->b->id, page, rule,
                  who);
}

static int refuse_mask(const struct dry_run *d, const uvm_mask *bad, const char *rule, const char *who) {
  int page = uvm_mask_next(bad, 0);
  return page < 0 ? 0 : refuse(d, page, rule, who);
}

static const char *node_name(const struct dry_run *d, uvm_node n) { return d->s->nodes[n].name; }

/* What arrives at dst: not there yet, and with memory to stand on. */
static int check_arrival(const struct dry_run *d) {
  uvm_node n = d->st->dst;
  uvm_mask bad = uvm_mask_both(d->st->pages, uvm_block_resident(d->s, d->b, n));
  int rc = refuse_mask(d, &bad, "already resident on ", node_name(d, n));
  if (rc) return rc;
  bad = unbacked(d->s, d->b, n, &d->st->pages);
  return refuse_mask(d, &bad, "no backing on ", node_name(d, n));
}

static int check_source(const struct dry_run *d) {
  uvm_mask bad = uvm_mask_minus(d->st->pages, uvm_block_resident(d->s, d->b, d->st->src));
  return refuse_mask(d, &bad, "not resident on ", node_name(d, d->st->src));
}

/* No processor may hold the pages at this level while the step works on them. */
static int check_unmapped(const struct dry_run *d, const uvm_mask *pages, enum uvm_level l, const char *rule) {
  int rc = 0;
  for (uvm_proc p = 0; p < d->s->topology.nprocs && !rc; p++) {
    uvm_mask bad = uvm_mask_both(*pages, uvm_block_mapped(d->s, d->b, p, l));
    rc = refuse_mask(d, &bad, rule, d->s->procs[p].name);
  }
  return rc;
}

static int check_populate(const struct dry_run *d) {
  uvm_mask populated = uvm_block_populated(d->s, d->b), bad = uvm_mask_both(d->st->pages, &populated);
  int rc = refuse_mask(d, &bad, "already resident somewhere", "");
  return rc ? rc : check_arrival(d);
}

static int check_move(const struct dry_run *d) {
  uvm_mask bad;
  int rc = check_source(d);
  if (rc || (rc = check_arrival(d))) return rc;
  bad = uvm_mask_both(d->st->pages, uvm_block_duplicated(d->s, d->b));
  if ((rc = refuse_mask(d, &bad, "has copies; collapse them before it moves", ""))) return rc;
  return check_unmapped(d, &d->st->pages, UVM_MAP_READ, "to be unmapped before it moves from ");
}

static int check_duplicate(const struct dry_run *d) {
  int rc = check_source(d);
  if (rc || (rc = check_arrival(d))) return rc;
  return check_unmapped(d, &d->st->pages, UVM_MAP_WRITE, "to be read-only before it is duplicated for ");
}

/* The last copy stays, and nobody is left mapped to one that goes. */
static int check_collapse(const struct dry_run *d) {
  uvm_mask bad = uvm_mask_minus(d->st->pages, uvm_block_duplicated(d->s, d->b));
  int rc = check_source(d);
  if (rc || (rc = refuse_mask(d, &bad, "the only copy may not be dropped", ""))) return rc;
  for (uvm_proc p = 0; p < d->s->topology.nprocs; p++) {
    uvm_mask m = uvm_mask_both(d->st->pages, uvm_block_mapped(d->s, d->b, p, UVM_MAP_READ));
    for (int i = -1; (i = uvm_mask_next(&m, i + 1)) >= 0;)
      if (uvm_page_target(d->s, d->b, p, i) == d->st->src)
        return refuse(d, i, "its copy to be unmapped before it is dropped from ", d->s->procs[p].name);
  }
  return 0;
}

/* Unmapping happens at a plan's begin, whatever stands before it in the plan. */
static int check_unmap(const struct dry_run *d) {
  uvm_mask bad = uvm_mask_both(d->st->pages, &d->given);
  return refuse_mask(d, &bad, "unmapped after an earlier step of the plan mapped it", "");
}

static int check_map(struct dry_run *d) {
  uvm_mask reach = uvm_block_in_reach(d->s, d->b, d->st->proc), bad = uvm_mask_minus(d->st->pages, &reach);
  int rc = refuse_mask(d, &bad, "resident on no node in reach of ", d->s->procs[d->st->proc].name);
  if (rc) return rc;
  uvm_mask_or(&d->given, &d->st->pages);
  if (uvm_level_of(d->st->access) < UVM_MAP_WRITE) return 0;
  bad = uvm_mask_both(d->st->pages, uvm_block_duplicated(d->s, d->b));
  return refuse_mask(d, &bad, "duplicated and not to be mapped for writes by ", d->s->procs[d->st->proc].name);
}

static int check_names(const struct dry_run *d) {
  const struct uvm_step *st = d->st;
  const struct uvm_topology *t = &d->s->topology;
  bool maps = st->kind == UVM_S_UNMAP || st->kind == UVM_S_MAP;
  bool no_src = !maps && st->kind != UVM_S_POPULATE && st->src >= t->nnodes;
  bool no_dst = !maps && st->kind != UVM_S_COLLAPSE && st->dst >= t->nnodes;
  int page = uvm_mask_next(&st->pages, 0);
  if (page < 0) return refuse(d, 0, "a step without pages", "");
  if (no_src || no_dst) return refuse(d, page, "no such node", "");
  if (maps && st->proc >= t->nprocs) return refuse(d, page, "no such processor", "");
  uvm_mask all = uvm_block_all(d->b), bad = uvm_mask_minus(st->pages, &all);
  return refuse_mask(d, &bad, "outside the block", "");
}

static int check_step(struct dry_run *d) {
  assert(d->st->kind <= UVM_S_MAP);
  int rc = check_names(d);
  if (rc) return rc;
  switch ((enum uvm_step_kind)d->st->kind) {
  case UVM_S_POPULATE: rc = check_populate(d); break;
  case UVM_S_MIGRATE:
  case UVM_S_EVICT: rc = check_move(d); break;
  case UVM_S_DUPLICATE: rc = check_duplicate(d); break;
  case UVM_S_COLLAPSE: rc = check_collapse(d); break;
  case UVM_S_UNMAP: rc = check_unmap(d); break;
  case UVM_S_MAP: rc = check_map(d); break;
  }
  if (!rc) uvm__step_apply(d->s, d->b, d->st, &d->st->pages);
  return rc;
}

static int check_block_steps(struct dry_run *d, const struct uvm_plan *p, size_t from, const struct uvm_block *b) {
  int rc = 0;
  memcpy(d->b, b, sizeof *b + uvm__block_masks(d->s) * sizeof(uvm_mask));
  d->given = (uvm_mask){{0}};
  for (size_t i = from; i < p->steps.n && !rc; i++) {
    if (p->steps.v[i].block != b) continue;
    d->st = &p->steps.v[i], d->number = i;
    rc = b->busy_until ? refuse(d, uvm_mask_next(&d->st->pages, 0), "the block is busy with another plan", "") : check_step(d);
  }
  return rc;
}

static bool seen_before(const struct uvm_plan *p, size_t i) {
  for (size_t j = i; j-- > 0;)
    if (p->steps.v[j].block == p->steps.v[i].block) return true;
  return false;
}

int uvm_plan_check(const struct uvm_space *s, const struct uvm_plan *p, struct uvm_error *e) {
  struct dry_run d = {.s = s, .e = e};
  int rc = 0;
  d.b = uvm_mem(sizeof *d.b + uvm__block_masks(s) * sizeof(uvm_mask));
  for (size_t i = 0; i < p->steps.n && !rc; i++)
    if (!seen_before(p, i)) rc = check_block_steps(&d, p, i, p->steps.v[i].block);
  uvm_mem_free(d.b);
  return rc;
}
