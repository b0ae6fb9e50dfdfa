/* The host thread: takes trace records one after the other, makes its calls, waits. */
#include <assert.h>
#include "model/model.h"

/* The next record is wanted at `at`. */
static void hungry_at(struct uvm_engine *x, uvm_ns at) {
  x->host.state = UVM__PAUSING;
  uvm__at(x, at, UVM__HOST, 0, 0);
}

static void called(struct uvm_engine *x) { hungry_at(x, x->now + x->machine->costs.call_ns); }

static void wait_for(struct uvm_engine *x, struct uvm__wait w, uint8_t then) {
  x->host.state = UVM__WAITING;
  x->host.wait_since = x->now;
  x->host.wait = w;
  x->host.then = then;
  uvm__host_notice(x);
}

/* A fault may be left over from a kernel that is through; memory is not freed under the driver that looks at it. */
static bool faults_served(const struct uvm_engine *x) {
  for (uvm_proc p = 1; p < x->machine->nprocs; p++)
    if (!uvm__quiet(x->devices[p])) return false;
  return x->core->driver->idle(x->core);
}

void uvm__host_notice(struct uvm_engine *x) {
  struct uvm__host *h = &x->host;
  if (h->state != UVM__WAITING || !uvm__waits_over(x, &h->wait)) return;
  if (h->then != UVM_TR_SYNC && !faults_served(x)) return;
  h->state = UVM__WAITED, h->waited = true;
  uvm__at(x, x->now + (h->then == UVM_TR_SYNC ? x->machine->costs.sync_ns : 0), UVM__HOST, 0, 0);
}

static void name_gpu(struct uvm_engine *x, uvm_proc p) {
  if (p) x->host.last_gpu = p;
}

static struct uvm__stream *stream_of(struct uvm_engine *x, const struct uvm_trace_record *r, uvm_proc p) {
  return uvm__stream_get(x, r->has_stream ? r->stream : 0, p);
}

static void enqueue(struct uvm_engine *x, struct uvm__op *op) {
  if (op->stream->head == op) uvm__op_begin(x, op->stream);
}

static struct uvm_alloc *alloc_of(const struct uvm_engine *x, uint32_t number) { return x->core->space->allocs.v[number]; }

/* -- memory -- */

static void tell_ranges(struct uvm_engine *x, const struct uvm_alloc *a, enum uvm_told_kind kind) {
  struct uvm_told t = {.kind = (uint8_t)kind, .proc = UVM_NONE, .src = UVM_NONE, .dst = UVM_NONE, .begin = x->now, .end = x->now};
  for (size_t i = 0; i < a->ranges.n && a->kind == UVM_MANAGED; i++) {
    t.range = a->ranges.v[i]->id;
    uvm_tell(x->core->host, &t, x->now);
  }
}

static_assert((int)UVM_TRK_MANAGED == (int)UVM_MANAGED && (int)UVM_TRK_HOST == (int)UVM_HOST, "and so have kinds of memory");

/* Whose memory it is in. */
static uvm_proc owner_of(const struct uvm_trace_record *r) {
  if (r->kind != UVM_TRK_DEVICE) return 0;
  return r->has_on ? r->on : 1;
}
static uvm_node home_of(const struct uvm_engine *x, const struct uvm_trace_record *r) { return x->machine->procs[owner_of(r)].home; }

/* Managed pages have to leave first. The record is kept until they have. */
static bool needs_room(struct uvm_engine *x, const struct uvm_trace_record *r) {
  uint64_t bytes = (r->bytes + UVM_PAGE - 1) / UVM_PAGE * UVM_PAGE;
  if (r->kind != UVM_TRK_DEVICE || !x->core->driver->make_room || bytes <= x->core->space->nodes[home_of(x, r)].free) return false;
  struct uvm_trace_record *kept = x->host.allocating = uvm_mem(sizeof *kept);
  *kept = *r;
  kept->id = uvm_format("%s", r->id);
  kept->label = uvm_format("%s", r->label ? r->label : r->id);
  struct uvm_call call = {.node = home_of(x, r), .bytes = bytes, .proc = owner_of(r), .line = r->line};
  x->host.state = UVM__CALLING;
  uvm__emit(x, (struct uvm_engine_event){.kind = UVM_N_ROOM, .call = call});
  return true;
}

static int allocate(struct uvm_engine *x, const struct uvm_trace_record *r) {
  struct uvm_core *c = x->core;
  uvm_node node = home_of(x, r);
  struct uvm_alloc *a;
  struct uvm_error e;
  int rc = uvm_space_alloc(c->space, r->id, r->label ? r->label : r->id, r->has_base ? r->base : UVM_NEVER, r->bytes,
                           (enum uvm_kind)r->kind, node, &a, &e);
  if (rc) return uvm__fail(x, r->line, "%s", e.text);
  uvm_observe(
      c, &(struct uvm_event){
             .kind = UVM_E_ALLOC, .t = x->now, .has_alloc = true, .alloc = a->number, .allocation = a, .bytes = a->bytes, .line = r->line});
  tell_ranges(x, a, UVM_T_ALLOC);
  return called(x), 0;
}

static int feed_alloc(struct uvm_engine *x, const struct uvm_trace_record *r) { return needs_room(x, r) ? 0 : allocate(x, r); }

void uvm__host_forget(struct uvm_engine *x) {
  if (!x->host.allocating) return;
  uvm_mem_free((char *)x->host.allocating->id);
  uvm_mem_free((char *)x->host.allocating->label);
  uvm_mem_free(x->host.allocating);
  x->host.allocating = NULL;
}

void uvm__host_complete(struct uvm_engine *x) {
  assert(x->host.state == UVM__CALLING);
  if (!x->host.allocating) return hungry_at(x, x->now);
  allocate(x, x->host.allocating);
  uvm__host_forget(x);
}

static void release(struct uvm_engine *x) {
  struct uvm_alloc *a = x->host.freeing;
  for (uvm_proc p = 1; p < x->machine->nprocs; p++) uvm__forget_counters(x->devices[p], a);
  tell_ranges(x, a, UVM_T_FREE);
  uvm__emit(x, (struct uvm_engine_event){.kind = UVM_N_FREEING, .alloc = a});
}

/* -- work for streams -- */

static int add_kernel(struct uvm_engine *x, const struct uvm_trace_record *r) {
  name_gpu(x, r->proc);
  struct uvm__op *op = uvm__op_add(x, stream_of(x, r, r->proc), UVM__KERNEL, r->line);
  op->kernel = uvm__kernel_create(r, x->core->space);
  enqueue(x, op);
  return 0;
}

static int feed_kernel(struct uvm_engine *x, const struct uvm_trace_record *r) { return add_kernel(x, r), called(x), 0; }

/* A loop on the CPU is the host's own; on a GPU it is a kernel of one lane that the host waits for. */
static int feed_access(struct uvm_engine *x, const struct uvm_trace_record *r) {
  if (!r->proc) {
    uvm__loop_begin(x, r);
    x->host.state = UVM__LOOPING;
    uvm__at(x, x->now, UVM__HOST, 0, 0);
    return 0;
  }
  struct uvm_trace_access a = r->access;
  struct uvm_trace_record k = *r;
  a.split = UVM_SPLIT_CYCLIC;
  a.line = r->line;
  k.accesses = &a, k.naccesses = 1;
  k.lanes = k.lanes_per_block = 1;
  k.label = NULL;
  add_kernel(x, &k);
  wait_for(x, (struct uvm__wait){.proc = true, .on = r->proc}, UVM_TR_SYNC);
  return 0;
}

/* A processor means its home; a node's processor is the GPU at home there. */
static int destination(struct uvm_engine *x, const struct uvm_trace_record *r, uvm_node *node, uvm_proc *gpu) {
  const struct uvm_machine *m = x->machine;
  *gpu = 0;
  for (uvm_proc p = 0; p < m->nprocs; p++)
    if (!strcmp(m->procs[p].name, r->label)) return *node = m->procs[p].home, *gpu = p, 0;
  for (uvm_node n = 0; n < m->nnodes; n++) {
    if (strcmp(m->nodes[n].name, r->label)) continue;
    *node = n;
    for (uvm_proc p = 1; p < m->nprocs; p++)
      if (m->procs[p].home == n) *gpu = p;
    return 0;
  }
  return uvm__fail(x, r->line, "expected a processor or a node of machine %s, found '%s'", m->name, r->label);
}

static int feed_prefetch(struct uvm_engine *x, const struct uvm_trace_record *r) {
  uvm_node node = 0;
  uvm_proc gpu;
  int rc = destination(x, r, &node, &gpu);
  if (rc) return rc;
  name_gpu(x, gpu);
  if (!gpu) gpu = x->host.last_gpu;
  struct uvm__op *op = uvm__op_add(x, stream_of(x, r, gpu), UVM__PREFETCH, r->line);
  op->call =
      (struct uvm_call){.alloc = alloc_of(x, r->alloc), .offset = r->offset, .bytes = r->bytes, .node = node, .proc = gpu, .line = r->line};
  enqueue(x, op);
  return called(x), 0;
}

static uvm_proc owner(const struct uvm_engine *x, const struct uvm_alloc *a) {
  for (uvm_proc p = 1; p < x->machine->nprocs && a->kind == UVM_DEVICE; p++)
    if (x->machine->procs[p].home == a->node) return p;
  return 0;
}

static int feed_memcpy(struct uvm_engine *x, const struct uvm_trace_record *r) {
  struct uvm_alloc *dst = alloc_of(x, r->alloc), *src = alloc_of(x, r->src_alloc);
  uvm_proc gpu = owner(x, dst) ? owner(x, dst) : owner(x, src) ? owner(x, src) : x->host.last_gpu;
  struct uvm__op *op = uvm__op_add(x, stream_of(x, r, gpu), UVM__COPY, r->line);
  op->dst = (struct uvm__side){dst, r->offset};
  op->src = (struct uvm__side){src, r->src_offset};
  op->bytes = r->bytes;
  op->call.proc = gpu;
  enqueue(x, op);
  return called(x), 0;
}

static int feed_mark(struct uvm_engine *x, const struct uvm_trace_record *r) {
  size_t event;
  int rc = r->op == UVM_TR_WAIT ? uvm__mark_find(x, r->label, r->line, &event) : 0;
  if (rc) return rc;
  if (r->op == UVM_TR_RECORD) event = uvm__mark_record(x, r->label);
  struct uvm__op *op = uvm__op_add(x, stream_of(x, r, x->host.last_gpu), r->op == UVM_TR_WAIT ? UVM__AWAIT : UVM__RECORD, r->line);
  op->event = event;
  op->call.proc = x->host.last_gpu;
  enqueue(x, op);
  return called(x), 0;
}

/* -- the host's own -- */

static_assert((int)UVM_TA_UNSET_COARSE_GRAIN == (int)UVM_ADV_UNSET_COARSE_GRAIN && (int)UVM_TA_SET_PREFERRED == (int)UVM_ADV_SET_PREFERRED,
              "advice has the same numbers in traces and drivers");

static int feed_advise(struct uvm_engine *x, const struct uvm_trace_record *r) {
  struct uvm_call call = {.alloc = alloc_of(x, r->alloc),
                          .offset = r->offset,
                          .bytes = r->bytes,
                          .node = x->machine->procs[r->proc].home,
                          .proc = r->proc,
                          .advice = (enum uvm_advice)r->advice,
                          .line = r->line};
  x->host.state = UVM__CALLING;
  uvm__emit(x, (struct uvm_engine_event){.kind = UVM_N_ADVISE, .call = call});
  return 0;
}

static int feed_sync(struct uvm_engine *x, const struct uvm_trace_record *r) {
  if (r->has_proc) name_gpu(x, r->proc);
  struct uvm__wait w = {.stream = r->has_stream, .number = r->stream, .proc = r->has_proc, .on = r->has_proc ? r->proc : x->host.last_gpu};
  w.all = !w.stream && !w.proc;
  return wait_for(x, w, UVM_TR_SYNC), 0;
}

static int feed_free(struct uvm_engine *x, const struct uvm_trace_record *r) {
  x->host.freeing = alloc_of(x, r->alloc);
  return wait_for(x, (struct uvm__wait){.all = true}, UVM_TR_FREE), 0;
}

static int feed_begin(struct uvm_engine *x, const struct uvm_trace_record *r) {
  UVM_PUSH(&x->host.sections) = (struct uvm__section){uvm_copy_string(r->label), r->iteration, x->now, r->line};
  uvm_observe(x->core,
              &(struct uvm_event){.kind = UVM_E_SECTION_BEGIN, .t = x->now, .name = r->label, .value = r->iteration, .line = r->line});
  return hungry_at(x, x->now), 0;
}

static int feed_end(struct uvm_engine *x, const struct uvm_trace_record *r) {
  if (!x->host.sections.n) return uvm__fail(x, r->line, "expected an open section, found end");
  struct uvm__section *s = &x->host.sections.v[--x->host.sections.n];
  uvm_observe(x->core,
              &(struct uvm_event){
                  .kind = UVM_E_SECTION, .t = s->begin, .dur = x->now - s->begin, .name = s->name, .value = s->iteration, .line = s->line});
  uvm_mem_free(s->name);
  return hungry_at(x, x->now), 0;
}

int uvm__host_feed(struct uvm_engine *x, const struct uvm_trace_record *r) {
  assert(x->host.state == UVM__HUNGRY);
  if (!r) return wait_for(x, (struct uvm__wait){.all = true}, UVM_TR_END), 0;
  x->host.line = r->line;
  switch ((enum uvm_trace_op)r->op) {
  case UVM_TR_PROCESSOR:
  case UVM_TR_PAGE: return hungry_at(x, x->now), 0;
  case UVM_TR_ALLOC: return feed_alloc(x, r);
  case UVM_TR_FREE: return feed_free(x, r);
  case UVM_TR_ACCESS: return feed_access(x, r);
  case UVM_TR_KERNEL: return feed_kernel(x, r);
  case UVM_TR_PREFETCH: return feed_prefetch(x, r);
  case UVM_TR_ADVISE: return feed_advise(x, r);
  case UVM_TR_MEMCPY: return feed_memcpy(x, r);
  case UVM_TR_SYNC: return feed_sync(x, r);
  case UVM_TR_RECORD:
  case UVM_TR_WAIT: return feed_mark(x, r);
  case UVM_TR_DELAY: return hungry_at(x, x->now + r->ns), 0;
  case UVM_TR_BEGIN: return feed_begin(x, r);
  case UVM_TR_END: return feed_end(x, r);
  }
  return uvm__fail(x, r->line, "expected a trace record, found number %d", r->op);
}

/* -- its turn -- */

static void tell_wait(struct uvm_engine *x) {
  const struct uvm__host *h = &x->host;
  uvm_ns dur = x->now - h->wait_since;
  if (dur) uvm_observe(x->core, &(struct uvm_event){.kind = UVM_E_WAIT, .t = h->wait_since, .dur = dur, .line = h->line});
}

static void ask(struct uvm_engine *x) {
  x->host.state = UVM__HUNGRY;
  uvm__emit(x, (struct uvm_engine_event){.kind = UVM_N_FEED});
}

void uvm__host_run(struct uvm_engine *x) {
  struct uvm__host *h = &x->host;
  if (h->state == UVM__LOOPING && !uvm__loop_run(x)) return;
  if (h->state != UVM__WAITED) return ask(x);
  if (h->then == UVM_TR_FREE && !faults_served(x)) { /* something began at this very time */
    h->state = UVM__WAITING;
    return;
  }
  tell_wait(x);
  if (h->then == UVM_TR_END) {
    h->state = UVM__FINISHED;
    uvm__emit(x, (struct uvm_engine_event){.kind = UVM_N_END});
    return;
  }
  if (h->then == UVM_TR_FREE) release(x);
  ask(x);
}
