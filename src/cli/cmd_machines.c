/* machines: the built-in ones, or one with its parts and the profile behind it. */
#include <inttypes.h>
#include "cli/options.h"
#include "machine/machine.h"
#include "report/json.h"
#include "report/table.h"

static int list(bool names_only, struct uvm_error *e) {
  struct uvm_table t;
  uvm_table_init(&t, names_only ? "l" : "lll", NULL);
  int rc = 0;
  for (const struct uvm_machine_entry *x = uvm_machines; x->name && !rc; x++) {
    struct uvm_machine *m;
    if ((rc = uvm_machine_open(x->name, NULL, &m, e))) break;
    uvm_table_cell(&t, "%s", m->name);
    if (!names_only) uvm_table_cell(&t, "%s", m->title), uvm_table_cell(&t, "driver %s-%u", m->driver, m->driver_version);
    uvm_machine_close(m);
  }
  uvm_table_print(&t, stdout);
  return rc;
}

static const char *capacity_text(uint64_t bytes, char buf[static 24]) {
  return bytes >= INT64_MAX ? "unlimited" : uvm_size_text(bytes, buf);
}

static const char *nodes_text(const struct uvm_machine *m, uint32_t nodes, char *out, size_t size) {
  *out = 0;
  for (unsigned i = 0; i < m->nnodes; i++)
    if (nodes >> i & 1) uvm_list_add(out, size, " ", m->nodes[i].name);
  return out;
}

static void print_places(const struct uvm_machine *m) {
  static const char *const nodes[] = {"node", "capacity"}, *const procs[] = {"processor", "home", "reaches", "atomics on"};
  struct uvm_table t;
  char size[24], reach[256], atomics[256];
  uvm_table_init(&t, "lr", nodes);
  for (unsigned i = 0; i < m->nnodes; i++)
    uvm_table_cell(&t, "%s", m->nodes[i].name), uvm_table_cell(&t, "%s", capacity_text(m->nodes[i].capacity, size));
  uvm_table_print(&t, stdout);
  putchar('\n');
  uvm_table_init(&t, "llll", procs);
  for (unsigned i = 0; i < m->nprocs; i++) {
    const struct uvm_proc_info *p = &m->procs[i];
    uvm_table_cell(&t, "%s", p->name);
    uvm_table_cell(&t, "%s", m->nodes[p->home].name);
    uvm_table_cell(&t, "%s", nodes_text(m, p->reach, reach, sizeof reach));
    uvm_table_cell(&t, "%s", nodes_text(m, p->native_atomics, atomics, sizeof atomics));
  }
  uvm_table_print(&t, stdout);
}

static void print_links(const struct uvm_machine *m) {
  static const char *const header[] = {"link", "between", "there GB/s", "back GB/s", "engines", "latency"};
  struct uvm_table t;
  char ns[24];
  if (!m->nlinks) return;
  uvm_table_init(&t, "llrrrr", header);
  for (unsigned i = 0; i < m->nlinks; i++) {
    const struct uvm_link *l = &m->links[i];
    uvm_table_cell(&t, "%s", l->name);
    uvm_table_cell(&t, "%s - %s", m->nodes[l->a].name, m->nodes[l->b].name);
    uvm_table_cell(&t, "%.1f", l->up / 1e9);
    uvm_table_cell(&t, "%.1f", l->down / 1e9);
    uvm_table_cell(&t, "%" PRIu64, l->engines);
    uvm_table_cell(&t, "%s", uvm_ns_text(l->latency_ns, ns));
  }
  putchar('\n');
  uvm_table_print(&t, stdout);
}

/* The profile says where each value comes from, so it is the best explanation there is. */
static void print_profile(const struct uvm_machine *m, const char *name) {
  for (const struct uvm_machine_entry *x = uvm_machines; x->name; x++) {
    if (strcmp(x->name, name)) continue;
    printf("\nThe profile%s%s:\n\n%s", *m->like ? "; what it leaves out is that of " : "", m->like, x->text);
  }
}

static void json_machine(cJSON *in, const struct uvm_machine *m) {
  cJSON *o = uvm_json_item(in);
  uvm_json_text(o, "name", m->name);
  uvm_json_text(o, "title", m->title);
  char *driver = uvm_format("%s-%u", m->driver, m->driver_version);
  uvm_json_text(o, "driver", driver);
  uvm_mem_free(driver);
  cJSON *nodes = uvm_json_list(o, "nodes"), *procs = uvm_json_list(o, "processors");
  for (unsigned i = 0; i < m->nnodes; i++) {
    cJSON *n = uvm_json_item(nodes);
    uvm_json_text(n, "name", m->nodes[i].name);
    uvm_json_u64(n, "capacity", m->nodes[i].capacity >= INT64_MAX ? UINT64_MAX : m->nodes[i].capacity);
  }
  for (unsigned i = 0; i < m->nprocs; i++) {
    cJSON *p = uvm_json_item(procs);
    uvm_json_text(p, "name", m->procs[i].name);
    uvm_json_text(p, "home", m->nodes[m->procs[i].home].name);
  }
}

static int write_json(const char *only, const char *path, struct uvm_error *e) {
  cJSON *o = uvm_json_object();
  uvm_json_u64(o, "schema", 1);
  cJSON *machines = uvm_json_list(o, "machines");
  struct uvm_machine *m;
  int rc = 0;
  for (const struct uvm_machine_entry *x = uvm_machines; !only && x->name && !rc; x++) {
    if ((rc = uvm_machine_open(x->name, NULL, &m, e))) break;
    json_machine(machines, m);
    uvm_machine_close(m);
  }
  if (only && !(rc = uvm_machine_open(only, NULL, &m, e))) {
    json_machine(machines, m);
    uvm_machine_close(m);
  }
  if (!rc) return uvm_json_write(o, path, e);
  cJSON_Delete(o);
  return rc;
}

int uvm_cmd_machines(const struct uvm_options *o, struct uvm_error *e) {
  const char *name = o->noperands ? o->operand[0] : NULL;
  int rc = o->json ? write_json(name, o->json, e) : 0;
  if (rc || uvm_to_stdout(o->json)) return rc;
  if (!name) return list(o->quiet, e);
  struct uvm_machine *m;
  if ((rc = uvm_machine_open(name, NULL, &m, e))) return rc;
  printf("%s: %s\ndriver %s-%u\n\n", m->name, m->title, m->driver, m->driver_version);
  print_places(m);
  print_links(m);
  if (!o->quiet) print_profile(m, name);
  uvm_machine_close(m);
  return 0;
}
