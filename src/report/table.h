/* Aligned text tables and numbers for people. */
#ifndef UVM_TABLE_H
#define UVM_TABLE_H
#include "base/base.h"

struct uvm_table {
  const char *align;     /* one letter a column: l or r */
  UVM_VEC(char *) cells; /* row by row */
  bool wrap;             /* the last column is prose: broken where a line ends */
};
/* header: the column titles, as many as align has letters; NULL: none. */
void uvm_table_init(struct uvm_table *t, const char *align, const char *const *header);
void uvm_table_cell(struct uvm_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
enum { UVM_TABLE_ROWS = 24 }; /* of a long table; its JSON has all */
/* Says so after a table of more than these. */
void uvm_table_rest(size_t rows, FILE *f);
/* Prints (two blanks between columns, no trailing blanks) and frees. */
void uvm_table_print(struct uvm_table *t, FILE *f);

/* Text broken at blanks to lines of 100 columns, or the terminal's when it has fewer, the further ones indented; column: where the
 * first begins. Ends the line. */
void uvm_wrap(FILE *f, const char *text, int indent, int column);
const char *uvm_count_text(uint64_t n, char buf[static 32]); /* "1,234,567" */
#endif
