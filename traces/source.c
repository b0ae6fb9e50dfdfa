#include "source.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

/* -- source -- */

int uvm_source_open(struct uvm_source *s, const char *path, const char *name, bool again, struct uvm_error *e) {
  bool standard = !strcmp(path, "-");
  *s = (struct uvm_source){.name = name, .fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)};
  if (s->fd < 0) return uvm_fail(e, uvm_stop ? UVM_EENV : UVM_EINPUT, "%s: %s", name, strerror(errno));
  struct stat st;
  off_t here = lseek(s->fd, 0, SEEK_CUR);
  if (fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode) && here >= 0) {
    s->seekable = true;
    s->start = (uint64_t)here;
    s->total = st.st_size > here ? (uint64_t)(st.st_size - here) : 0;
  } else if (again && !(s->tee = tmpfile())) {
    int code = uvm_fail(e, UVM_EENV, "%s: cannot keep it in a temporary file: %s", name, strerror(errno));
    uvm_source_close(s);
    return code;
  }
  return 0;
}

void uvm_source_memory(struct uvm_source *s, const void *data, size_t n) {
  *s = (struct uvm_source){.name = "memory", .fd = -1, .seekable = true, .memory = data, .total = n};
}

static int keep(struct uvm_source *s, const uint8_t *p, size_t n, struct uvm_error *e) {
  for (size_t done = 0; done < n;) {
    ssize_t w = pwrite(fileno(s->tee), p + done, n - done, (off_t)(s->teed + done));
    if (w < 0 && errno != EINTR) return uvm_fail(e, UVM_EENV, "%s: cannot keep it in a temporary file: %s", s->name, strerror(errno));
    if (w > 0) done += (size_t)w;
  }
  s->teed += n;
  return 0;
}

/* One read, from wherever the byte at pos is. */
static ssize_t read_some(struct uvm_source *s, uint8_t *buf, size_t cap) {
  if (s->fd < 0) {
    size_t left = s->total - s->pos, n = left < cap ? left : cap;
    if (n) memcpy(buf, s->memory + s->pos, n);
    return (ssize_t)n;
  }
  ssize_t n;
  do {
    if (s->pos < s->teed) n = pread(fileno(s->tee), buf, cap, (off_t)s->pos);
    else if (s->seekable) n = pread(s->fd, buf, cap, (off_t)(s->start + s->pos));
    else n = read(s->fd, buf, cap);
  } while (n < 0 && errno == EINTR && !uvm_stop);
  return n;
}

int uvm_source_read(struct uvm_source *s, uint8_t *buf, size_t min, size_t cap, size_t *n, struct uvm_error *e) {
  assert(min <= cap);
  for (*n = 0; *n < min;) {
    bool fresh = s->pos >= s->teed;
    ssize_t got = read_some(s, buf + *n, cap - *n);
    if (got < 0) return uvm_fail(e, errno == EISDIR ? UVM_EINPUT : UVM_EENV, "%s: %s", s->name, strerror(errno));
    if (!got) break;
    if (s->tee && fresh) {
      int code = keep(s, buf + *n, (size_t)got, e);
      if (code) return code;
    }
    s->pos += (uint64_t)got;
    *n += (size_t)got;
  }
  return 0;
}

int uvm_source_rewind(struct uvm_source *s, struct uvm_error *e) {
  if (s->pos && !s->seekable && !s->tee) return uvm_fail(e, UVM_EINPUT, "%s: a pipe can be read only once here", s->name);
  s->pos = 0;
  return 0;
}

void uvm_source_close(struct uvm_source *s) {
  if (s->fd > STDIN_FILENO) close(s->fd);
  if (s->tee) fclose(s->tee);
  s->fd = -1;
  s->tee = NULL;
}

/* -- decoder -- */

int uvm_decoder_start(struct uvm_decoder *d, struct uvm_error *e) {
  d->inside = d->end = false;
  d->at = 0;
  int code = uvm_source_read(&d->source, d->chunk, 4, sizeof d->chunk, &d->n, e);
  if (code) return code;
  static const uint8_t gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
  if (d->n >= 2 && !memcmp(d->chunk, gzip, 2)) d->codec = UVM_GZIP;
  else if (d->n >= 4 && !memcmp(d->chunk, zstd, 4)) d->codec = UVM_ZSTD;
  else d->codec = UVM_PLAIN;
  if (d->codec == UVM_GZIP && !d->z) {
    d->z = uvm_mem(sizeof *d->z);
    if (inflateInit2(d->z, 15 + 16) != Z_OK) uvm_mem_gone(0);
  }
  if (d->codec == UVM_ZSTD && !d->zstd && !(d->zstd = ZSTD_createDCtx())) uvm_mem_gone(0);
  if (d->codec == UVM_ZSTD) ZSTD_DCtx_reset(d->zstd, ZSTD_reset_session_only);
  return 0;
}

static size_t plain(struct uvm_decoder *d, uint8_t *out, size_t cap) {
  size_t left = d->n - d->at, n = left < cap ? left : cap;
  memcpy(out, d->chunk + d->at, n);
  d->at += n;
  return n;
}

/* A gzip file may hold several members; each is started when its first byte is there. */
static const char *gunzip(struct uvm_decoder *d, uint8_t *out, size_t cap, size_t *n) {
  if (!d->inside) inflateReset(d->z);
  d->inside = true;
  d->z->next_in = d->chunk + d->at;
  d->z->avail_in = (uInt)(d->n - d->at);
  d->z->next_out = out;
  d->z->avail_out = (uInt)cap;
  int r = inflate(d->z, Z_NO_FLUSH);
  if (r == Z_MEM_ERROR) uvm_mem_gone(0);
  d->at = d->n - d->z->avail_in;
  *n = cap - d->z->avail_out;
  if (r == Z_STREAM_END) d->inside = false;
  return r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR ? NULL : "damaged gzip data";
}

static const char *unzstd(struct uvm_decoder *d, uint8_t *out, size_t cap, size_t *n) {
  ZSTD_inBuffer in = {d->chunk, d->n, d->at};
  ZSTD_outBuffer to = {out, cap, 0};
  size_t r = ZSTD_decompressStream(d->zstd, &to, &in);
  d->at = in.pos;
  *n = to.pos;
  if (ZSTD_getErrorCode(r) == ZSTD_error_memory_allocation) uvm_mem_gone(0);
  if (ZSTD_isError(r)) return "damaged zstd data";
  d->inside = r != 0;
  return NULL;
}

int uvm_decoder_read(struct uvm_decoder *d, uint8_t *out, size_t cap, size_t *n, const char **why, struct uvm_error *e) {
  for (*n = 0, *why = NULL; !*n;) {
    if (d->at == d->n && !d->end) {
      d->at = 0;
      int code = uvm_source_read(&d->source, d->chunk, 1, sizeof d->chunk, &d->n, e);
      if (code) return code;
      d->end = !d->n;
    }
    if (d->end && !d->inside) return 0;
    /* With the source at its end a decoder may still hold output, so it is asked once more before the data counts as cut. */
    if (d->codec == UVM_PLAIN) *n = plain(d, out, cap);
    else *why = d->codec == UVM_GZIP ? gunzip(d, out, cap, n) : unzstd(d, out, cap, n);
    if (!*why && d->end && !*n && d->inside) *why = "the end of the compressed data";
    if (*why) return UVM_EINPUT;
  }
  return 0;
}

void uvm_decoder_close(struct uvm_decoder *d) {
  if (d->z) inflateEnd(d->z);
  uvm_mem_free(d->z);
  ZSTD_freeDCtx(d->zstd);
  uvm_source_close(&d->source);
}
