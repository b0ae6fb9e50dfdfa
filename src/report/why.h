/* The biography of one page: an observer that keeps what happened to it, the rule that decided, and the state it found. */
#ifndef UVM_WHY_H
#define UVM_WHY_H
#include "core/event.h"
#include "report/places.h"

struct uvm_why_line {
  uvm_ns t, dur; /* dur: of all its times together */
  uvm_ns last;   /* when it happened for the last of its times in a row */
  uint64_t times;
  char *what;                    /* "gpu0 read fault", "copied dram -> hbm0: fault, 64 KiB copy" */
  const char *rule;              /* that decided; NULL none */
  uint32_t resident;             /* nodes, a bit each: after it (a fault: as it was found) */
  uint8_t mapped[UVM_MAX_PROCS]; /* enum uvm_access each processor may make; 0 none */
  int64_t line;                  /* of the trace record behind it, 0 unknown */
};
struct uvm_why {
  struct uvm_places places;
  const char *wanted; /* allocation number, id or label, as asked for */
  uint64_t page;      /* in the allocation */
  bool found;         /* the allocation has been made */
  bool by_label;      /* found by its label only: one with that id would be meant instead */
  uint32_t alloc;
  uint64_t bytes; /* of it */
  char *label;
  UVM_VEC(struct uvm_why_line) lines;
  UVM_VEC(char *) rules; /* what lines call rules: those of a policy from a file do not outlive the run */
};
void uvm_why_init(struct uvm_why *w, const struct uvm_places *places, const char *alloc, uint64_t page);
void uvm_why_free(struct uvm_why *w);
void uvm_why_event(void *why, const struct uvm_event *e);
void uvm_why_print(const struct uvm_why *w, FILE *f);
int uvm_why_json(const struct uvm_why *w, const char *path, struct uvm_error *e);
#endif
