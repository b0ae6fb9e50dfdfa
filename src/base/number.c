#include "base/base.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Decimal digits at s into *out; the first character after them, or NULL without a digit or beyond max. */
static const char *digits(const char *s, uint64_t max, uint64_t *out) {
  if (*s < '0' || *s > '9') return NULL;
  uint64_t v = 0;
  for (; *s >= '0' && *s <= '9'; s++) {
    uint64_t d = (uint64_t)(*s - '0');
    if (v > (max - d) / 10 || d > max) return NULL;
    v = v * 10 + d;
  }
  *out = v;
  return s;
}

static bool scaled(uint64_t v, uint64_t unit, uint64_t *out) {
  if (v > (uint64_t)INT64_MAX / unit) return false;
  *out = v * unit;
  return true;
}

bool uvm_parse_u64(const char *s, uint64_t max, uint64_t *out) {
  uint64_t v;
  const char *end = digits(s, max, &v);
  if (!end || *end) return false;
  *out = v;
  return true;
}

bool uvm_parse_size(const char *s, uint64_t *out) {
  static const char units[] = "KMGT";
  uint64_t v;
  const char *end = digits(s, INT64_MAX, &v);
  if (!end) return false;
  if (!*end) return scaled(v, 1, out);
  const char *u = strchr(units, *end);
  return u && !end[1] && scaled(v, 1ull << 10 * (u - units + 1), out);
}

bool uvm_parse_ns(const char *s, uint64_t *out) {
  static const struct { const char *name; uint64_t ns; } units[] = {{"", 1}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
  uint64_t v;
  const char *end = digits(s, INT64_MAX, &v);
  for (size_t i = 0; end && i < sizeof units / sizeof *units; i++)
    if (!strcmp(end, units[i].name)) return scaled(v, units[i].ns, out);
  return false;
}

/* strtod takes blanks in front, hexadecimals and names of infinities, too. */
bool uvm_parse_f64(const char *s, double *out) {
  char *end;
  if (s[strspn(s, "+-.0123456789eE")]) return false;
  errno = 0;
  double v = strtod(s, &end);
  if (end == s || *end || errno || !isfinite(v)) return false;
  *out = v;
  return true;
}

const char *uvm_size_text(uint64_t bytes, char buf[static 24]) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t u = 0;
  double v = (double)bytes;
  while (v >= 1024 && u + 1 < sizeof units / sizeof *units) v /= 1024, u++;
  snprintf(buf, 24, v == floor(v) ? "%.0f %s" : v < 10 ? "%.2f %s" : "%.1f %s", v, units[u]);
  return buf;
}

const char *uvm_ns_text(uvm_ns ns, char buf[static 24]) {
  if (ns < 1000) snprintf(buf, 24, "%u ns", (unsigned)ns);
  else if (ns < 1000000) snprintf(buf, 24, "%.1f us", (double)ns / 1e3);
  else if (ns < 1000000000) snprintf(buf, 24, "%.2f ms", (double)ns / 1e6);
  else snprintf(buf, 24, "%.3f s", (double)ns / 1e9);
  return buf;
}
