/* One page that a processor asks for, and the pages that come along with it. */
#include "core/nvidia/nvidia.h"

/* A placing policy's answer in the driver's terms. REMOTE leaves the page where it is, or puts it where a copy is closest. */
static bool ask_policy(struct uvm_core *c, const struct nv_service *v, const struct uvm_fault *f, const struct uvm_thrash *hint, uvm_ns now,
                       struct nv_place *out) {
  struct uvm_place a;
  if (uvm_ask_place(c->host, f, hint, now, &a) < 0) return false;
  uvm_node stay = uvm_page_target(c->space, v->block, f->proc, f->page);
  *out = (struct nv_place){a.action == UVM_REMOTE ? stay : a.node, a.action == UVM_DUPLICATE && f->access <= UVM_A_READ, a.why};
  return true;
}

static bool pin_in_reach(struct uvm_core *c, const struct uvm_fault *f, const struct uvm_thrash *hint) {
  if (hint->hint != UVM_HINT_PIN || uvm_reaches(c->space, f->proc, hint->node)) return true;
  c->hw.fail(c->hw.ctx, UVM_EUSAGE, "thrashing control pins a page on %s, which %s does not reach", c->space->nodes[hint->node].name,
             c->space->procs[f->proc].name);
  return false;
}

static void note_pin(struct uvm_core *c, struct nv_service *v, const struct uvm_fault *f, const struct uvm_thrash *hint, uvm_ns now) {
  uvm__nv_let_go(c, v->block, f->page, UVM_NONE, now);
  if (hint->until) uvm__nv_pin(c, v->block, f->page, hint->until);
  uvm_mask_add(&v->d.pinned, f->page);
  v->d.procs[f->page] = hint->procs;
}

struct nv_verdict uvm__nv_admit(struct uvm_core *c, struct nv_service *v, const struct uvm_fault *f, uvm_ns now) {
  enum uvm_level level = uvm_level_of((enum uvm_access)f->access);
  struct uvm_thrash hint;
  struct nv_place place;
  if (!v->remap && !f->counter && uvm_mask_test(uvm_block_mapped(c->space, v->block, f->proc, level), f->page))
    return (struct nv_verdict){.outcome = NV_ALREADY_MAPPED, .why = NV_WHY_MAPPED, .rule = c->driver->why[NV_WHY_MAPPED]};
  uvm_ask_thrash(c->host, f, now, &hint);
  if (hint.hint == UVM_HINT_THROTTLE)
    return (struct nv_verdict){
        .outcome = NV_HELD, .why = NV_WHY_THROTTLED, .hint = hint.hint, .until = hint.until, .rule = c->driver->why[NV_WHY_THROTTLED]};
  uvm__nv_let_go(c, v->block, f->page, f->proc, now);
  if (!pin_in_reach(c, f, &hint)) return (struct nv_verdict){.outcome = NV_REFUSED};
  if (!uvm_host_places(c->host))
    place = uvm__nv_residency(c, v->block, f, &hint);
  else if (!ask_policy(c, v, f, &hint, now, &place))
    return (struct nv_verdict){.outcome = NV_REFUSED};
  if (hint.hint == UVM_HINT_PIN) note_pin(c, v, f, &hint, now);
  uvm__nv_decide_page(v, f->page, place.node, level, place.why);
  uvm_mask_add(&v->d.faulted, f->page);
  if (place.duplicate) uvm_mask_add(&v->d.duplicate, f->page);
  return (struct nv_verdict){.outcome = NV_SERVED, .why = place.why, .hint = hint.hint, .rule = uvm_rule_name(c, place.why)};
}

bool uvm__nv_prefetch(struct uvm_core *c, struct nv_service *v, uvm_ns now) {
  if (!v->d.nodes || v->d.nodes & (v->d.nodes - 1)) return true;
  uvm_node n = (uvm_node)__builtin_ctz(v->d.nodes);
  if (uvm_ask_prefetch(c->host, v->block->id, n, &v->d.faulted, now, &v->d.prefetched) < 0) return false;
  uvm_mask_andnot(&v->d.prefetched, &v->d.faulted);
  uvm__nv_decide_pages(v, &v->d.prefetched, n, UVM_MAP_READ, NV_WHY_PREFETCHED);
  for (int p = -1; (p = uvm_mask_next(&v->d.prefetched, p + 1)) >= 0;)
    if (uvm__nv_can_duplicate(c, v->block, p, UVM_HINT_NONE)) uvm_mask_add(&v->d.duplicate, p);
  return true;
}
