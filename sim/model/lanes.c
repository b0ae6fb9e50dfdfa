/* Which pages a warp touches: arithmetic on records, no state of the machine.
 *
 * A kernel's records become phases: a loop (consecutive split records), or consecutive single accesses by lane or by block. A
 * phase has steps; a step has parts: in a loop the reads of consecutive records are issued together and each write or atomic
 * is a part of its own; among single accesses of a warp's lanes the reads are one part, the writes another. */
#include <assert.h>
#include "model/model.h"

void uvm__record_set(struct uvm__record *r, struct uvm_alloc *a, const struct uvm_trace_access *t) {
  *r = (struct uvm__record){.alloc = a, .op = t->op, .split = t->split, .offset = t->offset, .end = t->offset + t->bytes, .line = t->line};
  r->step = t->step ? t->step : t->bytes;
  r->width = t->width ? t->width : t->bytes;
  r->elements = (t->bytes - 1) / r->step + 1;
}

/* -- bytes -- */

/* Bytes that elements [k, k + m), taken to begin at 0, have below x. */
static __uint128_t bytes_below(const struct uvm__record *r, uint64_t m, uint64_t x) {
  uint64_t whole = x < r->width ? 0 : (x - r->width) / r->step + 1;
  if (whole > m) whole = m;
  uint64_t begun = x ? (x - 1) / r->step + 1 : 0;
  if (begun > m) begun = m;
  __uint128_t n = begun - whole; /* cut by x: x - k step each, k from `whole` on */
  __uint128_t starts = n * whole + (n ? n * (n - 1) / 2 : 0);
  return (__uint128_t)whole * r->width + n * x - starts * r->step;
}

uint64_t uvm__bytes_in(const struct uvm__record *r, uint64_t k, uint64_t m, uint64_t a, uint64_t b) {
  uint64_t origin = r->offset + k * r->step, from = a * UVM_PAGE, to = b * UVM_PAGE;
  if (to > r->end) to = r->end;
  if (from < origin) from = origin;
  if (to <= from) return 0;
  if (r->step == r->width) return uvm_min(to - origin, m * r->step) - uvm_min(from - origin, m * r->step); /* side by side */
  __uint128_t n = bytes_below(r, m, to - origin) - bytes_below(r, m, from - origin);
  return n > UINT64_MAX ? UINT64_MAX : (uint64_t)n;
}

uint64_t uvm__elements_in(const struct uvm__record *r, uint64_t k, uint64_t m, uint64_t a, uint64_t b) {
  uint64_t origin = r->offset + k * r->step, from = a * UVM_PAGE, to = b * UVM_PAGE;
  uint64_t first = from > origin ? (from - origin - 1) / r->step + 1 : 0, end = m;
  if (to <= origin + (m - 1) * r->step) end = to > origin ? (to - origin - 1) / r->step + 1 : 0;
  return end > first ? end - first : 0;
}

/* -- kernels -- */

static uint8_t phase_of(const struct uvm_trace_access *t) {
  return t->split != UVM_SPLIT_NONE ? UVM__LOOP : t->by_block ? UVM__BY_BLOCK : UVM__BY_LANE;
}

static void add_phases(struct uvm__kernel *k, const struct uvm_trace_access *t, size_t n) {
  uint64_t serial = 0;
  for (size_t i = 0; i < n; i++) {
    uint8_t kind = phase_of(&t[i]);
    struct uvm__phase *last = k->phases.n ? &k->phases.v[k->phases.n - 1] : NULL;
    if (last && last->kind == kind && !(kind == UVM__LOOP && t[i].next))
      last->count++;
    else
      UVM_PUSH(&k->phases) = (struct uvm__phase){kind, (uint32_t)i, 1, serial};
    serial += kind != UVM__LOOP;
  }
}

static uint64_t chunk(const struct uvm__kernel *k, const struct uvm__record *r) { return (r->elements - 1) / k->blocks + 1; }

/* Of a phase: lanes [0, lanes) of blocks [0, blocks), and of the whole kernel's lanes those below `below`. */
struct busy {
  uint64_t lanes, blocks, below;
};
static struct busy busy_of(const struct uvm__kernel *k, const struct uvm__phase *p, uint32_t record) {
  const struct uvm__record *r = &k->records.v[record];
  if (p->kind == UVM__BY_BLOCK) return (struct busy){1, p->serial + p->count, UINT64_MAX};
  if (p->kind == UVM__BY_LANE) return (struct busy){k->per_block, k->blocks, p->serial / k->lanes ? k->lanes : p->serial + p->count};
  if (r->split == UVM_SPLIT_CYCLIC) return (struct busy){k->per_block, k->blocks, r->elements};
  return (struct busy){chunk(k, r), (r->elements - 1) / chunk(k, r) + 1, UINT64_MAX};
}

uint64_t uvm__busy_lanes(const struct uvm__kernel *k, uint64_t block) {
  uint64_t most = 0, before = block * k->per_block;
  for (size_t i = 0; i < k->phases.n; i++)
    for (uint32_t j = 0; j < (k->phases.v[i].kind == UVM__LOOP ? k->phases.v[i].count : 1); j++) {
      struct busy b = busy_of(k, &k->phases.v[i], k->phases.v[i].first + j);
      if (block >= b.blocks || before >= b.below) continue;
      uint64_t lanes = b.below - before < b.lanes ? b.below - before : b.lanes;
      if (lanes > most) most = lanes;
    }
  uint64_t all = k->lanes - before < k->per_block ? k->lanes - before : k->per_block;
  return most < all ? most : all;
}

static void set_busy_blocks(struct uvm__kernel *k) {
  for (size_t i = 0; i < k->phases.n; i++)
    for (uint32_t j = 0; j < (k->phases.v[i].kind == UVM__LOOP ? k->phases.v[i].count : 1); j++) {
      struct busy b = busy_of(k, &k->phases.v[i], k->phases.v[i].first + j);
      uint64_t blocks = (b.below - 1) / k->per_block + 1;
      if (blocks > b.blocks) blocks = b.blocks;
      if (blocks > k->busy_blocks) k->busy_blocks = blocks;
    }
  if (k->busy_blocks > k->blocks) k->busy_blocks = k->blocks;
}

struct uvm__kernel *uvm__kernel_create(const struct uvm_trace_record *r, const struct uvm_space *s) {
  struct uvm__kernel *k = uvm_mem(sizeof *k);
  *k = (struct uvm__kernel){
      .proc = r->proc, .lanes = r->lanes, .per_block = r->lanes_per_block, .has_ns = r->has_ns, .ns = r->ns, .line = r->line};
  k->name = uvm_copy_string(r->label ? r->label : "kernel");
  k->blocks = (r->lanes - 1) / r->lanes_per_block + 1;
  for (size_t i = 0; i < r->naccesses; i++) {
    const struct uvm_trace_access *t = &r->accesses[i];
    uvm__record_set(&UVM_PUSH(&k->records), s->allocs.v[t->alloc], t);
    k->records.v[i].rounds = k->records.v[i].elements / k->lanes;
    if (t->split == UVM_SPLIT_NONE) k->records.v[i].step = k->records.v[i].width = t->bytes, k->records.v[i].elements = 1;
  }
  add_phases(k, r->accesses, r->naccesses);
  set_busy_blocks(k);
  return k;
}

void uvm__kernel_destroy(struct uvm__kernel *k) {
  uvm_mem_free(k->name);
  uvm_mem_free(k->records.v);
  uvm_mem_free(k->phases.v);
  uvm_mem_free(k);
}

uint64_t uvm__steps(const struct uvm__kernel *k) {
  uint64_t total = 0;
  for (size_t i = 0; i < k->phases.n; i++) {
    const struct uvm__phase *p = &k->phases.v[i];
    uint64_t most = (p->count - 1) / (p->kind == UVM__BY_LANE ? k->lanes : k->blocks) + 1;
    for (uint32_t j = 0; p->kind == UVM__LOOP && j < p->count; j++) {
      const struct uvm__record *r = &k->records.v[p->first + j];
      uint64_t steps = r->split == UVM_SPLIT_CYCLIC ? (r->elements - 1) / k->lanes + 1 : (chunk(k, r) - 1) / k->per_block + 1;
      if (!j || steps > most) most = steps;
    }
    total += most;
  }
  return total;
}

/* -- a step's elements -- */

/* Elements of a split record that the warp's lanes take in a step: consecutive ones. */
static bool elements_of(const struct uvm__kernel *k, const struct uvm__lanes *w, const struct uvm__record *r, uint64_t step,
                        uint64_t *first, uint32_t *count) {
  uint64_t end = r->elements;
  if (r->split == UVM_SPLIT_CYCLIC) {
    if (step > r->rounds) return false;
    *first = step * k->lanes + w->block * k->per_block + w->first;
  } else {
    uint64_t c = chunk(k, r), begin = w->block * c;
    if (begin >= end || step > c / w->of_block) return false;
    if (end - begin > c) end = begin + c;
    *first = begin + step * w->of_block + w->first;
  }
  if (*first >= end) return false;
  *count = (uint32_t)(end - *first < w->count ? end - *first : w->count);
  return true;
}

/* Records of a step of single accesses: those whose number falls to the warp's lanes, or to its block. */
static bool singles_of(const struct uvm__kernel *k, const struct uvm__lanes *w, const struct uvm__phase *p, struct uvm__cursor *c) {
  bool by_lane = p->kind == UVM__BY_LANE;
  if (!by_lane && w->first) return false;
  uint64_t turn = by_lane ? k->lanes : k->blocks, end = p->serial + p->count;
  uint64_t from = by_lane ? w->block * k->per_block + w->first : w->block, count = by_lane ? w->count : 1;
  for (;; c->step++) {
    uint64_t round = p->serial / turn + c->step;
    if (round > end / turn) return false;
    uint64_t a = round * turn + from, b = a + count;
    if (a >= end) return false;
    if (b <= p->serial) continue;
    if (a < p->serial) a = p->serial;
    if (b > end) b = end;
    c->record = (uint32_t)(p->first + (a - p->serial));
    c->end = (uint32_t)(p->first + (b - p->serial));
    return true;
  }
}

static bool loop_goes_on(const struct uvm__kernel *k, const struct uvm__lanes *w, const struct uvm__phase *p, uint64_t step) {
  uint64_t first;
  uint32_t count;
  for (uint32_t i = 0; i < p->count; i++)
    if (elements_of(k, w, &k->records.v[p->first + i], step, &first, &count)) return true;
  return false;
}

bool uvm__next_step(const struct uvm__kernel *k, const struct uvm__lanes *w, struct uvm__cursor *c) {
  if (c->begun) c->step++;
  for (; c->phase < k->phases.n; c->phase++, c->step = 0) {
    const struct uvm__phase *p = &k->phases.v[c->phase];
    c->record = p->first, c->end = p->first + p->count;
    c->begun = p->kind == UVM__LOOP ? loop_goes_on(k, w, p, c->step) : singles_of(k, w, p, c);
    c->open = c->writing = c->fence = c->over = false;
    c->page = 1, c->last = 0;
    if (c->begun) return true;
  }
  return false;
}

/* -- parts -- */

static void open_part(struct uvm__cursor *c, uint64_t first, uint32_t count, bool writing, bool fence) {
  c->k = first, c->m = count, c->element = 0;
  c->open = true, c->writing = writing, c->fence = fence;
  c->page = 1, c->last = 0;
}

/* In a loop: the read of a record, then its write; a write waits for all before it and holds back all behind it. */
static bool next_loop_part(const struct uvm__kernel *k, const struct uvm__lanes *w, struct uvm__cursor *c) {
  const struct uvm__record *r = &k->records.v[c->record];
  if (c->open && !c->writing && uvm__writes(r->op)) return open_part(c, c->k, c->m, true, true), true;
  bool wrote = c->open && c->writing;
  for (c->record += c->open; c->record < c->end; c->record++) {
    uint64_t first;
    uint32_t count;
    r = &k->records.v[c->record];
    if (!elements_of(k, w, r, c->step, &first, &count)) continue;
    bool writing = !uvm__reads(r->op);
    return open_part(c, first, count, writing, writing || wrote), true;
  }
  return false;
}

/* Single accesses: all reads, then all writes. `k` keeps the step's first record for the second turn. */
static bool next_single_part(const struct uvm__kernel *k, const struct uvm__phase *p, const struct uvm__lanes *w, struct uvm__cursor *c) {
  bool writing = c->open && c->writing, fence = false;
  if (c->open) c->record++;
  for (;;) {
    for (; c->record < c->end; c->record++) {
      uint8_t op = k->records.v[c->record].op;
      if (writing ? uvm__writes(op) : uvm__reads(op)) return open_part(c, 0, 1, writing, fence), true;
    }
    if (writing) return false;
    writing = fence = true;
    singles_of(k, w, p, c); /* back to the step's first record */
  }
}

bool uvm__next_part(const struct uvm__kernel *k, const struct uvm__lanes *w, struct uvm__cursor *c) {
  const struct uvm__phase *p = &k->phases.v[c->phase];
  if (!c->over) c->over = !(p->kind == UVM__LOOP ? next_loop_part(k, w, c) : next_single_part(k, p, w, c));
  return !c->over;
}

/* -- pages -- */

bool uvm__next_pages(const struct uvm__record *r, struct uvm__cursor *c) {
  assert(c->page > c->last);
  if (c->element == c->m) return false;
  uint64_t beyond = c->element ? c->last + 1 : 0;
  if (r->step <= UVM_PAGE || r->width >= r->step) {
    c->page = uvm__first_page(r, c->k);
    c->last = uvm__last_page(r, c->k + c->m - 1);
    c->element = c->m;
    return true;
  }
  for (; c->element < c->m; c->element++) { /* apart: each element's own pages, none twice */
    uint64_t first = uvm__first_page(r, c->k + c->element), last = uvm__last_page(r, c->k + c->element);
    if (last < beyond) continue;
    c->page = first > beyond ? first : beyond;
    c->last = last;
    c->element++;
    return true;
  }
  c->page = c->last + 1;
  return false;
}
