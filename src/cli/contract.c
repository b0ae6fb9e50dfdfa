#include "cli/contract.h"

enum { ALLOCS = 6, LEAST = 8, MOST = 40, LINE = 256 };
static const uint64_t MIB = 1 << 20;
struct draw {
  uint64_t dice, bytes[ALLOCS]; /* 0: not alive */
  uint64_t base;                /* for the next allocation */
  unsigned gpus;
  UVM_VEC(char) text;
};

static uint64_t roll(struct draw *d, uint64_t n) { return uvm_random(&d->dice) % n; }
static uint64_t between(struct draw *d, uint64_t a, uint64_t b) { return a + roll(d, b - a + 1); }

static void __attribute__((format(printf, 2, 3))) say(struct draw *d, const char *fmt, ...) {
  char line[LINE];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  for (const char *c = line; *c; c++) UVM_PUSH(&d->text) = *c;
}

/* Just around a page, a driver's larger page and a block, or anything; with gaps between allocations or none. */
static void allocate(struct draw *d, unsigned i) {
  static const uint64_t near[] = {2, 4096, 65536, 2097152, 4194304};
  d->bytes[i] = roll(d, 2) ? between(d, 1, 4 * MIB) : near[roll(d, 5)] + roll(d, 3) - 1;
  say(d, "alloc m%u %llu managed m base=%llu\n", i, (unsigned long long)d->bytes[i], (unsigned long long)d->base);
  d->base += (d->bytes[i] + UVM_PAGE - 1) / UVM_PAGE * UVM_PAGE + roll(d, 3) * 5 * UVM_PAGE;
}

/* Some that is alive; the first always is. */
static unsigned choose(struct draw *d) {
  unsigned i = (unsigned)roll(d, ALLOCS);
  return d->bytes[i] ? i : 0;
}

/* " ID OFF LEN", and the length. */
static uint64_t range(struct draw *d) {
  unsigned i = choose(d);
  uint64_t off = roll(d, 3) ? 0 : roll(d, d->bytes[i]), left = d->bytes[i] - off, len = roll(d, 2) ? left : between(d, 1, left);
  say(d, " m%u %llu %llu", i, (unsigned long long)off, (unsigned long long)len);
  return len;
}

static void access_line(struct draw *d, const char *who, const char *split, uint64_t most) {
  static const char *const ops[] = {"r", "w", "rw", "atomic"};
  say(d, "%s%s", ops[roll(d, 4)], who);
  uint64_t len = range(d);
  say(d, "%s step=%llu width=1\n", split, (unsigned long long)((len - 1) / most + 1 + roll(d, 5000)));
}

static void kernel(struct draw *d) {
  static const uint64_t lanes[] = {1, 32, 33, 1000, 65536};
  say(d, "kernel gpu%u lanes=%llu", (unsigned)roll(d, d->gpus), (unsigned long long)lanes[roll(d, 5)]);
  say(d, roll(d, 2) ? "\n" : " stream=%u\n", (unsigned)roll(d, 3));
  for (uint64_t n = between(d, 1, 3); n; n--) access_line(d, "", roll(d, 2) ? " split=cyclic" : " split=blocked", 2000);
  say(d, "done\n");
}

static void advise(struct draw *d) {
  static const char *const advice[] = {"read_mostly", "preferred_location", "accessed_by"};
  say(d, "advise %s_%s", roll(d, 3) ? "set" : "unset", advice[roll(d, 3)]);
  say(d, roll(d, 3) ? " gpu%u" : " cpu", (unsigned)roll(d, d->gpus));
  range(d);
  say(d, "\n");
}

static void prefetch(struct draw *d) {
  say(d, roll(d, 3) ? "prefetch gpu%u" : "prefetch cpu", (unsigned)roll(d, d->gpus));
  range(d);
  say(d, "\n");
}

/* All but the first come and go. */
static void come_or_go(struct draw *d) {
  unsigned i = (unsigned)between(d, 1, ALLOCS - 1);
  if (!d->bytes[i]) {
    allocate(d, i);
    return;
  }
  say(d, "free m%u\n", i);
  d->bytes[i] = 0;
}

char *uvm_contract_trace(uint64_t number, unsigned gpus) {
  struct draw d = {.dice = number, .gpus = gpus, .base = 1ull << 40};
  say(&d, "uvmtrace 1\nprocessor cpu\n");
  for (unsigned g = 0; g < gpus; g++) say(&d, "processor gpu%u\n", g);
  for (unsigned i = 0; i < 3; i++) allocate(&d, i);
  for (uint64_t n = between(&d, LEAST, MOST); n; n--) switch (roll(&d, 10)) {
    case 0: come_or_go(&d); break;
    case 1: advise(&d); break;
    case 2: prefetch(&d); break;
    case 3: say(&d, "sync\n"); break;
    case 4:
    case 5: access_line(&d, " cpu", "", 800); break;
    default: kernel(&d); break;
    }
  UVM_PUSH(&d.text) = 0;
  return d.text.v;
}

/* -- workloads -- */

#define BEGIN "uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 16M managed a\nw cpu a 0 16M\n"
#define PASS "kernel gpu0 lanes=4096\nrw a 0 16M split=cyclic width=64\ndone\nsync\n"
#define TURN "kernel gpu0 lanes=64\nrw a 0 256K split=cyclic width=64\ndone\nsync\nrw cpu a 0 256K\n"
const struct uvm_contract_workload uvm_contract_workloads[] = {
    {"stream", BEGIN PASS, 0},               /* once through, with room for all */
    {"loop", BEGIN PASS PASS PASS, 8 << 20}, /* three times through twice the memory */
    {"chase", BEGIN "kernel gpu0 lanes=1\nr a 0 16M split=cyclic step=135168 width=8\ndone\nsync\n", 0}, /* far apart, one by one */
    {"ping-pong", BEGIN TURN TURN TURN TURN TURN TURN, 0},                                               /* both write the same, in turns */
    {0}};
