/* The two tables behind trace.h. A new format is one file in readers/ or writers/, one line in table.c and one test. */
#ifndef UVM_TRACES_FORMAT_H
#define UVM_TRACES_FORMAT_H
#include "check.h"
#include "input.h"
#include "sink.h"

/* A reader turns input into records; table.c checks and completes each one with check.h before it is handed out. */
struct uvm_trace_reader {
  const char *name;
  bool (*probe)(const uint8_t *head, size_t n);                  /* the first (at most 64) bytes */
  void *(*open)(struct uvm_input *in, const struct uvm_check *names);
  int (*read)(void *state, struct uvm_trace_record *r, struct uvm_error *e);      /* *r is zeroed. 1, 0 at the end, < 0 */
  void (*rewind)(void *state);                                   /* the input and the names start again */
  void (*close)(void *state);
};
extern const struct uvm_trace_reader uvm_reader_uvt, uvm_reader_uvb;

/* A writer gets complete records. id_of gives the id an allocation number means. */
struct uvm_ids { const char *(*id)(const void *ctx, uint32_t number); const void *ctx; };
struct uvm_writer_ops {
  void *(*open)(struct uvm_sink *out);
  void (*write)(void *state, const struct uvm_ids *ids, const struct uvm_trace_record *r);
  void (*finish)(void *state);                                   /* what the format puts at the end */
  void (*close)(void *state);
};
extern const struct uvm_writer_ops uvm_writer_uvt, uvm_writer_uvb;
#endif
