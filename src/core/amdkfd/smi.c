/* The text of KFD's event stream, byte for byte: a user-space interface that profilers parse. */
#include "core/amdkfd/amdkfd.h"
#include <assert.h>

static uint64_t size_of(struct kfd_span s) { return s.last - s.first + 1; }

/* What follows the id, the time and the process. */
static int arguments(const struct kfd_smi *e, char *out, size_t size) {
  unsigned long long first = e->pages.first, pages = size_of(e->pages);
  switch ((enum kfd_smi_id)e->id) {
  case KFD_MIGRATE_START:
    return snprintf(out, size, "@%llx(%llx) %x->%x %x:%x %d", first, pages, e->from, e->to, e->prefetch, e->preferred, e->trigger);
  case KFD_MIGRATE_END: return snprintf(out, size, "@%llx(%llx) %x->%x %d %d", first, pages, e->from, e->to, e->trigger, e->error);
  case KFD_PAGE_FAULT_START:
  case KFD_PAGE_FAULT_END: return snprintf(out, size, "@%llx(%x) %c", first, e->to, e->mark);
  case KFD_QUEUE_EVICTION: return snprintf(out, size, "%x %d", e->to, e->trigger);
  case KFD_QUEUE_RESTORE: return snprintf(out, size, "%x %c", e->to, e->mark);
  case KFD_UNMAP_FROM_GPU: return snprintf(out, size, "@%llx(%llx) %x %d", first, pages, e->to, e->trigger);
  }
  assert(!"a known event id");
  return 0;
}

size_t uvm_smi_format(const struct kfd_smi *e, bool restore_nul, char out[static KFD_SMI_MAX]) {
  int n = snprintf(out, KFD_SMI_MAX, "%x %llu -%u ", (unsigned)e->id, (unsigned long long)e->t, e->pid);
  n += arguments(e, out + n, KFD_SMI_MAX - (size_t)n);
  assert(n > 0 && n < KFD_SMI_MAX);
  if (e->id == KFD_QUEUE_RESTORE && !e->mark && !restore_nul) n--; /* the argument of %c was 0 and was printed as a byte */
  out[n++] = '\n';
  return (size_t)n;
}

void uvm_smi_listen(struct uvm_core *c, kfd_smi_sink *sink, void *ctx) {
  struct kfd_state *s = uvm__kfd(c);
  s->sink = sink, s->sink_ctx = ctx;
}

void uvm__kfd_smi(struct uvm_core *c, struct kfd_smi e) {
  struct kfd_state *s = uvm__kfd(c);
  char line[KFD_SMI_MAX];
  if (!s->sink) return;
  e.pid = 1; /* one process a run */
  size_t n = uvm_smi_format(&e, s->restore_nul, line);
  s->sink(s->sink_ctx, line, n);
}

void uvm__kfd_smi_unmap(struct uvm_core *c, struct kfd_prange *r, struct kfd_span s, enum kfd_unmap trigger, uvm_ns now) {
  if (!r->mapped) return;
  for (uvm_proc p = 1; p < c->space->topology.nprocs; p++)
    if ((r->access | r->in_place) >> p & 1)
      uvm__kfd_smi(c, (struct kfd_smi){.id = KFD_UNMAP_FROM_GPU, .t = now, .pages = s, .to = p, .trigger = (int)trigger});
  if (s.first == r->pages.first && s.last == r->pages.last) r->mapped = false;
}
