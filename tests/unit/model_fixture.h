/* A trace as text, replayed by the model engine under a real driver; what observers were told is kept. */
#ifndef UVM_MODEL_FIXTURE_H
#define UVM_MODEL_FIXTURE_H
#include "base/base.h"
#include "session.h"
#include "tests/unit/unit.h"
#include "trace.h"

struct seen {
  struct uvm_event e;
  char name[32];
};
struct replay {
  UVM_VEC(struct seen) events; /* masks and blocks are dead by now */
  struct uvm_session_result result;
  struct uvm_error error;
  int rc;
};

static inline void replay_see(void *ctx, const struct uvm_event *e) {
  struct replay *r = ctx;
  struct seen s = {.e = *e};
  snprintf(s.name, sizeof s.name, "%s", e->name ? e->name : "");
  UVM_PUSH(&r->events) = s;
}

/* machine, prefetch: NULL for the defaults. */
static inline struct replay replay_text(const char *text, const char *machine, const char *prefetch) {
  struct replay r = {0};
  struct uvm_trace *t;
  if ((r.rc = uvm_trace_open_memory(text, strlen(text), &t, &r.error))) return r;
  struct uvm_observer o = {&r, replay_see};
  struct uvm_session_config c = {.source = t, .machine = machine, .prefetch = prefetch, .observers = &o, .nobservers = 1};
  r.rc = uvm_session_run(&c, &r.result, &r.error);
  uvm_trace_close(t);
  return r;
}

/* As above, and it must work. */
static inline struct replay replay_good(const char *text, const char *machine, const char *prefetch) {
  struct replay r = replay_text(text, machine, prefetch);
  if (r.rc) print_error("%s\n", r.error.text);
  assert_int_equal(r.rc, 0);
  return r;
}
static inline void replay_free(struct replay *r) { uvm_mem_free(r->events.v); }

/* The n-th event of a kind from 0, NULL when there are fewer. */
static inline const struct uvm_event *replay_event(const struct replay *r, enum uvm_event_kind kind, size_t n) {
  for (size_t i = 0; i < r->events.n; i++)
    if (r->events.v[i].e.kind == kind && !n--) return &r->events.v[i].e;
  return NULL;
}
static inline size_t replay_count(const struct replay *r, enum uvm_event_kind kind) {
  size_t n = 0;
  while (replay_event(r, kind, n)) n++;
  return n;
}
static inline uint64_t replay_time_of(const struct replay *r, const char *section) {
  for (size_t i = 0; i < r->events.n; i++)
    if (r->events.v[i].e.kind == UVM_E_SECTION && !strcmp(r->events.v[i].name, section)) return r->events.v[i].e.dur;
  fail_msg("no section %s", section);
  return 0;
}
#define HEAD "uvmtrace 1\nprocessor cpu\nprocessor gpu0\n"
#endif
