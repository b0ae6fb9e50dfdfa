/* A binary heap. Equal times leave in the order they came, so a run is the same everywhere. */
#include "model/model.h"

static bool before(const struct uvm__event *a, const struct uvm__event *b) {
  return a->time != b->time ? a->time < b->time : a->seq < b->seq;
}

void uvm__queue_push(struct uvm__queue *q, struct uvm__event e) {
  e.seq = q->seq++;
  size_t i = q->heap.n;
  (void)UVM_PUSH(&q->heap);
  struct uvm__event *v = q->heap.v;
  for (; i && before(&e, &v[(i - 1) / 2]); i = (i - 1) / 2) v[i] = v[(i - 1) / 2];
  v[i] = e;
}

bool uvm__queue_pop(struct uvm__queue *q, struct uvm__event *out) {
  if (!q->heap.n) return false;
  struct uvm__event *v = q->heap.v, last = v[--q->heap.n];
  *out = v[0];
  size_t n = q->heap.n, i = 0;
  for (size_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && before(&v[child + 1], &v[child])) child++;
    if (!before(&v[child], &last)) break;
    v[i] = v[child];
  }
  if (n) v[i] = last;
  return true;
}
