#include "grammar.h"
#include <assert.h>

#define AT(member) offsetof(struct uvm_trace_record, member), UVM_F_NO_HAS, NULL
#define AT_HAS(member) offsetof(struct uvm_trace_record, member), offsetof(struct uvm_trace_record, has_##member), NULL
#define AT_WORD(member, words) offsetof(struct uvm_trace_record, member), UVM_F_NO_HAS, words
#define IN(member) offsetof(struct uvm_trace_access, member), UVM_F_NO_HAS, NULL
#define IN_HAS(member) offsetof(struct uvm_trace_access, member), offsetof(struct uvm_trace_access, has_##member), NULL
#define IN_WORD(member, words) offsetof(struct uvm_trace_access, member), UVM_F_NO_HAS, words
#define AC_HAS(member) \
  offsetof(struct uvm_trace_record, access.member), offsetof(struct uvm_trace_record, access.has_##member), NULL

#define ID_WHAT "the id of an allocation"
#define OFFSET_WHAT "an offset (bytes; K, M and G allowed)"
#define LENGTH_WHAT "a length (bytes; K, M and G allowed)"
#define PROC_WHAT "a processor (cpu, gpu0, ...)"
#define STREAM {"stream", "a stream number", UVM_F_NUMBER, true, AT_HAS(stream)}
#define NEEDED_STREAM {"stream", "a stream number", UVM_F_NUMBER, false, AT_HAS(stream)}
#define EVENT {NULL, "the name of an event", UVM_F_NAME, false, AT(label)}

const char *const uvm_trace_kinds[] = {"managed", "device", "pinned", "host", NULL};
const char *const uvm_trace_advices[] = {"set_read_mostly", "unset_read_mostly", "set_preferred_location", "unset_preferred_location",
                                         "set_accessed_by", "unset_accessed_by", "set_coarse_grain", "unset_coarse_grain", NULL};
static const char *const splits[] = {"", "cyclic", "blocked", NULL};
static const char *const makers[] = {"lane", "block", NULL};
static const char *const delayed[] = {"cpu", NULL};

static const struct uvm_field processor_fields[] = {{NULL, "the name of a processor", UVM_F_NAME, false, AT(label)}};
static const struct uvm_field page_fields[] = {{NULL, "a page size (bytes; K and M allowed)", UVM_F_SIZE, false, AT(page)}};
static const struct uvm_field alloc_fields[] = {
  {NULL, "a new allocation's id", UVM_F_NAME, false, AT(id)},
  {NULL, LENGTH_WHAT, UVM_F_SIZE, false, AT(bytes)},
  {NULL, "managed, device, pinned or host", UVM_F_WORD, false, AT_WORD(kind, uvm_trace_kinds)},
  {NULL, "a label", UVM_F_NAME, false, AT(label)},
  {"on", "a GPU (gpu0, ...)", UVM_F_PROC, true, AT_HAS(on)},
  {"base", "an address (decimal)", UVM_F_NUMBER, true, AT_HAS(base)},
};
static const struct uvm_field free_fields[] = {{NULL, ID_WHAT, UVM_F_ALLOC, false, AT(alloc)}};
static const struct uvm_field access_fields[] = {
  {NULL, PROC_WHAT, UVM_F_PROC, false, AT(proc)},
  {NULL, ID_WHAT, UVM_F_ALLOC, false, AT(access.alloc)},
  {NULL, OFFSET_WHAT, UVM_F_SIZE, false, AT(access.offset)},
  {NULL, LENGTH_WHAT, UVM_F_SIZE, false, AT(access.bytes)},
  {"step", "a step in bytes (decimal)", UVM_F_NUMBER, true, AC_HAS(step)},
  {"width", "a width in bytes (decimal)", UVM_F_NUMBER, true, AC_HAS(width)},
};
static const struct uvm_field kernel_fields[] = {
  {NULL, PROC_WHAT, UVM_F_PROC, false, AT(proc)},
  {"lanes", "a number of lanes", UVM_F_NUMBER, false, AT(lanes)},
  {"lanes_per_block", "a number of lanes", UVM_F_NUMBER, true, AT_HAS(lanes_per_block)},
  STREAM,
  {"name", "the kernel's name", UVM_F_NAME, true, AT(label)},
  {"ns", "a duration in ns", UVM_F_NUMBER, true, AT_HAS(ns)},
};
static const struct uvm_field prefetch_fields[] = {
  {NULL, "a destination (a processor or a node)", UVM_F_NAME, false, AT(label)},
  {NULL, ID_WHAT, UVM_F_ALLOC, false, AT(alloc)},
  {NULL, OFFSET_WHAT, UVM_F_SIZE, false, AT(offset)},
  {NULL, LENGTH_WHAT, UVM_F_SIZE, false, AT(bytes)},
  STREAM,
};
static const struct uvm_field advise_fields[] = {
  {NULL, "an advice (set_ or unset_ read_mostly, preferred_location, accessed_by, coarse_grain)", UVM_F_WORD, false,
   AT_WORD(advice, uvm_trace_advices)},
  {NULL, PROC_WHAT, UVM_F_ADVISED, false, AT(proc)},
  {NULL, ID_WHAT, UVM_F_ALLOC, false, AT(alloc)},
  {NULL, OFFSET_WHAT, UVM_F_SIZE, false, AT(offset)},
  {NULL, LENGTH_WHAT, UVM_F_SIZE, false, AT(bytes)},
};
static const struct uvm_field memcpy_fields[] = {
  {NULL, "the id of the destination", UVM_F_ALLOC, false, AT(alloc)},
  {NULL, OFFSET_WHAT, UVM_F_SIZE, false, AT(offset)},
  {NULL, "the id of the source", UVM_F_ALLOC, false, AT(src_alloc)},
  {NULL, OFFSET_WHAT, UVM_F_SIZE, false, AT(src_offset)},
  {NULL, LENGTH_WHAT, UVM_F_SIZE, false, AT(bytes)},
  STREAM,
};
static const struct uvm_field sync_fields[] = {
  STREAM,
  {NULL, PROC_WHAT, UVM_F_PROC, true, AT_HAS(proc)},
};
static const struct uvm_field event_fields[] = {EVENT, NEEDED_STREAM};
static const struct uvm_field delay_fields[] = {
  {NULL, "cpu", UVM_F_WORD, false, AT_WORD(proc, delayed)},
  {NULL, "a duration in ns", UVM_F_NUMBER, false, AT(ns)},
};
static const struct uvm_field begin_fields[] = {{NULL, "a section's name", UVM_F_SECTION, false, AT(label)}};
static const struct uvm_field lane_fields[] = {
  {NULL, ID_WHAT, UVM_F_ALLOC, false, IN(alloc)},
  {NULL, OFFSET_WHAT, UVM_F_SIZE, false, IN(offset)},
  {NULL, LENGTH_WHAT, UVM_F_SIZE, false, IN(bytes)},
  {"split", "cyclic or blocked", UVM_F_WORD, true, IN_WORD(split, splits)},
  {"step", "a step in bytes (decimal)", UVM_F_NUMBER, true, IN_HAS(step)},
  {"width", "a width in bytes (decimal)", UVM_F_NUMBER, true, IN_HAS(width)},
  {"by", "lane or block", UVM_F_WORD, true, IN_WORD(by_block, makers)},
};

#define RULE(name, op, sub, fields) {name, op, sub, sizeof fields / sizeof *fields, fields}
#define BARE(name, op) {name, op, 0, 0, NULL}
const struct uvm_grammar uvm_grammar_top[] = {
  RULE("processor", UVM_TR_PROCESSOR, 0, processor_fields),
  RULE("page", UVM_TR_PAGE, 0, page_fields),
  RULE("alloc", UVM_TR_ALLOC, 0, alloc_fields),
  RULE("free", UVM_TR_FREE, 0, free_fields),
  RULE("r", UVM_TR_ACCESS, UVM_OP_R, access_fields),
  RULE("w", UVM_TR_ACCESS, UVM_OP_W, access_fields),
  RULE("rw", UVM_TR_ACCESS, UVM_OP_RW, access_fields),
  RULE("atomic", UVM_TR_ACCESS, UVM_OP_ATOMIC, access_fields),
  RULE("kernel", UVM_TR_KERNEL, 0, kernel_fields),
  RULE("prefetch", UVM_TR_PREFETCH, 0, prefetch_fields),
  RULE("advise", UVM_TR_ADVISE, 0, advise_fields),
  RULE("memcpy", UVM_TR_MEMCPY, 0, memcpy_fields),
  RULE("sync", UVM_TR_SYNC, 0, sync_fields),
  RULE("record", UVM_TR_RECORD, 0, event_fields),
  RULE("wait", UVM_TR_WAIT, 0, event_fields),
  RULE("delay", UVM_TR_DELAY, 0, delay_fields),
  RULE("begin", UVM_TR_BEGIN, 0, begin_fields),
  BARE("end", UVM_TR_END),
};
const struct uvm_grammar uvm_grammar_kernel[] = {
  RULE("r", UVM_IN_ACCESS, UVM_OP_R, lane_fields),
  RULE("w", UVM_IN_ACCESS, UVM_OP_W, lane_fields),
  RULE("rw", UVM_IN_ACCESS, UVM_OP_RW, lane_fields),
  RULE("atomic", UVM_IN_ACCESS, UVM_OP_ATOMIC, lane_fields),
  BARE("next", UVM_IN_NEXT),
  BARE("done", UVM_IN_DONE),
};
const size_t uvm_grammar_ntop = sizeof uvm_grammar_top / sizeof *uvm_grammar_top;
const size_t uvm_grammar_nkernel = sizeof uvm_grammar_kernel / sizeof *uvm_grammar_kernel;

const struct uvm_grammar *uvm_grammar_find(const struct uvm_grammar *table, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (!strcmp(table[i].name, name)) return &table[i];
  return NULL;
}

const struct uvm_grammar *uvm_grammar_of(const struct uvm_grammar *table, size_t n, uint8_t op, uint8_t sub) {
  for (size_t i = 0; i < n; i++)
    if (table[i].op == op && table[i].sub == sub) return &table[i];
  return NULL;
}

uint64_t uvm_field_get(const struct uvm_field *f, const void *object) {
  const char *p = (const char *)object + f->at;
  switch ((enum uvm_field_type)f->type) {
  case UVM_F_SIZE:
  case UVM_F_NUMBER: return *(const uint64_t *)(const void *)p;
  case UVM_F_ALLOC: return *(const uint32_t *)(const void *)p;
  case UVM_F_PROC:
  case UVM_F_ADVISED:
  case UVM_F_WORD: return *(const uint8_t *)p;
  case UVM_F_NAME:
  case UVM_F_SECTION: break;
  }
  assert(!"a name is not a number");
  return 0;
}

void uvm_field_set(const struct uvm_field *f, void *object, uint64_t value) {
  char *p = (char *)object + f->at;
  switch ((enum uvm_field_type)f->type) {
  case UVM_F_SIZE:
  case UVM_F_NUMBER: *(uint64_t *)(void *)p = value; break;
  case UVM_F_ALLOC: *(uint32_t *)(void *)p = (uint32_t)value; break;
  case UVM_F_PROC:
  case UVM_F_ADVISED:
  case UVM_F_WORD: *(uint8_t *)p = (uint8_t)value; break;
  case UVM_F_NAME:
  case UVM_F_SECTION: assert(!"a name is not a number");
  }
  if (f->has != UVM_F_NO_HAS) *(bool *)((char *)object + f->has) = true;
}

const char *uvm_field_name(const struct uvm_field *f, const void *object) {
  assert(f->type == UVM_F_NAME || f->type == UVM_F_SECTION);
  return *(const char *const *)(const void *)((const char *)object + f->at);
}

void uvm_field_set_name(const struct uvm_field *f, void *object, const char *name) {
  assert(f->type == UVM_F_NAME || f->type == UVM_F_SECTION);
  *(const char **)(void *)((char *)object + f->at) = name;
}

bool uvm_field_present(const struct uvm_field *f, const void *object) {
  if (!f->optional) return true;
  if (f->has != UVM_F_NO_HAS) return *(const bool *)((const char *)object + f->has);
  return f->type == UVM_F_NAME ? uvm_field_name(f, object) != NULL : uvm_field_get(f, object) != 0;
}

bool uvm_proc_parse(const char *name, uint8_t *proc) {
  uint64_t n;
  *proc = 0;
  if (!strcmp(name, "cpu")) return true;
  if (strncmp(name, "gpu", 3) || (name[3] == '0' && name[4]) || !uvm_parse_u64(name + 3, UVM_MAX_PROCS - 2, &n)) return false;
  *proc = (uint8_t)(n + 1);
  return true;
}

const char *uvm_proc_text(uint8_t proc, char buf[static 8]) {
  assert(proc < UVM_MAX_PROCS);
  if (proc) snprintf(buf, 8, "gpu%u", proc - 1u);
  else strcpy(buf, "cpu");
  return buf;
}

bool uvm_advice_ignores_proc(uint8_t advice_given) {
  return advice_given == UVM_TA_SET_READ_MOSTLY || advice_given == UVM_TA_UNSET_READ_MOSTLY ||
         advice_given == UVM_TA_UNSET_PREFERRED;
}
