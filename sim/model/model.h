/* Private to the model engine: virtual time as a queue of events, and the hardware that makes them.
 *
 *   queue.c    events in order of time, then of coming; the only clock
 *   engine.c   the engine's interface; hands each event to its owner
 *   host.c     the host thread: reads the trace, runs loops (loop.c), calls, waits
 *   hits.c     its accesses that hit, in a row
 *   stream.c   streams: kernels, prefetches and copies in order, recorded events
 *   lanes.c    which pages a warp touches in a step (pure arithmetic on records)
 *   access.c   is a page mapped, where does it lie; what accesses cost and count
 *   kernel.c   a kernel's blocks on SMs
 *   warp.c     a warp's way through its steps
 *   resident.c kernels that find everything resident, without steps
 *   mmu.c      outstanding faults, page walks, the fault ring, interrupts, replay
 *   counters.c access counters
 *   price.c    what plans and the driver's work take
 *   hw.c       what the driver stands on
 *
 * Handlers never nest: whatever happens later is an event, whatever the session must do goes through the outbox. */
#ifndef UVM_MODEL_H
#define UVM_MODEL_H
#include "core/host.h"
#include "engine.h"

/* -- queue -- */
enum uvm__happening {
  UVM__HOST,      /* the host thread goes on */
  UVM__OP,        /* a stream's head operation goes on: p */
  UVM__WARP,      /* device a, warp b takes its next step or access */
  UVM__MISS,      /* device a, entry b of generation c reaches the MMU */
  UVM__WALK,      /* device a: the page walk under way ends */
  UVM__REPLAY,    /* device a: stalled accesses try again */
  UVM__INTERRUPT, /* device a */
  UVM__COUNTERS,  /* device a has notifications */
  UVM__WAKE,      /* p: a driver's task */
};
struct uvm__event {
  uvm_ns time;
  union {
    void *p;
    uint64_t c;
  };
  uint32_t b;
  uint16_t a;
  uint8_t kind;
};
#define UVM__DIGIT 6 /* bits */
#define UVM__DIGIT_MAX 63
#define UVM__WHEELS 11
struct uvm__slot {
  struct uvm__event *v;
  size_t n, cap;
};
struct uvm__queue {
  uvm_ns base;                /* no event is earlier */
  uvm_ns next;                /* of the events beyond wheel 0 the first; 0: not known */
  size_t head;                /* events taken out of the first slot */
  uint32_t wheels;            /* that hold events, a bit each */
  uint64_t full[UVM__WHEELS]; /* and their slots that do */
  struct uvm__slot slots[UVM__WHEELS][UVM__DIGIT_MAX + 1];
};
#define UVM__MAX_NS (1ull << 53) /* of a run: memory's answers are counted in picoseconds */
/* Room for an event of that time, never earlier than what was popped last; the caller fills in the rest. Valid until the next. */
struct uvm__event *uvm__queue_add(struct uvm__queue *q, uvm_ns time);
static inline void uvm__queue_push(struct uvm__queue *q, struct uvm__event e) { *uvm__queue_add(q, e.time) = e; }
bool uvm__queue_pop(struct uvm__queue *q, struct uvm__event *out);
const struct uvm__event *uvm__queue_peek(const struct uvm__queue *q); /* the next event if it is near, else NULL */
uvm_ns uvm__queue_find_next(struct uvm__queue *q);
void uvm__queue_release(struct uvm__queue *q);
static inline bool uvm__queue_empty(const struct uvm__queue *q) { return !q->wheels; }
/* When the next event comes; UVM_NEVER. */
static inline uvm_ns uvm__queue_next(struct uvm__queue *q) {
  if (q->wheels & 1) return (q->base & ~(uvm_ns)UVM__DIGIT_MAX) + (unsigned)__builtin_ctzll(q->full[0]);
  return q->wheels && q->next ? q->next : uvm__queue_find_next(q);
}

/* -- records and lanes -- */
struct uvm__record { /* one access record of a kernel, or a CPU loop */
  struct uvm_alloc *alloc;
  uint8_t op, split;                           /* enum uvm_access_op, uvm_split */
  uint64_t offset, end, step, width, elements; /* element k: [offset + k step, + width), cut at end */
  uint64_t rounds;                             /* split cyclically: in which every lane has an element */
  int64_t line;
  uint64_t remote;    /* bytes accessed on other nodes so far */
  uint64_t waited_ps; /* that those waited for copies on the links */
};
void uvm__record_set(struct uvm__record *r, struct uvm_alloc *a, const struct uvm_trace_access *t);
static inline bool uvm__reads(uint8_t op) { return op == UVM_OP_R || op == UVM_OP_RW; }
static inline bool uvm__writes(uint8_t op) { return op != UVM_OP_R; }
static inline uint8_t uvm__access_of(uint8_t op, bool writing) {
  return !writing ? UVM_A_READ : op == UVM_OP_ATOMIC ? UVM_A_ATOMIC : UVM_A_WRITE;
}
static inline uint64_t uvm__first_page(const struct uvm__record *r, uint64_t k) { return (r->offset + k * r->step) / UVM_PAGE; }
static inline uint64_t uvm__last_page(const struct uvm__record *r, uint64_t k) {
  uint64_t end = r->offset + k * r->step + r->width;
  return ((end < r->end ? end : r->end) - 1) / UVM_PAGE;
}
/* Bytes of elements [k, k + m) inside the pages [a, b): exact. */
uint64_t uvm__bytes_in(const struct uvm__record *r, uint64_t k, uint64_t m, uint64_t a, uint64_t b);
uint64_t uvm__elements_in(const struct uvm__record *r, uint64_t k, uint64_t m, uint64_t a, uint64_t b); /* that begin there */

enum uvm__phase_kind { UVM__LOOP, UVM__BY_LANE, UVM__BY_BLOCK };
struct uvm__phase {
  uint8_t kind;
  uint32_t first, count; /* records */
  uint64_t serial;       /* of the first single access */
};
struct uvm__kernel {
  uvm_proc proc;
  uint64_t number, lanes, per_block, blocks;
  uint64_t busy_blocks;                        /* blocks from here on touch nothing and are not started */
  uint64_t next_block, done_blocks, next_lane; /* next_lane: of next_block, when it starts piecemeal */
  bool has_ns;
  uint64_t ns, step_ns, store_step_ns;
  char *name;
  int64_t line;
  uvm_ns begin, stall_since, stalled; /* stalled: time with some fault outstanding, up to stall_since */
  uint32_t outstanding;               /* faults */
  struct uvm__op *op;
  UVM_VEC(struct uvm__record) records;
  UVM_VEC(struct uvm__phase) phases;
};
/* Where a warp stands: a step of a phase, a part (the reads or the writes) of a record there, pages [page, last] of it. */
struct uvm__cursor {
  uint64_t step, k, page, last;
  uint64_t m, element;                    /* elements [k, k + m); `element` of them begun; of a whole record there may be many */
  uint32_t phase, record, end;            /* records [record, end) of the step are still to come */
  bool begun, open, writing, fence, over; /* step begun; part open; its kind; all before it must have been served; no part left */
};
struct uvm__lanes {             /* of a warp */
  uint64_t block, first, count; /* lanes [first, first + count) of the block */
  uint64_t of_block;            /* lanes that it has */
};
struct uvm__kernel *uvm__kernel_create(const struct uvm_trace_record *r, const struct uvm_space *s);
void uvm__kernel_destroy(struct uvm__kernel *k);
/* Moves to the next part: false at the end of the step. A part's `fence` says that what came before must be served first. */
bool uvm__next_part(const struct uvm__kernel *k, const struct uvm__lanes *w, struct uvm__cursor *c);
/* Moves to the part's next pages; false at its end. */
bool uvm__next_pages(const struct uvm__record *r, struct uvm__cursor *c);
/* Moves to the next step that touches anything; false when the warp is through. */
bool uvm__next_step(const struct uvm__kernel *k, const struct uvm__lanes *w, struct uvm__cursor *c);
uint64_t uvm__steps(const struct uvm__kernel *k);                      /* of the busiest lane */
uint64_t uvm__busy_lanes(const struct uvm__kernel *k, uint64_t block); /* the first lanes of a block that touch anything */

/* -- devices: a GPU, or the CPU as one SM whose warps are threads -- */
struct uvm__warp {
  struct uvm__kernel *kernel;
  struct uvm__lanes lanes;
  struct uvm__cursor at;
  uint32_t sm, resident; /* resident: index of its block */
  uint64_t age;          /* in order of start */
  uint32_t outstanding;
  uint32_t next;      /* free list */
  bool waiting;       /* in its SM's line */
  bool trapped;       /* a thread in a CPU fault */
  bool loads;         /* the step waits for a load */
  bool paced;         /* its step is over, the next begins with the next event */
  uvm_ns stall_since; /* CPU */
  uint64_t ready_ps;  /* memory's answer to the step under way; CPU: the time the step takes */
};
struct uvm__resident {
  struct uvm__kernel *kernel;
  uint64_t lanes, warps;
  uint32_t sm, next;
};
struct uvm__waiter { /* a warp that found no place for its fault, and what it wants */
  uint64_t age, page;
  struct uvm__record *record;
  uint32_t warp;
  bool writing;
};
struct uvm__sm {
  uint64_t lanes, blocks;
  uint32_t outstanding;
  uvm_ns issue;                     /* when it can send the next miss */
  UVM_VEC(struct uvm__waiter) line; /* waits for a place, the oldest warp last */
};
struct uvm__entry {                                /* one outstanding raw fault */
  uint64_t k, m, page, generation;                 /* elements [k, k + m) of the record touch the page */
  uint32_t record, warp, sm, newer, older, beside; /* by age; `beside`: next who waits for the same page walk */
  bool writing, sent;                              /* sent: its walk has ended since the last replay */
};
struct uvm__touch {
  struct uvm__record *record;
  uint64_t k, m, page; /* elements [k, k + m) on pages from `page` on */
  bool writing;
};
struct uvm__walk {
  struct uvm_alloc *alloc;
  uint64_t page;
  uint32_t first, last, chain;
};
struct uvm__counter {
  uint64_t count;
  uint32_t touched, threshold; /* threshold 0: the default */
  bool silent;
};
struct uvm__device {
  uvm_proc proc;
  uint32_t nsms, warp, utlb, gpc_warps, gpcs;
  uint64_t lanes_per_sm, blocks_per_sm;
  struct uvm__sm *sms;
  uint32_t *stalled;                     /* warps stalled, by GPC */
  uint32_t *first_pair;                  /* by GPC: the pair of SMs whose turn comes first */
  UVM_VEC(struct uvm__kernel *) kernels; /* running, oldest first */
  UVM_VEC(struct uvm__warp) warps;
  UVM_VEC(struct uvm__resident) residents;
  uint32_t free_warp, free_resident, next_sm;
  uint32_t piecemeal; /* the CPU's block whose threads are being started */
  uint64_t started;   /* warps ever */
  uvm_ns start;       /* when the next block may start */
  double byte_ps;     /* of its own memory */
  uint64_t memory_ps; /* when that has answered all so far */
  /* faults */
  UVM_VEC(struct uvm__entry) entries;
  uint32_t free_entry, oldest, newest, nentries;
  uint64_t random;                 /* where the SMs' turns begin */
  UVM_VEC(struct uvm__walk) walks; /* a queue from walk_head on */
  size_t walk_head;
  uint32_t *walk_hash; /* newest walk of a page + 1 */
  struct uvm_raw_fault *ring;
  uint64_t put, get;               /* entries ever put and freed */
  bool armed, interrupting, woken; /* woken: an interrupt has been sent before */
  bool refused;                    /* the warp just run found no room for a fault */
  uvm_ns quiet_since, stall_since;
  /* access counters */
  UVM_VEC(struct uvm__counter *) counters; /* by allocation, then by region */
  UVM_VEC(struct uvm_counter_note) notes;
  bool noted;
};
#define UVM__NO UINT32_MAX

/* -- streams -- */
enum uvm__op_kind { UVM__KERNEL, UVM__PREFETCH, UVM__COPY, UVM__RECORD, UVM__AWAIT };
struct uvm__side {
  struct uvm_alloc *alloc;
  uint64_t offset;
};
struct uvm__op {
  uint8_t kind, stage;
  uint64_t id; /* the cookie of its calls */
  int64_t line;
  struct uvm__stream *stream;
  struct uvm__kernel *kernel;
  struct uvm_call call;      /* PREFETCH */
  struct uvm__side dst, src; /* COPY */
  uint64_t bytes;
  size_t event; /* RECORD, AWAIT */
  struct uvm__op *next;
};
struct uvm__stream {
  uint64_t number;
  uvm_proc proc; /* of stream 0; else 0 */
  struct uvm__op *head, *tail;
};
struct uvm__mark { /* a named event */
  char *name;
  size_t instance; /* its latest record */
  size_t next;     /* of its hash chain, + 1 */
};

/* -- host -- */
enum uvm__host_state {
  UVM__HUNGRY,  /* asked for a record */
  UVM__PAUSING, /* asks when its event comes */
  UVM__LOOPING, /* in a CPU loop */
  UVM__WAITING,
  UVM__WAITED,
  UVM__CALLING, /* in a call that the driver completes */
  UVM__FINISHED,
};
struct uvm__section {
  char *name;
  uint64_t iteration;
  uvm_ns begin;
  int64_t line;
};
struct uvm__loop { /* the CPU loop under way */
  struct uvm__record record;
  uint64_t k, page; /* element, page of it being touched */
  bool faulted;
  uint64_t ps; /* time owed below a nanosecond */
  uvm_ns stall_since;
};
struct uvm__wait { /* what the host waits for */
  bool stream, proc, all;
  uint64_t number; /* the stream's */
  uvm_proc on;     /* the processor; of stream 0, whose */
};
struct uvm__host {
  uint8_t state, then; /* then: why it waits: UVM_TR_SYNC, FREE, END (of the trace) */
  uvm_ns wait_since;
  struct uvm__wait wait;
  struct uvm__loop loop;
  bool waited; /* since its last fault that moved pages */
  struct uvm_alloc *freeing;
  struct uvm_trace_record *allocating; /* device memory that waits for room, or NULL */
  UVM_VEC(struct uvm__section) sections;
  uvm_proc last_gpu; /* named last */
  int64_t line;      /* of the latest record */
};

struct uvm_engine {
  struct uvm_core *core;
  struct uvm_machine *machine;
  struct uvm_error *error; /* the session's, of the latest call */
  int failed;
  uvm_ns now;
  const char *trace; /* its name, or NULL */
  struct uvm__queue queue;
  UVM_VEC(struct uvm_engine_event) outbox;
  size_t outbox_head;
  struct uvm__host host;
  UVM_VEC(struct uvm__stream *) streams;
  UVM_VEC(struct uvm__mark) marks;
  size_t *mark_hash;
  UVM_VEC(bool) recorded; /* instances of events: done */
  uint64_t ops, kernels;  /* ever */
  uint64_t in_flight;     /* operations queued or running */
  uint64_t random;        /* of host-side work */
  struct uvm__device *devices[UVM_MAX_PROCS];
};

/* engine.c */
void uvm__emit(struct uvm_engine *x, struct uvm_engine_event ev); /* to the session; now is filled in */
void uvm__at(struct uvm_engine *x, uvm_ns time, enum uvm__happening kind, uint32_t a, uint32_t b);
int uvm__fail(struct uvm_engine *x, int64_t line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4))); /* UVM_EINPUT; ends the run */

/* hits.c: the host's accesses that hit at once and need nothing else: how many of the records, from the first on */
size_t uvm__pass_hits(struct uvm_engine *x, const struct uvm_trace_record *r, size_t n);

/* host.c, loop.c */
int uvm__host_feed(struct uvm_engine *x, const struct uvm_trace_record *r); /* NULL: the trace ended */
void uvm__host_run(struct uvm_engine *x);
void uvm__host_notice(struct uvm_engine *x);   /* an operation or the driver's fault loop ended: does that end a wait? */
void uvm__host_forget(struct uvm_engine *x); /* what waits for room */
void uvm__host_complete(struct uvm_engine *x); /* the call it was in is done */
void uvm__loop_begin(struct uvm_engine *x, const struct uvm_trace_record *r);
bool uvm__loop_run(struct uvm_engine *x); /* true: the loop is over; else an event or a fault is pending */

/* stream.c */
struct uvm__stream *uvm__stream_get(struct uvm_engine *x, uint64_t number, uvm_proc proc);
struct uvm__op *uvm__op_add(struct uvm_engine *x, struct uvm__stream *s, enum uvm__op_kind kind, int64_t line);
void uvm__op_begin(struct uvm_engine *x, struct uvm__stream *s);        /* when it has just become the head */
void uvm__op_at(struct uvm_engine *x, uvm_ns time, struct uvm__op *op); /* it goes on then */
void uvm__op_run(struct uvm_engine *x, struct uvm__op *op);
void uvm__op_complete(struct uvm_engine *x, uint64_t id);
size_t uvm__mark_record(struct uvm_engine *x, const char *name); /* a new instance of the event */
int uvm__mark_find(struct uvm_engine *x, const char *name, int64_t line, size_t *instance);
bool uvm__waits_over(const struct uvm_engine *x, const struct uvm__wait *w);
void uvm__streams_close(struct uvm_engine *x);

/* access.c */
struct uvm__look {
  bool hit;
  uvm_node node;
  uint64_t run; /* pages from here on that are alike, at least 1 */
};
int uvm__look(struct uvm_engine *x, uvm_proc p, struct uvm_alloc *a, uint64_t page, uint64_t last, uint8_t access, int64_t line,
              struct uvm__look *out); /* < 0: not allowed to touch it at all */
/* What first writes of pages that came to the CPU with others cost it. */
uint64_t uvm__first_writes(struct uvm_engine *x, struct uvm_alloc *a, uint64_t page, uint64_t run);
/* What the CPU takes to touch mapped pages, that many elements of them, in ps. */
static inline uint64_t uvm__touch_ps(const struct uvm_engine *x, uint64_t pages, uint64_t elements) {
  return pages * x->machine->cpu.page_ns * 1000 + elements * x->machine->cpu.element_ps;
}
/* Bytes of another node's memory cross a link: when p has them, in ps. */
uint64_t uvm__cross(struct uvm_engine *x, uvm_proc p, struct uvm__record *r, uvm_node n, uint64_t bytes, bool writing);
void uvm__tell_hits(struct uvm_engine *x, uvm_proc p, struct uvm_alloc *a, uint64_t page, uint64_t run, uint8_t access, uint64_t count);
void uvm__tell_summary(struct uvm_engine *x, uvm_proc p, const struct uvm__record *r);
void uvm__tell_stall(struct uvm_engine *x, uvm_proc p, uvm_ns since, int64_t line);

/* kernel.c, warp.c */
struct uvm__device *uvm__device_create(const struct uvm_machine *m, uvm_proc p, uint64_t seed);
void uvm__device_destroy(struct uvm__device *d);
void uvm__kernel_begin(struct uvm_engine *x, struct uvm__kernel *k);
void uvm__warp_ended(struct uvm_engine *x, struct uvm__device *d, uint32_t w);
void uvm__hit(struct uvm_engine *x, struct uvm__device *d, struct uvm__warp *w, const struct uvm__touch *t, const struct uvm__look *look);
void uvm__warp_turn(struct uvm_engine *x, struct uvm__device *d, uint32_t w); /* its event came */
void uvm__warp_run(struct uvm_engine *x, struct uvm__device *d, uint32_t w);

/* resident.c: true when the kernel, just begun, finds all its pages in its GPU's memory and nothing else can happen before it
 * is over; *end is when its last step ends. */
bool uvm__resident_end(struct uvm_engine *x, const struct uvm__device *d, const struct uvm__kernel *k, uint64_t steps, uvm_ns *end);

/* mmu.c */
bool uvm__fault(struct uvm_engine *x, struct uvm__device *d, uint32_t w); /* at its cursor's page; false: no room, it waits in line */
void uvm__miss_arrived(struct uvm_engine *x, struct uvm__device *d, uint32_t entry, uint64_t generation);
void uvm__walk_ended(struct uvm_engine *x, struct uvm__device *d);
void uvm__retry(struct uvm_engine *x, struct uvm__device *d);
void uvm__rearm(struct uvm_engine *x, struct uvm__device *d);
bool uvm__quiet(const struct uvm__device *d); /* no fault waits for the driver, and it waits for one */
void uvm__mmu_create(struct uvm__device *d, uint64_t ring);
void uvm__mmu_destroy(struct uvm__device *d);

/* counters.c */
void uvm__count_remote(struct uvm_engine *x, struct uvm__device *d, struct uvm_alloc *a, uint64_t page, uint64_t run);
size_t uvm__take_notes(struct uvm__device *d, struct uvm_counter_note *out, size_t max);
void uvm__clear_counter(struct uvm__device *d, struct uvm_alloc *a, uint64_t offset, uint32_t threshold);
void uvm__forget_counters(struct uvm__device *d, const struct uvm_alloc *a);

/* price.c, hw.c */
uvm_ns uvm__prepare(struct uvm_engine *x, const struct uvm_plan *p, uvm_ns now);
uvm_ns uvm__execute(struct uvm_engine *x, struct uvm_plan *p, uvm_ns now);
uvm_ns uvm__price(const struct uvm_engine *x, enum uvm_work w, uint64_t n);
void uvm__hw(struct uvm_engine *x, struct uvm_hw *out);
#endif
