/* Tracks: a file in the Trace Event Format (JSON), as ui.perfetto.dev and chrome://tracing read it. Processes have tracks; a track has
 * slices, instants, or a counter. Written as it comes: memory grows neither with time nor with events.
 *
 * The format wants the slices of a row to nest; ours never overlap: a slice that does not fit beside the latest of its track goes to
 * a further row of it ("kernels 2"). Events need not come in order of time, but of two at the same time the outer comes first. */
#ifndef UVM_TRACKS_H
#define UVM_TRACKS_H
#include "base/base.h"

struct uvm_tracks;
/* An argument of an event: a number, or a text when it is not NULL; an empty text is left out. Lists end with a NULL key. */
struct uvm_track_arg {
  const char *key;
  uint64_t number;
  const char *text;
};
/* path: compressed when it ends in .gz; "-": standard output. */
int uvm_tracks_open(const char *path, struct uvm_tracks **out, struct uvm_error *e);
/* Processes are numbered from 1 in the order they are added, before any event; tracks from 0; both are shown in this order. */
unsigned uvm_tracks_process(struct uvm_tracks *t, const char *name);
unsigned uvm_tracks_add(struct uvm_tracks *t, unsigned process, const char *name); /* a row appears with its first event */
void uvm_tracks_slice(struct uvm_tracks *t, unsigned track, uvm_ns begin, uvm_ns dur, const char *name, const struct uvm_track_arg *args);
/* A slice whose end is not known yet: of one track they nest, and it has no others. */
void uvm_tracks_begin(struct uvm_tracks *t, unsigned track, uvm_ns at, const char *name, const struct uvm_track_arg *args);
void uvm_tracks_end(struct uvm_tracks *t, unsigned track, uvm_ns at);
void uvm_tracks_instant(struct uvm_tracks *t, unsigned track, uvm_ns at, const char *name, const struct uvm_track_arg *args);
void uvm_tracks_count(struct uvm_tracks *t, unsigned track, uvm_ns at, uint64_t bytes); /* the track's name is the counter's */
/* Writes what else should be known of the file; frees. Failures of earlier writes are told here. */
int uvm_tracks_commit(struct uvm_tracks *t, const struct uvm_track_arg *about, struct uvm_error *e);
void uvm_tracks_abandon(struct uvm_tracks *t);
#endif
