/* Which pages a warp touches: the arithmetic against a naive enumeration, element by element and lane by lane, of what the
 * trace format says. */
#include "model/model.h"
#include "tests/unit/unit.h"

/* A page touched: in which step and part of its warp (parts counted from 0 in each step), what for. */
struct hit {
  uint64_t step, part, record, page;
  bool writing;
};
typedef UVM_VEC(struct hit) hits;

static struct uvm_alloc alloc = {.bytes = UINT64_MAX};
static struct uvm_alloc *const allocs[] = {&alloc};
static struct uvm_space space;

static struct uvm__kernel *kernel(uint64_t lanes, uint64_t per_block, struct uvm_trace_access *a, size_t n) {
  space.allocs.v = (struct uvm_alloc **)allocs;
  struct uvm_trace_record r = {.proc = 1, .lanes = lanes, .lanes_per_block = per_block, .accesses = a, .naccesses = n};
  return uvm__kernel_create(&r, &space);
}

/* -- what the engine's arithmetic says -- */

static void walk(const struct uvm__kernel *k, const struct uvm__lanes *w, hits *out) {
  struct uvm__cursor c = {0};
  for (uint64_t step = 0; uvm__next_step(k, w, &c); step++) {
    uint64_t part = 0;
    for (bool first = true; uvm__next_part(k, w, &c); first = false) {
      part += !first && c.fence;
      while (uvm__next_pages(&k->records.v[c.record], &c))
        for (; c.page <= c.last; c.page++) UVM_PUSH(out) = (struct hit){step, part, c.record, c.page, c.writing};
    }
    assert_false(uvm__next_part(k, w, &c)); /* over stays over */
  }
}

/* -- the same, naively -- */

static void add_range(hits *out, size_t from, struct hit h, uint64_t begin, uint64_t end) {
  for (h.page = begin / UVM_PAGE; h.page <= (end - 1) / UVM_PAGE; h.page++) {
    bool known = false; /* a warp coalesces a step of a record to pages */
    for (size_t i = from; i < out->n; i++)
      known |= out->v[i].record == h.record && out->v[i].writing == h.writing && out->v[i].page == h.page;
    if (!known) UVM_PUSH(out) = h;
  }
}

static uint64_t min(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Element that lane i of the block takes in step j; UINT64_MAX none. */
static uint64_t element(const struct uvm__kernel *k, const struct uvm_trace_access *a, uint64_t block, uint64_t i, uint64_t j) {
  uint64_t n = (a->bytes + a->step - 1) / a->step, per = min(k->per_block, k->lanes - block * k->per_block);
  if (a->split == UVM_SPLIT_CYCLIC) {
    uint64_t e = block * k->per_block + i + j * k->lanes;
    return e < n ? e : UINT64_MAX;
  }
  uint64_t blocks = (k->lanes + k->per_block - 1) / k->per_block, c = (n + blocks - 1) / blocks, e = block * c + i + j * per;
  return e < min(n, (block + 1) * c) ? e : UINT64_MAX;
}

static void naive_loop(const struct uvm__kernel *k, const struct uvm_trace_access *a, size_t first, size_t end, const struct uvm__lanes *w,
                       uint64_t *step, hits *out) {
  for (uint64_t j = 0;; j++) {
    size_t from = out->n;
    uint64_t part = 0;
    bool wrote = false, any = false;
    for (size_t r = first; r < end; r++)
      for (int writing = 0; writing < 2; writing++) {
        if (writing ? a[r].op == UVM_OP_R : a[r].op == UVM_OP_W || a[r].op == UVM_OP_ATOMIC) continue;
        bool mine = false;
        for (uint64_t i = w->first; i < w->first + w->count; i++) mine |= element(k, &a[r], w->block, i, j) != UINT64_MAX;
        if (!mine) continue;
        if (any) part += writing || wrote;
        any = true, wrote = writing;
        for (uint64_t i = w->first; i < w->first + w->count; i++) {
          uint64_t e = element(k, &a[r], w->block, i, j), at = a[r].offset + e * a[r].step;
          if (e != UINT64_MAX)
            add_range(out, from, (struct hit){*step, part, r, 0, writing}, at, min(at + a[r].width, a[r].offset + a[r].bytes));
        }
      }
    if (!any) return;
    ++*step;
  }
}

/* The lane's t-th single accesses are one step of its warp: reads, then writes. */
static void naive_singles(const struct uvm__kernel *k, const struct uvm_trace_access *a, size_t first, size_t end, uint64_t serial,
                          const struct uvm__lanes *w, uint64_t *step, hits *out) {
  uint64_t blocks = (k->lanes + k->per_block - 1) / k->per_block, turn = a[first].by_block ? blocks : k->lanes;
  for (uint64_t round = 0; round <= (serial + (end - first)) / turn; round++) {
    bool any = false, read = false;
    for (int writing = 0; writing < 2; writing++)
      for (size_t r = first; r < end; r++) {
        uint64_t number = serial + (r - first);
        uint64_t lane = a[r].by_block ? number % blocks * k->per_block : number % k->lanes;
        if (number / turn != round || lane < w->block * k->per_block + w->first || lane >= w->block * k->per_block + w->first + w->count)
          continue;
        any = true;
        if (writing ? a[r].op == UVM_OP_R : a[r].op == UVM_OP_W || a[r].op == UVM_OP_ATOMIC) continue;
        read |= !writing;
        add_range(out, out->n, (struct hit){*step, writing && read, r, 0, writing}, a[r].offset, a[r].offset + a[r].bytes);
      }
    *step += any;
  }
}

static void naive(const struct uvm__kernel *k, const struct uvm_trace_access *a, size_t n, const struct uvm__lanes *w, hits *out) {
  uint64_t step = 0, serial = 0;
  for (size_t i = 0, end; i < n; i = end) {
    bool loop = a[i].split != UVM_SPLIT_NONE;
    for (end = i + 1; end < n && (a[end].split != UVM_SPLIT_NONE) == loop && a[end].by_block == a[i].by_block; end++)
      if (loop && a[end].next) break;
    if (loop)
      naive_loop(k, a, i, end, w, &step, out);
    else
      naive_singles(k, a, i, end, serial, w, &step, out), serial += end - i;
  }
}

/* -- comparing -- */

static int by_place(const void *x, const void *y) {
  const struct hit *a = x, *b = y;
  if (a->step != b->step) return a->step < b->step ? -1 : 1;
  if (a->part != b->part) return a->part < b->part ? -1 : 1;
  if (a->record != b->record) return a->record < b->record ? -1 : 1;
  return a->page < b->page ? -1 : a->page > b->page;
}

static void compare(const struct uvm__kernel *k, const struct uvm_trace_access *a, size_t n, const struct uvm__lanes *w) {
  hits got = {0}, want = {0};
  walk(k, w, &got);
  naive(k, a, n, w, &want);
  if (got.n) qsort(got.v, got.n, sizeof *got.v, by_place);
  if (want.n) qsort(want.v, want.n, sizeof *want.v, by_place);
  assert_int_equal(got.n, want.n);
  for (size_t i = 0; i < got.n; i++) {
    assert_int_equal(by_place(&got.v[i], &want.v[i]), 0);
    assert_int_equal(got.v[i].writing, want.v[i].writing);
  }
  if (want.n) assert_true(w->first < uvm__busy_lanes(k, w->block) && w->block < k->busy_blocks); /* who touches anything is started */
  uvm_mem_free(got.v);
  uvm_mem_free(want.v);
}

static void compare_all(uint64_t lanes, uint64_t per_block, struct uvm_trace_access *a, size_t n) {
  struct uvm__kernel *k = kernel(lanes, per_block, a, n);
  for (uint64_t block = 0; block < k->blocks; block++) {
    uint64_t of_block = min(per_block, lanes - block * per_block);
    for (uint64_t first = 0; first < of_block; first += 32)
      compare(k, a, n, &(struct uvm__lanes){block, first, min(32, of_block - first), of_block});
  }
  uvm__kernel_destroy(k);
}

/* -- random kernels -- */

static uint64_t draw(uint64_t *state, uint64_t below) { return uvm_random(state) % below; }

static struct uvm_trace_access draw_access(uint64_t *s) {
  struct uvm_trace_access a = {
      .op = (uint8_t)draw(s, 4), .split = (uint8_t)draw(s, 3), .offset = draw(s, 3 * UVM_PAGE), .bytes = 1 + draw(s, 60000)};
  a.next = draw(s, 5) == 0;
  if (a.split == UVM_SPLIT_NONE) return a.by_block = draw(s, 3) == 0, a.step = UVM_PAGE, a.width = 8, a;
  a.width = 1 + draw(s, draw(s, 2) ? 64 : 9000);
  a.step = draw(s, 2) ? a.width : 1 + draw(s, 9000);
  return a;
}

static void pages_are_those_of_the_elements(void **state) {
  (void)state;
  uint64_t seed = 1;
  for (int round = 0; round < 400; round++) {
    struct uvm_trace_access a[7];
    size_t n = 1 + draw(&seed, 7);
    for (size_t i = 0; i < n; i++) a[i] = draw_access(&seed);
    uint64_t lanes = 1 + draw(&seed, 150);
    compare_all(lanes, 1 + draw(&seed, lanes + 3), a, n);
  }
}

/* -- by hand -- */

/* Page-strided c[i] = a[i] + b[i]: 32 lanes, 64 reads together, then 32 writes. */
static void a_strided_add_reads_both_then_writes(void **state) {
  (void)state;
  struct uvm_trace_access a[3] = {{.op = UVM_OP_R}, {.op = UVM_OP_R}, {.op = UVM_OP_W}};
  for (int i = 0; i < 3; i++)
    a[i].split = UVM_SPLIT_CYCLIC, a[i].offset = (uint64_t)i << 21, a[i].bytes = 32 * UVM_PAGE, a[i].step = UVM_PAGE, a[i].width = 4;
  struct uvm__kernel *k = kernel(32, 32, a, 3);
  hits h = {0};
  walk(k, &(struct uvm__lanes){0, 0, 32, 32}, &h);
  assert_int_equal(h.n, 96);
  for (size_t i = 0; i < 96; i++) {
    assert_int_equal(h.v[i].part, i >= 64);
    assert_int_equal(h.v[i].writing, i >= 64);
    assert_int_equal(h.v[i].page, i / 32 * 512 + i % 32);
  }
  uvm_mem_free(h.v);
  uvm__kernel_destroy(k);
}

/* 270,336 lanes, 256 a block, 16 B: 1,056 blocks, block b touches page j 1056 + b in step j, each of its 8 warps. */
static void a_wide_stream_touches_a_page_a_block_and_step(void **state) {
  (void)state;
  struct uvm_trace_access a = {.op = UVM_OP_R, .split = UVM_SPLIT_CYCLIC, .bytes = 256 << 20, .step = 16, .width = 16};
  struct uvm__kernel *k = kernel(270336, 256, &a, 1);
  for (uint64_t block = 0; block < 1056; block += 527)
    for (uint64_t first = 0; first < 256; first += 32) {
      hits h = {0};
      walk(k, &(struct uvm__lanes){block, first, 32, 256}, &h);
      assert_int_equal(h.n, block < 65536 % 1056 ? 63 : 62);
      for (size_t j = 0; j < h.n; j++) assert_int_equal(h.v[j].page, j * 1056 + block);
      uvm_mem_free(h.v);
    }
  assert_int_equal(uvm__steps(k), 63);
  uvm__kernel_destroy(k);
}

/* Lanes that have nothing to do cost nothing, however many. */
static void idle_lanes_are_not_started(void **state) {
  (void)state;
  struct uvm_trace_access a = {.op = UVM_OP_R, .split = UVM_SPLIT_CYCLIC, .bytes = 1000, .step = 10, .width = 10};
  struct uvm__kernel *k = kernel(1ull << 62, 64, &a, 1);
  assert_int_equal(k->busy_blocks, 2); /* 100 elements: lanes 0 to 99 */
  assert_int_equal(uvm__busy_lanes(k, 0), 64);
  assert_int_equal(uvm__busy_lanes(k, 1), 36);
  uvm__kernel_destroy(k);
}

/* -- bytes and elements of page ranges -- */

static void bytes_and_elements_of_pages_are_exact(void **state) {
  (void)state;
  uint64_t seed = 2;
  for (int round = 0; round < 2000; round++) {
    struct uvm_trace_access t = {
        .offset = draw(&seed, 9000), .bytes = 1 + draw(&seed, 30000), .step = 1 + draw(&seed, 6000), .width = 1 + draw(&seed, 6000)};
    struct uvm__record r;
    uvm__record_set(&r, &alloc, &t);
    uint64_t k = draw(&seed, r.elements), m = 1 + draw(&seed, r.elements - k), a = draw(&seed, 6), b = a + draw(&seed, 6);
    uint64_t bytes = 0, count = 0;
    for (uint64_t e = k; e < k + m; e++) {
      uint64_t at = t.offset + e * t.step, end = min(at + t.width, t.offset + t.bytes);
      count += at >= a * UVM_PAGE && at < b * UVM_PAGE;
      uint64_t from = at > a * UVM_PAGE ? at : a * UVM_PAGE, to = min(end, b * UVM_PAGE);
      if (to > from) bytes += to - from;
    }
    assert_int_equal(uvm__bytes_in(&r, k, m, a, b), bytes);
    assert_int_equal(uvm__elements_in(&r, k, m, a, b), count);
  }
}

/* -- the queue -- */

/* The first of those pending: the earliest, of equal ones the one that came first. */
static size_t first_pending(const struct uvm__event *v, size_t n) {
  size_t first = 0;
  for (size_t i = 1; i < n; i++)
    if (v[i].time < v[first].time) first = i;
  return first;
}

/* Times near and far, as they are told: never before the event that left last. A list in order of coming says what leaves. */
static void events_leave_by_time_then_in_the_order_they_came(void **state) {
  (void)state;
  struct uvm__queue q = {0};
  struct uvm__event pending[500], e;
  uint64_t seed = 3, now = 0;
  size_t n = 0;
  for (uint32_t i = 0; i < 200000; i++) {
    if (n < 500 && draw(&seed, 2)) {
      uint64_t span = draw(&seed, 30) ? 1ull << draw(&seed, 14) : 1ull << draw(&seed, 52);
      pending[n++] = (struct uvm__event){.time = now + draw(&seed, span), .b = i};
      uvm__queue_push(&q, pending[n - 1]);
    } else if (n) {
      size_t first = first_pending(pending, n);
      if (draw(&seed, 2)) assert_int_equal(uvm__queue_next(&q), pending[first].time);
      assert_true(uvm__queue_pop(&q, &e));
      assert_int_equal(e.time, pending[first].time);
      assert_int_equal(e.b, pending[first].b);
      now = e.time;
      memmove(&pending[first], &pending[first + 1], (--n - first) * sizeof *pending);
    }
    assert_int_equal(uvm__queue_empty(&q), !n);
  }
  while (n--) assert_true(uvm__queue_pop(&q, &e));
  assert_false(uvm__queue_pop(&q, &e));
  assert_int_equal(uvm__queue_next(&q), UVM_NEVER);
  uvm__queue_release(&q);
}

/* 2^33 elements of 8 bytes side by side: 2^24 pages, as one run. */
static void a_whole_record_may_have_more_elements_than_32_bits_count(void **state) {
  (void)state;
  struct uvm__record r;
  uvm__record_set(&r, &alloc, &(struct uvm_trace_access){.op = UVM_OP_R, .bytes = 1ull << 36, .step = 8, .width = 8});
  assert_int_equal(r.elements, 1ull << 33);
  struct uvm__cursor c = {.m = r.elements, .page = 1};
  assert_true(uvm__next_pages(&r, &c));
  assert_true(c.page == 0 && c.last == (1ull << 24) - 1);
  c.page = c.last + 1;
  assert_false(uvm__next_pages(&r, &c));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pages_are_those_of_the_elements),
      cmocka_unit_test(a_strided_add_reads_both_then_writes),
      cmocka_unit_test(a_wide_stream_touches_a_page_a_block_and_step),
      cmocka_unit_test(idle_lanes_are_not_started),
      cmocka_unit_test(bytes_and_elements_of_pages_are_exact),
      cmocka_unit_test(a_whole_record_may_have_more_elements_than_32_bits_count),
      cmocka_unit_test(events_leave_by_time_then_in_the_order_they_came),
  };
  return UVM_RUN(tests);
}
