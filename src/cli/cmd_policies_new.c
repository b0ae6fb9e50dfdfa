/* policies new: the skeleton of a policy, under the name asked for. */
#include <unistd.h>
#include "cli/options.h"
#include "policies.h"

static bool is_name(const char *s) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", others[] = "0123456789_-";
  if (!*s || !strchr(letters, *s)) return false;
  for (; *s; s++)
    if (!strchr(letters, *s) && !strchr(others, *s)) return false;
  return true;
}

/* The skeleton calls itself by its own name wherever the new one is to stand. */
static void write_as(const char *name, FILE *f) {
  static const char placeholder[] = "skeleton";
  const char *at = uvm_skeleton;
  for (const char *next; (next = strstr(at, placeholder)); at = next + strlen(placeholder))
    fprintf(f, "%.*s%s", (int)(next - at), at, name);
  fputs(at, f);
}

static int write_file(const char *name, const char *path, struct uvm_error *e) {
  struct uvm_out out;
  if (!access(path, F_OK)) return uvm_fail(e, UVM_EUSAGE, "%s exists already", path);
  int rc = uvm_out_open(&out, path, e);
  if (rc) return rc;
  write_as(name, out.f);
  return uvm_out_commit(&out, e);
}

int uvm_cmd_policies_new(const struct uvm_options *o, struct uvm_error *e) {
  const char *name = o->operand[0];
  if (!is_name(name))
    return uvm_fail(e, UVM_EUSAGE, "policies new: expected a name of letters, digits, _ and - that begins with a letter, found '%s'", name);
  char *path = uvm_format("%s.c", name);
  int rc = write_file(name, path, e);
  if (!rc && !o->quiet) printf("%s: written; try `uvmsim replay TRACE --policy ./%s`\n", path, path);
  uvm_mem_free(path);
  return rc;
}
