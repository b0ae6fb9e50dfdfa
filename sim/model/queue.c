/* A timing wheel of wheels. Time never runs backwards, so an event's place needs no comparing: its time and the queue's `base` part
 * at some digit (of base 64), and the event lies on that digit's wheel, in the slot of its own digit. The slots of wheel 0 hold
 * one time each. When that wheel is empty, the first slot of the lowest other one becomes the base and is dealt out to the wheels
 * below. Events of one time always share a slot and keep the order they came in, so a run is the same everywhere. */
#include <assert.h>
#include "model/model.h"

struct uvm__event *uvm__queue_add(struct uvm__queue *q, uvm_ns time) {
  assert(time >= q->base);
  unsigned wheel = (63 - (unsigned)__builtin_clzll((time ^ q->base) | 1)) / UVM__DIGIT, digit = time >> wheel * UVM__DIGIT & UVM__DIGIT_MAX;
  q->full[wheel] |= 1ull << digit;
  q->wheels |= 1u << wheel;
  if (wheel && time < q->next) q->next = time;
  struct uvm__event *e = &UVM_PUSH(&q->slots[wheel][digit]);
  e->time = time;
  return e;
}

static void empty_slot(struct uvm__queue *q, unsigned wheel, unsigned digit) {
  q->slots[wheel][digit].n = 0;
  q->full[wheel] &= ~(1ull << digit);
  if (!q->full[wheel]) q->wheels &= ~(1u << wheel);
}

static void deal(struct uvm__queue *q) {
  unsigned wheel = (unsigned)__builtin_ctz(q->wheels), digit = (unsigned)__builtin_ctzll(q->full[wheel]), shift = wheel * UVM__DIGIT;
  struct uvm__slot *slot = &q->slots[wheel][digit];
  size_t n = slot->n;
  q->base = slot->v[0].time >> shift << shift;
  q->next = 0;
  empty_slot(q, wheel, digit);
  for (size_t i = 0; i < n; i++) uvm__queue_push(q, slot->v[i]); /* below this wheel: the slot itself stays as it is */
}

bool uvm__queue_pop(struct uvm__queue *q, struct uvm__event *out) {
  if (!q->wheels) return false;
  while (!(q->wheels & 1)) deal(q);
  unsigned digit = (unsigned)__builtin_ctzll(q->full[0]);
  struct uvm__slot *slot = &q->slots[0][digit];
  *out = slot->v[q->head++];
  if (q->head == slot->n) empty_slot(q, 0, digit), q->head = 0;
  return true;
}

const struct uvm__event *uvm__queue_peek(const struct uvm__queue *q) {
  return q->wheels & 1 ? &q->slots[0][__builtin_ctzll(q->full[0])].v[q->head] : NULL;
}

/* Looks through the slot that comes next; what that found holds until the slot is dealt out. */
uvm_ns uvm__queue_find_next(struct uvm__queue *q) {
  if (!q->wheels) return UVM_NEVER;
  unsigned wheel = (unsigned)__builtin_ctz(q->wheels);
  const struct uvm__slot *slot = &q->slots[wheel][__builtin_ctzll(q->full[wheel])];
  q->next = UVM_NEVER;
  for (size_t i = 0; i < slot->n; i++) q->next = uvm_min(q->next, slot->v[i].time);
  return q->next;
}

void uvm__queue_release(struct uvm__queue *q) {
  for (unsigned i = 0; i < UVM__WHEELS; i++)
    for (unsigned j = 0; j <= UVM__DIGIT_MAX; j++) uvm_mem_free(q->slots[i][j].v);
}
