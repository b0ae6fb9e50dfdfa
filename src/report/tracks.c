#include "report/tracks.h"
#include <assert.h>
#include <inttypes.h>
#include "sink.h"

/* -- rows -- */

enum { LATEST = 16 }; /* slices that a row remembers: news of a copy comes when its plan is through, so late by a few */
struct slice {
  uvm_ns begin, end;
};
struct row {
  unsigned tid; /* 0: not named yet */
  struct slice latest[LATEST];
  unsigned n;
  uvm_ns full_until; /* some slice forgotten ends here */
};
struct track {
  unsigned process;
  char *name;
  UVM_VEC(struct row) rows;
};
struct uvm_tracks {
  struct uvm_sink *out;
  unsigned processes, tids;
  bool more; /* an event stands before */
  UVM_VEC(struct track) tracks;
};

static bool fits(const struct row *r, struct slice s) {
  if (s.begin < r->full_until) return false;
  for (unsigned i = 0; i < r->n; i++)
    if (s.begin < r->latest[i].end && r->latest[i].begin < s.end) return false;
  return true;
}

static void remember(struct row *r, struct slice s) {
  unsigned oldest = 0;
  if (r->n < LATEST) {
    r->latest[r->n++] = s;
    return;
  }
  for (unsigned i = 1; i < LATEST; i++)
    if (r->latest[i].end < r->latest[oldest].end) oldest = i;
  r->full_until = r->latest[oldest].end;
  r->latest[oldest] = s;
}

/* -- JSON -- */

static void put(struct uvm_tracks *t, const char *text) { uvm_sink_text(t->out, text); }
static void put_number(struct uvm_tracks *t, uint64_t n) { uvm_sink_number(t->out, n); }

static void put_string(struct uvm_tracks *t, const char *s) {
  put(t, "\"");
  for (; *s; s++) {
    char escaped[8] = {*s};
    if (*s == '"' || *s == '\\')
      snprintf(escaped, sizeof escaped, "\\%c", *s);
    else if ((unsigned char)*s < ' ')
      snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned char)*s);
    put(t, escaped);
  }
  put(t, "\"");
}

/* Microseconds, as the format counts. */
static void put_time(struct uvm_tracks *t, const char *key, uvm_ns ns) {
  char text[48];
  snprintf(text, sizeof text, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
  put(t, text);
}

static void put_args(struct uvm_tracks *t, const char *key, const struct uvm_track_arg *args) {
  put(t, ",\""), put(t, key), put(t, "\":{");
  const char *between = "";
  for (const struct uvm_track_arg *a = args; a->key; a++) {
    if (a->text && !*a->text) continue;
    put(t, between), put_string(t, a->key), put(t, ":");
    between = ",";
    if (a->text)
      put_string(t, a->text);
    else
      put_number(t, a->number);
  }
  put(t, "}");
}

static void open_event(struct uvm_tracks *t, const char *phase, unsigned process, unsigned tid) {
  put(t, t->more ? ",\n{\"ph\":\"" : "\n{\"ph\":\""), put(t, phase);
  put(t, "\",\"pid\":"), put_number(t, process);
  put(t, ",\"tid\":"), put_number(t, tid);
  t->more = true;
}

static void name_event(struct uvm_tracks *t, const char *name) { put(t, ",\"name\":"), put_string(t, name); }
static void close_event(struct uvm_tracks *t) { put(t, "}"); }

static void metadata(struct uvm_tracks *t, unsigned process, unsigned tid, const char *what, struct uvm_track_arg arg) {
  open_event(t, "M", process, tid);
  put_time(t, "ts", 0);
  name_event(t, what);
  put_args(t, "args", (struct uvm_track_arg[]){arg, {0}});
  close_event(t);
}

/* -- tracks -- */

unsigned uvm_tracks_process(struct uvm_tracks *t, const char *name) {
  unsigned process = ++t->processes, tid = ++t->tids; /* its main thread has its number, and no row another's */
  assert(process == tid);
  metadata(t, process, tid, "process_name", (struct uvm_track_arg){"name", 0, name});
  metadata(t, process, tid, "process_sort_index", (struct uvm_track_arg){"sort_index", process, NULL});
  return process;
}

unsigned uvm_tracks_add(struct uvm_tracks *t, unsigned process, const char *name) {
  UVM_PUSH(&t->tracks) = (struct track){.process = process, .name = uvm_copy_string(name)};
  return (unsigned)t->tracks.n - 1;
}

/* Rows of one track stand together: a thousand of them at most, which is more than anybody looks at. */
static unsigned name_row(struct uvm_tracks *t, unsigned track, size_t index) {
  struct track *k = &t->tracks.v[track];
  struct row *r = &k->rows.v[index];
  char *name = index ? uvm_format("%s %zu", k->name, index + 1) : uvm_copy_string(k->name);
  r->tid = ++t->tids;
  metadata(t, k->process, r->tid, "thread_name", (struct uvm_track_arg){"name", 0, name});
  metadata(t, k->process, r->tid, "thread_sort_index", (struct uvm_track_arg){"sort_index", track * 1000ull + uvm_min(index, 999), NULL});
  uvm_mem_free(name);
  return r->tid;
}

static unsigned row_for(struct uvm_tracks *t, unsigned track, struct slice s) {
  struct track *k = &t->tracks.v[track];
  size_t i = 0;
  while (i < k->rows.n && !fits(&k->rows.v[i], s)) i++;
  if (i == k->rows.n) UVM_PUSH(&k->rows) = (struct row){0};
  remember(&k->rows.v[i], s);
  return k->rows.v[i].tid ? k->rows.v[i].tid : name_row(t, track, i);
}

static unsigned only_row(struct uvm_tracks *t, unsigned track) {
  struct track *k = &t->tracks.v[track];
  if (k->rows.n) return k->rows.v[0].tid;
  UVM_PUSH(&k->rows) = (struct row){0};
  return name_row(t, track, 0);
}

void uvm_tracks_slice(struct uvm_tracks *t, unsigned track, uvm_ns begin, uvm_ns dur, const char *name, const struct uvm_track_arg *args) {
  unsigned tid = row_for(t, track, (struct slice){begin, begin + dur});
  open_event(t, "X", t->tracks.v[track].process, tid);
  put_time(t, "ts", begin), put_time(t, "dur", dur);
  name_event(t, name);
  put_args(t, "args", args);
  close_event(t);
}

void uvm_tracks_begin(struct uvm_tracks *t, unsigned track, uvm_ns at, const char *name, const struct uvm_track_arg *args) {
  unsigned tid = only_row(t, track);
  open_event(t, "B", t->tracks.v[track].process, tid);
  put_time(t, "ts", at);
  name_event(t, name);
  put_args(t, "args", args);
  close_event(t);
}

void uvm_tracks_end(struct uvm_tracks *t, unsigned track, uvm_ns at) {
  unsigned tid = only_row(t, track);
  open_event(t, "E", t->tracks.v[track].process, tid);
  put_time(t, "ts", at);
  close_event(t);
}

void uvm_tracks_instant(struct uvm_tracks *t, unsigned track, uvm_ns at, const char *name, const struct uvm_track_arg *args) {
  unsigned tid = only_row(t, track);
  open_event(t, "i", t->tracks.v[track].process, tid);
  put_time(t, "ts", at);
  put(t, ",\"s\":\"t\"");
  name_event(t, name);
  put_args(t, "args", args);
  close_event(t);
}

void uvm_tracks_count(struct uvm_tracks *t, unsigned track, uvm_ns at, uint64_t bytes) {
  unsigned process = t->tracks.v[track].process;
  open_event(t, "C", process, process); /* a counter is its process's */
  put_time(t, "ts", at);
  name_event(t, t->tracks.v[track].name);
  put_args(t, "args", (struct uvm_track_arg[]){{"bytes", bytes, NULL}, {0}});
  close_event(t);
}

/* -- the file -- */

int uvm_tracks_open(const char *path, struct uvm_tracks **out, struct uvm_error *e) {
  struct uvm_sink *sink;
  int rc = uvm_sink_open(path, uvm_codec_of(path), &sink, e);
  if (rc) return rc;
  struct uvm_tracks *t = uvm_mem(sizeof *t);
  t->out = sink;
  put(t, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
  return *out = t, 0;
}

static void release(struct uvm_tracks *t) {
  for (size_t i = 0; i < t->tracks.n; i++) uvm_mem_free(t->tracks.v[i].name), uvm_mem_free(t->tracks.v[i].rows.v);
  uvm_mem_free(t->tracks.v);
  uvm_mem_free(t);
}

int uvm_tracks_commit(struct uvm_tracks *t, const struct uvm_track_arg *about, struct uvm_error *e) {
  put(t, "\n]");
  put_args(t, "otherData", about);
  put(t, "}\n");
  int rc = uvm_sink_commit(t->out, e);
  release(t);
  return rc;
}

void uvm_tracks_abandon(struct uvm_tracks *t) {
  uvm_sink_abandon(t->out);
  release(t);
}
