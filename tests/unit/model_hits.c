/* The host's hits that pass in a row do what its loops do: the same trace read record by record, held decoded, and under an evictor
 * that sees every access, for which nothing may be passed over. Memory is never full, so that evictor decides nothing. */
#include "machine/machine.h"
#include "tests/unit/model_fixture.h"
#include "trace.h"

struct run {
  struct replay replay;
  uint64_t accesses[4][UVM_A_ATOMIC + 1][2]; /* elements, by allocation, kind and processor */
};

static struct run run(const char *text, const char *evict, bool hold) {
  struct run r = {0};
  struct uvm_trace *t;
  struct uvm_observer o = {&r.replay, replay_see};
  assert_int_equal(uvm_trace_open_memory(text, strlen(text), &t, &r.replay.error), 0);
  if (hold) assert_int_equal(uvm_trace_hold(t, &r.replay.error), 0);
  struct uvm_session_config c = {.source = t, .evict = evict, .observers = &o, .nobservers = 1};
  if (uvm_session_run(&c, &r.replay.result, &r.replay.error)) fail_msg("%s", r.replay.error.text);
  uvm_trace_close(t);
  size_t n = 0;
  for (size_t i = 0; i < r.replay.events.n; i++) {
    const struct uvm_event *e = &r.replay.events.v[i].e;
    if (e->kind == UVM_E_ACCESS)
      r.accesses[e->alloc][e->access][e->proc] += e->value;
    else
      r.replay.events.v[n++] = r.replay.events.v[i];
  }
  r.replay.events.n = n;
  return r;
}

static void assert_same_event(const struct uvm_event *a, const struct uvm_event *b) {
  assert_int_equal(a->kind, b->kind);
  assert_int_equal(a->t, b->t);
  assert_int_equal(a->dur, b->dur);
  assert_int_equal(a->proc, b->proc);
  assert_int_equal(a->offset, b->offset);
  assert_int_equal(a->bytes, b->bytes);
  assert_int_equal(a->value, b->value);
  assert_int_equal(a->line, b->line);
}

static void assert_same(const struct run *a, const struct run *b) {
  assert_int_equal(a->replay.events.n, b->replay.events.n);
  for (size_t i = 0; i < a->replay.events.n; i++) assert_same_event(&a->replay.events.v[i].e, &b->replay.events.v[i].e);
  assert_memory_equal(a->accesses, b->accesses, sizeof a->accesses);
  assert_int_equal(a->replay.result.sim_ns, b->replay.result.sim_ns);
  assert_int_equal(a->replay.result.accesses, b->replay.result.accesses);
}

static unsigned draw(uint64_t *seed, unsigned below) { return (unsigned)(uvm_random(seed) % below); }

/* Accesses within a page and across its end, whole ones and cut ones, of managed memory and of other, between kernels that are
 * still running and sections, so that everything that ends a row comes up. Kernels
 * read something far away first, for those that find everything resident take no steps unless accesses must be seen. */
static char *random_trace(uint64_t *seed) {
  static const char *const ops[] = {"r", "w", "rw", "atomic"}, *const ids[] = {"a", "b", "h"};
  char *text;
  size_t size;
  FILE *f = open_memstream(&text, &size);
  fprintf(f, HEAD "alloc a 4M managed a\nalloc b 2M managed b\nalloc h 2M host h\nalloc p 4K pinned p\nw cpu a 0 4M\n");
  for (int i = 0; i < 3000; i++) {
    unsigned what = draw(seed, 200), offset = draw(seed, 2 << 20), most = (2 << 20) - offset;
    unsigned bytes = 1 + draw(seed, what % 10 ? 64 : 9000);
    if (bytes > most) bytes = most;
    if (what == 0)
      fprintf(f, "kernel gpu0 lanes=32\nr p 0 8 split=cyclic\nrw a %u %u split=cyclic\ndone\n", offset, bytes);
    else if (what == 1)
      fprintf(f, "sync\nprefetch gpu0 a 0 4M\n");
    else if (what == 2)
      fprintf(f, "begin s\ndelay cpu %u\nend\n", draw(seed, 1000));
    else if (what < 6) /* copies: then the CPU may only read */
      fprintf(f, "advise set_read_mostly cpu b 0 2M\nkernel gpu0 lanes=32\nr p 0 8 split=cyclic\nr b 0 2M split=cyclic\ndone\nsync\n");
    else if (what == 6)
      fprintf(f, "advise set_preferred_location %s b 0 2M\n", draw(seed, 2) ? "cpu" : "gpu0");
    else
      fprintf(f, "%s cpu %s %u %u step=%u\n", ops[draw(seed, 4)], ids[draw(seed, 3)], offset, bytes, what < 20 ? 1 + draw(seed, 64) : 4096);
  }
  fclose(f);
  return text;
}

static void rows_do_what_loops_do(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 12; seed++) {
    uint64_t random = seed;
    char *text = random_trace(&random);
    struct run read = run(text, NULL, false), held = run(text, NULL, true), loops = run(text, "lru", true);
    assert_same(&read, &held);
    assert_same(&read, &loops);
    replay_free(&read.replay), replay_free(&held.replay), replay_free(&loops.replay);
    free(text);
  }
}

/* A touch of a mapped page and an element each; one summary for a row of one kind, begun at its first line. */
static void a_row_takes_its_time_and_is_told_once(void **state) {
  (void)state;
  static const char text[] =
      HEAD "alloc a 4M managed a\nw cpu a 0 4M\nbegin hits\nr cpu a 0 8\nr cpu a 4096 8\nr cpu a 8192 8\nw cpu a 0 8\nend\n";
  struct uvm_machine *m;
  struct replay r = {0};
  struct uvm_trace *t;
  struct uvm_observer o = {&r, replay_see};
  assert_int_equal(uvm_machine_open("nvidia-h200", "measured", &m, NULL), 0);
  assert_int_equal(uvm_trace_open_memory(text, sizeof text - 1, &t, &r.error), 0);
  assert_int_equal(uvm_trace_hold(t, &r.error), 0);
  struct uvm_session_config c = {.source = t, .observers = &o, .nobservers = 1};
  assert_int_equal(uvm_session_run(&c, &r.result, &r.error), 0);
  assert_int_equal(replay_time_of(&r, "hits"), (4 * m->cpu.page_ns * 1000 + 4 * m->cpu.element_ps) / 1000);
  assert_int_equal(replay_count(&r, UVM_E_ACCESS), 3); /* the loop's, the reads', the write's */
  assert_int_equal(replay_event(&r, UVM_E_ACCESS, 1)->value, 3);
  assert_int_equal(replay_event(&r, UVM_E_ACCESS, 1)->line, 7);
  assert_int_equal(replay_event(&r, UVM_E_ACCESS, 2)->line, 10);
  uvm_trace_close(t);
  uvm_machine_close(m);
  replay_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_do_what_loops_do), cmocka_unit_test(a_row_takes_its_time_and_is_told_once)};
  return UVM_RUN(tests);
}
