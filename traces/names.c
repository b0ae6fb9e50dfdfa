#include "names.h"
#include <assert.h>

static uint64_t hash(const char *s) {                            /* FNV-1a */
  uint64_t h = 0xcbf29ce484222325ull;
  for (; *s; s++) h = (h ^ (uint8_t)*s) * 0x100000001b3ull;
  return h ^ h >> 29;
}

/* The slot that holds s, or the free one where it belongs. */
static size_t slot_of(const struct uvm_names *n, const char *s) {
  assert(n->nslots && (n->nslots & (n->nslots - 1)) == 0);
  size_t i = hash(s) & (n->nslots - 1);
  while (n->slots[i] && strcmp(n->list.v[n->slots[i] - 1], s)) i = (i + 1) & (n->nslots - 1);
  return i;
}

static void grow(struct uvm_names *n) {
  uvm_mem_free(n->slots);
  n->nslots = n->nslots ? n->nslots * 2 : 64;
  n->slots = uvm_mem(n->nslots * sizeof *n->slots);
  for (size_t i = 0; i < n->list.n; i++) n->slots[slot_of(n, n->list.v[i])] = (uint32_t)i + 1;
}

uint32_t uvm_names_add(struct uvm_names *n, const char *s) {
  if (n->list.n * 2 >= n->nslots) grow(n);
  size_t i = slot_of(n, s);
  if (!n->slots[i]) {
    assert(n->list.n < UINT32_MAX);
    UVM_PUSH(&n->list) = uvm_copy_string(s);
    n->slots[i] = (uint32_t)n->list.n;
  }
  return n->slots[i] - 1;
}

bool uvm_names_find(const struct uvm_names *n, const char *s, uint32_t *number) {
  if (!n->nslots) return false;
  size_t i = slot_of(n, s);
  if (!n->slots[i]) return false;
  *number = n->slots[i] - 1;
  return true;
}

void uvm_names_clear(struct uvm_names *n) {
  for (size_t i = 0; i < n->list.n; i++) uvm_mem_free(n->list.v[i]);
  uvm_mem_free(n->list.v);
  uvm_mem_free(n->slots);
  *n = (struct uvm_names){0};
}

/* Bytes of the well-formed character at s (n > 0 bytes left), 0 if it is none. Ranges of the second byte: Unicode, table 3-7. */
static size_t utf8_char(const uint8_t *s, size_t n) {
  if (s[0] < 0x80) return 1;
  size_t len = s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
  if (!len || n < len) return 0;
  uint8_t low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80, high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
  if (s[1] < low || s[1] > high) return 0;
  for (size_t i = 2; i < len; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  return len;
}

bool uvm_utf8(const char *s, size_t n) {
  for (size_t i = 0; i < n;) {
    size_t len = utf8_char((const uint8_t *)s + i, n - i);
    if (!len) return false;
    i += len;
  }
  return true;
}

const char *uvm_name_problem(const char *s) {
  size_t n = strlen(s);
  if (!n) return "an empty name";
  if (n > UVM_NAME_MAX) return "a name of more than 65535 bytes";
  for (size_t i = 0; i < n; i++)
    if ((uint8_t)s[i] < 0x20 || s[i] == 0x7f) return "a control character";
  return uvm_utf8(s, n) ? NULL : "bytes that are not UTF-8";
}
