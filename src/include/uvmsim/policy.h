/* uvmsim policy ABI, version 1. A field changes only with the version.
 *
 * A policy answers a driver's questions: where does this page go, what else comes along, who leaves, is this
 * thrashing. It changes only its own state; the driver checks every answer and refuses a bad one by policy and hook.
 * Units: bytes, nanoseconds of virtual time, 4 KiB pages. Pointers the view returns are valid until the hook returns. */
#ifndef UVMSIM_POLICY_H
#define UVMSIM_POLICY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UVM_POLICY_ABI 1
#define UVM_BLOCK_PAGES 512                     /* a VA block is 2 MiB; mask bit 0 is its 2 MiB boundary */
#define UVM_NONE 0xff                           /* no node, no processor */

typedef uint64_t uvm_ns;
typedef uint8_t uvm_proc, uvm_node;             /* processor 0 is the CPU */
typedef uint32_t uvm_range_id, uvm_block_id, uvm_backing_id;   /* 0: none; an id dies with its object */
typedef struct uvm_mask { uint64_t w[UVM_BLOCK_PAGES / 64]; } uvm_mask;
typedef struct uvm_view uvm_view;

static inline bool uvm_mask_test(const uvm_mask *m, int p) { return m->w[p >> 6] >> (p & 63) & 1; }
static inline int uvm_mask_count(const uvm_mask *m) {
  int n = 0;
  for (int i = 0; i < UVM_BLOCK_PAGES / 64; i++) n += __builtin_popcountll(m->w[i]);
  return n;
}
/* First set page at or after p, -1 if none. */
static inline int uvm_mask_next(const uvm_mask *m, int p) {
  for (; p < UVM_BLOCK_PAGES; p = (p | 63) + 1) {
    uint64_t w = m->w[p >> 6] >> (p & 63);
    if (w) return p + __builtin_ctzll(w);
  }
  return -1;
}
/* Sets the pages [a, b). */
static inline void uvm_mask_set(uvm_mask *m, int a, int b) {
  for (; a < b; a = (a | 63) + 1) {
    int e = (a | 63) + 1 < b ? (a | 63) + 1 : b;
    m->w[a >> 6] |= (~0ull >> (64 - (e - a))) << (a & 63);
  }
}
static inline void uvm_mask_or(uvm_mask *m, const uvm_mask *n) { for (int i = 0; i < UVM_BLOCK_PAGES / 64; i++) m->w[i] |= n->w[i]; }
static inline void uvm_mask_andnot(uvm_mask *m, const uvm_mask *n) { for (int i = 0; i < UVM_BLOCK_PAGES / 64; i++) m->w[i] &= ~n->w[i]; }

enum uvm_access { UVM_A_PREFETCH, UVM_A_READ, UVM_A_WRITE, UVM_A_ATOMIC };        /* rising intrusiveness */
enum uvm_action { UVM_MIGRATE, UVM_REMOTE, UVM_DUPLICATE };
enum uvm_hint { UVM_HINT_NONE, UVM_HINT_PIN, UVM_HINT_THROTTLE };
enum uvm_cause { UVM_C_USER = 1, UVM_C_FAULT, UVM_C_PREFETCH, UVM_C_EVICTION, UVM_C_COUNTERS, UVM_C_THRASHING, UVM_C_POLICY };
enum uvm_needs { UVM_NEEDS_ACCESS = 1, UVM_NEEDS_COUNTERS = 2, UVM_NEEDS_FUTURE = 4 };
enum uvm_type { UVM_BOOL, UVM_U32, UVM_U64, UVM_F64, UVM_SIZE, UVM_NS };         /* SIZE: bytes or K/M/G; NS: ns or us, ms, s */
enum uvm_told_kind {                            /* fields of struct uvm_told that hold */
  UVM_T_ALLOC, UVM_T_FREE,                      /* range */
  UVM_T_ADVISED,                                /* range (advice inside a block splits it: both halves get new ids and zeroed state) */
  UVM_T_KERNEL_BEGIN, UVM_T_KERNEL_END,         /* kernel, proc */
  UVM_T_BATCH_BEGIN, UVM_T_BATCH_END,           /* proc */
  UVM_T_POPULATED,                              /* block, pages, dst, proc: first touch, nothing copied */
  UVM_T_MIGRATED, UVM_T_DUPLICATED,             /* block, pages, src, dst, proc, cause, begin, end */
  UVM_T_COLLAPSED, UVM_T_REVOKED,               /* block, pages, proc: duplicates dropped; mappings taken away */
  UVM_T_MAPPED,                                 /* block, pages, proc, src: the node mapped */
  UVM_T_EVICTED,                                /* backing, block, pages, src, dst: its id is dead after this hook */
  UVM_T_SERVICED,                               /* backing, block, proc: moved to the newest end of the service order */
  UVM_T_UNPINNED,                               /* block, pages: a PIN reached its deadline */
};
enum uvm_request_kind { UVM_R_PREFETCH, UVM_R_EVICT };

struct uvm_fault {
  uvm_block_id block;
  uint16_t page, merged;                        /* page in the block; raw entries merged into this one */
  uvm_proc proc;
  uint8_t access, access_mask;                  /* most intrusive access; every access seen, 1 << uvm_access */
  uint8_t counter;                              /* 1: an access-counter notification, not a fault */
};
struct uvm_place { uint8_t action; uvm_node node; uint8_t why; };       /* why: index into the policy's why[], shown by `uvmsim why` */
struct uvm_thrash {
  uint8_t hint;
  uvm_node node;                                /* PIN: where the page stays */
  uint32_t procs;                               /* PIN: processors to map it for, a bit each */
  uvm_ns until;                                 /* THROTTLE: held until; PIN: unmapped then (0: never), UNPINNED is told */
};
struct uvm_told {
  uint8_t kind, cause; uvm_proc proc; uvm_node src, dst;
  uvm_range_id range; uvm_block_id block; uvm_backing_id backing; uint32_t kernel;
  const uvm_mask *pages; uvm_ns begin, end;
};
struct uvm_run { uvm_block_id block; uvm_proc proc; uint8_t access; uint64_t count; const uvm_mask *pages; };   /* hits */
struct uvm_request { uint8_t kind; uvm_node node; uvm_range_id range; uint64_t offset, bytes; uvm_backing_id backing; uvm_ns at; };

struct uvm_proc_info {
  const char *name; uvm_node home; uint32_t reach, native_atomics;              /* bit a node */
  uint32_t fast_link;                                                           /* bit a processor */
  bool apu;
};
struct uvm_node_info { const char *name; uint64_t capacity, free; };
struct uvm_topology {
  uint8_t nprocs, nnodes; const struct uvm_proc_info *procs; const struct uvm_node_info *nodes;
  const char *machine, *driver; uint32_t driver_version;
};
struct uvm_range_info {
  const char *label; uint64_t bytes; uint32_t number;           /* number: as in the trace, from 0 */
  uvm_node preferred; uint32_t accessed_by;                     /* bit a processor */
  uint8_t read_mostly, system;                                  /* system: pageable memory (HMM) */
};
struct uvm_block_info { uvm_range_id range; uint64_t offset; uint16_t first, pages; };   /* pages [first, first + pages) exist */
struct uvm_backing_info { uvm_node node; uint64_t bytes, resident; uvm_block_id block; uint16_t first; bool dirty, busy; uvm_ns serviced; };
struct uvm_use { uvm_ns begin, end; uint32_t kernel; uint8_t access; };

#pragma GCC visibility push(default)            /* what the program offers to a policy that it loads */
/* The view: all O(1) unless said. */
uvm_ns uvm_now(const uvm_view *v);
const struct uvm_topology *uvm_topology(const uvm_view *v);
const struct uvm_range_info *uvm_range(const uvm_view *v, uvm_range_id r);
const struct uvm_block_info *uvm_block(const uvm_view *v, uvm_block_id b);
const uvm_mask *uvm_resident(const uvm_view *v, uvm_block_id b, uvm_node n);
const uvm_mask *uvm_mapped(const uvm_view *v, uvm_block_id b, uvm_proc p, uint8_t access);      /* mapped at least for access */
const uvm_mask *uvm_thrashing(const uvm_view *v, uvm_block_id b);                               /* the thrashing part's answer */
const struct uvm_backing_info *uvm_backing(const uvm_view *v, uvm_backing_id k);
uvm_backing_id uvm_backing_of(const uvm_view *v, uvm_block_id b, uvm_node n, int page);
enum uvm_list { UVM_L_USED, UVM_L_UNUSED };     /* backings with resident pages; allocated without */
uvm_backing_id uvm_oldest(const uvm_view *v, uvm_node n, enum uvm_list l);                      /* service order */
uvm_backing_id uvm_newer(const uvm_view *v, uvm_backing_id k);
void *uvm_block_state(const uvm_view *v, uvm_block_id b);       /* the calling part's own block_size bytes */
void *uvm_backing_state(const uvm_view *v, uvm_backing_id k);   /* the calling part's own backing_size bytes */
uvm_ns uvm_next_use(const uvm_view *v, uvm_block_id b, int page, uvm_proc p);   /* FUTURE; UINT64_MAX: never; page -1: any */
size_t uvm_uses(const uvm_view *v, uvm_range_id r, const struct uvm_use **out); /* FUTURE: uses of an allocation, in time order */

/* Memory that a policy keeps besides: zeroed, never NULL (without memory the program says so and ends). */
void *uvm_mem(size_t bytes);
void *uvm_mem_resize(void *p, size_t old_bytes, size_t bytes);   /* the new part is zeroed */
void uvm_mem_free(void *p);
#pragma GCC visibility pop

struct uvm_opt { const char *name; uint8_t type; size_t offset; double min, max, def; const char *help; };
                                                /* offset in the state; a table ends with a NULL name */

struct uvm_policy {
  uint32_t abi, needs;
  const char *name, *help;
  const char *base;                             /* policy that answers hooks left NULL. NULL: demand migration, no prefetch,
                                                   no thrashing control, victims by service order */
  const struct uvm_opt *opts;
  const char *const *why;                       /* names of the policy's why numbers, ends with NULL; may be NULL */
  size_t state_size, block_size, backing_size;  /* zeroed memory the core keeps for the policy: once, per block, per backing */
  int (*init)(void *s, const uvm_view *v);      /* after options; < 0 refuses */
  void (*fini)(void *s);
  void (*block_fini)(void *s, void *block_state);
  /* told */
  void (*on_event)(void *s, const uvm_view *v, const struct uvm_told *e);
  void (*on_access)(void *s, const uvm_view *v, const struct uvm_run *r);       /* NEEDS_ACCESS: hits in order, as runs */
  /* asked, in this order for a fault */
  void (*thrash)(void *s, const uvm_view *v, const struct uvm_fault *f, struct uvm_thrash *out);
  const uvm_mask *(*thrashing)(void *s, const uvm_view *v, uvm_block_id b);     /* pages now marked; NULL: none. A rise is an event */
  void (*place)(void *s, const uvm_view *v, const struct uvm_fault *f, const struct uvm_thrash *h, struct uvm_place *out);
  void (*prefetch)(void *s, const uvm_view *v, uvm_block_id b, uvm_node dst, const uvm_mask *faulted, uvm_mask *more);
                                                                                /* once a block and service */
  size_t (*victims)(void *s, const uvm_view *v, uvm_node n, uint64_t bytes, uvm_block_id incoming, const uvm_mask *pages,
                    uvm_backing_id *out, size_t max);                           /* best first; 0: cannot */
  uint32_t (*counter)(void *s, const uvm_view *v, const struct uvm_fault *f, const uvm_mask *touched, uint64_t count, uvm_mask *migrate);
                                                                                /* returns the next threshold, 0: the driver's */
  uvm_ns (*ahead)(void *s, const uvm_view *v, struct uvm_request *out, size_t max, size_t *n);
                       /* at kernel begin and end, batch end and the time last returned (0: none); requests queue like user prefetches */
};
#endif
