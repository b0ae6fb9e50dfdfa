#include "sink.h"
#include <zlib.h>
#include <zstd.h>

struct uvm_sink {
  struct uvm_out out;
  enum uvm_codec codec;
  z_stream z;
  ZSTD_CCtx *zstd;
  uint64_t position;
  size_t n;
  uint8_t buf[65536];                           /* not yet compressed */
};

enum uvm_codec uvm_codec_of(const char *path) {
  size_t n = strlen(path);
  return n > 3 && !strcmp(path + n - 3, ".gz") ? UVM_GZIPPED : UVM_STORED;
}

int uvm_sink_open(const char *path, enum uvm_codec codec, struct uvm_sink **out, struct uvm_error *e) {
  struct uvm_sink *s = uvm_mem(sizeof *s);
  int code = uvm_out_open(&s->out, path, e);
  if (code) {
    uvm_mem_free(s);
    return code;
  }
  s->codec = codec;
  if (codec == UVM_GZIPPED && deflateInit2(&s->z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) uvm_mem_gone(0);
  if (codec == UVM_ZSTDED && !(s->zstd = ZSTD_createCCtx())) uvm_mem_gone(0);
  *out = s;
  return 0;
}

/* deflate fails only when it is misused: its state exists and the buffers are ours. zstd allocates when it begins. */
static void gzip(struct uvm_sink *s, bool last) {
  uint8_t out[16384];
  s->z.next_in = s->buf;
  s->z.avail_in = (uInt)s->n;
  do {
    s->z.next_out = out;
    s->z.avail_out = sizeof out;
    deflate(&s->z, last ? Z_FINISH : Z_NO_FLUSH);
    fwrite(out, 1, sizeof out - s->z.avail_out, s->out.f);
  } while (!s->z.avail_out);
}

static void zstd(struct uvm_sink *s, bool last) {
  uint8_t out[16384];
  ZSTD_inBuffer in = {s->buf, s->n, 0};
  size_t left;
  do {
    ZSTD_outBuffer to = {out, sizeof out, 0};
    left = ZSTD_compressStream2(s->zstd, &to, &in, last ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(left)) uvm_mem_gone(0);
    fwrite(out, 1, to.pos, s->out.f);
  } while (last ? left != 0 : in.pos < in.size);
}

/* fwrite's failures stay in the stream, where uvm_out_commit finds them. */
static void flush(struct uvm_sink *s, bool last) {
  if (s->codec == UVM_GZIPPED) gzip(s, last);
  else if (s->codec == UVM_ZSTDED) zstd(s, last);
  else fwrite(s->buf, 1, s->n, s->out.f);
  s->n = 0;
}

void uvm_sink_write(struct uvm_sink *s, const void *p, size_t n) {
  s->position += n;
  for (const uint8_t *from = p; n;) {
    size_t room = sizeof s->buf - s->n, take = n < room ? n : room;
    memcpy(s->buf + s->n, from, take);
    s->n += take;
    from += take;
    n -= take;
    if (s->n == sizeof s->buf) flush(s, false);
  }
}

void uvm_sink_text(struct uvm_sink *s, const char *text) { uvm_sink_write(s, text, strlen(text)); }

void uvm_sink_number(struct uvm_sink *s, uint64_t n) {
  char text[20];
  size_t at = sizeof text;
  do text[--at] = (char)('0' + n % 10);
  while (n /= 10);
  uvm_sink_write(s, text + at, sizeof text - at);
}

uint64_t uvm_sink_position(const struct uvm_sink *s) { return s->position; }

static void release(struct uvm_sink *s) {
  if (s->codec == UVM_GZIPPED) deflateEnd(&s->z);
  ZSTD_freeCCtx(s->zstd);
  uvm_mem_free(s);
}

int uvm_sink_commit(struct uvm_sink *s, struct uvm_error *e) {
  flush(s, true);
  int code = uvm_out_commit(&s->out, e);
  release(s);
  return code;
}

void uvm_sink_abandon(struct uvm_sink *s) {
  uvm_out_abandon(&s->out);
  release(s);
}
