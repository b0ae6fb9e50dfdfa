/* Kernels on a device: blocks start in index order while SMs have room. The CPU is a device too, with one SM whose warps are
 * threads; a block of a CPU kernel starts thread by thread, so that any number of lanes needs little memory. */
#include <assert.h>
#include "model/model.h"

struct uvm__device *uvm__device_create(const struct uvm_machine *m, uvm_proc p, uint64_t seed) {
  const struct uvm_gpu_model *g = &m->gpu;
  struct uvm__device *d = uvm_mem(sizeof *d);
  d->proc = p;
  d->random = seed + p;
  d->nsms = p ? (uint32_t)g->sms : 1;
  d->warp = p ? (uint32_t)g->warp : 1;
  d->gpcs = p ? (uint32_t)g->gpcs : 1;
  d->utlb = (uint32_t)g->utlb_faults;
  d->gpc_warps = (uint32_t)g->gpc_warps;
  d->lanes_per_sm = p ? g->lanes_per_sm : m->cpu.threads;
  d->blocks_per_sm = p ? g->blocks_per_sm : m->cpu.threads;
  d->sms = uvm_mem(d->nsms * sizeof *d->sms);
  d->stalled = uvm_mem(d->gpcs * sizeof *d->stalled);
  d->first_pair = uvm_mem(d->gpcs * sizeof *d->first_pair);
  d->free_warp = d->free_resident = d->piecemeal = UVM__NO;
  d->byte_ps = 1e12 / g->memory_rate;
  uvm__mmu_create(d, g->ring);
  return d;
}

void uvm__device_destroy(struct uvm__device *d) {
  uvm__mmu_destroy(d);
  for (uint32_t i = 0; i < d->nsms; i++) uvm_mem_free(d->sms[i].line.v);
  uvm_mem_free(d->sms);
  uvm_mem_free(d->stalled);
  uvm_mem_free(d->first_pair);
  uvm_mem_free(d->kernels.v);
  uvm_mem_free(d->warps.v);
  uvm_mem_free(d->residents.v);
  for (size_t i = 0; i < d->counters.n; i++) uvm_mem_free(d->counters.v[i]);
  uvm_mem_free(d->counters.v);
  uvm_mem_free(d->notes.v);
  uvm_mem_free(d);
}

/* -- blocks -- */

static uint32_t resident_add(struct uvm__device *d, struct uvm__resident r) {
  uint32_t i = d->free_resident;
  if (i != UVM__NO)
    d->free_resident = d->residents.v[i].next;
  else
    i = (uint32_t)d->residents.n, (void)UVM_PUSH(&d->residents);
  d->residents.v[i] = r;
  return i;
}

static uint64_t lanes_of(const struct uvm__kernel *k, uint64_t block) {
  uint64_t left = k->lanes - block * k->per_block;
  return left < k->per_block ? left : k->per_block;
}

static void start_warp(struct uvm_engine *x, struct uvm__device *d, uint32_t resident, struct uvm__lanes lanes, uvm_ns at) {
  uint32_t i = d->free_warp;
  if (i != UVM__NO)
    d->free_warp = d->warps.v[i].next;
  else
    i = (uint32_t)d->warps.n, (void)UVM_PUSH(&d->warps);
  const struct uvm__resident *r = &d->residents.v[resident];
  d->warps.v[i] =
      (struct uvm__warp){.kernel = r->kernel, .lanes = lanes, .sm = r->sm, .resident = resident, .age = d->started++, .paced = true};
  uvm__at(x, at, UVM__WARP, d->proc, i);
}

/* An SM with room for so many lanes, in turn; UVM__NO. */
static uint32_t find_sm(struct uvm__device *d, uint64_t lanes) {
  for (uint32_t i = 0; i < d->nsms; i++) {
    uint32_t s = (d->next_sm + i) % d->nsms;
    if (d->sms[s].blocks == d->blocks_per_sm || d->sms[s].lanes + lanes > d->lanes_per_sm) continue;
    d->next_sm = (s + 1) % d->nsms;
    return s;
  }
  return UVM__NO;
}

static uint64_t whole_warps(const struct uvm__device *d, uint64_t lanes) { return (lanes - 1) / d->warp + 1; }

/* Neighbouring blocks wait for the same instructions. */
static uvm_ns jitter(const struct uvm_engine *x, const struct uvm__kernel *k, uint64_t block) {
  uint64_t state = x->core->seed ^ k->number << 32 ^ block / 2, most = x->machine->gpu.start_jitter_ns;
  return uvm_random(&state) % (most + 1);
}

static bool start_block(struct uvm_engine *x, struct uvm__device *d, struct uvm__kernel *k) {
  uint64_t block = k->next_block, lanes = lanes_of(k, block), busy = uvm__busy_lanes(k, block);
  uint64_t held = whole_warps(d, lanes) * d->warp;
  uint32_t s = busy ? find_sm(d, held) : UVM__NO;
  if (busy && s == UVM__NO) return false;
  k->next_block++;
  if (!busy) return k->done_blocks++, true;
  d->sms[s].lanes += held;
  d->sms[s].blocks++;
  uint32_t r = resident_add(d, (struct uvm__resident){.kernel = k, .lanes = held, .warps = whole_warps(d, busy), .sm = s});
  if (d->start < x->now) d->start = x->now;
  uvm_ns at = d->start + jitter(x, k, block);
  for (uint64_t first = 0; first < busy; first += d->warp, at += x->machine->gpu.warp_start_ns) {
    uint64_t count = lanes - first < d->warp ? lanes - first : d->warp;
    start_warp(x, d, r, (struct uvm__lanes){block, first, count, lanes}, at);
  }
  d->start += x->machine->gpu.block_start_ns;
  return true;
}

/* One thread of a CPU kernel. */
static bool start_thread(struct uvm_engine *x, struct uvm__device *d, struct uvm__kernel *k) {
  uint64_t block = k->next_block, busy = uvm__busy_lanes(k, block);
  if (!busy) return k->next_block++, k->done_blocks++, true;
  if (d->sms[0].lanes == d->lanes_per_sm) return false;
  if (!k->next_lane) d->piecemeal = resident_add(d, (struct uvm__resident){.kernel = k, .lanes = 0, .warps = busy});
  d->sms[0].lanes++;
  start_warp(x, d, d->piecemeal, (struct uvm__lanes){block, k->next_lane, 1, lanes_of(k, block)}, x->now);
  if (++k->next_lane == busy) k->next_lane = 0, k->next_block++;
  return true;
}

static void start_blocks(struct uvm_engine *x, struct uvm__device *d) {
  for (size_t i = 0; i < d->kernels.n; i++) {
    struct uvm__kernel *k = d->kernels.v[i];
    while (k->next_block < k->busy_blocks)
      if (!(d->proc ? start_block(x, d, k) : start_thread(x, d, k))) return;
  }
}

/* -- the end -- */

static void end_kernel(struct uvm_engine *x, struct uvm__device *d, struct uvm__kernel *k, uvm_ns last) {
  size_t i = 0;
  while (d->kernels.v[i] != k) i++;
  memmove(&d->kernels.v[i], &d->kernels.v[i + 1], (--d->kernels.n - i) * sizeof *d->kernels.v);
  uvm_ns end = last + (d->proc ? x->machine->gpu.finish_ns : 0);
  if (k->has_ns && k->begin + k->ns + k->stalled > end) end = k->begin + k->ns + k->stalled;
  uvm__op_at(x, end, k->op);
}

void uvm__warp_ended(struct uvm_engine *x, struct uvm__device *d, uint32_t w) {
  struct uvm__warp *warp = &d->warps.v[w];
  uint32_t index = warp->resident;
  struct uvm__resident *r = &d->residents.v[index];
  struct uvm__sm *sm = &d->sms[r->sm];
  assert(!warp->outstanding && !warp->waiting);
  warp->next = d->free_warp;
  d->free_warp = w;
  if (!d->proc) sm->lanes--;
  if (!--r->warps) {
    sm->lanes -= r->lanes;
    sm->blocks -= d->proc != 0;
    struct uvm__kernel *k = r->kernel;
    k->done_blocks++;
    r->next = d->free_resident;
    d->free_resident = index;
    if (k->done_blocks == k->busy_blocks) end_kernel(x, d, k, x->now);
  }
  start_blocks(x, d);
}

/* -- the beginning -- */

static uint64_t waves(const struct uvm__device *d, const struct uvm__kernel *k) {
  uint64_t fit = d->lanes_per_sm / (whole_warps(d, lanes_of(k, 0)) * d->warp);
  if (fit > d->blocks_per_sm) fit = d->blocks_per_sm;
  return k->busy_blocks ? (k->busy_blocks - 1) / (fit * d->nsms) + 1 : 1;
}

/* Time of a kernel that is not its steps', at most: until all blocks have started, and after the last. */
static uint64_t around_steps(const struct uvm_engine *x, const struct uvm__device *d, const struct uvm__kernel *k) {
  const struct uvm_gpu_model *g = &x->machine->gpu;
  if (!d->proc) return 0;
  return g->launch_ns + g->cold_ns + g->finish_ns + g->start_jitter_ns + k->busy_blocks * g->block_start_ns +
         whole_warps(d, lanes_of(k, 0)) * g->warp_start_ns;
}

/* A kernel whose duration is given makes it by its steps; end_kernel adds what they lack, and the stalls. */
static void set_pace(struct uvm_engine *x, const struct uvm__device *d, struct uvm__kernel *k, uint64_t steps) {
  k->step_ns = d->proc ? x->machine->gpu.step_ns : 0;
  k->store_step_ns = d->proc ? x->machine->gpu.store_step_ns : 0;
  if (!k->has_ns) return;
  uint64_t around = around_steps(x, d, k);
  k->step_ns = k->store_step_ns = steps && k->ns > around ? (k->ns - around) / steps : 0;
}

void uvm__kernel_begin(struct uvm_engine *x, struct uvm__kernel *k) {
  struct uvm__device *d = x->devices[k->proc];
  uint64_t lanes = lanes_of(k, 0);
  if (d->proc && whole_warps(d, lanes) * d->warp > d->lanes_per_sm) {
    uvm__fail(x, k->line, "expected at most %llu lanes in a block on %s, found %llu", (unsigned long long)d->lanes_per_sm,
              x->machine->title, (unsigned long long)lanes);
    return;
  }
  uint64_t steps = uvm__steps(k) * (d->proc ? waves(d, k) : 1); /* one after the other */
  set_pace(x, d, k, steps);
  if (!d->kernels.n) d->next_sm = 0, d->start = x->now + (d->proc ? x->machine->gpu.cold_ns : 0);
  UVM_PUSH(&d->kernels) = k;
  uvm_ns end;
  if (uvm__resident_end(x, d, k, steps, &end)) return end_kernel(x, d, k, end);
  start_blocks(x, d);
  if (!k->busy_blocks) end_kernel(x, d, k, x->now);
}
