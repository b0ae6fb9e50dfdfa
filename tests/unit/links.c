/* Links: flows worked out by hand on links of 1 byte a ns, then what must hold of any flows. */
#include "machine/machine.h"
#include "machine/track.h"
#include "tests/unit/unit.h"

enum { DRAM, HBM, FAR };
enum { FLOWS = 60, SEEDS = 200 };

static void join(struct uvm_machine *m, uvm_node a, uvm_node b, double up, double down, uint64_t engines) {
  m->links[m->nlinks++] =
      (struct uvm_link){.a = a, .b = b, .latency_ns = 100, .engines = engines, .up = up, .down = down, .load = up, .store = down};
}

/* A CPU with DRAM, a GPU with HBM that reaches both. Up is from DRAM to HBM. */
static struct uvm_machine *machine(double up, double down, uint64_t engines) {
  struct uvm_machine *m = uvm_mem(sizeof *m);
  m->nnodes = 2, m->nprocs = 2;
  m->procs[0] = (struct uvm_proc_info){.home = DRAM, .reach = 1u << DRAM};
  m->procs[1] = (struct uvm_proc_info){.home = HBM, .reach = 1u << DRAM | 1u << HBM};
  m->gpu.memory_rate = 1e12;
  join(m, DRAM, HBM, up, down, engines);
  return m;
}

static struct uvm_reservation copy(struct uvm_machine *m, uvm_node src, uvm_node dst, uvm_ns now, uint64_t bytes, uint64_t fixed) {
  return uvm_machine_reserve(m, &(struct uvm_transfer){src, dst, UVM_L_MIGRATION, bytes, fixed}, now);
}

static void assert_copy(struct uvm_reservation r, uvm_ns begin, uvm_ns end, uvm_ns wait) {
  assert_int_equal(r.begin, begin);
  assert_int_equal(r.end, end);
  assert_int_equal(r.wait, wait);
}

/* -- by hand -- */

/* Two copies of 1000 bytes, 100 ns of set-up each. One engine: the second begins when the first is through, at 1100. Two: the
 * second is set up from 50 to 150 and waits for the wire, which the first holds from 100 to 1100. */
static void two_flows_share_a_direction(void **state) {
  (void)state;
  struct uvm_machine *one = machine(1e9, 1e9, 1), *two = machine(1e9, 1e9, 2);
  assert_copy(copy(one, DRAM, HBM, 0, 1000, 100), 0, 1100, 0);
  assert_copy(copy(one, DRAM, HBM, 50, 1000, 100), 1100, 2200, 1050);
  assert_copy(copy(two, DRAM, HBM, 0, 1000, 100), 0, 1100, 0);
  assert_copy(copy(two, DRAM, HBM, 50, 1000, 100), 50, 2100, 950);
  assert_copy(copy(two, DRAM, HBM, 60, 1000, 100), 1100, 3100, 1940); /* the first engine's turn; the wire is taken until 2100 */
  assert_int_equal(one->waited_ps[UVM_L_MIGRATION][UVM_L_MIGRATION], 1050000);
  assert_int_equal(two->waited_ps[UVM_L_MIGRATION][UVM_L_MIGRATION], (950 + 1940) * 1000);
  uvm_machine_close(one);
  uvm_machine_close(two);
}

/* Ten copies of 1000 bytes each way, all wanted at 0: the n-th up ends at 1000 n; down, at half the rate, at 2000 n. Neither
 * direction knows of the other. */
static void a_saturated_link_moves_its_rate_each_way(void **state) {
  (void)state;
  struct uvm_machine *m = machine(1e9, 0.5e9, 1);
  for (uint64_t n = 1; n <= 10; n++) {
    assert_copy(copy(m, DRAM, HBM, 0, 1000, 0), 1000 * (n - 1), 1000 * n, 1000 * (n - 1));
    assert_copy(copy(m, HBM, DRAM, 0, 1000, 0), 2000 * (n - 1), 2000 * n, 2000 * (n - 1));
  }
  uvm_machine_close(m);
}

/* A copy holds the wire from 100 to 1100. A load of 300 bytes at 0 moves 100 before it and 200 after, ends at 1300 and arrives a
 * latency later; a load of 100 bytes behind it at 1400, and the 1000 ns that both waited count once. A copy of 500 bytes wanted
 * at 50 then finds the wire free from 1400: 500 of the 1350 ns since are its own and 100 its set-up, 950 are the first copy's
 * and 300 the loads'. Stores go the other way. */
static void accesses_and_copies_wait_for_each_other(void **state) {
  (void)state;
  struct uvm_machine *m = machine(1e9, 1e9, 2);
  copy(m, DRAM, HBM, 0, 1000, 100);
  struct uvm_crossing a = uvm_machine_access(m, 1, DRAM, 0, 300, false), b = uvm_machine_access(m, 1, DRAM, 0, 100, false);
  assert_int_equal(a.end_ps, 1300000), assert_int_equal(a.latency_ps, 100000), assert_int_equal(a.waited_ps, 1000000);
  assert_int_equal(b.end_ps, 1400000), assert_int_equal(b.waited_ps, 0);
  assert_int_equal(m->waited_ps[UVM_L_REMOTE][UVM_L_MIGRATION], 1000000);
  assert_copy(copy(m, DRAM, HBM, 50, 500, 100), 50, 1900, 1250);
  assert_int_equal(m->waited_ps[UVM_L_MIGRATION][UVM_L_MIGRATION], 950000);
  assert_int_equal(m->waited_ps[UVM_L_MIGRATION][UVM_L_REMOTE], 300000);
  struct uvm_crossing s = uvm_machine_access(m, 1, DRAM, 0, 300, true);
  assert_int_equal(s.end_ps, 300000), assert_int_equal(s.latency_ps, 0), assert_int_equal(s.waited_ps, 0);
  uvm_machine_close(m);
}

/* A plan books its copies ahead. Who comes later and fits before them does not wait; who does not fit on the engine does. */
static void what_is_booked_ahead_leaves_the_time_before_it(void **state) {
  (void)state;
  struct uvm_machine *m = machine(1e9, 1e9, 1);
  assert_copy(copy(m, DRAM, HBM, 10000, 1000, 0), 10000, 11000, 0);
  assert_copy(copy(m, DRAM, HBM, 0, 4000, 0), 0, 4000, 0);
  assert_copy(copy(m, DRAM, HBM, 0, 7000, 0), 11000, 18000, 11000);
  assert_copy(copy(m, DRAM, HBM, 0, 6000, 0), 4000, 10000, 4000);
  uvm_machine_close(m);
}

/* 1000 bytes over two links of 1 and 0.5 bytes a ns: in one go where a processor of one end reaches the other, 2000 ns; else
 * staged, 1000 + 2000. An access goes in one go and has the latency of both. */
static void two_links_are_as_fast_as_the_slower(void **state) {
  (void)state;
  for (int reached = 0; reached < 2; reached++) {
    struct uvm_machine *m = machine(1e9, 1e9, 1);
    m->nnodes = 3;
    join(m, DRAM, FAR, 0.5e9, 0.5e9, 1);
    if (reached) m->procs[1].reach |= 1u << FAR;
    assert_copy(copy(m, HBM, FAR, 0, 1000, 0), 0, reached ? 2000 : 3000, 0);
    struct uvm_crossing c = uvm_machine_access(m, 1, FAR, 0, 1000, false);
    assert_int_equal(c.end_ps, 2000000), assert_int_equal(c.latency_ps, 200000);
    uvm_machine_close(m);
  }
}

/* -- any flows -- */

struct flow {
  bool access, back;
  uvm_ns asked;
  uint64_t bytes, fixed;
  uvm_ns begin, end, wait; /* the answer; of an access rounded outwards */
};

/* ahead: copies may be wanted for later, as plans want them. */
static void random_flows(struct flow f[FLOWS], uint64_t seed, bool ahead) {
  uvm_ns now = 0;
  for (int i = 0; i < FLOWS; i++) {
    now += uvm_random(&seed) % 2000;
    f[i] = (struct flow){.access = uvm_random(&seed) % 3 == 0,
                         .back = uvm_random(&seed) % 3 == 0,
                         .asked = now,
                         .bytes = 1 + uvm_random(&seed) % 4000,
                         .fixed = uvm_random(&seed) % 300};
    if (f[i].access) f[i].fixed = 0;
    if (ahead && !f[i].access) f[i].asked += uvm_random(&seed) % 10000;
  }
}

static void ask(struct uvm_machine *m, struct flow *f) {
  if (!f->access) {
    struct uvm_reservation r = copy(m, f->back ? HBM : DRAM, f->back ? DRAM : HBM, f->asked, f->bytes, f->fixed);
    f->begin = r.begin, f->end = r.end, f->wait = r.wait;
    return;
  }
  struct uvm_crossing c = uvm_machine_access(m, 1, DRAM, f->asked, f->bytes, f->back);
  f->begin = f->asked, f->end = (c.end_ps + 999) / 1000, f->wait = f->end - f->asked;
}

static double rate_of(const struct uvm_machine *m, const struct flow *f) { return f->back ? m->links[0].down : m->links[0].up; }

/* [from, to) ns is taken but for less than a ns at its end. */
static void assert_taken(const struct uvm_track *t, uvm_ns from, uvm_ns to) {
  uint64_t until, at = uvm__track_free(t, from * 1000, &until);
  assert_true(at + 999 >= to * 1000);
}

static void for_any_flows(void (*check)(uint64_t seed, uint64_t engines)) {
  for (uint64_t seed = 1; seed <= SEEDS; seed++) check(seed, 1 + seed % 3);
}

/* From its set-up on, the wire is busy until a copy's end, with it or with others; and until an access's end. */
static void check_wire(uint64_t seed, uint64_t engines) {
  struct uvm_machine *m = machine(1e9, 0.7e9, engines);
  struct flow f[FLOWS];
  random_flows(f, seed, true);
  for (int i = 0; i < FLOWS; i++) {
    ask(m, &f[i]);
    assert_true(f[i].begin >= f[i].asked && f[i].end >= f[i].begin + f[i].fixed);
    assert_taken(&m->links[0].ways[f[i].back].wire, f[i].begin + f[i].fixed, f[i].end);
    if (!f[i].access) assert_true(f[i].asked + f[i].wait + f[i].fixed <= f[i].end);
  }
  uvm_machine_close(m);
}
static void a_wire_is_never_idle_while_bytes_wait(void **state) {
  (void)state;
  for_any_flows(check_wire);
}

/* When nothing is booked ahead, all engines of a direction are busy from the moment at which a copy asks to its begin. */
static void check_engines(uint64_t seed, uint64_t engines) {
  struct uvm_machine *m = machine(1e9, 0.7e9, engines);
  struct flow f[FLOWS];
  random_flows(f, seed, false);
  uint64_t waited = 0;
  for (int i = 0; i < FLOWS; i++) {
    ask(m, &f[i]);
    for (uint64_t e = 0; e < engines && !f[i].access; e++) assert_taken(&m->links[0].ways[f[i].back].engines[e], f[i].asked, f[i].begin);
    waited += f[i].begin - f[i].asked;
  }
  assert_true(waited > 0);
  uvm_machine_close(m);
}
static void an_engine_is_never_idle_while_a_copy_waits(void **state) {
  (void)state;
  for_any_flows(check_engines);
}

/* What begins and ends within a window is no more than the rate lets through; a ns of rounding for each flow. */
static void check_bandwidth(uint64_t seed, uint64_t engines) {
  struct uvm_machine *m = machine(1e9, 0.7e9, engines);
  struct flow f[FLOWS];
  random_flows(f, seed, seed % 2);
  for (int i = 0; i < FLOWS; i++) ask(m, &f[i]);
  for (int i = 0; i < FLOWS; i++)
    for (int j = 0; j < FLOWS; j++) {
      uint64_t bytes = 0, flows = 0;
      for (int k = 0; k < FLOWS; k++)
        if (f[k].back == f[i].back && f[k].begin >= f[i].begin && f[k].end <= f[j].end) bytes += f[k].bytes, flows++;
      if (flows) assert_true((double)bytes <= rate_of(m, &f[i]) * 1e-9 * (double)(f[j].end - f[i].begin + flows));
    }
  uvm_machine_close(m);
}
static void no_window_holds_more_than_the_rate(void **state) {
  (void)state;
  for_any_flows(check_bandwidth);
}

/* The same flow ends no earlier when there was one more before it. */
static void check_load(uint64_t seed, uint64_t engines) {
  struct uvm_machine *less = machine(1e9, 0.7e9, engines), *more = machine(1e9, 0.7e9, engines);
  struct flow f[FLOWS], probe;
  random_flows(f, seed, true);
  for (int i = 0; i < FLOWS - 2; i++) ask(less, &f[i]), ask(more, &f[i]);
  ask(more, &f[FLOWS - 2]);
  probe = f[FLOWS - 1];
  ask(less, &probe), ask(more, &f[FLOWS - 1]);
  assert_true(f[FLOWS - 1].end >= probe.end);
  assert_true(f[FLOWS - 1].wait >= probe.wait);
  uvm_machine_close(less);
  uvm_machine_close(more);
}
static void load_never_makes_anyone_faster(void **state) {
  (void)state;
  for_any_flows(check_load);
}

/* On one engine, who asks later begins later; accesses of one direction end in the order in which they ask, and nothing that is
 * forgotten changes an answer. */
static void check_time(uint64_t seed, uint64_t engines) {
  struct uvm_machine *m = machine(1e9, 0.7e9, 1), *forgets = machine(1e9, 0.7e9, 1);
  struct flow f[FLOWS], g[FLOWS];
  (void)engines;
  random_flows(f, seed, false);
  memcpy(g, f, sizeof f);
  uvm_ns last[2][2] = {{0}};
  for (int i = 0; i < FLOWS; i++) {
    uvm_machine_pass(forgets, g[i].asked);
    ask(m, &f[i]), ask(forgets, &g[i]);
    uvm_ns at = f[i].access ? f[i].end : f[i].begin;
    assert_true(at >= last[f[i].access][f[i].back]);
    last[f[i].access][f[i].back] = at;
  }
  assert_memory_equal(f, g, sizeof f);
  assert_memory_equal(m->waited_ps, forgets->waited_ps, sizeof m->waited_ps);
  uvm_machine_close(m);
  uvm_machine_close(forgets);
}
static void time_never_goes_back(void **state) {
  (void)state;
  for_any_flows(check_time);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_flows_share_a_direction),
      cmocka_unit_test(a_saturated_link_moves_its_rate_each_way),
      cmocka_unit_test(accesses_and_copies_wait_for_each_other),
      cmocka_unit_test(what_is_booked_ahead_leaves_the_time_before_it),
      cmocka_unit_test(two_links_are_as_fast_as_the_slower),
      cmocka_unit_test(a_wire_is_never_idle_while_bytes_wait),
      cmocka_unit_test(an_engine_is_never_idle_while_a_copy_waits),
      cmocka_unit_test(no_window_holds_more_than_the_rate),
      cmocka_unit_test(load_never_makes_anyone_faster),
      cmocka_unit_test(time_never_goes_back),
  };
  return UVM_RUN(tests);
}
