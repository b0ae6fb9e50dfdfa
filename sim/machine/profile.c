/* The reader of machine profiles. libinih takes lines apart; a table of fields says what may stand where. A profile that is like
 * another is read after that one, as a layer over it. Several passes: who is like whom; then the names of nodes, processors and
 * links, so that values can name them in any order; then the values; then the costs that [costs.traced] overrides. */
#include "machine/profile.h"
#include <assert.h>
#include <ini.h>

enum part { MACHINE, NODE, PROCESSOR, LINK, CPU, GPU, COSTS, TRACED, PARTS };
enum type { TEXT, LIKE, DRIVER, NUMBER, COUNT, SIZE, RATE, NODE_NAME, NODE_SET, PROC_SET, YES_NO };
struct field {
  uint8_t part, type;
  const char *key;
  size_t offset;
  bool optional;
};

#define M(t, f)                                                                                                                            \
  { MACHINE, t, #f, offsetof(struct uvm_machine, f), false }
#define N(t, f)                                                                                                                            \
  { NODE, t, #f, offsetof(struct uvm_node_info, f), false }
#define P(t, f, o)                                                                                                                         \
  { PROCESSOR, t, #f, offsetof(struct uvm_proc_info, f), o }
#define L(t, f)                                                                                                                            \
  { LINK, t, #f, offsetof(struct uvm_link, f), false }
#define C(t, f)                                                                                                                            \
  { CPU, t, #f, offsetof(struct uvm_cpu_model, f), false }
#define G(t, f)                                                                                                                            \
  { GPU, t, #f, offsetof(struct uvm_gpu_model, f), false }
#define K(f)                                                                                                                               \
  { COSTS, NUMBER, #f, offsetof(struct uvm_costs, f), false }
static const struct field fields[] = {
    M(TEXT, title),
    {MACHINE, LIKE, "like", offsetof(struct uvm_machine, like), true},
    M(DRIVER, driver),
    M(SIZE, system_page),
    N(SIZE, capacity),
    P(NODE_NAME, home, false),
    P(NODE_SET, reach, false),
    P(NODE_SET, native_atomics, false),
    P(PROC_SET, fast_link, true),
    P(YES_NO, apu, true),
    L(NODE_NAME, a),
    L(NODE_NAME, b),
    L(NUMBER, latency_ns),
    L(COUNT, engines),
    L(RATE, up),
    L(RATE, down),
    L(RATE, load),
    L(RATE, store),
    C(COUNT, threads),
    C(NUMBER, page_ns),
    C(NUMBER, element_ps),
    G(COUNT, sms),
    G(COUNT, lanes_per_sm),
    G(COUNT, blocks_per_sm),
    G(COUNT, warp),
    G(COUNT, gpcs),
    G(COUNT, utlb_faults),
    G(COUNT, gpc_warps),
    G(COUNT, gpc_turn),
    G(COUNT, ring),
    G(NUMBER, launch_ns),
    G(NUMBER, finish_ns),
    G(NUMBER, cold_ns),
    G(NUMBER, block_start_ns),
    G(NUMBER, warp_start_ns),
    G(NUMBER, start_jitter_ns),
    G(NUMBER, step_ns),
    G(NUMBER, store_step_ns),
    G(NUMBER, issue_ns),
    G(NUMBER, fault_arrival_ns),
    G(NUMBER, walk_ns),
    G(NUMBER, replay_arrival_ns),
    G(NUMBER, interrupt_ns),
    G(NUMBER, idle_interrupt_ns),
    G(NUMBER, deep_interrupt_ns),
    G(NUMBER, first_interrupt_ns),
    G(NUMBER, idle_after_ns),
    G(NUMBER, deep_after_ns),
    G(RATE, memory_rate),
    K(spread_percent),
    K(fetch_ns),
    K(raw_fault_ns),
    K(replay_ns),
    K(replay_wait_ns),
    K(restart_ns),
    K(block_ns),
    K(block_first_ns),
    K(region_ns),
    K(page_ns),
    K(write_ns),
    K(write_page_ns),
    K(populate_page_ns),
    K(map_ns),
    K(push_ns),
    K(transfer_ns),
    K(cpu_fault_ns),
    K(cpu_unmap_page_ns),
    K(cpu_map_ns),
    K(cpu_page_ns),
    K(cpu_write_ns),
    K(cpu_wake_ns),
    K(cpu_chunk_ns),
    K(cpu_populate_ns),
    K(cpu_populate_page_ns),
    K(cpu_first_write_ns),
    K(cpu_spurious_ns),
    K(cpu_nap_ns),
    K(prefetch_ns),
    K(prefetch_unmap_page_ns),
    K(prefetch_block_ns),
    K(prefetch_map_ns),
    K(prefetch_back_map_page_ns),
    K(prefetch_skip_ns),
    K(call_ns),
    K(sync_ns),
    K(revoke_page_ns),
    K(evict_ns),
    K(counter_ns),
};
#undef M
#undef N
#undef P
#undef L
#undef C
#undef G
#undef K
enum { FIELDS = sizeof fields / sizeof *fields, SECTIONS = UVM_MAX_NODES + UVM_MAX_PROCS + UVM_MAX_LINKS + PARTS, MAX_LAYERS = 4 };
enum { NUMBER_MAX = 1000000000, COUNT_MAX = 1000000 };
static const char *const part_names[PARTS] = {"machine", "node", "processor", "link", "cpu", "gpu", "costs", "costs.traced"};
static const uint8_t part_max[PARTS] = {1, UVM_MAX_NODES, UVM_MAX_PROCS, UVM_MAX_LINKS, 1, 1, 1, 1};

struct section {
  char name[64];
  uint8_t part, index;
  int line;
  bool seen[FIELDS], given[FIELDS]; /* in this layer; in any */
};
struct layer {
  const char *file, *text;
  char label[64]; /* `file` of a built-in one */
};
enum stage { LAYERS, NAMES, VALUES, OVERRIDES };
struct parser {
  const char *file, *text;
  struct uvm_machine *m;
  struct uvm_error *e;
  enum stage stage;
  struct layer layers[MAX_LAYERS]; /* each is like the next */
  int nlayers;
  int line, rc;
  struct section sections[SECTIONS];
  size_t nsections;
  uint8_t count[PARTS];
  struct uvm_costs *traced_costs; /* where [costs.traced] goes: the machine's, or aside when not wanted */
};

#define FAIL(p, line, ...) ((p)->rc ? (p)->rc : ((p)->rc = fail_at(p, line, __VA_ARGS__)))
static int __attribute__((format(printf, 3, 4))) fail_at(struct parser *p, int line, const char *fmt, ...) {
  char text[700];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  return uvm_fail(p->e, UVM_EINPUT, "%s:%d: %s", p->file, line, text);
}

/* -- lines, counted; libinih would cut a long one silently -- */

static char *next_line(char *out, int size, void *stream) {
  struct parser *p = stream;
  if (!*p->text || p->rc) return NULL;
  p->line++;
  const char *end = strchr(p->text, '\n');
  size_t n = end ? (size_t)(end + 1 - p->text) : strlen(p->text);
  if (n >= (size_t)size) return FAIL(p, p->line, "expected a line of at most %d characters, found %zu", size - 2, n), NULL;
  memcpy(out, p->text, n);
  out[n] = 0;
  p->text += n;
  return out;
}

/* -- sections -- */

static const char *known_sections(void) {
  return "[machine], [node NAME], [processor NAME], [link NAME], [cpu], [gpu], [costs], [costs.traced]";
}

static int part_of(const char *name, const char **rest) {
  const char *blank = strchr(name, ' ');
  size_t n = blank ? (size_t)(blank - name) : strlen(name);
  *rest = blank ? blank + 1 : "";
  for (int i = 0; i < PARTS; i++) {
    bool named = i == NODE || i == PROCESSOR || i == LINK;
    if (strlen(part_names[i]) == n && !strncmp(part_names[i], name, n) && named == (blank && blank[1] && !strchr(blank + 1, ' '))) return i;
  }
  return -1;
}

static void name_thing(struct parser *p, int part, uint8_t index, const char *name) {
  struct uvm_machine *m = p->m;
  if (part == NODE) m->nodes[index].name = uvm_copy_string(name), m->nnodes++;
  if (part == PROCESSOR) m->procs[index].name = uvm_copy_string(name), m->nprocs++;
  if (part == LINK) snprintf(m->links[index].name, sizeof m->links[index].name, "%s", name), m->nlinks++;
}

static struct section *find_section(struct parser *p, const char *name) {
  for (size_t i = 0; i < p->nsections; i++)
    if (!strcmp(p->sections[i].name, name)) return &p->sections[i];
  return NULL;
}

static int add_section(struct parser *p, const char *name) {
  const char *rest;
  int part = part_of(name, &rest);
  if (part < 0) return FAIL(p, p->line, "expected a section of %s, found [%s]", known_sections(), name);
  if (p->count[part] == part_max[part]) return FAIL(p, p->line, "expected at most %d [%s] sections", part_max[part], part_names[part]);
  if (strlen(rest) > 20) return FAIL(p, p->line, "expected a name of at most 20 characters, found '%s'", rest);
  struct section *s = &p->sections[p->nsections++];
  *s = (struct section){.part = (uint8_t)part, .index = p->count[part]++, .line = p->line};
  snprintf(s->name, sizeof s->name, "%s", name);
  name_thing(p, part, s->index, rest);
  return 0;
}

static void *base_of(struct parser *p, const struct section *s) {
  struct uvm_machine *m = p->m;
  switch ((enum part)s->part) {
  case MACHINE: return m;
  case NODE: return &m->nodes[s->index];
  case PROCESSOR: return &m->procs[s->index];
  case LINK: return &m->links[s->index];
  case CPU: return &m->cpu;
  case GPU: return &m->gpu;
  case COSTS: return &m->costs;
  case TRACED: return p->traced_costs;
  case PARTS: break;
  }
  return NULL;
}

/* -- values -- */

static int node_named(const struct uvm_machine *m, const char *name, size_t n) {
  for (int i = 0; i < m->nnodes; i++)
    if (strlen(m->nodes[i].name) == n && !strncmp(m->nodes[i].name, name, n)) return i;
  return -1;
}

static int proc_named(const struct uvm_machine *m, const char *name, size_t n) {
  for (int i = 0; i < m->nprocs; i++)
    if (strlen(m->procs[i].name) == n && !strncmp(m->procs[i].name, name, n)) return i;
  return -1;
}

/* Names separated by blanks to a set of bits. */
static bool name_set(const struct uvm_machine *m, const char *text, bool nodes, uint32_t *out) {
  for (*out = 0; *text;) {
    size_t n = strcspn(text, " ");
    int i = nodes ? node_named(m, text, n) : proc_named(m, text, n);
    if (i < 0) return false;
    *out |= 1u << i;
    text += n + strspn(text + n, " ");
  }
  return true;
}

static bool set_driver(struct uvm_machine *m, const char *value) {
  const char *dash = strrchr(value, '-');
  uint64_t version;
  if (!dash || dash == value || (size_t)(dash - value) >= sizeof m->driver || !uvm_parse_u64(dash + 1, UINT32_MAX, &version)) return false;
  memcpy(m->driver, value, (size_t)(dash - value));
  m->driver_version = (uint32_t)version;
  return true;
}

static bool set_size(const char *value, uint64_t *out) {
  if (strcmp(value, "unlimited")) return uvm_parse_size(value, out) && *out;
  *out = UINT64_MAX;
  return true;
}

static bool set_value(struct parser *p, const struct field *f, void *at, const char *value) {
  uint64_t n;
  int i;
  switch ((enum type)f->type) {
  case LIKE: return true; /* in LAYERS */
  case TEXT: return snprintf(at, sizeof p->m->title, "%s", value) < (int)sizeof p->m->title;
  case DRIVER: return set_driver(p->m, value);
  case NUMBER: return uvm_parse_u64(value, NUMBER_MAX, at);
  case COUNT: return uvm_parse_u64(value, COUNT_MAX, at) && *(uint64_t *)at;
  case SIZE: return set_size(value, at);
  case RATE: return uvm_parse_f64(value, at) && *(double *)at >= 1;
  case NODE_NAME: return (i = node_named(p->m, value, strlen(value))) >= 0 ? *(uvm_node *)at = (uvm_node)i, true : false;
  case NODE_SET: return name_set(p->m, value, true, at);
  case PROC_SET: return name_set(p->m, value, false, at);
  case YES_NO: return uvm_parse_u64(value, 1, &n) ? *(bool *)at = n, true : false;
  }
  return false;
}

static const char *expected(enum type t) {
  static const char *const text[] = {"a text of at most 95 characters",
                                     "the name of a machine",
                                     "NAME-VERSION as in nvidia-580",
                                     "a whole number up to 10^9",
                                     "a whole number from 1 to 10^6",
                                     "bytes, or a number with K, M or G, or unlimited",
                                     "a number of at least 1",
                                     "the name of a [node]",
                                     "names of nodes",
                                     "names of processors",
                                     "0 or 1"};
  return text[t];
}

static void list_keys(enum part part, char *out, size_t size) {
  *out = 0;
  for (int i = 0; i < FIELDS; i++)
    if (fields[i].part == part) uvm_list_add(out, size, ", ", fields[i].key);
}

static int set_key(struct parser *p, struct section *s, const char *key, const char *value) {
  enum part part = s->part == TRACED ? COSTS : (enum part)s->part;
  for (int i = 0; i < FIELDS; i++) {
    const struct field *f = &fields[i];
    if (f->part != part || strcmp(f->key, key)) continue;
    if (s->seen[i]) return FAIL(p, p->line, "expected each key of [%s] once, found %s again", s->name, key);
    s->seen[i] = s->given[i] = true;
    if (set_value(p, f, (char *)base_of(p, s) + f->offset, value)) return 0;
    return FAIL(p, p->line, "%s: expected %s, found '%s'", key, expected((enum type)f->type), value);
  }
  char keys[512];
  list_keys(part, keys, sizeof keys);
  return FAIL(p, p->line, "expected a key of [%s] (%s), found %s", s->name, keys, key);
}

/* -- layers -- */

static int add_layer(struct parser *p, const char *name) {
  const char *text = uvm__machine_text(name);
  if (!text) return FAIL(p, p->line, "like: expected the name of a machine that is built in, found '%s'", name);
  if (p->nlayers == MAX_LAYERS) return FAIL(p, p->line, "like: expected at most %d profiles each like the next", MAX_LAYERS);
  struct layer *l = &p->layers[p->nlayers++];
  snprintf(l->label, sizeof l->label, "machine %s", name);
  l->file = l->label;
  l->text = text;
  if (!*p->m->like) snprintf(p->m->like, sizeof p->m->like, "%s", name);
  return 0;
}

static int handle(void *user, const char *section, const char *key, const char *value) {
  struct parser *p = user;
  if (p->rc) return 0;
  if (p->stage == LAYERS) return strcmp(section, part_names[MACHINE]) || strcmp(key, "like") || !add_layer(p, value);
  struct section *s = find_section(p, section);
  if (p->stage == NAMES) return s || !add_section(p, section);
  assert(s);
  if (p->stage == OVERRIDES && s->part != TRACED) return 1;
  return !set_key(p, s, key, value);
}

static int read_layer(struct parser *p, const struct layer *l, enum stage stage) {
  p->file = l->file;
  p->text = l->text;
  p->line = 0;
  p->stage = stage;
  for (size_t i = 0; i < p->nsections; i++) memset(p->sections[i].seen, 0, sizeof p->sections[i].seen);
  int bad = ini_parse_stream(next_line, p, handle, p);
  if (bad && !p->rc) FAIL(p, bad, "expected [section] or key = value");
  return p->rc;
}

static int find_layers(struct parser *p) {
  for (int i = 0; i < p->nlayers; i++)
    if (read_layer(p, &p->layers[i], LAYERS)) return p->rc;
  return 0;
}

/* What is like another comes after it. */
static int pass(struct parser *p, enum stage stage) {
  for (int i = p->nlayers; i--;)
    if (read_layer(p, &p->layers[i], stage)) return p->rc;
  return 0;
}

/* -- what must hold of the whole -- */

static int check_keys(struct parser *p, const struct section *s) {
  if (s->part == TRACED) return 0;
  for (int i = 0; i < FIELDS; i++)
    if (fields[i].part == s->part && !fields[i].optional && !s->given[i])
      return FAIL(p, s->line, "expected the key %s in [%s], found none", fields[i].key, s->name);
  return 0;
}

static int check_parts(struct parser *p) {
  for (int part = 0; part < TRACED; part++)
    if (part != LINK && !p->count[part]) return FAIL(p, p->line ? p->line : 1, "expected a section [%s], found none", part_names[part]);
  return 0;
}

/* Every pair of nodes must be joined by a link or by two, or a transfer would have no way. */
static int check_links(struct parser *p) {
  const struct uvm_machine *m = p->m;
  uint32_t next[UVM_MAX_NODES] = {0};
  for (int i = 0; i < m->nlinks; i++) {
    next[m->links[i].a] |= 1u << m->links[i].b;
    next[m->links[i].b] |= 1u << m->links[i].a;
    if (m->links[i].engines > UVM_MAX_ENGINES)
      return FAIL(p, p->line, "expected at most %d engines of [link %s], found %llu", UVM_MAX_ENGINES, m->links[i].name,
                  (unsigned long long)m->links[i].engines);
  }
  for (int a = 0; a < m->nnodes; a++)
    for (int b = 0; b < a; b++)
      if (!(next[a] >> b & 1) && !(next[a] & next[b]))
        return FAIL(p, p->line, "expected a link or two between [node %s] and [node %s], found none", m->nodes[a].name, m->nodes[b].name);
  for (int i = 0; i < m->nlinks; i++)
    if (m->links[i].a == m->links[i].b) return FAIL(p, p->line, "expected [link %s] to join two nodes, found one", m->links[i].name);
  return 0;
}

static int check_processors(struct parser *p) {
  const struct uvm_machine *m = p->m;
  if (strcmp(m->procs[0].name, "cpu")) return FAIL(p, p->line, "expected [processor cpu] first, found [processor %s]", m->procs[0].name);
  for (int i = 0; i < m->nprocs; i++) {
    char name[8];
    snprintf(name, sizeof name, "gpu%d", i - 1);
    if (i && strcmp(m->procs[i].name, name))
      return FAIL(p, p->line, "expected [processor %s] after [processor %s], found [processor %s]", name, m->procs[i - 1].name,
                  m->procs[i].name);
    if (!(m->procs[i].reach >> m->procs[i].home & 1))
      return FAIL(p, p->line, "expected [processor %s] to reach its home", m->procs[i].name);
  }
  if (m->gpu.lanes_per_sm < m->gpu.warp || m->gpu.warp > 64)
    return FAIL(p, p->line, "expected a warp of at most 64 lanes and room for one, found warp = %llu", (unsigned long long)m->gpu.warp);
  return 0;
}

/* Overrides come last wherever they stand in the file. */
static int override_costs(struct parser *p) {
  p->traced_costs = &p->m->costs;
  return pass(p, OVERRIDES);
}

int uvm__profile_parse(const char *file, const char *text, bool traced, struct uvm_machine *m, struct uvm_error *e) {
  struct uvm_costs aside;
  struct parser *p = uvm_mem(sizeof *p);
  *p = (struct parser){.m = m, .e = e, .nlayers = 1, .layers = {{.file = file, .text = text}}, .traced_costs = &aside};
  int rc = find_layers(p);
  if (!rc) rc = pass(p, NAMES);
  if (!rc) rc = check_parts(p);
  if (!rc) rc = pass(p, VALUES);
  for (size_t i = 0; i < p->nsections && !rc; i++) rc = check_keys(p, &p->sections[i]);
  if (!rc && traced) rc = override_costs(p);
  if (!rc) rc = check_links(p);
  if (!rc) rc = check_processors(p);
  for (int i = 0; i < m->nnodes; i++) m->nodes[i].free = m->nodes[i].capacity;
  uvm_mem_free(p);
  return rc;
}
