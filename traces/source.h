/* A source: the bytes of a file, of standard input or of memory, as they are stored, and a decoder over it that
 * undoes gzip or zstd. Both stream, so memory is bounded whatever a file expands to. */
#ifndef UVM_TRACES_SOURCE_H
#define UVM_TRACES_SOURCE_H
#include "base/base.h"

struct z_stream_s;
struct ZSTD_DCtx_s;

struct uvm_source {
  const char *name;                             /* for messages; borrowed */
  int fd;                                       /* -1: memory */
  bool seekable;
  const uint8_t *memory;                        /* borrowed */
  uint64_t start, total;                        /* where the file began; bytes in all, 0 unknown */
  uint64_t pos;                                 /* bytes delivered since the start */
  FILE *tee;                                    /* what came from a pipe, kept for rewinding; NULL: not kept */
  uint64_t teed;
};
/* again: a pipe is kept in an unnamed temporary file. UVM_EINPUT: no such file; UVM_EENV: no temporary file. */
int uvm_source_open(struct uvm_source *s, const char *path, const char *name, bool again, struct uvm_error *e);
void uvm_source_memory(struct uvm_source *s, const void *data, size_t n);
/* Fills buf until it holds at least min bytes (of cap) or the end comes; *n is what it holds. */
int uvm_source_read(struct uvm_source *s, uint8_t *buf, size_t min, size_t cap, size_t *n, struct uvm_error *e);
int uvm_source_rewind(struct uvm_source *s, struct uvm_error *e);
void uvm_source_close(struct uvm_source *s);

struct uvm_decoder {
  struct uvm_source source;
  enum { UVM_PLAIN, UVM_GZIP, UVM_ZSTD } codec; /* by content */
  struct z_stream_s *z;
  struct ZSTD_DCtx_s *zstd;
  bool inside;                                  /* a gzip member or zstd frame is unfinished */
  bool end;                                     /* of the source */
  size_t at, n;                                 /* unread bytes of chunk */
  uint8_t chunk[65536];
};
/* Looks at the content. Call after opening and after rewinding the source. */
int uvm_decoder_start(struct uvm_decoder *d, struct uvm_error *e);
/* Up to cap bytes; *n 0: the end. UVM_EINPUT with *why set ("found ..."), e untouched: damaged or cut data. */
int uvm_decoder_read(struct uvm_decoder *d, uint8_t *out, size_t cap, size_t *n, const char **why, struct uvm_error *e);
void uvm_decoder_close(struct uvm_decoder *d);
#endif
