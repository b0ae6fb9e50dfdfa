/* The grammar of a trace: one table of records and their fields. The text reader and writer and the binary reader and writer
 * all walk it, so a record is described once. */
#ifndef UVM_TRACES_GRAMMAR_H
#define UVM_TRACES_GRAMMAR_H
#include "trace.h"

#define UVM_TRACE_MAX_BYTES (1ull << 47)        /* of an allocation, a step, a width: what a 64-bit process can address */
#define UVM_TRACE_MAX_ELEMENT_BYTES (1ull << 53)   /* of a record's elements together: they may overlap */
#define UVM_TRACE_MAX_NS (1ull << 53)           /* of a delay or a kernel: a run counts picoseconds, too */
#define UVM_TRACE_MAX_NUMBER ((uint64_t)INT64_MAX)

enum uvm_field_type {
  UVM_F_SIZE,          /* uint64_t; K, M and G allowed in text */
  UVM_F_NUMBER,        /* uint64_t; decimal */
  UVM_F_NAME,          /* const char * */
  UVM_F_SECTION,       /* label and, after the last '/', iteration */
  UVM_F_ALLOC,         /* uint32_t, the number; in text and binary the id */
  UVM_F_PROC,          /* uint8_t */
  UVM_F_ADVISED,       /* uint8_t, a processor that some advice ignores */
  UVM_F_WORD,          /* uint8_t, an index into words; 0 when an optional one is absent */
};
struct uvm_field {
  const char *key;                              /* KEY=value; NULL: by position */
  const char *what;                             /* "an offset ...": for messages */
  uint8_t type;                                 /* enum uvm_field_type */
  bool optional;
  uint16_t at;                                  /* offset of the value in the object */
  uint16_t has;                                 /* offset of its bool has_...; UVM_F_NO_HAS: none */
  const char *const *words;                     /* WORD: NULL-terminated; an unnamed one is "" */
};
#define UVM_F_NO_HAS UINT16_MAX

/* The object is a struct uvm_trace_record, or inside a kernel a struct uvm_trace_access. A record's index in its table is its
 * code in binary files: append only. */
struct uvm_grammar {
  const char *name;
  uint8_t op;                                   /* enum uvm_trace_op; inside a kernel enum uvm_inside */
  uint8_t sub;                                  /* ACCESS: enum uvm_access_op */
  uint8_t nfields;
  const struct uvm_field *fields;               /* in the order they are written */
};
enum uvm_inside { UVM_IN_ACCESS, UVM_IN_NEXT, UVM_IN_DONE };
extern const struct uvm_grammar uvm_grammar_top[], uvm_grammar_kernel[];
extern const size_t uvm_grammar_ntop, uvm_grammar_nkernel;

const struct uvm_grammar *uvm_grammar_find(const struct uvm_grammar *table, size_t n, const char *name);
const struct uvm_grammar *uvm_grammar_of(const struct uvm_grammar *table, size_t n, uint8_t op, uint8_t sub);
uint64_t uvm_field_get(const struct uvm_field *f, const void *object);           /* not NAME, SECTION */
void uvm_field_set(const struct uvm_field *f, void *object, uint64_t value);     /* and has_..., if there is one */
const char *uvm_field_name(const struct uvm_field *f, const void *object);       /* NAME, SECTION */
void uvm_field_set_name(const struct uvm_field *f, void *object, const char *name);
bool uvm_field_present(const struct uvm_field *f, const void *object);           /* written; always true unless optional */

bool uvm_proc_parse(const char *name, uint8_t *proc);            /* cpu, gpu0 ... gpu15 */
const char *uvm_proc_text(uint8_t proc, char buf[static 8]);
bool uvm_advice_ignores_proc(uint8_t advice);
#endif
