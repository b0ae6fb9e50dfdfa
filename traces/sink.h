/* A sink: where writers write. Compresses on the way; the file appears whole or not at all. Failures are kept and reported
 * by the commit, so a writer needs no error path. */
#ifndef UVM_TRACES_SINK_H
#define UVM_TRACES_SINK_H
#include "base/base.h"

struct uvm_sink;
enum uvm_codec { UVM_STORED, UVM_GZIPPED, UVM_ZSTDED };
enum uvm_codec uvm_codec_of(const char *path);                   /* .gz: gzipped; any other name: stored */
int uvm_sink_open(const char *path, enum uvm_codec codec, struct uvm_sink **out, struct uvm_error *e);   /* "-": standard output */
void uvm_sink_write(struct uvm_sink *s, const void *p, size_t n);
void uvm_sink_text(struct uvm_sink *s, const char *text);
void uvm_sink_number(struct uvm_sink *s, uint64_t n);            /* decimal */
uint64_t uvm_sink_position(const struct uvm_sink *s);            /* bytes written so far, before compression */
int uvm_sink_commit(struct uvm_sink *s, struct uvm_error *e);    /* frees s, also when it fails */
void uvm_sink_abandon(struct uvm_sink *s);
#endif
