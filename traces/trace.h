/* Traces: what a program did. One record type for every format; readers and writers are tables.
 * The text form and its meaning are described in docs/trace-format.md. */
#ifndef UVM_TRACE_H
#define UVM_TRACE_H
#include "base/base.h"

enum uvm_trace_op {
  UVM_TR_PROCESSOR, UVM_TR_PAGE, UVM_TR_ALLOC, UVM_TR_FREE, UVM_TR_ACCESS, UVM_TR_KERNEL, UVM_TR_PREFETCH, UVM_TR_ADVISE, UVM_TR_MEMCPY,
  UVM_TR_SYNC, UVM_TR_RECORD, UVM_TR_WAIT, UVM_TR_DELAY, UVM_TR_BEGIN, UVM_TR_END,
};
enum uvm_trace_kind { UVM_TRK_MANAGED, UVM_TRK_DEVICE, UVM_TRK_PINNED, UVM_TRK_HOST };   /* the values of enum uvm_kind */
enum uvm_access_op { UVM_OP_R, UVM_OP_W, UVM_OP_RW, UVM_OP_ATOMIC };
enum uvm_split { UVM_SPLIT_NONE, UVM_SPLIT_CYCLIC, UVM_SPLIT_BLOCKED };
/* The values of enum uvm_advice. */
enum uvm_trace_advice { UVM_TA_SET_READ_MOSTLY, UVM_TA_UNSET_READ_MOSTLY, UVM_TA_SET_PREFERRED, UVM_TA_UNSET_PREFERRED,
                        UVM_TA_SET_ACCESSED_BY, UVM_TA_UNSET_ACCESSED_BY, UVM_TA_SET_COARSE_GRAIN, UVM_TA_UNSET_COARSE_GRAIN };
/* As the text writes them, by number; they end with NULL. */
extern const char *const uvm_trace_kinds[], *const uvm_trace_advices[];
struct uvm_trace_access {
  uint8_t op, split;                            /* enum uvm_access_op, uvm_split */
  bool by_block;                                /* unsplit in a kernel: made by block r mod blocks, not lane r mod lanes */
  bool next;                                    /* `next` stood before it: a new loop */
  bool has_step, has_width;                     /* written out, not defaulted (canonical text keeps them) */
  uint32_t alloc;                               /* allocation number */
  uint64_t offset, bytes, step, width;          /* bytes > 0, offset + bytes within the allocation (checked) */
  int64_t line;
};
struct uvm_trace_record {
  uint8_t op;                                   /* enum uvm_trace_op */
  uint8_t proc;                                 /* PROCESSOR, ACCESS, KERNEL, ADVISE, SYNC with has_proc: 0 cpu, 1 gpu0 ... */
  uint8_t kind, on;                             /* ALLOC: enum uvm_trace_kind; on: processor (default gpu0: 1) */
  uint8_t advice;
  bool has_stream, has_proc, has_ns, has_base, has_on, has_lanes_per_block, has_iteration;
  int64_t line;                                 /* of the text, or the record's number in a binary file */
  struct uvm_trace_access access;               /* ACCESS: in front, for of these there are most */
  uint64_t stream;
  uint32_t alloc, src_alloc;                    /* allocation numbers; src_alloc of MEMCPY */
  uint64_t offset, bytes, src_offset;
  union { uint64_t base, page; };               /* ALLOC; PAGE */
  const char *id, *label;                       /* ALLOC, unescaped; label of KERNEL: its name or NULL; of BEGIN: the section's NAME;
                                                   of PREFETCH: the destination as written (processor or node); of RECORD, WAIT: the event;
                                                   of PROCESSOR: its name. Valid until the next read */
  uint64_t iteration;                           /* BEGIN */
  uint64_t ns;                                  /* DELAY; KERNEL with has_ns */
  uint64_t lanes, lanes_per_block;              /* KERNEL; lanes_per_block filled in when defaulted */
  struct uvm_trace_access *accesses;            /* KERNEL; valid until the next read */
  size_t naccesses;
};

struct uvm_trace;                               /* an open trace */
/* path "-": standard input. Content decides the format; gzip and zstd are read as they are. again: the trace will be read more
 * than once (uvm_trace_rewind), so standard input is kept in an unnamed temporary file. */
int uvm_trace_open(const char *path, bool again, struct uvm_trace **out, struct uvm_error *e);
/* The same over n bytes of memory, which the caller keeps until the close. */
int uvm_trace_open_memory(const void *data, size_t n, struct uvm_trace **out, struct uvm_error *e);
/* 1: *r filled; 0: the end; < 0: e. Everything the format promises has been checked: ids known and live, ranges inside the
 * allocations, processors declared, sections and kernels closed, events recorded before they are waited for. */
int uvm_trace_next(struct uvm_trace *t, struct uvm_trace_record *r, struct uvm_error *e);
/* The same without a copy: how many records lie at *r, valid until the next read. One; of a held trace up to `most`, and the last
 * `back` of them that nobody wants yet can be given back. */
int uvm_trace_take(struct uvm_trace *t, size_t most, const struct uvm_trace_record **r, struct uvm_error *e);
void uvm_trace_give_back(struct uvm_trace *t, size_t back);
int uvm_trace_rewind(struct uvm_trace *t, struct uvm_error *e);
/* Reads it all from the start and holds the decoded records in memory, so that reading it from now on costs next to nothing: for
 * many runs over one trace. It is rewound before and after. */
int uvm_trace_hold(struct uvm_trace *t, struct uvm_error *e);
void uvm_trace_close(struct uvm_trace *t);
const char *uvm_trace_name(const struct uvm_trace *t);          /* path as given */
const char *uvm_trace_format(const struct uvm_trace *t);        /* "uvt", "uvb" */
uint64_t uvm_trace_position(const struct uvm_trace *t, uint64_t *total);   /* compressed bytes read, of total (0 unknown): progress */
/* Id of a live or freed allocation by number; NULL out of range. */
const char *uvm_trace_alloc_id(const struct uvm_trace *t, uint32_t number);

/* Facts found by reading it all (rewinds before and after). */
struct uvm_trace_facts {
  uint64_t records, kernels, accesses, allocs, sections;        /* accesses: records of them, in kernels or not */
  uint64_t elements;                            /* that they access */
  uint64_t managed_bytes, peak_managed_bytes;   /* sum, and most alive at once */
  unsigned gpus;                                /* 1 + the highest GPU declared; 0 none */
  uint64_t page;
};
int uvm_trace_survey(struct uvm_trace *t, struct uvm_trace_facts *f, struct uvm_error *e);

/* Writing. The suffix picks the format: .uvt, .uvt.gz, .uvt.zst, .uvb (any other: UVM_EUSAGE); "-": text to standard output.
 * Records are written as they are, so they must keep what uvm_trace_next promises; only names are checked (UVM_EINPUT).
 * names: the trace whose allocation numbers the record holds; NULL: numbers count the alloc records written here. */
struct uvm_trace_writer;
int uvm_trace_create(const char *path, struct uvm_trace_writer **out, struct uvm_error *e);
int uvm_trace_write(struct uvm_trace_writer *w, const struct uvm_trace *names, const struct uvm_trace_record *r, struct uvm_error *e);
int uvm_trace_commit(struct uvm_trace_writer *w, struct uvm_error *e);    /* closes; the file appears whole */
void uvm_trace_abandon(struct uvm_trace_writer *w);

/* Observed events (.csv, .csv.gz): design of the columns in docs/events-format.md. */
struct uvm_csv_event {
  int64_t t, dur;
  char kind[24];                                /* as written; unknown kinds are delivered too */
  int64_t alloc;                                /* -1 none */
  uint64_t offset, value;
  uint64_t flags; char name[256];               /* flags 0x-hex; of a section its name (a ":BYTES" a recording adds is kept) */
  int64_t src, dst;                             /* 4294967295 the CPU; -1 empty */
  int64_t line;
};
struct uvm_csv;
int uvm_csv_open(const char *path, struct uvm_csv **out, struct uvm_error *e);
int uvm_csv_next(struct uvm_csv *c, struct uvm_csv_event *out, struct uvm_error *e);      /* 1, 0 end, < 0 */
void uvm_csv_close(struct uvm_csv *c);
struct uvm_csv_writer;
int uvm_csv_create(const char *path, struct uvm_csv_writer **out, struct uvm_error *e);   /* .csv or .csv.gz; writes the header */
int uvm_csv_write(struct uvm_csv_writer *w, const struct uvm_csv_event *ev, struct uvm_error *e);
int uvm_csv_commit(struct uvm_csv_writer *w, struct uvm_error *e);
void uvm_csv_abandon(struct uvm_csv_writer *w);
#endif
