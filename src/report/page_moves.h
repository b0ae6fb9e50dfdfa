/* How often each page moved, as runs: transfers of any sizes come to the same runs when they moved the same pages. */
#ifndef UVM_PAGE_MOVES_H
#define UVM_PAGE_MOVES_H
#include "report/rows.h"

struct uvm_move_run {
  uint64_t begin, end, times;
}; /* bytes [begin, end) moved `times` times, times > 0 */
struct uvm_page_moves {
  UVM_VEC(struct uvm_move_run) runs;
  uint64_t pages;
}; /* ascending; pages: moves of 4 KiB pages in all */
struct uvm_row_slice {
  const struct uvm_row *v;
  size_t n;
};
void uvm_page_moves_make(struct uvm_page_moves *m, struct uvm_row_slice transfers);
void uvm_page_moves_free(struct uvm_page_moves *m);
/* False, and where, when some page moved more often in a than in b. */
bool uvm_page_moves_within(const struct uvm_page_moves *a, const struct uvm_page_moves *b, uint64_t *offset, uint64_t *a_times,
                           uint64_t *b_times);
#endif
