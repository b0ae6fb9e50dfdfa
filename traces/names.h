/* Names: ids, labels, events and sections. Interned, so a name has a small stable number and compares once. */
#ifndef UVM_TRACES_NAMES_H
#define UVM_TRACES_NAMES_H
#include "base/base.h"

#define UVM_NAME_MAX 65535                      /* bytes; escaped and doubled it still fits a line */

struct uvm_names {
  UVM_VEC(char *) list;                         /* by number, in order of arrival; addresses do not move */
  uint32_t *slots;                              /* open addressing: number + 1, 0 free */
  size_t nslots;
};
uint32_t uvm_names_add(struct uvm_names *n, const char *s);      /* the old number if it is known */
bool uvm_names_find(const struct uvm_names *n, const char *s, uint32_t *number);
void uvm_names_clear(struct uvm_names *n);                       /* frees everything; ready for use again */

bool uvm_utf8(const char *s, size_t n);                          /* well-formed, no surrogates, no overlong forms */
/* Why s cannot be a name in a trace ("a control character"), or NULL: it can. */
const char *uvm_name_problem(const char *s);
#endif
