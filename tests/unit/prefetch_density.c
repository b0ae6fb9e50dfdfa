/* The tree prefetcher: vectors V1 to V13 of the driver's specification, one a case, and its rules about preferred
 * locations, first touches, the CPU's mappings and options. */
#include "tests/unit/fake_view.h"
#include "policies/policies.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers"   /* rows leave out what the specification does not say */

/* One service: pages faulted at once, those that must move, and (where the specification gives it) the prefetched set,
 * which may hold pages that are resident already. */
struct service { const char *faults, *moved; int n; const char *more; };
struct vector {
  const char *name;
  int first, pages;                             /* the block; 0, 0: a whole one */
  uvm_node dst, preferred;
  const char *options[4];                       /* key, value, ... */
  const char *resident, *elsewhere, *thrashing; /* at the start: on dst, on the other node */
  struct service service[17];
  enum fake_machine machine;
};

#define FAULTS_ON_GPU .dst = GPU, .preferred = UVM_NONE
static const struct vector vectors[] = {
    {.name = "V1 mixed order", FAULTS_ON_GPU,
     .service = {{"3", "[0,16)", 16, "[0,3) [4,16)"},
                 {"40", "[32,48)", 16, "[32,40) [41,48)"},
                 {"16", "[16,32) [48,64)", 32, "[0,16) [17,64)"},
                 {"100", "[64,128)", 64, "[0,100) [101,128)"},
                 {"300", "[288,304)", 16, "[288,300) [301,304)"}}},
    {.name = "V2 sequential", FAULTS_ON_GPU,
     .service = {{"0", "[0,16)", 16}, {"16", "[16,32)", 16}, {"32", "[32,64)", 32}, {"64", "[64,128)", 64},
                 {"128", "[128,256)", 128}, {"256", "[256,512)", 256}}},
    {.name = "V3 reverse", FAULTS_ON_GPU,
     .service = {{"511", "[496,512)", 16}, {"495", "[480,496)", 16}, {"479", "[448,480)", 32}, {"447", "[384,448)", 64},
                 {"383", "[256,384)", 128}, {"255", "[0,256)", 256}}},
    {.name = "V4 stride", FAULTS_ON_GPU,
     .service = {{"0", "[0,16)", 16}, {"32", "[32,48)", 16}, {"64", "[64,80)", 16}, {"96", "[96,112)", 16},
                 {"128", "[128,144)", 16}, {"160", "[160,176)", 16}, {"192", "[192,208)", 16}, {"224", "[224,240)", 16},
                 {"256", "[256,272)", 16}, {"288", "[288,304)", 16}, {"320", "[320,336)", 16}, {"352", "[352,368)", 16},
                 {"384", "[384,400)", 16}, {"416", "[416,432)", 16}, {"448", "[448,464)", 16}, {"480", "[480,496)", 16}}},
    {.name = "V5 one batch", FAULTS_ON_GPU,
     .service = {{"0 32 64 96", "[0,16) [32,48) [64,80) [96,112)", 64, "[1,16) [33,48) [65,80) [97,112)"}}},
    {.name = "V6 one batch", FAULTS_ON_GPU,
     .service = {{"0 17 35 129 130 257", "[0,64) [128,144) [256,272)", 96}}},
    {.name = "V7 thrashing page", FAULTS_ON_GPU, .thrashing = "5",
     .service = {{"3", "3", 1, ""}, {"5", "5", 1, ""}, {"20", "[0,3) [4,5) [6,32)", 30, "[0,5) [6,20) [21,32)"}}},
    {.name = "V8 root 261", FAULTS_ON_GPU, .resident = "[0,245)", .service = {{"256", "[256,272)", 16}}},
    {.name = "V8 root 262", FAULTS_ON_GPU, .resident = "[0,246)", .service = {{"256", "[246,512)", 266}}},
    {.name = "V8 root 272", FAULTS_ON_GPU, .resident = "[0,256)", .service = {{"256", "[256,512)", 256}}},
    {.name = "V9 first touch at home", .dst = GPU, .preferred = GPU, .service = {{"3", "[0,512)", 512}}},
    {.name = "V9 out of its home", .dst = GPU, .preferred = CPU, .elsewhere = "[0,512)", .service = {{"3", "3", 1, ""}}},
    {.name = "V10 CPU", .dst = CPU, .preferred = UVM_NONE, .elsewhere = "[0,512)",
     .service = {{"3", "[0,16)", 16}, {"16", "[16,32)", 16}, {"32", "[32,64)", 32}}},
    {.name = "V11 24 pages", .pages = 24, FAULTS_ON_GPU, .service = {{"3", "[0,24)", 24}}},
    {.name = "V11 8 pages", .first = 4, .pages = 8, FAULTS_ON_GPU, .service = {{"2", "[0,8)", 8}}},
    {.name = "V12 500", .first = 12, .pages = 500, FAULTS_ON_GPU,
     .service = {{"1", "[0,4)", 4}, {"4", "4 [12,20)", 9, "[12,20)"}, {"470", "[468,484)", 16}}},
    {.name = "V12 500 corrected", .first = 12, .pages = 500, FAULTS_ON_GPU, .options = {"clamp_quirk", "0"},
     .service = {{"1", "[0,4)", 4}, {"4", "[4,20)", 16, "[0,4) [5,20)"}, {"470", "[468,484)", 16}}},
    {.name = "V12 508", .first = 4, .pages = 508, FAULTS_ON_GPU,
     .service = {{"1", "[1,2) [4,12)", 9, "[4,12)"}, {"12", "[12,28)", 16}, {"28", "[28,60)", 32}}},
    {.name = "V12 508 corrected", .first = 4, .pages = 508, FAULTS_ON_GPU, .options = {"clamp_quirk", "0"},
     .service = {{"1", "[0,12)", 12}}},
    {.name = "V13 threshold 1", FAULTS_ON_GPU, .options = {"threshold", "1"}, .service = {{"0", "[0,512)", 512}}},
    {.name = "V13 threshold 25", FAULTS_ON_GPU, .options = {"threshold", "25"},
     .service = {{"0", "[0,32)", 32}, {"16", "[32,64)", 32}}},
    {.name = "V13 threshold 50", FAULTS_ON_GPU, .options = {"threshold", "50"},
     .service = {{"0", "[0,16)", 16}, {"16", "[16,32)", 16}}},
    {.name = "V13 threshold 51", FAULTS_ON_GPU, .options = {"threshold", "51"},
     .service = {{"0", "[0,16)", 16}, {"16", "[16,32)", 16}}},
    {.name = "V13 threshold 75", FAULTS_ON_GPU, .options = {"threshold", "75"},
     .service = {{"0", "[0,16)", 16}, {"16", "[16,32)", 16}}},
    {.name = "V13 threshold 100", FAULTS_ON_GPU, .options = {"threshold", "100"}, .service = {{"0", "0", 1}, {"16", "16", 1}}},

    /* Outside the vectors: the fall-backs of section 1.5. The third service tells 51 from 101. */
    {.name = "threshold 101 means 51", FAULTS_ON_GPU, .options = {"threshold", "101"},
     .service = {{"0", "[0,16)", 16}, {"16", "[16,32)", 16}, {"32", "[32,64)", 32}}},
    {.name = "min_faults 3", FAULTS_ON_GPU, .options = {"min_faults", "3"},
     .service = {{"0", "0", 1}, {"100", "100", 1}, {"40", "[32,48)", 16}}},
    {.name = "min_faults 20", FAULTS_ON_GPU, .options = {"min_faults", "20"},
     .service = {{"[0,19)", "[0,19)", 19}, {"300", "[288,304)", 16}}},
    {.name = "min_faults 21 means 1", FAULTS_ON_GPU, .options = {"min_faults", "21"}, .service = {{"0", "[0,16)", 16}}},
    {.name = "min_faults 0 means 1", FAULTS_ON_GPU, .options = {"min_faults", "0"}, .service = {{"0", "[0,16)", 16}}},
    {.name = "disabled", .dst = GPU, .preferred = GPU, .options = {"enable", "0"}, .service = {{"3", "3", 1}}},
    {.name = "preferred here, not the first touch", .dst = GPU, .preferred = GPU, .elsewhere = "500", .service = {{"3", "[0,16)", 16}}},
    {.name = "first touch away from home", .dst = CPU, .preferred = GPU, .machine = GRACE,
     .service = {{"3", "3", 1, ""}}},
    {.name = "CPU cannot map the home: tree", .dst = CPU, .preferred = GPU, .elsewhere = "[0,512)", .service = {{"3", "[0,16)", 16}}},
    {.name = "CPU can map the home: nothing", .dst = CPU, .preferred = GPU, .elsewhere = "[0,512)", .machine = GRACE,
     .service = {{"3", "3", 1, ""}}},
    {.name = "block starts at 128 KiB", .first = 32, .pages = 200, FAULTS_ON_GPU,
     .service = {{"3", "[0,16)", 16}, {"16", "[16,32)", 16}, {"192", "[192,200)", 8}}},
};

static void assert_pages(const char *what, const struct vector *c, int service, const uvm_mask *found, const char *text, int first) {
  uvm_mask expected = fake_pages(text, first);
  if (memcmp(&expected, found, sizeof expected))
    fail_msg("%s, service %d: %s: expected %s, found %s", c->name, service + 1, what, fake_text(&expected, first), fake_text(found, first));
}

static void run_vector(void **state) {
  const struct vector *c = *state;
  uvm_view *v = fake_open(&uvm_policy_density, c->machine);
  v->range.preferred = c->preferred;
  if (c->pages) v->block.first = (uint16_t)c->first, v->block.pages = (uint16_t)c->pages;
  int first = v->block.first;
  for (int i = 0; i < 4 && c->options[i]; i += 2) fake_option(v, c->options[i], c->options[i + 1]);
  fake_start(v);
  uvm_mask *here = &v->resident[c->dst], *there = &v->resident[c->dst == CPU ? GPU : CPU], thrashing = fake_pages(c->thrashing, first);
  *here = fake_pages(c->resident, first);
  *there = fake_pages(c->elsewhere, first);
  if (c->thrashing) v->thrashing = &thrashing;
  for (int i = 0; i < 17 && c->service[i].faults; i++) {
    const struct service *s = &c->service[i];
    uvm_mask faults = fake_pages(s->faults, first), more, moved;
    uvm_policy_density.prefetch(v->state, v, 1, c->dst, &faults, &more);
    if (s->more) assert_pages("prefetched", c, i, &more, s->more, first);
    assert_false(uvm_mask_meets(&more, &faults));
    moved = more;
    uvm_mask_or(&moved, &faults);
    uvm_mask_andnot(&moved, here);
    assert_pages("moved", c, i, &moved, s->moved, first);
    assert_int_equal(uvm_mask_count(&moved), s->n);
    uvm_mask_or(here, &moved);
    uvm_mask_andnot(there, &moved);
  }
  fake_close(v);
}

/* V1's last column. */
static void test_v1_totals(void **state) {
  (void)state;
  static const int faults[] = {3, 40, 16, 100, 300}, after[] = {16, 32, 64, 128, 144};
  uvm_view *v = fake_open(&uvm_policy_density, PCIE);
  fake_start(v);
  for (int i = 0; i < 5; i++) {
    uvm_mask f = uvm_mask_range(faults[i], faults[i] + 1), more;
    uvm_policy_density.prefetch(v->state, v, 1, GPU, &f, &more);
    uvm_mask_or(&v->resident[GPU], &more);
    uvm_mask_or(&v->resident[GPU], &f);
    assert_int_equal(uvm_mask_count(&v->resident[GPU]), after[i]);
  }
  fake_close(v);
}

/* min_faults counts towards one destination: service to the CPU starts the GPU's count again. */
static void test_count_restarts(void **state) {
  (void)state;
  uvm_view *v = fake_open(&uvm_policy_density, PCIE);
  fake_option(v, "min_faults", "2");
  fake_start(v);
  uvm_mask f = fake_pages("0", 0), more;
  static const struct { uvm_node dst; bool prefetches; } rows[] = {
      {GPU, false}, {CPU, false}, {GPU, false}, {GPU, true}, {GPU, true}, {CPU, false}, {CPU, true}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uvm_policy_density.prefetch(v->state, v, 1, rows[i].dst, &f, &more);
    assert_int_equal(!uvm_mask_empty(&more), rows[i].prefetches);
  }
  fake_close(v);
}

/* Step 5: towards the CPU, pages it holds and can read are left out; of pageable memory they are kept. */
static void test_cpu_mapped_pages(void **state) {
  (void)state;
  uvm_view *v = fake_open(&uvm_policy_density, PCIE);
  fake_start(v);
  v->resident[CPU] = fake_pages("[0,12)", 0);
  v->readable[CPU] = fake_pages("[0,8) 14", 0);  /* 14: a mapping of a page elsewhere does not count */
  v->resident[GPU] = fake_pages("[12,16)", 0);
  uvm_mask f = fake_pages("13", 0), more;
  uvm_policy_density.prefetch(v->state, v, 1, CPU, &f, &more);
  assert_string_equal(fake_text(&more, 0), "[8,13) [14,16)");
  v->range.system = 1;
  uvm_policy_density.prefetch(v->state, v, 1, CPU, &f, &more);
  assert_string_equal(fake_text(&more, 0), "[0,13) [14,16)");
  fake_close(v);
}

int main(void) {
  enum { N = sizeof vectors / sizeof *vectors };
  struct CMUnitTest tests[N + 3] = {cmocka_unit_test(test_v1_totals), cmocka_unit_test(test_count_restarts),
                                     cmocka_unit_test(test_cpu_mapped_pages)};
  for (int i = 0; i < N; i++) tests[i + 3] = (struct CMUnitTest){vectors[i].name, run_vector, NULL, NULL, (void *)&vectors[i]};
  return UVM_RUN(tests);
}
