#include "parts.h"
#include <assert.h>
#include "session.h"

/* -- choosing by name; an unknown name lists the known ones -- */

static int unknown(struct uvm_error *e, const char *what, const char *name, const char *known) {
  return uvm_fail(e, UVM_EUSAGE, "unknown %s '%s'; known: %s", what, name, known);
}

const struct uvm_preset *uvm_preset_find(const char *name, const char *what, struct uvm_error *e) {
  char known[512] = "";
  for (const struct uvm_preset *p = uvm_presets; p->name; p++) {
    if (!strcmp(p->name, name)) return p;
    uvm_list_add(known, sizeof known, ", ", p->name);
  }
  unknown(e, what, name, known);
  return NULL;
}

static const struct uvm_part *find_part(enum uvm_hook hook, const char *name, struct uvm_error *e) {
  static const char *const hooks[UVM_HOOKS] = {"placement", "prefetcher", "evictor", "thrashing control"};
  char known[512] = "";
  for (const struct uvm_part *p = uvm_parts; p->name; p++) {
    if (p->hook != hook) continue;
    if (!strcmp(p->name, name)) return p;
    uvm_list_add(known, sizeof known, ", ", p->name);
  }
  unknown(e, hooks[hook], name, known);
  return NULL;
}

static int open_file(struct uvm_parts *p, const char *path, const struct uvm_policy **out, struct uvm_error *e) {
  int rc = uvm_policy_file_open(path, &p->files[p->nfiles], e);
  if (!rc) *out = p->files[p->nfiles++].policy;
  return rc;
}

/* -- hooks -- */

static bool answers(const struct uvm_policy *p, enum uvm_hook hook) {
  switch (hook) {
  case UVM_HOOK_PLACE: return p->place != NULL;
  case UVM_HOOK_PREFETCH: return p->prefetch != NULL;
  case UVM_HOOK_EVICT: return p->victims != NULL;
  case UVM_HOOK_THRASH: return p->thrash != NULL;
  case UVM_HOOKS: break;
  }
  return false;
}

static bool answers_any(const struct uvm_policy *p) {
  return p->place || p->prefetch || p->victims || p->thrash || p->thrashing || p->counter || p->ahead;
}

static void silence(struct uvm_policy *p, enum uvm_hook hook) {
  switch (hook) {
  case UVM_HOOK_PLACE: p->place = NULL; break;
  case UVM_HOOK_PREFETCH: p->prefetch = NULL; break;
  case UVM_HOOK_EVICT: p->victims = NULL; break;
  case UVM_HOOK_THRASH: p->thrash = NULL, p->thrashing = NULL; break;
  case UVM_HOOKS: break;
  }
}

static void add(struct uvm_parts *p, const struct uvm_policy *policy) {
  assert(p->n < UVM_MAX_PARTS);
  p->own[p->n++] = *policy;
}

/* Only that hook of it. */
static void add_part(struct uvm_parts *p, const struct uvm_policy *policy, enum uvm_hook hook) {
  add(p, policy);
  struct uvm_policy *part = &p->own[p->n - 1];
  part->counter = NULL, part->ahead = NULL;
  for (int h = 0; h < UVM_HOOKS; h++)
    if (h != (int)hook) silence(part, (enum uvm_hook)h);
}

/* Nobody else answers that hook any more; who has nothing left to answer goes. */
static void vacate(struct uvm_parts *p, enum uvm_hook hook) {
  size_t n = 0;
  for (size_t i = 0; i < p->n; i++) {
    struct uvm_policy policy = p->own[i];
    silence(&policy, hook);
    if (answers_any(&policy) || !answers_any(&p->own[i])) p->own[n++] = policy;
  }
  p->n = n;
}

/* -- composing -- */

static int choose_part(struct uvm_parts *p, enum uvm_hook hook, const char *name, struct uvm_error *e) {
  static const char *const fields[UVM_HOOKS] = {"place", "prefetch", "victims", "thrash"};
  const struct uvm_policy *policy;
  if (uvm_policy_file_named(name)) {
    int rc = open_file(p, name, &policy, e);
    if (rc) return rc;
    if (!answers(policy, hook)) return uvm_fail(e, UVM_EUSAGE, "%s: policy %s has no hook %s", name, policy->name, fields[hook]);
    name = policy->name;
  } else {
    const struct uvm_part *part = find_part(hook, name, e);
    if (!part) return UVM_EUSAGE;
    policy = part->policy;
  }
  vacate(p, hook);
  if (policy) add_part(p, policy, hook);
  uvm_list_add(p->name, sizeof p->name, ", ", name);
  return 0;
}

static int choose_preset(struct uvm_parts *p, const char *name, const char *what, struct uvm_error *e) {
  const struct uvm_preset *preset = uvm_preset_find(name, what, e);
  for (size_t i = 0; preset && preset->parts[i]; i++) add(p, preset->parts[i]);
  return preset ? 0 : UVM_EUSAGE;
}

static int choose_opened(struct uvm_parts *p, const struct uvm_policy *policy, struct uvm_error *e) {
  add(p, policy);
  uvm_list_add(p->name, sizeof p->name, "", policy->name);
  if (!policy->base) return 0;
  char *what = uvm_format("base of policy %s", policy->name);
  int rc = choose_preset(p, policy->base, what, e);
  uvm_mem_free(what);
  return rc;
}

static int choose_file(struct uvm_parts *p, const char *path, struct uvm_error *e) {
  const struct uvm_policy *policy;
  int rc = open_file(p, path, &policy, e);
  return rc ? rc : choose_opened(p, policy, e);
}

int uvm_parts_choose(struct uvm_parts *p, const struct uvm_session_config *c, const char *otherwise, struct uvm_error *e) {
  const char *name = c->policy ? c->policy : otherwise, *const chosen[UVM_HOOKS] = {c->place, c->prefetch, c->evict, c->thrash};
  *p = (struct uvm_parts){0};
  int rc;
  if (c->opened) {
    rc = choose_opened(p, c->opened, e);
  } else if (uvm_policy_file_named(name)) {
    rc = choose_file(p, name, e);
  } else {
    rc = choose_preset(p, name, "policy", e);
    uvm_list_add(p->name, sizeof p->name, "", name);
  }
  for (int h = 0; h < UVM_HOOKS && !rc; h++)
    if (chosen[h]) rc = choose_part(p, (enum uvm_hook)h, chosen[h], e);
  for (size_t i = 0; i < p->n; i++) p->v[i] = &p->own[i];
  return rc;
}

void uvm_parts_close(struct uvm_parts *p) {
  while (p->nfiles) uvm_policy_file_close(&p->files[--p->nfiles]);
}
