/* How a call on a range of pages goes from block to block: each block is a service of its own. */
#include "core/nvidia/nvidia.h"
#include <assert.h>

static void release(struct uvm_driver_task *t) {
  uvm__nv_service_release(&((struct nv_walk *)t)->service);
  uvm_mem_free(t);
}

static struct uvm_block *locate(struct uvm_core *c, struct nv_service *v) {
  const struct nv_walk *w = uvm__nv_walk_of(v);
  return uvm_block_get(c->space, w->call.alloc, w->at);
}

uvm_mask uvm__nv_walk_pages(const struct nv_service *v) {
  const struct uvm_call *call = &uvm__nv_walk_of((struct nv_service *)v)->call;
  const struct uvm_block *b = v->block;
  uint64_t begin = uvm_block_offset(b, b->first), end = uvm__nv_block_end(b);
  uint64_t from = call->offset > begin ? call->offset : begin, to = call->offset + call->bytes < end ? call->offset + call->bytes : end;
  assert(from < to);
  return uvm_mask_range(b->first + (int)((from - begin) / UVM_PAGE), b->first + (int)((to - begin + UVM_PAGE - 1) / UVM_PAGE));
}

struct nv_walk *uvm__nv_walk_new(struct uvm_core *c, const struct uvm_call *call, enum uvm_context context, enum uvm_cause cause,
                                 uvm_ns now) {
  struct nv_walk *w = uvm_mem(sizeof *w);
  assert(call->alloc->kind == UVM_MANAGED && call->bytes && call->offset < call->alloc->bytes &&
         call->bytes <= call->alloc->bytes - call->offset);
  w->call = *call;
  w->call.offset = call->offset & ~(UVM_PAGE - 1);
  w->call.bytes = ((call->offset + call->bytes + UVM_PAGE - 1) & ~(UVM_PAGE - 1)) - w->call.offset;
  if (w->call.bytes > call->alloc->bytes - w->call.offset) w->call.bytes = call->alloc->bytes - w->call.offset;
  w->at = w->call.offset;
  w->since = now;
  w->passes = 1;
  w->service = (struct nv_service){.task = &w->task,
                                   .locate = locate,
                                   .proc = UVM_NONE,
                                   .asker = call->proc,
                                   .context = (uint8_t)context,
                                   .cause = (uint8_t)cause,
                                   .mapping = NV_MAP_NOTHING};
  uvm__nv_task_enter(c, &w->task, release);
  return w;
}

/* Passes over what nobody has touched, to the next block in use or the end. */
static void skip_unused(struct nv_walk *w) {
  const struct uvm_alloc *a = w->call.alloc;
  uint64_t end = w->call.offset + w->call.bytes;
  while (w->at < end && !uvm_block_find(a, w->at)) {
    const struct uvm_range *r = uvm_alloc_range(a, w->at);
    uint64_t window = UVM_BLOCK_BYTES - (a->base + w->at) % UVM_BLOCK_BYTES, left = r->offset + r->info.bytes - w->at;
    w->at += window < left ? window : left;
  }
}

static void step(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  struct nv_walk *w = (struct nv_walk *)t;
  t->step = step;
  for (; w->pass < w->passes; w->pass++, w->at = w->call.offset)
    for (;;) {
      if (w->used_only && w->service.phase == NV_START) skip_unused(w);
      if (w->at >= w->call.offset + w->call.bytes) break;
      if (!uvm__nv_service_step(c, &w->service, now)) return;
      w->at = uvm__nv_block_end(w->service.block);
      w->service.behind |= !w->service.idle;
      if (!w->service.idle || !w->charge_idle || w->pass) continue;
      uvm__nv_sleep(c, t, step, now + c->hw.price(c->hw.ctx, UVM_W_SKIP, w->call.proc, 1));
      return;
    }
  if (w->done) w->done(c, w, now);
  uint64_t cookie = w->call.cookie;
  uvm__nv_task_leave(c, t);
  c->hw.complete(c->hw.ctx, cookie, now);
}

void uvm__nv_walk_start(struct uvm_core *c, struct nv_walk *w, uvm_ns now) { step(c, &w->task, now); }
