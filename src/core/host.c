/* The policies' host. A question goes to the first part with the hook; the choice is made once, so a NULL hook costs a test. */
#include "core/host.h"
#include <assert.h>

struct part {
  const struct uvm_policy *policy;
  void *state;
  size_t index;
};
struct uvm_view {
  struct uvm_core *core;
  struct uvm_host *host;
  uvm_ns now;
  const struct part *part;
};
struct uvm_host {
  struct uvm_core *core;
  struct part *parts;
  size_t n, started;
  uint32_t needs;
  const struct part *thrash, *thrashing, *place, *prefetch, *victims, *counter; /* who answers; NULL nobody */
};

static uvm_view view_of(const struct uvm_host *h, const struct part *p, uvm_ns now) {
  return (uvm_view){.core = h->core, .host = (struct uvm_host *)h, .now = now, .part = p};
}

/* -- life -- */

static void free_block_state(void *ctx, struct uvm_block *b) {
  struct uvm_core *c = ctx;
  struct uvm_host *h = c->host;
  if (c->driver && c->driver->block_fini) c->driver->block_fini(c, b);
  void **table = b->policy_state;
  for (size_t i = 0; table && i < h->n; i++) {
    if (table[i] && h->parts[i].policy->block_fini) h->parts[i].policy->block_fini(h->parts[i].state, table[i]);
    uvm_mem_free(table[i]);
  }
  uvm_mem_free(table);
  b->policy_state = NULL;
}

static void free_backing_state(void *ctx, struct uvm_backing *k) {
  const struct uvm_host *h = ((struct uvm_core *)ctx)->host;
  void **table = k->policy_state;
  for (size_t i = 0; table && i < h->n; i++) uvm_mem_free(table[i]);
  uvm_mem_free(table);
  k->policy_state = NULL;
}

static void choose_answerers(struct uvm_host *h) {
  for (size_t i = h->n; i-- > 0;) { /* backwards: the first one stays */
    const struct part *p = &h->parts[i];
    h->needs |= p->policy->needs;
    if (p->policy->thrash) h->thrash = p;
    if (p->policy->thrashing) h->thrashing = p;
    if (p->policy->place) h->place = p;
    if (p->policy->prefetch) h->prefetch = p;
    if (p->policy->victims) h->victims = p;
    if (p->policy->counter) h->counter = p;
  }
}

struct uvm_host *uvm_host_create(struct uvm_core *c, const struct uvm_policy *const *parts, size_t n) {
  struct uvm_host *h = uvm_mem(sizeof *h);
  h->core = c;
  h->n = n;
  h->parts = uvm_mem(n * sizeof *h->parts);
  for (size_t i = 0; i < n; i++) {
    assert(parts[i]);
    h->parts[i] = (struct part){parts[i], uvm_mem(parts[i]->state_size), i};
    if (parts[i]->opts) uvm_opt_defaults(parts[i]->opts, h->parts[i].state);
  }
  choose_answerers(h);
  c->space->hooks = (struct uvm_space_hooks){c, free_block_state, free_backing_state};
  return h;
}

void uvm_host_destroy(struct uvm_host *h) {
  for (size_t i = 0; i < h->n; i++) {
    if (i < h->started && h->parts[i].policy->fini) h->parts[i].policy->fini(h->parts[i].state);
    uvm_mem_free(h->parts[i].state);
  }
  uvm_mem_free(h->parts);
  uvm_mem_free(h);
}

static int unknown_key(const struct uvm_host *h, const char *owner, const char *key, struct uvm_error *e) {
  char known[512] = "";
  for (size_t i = 0; i < h->n; i++) {
    const struct uvm_policy *p = h->parts[i].policy;
    for (const struct uvm_opt *o = strcmp(p->name, owner) ? NULL : p->opts; o && o->name; o++)
      uvm_list_add(known, sizeof known, ", ", o->name);
  }
  return uvm_fail(e, UVM_EUSAGE, "option %s.%s: unknown key; known: %s", owner, key, *known ? known : "none");
}

/* Parts of one name may know the same key: they are one policy to the user, and all of them are set. */
bool uvm_host_option(struct uvm_host *h, const char *owner, const char *key, const char *value, int *rc, struct uvm_error *e) {
  bool named = false, set = false;
  *rc = 0;
  for (size_t i = 0; i < h->n && !*rc; i++) {
    const struct uvm_policy *p = h->parts[i].policy;
    if (strcmp(p->name, owner)) continue;
    named = true;
    if (!p->opts || !uvm_opt_find(p->opts, key)) continue;
    *rc = uvm_opt_set(p->opts, h->parts[i].state, owner, key, value, e);
    set = true;
  }
  if (named && !set) *rc = unknown_key(h, owner, key, e);
  return named;
}

int uvm_host_start(struct uvm_host *h, struct uvm_error *e) {
  for (; h->started < h->n; h->started++) {
    struct part *p = &h->parts[h->started];
    if (p->policy->abi != UVM_POLICY_ABI)
      return uvm_fail(e, UVM_EUSAGE, "policy %s: expected version %d of the policy ABI, found %u", p->policy->name, UVM_POLICY_ABI,
                      p->policy->abi);
    if (p->policy->needs & UVM_NEEDS_FUTURE)
      return uvm_fail(e, UVM_EUSAGE, "policy %s needs the future of the run, which no session can tell it", p->policy->name);
    if (p->policy->ahead) return uvm_fail(e, UVM_EUSAGE, "policy %s has the hook ahead, which no driver asks yet", p->policy->name);
    uvm_view v = view_of(h, p, 0);
    if (p->policy->init && p->policy->init(p->state, &v) < 0)
      return uvm_fail(e, UVM_EUSAGE, "policy %s refuses this machine or its options", p->policy->name);
  }
  return 0;
}

uint32_t uvm_host_needs(const struct uvm_host *h) { return h->needs; }

/* -- state on blocks and backings: a table of the parts' memory, each made when its part first asks -- */

static void *part_memory(struct uvm_host *h, void **table, const struct part *p, size_t bytes) {
  assert(bytes); /* a part asks only for what it declared */
  if (!*table) *table = uvm_mem(h->n * sizeof(void *));
  void **own = (void **)*table + p->index;
  if (!*own) *own = uvm_mem(bytes);
  return *own;
}

/* -- telling -- */

void uvm_tell(struct uvm_host *h, const struct uvm_told *e, uvm_ns now) {
  for (size_t i = 0; i < h->n; i++) {
    uvm_view v = view_of(h, &h->parts[i], now);
    if (h->parts[i].policy->on_event) h->parts[i].policy->on_event(h->parts[i].state, &v, e);
  }
}

void uvm_tell_access(struct uvm_host *h, const struct uvm_run *r, uvm_ns now) {
  if (!(h->needs & UVM_NEEDS_ACCESS)) return;
  for (size_t i = 0; i < h->n; i++) {
    const struct uvm_policy *p = h->parts[i].policy;
    uvm_view v = view_of(h, &h->parts[i], now);
    if (p->needs & UVM_NEEDS_ACCESS && p->on_access) p->on_access(h->parts[i].state, &v, r);
  }
}

/* -- asking -- */

static int refuse(const struct uvm_host *h, const struct part *p, const char *hook, const char *what) {
  const struct uvm_hw *hw = &h->core->hw;
  hw->fail(hw->ctx, UVM_EUSAGE, "policy %s, hook %s: %s", p->policy->name, hook, what);
  return UVM_EUSAGE;
}

bool uvm_host_places(const struct uvm_host *h) { return h->place != NULL; }

const char *uvm_host_why(const struct uvm_host *h, uint8_t why) { return uvm__name_in(h->place ? h->place->policy->why : NULL, why); }

static const char *bad_thrash(const struct uvm_space *s, const struct uvm_thrash *t, uvm_ns now) {
  switch (t->hint) {
  case UVM_HINT_NONE: return NULL;
  case UVM_HINT_PIN:
    if (t->node >= s->topology.nnodes) return "a PIN on a node that does not exist";
    return t->procs >> s->topology.nprocs ? "a PIN for a processor that does not exist" : NULL;
  case UVM_HINT_THROTTLE: return t->until < now ? "a THROTTLE that ends in the past" : NULL;
  default: return "an unknown hint";
  }
}

void uvm_ask_thrash(struct uvm_host *h, const struct uvm_fault *f, uvm_ns now, struct uvm_thrash *out) {
  *out = (struct uvm_thrash){0};
  if (!h->thrash) return;
  uvm_view v = view_of(h, h->thrash, now);
  h->thrash->policy->thrash(h->thrash->state, &v, f, out);
  const char *bad = bad_thrash(h->core->space, out, now);
  if (!bad) return;
  refuse(h, h->thrash, "thrash", bad);
  *out = (struct uvm_thrash){0};
}

const uvm_mask *uvm_ask_thrashing(struct uvm_host *h, uvm_block_id b, uvm_ns now) {
  if (!h->thrashing) return NULL;
  uvm_view v = view_of(h, h->thrashing, now);
  return h->thrashing->policy->thrashing(h->thrashing->state, &v, b);
}

static const char *bad_place(const struct uvm_space *s, const struct uvm_fault *f, const struct uvm_place *a) {
  const struct uvm_block *b = uvm_block_by_id(s, f->block);
  assert(b);
  switch (a->action) {
  case UVM_REMOTE:
    if (uvm_page_target(s, b, f->proc, f->page) != UVM_NONE) return NULL;
    return "REMOTE for a page that is resident nowhere the processor reaches";
  case UVM_MIGRATE:
  case UVM_DUPLICATE:
    if (a->node >= s->topology.nnodes) return "a node that does not exist";
    return uvm_reaches(s, f->proc, a->node) ? NULL : "a node that the faulting processor does not reach";
  default: return "an unknown action";
  }
}

int uvm_ask_place(struct uvm_host *h, const struct uvm_fault *f, const struct uvm_thrash *hint, uvm_ns now, struct uvm_place *out) {
  assert(h->place);
  uvm_view v = view_of(h, h->place, now);
  *out = (struct uvm_place){.node = UVM_NONE};
  h->place->policy->place(h->place->state, &v, f, hint, out);
  const char *bad = bad_place(h->core->space, f, out);
  return bad ? refuse(h, h->place, "place", bad) : 0;
}

int uvm_ask_prefetch(struct uvm_host *h, uvm_block_id b, uvm_node dst, const uvm_mask *faulted, uvm_ns now, uvm_mask *more) {
  *more = (uvm_mask){{0}};
  if (!h->prefetch) return 0;
  uvm_view v = view_of(h, h->prefetch, now);
  h->prefetch->policy->prefetch(h->prefetch->state, &v, b, dst, faulted, more);
  uvm_mask all = uvm_block_all(uvm_block_by_id(h->core->space, b));
  if (!uvm_mask_subset(more, &all)) {
    *more = (uvm_mask){{0}};
    return refuse(h, h->prefetch, "prefetch", "pages outside the block");
  }
  uvm_mask_andnot(more, faulted);
  return 0;
}

uint32_t uvm_ask_counter(struct uvm_host *h, const struct uvm_fault *f, const uvm_mask *touched, uint64_t count, uvm_ns now,
                         uvm_mask *migrate, bool *asked) {
  *migrate = (uvm_mask){{0}};
  *asked = h->counter != NULL;
  if (!h->counter) return 0;
  uvm_view v = view_of(h, h->counter, now);
  uint32_t threshold = h->counter->policy->counter(h->counter->state, &v, f, touched, count, migrate);
  uvm_mask all = uvm_block_all(uvm_block_by_id(h->core->space, f->block));
  if (!uvm_mask_subset(migrate, &all)) {
    refuse(h, h->counter, "counter", "pages outside the block");
    *migrate = (uvm_mask){{0}};
  }
  return threshold;
}

/* -- victims -- */

static const char *bad_victim(struct uvm_space *s, uvm_node n, uvm_block_id incoming, uvm_backing_id id) {
  const struct uvm_backing *k = uvm_backing_get(s, id);
  if (!k) return "a victim that does not exist";
  if (k->info.node != n) return "a victim on another node";
  if (k->list == UVM_NONE) return "a victim that is pinned or already leaving";
  if (uvm_backing_holds(k, uvm_block_by_id(s, incoming))) return "a victim of the block in service";
  return uvm_backing_look(s, id)->busy ? "a victim that is busy" : NULL;
}

/* Least recently serviced first, those without pages before those with. */
static size_t default_victims(struct uvm_space *s, uvm_node n, uint64_t bytes, uvm_block_id incoming, uvm_backing_id *out, size_t max) {
  static const enum uvm_list order[] = {UVM_L_UNUSED, UVM_L_USED};
  size_t count = 0;
  uint64_t covered = 0;
  for (int i = 0; i < 2; i++)
    for (uvm_backing_id id = s->lists[n][order[i]].oldest; id && count < max && covered < bytes; id = s->backings.v[id]->newer) {
      if (bad_victim(s, n, incoming, id)) continue;
      covered += s->backings.v[id]->info.bytes;
      out[count++] = id;
    }
  return count;
}

static const char *bad_victims(struct uvm_space *s, uvm_node n, uvm_block_id incoming, const uvm_backing_id *v, size_t count) {
  const char *bad = NULL;
  for (size_t i = 0; i < count && !bad; i++) {
    bad = bad_victim(s, n, incoming, v[i]);
    for (size_t j = 0; j < i && !bad; j++)
      if (v[j] == v[i]) bad = "the same victim twice";
  }
  return bad;
}

int uvm_ask_victims(struct uvm_host *h, uvm_node n, uint64_t bytes, uvm_block_id incoming, const uvm_mask *pages, uvm_ns now,
                    uvm_backing_id *out, size_t max, size_t *count) {
  struct uvm_space *s = h->core->space;
  *count = 0;
  if (!h->victims) {
    *count = default_victims(s, n, bytes, incoming, out, max);
    return 0;
  }
  uvm_view v = view_of(h, h->victims, now);
  size_t got = h->victims->policy->victims(h->victims->state, &v, n, bytes, incoming, pages, out, max);
  const char *bad = got > max ? "more victims than there is room for" : bad_victims(s, n, incoming, out, got);
  if (bad) return refuse(h, h->victims, "victims", bad);
  *count = got;
  return 0;
}

/* -- the view: policy.h's accessors -- */

uvm_ns uvm_now(const uvm_view *v) { return v->now; }
const struct uvm_topology *uvm_topology(const uvm_view *v) { return &v->core->space->topology; }

const struct uvm_range_info *uvm_range(const uvm_view *v, uvm_range_id r) {
  const struct uvm_range *range = uvm_range_by_id(v->core->space, r);
  return range ? &range->info : NULL;
}

const struct uvm_block_info *uvm_block(const uvm_view *v, uvm_block_id b) {
  const struct uvm_block *block = uvm_block_by_id(v->core->space, b);
  return block ? &block->info : NULL;
}

const uvm_mask *uvm_resident(const uvm_view *v, uvm_block_id b, uvm_node n) {
  const struct uvm_space *s = v->core->space;
  const struct uvm_block *block = uvm_block_by_id(s, b);
  return block && n < s->topology.nnodes ? uvm_block_resident(s, block, n) : NULL;
}

const uvm_mask *uvm_mapped(const uvm_view *v, uvm_block_id b, uvm_proc p, uint8_t access) {
  const struct uvm_space *s = v->core->space;
  const struct uvm_block *block = uvm_block_by_id(s, b);
  return block && p < s->topology.nprocs ? uvm_block_mapped(s, block, p, uvm_level_of((enum uvm_access)access)) : NULL;
}

const uvm_mask *uvm_thrashing(const uvm_view *v, uvm_block_id b) { return uvm_ask_thrashing(v->host, b, v->now); }
const struct uvm_backing_info *uvm_backing(const uvm_view *v, uvm_backing_id k) { return uvm_backing_look(v->core->space, k); }

uvm_backing_id uvm_backing_of(const uvm_view *v, uvm_block_id b, uvm_node n, int page) {
  const struct uvm_space *s = v->core->space;
  const struct uvm_block *block = uvm_block_by_id(s, b);
  if (!block || n >= s->topology.nnodes || page < block->first || page >= block->first + block->pages) return 0;
  return uvm_page_backing(block, n, page);
}

uvm_backing_id uvm_oldest(const uvm_view *v, uvm_node n, enum uvm_list l) {
  const struct uvm_space *s = v->core->space;
  return n < s->topology.nnodes && l <= UVM_L_UNUSED ? s->lists[n][l].oldest : 0;
}

uvm_backing_id uvm_newer(const uvm_view *v, uvm_backing_id k) {
  const struct uvm_backing *backing = uvm_backing_get(v->core->space, k);
  return backing ? backing->newer : 0;
}

void *uvm_block_state(const uvm_view *v, uvm_block_id b) {
  struct uvm_block *block = uvm_block_by_id(v->core->space, b);
  return block ? part_memory(v->host, &block->policy_state, v->part, v->part->policy->block_size) : NULL;
}

void *uvm_backing_state(const uvm_view *v, uvm_backing_id k) {
  struct uvm_backing *backing = uvm_backing_get(v->core->space, k);
  return backing ? part_memory(v->host, &backing->policy_state, v->part, v->part->policy->backing_size) : NULL;
}

/* No session reads the trace ahead, and a policy that needs that is refused by uvm_host_start. */
uvm_ns uvm_next_use(const uvm_view *v, uvm_block_id b, int page, uvm_proc p) {
  (void)v, (void)b, (void)page, (void)p;
  return UINT64_MAX;
}

size_t uvm_uses(const uvm_view *v, uvm_range_id r, const struct uvm_use **out) {
  (void)v, (void)r;
  *out = NULL;
  return 0;
}
