#include "cli/progress.h"
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include "trace.h"

/* -- the line -- */

enum { BAR = 40, LEAST_BAR = 10, PARTS = 4, PART = 48 };
static const double LONG_RECORD = 2; /* seconds */

/* Three digits. */
static void rate_text(double rate, char *out) {
  static const char *const units[] = {"", "k ", "M ", "G ", "T "};
  size_t u = 0;
  for (; rate >= 999.5 && u + 1 < sizeof units / sizeof *units; u++) rate /= 1000;
  snprintf(out, PART, "%.*f %saccesses/s", rate < 9.995 ? 2 : rate < 99.95, rate, units[u]);
}

static void left_text(double seconds, char *out) {
  unsigned s = seconds < 360000 ? (unsigned)(seconds + 0.5) : 360000;
  if (s >= 3600)
    snprintf(out, PART, "%u:%02u:%02u left", s / 3600, s / 60 % 60, s % 60);
  else
    snprintf(out, PART, "%u:%02u left", s / 60, s % 60);
}

/* The parts after the bar, the most wanted first; "" where nothing is known. */
static void fill(const struct uvm_progress *p, double elapsed, double still, char part[PARTS][PART]) {
  char text[24];
  double share = p->total ? (double)p->done / (double)p->total : 0;
  if (p->total)
    snprintf(part[0], PART, "%3.0f %%", share * 100);
  else
    snprintf(part[0], PART, "%s read", uvm_size_text(p->done, text));
  if (still >= LONG_RECORD)
    snprintf(part[1], PART, "in line %lld", (long long)p->line);
  else if (share > 0)
    left_text(elapsed / share - elapsed, part[1]);
  if (p->accesses && elapsed > 0) rate_text((double)p->accesses / elapsed, part[2]);
  snprintf(part[3], PART, "%s simulated", uvm_ns_text(p->now, text));
}

void uvm_progress_line(const struct uvm_progress *p, double elapsed, double still, unsigned columns, char *out, size_t size) {
  char part[PARTS][PART] = {""}, tail[PARTS * (PART + 2)] = "";
  fill(p, elapsed, still, part);
  size_t width = 0;
  for (int i = 0; i < PARTS; i++) {
    size_t n = strlen(part[i]) + (width ? 2 : 0);
    if (!*part[i] || width + n > columns) continue;
    uvm_list_add(tail, sizeof tail, "  ", part[i]);
    width += n;
  }
  size_t room = columns > width + 3 ? columns - width - 3 : 0; /* brackets and a blank */
  if (room > BAR) room = BAR;
  *out = 0;
  if (p->total && room >= LEAST_BAR) {
    int filled = (int)((double)room * (double)p->done / (double)p->total);
    snprintf(out, size, "[%.*s%*s] %s", filled, "########################################", (int)room - filled, "", tail);
  } else {
    snprintf(out, size, "%s", tail);
  }
}

/* -- showing it -- */

double uvm_cli_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static unsigned columns(void) {
  struct winsize w;
  return !ioctl(STDERR_FILENO, TIOCGWINSZ, &w) && w.ws_col ? w.ws_col : 80;
}

/* A small trace is in memory long before the run is over, so its bytes tell nothing. */
static void survey(struct uvm_progress_bar *b, uint64_t total) {
  enum { SMALL = 1 << 20 };
  struct uvm_trace *t;
  struct uvm_trace_facts facts;
  if (!total || total > SMALL || uvm_trace_open(b->trace, false, &t, NULL)) return;
  if (!uvm_trace_survey(t, &facts, NULL)) b->elements = facts.elements;
  uvm_trace_close(t);
}

static bool moves(struct uvm_progress_bar *b, const struct uvm_progress *p) {
  bool moved = p->done != b->done || p->accesses != b->accesses;
  b->done = p->done, b->accesses = p->accesses;
  return moved;
}

void uvm_progress_show(void *ctx, const struct uvm_progress *p) {
  struct uvm_progress_bar *b = ctx;
  struct uvm_progress of = *p;
  char line[256];
  double now = uvm_cli_seconds();
  if (!b->began) b->began = now;
  if (moves(b, p) || !b->moved) b->moved = now;
  if (now - b->began < 1 || now - b->shown < 0.1) return;
  if (!b->shown) survey(b, p->total);
  if (b->elements) of.done = p->accesses, of.total = b->elements;
  b->shown = now;
  uvm_progress_line(&of, now - b->began, now - b->moved, columns() - 1, line, sizeof line);
  fprintf(stderr, "\r%s\033[K", line);
}

void uvm_progress_erase(const struct uvm_progress_bar *b) {
  if (b->shown > 0) fprintf(stderr, "\r\033[K");
}
