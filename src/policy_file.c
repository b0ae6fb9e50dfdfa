#include "policy_file.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool ends_in(const char *s, const char *end) {
  size_t n = strlen(s), k = strlen(end);
  return n >= k && !strcmp(s + n - k, end);
}

bool uvm_policy_file_named(const char *name) { return strchr(name, '/') || ends_in(name, ".c") || ends_in(name, ".so"); }

/* -- the compiler -- */

/* The folder of uvmsim/policy.h: of the installation or the source tree that this program is in, else where it was to be installed.
 * NULL: `tried` lists where it is not. The caller frees. */
static char *include_folder(char *tried, size_t size) {
  static const char *const beside[] = {"../include/", "../src/include/", "../../src/include/", NULL};
  char exe[PATH_MAX] = "";
  if (readlink("/proc/self/exe", exe, sizeof exe - 1) < 0) *exe = 0;
  int folder = (int)(strrchr(exe, '/') ? strrchr(exe, '/') + 1 - exe : 0);
  for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
    char *path = beside[i] ? uvm_format("%.*s%s", folder, exe, beside[i]) : uvm_copy_string(UVMSIM_INCLUDE "/");
    char *header = uvm_format("%suvmsim/policy.h", path);
    bool found = !access(header, R_OK);
    uvm_mem_free(header);
    if (found) return path;
    uvm_list_add(tried, size, ", ", path);
    uvm_mem_free(path);
  }
  return NULL;
}

/* What the compiler says, on either stream, is for people. */
static int spawn(char *const *argv, int *status) {
  posix_spawn_file_actions_t streams;
  pid_t child;
  posix_spawn_file_actions_init(&streams);
  posix_spawn_file_actions_adddup2(&streams, STDERR_FILENO, STDOUT_FILENO);
  int failed = posix_spawnp(&child, argv[0], &streams, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&streams);
  while (!failed && waitpid(child, status, 0) < 0)
    if (errno != EINTR) failed = errno;
  return failed;
}

/* $CC may hold options: words between blanks. */
static int run_compiler(const char *path, char *include, char *library, struct uvm_error *e) {
  static const char *const flags[] = {"-shared", "-fPIC", "-O2", "-g", "-Wall", "-Wl,-Bsymbolic", "-I"};
  enum { FLAGS = sizeof flags / sizeof *flags, WORDS = 32 };
  const char *cc = getenv("CC");
  char *words = uvm_copy_string(cc && cc[strspn(cc, " ")] ? cc : "cc"), *rest = words, *argv[WORDS + FLAGS + 5];
  int n = 0, status = 0;
  for (char *w; (w = strtok_r(rest, " ", &rest)) && n < WORDS;) argv[n++] = w;
  for (int i = 0; i < FLAGS; i++) argv[n++] = (char *)flags[i];
  argv[n++] = include, argv[n++] = "-o", argv[n++] = library, argv[n++] = (char *)path, argv[n] = NULL;
  int failed = spawn(argv, &status), rc = 0;
  if (failed)
    rc = uvm_fail(e, UVM_EENV, "%s: cannot be compiled: %s: %s; set CC to a C compiler", path, argv[0], strerror(failed));
  else if (uvm_stop)
    rc = uvm_fail(e, UVM_EENV, "%s: interrupted", path);
  else if (status)
    rc = uvm_fail(e, UVM_EINPUT, "%s: %s could not compile it", path, argv[0]);
  uvm_mem_free(words);
  return rc;
}

static int compile(const char *path, char *library, struct uvm_error *e) {
  char tried[1024] = "", *include = include_folder(tried, sizeof tried);
  if (!include) return uvm_fail(e, UVM_EENV, "%s: cannot be compiled: no uvmsim/policy.h; looked in %s", path, tried);
  int rc = run_compiler(path, include, library, e);
  uvm_mem_free(include);
  return rc;
}

/* -- loading -- */

/* `path` is the user's file, `library` what is loaded. */
static int load(const char *path, const char *library, struct uvm_policy_file *out, struct uvm_error *e) {
  size_t n = strlen(library);
  out->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!out->library) {
    const char *why = dlerror(); /* begins with the library's name, which may be a temporary one */
    if (!strncmp(why, library, n) && !strncmp(why + n, ": ", 2)) why += n + 2;
    return uvm_fail(e, UVM_EINPUT, "%s: cannot be loaded: %s", path, why);
  }
  uvm_policy_global(library, out->global, sizeof out->global);
  out->policy = dlsym(out->library, "uvm_policy");
  return out->policy ? 0 : uvm_fail(e, UVM_EINPUT, "%s: expected a definition of `const struct uvm_policy uvm_policy`, found none", path);
}

/* The library lies in a folder of its own until it is loaded. */
static int compile_and_load(const char *path, struct uvm_policy_file *out, struct uvm_error *e) {
  const char *tmp = getenv("TMPDIR") && *getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
  char *folder = uvm_format("%s/uvmsim.XXXXXX", tmp), *library = uvm_format("%s/policy.so", folder);
  int rc;
  uvm_out_remember(library), uvm_out_remember(folder);
  if (mkdtemp(folder)) {
    memcpy(library, folder, strlen(folder));
    rc = compile(path, library, e);
    if (!rc) rc = load(path, library, out, e);
    unlink(library), rmdir(folder);
  } else {
    rc = uvm_fail(e, UVM_EENV, "%s: cannot be compiled: no temporary folder in %s: %s", path, tmp, strerror(errno));
  }
  uvm_out_forget(library), uvm_out_forget(folder);
  uvm_mem_free(library), uvm_mem_free(folder);
  return rc;
}

/* -- checking -- */

/* -o NAME.KEY=VALUE must be able to name it. */
static bool is_word(const char *s) { return s && *s && !s[strcspn(s, " \t\n.=/,")]; }

static const char *bad_option(const struct uvm_policy *p, const struct uvm_opt *o) {
  static const size_t sizes[] = {[UVM_BOOL] = sizeof(bool),  [UVM_U32] = sizeof(uint32_t),  [UVM_U64] = sizeof(uint64_t),
                                 [UVM_F64] = sizeof(double), [UVM_SIZE] = sizeof(uint64_t), [UVM_NS] = sizeof(uvm_ns)};
  if (!is_word(o->name)) return "a name without blanks, dots and commas";
  if (o->type > UVM_NS) return "a type of enum uvm_type";
  if (o->offset > p->state_size || p->state_size - o->offset < sizes[o->type]) return "a value inside the state (state_size)";
  if (!(o->min <= o->def && o->def <= o->max)) return "a default between min and max";
  return o->help ? NULL : "a help text";
}

static int check(const char *path, const struct uvm_policy *p, struct uvm_error *e) {
  if (p->abi != UVM_POLICY_ABI)
    return uvm_fail(e, UVM_EINPUT, "%s: expected version %d of the policy ABI, found %u", path, UVM_POLICY_ABI, p->abi);
  if (!is_word(p->name)) return uvm_fail(e, UVM_EINPUT, "%s: expected a name without blanks, dots and commas", path);
  if (!p->help) return uvm_fail(e, UVM_EINPUT, "%s: policy %s: expected a help text, found none", path, p->name);
  uint32_t known = UVM_NEEDS_ACCESS | UVM_NEEDS_COUNTERS | UVM_NEEDS_FUTURE;
  if (p->needs & ~known) return uvm_fail(e, UVM_EINPUT, "%s: policy %s: needs 0x%x are unknown", path, p->name, p->needs & ~known);
  for (const struct uvm_opt *o = p->opts; o && o->name; o++) {
    const char *expected = bad_option(p, o);
    if (expected) return uvm_fail(e, UVM_EINPUT, "%s: policy %s: option '%s': expected %s", path, p->name, o->name, expected);
  }
  return 0;
}

int uvm_policy_file_open(const char *path, struct uvm_policy_file *out, struct uvm_error *e) {
  *out = (struct uvm_policy_file){0};
  bool source = ends_in(path, ".c");
  if (!source && !ends_in(path, ".so"))
    return uvm_fail(e, UVM_EUSAGE, "policy file '%s': expected a C file (.c) or a shared object (.so)", path);
  if (access(path, R_OK)) return uvm_fail(e, UVM_EINPUT, "%s: cannot open the policy: %s", path, strerror(errno));
  char *local = uvm_format("%s%s", strchr(path, '/') ? "" : "./", path); /* not searched for in the system's folders, nor an option */
  int rc = source ? compile_and_load(local, out, e) : load(local, local, out, e);
  if (!rc) rc = check(local, out->policy, e);
  if (rc) uvm_policy_file_close(out);
  uvm_mem_free(local);
  return rc;
}

void uvm_policy_file_close(struct uvm_policy_file *f) {
  if (f->library) dlclose(f->library);
  *f = (struct uvm_policy_file){0};
}
