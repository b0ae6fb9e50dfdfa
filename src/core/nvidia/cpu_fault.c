/* One CPU fault: one page. A write counts as an atomic, for the trap does not tell them apart. A throttled thread sleeps out
 * its slot and tries again; a fault that finds its page mapped does nothing, unless the same thread insists. */
#include "core/nvidia/nvidia.h"

#define SPURIOUS_WINDOW_NS 300000 /* a second fault of a thread within it maps the page anew */
#define SHORTEST_NAP_NS 1000

struct cpu_task {
  struct uvm_driver_task task; /* first: a task is what it is part of */
  struct nv_service service;
  struct uvm_cpu_fault fault;
  uvm_ns trapped, held_until; /* held_until: 0 not throttled */
  bool told, spurious;
};

static void serve(struct uvm_core *c, struct uvm_driver_task *t, uvm_ns now);

static void release(struct uvm_driver_task *t) {
  uvm__nv_service_release(&((struct cpu_task *)t)->service);
  uvm_mem_free(t);
}

static void observe_fault(struct uvm_core *c, struct cpu_task *t, const struct nv_verdict *r) {
  if (t->told) return;
  t->told = true;
  struct uvm_event e = uvm_event_at(UVM_E_CPU_FAULT, t->trapped, t->fault.alloc, t->fault.offset & ~(UVM_PAGE - 1));
  e.access = t->fault.access;
  e.value = 1;
  e.bytes = UVM_PAGE;
  e.why = r->why, e.hint = r->hint, e.rule = r->rule;
  e.block = t->service.block;
  e.line = t->fault.line;
  uvm_observe(c, &e);
}

static struct uvm_block *locate(struct uvm_core *c, struct nv_service *v) {
  const struct cpu_task *t = (struct cpu_task *)v->task;
  return uvm_block_get(c->space, t->fault.alloc, t->fault.offset);
}

/* The page is mapped already. True: ignore the fault. */
static bool ignore(struct uvm_block *b, const struct cpu_task *t, int page, uvm_ns now) {
  struct nv_block *nb = uvm__nv_block(b);
  if (!nb->spurious_at || now - nb->spurious_at > SPURIOUS_WINDOW_NS) {
    nb->spurious_at = now ? now : 1;
    nb->spurious_thread = t->fault.thread;
    nb->spurious_page = (uint16_t)page;
    return true;
  }
  if (nb->spurious_thread != t->fault.thread || nb->spurious_page != page) return true;
  nb->spurious_at = 0;
  return false;
}

static bool decide(struct uvm_core *c, struct nv_service *v, uvm_ns now) {
  struct cpu_task *t = (struct cpu_task *)v->task;
  uint8_t access = t->fault.access >= UVM_A_WRITE ? UVM_A_ATOMIC : t->fault.access;
  struct uvm_fault f = {.block = v->block->id,
                        .page = (uint16_t)uvm_page_of(t->fault.alloc, t->fault.offset),
                        .merged = 1,
                        .proc = 0,
                        .access = access,
                        .access_mask = (uint8_t)(1u << access)};
  bool mapped = uvm_mask_test(uvm_block_mapped(c->space, v->block, 0, uvm_level_of((enum uvm_access)access)), f.page);
  t->held_until = 0;
  t->spurious = mapped && !v->again && ignore(v->block, t, f.page, now);
  struct nv_verdict r = {.outcome = NV_ALREADY_MAPPED, .why = NV_WHY_MAPPED, .rule = c->driver->why[NV_WHY_MAPPED]};
  if (!t->spurious) r = uvm__nv_admit(c, v, &f, now);
  if (r.outcome == NV_REFUSED) return false;
  observe_fault(c, t, &r);
  if (r.outcome == NV_HELD) t->held_until = r.until;
  return r.outcome == NV_SERVED && uvm__nv_prefetch(c, v, now);
}

static void done(struct uvm_core *c, struct uvm_driver_task *task, uvm_ns now) {
  uint32_t thread = ((struct cpu_task *)task)->fault.thread;
  uvm__nv_task_leave(c, task);
  c->hw.resume(c->hw.ctx, thread, now);
}

static void nap(struct uvm_core *c, struct cpu_task *t, uvm_ns now) {
  uvm_ns left = t->held_until > now + SHORTEST_NAP_NS ? t->held_until - now : SHORTEST_NAP_NS;
  uvm_ns until = now + left + c->hw.price(c->hw.ctx, UVM_W_CPU_NAP, 0, left);
  struct nv_hold h = {t->fault.alloc, t->fault.offset & ~(UVM_PAGE - 1), now, t->held_until, 0};
  uvm__nv_tell_throttle(c, &h, until);
  uvm__nv_sleep(c, &t->task, serve, until);
}

static void serve(struct uvm_core *c, struct uvm_driver_task *task, uvm_ns now) {
  struct cpu_task *t = (struct cpu_task *)task;
  task->step = serve;
  if (!uvm__nv_service_step(c, &t->service, now)) return;
  if (t->held_until)
    nap(c, t, now);
  else if (t->spurious)
    uvm__nv_sleep(c, task, done, now + c->hw.price(c->hw.ctx, UVM_W_CPU_SPURIOUS, 0, 1));
  else
    done(c, task, now);
}

void uvm__nv_cpu_fault(struct uvm_core *c, const struct uvm_cpu_fault *f, uvm_ns now) {
  struct cpu_task *t = uvm_mem(sizeof *t);
  t->fault = *f;
  t->trapped = now;
  t->service = (struct nv_service){.task = &t->task,
                                   .locate = locate,
                                   .decide = decide,
                                   .context = UVM_X_CPU_FAULT,
                                   .cause = UVM_C_FAULT,
                                   .mapping = NV_MAP_ACCESS,
                                   .remap = true};
  uvm__nv_task_enter(c, &t->task, release);
  serve(c, &t->task, now);
}
