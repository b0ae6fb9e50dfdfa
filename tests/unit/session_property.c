/* Random traces through the whole program: every kind of record, memory sizes, drivers, policies and options. Whatever the trace,
 * a valid one runs to its end (the checks of a debug build on), what came to the GPUs less what left them is what is there, their
 * memory is never exceeded, and the same run twice tells the same. `session_property FIRST COUNT` runs seeds from FIRST on,
 * `session_property FIRST 600s` for so long; a trace that fails is left behind and named. */
#include <time.h>
#include <unistd.h>
#include "session.h"
#include "tests/unit/unit.h"

enum { SEEDS = 60, ALLOCS = 8, EVENTS = 4, RECORDS = 40, TOO_MANY_EVENTS = 4000000 };
enum { MIB = 1 << 20, DEVICE_ROOM = 8 * MIB }; /* of each GPU, for device memory; what a trace needs of it */

static uint64_t first_seed, seeds = SEEDS, dice, limit = UVM_NEVER; /* limit: ns for them all */
static uint64_t roll(uint64_t n) { return uvm_random(&dice) % n; }
static uint64_t between(uint64_t a, uint64_t b) { return a + roll(b - a + 1); }
static const char *pick(const char *const *words) {
  size_t n = 0;
  while (words[n]) n++;
  return words[roll(n)];
}

/* -- a trace -- */

struct memory {
  bool live;
  enum uvm_kind kind;
  unsigned gpu;
  uint64_t bytes;
};
static struct {
  FILE *f;
  unsigned gpus, sections, device; /* device: live allocations of that kind */
  const char *host;                /* the CPU's node */
  bool begun, early;               /* device memory is allocated before all else: it pushes nobody out */
  bool packed;                     /* allocations lie close together, in one block even */
  uint64_t base;                   /* for the next of them */
  bool recorded[EVENTS];
  struct memory mem[ALLOCS];
} t;

static const char *stream(void) {
  static const char *const streams[] = {"", "", " stream=0", " stream=1", " stream=2", " stream=77", NULL};
  return pick(streams);
}

static int gpu(void) { return (int)roll(t.gpus); }

static uint64_t size(void) {
  static const uint64_t near[] = {1, 4096, 65536, 2 * MIB, 3 * MIB};
  uint64_t n = roll(3) ? between(1, 3 * MIB) : near[roll(5)] + roll(3);
  return n > 1 ? n - 1 : 1;
}

static void allocate(int i) {
  static const char *const names[] = {"managed", "device", "pinned", "host"};
  struct memory *m = &t.mem[i];
  *m = (struct memory){true, (enum uvm_kind)(roll(3) ? 0 : roll(4)), (unsigned)gpu(), size()};
  if (m->kind == UVM_DEVICE && (t.device == 2 || (t.early && t.begun))) m->kind = UVM_MANAGED;
  t.device += m->kind == UVM_DEVICE;
  fprintf(t.f, "alloc m%d %llu %s m", i, (unsigned long long)m->bytes, names[m->kind]);
  if (m->kind == UVM_DEVICE) fprintf(t.f, " on=gpu%u", m->gpu);
  if (t.packed) fprintf(t.f, " base=%llu", (unsigned long long)t.base);
  t.base += (m->bytes + UVM_PAGE - 1) / UVM_PAGE * UVM_PAGE + roll(20) * UVM_PAGE;
  fputc('\n', t.f);
}

static void release(int i) {
  fprintf(t.f, "free m%d\n", i);
  t.mem[i].live = false;
  t.device -= t.mem[i].kind == UVM_DEVICE;
}

/* A live allocation that `proc` (0 the CPU) can access, or with `managed` one that is; -1. */
static int choose(int proc, bool managed) {
  for (int tries = 0; tries < 40; tries++) {
    int i = (int)roll(ALLOCS);
    const struct memory *m = &t.mem[i];
    bool theirs = m->kind == UVM_DEVICE ? m->gpu + 1 == (unsigned)proc : m->kind != UVM_HOST || !proc;
    bool fits = managed ? m->kind == UVM_MANAGED : proc < 0 || theirs;
    if (m->live && fits) return i;
  }
  return -1;
}

/* "ID OFF LEN" within allocation i; the length. */
static uint64_t range(int i) {
  uint64_t bytes = t.mem[i].bytes, off = roll(3) ? 0 : roll(bytes), len = roll(2) ? bytes - off : between(1, bytes - off);
  fprintf(t.f, " m%d %llu %llu", i, (unsigned long long)off, (unsigned long long)len);
  return len;
}

static const char *op(void) {
  static const char *const ops[] = {"r", "w", "rw", "atomic", NULL};
  return pick(ops);
}

/* At most `most` elements, of any width. */
static void elements(uint64_t len, uint64_t most) {
  uint64_t least = (len - 1) / most + 1, step = least + (roll(2) ? 0 : roll(9000));
  fprintf(t.f, " step=%llu", (unsigned long long)step);
  if (roll(2)) fprintf(t.f, " width=%llu", (unsigned long long)between(1, roll(2) ? step : 10000));
}

static void loop(void) {
  int proc = roll(2) ? 0 : gpu() + 1, i = choose(proc, false);
  if (i < 0) return;
  fprintf(t.f, proc ? "%s gpu%d" : "%s cpu", op(), proc - 1);
  elements(range(i), 800);
  fputc('\n', t.f);
}

static void access_record(int proc, uint64_t lanes) {
  int i = choose(proc, false);
  if (!roll(5)) fputs("next\n", t.f);
  if (i < 0) return;
  fprintf(t.f, "%s", op());
  uint64_t len = range(i);
  switch (roll(4)) {
  case 0: fputs(roll(2) ? "" : " by=lane", t.f); break;
  case 1: fputs(" by=block", t.f); break;
  case 2:
    fputs(" split=cyclic", t.f);
    elements(len, lanes * 8);
    break;
  default:
    fputs(" split=blocked", t.f);
    elements(len, lanes * 8);
    break;
  }
  fputc('\n', t.f);
}

static void kernel(void) {
  static const uint64_t lane_counts[] = {1, 31, 32, 33, 256, 1000, 5000, 100000, 1ull << 40};
  int proc = roll(8) ? gpu() + 1 : 0;
  uint64_t lanes = lane_counts[roll(9)];
  fprintf(t.f, proc ? "kernel gpu%d" : "kernel cpu", proc - 1);
  fprintf(t.f, " lanes=%llu", (unsigned long long)lanes);
  if (roll(2)) fprintf(t.f, " lanes_per_block=%llu", (unsigned long long)between(1, 1024));
  fputs(stream(), t.f);
  if (!roll(3)) fprintf(t.f, " ns=%llu", (unsigned long long)roll(2000000));
  fputc('\n', t.f);
  for (uint64_t n = roll(4); n; n--) access_record(proc, lanes < 100000 ? lanes : 100000);
  fputs("done\n", t.f);
}

static void prefetch(void) {
  int i = choose(0, true);
  if (i < 0) return;
  if (roll(3))
    fprintf(t.f, roll(2) ? "prefetch gpu%d" : "prefetch hbm%d", gpu());
  else
    fprintf(t.f, "prefetch %s", roll(2) ? "cpu" : t.host);
  range(i);
  fprintf(t.f, "%s\n", stream());
}

static void advise(void) {
  static const char *const advice[] = {"set_read_mostly",          "unset_read_mostly",  "set_preferred_location",
                                       "unset_preferred_location", "set_accessed_by",    "unset_accessed_by",
                                       "set_coarse_grain",         "unset_coarse_grain", NULL};
  int i = choose(0, true);
  if (i < 0) return;
  fprintf(t.f, roll(3) ? "advise %s gpu%d" : "advise %s cpu", pick(advice), gpu());
  range(i);
  fputc('\n', t.f);
}

static void copy(void) {
  int a = choose(-1, false), b = choose(-1, false);
  if (a < 0 || b < 0) return;
  uint64_t most = t.mem[a].bytes < t.mem[b].bytes ? t.mem[a].bytes : t.mem[b].bytes, len = between(1, most);
  fprintf(t.f, "memcpy m%d %llu m%d %llu %llu%s\n", a, (unsigned long long)roll(t.mem[a].bytes - len + 1), b,
          (unsigned long long)roll(t.mem[b].bytes - len + 1), (unsigned long long)len, stream());
}

static void order(void) {
  uint64_t e = roll(EVENTS);
  switch (roll(4)) {
  case 0:
    fprintf(t.f, "record e%llu stream=%llu\n", (unsigned long long)e, (unsigned long long)roll(3));
    t.recorded[e] = true;
    break;
  case 1:
    if (t.recorded[e]) fprintf(t.f, "wait e%llu stream=%llu\n", (unsigned long long)e, (unsigned long long)roll(3));
    break;
  case 2: fprintf(t.f, "sync%s", stream()), fprintf(t.f, roll(2) ? "\n" : " gpu%d\n", gpu()); break;
  default: fprintf(t.f, "delay cpu %llu\n", (unsigned long long)roll(roll(2) ? 1000 : 300000000));
  }
}

static void section(void) {
  if (t.sections && roll(2))
    fputs("end\n", t.f), t.sections--;
  else
    fprintf(t.f, "begin s/%llu\n", (unsigned long long)roll(3)), t.sections++;
}

static void record(void) {
  int i = (int)roll(ALLOCS);
  switch (roll(12)) {
  case 0:
  case 1: t.mem[i].live ? roll(3) ? (void)0 : release(i) : allocate(i); break;
  case 2:
  case 3: loop(); break;
  case 4:
  case 5:
  case 6: kernel(); break;
  case 7: prefetch(); break;
  case 8: advise(); break;
  case 9: copy(); break;
  case 10: order(); break;
  default: section();
  }
}

/* The command that replays the trace, in the trace. */
static void write_command(FILE *f, const struct uvm_session_config *c, uint64_t seed) {
  fprintf(f, "# replay --seed %llu -m %s --driver %s", (unsigned long long)seed, c->machine, c->driver);
  if (c->gpu_memory) fprintf(f, " --gpu-memory %llu", (unsigned long long)c->gpu_memory);
  if (c->policy) fprintf(f, " -p %s", c->policy);
  if (c->evict) fprintf(f, " --evict %s", c->evict);
  if (c->prefetch) fprintf(f, " --prefetch %s", c->prefetch);
  if (c->thrash) fprintf(f, " --thrash %s", c->thrash);
  for (size_t i = 0; i < c->nsettings; i++) fprintf(f, " -o %s.%s=%s", c->settings[i].owner, c->settings[i].key, c->settings[i].value);
  fputc('\n', f);
}

static void write_trace(FILE *f, const struct uvm_session_config *c, unsigned gpus) {
  memset(&t, 0, sizeof t);
  t.f = f, t.gpus = gpus, t.early = !strcmp(c->driver, "amdkfd"), t.base = 1ull << 40, t.packed = roll(2);
  t.host = strcmp(c->machine, "amd-mi300a") ? "dram" : "hbm0";
  fputs(roll(4) ? "processor cpu\nprocessor gpu0\n" : "page 65536\nprocessor cpu\nprocessor gpu0\n", f);
  if (gpus == 2) fputs("processor gpu1\n", f);
  for (int i = 0; i < 3; i++) allocate(i);
  t.begun = true;
  for (uint64_t n = between(5, RECORDS); n; n--) record();
  while (t.sections--) fputs("end\n", f);
}

/* -- a run -- */

struct watch {
  uint64_t in, out, events, hash;
};

static void watch(void *ctx, const struct uvm_event *e) {
  struct watch *w = ctx;
  bool from_gpu = e->src && e->src != UVM_NONE, to_gpu = e->dst && e->dst != UVM_NONE; /* node 0 is the CPU's on these machines */
  const uint64_t told[] = {e->kind, e->t, e->dur, e->alloc, e->offset, e->bytes, e->value, e->proc, e->src, e->dst};
  for (size_t i = 0; i < sizeof told / sizeof *told; i++) w->hash = (w->hash ^ told[i]) * 0x100000001b3ull;
  if (++w->events == TOO_MANY_EVENTS) uvm_stop = true;
  switch (e->kind) {
  case UVM_E_TRANSFER: w->in += to_gpu ? e->bytes : 0, w->out += from_gpu ? e->bytes : 0; break;
  case UVM_E_DUPLICATE: w->out -= from_gpu ? e->bytes : 0; break; /* the copy at the source stays */
  case UVM_E_POPULATE: w->in += to_gpu ? e->bytes : 0; break;
  case UVM_E_COLLAPSE: w->out += from_gpu ? e->bytes : 0; break;
  case UVM_E_FREE: w->out += e->value; break;
  default: break;
  }
}

enum { SETTINGS = 3 };
static void choose_config(struct uvm_session_config *c, struct uvm_setting set[SETTINGS], unsigned *gpus) {
  static const char *const machines[] = {"nvidia-h200", "nvidia-h200x2", "nvidia-titanv", "cxl-host", "amd-mi250x", "amd-mi300a", NULL};
  static const char *const policies[] = {NULL, NULL, "none", "nvidia"};
  static const char *const evictors[] = {"fifo", "random", "lru", "clock", "sieve", "lfu", "s3fifo", "arc"};
  static const struct uvm_setting nvidia[] = {/* the last ones with one GPU only: two may fight without end */
                                              {"nvidia", "access_counters", "1"},
                                              {"nvidia", "access_counter_threshold", "8"},
                                              {"nvidia", "counters_inert", "0"},
                                              {"nvidia", "fault_batch_count", "64"},
                                              {"nvidia", "fault_coalesce", "0"},
                                              {"nvidia", "fault_force_sysmem", "1"},
                                              {"nvidia", "map_remote_on_native_atomics_fault", "1"},
                                              {"nvidia", "version", "595"},
                                              {"nvidia", "max_batches_per_service", "1"},
                                              {"nvidia", "fault_replay_policy", "0"},
                                              {"nvidia", "fault_replay_policy", "1"},
                                              {"nvidia", "fault_replay_policy", "3"}};
  static const struct uvm_setting amdkfd[] = {{"amdkfd", "granularity", "0"},      {"amdkfd", "granularity", "4"},
                                              {"amdkfd", "granularity", "27"},     {"amdkfd", "registered", "0"},
                                              {"amdkfd", "dedupe_per_range", "0"}, {"amdkfd", "whole_range_vram", "0"},
                                              {"amdkfd", "dedupe_ns", "50us"},     {"amdkfd", "version", "5"}};
  c->machine = pick(machines);
  bool amd = !strncmp(c->machine, "amd-", 4) || !roll(6);
  c->driver = amd ? "amdkfd" : "nvidia";
  c->policy = policies[roll(4)], c->evict = amd || roll(2) ? NULL : evictors[roll(sizeof evictors / sizeof *evictors)];
  c->prefetch = roll(4) ? NULL : "none", c->thrash = roll(4) ? NULL : "none";
  *gpus = 1 + (!strcmp(c->machine, "nvidia-h200x2") || !strcmp(c->machine, "amd-mi250x"));
  size_t n = amd ? sizeof amdkfd / sizeof *amdkfd : sizeof nvidia / sizeof *nvidia - (*gpus == 2 ? 3 : 0);
  for (size_t i = 0; i < SETTINGS; i++) set[i] = (amd ? amdkfd : nvidia)[roll(n)];
  c->settings = set, c->nsettings = roll(SETTINGS + 1);
  c->gpu_memory = roll(3) ? DEVICE_ROOM + between(1, 4) * 2 * MIB + roll(2) * roll(MIB) : 0;
}

static void run(struct uvm_session_config *c, struct watch *w, uint64_t seed) {
  struct uvm_session_result r;
  struct uvm_error e = {0};
  const struct uvm_observer o = {w, watch};
  *w = (struct watch){.hash = 0xcbf29ce484222325ull};
  c->observers = &o, c->nobservers = 1, c->seed = seed;
  int rc = uvm_session_run(c, &r, &e);
  uvm_stop = false;
  if (rc || r.interrupted) fail_msg("seed %llu, %s: %s", (unsigned long long)seed, c->trace, rc ? e.text : "does not end");
  if (w->in - w->out != r.resident_gpu_bytes || r.peak_gpu_bytes > r.gpu_capacity)
    fail_msg("seed %llu, %s: %llu in, %llu out, %llu resident, peak %llu of %llu", (unsigned long long)seed, c->trace,
             (unsigned long long)w->in, (unsigned long long)w->out, (unsigned long long)r.resident_gpu_bytes,
             (unsigned long long)r.peak_gpu_bytes, (unsigned long long)r.gpu_capacity);
}

/* The trace lies there until the run was well. */
static void run_seed(uint64_t seed) {
  char path[] = "/tmp/session_property.XXXXXX";
  struct uvm_session_config c = {.trace = path};
  struct uvm_setting set[SETTINGS];
  struct watch once, again;
  unsigned gpus;
  int fd = mkstemp(path);
  FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
  assert_non_null(f);
  dice = seed;
  choose_config(&c, set, &gpus);
  fputs("uvmtrace 1\n", f);
  write_command(f, &c, seed);
  write_trace(f, &c, gpus);
  assert_int_equal(fclose(f), 0);
  run(&c, &once, seed);
  if (seed % 8 == 0) {
    run(&c, &again, seed);
    assert_int_equal(once.hash, again.hash);
  }
  unlink(path);
}

static uint64_t now(void) {
  struct timespec x;
  clock_gettime(CLOCK_MONOTONIC, &x);
  return (uint64_t)x.tv_sec * 1000000000 + (uint64_t)x.tv_nsec;
}

static void test_random_traces(void **state) {
  (void)state;
  uint64_t end = limit == UVM_NEVER ? limit : now() + limit;
  for (uint64_t i = 0; i < seeds && now() < end; i++) run_seed(first_seed + i);
}

int main(int argc, char **argv) {
  if (argc > 1) first_seed = strtoull(argv[1], NULL, 10);
  if (argc > 2 && !uvm_parse_u64(argv[2], UVM_NEVER, &seeds) && uvm_parse_ns(argv[2], &limit)) seeds = UVM_NEVER;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_traces)};
  return UVM_RUN(tests);
}
