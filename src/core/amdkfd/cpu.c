/* The CPU's side: Linux serves first touches by itself; a page in VRAM is the driver's to bring back, with its window. */
#include "core/amdkfd/amdkfd.h"

static void build_local(struct uvm_core *c, struct uvm_driver_task *t, struct uvm_block *b, const uvm_mask *pages) {
  uvm_mask holes = uvm__kfd_plan_populate(c, t, b, pages), rest = *pages;
  uvm_mask_andnot(&rest, &holes);
  uvm_mask_andnot(&rest, uvm_block_mapped(c->space, b, 0, UVM_MAP_ATOMIC));
  uvm__kfd_plan_map(t, b, 0, &rest);
}

/* The thread's access comes before whoever waits for the lock can take the page away again: else two never get on. */
static void resume(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  c->hw.resume(c->hw.ctx, t->cpu.thread, now);
  if (uvm__kfd(c)->holder == t) uvm__kfd_unlock(c, t, now);
  uvm__kfd_task_done(c, t);
}

static void served(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  const struct uvm_cpu_fault *f = &t->cpu;
  struct uvm_event e = uvm_event_at(UVM_E_CPU_FAULT, t->begin, f->alloc, f->offset / UVM_PAGE * UVM_PAGE);
  e.access = f->access;
  e.why = t->why, e.rule = c->driver->why[t->why];
  e.dur = now - t->begin;
  e.value = 1;
  e.line = f->line;
  uvm_observe(c, &e);
  resume(c, t, now);
}

/* Pages in VRAM that the CPU cannot reach come back with the fault's window; all else is the page alone. */
static void serve(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  const struct uvm_cpu_fault *f = &t->cpu;
  uint64_t page = uvm__kfd_page(f->alloc, f->offset);
  t->range = uvm__kfd_find(c, f->alloc, page);
  if (t->range && t->range->actual && uvm__kfd(c)->holder != t) {
    uvm__kfd_lock(c, t, serve, now);
    return;
  }
  struct uvm_block *b = uvm_block_get(c->space, f->alloc, f->offset);
  int p = uvm_page_of(f->alloc, f->offset);
  if (b->busy_until) {
    uvm__kfd_sleep(c, t, serve, b->busy_until > now ? b->busy_until : now);
    return;
  }
  if (uvm_mask_test(uvm_block_mapped(c->space, b, 0, uvm_level_of((enum uvm_access)f->access)), p)) {
    uvm__kfd_sleep(c, t, resume, now + c->hw.price(c->hw.ctx, UVM_W_CPU_SPURIOUS, 0, 1));
    return;
  }
  t->faults = 1;
  if (uvm_page_nodes(c->space, b, p) && uvm_page_target(c->space, b, 0, p) == UVM_NONE) {
    uvm__kfd_move(c, t, uvm__kfd_window(t->range, page), 0, served, now);
    return;
  }
  uvm__kfd_sweep(c, t, f->alloc, (struct kfd_span){page, page}, build_local, served, now);
}

void uvm__kfd_cpu_fault(struct uvm_core *c, const struct uvm_cpu_fault *f, uvm_ns now) {
  struct uvm_driver_task *t = uvm__kfd_task(c, UVM_X_CPU_FAULT, UVM_C_FAULT, 0);
  t->trigger = KFD_T_CPU_FAULT, t->why = KFD_WHY_CPU_FAULT;
  t->begin = now;
  t->cpu = *f;
  uvm__kfd_register(c, f->alloc);
  serve(c, t, now);
}

/* -- a memcpy's side: its pages must exist, and stay where they are -- */

static void build_copy(struct uvm_core *c, struct uvm_driver_task *t, struct uvm_block *b, const uvm_mask *pages) {
  uvm__kfd_plan_populate(c, t, b, pages);
}

static void copied(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  uint64_t cookie = t->api.call.cookie;
  uvm__kfd_unlock(c, t, now);
  uvm__kfd_task_done(c, t);
  c->hw.complete(c->hw.ctx, cookie, now);
}

static void copy_locked(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now) {
  const struct uvm_call *k = &t->api.call;
  struct kfd_span pages = {uvm__kfd_page(k->alloc, k->offset), uvm__kfd_page(k->alloc, k->offset + k->bytes - 1)};
  uvm__kfd_sweep(c, t, k->alloc, pages, build_copy, copied, now);
}

void uvm__kfd_copy(struct uvm_core *c, const struct uvm_call *call, bool write, uvm_ns now) {
  (void)write; /* system memory is zeroed for either side */
  struct uvm_driver_task *t = uvm__kfd_task(c, UVM_X_COPY, UVM_C_USER, call->proc);
  t->why = KFD_WHY_COPY;
  t->api.call = *call;
  uvm__kfd_lock(c, t, copy_locked, now);
}
