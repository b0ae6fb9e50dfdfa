/* policies: presets, parts and drivers; or one of them, with the questions it answers and its options. */
#include "cli/options.h"
#include <assert.h>
#include "core/driver.h"
#include "parts.h"
#include "report/json.h"
#include "report/table.h"

/* What holds where nobody answers. */
static const char *const without[UVM_HOOKS] = {[UVM_HOOK_PLACE] = "pages go where the driver's own rules say",
                                               [UVM_HOOK_PREFETCH] = "no prefetch: only faulted pages move",
                                               [UVM_HOOK_THRASH] = "no thrashing control"};

/* -- options, as people and programs read them -- */

static const char *value_text(const struct uvm_opt *o, double v, char buf[static 32]) {
  switch ((enum uvm_type)o->type) {
  case UVM_BOOL: return v != 0 ? "true" : "false";
  case UVM_SIZE: return uvm_size_text((uint64_t)v, buf);
  case UVM_NS: return uvm_ns_text((uvm_ns)v, buf);
  case UVM_F64: return snprintf(buf, 32, "%g", v), buf;
  case UVM_U32:
  case UVM_U64: return snprintf(buf, 32, "%.0f", v), buf;
  }
  return "?";
}

static void print_opts(const char *owner, const struct uvm_opt *opts) {
  static const char *const header[] = {"option (-o)", "default", "range", "meaning"};
  if (!opts || !opts->name) return;
  struct uvm_table t;
  uvm_table_init(&t, "llll", header);
  t.wrap = true;
  for (const struct uvm_opt *o = opts; o->name; o++) {
    char a[32], b[32];
    uvm_table_cell(&t, "%s.%s", owner, o->name);
    uvm_table_cell(&t, "%s", value_text(o, o->def, a));
    if (o->type == UVM_BOOL)
      uvm_table_cell(&t, "true, false");
    else if (o->max >= UINT32_MAX)
      uvm_table_cell(&t, "from %s", value_text(o, o->min, a));
    else
      uvm_table_cell(&t, "%s to %s", value_text(o, o->min, a), value_text(o, o->max, b));
    uvm_table_cell(&t, "%s", o->help);
  }
  uvm_table_print(&t, stdout);
}

static void json_opts(cJSON *in, const char *owner, const struct uvm_opt *opts) {
  cJSON *list = uvm_json_list(in, "options");
  for (; opts && opts->name; opts++) {
    char value[32], *name = uvm_format("%s.%s", owner, opts->name);
    cJSON *o = uvm_json_item(list);
    uvm_json_text(o, "name", name);
    uvm_json_text(o, "default", value_text(opts, opts->def, value));
    uvm_json_text(o, "min", value_text(opts, opts->min, value));
    uvm_json_text(o, "max", value_text(opts, opts->max, value));
    uvm_json_text(o, "help", opts->help);
    uvm_mem_free(name);
  }
}

/* -- one of each -- */

static const char *hooks_text(const struct uvm_policy *p, char *out, size_t size) {
  const struct {
    const char *name;
    bool has;
  } hooks[] = {{"told of events", p->on_event},
               {"told of accesses", p->on_access},
               {"thrash", p->thrash},
               {"thrashing", p->thrashing},
               {"place", p->place},
               {"prefetch", p->prefetch},
               {"victims", p->victims},
               {"counter", p->counter},
               {"ahead", p->ahead}};
  *out = 0;
  for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
    if (hooks[i].has) uvm_list_add(out, size, ", ", hooks[i].name);
  return out;
}

/* `above`: the preset explained before; its parts are not explained again. */
static void explain_policy(const struct uvm_policy *p, const struct uvm_preset *above) {
  char hooks[256];
  for (size_t i = 0; above && above->parts[i]; i++)
    if (above->parts[i] == p) {
      printf("  %s: see above\n", p->name);
      return;
    }
  uvm_wrap(stdout, p->help, 4, printf("  %s: ", p->name));
  printf("  hooks: %s\n", hooks_text(p, hooks, sizeof hooks));
  print_opts(p->name, p->opts);
}

static const struct uvm_preset *explain_preset(const char *name) {
  for (const struct uvm_preset *s = uvm_presets; s->name; s++) {
    if (strcmp(s->name, name)) continue;
    uvm_wrap(stdout, s->help, 2, printf("policy %s: ", s->name));
    for (size_t i = 0; s->parts[i]; i++) explain_policy(s->parts[i], NULL);
    return s;
  }
  return NULL;
}

static bool explain_parts(const char *name, const struct uvm_preset *above) {
  bool any = false;
  for (const struct uvm_part *p = uvm_parts; p->name; p++) {
    if (strcmp(p->name, name) && (!p->policy || strcmp(p->policy->name, name))) continue;
    printf("%spart --%s %s\n", any || above ? "\n" : "", uvm_hook_options[p->hook], p->name);
    if (p->policy)
      explain_policy(p->policy, above);
    else
      printf("  %s\n", without[p->hook]);
    any = true;
  }
  return any;
}

static bool explain_driver(const char *name, bool after) {
  for (size_t i = 0; uvm_drivers[i]; i++) {
    const struct uvm_driver *d = uvm_drivers[i];
    if (strcmp(d->name, name)) continue;
    if (after) putchar('\n');
    uvm_wrap(stdout, d->help, 2, printf("driver %s: ", d->name));
    printf("its policy unless another is named: %s\n", d->default_policy);
    print_opts(d->name, d->opts);
    return true;
  }
  return false;
}

static void add_name(const char **known, size_t *n, const char *added) {
  for (size_t i = 0; i < *n; i++)
    if (!strcmp(known[i], added)) return;
  known[(*n)++] = added;
}

static int unknown(const char *wanted, struct uvm_error *e) {
  const char *known[128];
  size_t n = 0;
  for (const struct uvm_preset *s = uvm_presets; s->name; s++) add_name(known, &n, s->name);
  for (const struct uvm_part *p = uvm_parts; p->name; p++) {
    add_name(known, &n, p->name);
    if (p->policy) add_name(known, &n, p->policy->name);
  }
  for (size_t i = 0; uvm_drivers[i]; i++) add_name(known, &n, uvm_drivers[i]->name);
  assert(n < sizeof known / sizeof *known);
  known[n] = NULL;
  return uvm_unknown(e, "policy, part or driver", wanted, known);
}

static int explain_file(const char *path, struct uvm_error *e) {
  struct uvm_policy_file file;
  int rc = uvm_policy_file_open(path, &file, e);
  if (rc) return rc;
  const char *base = file.policy->base;
  printf("policy %s; what it leaves open: %s\n", path, base ? base : "the core's own defaults");
  explain_policy(file.policy, NULL);
  uvm_policy_file_close(&file);
  return 0;
}

static int explain(const char *wanted, struct uvm_error *e) {
  if (uvm_policy_file_named(wanted)) return explain_file(wanted, e);
  const struct uvm_preset *preset = explain_preset(wanted);
  bool part = explain_parts(wanted, preset), driver = explain_driver(wanted, preset || part);
  return preset || part || driver ? 0 : unknown(wanted, e);
}

/* -- all of them -- */

static void list(void) {
  struct uvm_table t;
  uvm_table_init(&t, "lll", NULL);
  t.wrap = true;
  for (const struct uvm_preset *s = uvm_presets; s->name; s++)
    uvm_table_cell(&t, "--policy"), uvm_table_cell(&t, "%s", s->name), uvm_table_cell(&t, "%s", s->help);
  for (int h = 0; h < UVM_HOOKS; h++)
    for (const struct uvm_part *p = uvm_parts; p->name; p++) {
      if ((int)p->hook != h) continue;
      uvm_table_cell(&t, "--%s", uvm_hook_options[h]);
      uvm_table_cell(&t, "%s", p->name);
      uvm_table_cell(&t, "%s", p->policy ? p->policy->help : without[h]);
    }
  for (size_t i = 0; uvm_drivers[i]; i++)
    uvm_table_cell(&t, "--driver"), uvm_table_cell(&t, "%s", uvm_drivers[i]->name), uvm_table_cell(&t, "%s", uvm_drivers[i]->help);
  uvm_table_print(&t, stdout);
}

static int write_json(const char *path, struct uvm_error *e) {
  cJSON *o = uvm_json_object(), *policies, *parts, *drivers;
  uvm_json_u64(o, "schema", 1);
  policies = uvm_json_list(o, "policies"), parts = uvm_json_list(o, "parts"), drivers = uvm_json_list(o, "drivers");
  for (const struct uvm_preset *s = uvm_presets; s->name; s++) {
    cJSON *item = uvm_json_item(policies);
    uvm_json_text(item, "name", s->name), uvm_json_text(item, "help", s->help);
  }
  for (const struct uvm_part *p = uvm_parts; p->name; p++) {
    cJSON *item = uvm_json_item(parts);
    uvm_json_text(item, "option", uvm_hook_options[p->hook]), uvm_json_text(item, "name", p->name);
    uvm_json_text(item, "policy", p->policy ? p->policy->name : NULL);
    if (p->policy) json_opts(item, p->policy->name, p->policy->opts);
  }
  for (size_t i = 0; uvm_drivers[i]; i++) {
    cJSON *item = uvm_json_item(drivers);
    uvm_json_text(item, "name", uvm_drivers[i]->name), uvm_json_text(item, "help", uvm_drivers[i]->help);
    json_opts(item, uvm_drivers[i]->name, uvm_drivers[i]->opts);
  }
  return uvm_json_write(o, path, e);
}

int uvm_cmd_policies(const struct uvm_options *o, struct uvm_error *e) {
  int rc = o->json ? write_json(o->json, e) : 0;
  if (rc || uvm_to_stdout(o->json)) return rc;
  if (o->noperands) return explain(o->operand[0], e);
  if (!o->quiet) return list(), 0;
  for (const struct uvm_preset *s = uvm_presets; s->name; s++) puts(s->name);
  return 0;
}
