#include "base/base.h"
#include <assert.h>

enum { CHUNK = 1 << 20 }; /* large, for allocators may add a page to each */

void *uvm_slab_take(struct uvm_slab *s) {
  assert(s->size && s->size % sizeof(void *) == 0 && s->size <= CHUNK);
  void *p = s->given;
  if (p) {
    s->given = *(void **)p;
    return memset(p, 0, s->size);
  }
  if (s->at == s->end) {
    s->at = UVM_PUSH(&s->chunks) = uvm_mem(CHUNK);
    s->end = s->at + CHUNK / s->size * s->size;
  }
  p = s->at;
  s->at += s->size;
  return p;
}

void uvm_slab_give(struct uvm_slab *s, void *p) {
  *(void **)p = s->given;
  s->given = p;
}

void uvm_slab_release(struct uvm_slab *s) {
  for (size_t i = 0; i < s->chunks.n; i++) uvm_mem_free(s->chunks.v[i]);
  uvm_mem_free(s->chunks.v);
}
