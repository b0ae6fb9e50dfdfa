#include "report/page_moves.h"
#include <stdlib.h>

struct edge {
  uint64_t at;
  int64_t change;
};

static int by_place(const void *a, const void *b) {
  const struct edge *x = a, *y = b;
  return x->at < y->at ? -1 : x->at > y->at;
}

void uvm_page_moves_make(struct uvm_page_moves *m, struct uvm_row_slice transfers) {
  *m = (struct uvm_page_moves){0};
  size_t n = 2 * transfers.n;
  if (!n) return;
  struct edge *edges = uvm_mem(n * sizeof *edges);
  for (size_t i = 0; i < transfers.n; i++) {
    const struct uvm_row *r = &transfers.v[i];
    edges[2 * i] = (struct edge){r->offset, 1};
    edges[2 * i + 1] = (struct edge){r->offset + r->value, -1};
    m->pages += r->value / UVM_PAGE;
  }
  qsort(edges, n, sizeof *edges, by_place);
  int64_t times = 0;
  for (size_t i = 0; i < n;) {
    uint64_t at = edges[i].at;
    for (; i < n && edges[i].at == at; i++) times += edges[i].change;
    if (times > 0) UVM_PUSH(&m->runs) = (struct uvm_move_run){at, edges[i].at, (uint64_t)times}; /* an open run has an edge to come */
  }
  uvm_mem_free(edges);
}

void uvm_page_moves_free(struct uvm_page_moves *m) { uvm_mem_free(m->runs.v); }

bool uvm_page_moves_within(const struct uvm_page_moves *a, const struct uvm_page_moves *b, uint64_t *offset, uint64_t *a_times,
                           uint64_t *b_times) {
  for (size_t i = 0, j = 0; i < a->runs.n; i++) {
    const struct uvm_move_run *r = &a->runs.v[i];
    for (uint64_t at = r->begin; at < r->end;) {
      while (j < b->runs.n && b->runs.v[j].end <= at) j++;
      bool covered = j < b->runs.n && b->runs.v[j].begin <= at;
      if (!covered || b->runs.v[j].times < r->times) {
        *offset = at, *a_times = r->times, *b_times = covered ? b->runs.v[j].times : 0;
        return false;
      }
      at = b->runs.v[j].end;
    }
  }
  return true;
}
