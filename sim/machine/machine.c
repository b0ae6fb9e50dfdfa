#include "machine/machine.h"
#include <errno.h>
#include "machine/profile.h"

enum { PROFILE_MAX = 1 << 20 }; /* far above any sensible profile */

static char *read_file(const char *path, struct uvm_error *e) {
  FILE *f = fopen(path, "rb");
  if (!f) return uvm_fail(e, UVM_EINPUT, "%s: cannot open the machine profile: %s", path, strerror(errno)), NULL;
  char *text = uvm_mem(PROFILE_MAX + 1);
  size_t n = fread(text, 1, PROFILE_MAX + 1, f);
  int rc = 0;
  if (ferror(f))
    rc = uvm_fail(e, UVM_EINPUT, "%s: cannot read the machine profile: %s", path, strerror(errno));
  else if (n > PROFILE_MAX)
    rc = uvm_fail(e, UVM_EINPUT, "%s: expected a machine profile of at most 1 MiB", path);
  else if (memchr(text, 0, n))
    rc = uvm_fail(e, UVM_EINPUT, "%s: expected text, found a zero byte", path);
  fclose(f);
  if (!rc) return text[n] = 0, text;
  uvm_mem_free(text);
  return NULL;
}

static bool is_path(const char *name) {
  size_t n = strlen(name);
  return strchr(name, '/') || (n > 4 && !strcmp(name + n - 4, ".ini"));
}

const char *uvm__machine_text(const char *name) {
  for (const struct uvm_machine_entry *m = uvm_machines; m->name; m++)
    if (!strcmp(m->name, name)) return m->text;
  return NULL;
}

static const char *built_in(const char *name, struct uvm_error *e) {
  char known[512] = "";
  const char *text = uvm__machine_text(name);
  if (text) return text;
  for (const struct uvm_machine_entry *m = uvm_machines; m->name; m++) uvm_list_add(known, sizeof known, ", ", m->name);
  uvm_fail(e, UVM_EUSAGE, "unknown machine '%s'; known: %s; a path to a profile works too", name, known);
  return NULL;
}

/* The last part of a path without .ini. */
static void set_name(struct uvm_machine *m, const char *name) {
  const char *slash = strrchr(name, '/');
  snprintf(m->name, sizeof m->name, "%s", slash ? slash + 1 : name);
  size_t n = strlen(m->name);
  if (n > 4 && !strcmp(m->name + n - 4, ".ini")) m->name[n - 4] = 0;
}

int uvm_machine_open(const char *name, const char *costs, struct uvm_machine **out, struct uvm_error *e) {
  struct uvm_error unread;
  if (!e) e = &unread;
  if (!name) name = "nvidia-h200";
  if (!costs) costs = "measured";
  bool traced = !strcmp(costs, "traced");
  if (!traced && strcmp(costs, "measured")) return uvm_fail(e, UVM_EUSAGE, "unknown costs '%s'; known: measured, traced", costs);
  char *own = is_path(name) ? read_file(name, e) : NULL;
  const char *text = is_path(name) ? own : built_in(name, e);
  if (!text) return e->code;
  struct uvm_machine *m = uvm_mem(sizeof *m);
  set_name(m, name);
  char label[64];
  snprintf(label, sizeof label, "machine %s", name);
  int rc = uvm__profile_parse(own ? name : label, text, traced, m, e);
  uvm_mem_free(own);
  if (rc) return uvm_machine_close(m), rc;
  m->topology = (struct uvm_topology){.nprocs = m->nprocs,
                                      .nnodes = m->nnodes,
                                      .procs = m->procs,
                                      .nodes = m->nodes,
                                      .machine = m->name,
                                      .driver = m->driver,
                                      .driver_version = m->driver_version};
  *out = m;
  return 0;
}

static void free_way(struct uvm_way *w) {
  uvm_mem_free(w->wire.held.v);
  for (int i = 0; i < UVM_MAX_ENGINES; i++) uvm_mem_free(w->engines[i].held.v);
}

void uvm_machine_close(struct uvm_machine *m) {
  for (int i = 0; i < m->nlinks; i++) free_way(&m->links[i].ways[0]), free_way(&m->links[i].ways[1]);
  for (int i = 0; i < m->nnodes; i++) uvm_mem_free((char *)m->nodes[i].name);
  for (int i = 0; i < m->nprocs; i++) uvm_mem_free((char *)m->procs[i].name);
  uvm_mem_free(m);
}

void uvm_machine_set_gpu_memory(struct uvm_machine *m, uint64_t bytes) {
  for (int p = 1; p < m->nprocs; p++) {
    struct uvm_node_info *n = &m->nodes[m->procs[p].home];
    if (m->procs[p].home != m->procs[0].home) n->capacity = n->free = bytes;
  }
}
