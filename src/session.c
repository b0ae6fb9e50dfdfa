#include "session.h"
#include <assert.h>
#include "core/host.h"
#include "engine.h"
#include "parts.h"

enum { PROGRESS_TURNS = 256, AT_ONCE = 1 << 16 };      /* AT_ONCE: records offered to the engine together */
struct session {
  const struct uvm_session_config *config;
  struct uvm_trace *trace;
  struct uvm_machine *machine;
  struct uvm_core core;
  const struct uvm_engine_ops *ops;
  struct uvm_engine *engine;
  struct uvm_parts parts;
  struct uvm_observer *observers;               /* the caller's and our own */
  struct uvm_session_result *result;
  struct uvm_error *error;
  bool started;                                 /* the driver's init ran */
  int64_t line;                                 /* of the latest record */
};

static const struct uvm_engine_ops *const engines[] = {&uvm_engine_model, NULL};

/* -- choosing by name; an unknown name lists the known ones -- */

static int choose_engine(struct session *s) {
  const char *name = s->config->engine ? s->config->engine : "model";
  char known[256] = "";
  for (size_t i = 0; engines[i]; i++) {
    if (!strcmp(engines[i]->name, name)) return s->ops = engines[i], 0;
    uvm_list_add(known, sizeof known, ", ", engines[i]->name);
  }
  return uvm_fail(s->error, UVM_EUSAGE, "unknown engine '%s'; known: %s", name, known);
}

/* "nvidia" or "nvidia-595". Another driver than the machine's has another count of versions. */
static int choose_driver(struct session *s) {
  const char *text = s->config->driver;
  struct uvm_topology *told = &s->machine->topology;
  char name[24];
  bool whole = snprintf(name, sizeof name, "%s", text ? text : s->machine->driver) < (int)sizeof name;
  char *dash = text && whole ? strrchr(name, '-') : NULL;
  uint64_t version;
  bool versioned = dash && uvm_parse_u64(dash + 1, UINT32_MAX, &version);
  if (versioned) *dash = 0;
  s->core.driver = uvm_driver_find(name, s->error);
  if (!s->core.driver) return s->error->code;
  told->driver = s->core.driver->name;
  if (versioned)
    told->driver_version = (uint32_t)version;
  else if (strcmp(name, s->machine->driver))
    told->driver_version = s->core.driver->version;
  return 0;
}

static int choose_policy(struct session *s) {
  int rc = uvm_parts_choose(&s->parts, s->config, s->core.driver->default_policy, s->error);
  snprintf(s->result->policy, sizeof s->result->policy, "%s", s->parts.name);
  return rc;
}

/* -- memory of the GPUs -- */

static int size_memory(struct session *s) {
  const struct uvm_session_config *c = s->config;
  if (c->gpu_memory) return uvm_machine_set_gpu_memory(s->machine, c->gpu_memory), 0;
  if (c->oversubscribe <= 0) return 0;
  struct uvm_trace_facts facts;
  int rc = uvm_trace_survey(s->trace, &facts, s->error);
  if (rc) return rc;
  if (!facts.peak_managed_bytes)
    return uvm_fail(s->error, UVM_EUSAGE, "--oversubscribe: %s allocates no managed memory; use --gpu-memory",
                    uvm_trace_name(s->trace));
  double bytes = (double)facts.peak_managed_bytes / c->oversubscribe;
  uint64_t chunks = (uint64_t)(bytes / (double)UVM_BLOCK_BYTES + 0.5);
  uvm_machine_set_gpu_memory(s->machine, (chunks ? chunks : 1) * UVM_BLOCK_BYTES);
  return 0;
}

/* -- options -- */

static int unknown_key(struct session *s, const struct uvm_setting *o, const struct uvm_opt *table) {
  char known[768] = "version";
  for (; table && table->name; table++) uvm_list_add(known, sizeof known, ", ", table->name);
  return uvm_fail(s->error, UVM_EUSAGE, "option %s.%s: unknown key; known: %s", o->owner, o->key, known);
}

static int apply_setting(struct session *s, const struct uvm_setting *o) {
  const struct uvm_driver *d = s->core.driver;
  if (!strcmp(o->owner, d->name)) {
    uint64_t version;
    if (!strcmp(o->key, "version")) {
      if (!uvm_parse_u64(o->value, UINT32_MAX, &version))
        return uvm_fail(s->error, UVM_EUSAGE, "option %s.version: expected a whole number, found '%s'", o->owner, o->value);
      s->core.space->topology.driver_version = (uint32_t)version;
      return 0;
    }
    if (!uvm_opt_find(d->opts, o->key)) return unknown_key(s, o, d->opts);
    return uvm_opt_set(d->opts, s->core.state, o->owner, o->key, o->value, s->error);
  }
  int rc = 0;
  if (uvm_host_option(s->core.host, o->owner, o->key, o->value, &rc, s->error)) return rc;
  char known[512] = "";
  uvm_list_add(known, sizeof known, ", ", d->name);
  for (size_t i = 0; i < s->parts.n; i++) uvm_list_add(known, sizeof known, ", ", s->parts.v[i]->name);
  return uvm_fail(s->error, UVM_EUSAGE, "option %s.%s: nothing here is called '%s'; known: %s", o->owner, o->key, o->owner, known);
}

static int apply_settings(struct session *s) {
  int rc = 0;
  for (size_t i = 0; i < s->config->nsettings && !rc; i++) rc = apply_setting(s, &s->config->settings[i]);
  return rc;
}

/* -- the run -- */

static void count_accesses(void *ctx, const struct uvm_event *e) {
  struct uvm_session_result *r = ctx;
  if (e->kind == UVM_E_ACCESS) r->accesses += e->value;
}

/* With the driver of the one chosen if there is such a machine, else the first. */
static int machine_with_gpus(unsigned gpus, const char *driver, char *name, size_t size) {
  bool found = false;
  for (const struct uvm_machine_entry *m = uvm_machines; m->name; m++) {
    struct uvm_machine *open;
    if (uvm_machine_open(m->name, NULL, &open, NULL)) continue;
    bool fits = open->nprocs > gpus, same = !strcmp(open->driver, driver);
    uvm_machine_close(open);
    if (!fits || (found && !same)) continue;
    snprintf(name, size, "%s", m->name);
    found = true;
    if (same) break;
  }
  return found ? 0 : UVM_ENO;
}

static int check_processor(struct session *s, const struct uvm_trace_record *r) {
  if (r->op != UVM_TR_PROCESSOR || r->proc < s->machine->nprocs) return 0;
  char fits[48];
  bool found = !machine_with_gpus(r->proc, s->machine->driver, fits, sizeof fits);
  return uvm_fail(s->error, UVM_EUSAGE, "%s:%lld: the trace uses gpu%d, but machine %s has %d GPU%s; %s%s", uvm_trace_name(s->trace),
                  (long long)r->line, r->proc - 1, s->machine->name, s->machine->nprocs - 1, s->machine->nprocs == 2 ? "" : "s",
                  found ? "one that fits: --machine " : "no built-in machine has as many", found ? fits : "");
}

static int feed(struct session *s) {
  const struct uvm_trace_record *r;
  int n = uvm_trace_take(s->trace, AT_ONCE, &r, s->error);
  if (n < 0) return n;
  int rc = n ? check_processor(s, r) : 0;
  if (rc) return rc;
  int taken = s->ops->feed(s->engine, r, (size_t)n, s->error);
  if (taken < 0) return taken;
  if (taken) s->line = r[taken - 1].line;
  uvm_trace_give_back(s->trace, (size_t)(n - taken));
  return 0;
}

/* Bytes of the allocation resident away from the CPU's memory. */
static uint64_t device_resident(const struct uvm_space *s, const struct uvm_alloc *a) {
  uint64_t pages = 0;
  for (size_t w = 0; a->kind == UVM_MANAGED && w < a->nwindows; w++)
    for (const struct uvm_block *b = a->blocks[w]; b; b = b->split)
      for (uvm_node n = 0; n < s->topology.nnodes; n++)
        if (n != s->procs[0].home) pages += (uint64_t)uvm_mask_count(uvm_block_resident(s, b, n));
  return pages * UVM_PAGE;
}

static void free_alloc(struct session *s, struct uvm_alloc *a, uvm_ns now) {
  s->core.driver->freeing(&s->core, a, now);
  uvm_observe(&s->core, &(struct uvm_event){.kind = UVM_E_FREE, .t = now, .has_alloc = true, .alloc = a->number, .allocation = a,
                                            .bytes = a->bytes, .value = device_resident(s->core.space, a)});
  uvm_space_free(s->core.space, a);
}

static int dispatch(struct session *s, const struct uvm_engine_event *ev) {
  struct uvm_core *c = &s->core;
  switch ((enum uvm_engine_event_kind)ev->kind) {
  case UVM_N_FEED: return feed(s);
  case UVM_N_CPU_FAULT: c->driver->cpu_fault(c, &ev->fault, ev->now); break;
  case UVM_N_INTERRUPT: c->driver->interrupt(c, ev->proc, ev->now); break;
  case UVM_N_COUNTERS: c->driver->counters(c, ev->proc, ev->now); break;
  case UVM_N_PREFETCH: c->driver->prefetch(c, &ev->call, ev->now); break;
  case UVM_N_ADVISE: c->driver->advise(c, &ev->call, ev->now); break;
  case UVM_N_ROOM: c->driver->make_room(c, &ev->call, ev->now); break;
  case UVM_N_COPY: c->driver->copy(c, &ev->call, ev->write, ev->now); break;
  case UVM_N_FREEING: free_alloc(s, ev->alloc, ev->now); break;
  case UVM_N_WAKE: c->driver->wake(c, ev->task, ev->now); break;
  case UVM_N_END: break;
  }
  return 0;
}

static void tell_progress(const struct session *s) {
  struct uvm_progress p = {.line = s->line, .accesses = s->result->accesses, .now = s->ops->now(s->engine)};
  p.done = uvm_trace_position(s->trace, &p.total);
  s->config->progress(s->config->progress_ctx, &p);
}

static int run(struct session *s) {
  struct uvm_engine_event ev;
  uint64_t turns = 0;
  do {
    if (s->config->progress && !(turns++ % PROGRESS_TURNS)) tell_progress(s);
    int rc = s->ops->next(s->engine, &ev, s->error);
    if (rc > 0) rc = dispatch(s, &ev);
    if (uvm_stop) return s->result->interrupted = true, 0;
    if (rc < 0) return rc;
  } while (ev.kind != UVM_N_END);
  return 0;
}

/* -- setting up, in order; torn down in reverse -- */

static int open_core(struct session *s) {
  struct uvm_core *c = &s->core;
  c->space = uvm_space_create(&s->machine->topology);
  c->seed = s->config->seed;
  c->state = uvm_mem(c->driver->state_size);
  uvm_opt_defaults(c->driver->opts, c->state);
  size_t n = s->config->nobservers;
  s->observers = uvm_mem((n + 1) * sizeof *s->observers);
  if (n) memcpy(s->observers, s->config->observers, n * sizeof *s->observers);
  s->observers[n] = (struct uvm_observer){s->result, count_accesses};
  c->observers = s->observers, c->nobservers = n + 1;
  c->host = uvm_host_create(c, s->parts.v, s->parts.n);
  return apply_settings(s);
}

static int check_needs(struct session *s) {
  uint32_t needs = uvm_host_needs(s->core.host), can = s->ops->capabilities;
  const char *missing = needs & UVM_NEEDS_ACCESS && !(can & UVM_CAN_ACCESS)       ? "every access"
                        : needs & UVM_NEEDS_COUNTERS && !(can & UVM_CAN_COUNTERS) ? "access counters"
                                                                                  : NULL;
  if (!missing) return 0;
  return uvm_fail(s->error, UVM_EUSAGE, "policy %s needs %s, which the engine %s does not offer", s->result->policy, missing, s->ops->name);
}

static int start(struct session *s) {
  struct uvm_core *c = &s->core;
  struct uvm_engine_config ec = {.core = c, .machine = s->machine, .trace = uvm_trace_name(s->trace)};
  int rc = s->ops->open(&ec, &s->engine, s->error);
  if (rc) return rc;
  s->ops->hw(s->engine, &c->hw);
  if ((rc = check_needs(s)) || (rc = c->driver->init(c, s->error))) return rc;
  s->started = true;
  return uvm_host_start(c->host, s->error);
}

static int open_trace(struct session *s) {
  const struct uvm_session_config *c = s->config;
  if (!c->source) return uvm_trace_open(c->trace, c->oversubscribe > 0, &s->trace, s->error);
  s->trace = c->source;
  return uvm_trace_rewind(s->trace, s->error);
}

static int open_all(struct session *s) {
  const struct uvm_session_config *c = s->config;
  int rc;
  if ((rc = choose_engine(s))) return rc;
  if ((rc = uvm_machine_open(c->machine, c->costs, &s->machine, s->error))) return rc;
  if ((rc = choose_driver(s)) || (rc = choose_policy(s))) return rc;
  if ((rc = open_trace(s))) return rc;
  if ((rc = size_memory(s))) return rc;
  if ((rc = open_core(s))) return rc;
  return start(s);
}

static void fill_result(struct session *s) {
  struct uvm_session_result *r = s->result;
  const struct uvm_space *space = s->core.space;
  r->sim_ns = s->ops->now(s->engine);
  for (uvm_node n = 0; n < space->topology.nnodes; n++) r->node_capacity[n] = space->nodes[n].capacity;
  uint32_t seen = 0;
  r->nprocs = space->topology.nprocs;
  for (uvm_proc p = 1; p < space->topology.nprocs; p++) {
    uvm_node n = space->procs[p].home;
    if (seen >> n & 1 || space->procs[p].apu) continue;
    seen |= 1u << n;
    r->peak_gpu_bytes += space->peak[n];
    r->gpu_capacity += space->nodes[n].capacity;
    for (size_t k = 1; k < space->backings.n; k++)
      if (space->backings.v[k] && space->backings.v[k]->info.node == n) r->resident_gpu_bytes += space->backings.v[k]->info.resident;
  }
}

static void fill_link_waits(struct session *s) {
  struct uvm_session_result *r = s->result;
  static_assert(UVM_L_KINDS * UVM_L_KINDS == sizeof r->link_waits / sizeof *r->link_waits, "a row for each pair");
  for (int i = 0; i < UVM_L_KINDS * UVM_L_KINDS; i++) {
    enum uvm_traffic waiter = (enum uvm_traffic)(i / UVM_L_KINDS), holder = (enum uvm_traffic)(i % UVM_L_KINDS);
    uvm_ns ns = s->machine->waited_ps[waiter][holder] / 1000;
    if (ns) r->link_waits[r->nlink_waits++] = (struct uvm_link_wait){uvm_traffic_name(waiter), uvm_traffic_name(holder), ns};
  }
}

static void close_all(struct session *s) {
  struct uvm_core *c = &s->core;
  if (s->started) c->driver->fini(c);
  if (s->engine) s->ops->close(s->engine);
  if (c->space) uvm_space_destroy(c->space);
  if (c->host) uvm_host_destroy(c->host);
  uvm_mem_free(c->state);
  uvm_mem_free(s->observers);
  if (s->trace && !s->config->source) uvm_trace_close(s->trace);
  if (s->machine) uvm_machine_close(s->machine);
  uvm_parts_close(&s->parts);
}

int uvm_session_run(const struct uvm_session_config *config, struct uvm_session_result *r, struct uvm_error *e) {
  struct uvm_error unread;
  *r = (struct uvm_session_result){0};
  struct session s = {.config = config, .result = r, .error = e ? e : &unread};
  int rc = open_all(&s);
  if (!rc) {
    snprintf(r->machine, sizeof r->machine, "%s", s.machine->name);
    snprintf(r->driver, sizeof r->driver, "%s-%u", s.core.driver->name, s.core.space->topology.driver_version);
    snprintf(r->engine, sizeof r->engine, "%s", s.ops->name);
    rc = run(&s);
    fill_result(&s);
    fill_link_waits(&s);
  }
  close_all(&s);
  return rc;
}
