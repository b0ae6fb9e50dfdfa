/* A calendar: spans that are taken, in order, never overlapping. Few are ahead of the present, so a walk from the first is short. */
#include "machine/track.h"

uint64_t uvm__track_free(const struct uvm_track *t, uint64_t at, uint64_t *until) {
  size_t i = 0;
  for (; i < t->held.n && t->held.v[i].begin <= at; i++)
    if (t->held.v[i].end > at) at = t->held.v[i].end;
  *until = i < t->held.n ? t->held.v[i].begin : UVM_NEVER;
  return at;
}

uint64_t uvm__track_end(const struct uvm_track *t, uint64_t at, uint64_t need) {
  uint64_t until;
  for (;; at = until) {
    at = uvm__track_free(t, at, &until);
    if (need <= until - at) return at + need;
    need -= until - at;
  }
}

/* [begin, end) is free. It joins its neighbours of the same kind, so that a stream of accesses stays one span. */
static void hold(struct uvm_track *t, uint64_t begin, uint64_t end, enum uvm_traffic kind) {
  size_t i = t->held.n;
  while (i && t->held.v[i - 1].begin > begin) i--;
  struct uvm_span *before = i ? &t->held.v[i - 1] : NULL, *after = i < t->held.n ? &t->held.v[i] : NULL;
  if (before && before->end == begin && before->kind == kind) {
    before->end = end;
  } else if (after && after->begin == end && after->kind == kind) {
    after->begin = begin;
  } else {
    (void)UVM_PUSH(&t->held);
    memmove(&t->held.v[i + 1], &t->held.v[i], (t->held.n - 1 - i) * sizeof *t->held.v);
    t->held.v[i] = (struct uvm_span){begin, end, kind};
  }
}

uint64_t uvm__track_take(struct uvm_track *t, uint64_t at, uint64_t need, enum uvm_traffic kind) {
  while (need) {
    uint64_t until;
    at = uvm__track_free(t, at, &until);
    uint64_t part = uvm_min(need, until - at);
    hold(t, at, at + part, kind);
    at += part;
    need -= part;
  }
  return at;
}

void uvm__track_blame(const struct uvm_track *t, uint64_t from, uint64_t to, uint64_t by[UVM_L_KINDS]) {
  for (size_t i = 0; i < t->held.n && t->held.v[i].begin < to; i++) {
    uint64_t begin = uvm_max(from, t->held.v[i].begin), end = uvm_min(to, t->held.v[i].end);
    if (begin < end) by[t->held.v[i].kind] += end - begin;
  }
}

void uvm__track_pass(struct uvm_track *t, uint64_t now) {
  size_t past = 0;
  while (past < t->held.n && t->held.v[past].end <= now) past++;
  if (!past) return;
  t->held.n -= past;
  memmove(t->held.v, t->held.v + past, t->held.n * sizeof *t->held.v);
}
