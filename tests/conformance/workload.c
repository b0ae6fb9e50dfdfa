/* One workload: replay it under observation, read what was recorded. */
#include "tests/conformance/conformance.h"
#include "machine/machine.h"
#include <unistd.h>

static void watch(void *ctx, const struct uvm_event *e) {
  struct uvm_run_of *w = ctx;
  int gpu_src = e->src < w->simulated.places.nnodes ? w->simulated.places.gpu[e->src] : -1;
  int gpu_dst = e->dst < w->simulated.places.nnodes ? w->simulated.places.gpu[e->dst] : -1;
  switch (e->kind) {
  case UVM_E_SECTION_BEGIN: w->section_began = true; break;
  case UVM_E_GPU_BATCH:
    UVM_PUSH(&w->batches) = (struct uvm_batch){e->alloc, e->raw, e->distinct, w->section_began};
    w->section_began = false;
    break;
  case UVM_E_TRANSFER:
    if (gpu_dst >= 0) w->in += e->bytes;
    if (gpu_src >= 0) w->out += e->bytes;
    break;
  case UVM_E_DUPLICATE: /* the copy at the source stays */
    if (gpu_src >= 0) w->out -= (uint64_t)uvm_mask_count(e->mask) * UVM_PAGE;
    break;
  case UVM_E_POPULATE:
    if (gpu_dst >= 0) w->populated += (uint64_t)uvm_mask_count(e->mask) * UVM_PAGE;
    break;
  case UVM_E_COLLAPSE:
    if (gpu_src >= 0) w->dropped += (uint64_t)uvm_mask_count(e->mask) * UVM_PAGE;
    break;
  case UVM_E_FREE: w->dropped += e->value; break;
  default: break;
  }
}

static int read_recording(struct uvm_run_of *w, struct uvm_error *e) {
  char *path = uvm_format("%s/%s.events.csv.gz", w->dir, w->name);
  int rc = access(path, R_OK) ? 0 : uvm_rows_read(&w->recorded, path, e);
  uvm_mem_free(path);
  return rc;
}

int uvm_conform_run(struct uvm_run_of *w, const char *dir, const char *name, const char *costs, double factor, struct uvm_error *e) {
  *w = (struct uvm_run_of){.dir = dir, .name = name};
  struct uvm_machine *m;
  int rc = uvm_machine_open(NULL, NULL, &m, e);
  if (rc) return rc;
  struct uvm_places places;
  uvm_places_init(&places, &m->topology);
  uvm_machine_close(m);
  uvm_rows_init(&w->recorded, NULL), uvm_rows_init(&w->simulated, &places);
  char *trace = uvm_format("%s/%s.uvt.gz", dir, name);
  const struct uvm_observer observers[] = {{&w->simulated, uvm_rows_event}, {w, watch}};
  struct uvm_session_config c = {.trace = trace, .costs = costs, .oversubscribe = factor, .observers = observers, .nobservers = 2};
  rc = uvm_session_run(&c, &w->result, e);
  uvm_mem_free(trace);
  if (!rc) uvm_rows_sort(&w->simulated), rc = read_recording(w, e);
  return rc;
}

void uvm_conform_free(struct uvm_run_of *w) {
  uvm_rows_free(&w->recorded), uvm_rows_free(&w->simulated);
  uvm_mem_free(w->batches.v);
}
