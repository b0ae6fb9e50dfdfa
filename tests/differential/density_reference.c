/* The tree prefetcher against a naive one, written from the specification's text with arrays of bool and loops: random
 * blocks, residency, faults, thrashing pages and thresholds. The two share no code. */
#include "tests/unit/fake_view.h"
#include "policies/policies.h"

#define CASES 100000
#define MAX (UVM_BLOCK_PAGES + 16)

struct input { int first, n, threshold; bool quirk, r[MAX], f[MAX], t[MAX]; };    /* pages count from the block's first */

static bool any(const bool *a, int from, int to) {
  for (int i = from; i < to; i++)
    if (a[i]) return true;
  return false;
}

static void grow_group(const struct input *in, bool *b, int off, int from, int to) {
  if (from >= to || !any(in->f, from, to) || any(in->t, from, to)) return;
  for (int i = from; i < to; i++) b[i + off] = true;
}

/* Steps a to c: the leaves, the big pages, the growth to 64 KiB. Returns off. */
static int plant(const struct input *in, bool *b) {
  int bf = 0, be = in->n;
  while ((in->first + bf) % 16) bf++;
  while ((in->first + be) % 16) be--;
  bool big = bf < be;
  int off = big && bf > 0 ? 16 - bf : 0;
  for (int i = 0; i < MAX; i++) b[i] = false;
  for (int i = 0; i < in->n; i++) b[i + off] = in->r[i] || in->f[i];
  if (!big) {
    grow_group(in, b, off, 0, in->n);
    return off;
  }
  grow_group(in, b, off, 0, bf);
  for (int g = bf; g < be; g += 16) grow_group(in, b, off, g, g + 16);
  grow_group(in, b, off, be, in->n);
  return off;
}

static int translate(const struct input *in, int off, int x) {
  if (x >= off) return x - off < in->n ? x - off : in->n;
  return in->quirk ? off : 0;
}

/* Step d, then 4 and 6. */
static void reference(const struct input *in, bool *pf) {
  bool b[MAX];
  int off = plant(in, b), l = in->n + off, levels = 1;
  while (1 << (levels - 1) < l) levels++;
  for (int i = 0; i < MAX; i++) pf[i] = false;
  for (int p = 0; p < in->n; p++) {
    if (!in->f[p] || in->t[p]) continue;
    int best_a = -1, best_b = -1;
    for (int level = 0; level < levels; level++) {
      int size = 1 << level, a = (p + off) / size * size, end = a + size < l ? a + size : l, count = 0;
      for (int i = a; i < end; i++) count += b[i];
      if (100 * count > in->threshold * (end - a)) best_a = a, best_b = end;
    }
    if (best_a < 0) continue;
    int from = translate(in, off, best_a), to = translate(in, off, best_b);
    for (int i = from; i < to; i++) pf[i] = true;
    if (to == in->n) break;
  }
  for (int i = 0; i < in->n; i++) pf[i] = pf[i] && !in->f[i] && !in->t[i];
}

static uint64_t seed = 580;
static int below(int n) { return (int)(uvm_random(&seed) % (uint64_t)n); }

/* Runs of random length up to `longest`, about `percent` of the pages set. */
static void fill(bool *a, int n, int percent, int longest) {
  for (int i = 0; i < n;) {
    bool set = below(100) < percent;
    for (int run = 1 + below(longest); run && i < n; run--) a[i++] = set;
  }
}

static struct input draw(void) {
  struct input in = {.n = UVM_BLOCK_PAGES, .threshold = 51, .quirk = below(2)};
  switch (below(4)) {
  case 0: break;                                /* whole */
  case 1: in.first = below(512); in.n = 512 - in.first; break;
  case 2: in.first = below(512); in.n = 1 + below(512 - in.first); break;
  case 3: in.first = below(480); in.n = 1 + below(32); break;
  }
  if (below(2)) in.threshold = below(101);
  static const int runs[] = {1, 16, 64, 300};
  fill(in.r, in.n, below(101), runs[below(4)]);
  if (below(3) == 0) fill(in.t, in.n, below(20), 3);
  int faults = below(50) ? 1 + below(8) : 1 + below(200);
  for (int p = below(in.n); faults--; p = below(3) ? (p + 1 + below(20)) % in.n : below(in.n)) in.f[p] = true;
  return in;
}

static uvm_mask mask_of(const bool *a, int first, int n) {
  uvm_mask m = {{0}};
  for (int i = 0; i < n; i++)
    if (a[i]) uvm_mask_add(&m, first + i);
  return m;
}

static void test_random_cases(void **state) {
  (void)state;
  uint64_t prefetched = 0;
  uvm_view *v[101][2] = {{0}};
  for (int t = 0; t <= 100; t++)
    for (int q = 0; q < 2; q++) {
      char text[16];
      v[t][q] = fake_open(&uvm_policy_density, PCIE);
      fake_option(v[t][q], "threshold", (sprintf(text, "%d", t), text));
      fake_option(v[t][q], "clamp_quirk", q ? "1" : "0");
      fake_start(v[t][q]);
    }
  for (int i = 0; i < CASES; i++) {
    struct input in = draw();
    bool pf[MAX];
    reference(&in, pf);
    uvm_view *w = v[in.threshold][in.quirk];
    w->block.first = (uint16_t)in.first, w->block.pages = (uint16_t)in.n;
    w->resident[GPU] = mask_of(in.r, in.first, in.n);
    uvm_mask faults = mask_of(in.f, in.first, in.n), thrashing = mask_of(in.t, in.first, in.n);
    uvm_mask expected = mask_of(pf, in.first, in.n), found;
    w->thrashing = uvm_mask_empty(&thrashing) ? NULL : &thrashing;
    uvm_policy_density.prefetch(w->state, w, 1, GPU, &faults, &found);
    if (memcmp(&expected, &found, sizeof found))
      fail_msg("case %d (first %d, %d pages, threshold %d, quirk %d): expected %s, found %s", i, in.first, in.n, in.threshold, in.quirk,
               fake_text(&expected, in.first), fake_text(&found, in.first));
    prefetched += (uint64_t)uvm_mask_count(&found);
  }
  assert_true(prefetched > CASES);              /* the cases are worth something */
  for (int t = 0; t <= 100; t++)
    for (int q = 0; q < 2; q++) fake_close(v[t][q]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_cases)};
  return UVM_RUN(tests);
}
