#include "base/base.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Files being written, so that a signal or the end of memory leaves none behind. Slots are claimed and cleared whole. */
enum { MAX_OPEN = 16 };
static char *volatile pending[MAX_OPEN];

void uvm_out_forget(const char *path) {
  for (int i = 0; i < MAX_OPEN; i++)
    if (pending[i] == path) pending[i] = NULL;
}

bool uvm_out_remember(char *path) {
  for (int i = 0; i < MAX_OPEN; i++)
    if (!pending[i]) return pending[i] = path, true;
  return false;
}

void uvm_out_remove_all(void) {
  for (int i = 0; i < MAX_OPEN; i++) {
    char *p = pending[i];
    if (!p) continue;
    if (unlink(p)) rmdir(p);
    pending[i] = NULL;
  }
}

/* A device or a pipe is written as it is: there is nothing to rename over. */
static bool written_in_place(const char *path) {
  struct stat st;
  return !strcmp(path, "-") || (stat(path, &st) == 0 && !S_ISREG(st.st_mode));
}

static int open_aside(struct uvm_out *o, const char *path, struct uvm_error *e) {
  o->aside = uvm_format("%s.XXXXXX", path);
  int fd = mkostemp(o->aside, O_CLOEXEC);
  if (fd < 0) return uvm_fail(e, UVM_EENV, "%s: cannot be written: %s", path, strerror(errno));
  mode_t mask = umask(0);
  umask(mask);
  fchmod(fd, 0666 & ~mask);
  bool known = uvm_out_remember(o->aside);
  if (known && (o->f = fdopen(fd, "wb"))) return 0;
  const char *why = known ? strerror(errno) : "too many files are open for writing";
  close(fd), unlink(o->aside);
  return uvm_fail(e, UVM_EENV, "%s: cannot be written: %s", path, why);
}

int uvm_out_open(struct uvm_out *o, const char *path, struct uvm_error *e) {
  *o = (struct uvm_out){.path = uvm_copy_string(path)};
  int rc = 0;
  if (!written_in_place(path)) {
    rc = open_aside(o, path, e);
  } else if (!strcmp(path, "-")) {
    o->f = stdout;
  } else if (!(o->f = fopen(path, "wb"))) {
    rc = uvm_fail(e, UVM_EENV, "%s: cannot be written: %s", path, strerror(errno));
  }
  if (rc) uvm_out_abandon(o);
  return rc;
}

static void release(struct uvm_out *o) {
  if (o->aside) uvm_out_forget(o->aside);
  uvm_mem_free(o->aside), uvm_mem_free(o->path);
  *o = (struct uvm_out){0};
}

/* Flushed and, for a regular file, on the disk. */
static bool settled(struct uvm_out *o) { return !fflush(o->f) && !ferror(o->f) && (!o->aside || !fsync(fileno(o->f))); }

int uvm_out_commit(struct uvm_out *o, struct uvm_error *e) {
  bool ok = settled(o);
  int why = errno;
  if (o->f != stdout && fclose(o->f) && ok) ok = false, why = errno;
  o->f = NULL;
  if (ok && o->aside && rename(o->aside, o->path)) ok = false, why = errno;
  int rc = ok ? 0 : uvm_fail(e, UVM_EENV, "%s: cannot be written: %s", strcmp(o->path, "-") ? o->path : "standard output", strerror(why));
  if (!ok && o->aside) unlink(o->aside);
  release(o);
  return rc;
}

void uvm_out_abandon(struct uvm_out *o) {
  if (o->f && o->f != stdout) fclose(o->f);
  if (o->aside) unlink(o->aside);
  release(o);
}
