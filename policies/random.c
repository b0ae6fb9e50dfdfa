/* Evicts backings at random, each that may leave with the same chance: the baseline that a clever evictor has to beat. */
#include "victim.h"

struct state { uint64_t seed; struct uvm__pool pool; };

/* splitmix64: the same numbers on every machine. */
static uint64_t next_random(uint64_t *seed) {
  uint64_t z = *seed += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/* Draws without putting back: what was drawn goes behind `left`, what is dead goes for good. */
static size_t victims(void *state, const uvm_view *v, uvm_node node, uint64_t bytes, uvm_block_id incoming, const uvm_mask *pages,
                      uvm_backing_id *out, size_t max) {
  struct state *s = state;
  struct uvm__pool_node *p = &s->pool.node[node];
  struct uvm__answer a = {v, node, bytes, incoming, out, max, 0};
  (void)pages;
  for (size_t left = p->n; left && uvm__wants(&a);) {
    size_t i = next_random(&s->seed) % left--;
    uvm_backing_id k = p->v[i];
    p->v[i] = p->v[left];
    if (uvm_backing(v, k))
      p->v[left] = k, uvm__take(&a, k);
    else
      p->v[left] = p->v[--p->n];
  }
  return a.n;
}

static void on_event(void *state, const uvm_view *v, const struct uvm_told *e) { uvm__pool_told(&((struct state *)state)->pool, v, e); }
static void fini(void *state) { uvm__pool_free(&((struct state *)state)->pool); }

static const struct uvm_opt opts[] = {
    {"seed", UVM_U64, offsetof(struct state, seed), 0, 18446744073709551615.0, 0, "start of the sequence of random numbers"},
    {0}};

const struct uvm_policy uvm_policy_random = {
    .abi = UVM_POLICY_ABI,
    .name = "random",
    .help = "evict at random",
    .opts = opts,
    .state_size = sizeof(struct state),
    .backing_size = sizeof(bool),
    .fini = fini,
    .on_event = on_event,
    .victims = victims,
};
