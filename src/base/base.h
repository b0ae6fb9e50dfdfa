/* Base: what every module may use. Errors, memory, masks, numbers, growing arrays, files written whole.
 *
 * Errors. A function that can fail for the user's or the machine's reasons returns 0 or one of the negative codes below
 * and fills a struct uvm_error with one finished sentence (where, what was expected, what was found). Bugs assert.
 * Only main() exits. The code is also the exit status: -UVM_EINPUT is exit 3.
 *
 * Memory. One door: uvm_mem and friends never return NULL. When memory is gone they remove half-written files, print
 * "uvmsim: out of memory ..." and exit 4; a simulator has nothing better to do, and no caller needs a path for it. */
#ifndef UVM_BASE_H
#define UVM_BASE_H
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "uvmsim/policy.h"

#define UVM_PAGE 4096ull
#define UVM_BLOCK_BYTES (UVM_BLOCK_PAGES * UVM_PAGE)
#define UVM_NEVER UINT64_MAX
#define UVM_MAX_PROCS 17                        /* of a machine: the CPU and 16 GPUs */
#define UVM_MAX_NODES 20

/* -- errors -- */
enum { UVM_OK = 0, UVM_ENO = -1, UVM_EUSAGE = -2, UVM_EINPUT = -3, UVM_EENV = -4 };
struct uvm_error { int code; char text[1024]; };
/* Fills *e (which may be NULL) and returns code. */
int uvm_fail(struct uvm_error *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* -- stopping: set by a signal handler. Reading ends with UVM_EENV then, and an engine with no further event. -- */
extern _Atomic bool uvm_stop;

/* -- memory: never NULL; zeroed. uvm_mem, uvm_mem_resize and uvm_mem_free are in policy.h -- */
char *uvm_copy_string(const char *s);
char *uvm_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* How the above end; also for libraries that allocate themselves and tell that they could not. bytes 0: unknown. */
_Noreturn void uvm_mem_gone(size_t bytes);
/* Tests: the n-th allocation from now on (1: the next) fails; 0: none. Also set by the environment's UVMSIM_FAIL_ALLOC. */
void uvm_mem_fail_at(uint64_t n);

/* Growing array: struct { T *v; size_t n, cap; }. */
#define UVM_VEC(T) struct { T *v; size_t n, cap; }
#define UVM_PUSH(a) \
  (*((a)->n == (a)->cap ? uvm__grow((void **)&(a)->v, &(a)->cap, sizeof *(a)->v) : (void)0, &(a)->v[(a)->n++]))
void uvm__grow(void **v, size_t *cap, size_t item);

/* Many objects of one size, side by side: no bytes are lost between them. What is given back is used again, but returned to the
 * system only by the release. */
struct uvm_slab { size_t size; char *at, *end; void *given; UVM_VEC(char *) chunks; };   /* size: a multiple of 8 */
void *uvm_slab_take(struct uvm_slab *s);        /* zeroed */
void uvm_slab_give(struct uvm_slab *s, void *p);
void uvm_slab_release(struct uvm_slab *s);

/* Adds an item to a text like "a, b", as far as it fits: `list` has `size` bytes and holds "" or what was added before. */
void uvm_list_add(char *list, size_t size, const char *between, const char *item);

/* -- numbers: whole string, else false -- */
bool uvm_parse_u64(const char *s, uint64_t max, uint64_t *out);  /* decimal */
bool uvm_parse_size(const char *s, uint64_t *out);               /* bytes, or K/M/G/T binary; at most 2^63-1 */
bool uvm_parse_ns(const char *s, uint64_t *out);                 /* ns, or us, ms, s */
bool uvm_parse_f64(const char *s, double *out);                  /* finite */
const char *uvm_size_text(uint64_t bytes, char buf[static 24]);  /* "1.5 MiB" */
const char *uvm_ns_text(uvm_ns ns, char buf[static 24]);         /* "1.50 ms" */

static inline uint64_t uvm_min(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t uvm_max(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* -- masks, beside those of policy.h -- */
static inline bool uvm_mask_empty(const uvm_mask *m) {
  uint64_t w = 0;
  for (int i = 0; i < UVM_BLOCK_PAGES / 64; i++) w |= m->w[i];
  return !w;
}
static inline void uvm_mask_and(uvm_mask *m, const uvm_mask *n) { for (int i = 0; i < UVM_BLOCK_PAGES / 64; i++) m->w[i] &= n->w[i]; }
static inline uvm_mask uvm_mask_both(uvm_mask m, const uvm_mask *n) { return uvm_mask_and(&m, n), m; }
static inline uvm_mask uvm_mask_minus(uvm_mask m, const uvm_mask *n) { return uvm_mask_andnot(&m, n), m; }
static inline bool uvm_mask_subset(const uvm_mask *m, const uvm_mask *of) {
  uint64_t w = 0;
  for (int i = 0; i < UVM_BLOCK_PAGES / 64; i++) w |= m->w[i] & ~of->w[i];
  return !w;
}
static inline bool uvm_mask_meets(const uvm_mask *m, const uvm_mask *n) {
  uint64_t w = 0;
  for (int i = 0; i < UVM_BLOCK_PAGES / 64; i++) w |= m->w[i] & n->w[i];
  return w != 0;
}
static inline void uvm_mask_add(uvm_mask *m, int p) { m->w[p >> 6] |= 1ull << (p & 63); }
static inline void uvm_mask_del(uvm_mask *m, int p) { m->w[p >> 6] &= ~(1ull << (p & 63)); }
static inline uvm_mask uvm_mask_range(int a, int b) { uvm_mask m = {{0}}; uvm_mask_set(&m, a, b); return m; }
/* First clear page at or after p; UVM_BLOCK_PAGES if none. */
static inline int uvm_mask_gap(const uvm_mask *m, int p) {
  for (; p < UVM_BLOCK_PAGES; p = (p | 63) + 1) {
    uint64_t w = ~m->w[p >> 6] >> (p & 63);
    if (w) return p + __builtin_ctzll(w);
  }
  return UVM_BLOCK_PAGES;
}
/* Walks the runs of set pages: for (int a, b = 0; uvm_mask_run(m, &a, &b);) uses [a, b). */
static inline bool uvm_mask_run(const uvm_mask *m, int *a, int *b) {
  *a = uvm_mask_next(m, *b);
  if (*a < 0) return false;
  *b = uvm_mask_gap(m, *a);
  return true;
}

/* -- random numbers: splitmix64; the same everywhere -- */
static inline uint64_t uvm_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

/* -- a file that appears whole or not at all: written aside, synced, renamed. "-" is standard output. -- */
struct uvm_out { FILE *f; char *path, *aside; };
int uvm_out_open(struct uvm_out *o, const char *path, struct uvm_error *e);
int uvm_out_commit(struct uvm_out *o, struct uvm_error *e);      /* also reports what earlier writes failed with */
void uvm_out_abandon(struct uvm_out *o);                         /* after a failure; nothing is left behind */
void uvm_out_remove_all(void);                                   /* on the way out after a signal or without memory; async-signal-safe */
/* Other things of the moment that it removes: a file; a folder, remembered after what is in it. false: too many. The caller keeps the
 * text. */
bool uvm_out_remember(char *path);
void uvm_out_forget(const char *path);

/* -- options: a struct uvm_opt table applied to the state it describes -- */
void uvm_opt_defaults(const struct uvm_opt *table, void *state);
/* UVM_EUSAGE, naming the key and its range, when the value does not fit; the key must be in the table. */
int uvm_opt_set(const struct uvm_opt *table, void *state, const char *owner, const char *key, const char *value, struct uvm_error *e);
const struct uvm_opt *uvm_opt_find(const struct uvm_opt *table, const char *key);
#endif
