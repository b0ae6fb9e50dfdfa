/* Wide kernels: what a recording of them cannot show exactly (which faults share a batch) is taken from the simulation, and what
 * follows from it is worked out again: given each service's faults, the pages that the density rule makes resident. The two must
 * hold the same pages at every section's end. Thrashing control is off, since what it marks depends on time. */
#include "tests/conformance/conformance.h"
#include "tests/naive_density.h"

struct window {
  bool there[NAIVE_PAGES], expected[NAIVE_PAGES], faulted[NAIVE_PAGES], pending;
};
struct rule {
  UVM_VEC(struct window *) allocs;
  UVM_VEC(size_t) sizes;
  size_t services, sections, wrong;
};

static struct window *window_of(struct rule *r, uint32_t alloc, uint64_t offset) { return &r->allocs.v[alloc][offset / UVM_BLOCK_BYTES]; }

/* The faults of this service are complete: what they bring. */
static void settle(struct rule *r, struct window *w) {
  bool wanted[NAIVE_PAGES];
  if (!w->pending) return;
  naive_density(w->expected, w->faulted, wanted);
  for (int p = 0; p < NAIVE_PAGES; p++) w->expected[p] |= wanted[p], w->faulted[p] = false;
  w->pending = false;
  r->services++;
}

static void moved(struct rule *r, uint32_t alloc, uint64_t offset, uint64_t bytes, bool to_gpu, bool by_fault) {
  for (uint64_t o = offset; o < offset + bytes; o += UVM_PAGE) {
    struct window *w = window_of(r, alloc, o);
    int p = (int)(o / UVM_PAGE % NAIVE_PAGES);
    if (to_gpu && by_fault)
      settle(r, w);
    else
      w->expected[p] = to_gpu; /* not of GPU faults: taken as it is */
    w->there[p] = to_gpu;
  }
}

static void check(struct rule *r) {
  r->sections++;
  for (size_t a = 0; a < r->allocs.n; a++)
    for (size_t i = 0; r->allocs.v[a] && i < r->sizes.v[a]; i++) {
      struct window *w = &r->allocs.v[a][i];
      r->wrong += memcmp(w->there, w->expected, sizeof w->there) != 0;
    }
}

static void watch(void *ctx, const struct uvm_event *e) {
  struct rule *r = ctx;
  switch (e->kind) {
  case UVM_E_ALLOC:
    UVM_PUSH(&r->sizes) = (e->allocation->bytes + UVM_BLOCK_BYTES - 1) / UVM_BLOCK_BYTES;
    UVM_PUSH(&r->allocs) = uvm_mem(r->sizes.v[r->sizes.n - 1] * sizeof(struct window));
    break;
  case UVM_E_FREE:
    uvm_mem_free(r->allocs.v[e->alloc]);
    r->allocs.v[e->alloc] = NULL;
    break;
  case UVM_E_GPU_FAULT: {
    struct window *w = window_of(r, e->alloc, e->offset);
    int p = (int)(e->offset / UVM_PAGE % NAIVE_PAGES);
    if (!w->there[p]) w->faulted[p] = w->pending = true;
    break;
  }
  case UVM_E_TRANSFER: moved(r, e->alloc, e->offset, e->bytes, e->dst != 0, e->cause == UVM_C_FAULT || e->cause == UVM_C_PREFETCH); break;
  case UVM_E_POPULATE:
    for (int a, b = 0; uvm_mask_run(e->mask, &a, &b);)
      moved(r, e->alloc, uvm_block_offset(e->block, a), (uint64_t)(b - a) * UVM_PAGE, e->dst != 0, e->cause != UVM_C_USER);
    break;
  case UVM_E_SECTION: check(r); break;
  default: break;
  }
}

void uvm_conform_rule(struct uvm_score *s, const char *dir, const char *name) {
  struct rule r = {0};
  struct uvm_observer o = {&r, watch};
  char *trace = uvm_format("%s/%s.uvt.gz", dir, name);
  struct uvm_session_config c = {.trace = trace, .thrash = "none", .observers = &o, .nobservers = 1};
  struct uvm_session_result result;
  struct uvm_error e;
  if (uvm_session_run(&c, &result, &e))
    uvm_conform_row(s, false, name, "the density rule", "%s", e.text);
  else
    uvm_conform_row(s, r.services > 0 && !r.wrong, name, "the density rule, at section ends",
                    "%zu services, %zu sections, %zu blocks differ", r.services, r.sections, r.wrong);
  for (size_t a = 0; a < r.allocs.n; a++) uvm_mem_free(r.allocs.v[a]);
  uvm_mem_free(r.allocs.v), uvm_mem_free(r.sizes.v), uvm_mem_free(trace);
}
