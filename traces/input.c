#include "input.h"
#include "names.h"
#include "source.h"
#include <assert.h>

enum { STEP = 65536, CAP = UVM_LINE_MAX + 2 * STEP };

struct uvm_input {
  char *path;
  const char *name;
  bool records;                                 /* positions are record numbers */
  int64_t line;
  size_t at, n;                                 /* unread bytes of buf */
  bool end;                                     /* nothing comes after them */
  struct uvm_decoder decoder;
  uint8_t buf[CAP + 1];                         /* one more for the NUL of a last line without an end */
};

int uvm_input_open(const char *path, bool again, struct uvm_input **out, struct uvm_error *e) {
  struct uvm_input *in = uvm_mem(sizeof *in);
  in->path = uvm_copy_string(path);
  in->name = strcmp(path, "-") ? in->path : "standard input";
  int code = uvm_source_open(&in->decoder.source, path, in->name, again, e);
  if (!code && (code = uvm_decoder_start(&in->decoder, e))) uvm_decoder_close(&in->decoder);
  if (code) {
    uvm_mem_free(in->path);
    uvm_mem_free(in);
    return code;
  }
  *out = in;
  return 0;
}

int uvm_input_open_memory(const void *data, size_t n, struct uvm_input **out, struct uvm_error *e) {
  struct uvm_input *in = uvm_mem(sizeof *in);
  in->path = uvm_copy_string("memory");
  in->name = in->path;
  uvm_source_memory(&in->decoder.source, data, n);
  int code = uvm_decoder_start(&in->decoder, e);
  if (code) uvm_input_close(in);
  else *out = in;
  return code;
}

int uvm_input_rewind(struct uvm_input *in, struct uvm_error *e) {
  int code = uvm_source_rewind(&in->decoder.source, e);
  if (code) return code;
  in->line = 0;
  in->at = in->n = 0;
  in->end = false;
  return uvm_decoder_start(&in->decoder, e);
}

void uvm_input_close(struct uvm_input *in) {
  uvm_decoder_close(&in->decoder);
  uvm_mem_free(in->path);
  uvm_mem_free(in);
}

/* Adds bytes to buf, moving what is unread to its front when it is nearly full. */
static int fill(struct uvm_input *in, struct uvm_error *e) {
  if (uvm_stop) return uvm_fail(e, UVM_EENV, "%s: interrupted", in->name);
  if (CAP - in->n < STEP) {
    memmove(in->buf, in->buf + in->at, in->n - in->at);
    in->n -= in->at;
    in->at = 0;
  }
  assert(in->n < CAP);
  size_t got;
  const char *why;
  int code = uvm_decoder_read(&in->decoder, in->buf + in->n, CAP - in->n, &got, &why, e);
  if (why) return uvm_input_fail(in, in->records ? 0 : in->line + 1, e, "expected more data, found %s", why);
  if (code) return code;
  in->n += got;
  in->end = !got;
  return 0;
}

static int check_text(const struct uvm_input *in, const char *line, size_t n, struct uvm_error *e) {
  if (n > UVM_LINE_MAX) return uvm_input_fail(in, in->line, e, "expected a line of at most 1 MiB, found a longer one");
  if (memchr(line, 0, n)) return uvm_input_fail(in, in->line, e, "expected text, found a NUL byte");
  if (!uvm_utf8(line, n)) return uvm_input_fail(in, in->line, e, "expected UTF-8 text, found other bytes");
  return 0;
}

int uvm_input_line(struct uvm_input *in, char **line, struct uvm_error *e) {
  uint8_t *lf = NULL;
  for (size_t seen = 0; !(lf = memchr(in->buf + in->at + seen, '\n', in->n - in->at - seen)) && !in->end;) {
    seen = in->n - in->at;
    if (seen > UVM_LINE_MAX) break;
    int code = fill(in, e);
    if (code) return code;
  }
  if (!lf && in->at == in->n) return 0;
  uint8_t *start = in->buf + in->at, *stop = lf ? lf : in->buf + in->n;
  in->line++;
  in->at = (size_t)(stop - in->buf) + (lf != NULL);
  if (stop > start && stop[-1] == '\r') stop--;
  *stop = 0;
  *line = (char *)start;
  int code = check_text(in, *line, (size_t)(stop - start), e);
  return code ? code : 1;
}

int uvm_input_bytes(struct uvm_input *in, void *buf, size_t n, size_t *got, struct uvm_error *e) {
  for (*got = 0; *got < n;) {
    size_t left = in->n - in->at, take = left < n - *got ? left : n - *got;
    memcpy((uint8_t *)buf + *got, in->buf + in->at, take);
    in->at += take;
    *got += take;
    if (*got == n) break;
    if (in->end) return 0;
    int code = fill(in, e);
    if (code) return code;
  }
  return 1;
}

int uvm_input_peek(struct uvm_input *in, size_t n, const uint8_t **p, struct uvm_error *e) {
  assert(n <= 64);
  while (in->n - in->at < n && !in->end) {
    int code = fill(in, e);
    if (code) return code;
  }
  *p = in->buf + in->at;
  return (int)(in->n - in->at < n ? in->n - in->at : n);
}

const char *uvm_input_path(const struct uvm_input *in) { return in->path; }
int64_t uvm_input_lineno(const struct uvm_input *in) { return in->line; }
void uvm_input_count_records(struct uvm_input *in) { in->records = true; }
const char *uvm_input_unit(const struct uvm_input *in) { return in->records ? "record" : "line"; }

uint64_t uvm_input_position(const struct uvm_input *in, uint64_t *total) {
  const struct uvm_source *s = &in->decoder.source;
  *total = s->total;
  return s->pos - (in->decoder.n - in->decoder.at);
}

int uvm_input_fail(const struct uvm_input *in, int64_t line, struct uvm_error *e, const char *fmt, ...) {
  char text[768];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  if (!line) return uvm_fail(e, UVM_EINPUT, "%s: %s", in->name, text);
  if (in->records) return uvm_fail(e, UVM_EINPUT, "%s: record %lld: %s", in->name, (long long)line, text);
  return uvm_fail(e, UVM_EINPUT, "%s:%lld: %s", in->name, (long long)line, text);
}

const char *uvm_quote(const char *s, char buf[static 80]) {
  enum { ROOM = 64 };
  size_t n = 0;
  buf[n++] = '"';
  while (*s && n < ROOM) {
    uint8_t c = (uint8_t)*s++;
    buf[n++] = c < 0x20 || c == 0x7f ? '?' : (char)c;
  }
  if (*s) {
    while (n > 1 && ((uint8_t)*s & 0xc0) == 0x80) s--, n--;      /* not inside a character */
    memcpy(buf + n, "...", 3);
    n += 3;
  }
  buf[n++] = '"';
  buf[n] = 0;
  return buf;
}
