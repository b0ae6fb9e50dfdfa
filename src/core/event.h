/* Observed events: the one stream that metrics, the event file, why, diff, validate and the report listen to. */
#ifndef UVM_EVENT_H
#define UVM_EVENT_H
#include "core/space.h"

enum uvm_event_kind {
  UVM_E_TRANSFER,      /* one copy: src, dst nodes; bytes; cause; offset */
  UVM_E_GPU_BATCH,     /* one fault batch: proc; offset of its lowest page; value raw entries merged there; dur until the replay;
                          distinct pages, raw entries of the whole batch */
  UVM_E_GPU_FAULT,     /* one distinct (page, batch): proc; offset; value raw entries merged; access; spurious;
                          why, hint: what was decided */
  UVM_E_CPU_FAULT,     /* one CPU fault: offset; access; why; dur where the driver tells it (nvidia: 0, as its tools record it) */
  UVM_E_POPULATE,      /* first touch: dst; mask */
  UVM_E_DUPLICATE,     /* told beside its TRANSFER: src, dst; mask */
  UVM_E_COLLAPSE,      /* src: copies dropped; mask */
  UVM_E_MAP, UVM_E_UNMAP,   /* proc; access: granted, or what stays; mask */
  UVM_E_REVOKE,        /* proc; mask */
  UVM_E_EVICT,         /* a backing left: src node; bytes of the backing; value resident bytes that moved */
  UVM_E_THRASH,        /* one page now marked */
  UVM_E_THROTTLE,      /* one page: proc held; dur */
  UVM_E_REMOTE_MAP,    /* one page: proc mapped to src node's memory; cause (FAULT, THRASHING, POLICY, EVICTION) */
  UVM_E_UNPIN,         /* a pin ended; mask */
  UVM_E_PREFETCH,      /* an API prefetch: offset, bytes, dst; dur */
  UVM_E_ADVISE,        /* offset, bytes; value enum uvm_advice */
  UVM_E_ALLOC, UVM_E_FREE,  /* allocation; the alloc number; FREE: value is the bytes it had in GPUs' memory */
  UVM_E_KERNEL,        /* name; proc; dur; value its number */
  UVM_E_SECTION,       /* name; value the iteration; dur. Told at its end, t is its start */
  UVM_E_SECTION_BEGIN, /* name, value: told at once */
  UVM_E_PREFETCH_USED, /* pages that came by a speculative prefetch were touched for the first time: proc; bytes */
  UVM_E_ACCESS,        /* a summary of accesses made: proc; access; value elements; bytes of them that were remote */
  UVM_E_STALL,         /* proc waited for faults: dur */
  UVM_E_SERVICE,       /* a plan was carried out: proc who asked; value enum uvm_context; bytes of it touched for the first time;
                          dur. Told after the steps' own events */
  UVM_E_FIRST_WRITES,  /* the CPU wrote to pages that came back with others: dur, what the system's faults took */
  UVM_E_COPY,          /* one transfer of a memcpy: src, dst; bytes; dur */
  UVM_E_WAIT,          /* the host waited for work in its streams: dur, its wake-up included */
};
struct uvm_event {
  uint8_t kind, cause, access, why, hint;
  uvm_proc proc;
  uvm_node src, dst;
  bool has_alloc;
  bool spurious;                                /* GPU_FAULT: the page was mapped when its turn came; nothing was done */
  uint32_t alloc;                               /* the allocation's number, when has_alloc */
  uvm_ns t, dur;
  uvm_ns wait;                                  /* TRANSFER, ACCESS: for links that others held, before t or within dur; GPU_BATCH: from
                                                   t until the driver began with it */
  uint64_t offset, bytes, value;                /* offset in the allocation */
  uint64_t raw, distinct;                       /* GPU_BATCH */
  const uvm_mask *mask;                         /* pages of the block at block_offset; NULL: offset and bytes say */
  const struct uvm_block *block;
  const struct uvm_alloc *allocation;           /* ALLOC, FREE: id, label, kind and bytes stand there */
  const char *name;
  const char *rule;                             /* name of `why`, from the driver's or the policy's table; NULL none */
  int64_t line;                                 /* of the trace record behind it, 0 unknown */
};
/* An event about the allocation's page at offset; the caller adds to it and tells it. */
static inline struct uvm_event uvm_event_at(enum uvm_event_kind kind, uvm_ns t, const struct uvm_alloc *a, uint64_t offset) {
  return (struct uvm_event){
      .kind = (uint8_t)kind, .t = t, .has_alloc = true, .alloc = a->number, .offset = offset, .src = UVM_NONE, .dst = UVM_NONE};
}
/* Pages that an event is about. */
static inline uint64_t uvm_event_pages(const struct uvm_event *e) {
  return e->mask ? (uint64_t)uvm_mask_count(e->mask) : (e->bytes + UVM_PAGE - 1) / UVM_PAGE;
}
struct uvm_observer { void *ctx; void (*event)(void *ctx, const struct uvm_event *e); };
#endif
