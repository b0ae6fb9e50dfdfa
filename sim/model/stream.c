/* Streams: operations in order, one at a time each. */
#include <assert.h>
#include "model/model.h"

enum { MARK_HASH = 1024 };

struct uvm__stream *uvm__stream_get(struct uvm_engine *x, uint64_t number, uvm_proc proc) {
  if (number) proc = 0; /* only stream 0 is one a processor */
  for (size_t i = 0; i < x->streams.n; i++)
    if (x->streams.v[i]->number == number && x->streams.v[i]->proc == proc) return x->streams.v[i];
  struct uvm__stream *s = uvm_mem(sizeof *s);
  *s = (struct uvm__stream){.number = number, .proc = proc};
  return UVM_PUSH(&x->streams) = s;
}

void uvm__streams_close(struct uvm_engine *x) {
  for (size_t i = 0; i < x->streams.n; i++) {
    for (struct uvm__op *op = x->streams.v[i]->head, *next; op; op = next) {
      next = op->next;
      if (op->kernel) uvm__kernel_destroy(op->kernel);
      uvm_mem_free(op);
    }
    uvm_mem_free(x->streams.v[i]);
  }
  for (size_t i = 0; i < x->marks.n; i++) uvm_mem_free(x->marks.v[i].name);
  uvm_mem_free(x->streams.v);
  uvm_mem_free(x->marks.v);
  uvm_mem_free(x->mark_hash);
  uvm_mem_free(x->recorded.v);
}

/* -- recorded events: a record makes a new instance, a wait means the latest -- */

static size_t *mark_chain(struct uvm_engine *x, const char *name) {
  uint32_t h = 2166136261u;
  for (; *name; name++) h = (h ^ (uint8_t)*name) * 16777619u;
  if (!x->mark_hash) x->mark_hash = uvm_mem(MARK_HASH * sizeof *x->mark_hash);
  return &x->mark_hash[h % MARK_HASH];
}

static struct uvm__mark *find_mark(struct uvm_engine *x, const char *name) {
  for (size_t i = *mark_chain(x, name); i; i = x->marks.v[i - 1].next)
    if (!strcmp(x->marks.v[i - 1].name, name)) return &x->marks.v[i - 1];
  return NULL;
}

size_t uvm__mark_record(struct uvm_engine *x, const char *name) {
  struct uvm__mark *m = find_mark(x, name);
  if (!m) {
    size_t *chain = mark_chain(x, name);
    m = &UVM_PUSH(&x->marks);
    *m = (struct uvm__mark){.name = uvm_copy_string(name), .next = *chain};
    *chain = x->marks.n;
  }
  UVM_PUSH(&x->recorded) = false;
  return m->instance = x->recorded.n - 1;
}

int uvm__mark_find(struct uvm_engine *x, const char *name, int64_t line, size_t *instance) {
  const struct uvm__mark *m = find_mark(x, name);
  if (!m) return uvm__fail(x, line, "expected an event that was recorded, found %s", name);
  *instance = m->instance;
  return 0;
}

/* -- operations -- */

struct uvm__op *uvm__op_add(struct uvm_engine *x, struct uvm__stream *s, enum uvm__op_kind kind, int64_t line) {
  struct uvm__op *op = uvm_mem(sizeof *op);
  *op = (struct uvm__op){.kind = (uint8_t)kind, .id = ++x->ops, .line = line, .stream = s};
  x->in_flight++;
  *(s->head ? &s->tail->next : &s->head) = op;
  s->tail = op;
  return op;
}

void uvm__op_at(struct uvm_engine *x, uvm_ns time, struct uvm__op *op) {
  uvm__queue_push(&x->queue, (struct uvm__event){.time = time, .kind = UVM__OP, .p = op});
}

void uvm__op_begin(struct uvm_engine *x, struct uvm__stream *s) {
  if (s->head) uvm__op_at(x, x->now, s->head);
}

static void end_op(struct uvm_engine *x, struct uvm__op *op) {
  struct uvm__stream *s = op->stream;
  assert(s->head == op);
  s->head = op->next;
  x->in_flight--;
  uvm_mem_free(op);
  uvm__op_begin(x, s);
  uvm__host_notice(x);
}

bool uvm__waits_over(const struct uvm_engine *x, const struct uvm__wait *w) {
  if (w->all) return !x->in_flight;
  for (size_t i = 0; i < x->streams.n; i++) {
    const struct uvm__stream *s = x->streams.v[i];
    if (w->stream && !(s->number == w->number && (s->number || s->proc == w->on))) continue;
    for (const struct uvm__op *op = s->head; op; op = op->next)
      if (w->stream || (op->kernel ? op->kernel->proc : op->call.proc) == w->on) return false;
  }
  return true;
}

/* -- kernels -- */

static void tell_kernel(struct uvm_engine *x, const struct uvm__kernel *k, enum uvm_told_kind kind) {
  uvm_tell(x->core->host,
           &(struct uvm_told){.kind = (uint8_t)kind,
                              .proc = k->proc,
                              .src = UVM_NONE,
                              .dst = UVM_NONE,
                              .kernel = (uint32_t)k->number,
                              .begin = k->begin,
                              .end = x->now},
           x->now);
}

static void kernel_over(struct uvm_engine *x, struct uvm__op *op) {
  struct uvm__kernel *k = op->kernel;
  for (size_t i = 0; i < k->records.n; i++) uvm__tell_summary(x, k->proc, &k->records.v[i]);
  uvm_observe(x->core, &(struct uvm_event){.kind = UVM_E_KERNEL,
                                           .proc = k->proc,
                                           .t = k->begin,
                                           .dur = x->now - k->begin,
                                           .value = k->number,
                                           .name = k->name,
                                           .line = k->line});
  tell_kernel(x, k, UVM_T_KERNEL_END);
  uvm__kernel_destroy(k);
  end_op(x, op);
}

static void kernel_run(struct uvm_engine *x, struct uvm__op *op) {
  struct uvm__kernel *k = op->kernel;
  uvm_ns launch = k->proc ? x->machine->gpu.launch_ns : 0;
  switch (op->stage++) {
  case 0:
    k->begin = x->now;
    k->op = op;
    uvm__op_at(x, x->now + launch, op);
    break;
  case 1:
    k->number = x->kernels++;
    tell_kernel(x, k, UVM_T_KERNEL_BEGIN);
    uvm__kernel_begin(x, k);
    break;
  default: kernel_over(x, op);
  }
}

/* -- copies: the driver makes the pages of managed sides exist, then the bytes move -- */

static bool ask_for_side(struct uvm_engine *x, struct uvm__op *op, const struct uvm__side *s, bool write) {
  if (s->alloc->kind != UVM_MANAGED) return false;
  struct uvm_call call = {.alloc = s->alloc,
                          .offset = s->offset,
                          .bytes = op->bytes,
                          .node = UVM_NONE,
                          .proc = op->call.proc,
                          .cookie = op->id,
                          .line = op->line};
  uvm__emit(x, (struct uvm_engine_event){.kind = UVM_N_COPY, .call = call, .write = write});
  return true;
}

static uvm_node lies_on(const struct uvm_engine *x, const struct uvm__side *s, uint64_t at) {
  if (s->alloc->kind != UVM_MANAGED) return s->alloc->node;
  uint64_t offset = s->offset + at;
  const struct uvm_block *b = uvm_block_find(s->alloc, offset);
  uint32_t nodes = b ? uvm_page_nodes(x->core->space, b, uvm_page_of(s->alloc, offset)) : 0;
  return nodes ? (uvm_node)__builtin_ctz(nodes) : x->machine->procs[0].home;
}

/* Bytes from `at` on that one transfer can take: to the first page that lies elsewhere on either side. */
static uint64_t alike(const struct uvm_engine *x, const struct uvm__op *op, uint64_t at) {
  if (op->src.alloc->kind != UVM_MANAGED && op->dst.alloc->kind != UVM_MANAGED) return op->bytes;
  uvm_node src = lies_on(x, &op->src, at), dst = lies_on(x, &op->dst, at);
  do {
    uint64_t a = UVM_PAGE - (op->src.offset + at) % UVM_PAGE, b = UVM_PAGE - (op->dst.offset + at) % UVM_PAGE;
    at += a < b ? a : b;
  } while (at < op->bytes && lies_on(x, &op->src, at) == src && lies_on(x, &op->dst, at) == dst);
  return at < op->bytes ? at : op->bytes;
}

static void tell_copy(const struct uvm_engine *x, const struct uvm__op *op, uvm_node src, uvm_node dst, struct uvm_reservation r,
                      uint64_t bytes) {
  uvm_observe(x->core, &(struct uvm_event){.kind = UVM_E_COPY,
                                           .cause = UVM_C_USER,
                                           .proc = op->call.proc,
                                           .src = src,
                                           .dst = dst,
                                           .t = r.begin,
                                           .dur = r.end - r.begin,
                                           .bytes = bytes,
                                           .line = op->line});
}

static uvm_ns copy_bytes(struct uvm_engine *x, const struct uvm__op *op) {
  uvm_ns end = x->now;
  for (uint64_t at = 0, next; at < op->bytes; at = next) {
    uvm_node src = lies_on(x, &op->src, at), dst = lies_on(x, &op->dst, at);
    next = alike(x, op, at);
    struct uvm_transfer t = {src, dst, UVM_L_MEMCPY, next - at, x->machine->costs.transfer_ns};
    struct uvm_reservation r = uvm_machine_reserve(x->machine, &t, end);
    tell_copy(x, op, src, dst, r, next - at);
    end = r.end;
  }
  return end;
}

static void copy_run(struct uvm_engine *x, struct uvm__op *op) {
  switch (op->stage++) {
  case 0:
    if (ask_for_side(x, op, &op->src, false)) return;
    op->stage++; /* fall through */
  case 1:
    if (ask_for_side(x, op, &op->dst, true)) return;
    op->stage++; /* fall through */
  case 2: uvm__op_at(x, copy_bytes(x, op), op); return;
  default: end_op(x, op);
  }
}

/* -- the rest -- */

static void prefetch_run(struct uvm_engine *x, struct uvm__op *op) {
  if (op->stage++) {
    end_op(x, op);
    return;
  }
  op->call.cookie = op->id;
  uvm__emit(x, (struct uvm_engine_event){.kind = UVM_N_PREFETCH, .call = op->call});
}

static void wake_waiters(struct uvm_engine *x, size_t event) {
  for (size_t i = 0; i < x->streams.n; i++) {
    struct uvm__op *head = x->streams.v[i]->head;
    if (!head || head->kind != UVM__AWAIT || head->event != event || head->stage != 1) continue;
    head->stage++;
    uvm__op_begin(x, x->streams.v[i]);
  }
}

void uvm__op_run(struct uvm_engine *x, struct uvm__op *op) {
  switch ((enum uvm__op_kind)op->kind) {
  case UVM__KERNEL: kernel_run(x, op); break;
  case UVM__PREFETCH: prefetch_run(x, op); break;
  case UVM__COPY: copy_run(x, op); break;
  case UVM__RECORD: {
    size_t event = op->event;
    x->recorded.v[event] = true;
    end_op(x, op);
    wake_waiters(x, event);
    break;
  }
  case UVM__AWAIT:
    if (!op->stage) op->stage = 1; /* to be woken */
    if (x->recorded.v[op->event]) end_op(x, op);
    break;
  }
}

void uvm__op_complete(struct uvm_engine *x, uint64_t id) {
  for (size_t i = 0; i < x->streams.n; i++)
    if (x->streams.v[i]->head && x->streams.v[i]->head->id == id) {
      uvm__op_begin(x, x->streams.v[i]);
      return;
    }
  assert(!"the driver completes what is under way");
}
