/* Speed and size, as lines NAME VALUE UNIT. Times are of the processor, of one core: all of it runs in one thread.
 *
 *   memory_1tib      MiB   peak of a process in which the CPU touches one page in each 2 MiB of 1 TiB
 *   memory_1tib_gpu  MiB   the same, touched by a GPU that cannot hold it all
 *   access_hit       M/s   trace records replayed of one access each, all hits; the records lie decoded in memory
 *   lru_zipf         M/s   requests to an exact LRU of 100 k pages out of 1 M, by Zipf's law; hits, misses and evictions
 *   lru_zipf_hits    %     how many of them are hits
 *   decode_text      MB/s  parsing the text of the recorded `random` (122 k lines)
 *   stream_read      s     replaying the recorded workload of 1 to 1024 MiB, 538 M element accesses */
#include "chain.h"
#include "session.h"
#include "trace.h"
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Of a core, so that what else the machine does counts little. */
static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(int rc, const struct uvm_error *e) {
  if (rc >= 0) return;
  fprintf(stderr, "bench: %s\n", e->text);
  exit(-rc);
}

static void replay(const char *path) {
  struct uvm_session_config c = {.trace = path};
  struct uvm_session_result r;
  struct uvm_error e;
  must(uvm_session_run(&c, &r, &e), &e);
}

/* -- access_hit -- */

enum { HIT_BYTES = 64 << 20, HITS = 1000000, HIT_RUNS = 10 };

/* Writes it all, so that every page is there, then reads one element a record, anywhere. */
static struct uvm_trace *hit_trace(size_t hits, char **text) {
  size_t size;
  struct uvm_trace *t;
  struct uvm_error e;
  uint64_t seed = 1;
  FILE *f = open_memstream(text, &size);
  fprintf(f, "uvmtrace 1\nprocessor cpu\nalloc a %d managed a\nw cpu a 0 %d\n", HIT_BYTES, HIT_BYTES);
  for (size_t i = 0; i < hits; i++) fprintf(f, "r cpu a %llu 8\n", (unsigned long long)(uvm_random(&seed) % (HIT_BYTES / 8) * 8));
  fclose(f);
  must(uvm_trace_open_memory(*text, size, &t, &e), &e);
  must(uvm_trace_hold(t, &e), &e);
  return t;
}

static double time_hits(size_t hits) {
  char *text;
  struct uvm_trace *t = hit_trace(hits, &text);
  struct uvm_session_config c = {.source = t};
  struct uvm_session_result r;
  struct uvm_error e;
  double start = seconds();
  for (int i = 0; i < HIT_RUNS; i++) must(uvm_session_run(&c, &r, &e), &e);
  double end = seconds();
  uvm_trace_close(t);
  free(text);
  return end - start;
}

static void access_hit(void) {
  double none = time_hits(0), all = time_hits(HITS);
  printf("access_hit %.1f M/s\n", HITS * (double)HIT_RUNS / (all - none) / 1e6);
}

/* -- lru_zipf -- */

enum { ZIPF_PAGES = 1000000, FRAMES = 100000, REQUESTS = 10000000 };

/* Requests of Zipf's law with exponent 1: the k-th most wanted page is asked for with a chance in proportion to 1 / k. Which
 * page that is has nothing to do with where it lies. */
static uint32_t *zipf_requests(void) {
  double *below = uvm_mem(ZIPF_PAGES * sizeof *below), sum = 0;
  uint32_t *page = uvm_mem(ZIPF_PAGES * sizeof *page), *requests = uvm_mem(REQUESTS * sizeof *requests);
  uint64_t seed = 1;
  for (uint32_t k = 0; k < ZIPF_PAGES; k++) {
    uint32_t other = (uint32_t)(uvm_random(&seed) % (k + 1));
    page[k] = page[other], page[other] = k;
    below[k] = sum += 1.0 / (k + 1);
  }
  for (size_t i = 0; i < REQUESTS; i++) {
    double at = (double)(uvm_random(&seed) >> 11) / 0x1p53 * sum;
    uint32_t lo = 0;
    for (uint32_t hi = ZIPF_PAGES - 1; lo < hi;) {
      uint32_t mid = lo + (hi - lo) / 2;
      if (below[mid] > at) hi = mid;
      else lo = mid + 1;
    }
    requests[i] = page[lo];
  }
  uvm_mem_free(below);
  uvm_mem_free(page);
  return requests;
}

/* The list that the evictor lru keeps, with a page as its unit. */
static void lru_zipf(void) {
  uint32_t *requests = zipf_requests(), *slot_of = uvm_mem(ZIPF_PAGES * sizeof *slot_of);
  struct uvm__chain l = {0};
  size_t held = 0, misses = 0;
  double start = seconds();
  for (size_t i = 0; i < REQUESTS; i++) {
    uint32_t *slot = &slot_of[requests[i]];
    if (*slot) {
      uvm__chain_renew(&l, *slot);
      continue;
    }
    misses++;
    if (held++ >= FRAMES) {
      uint32_t oldest = uvm__chain_oldest(&l);
      slot_of[l.v[oldest].thing] = 0;
      uvm__chain_remove(&l, oldest);
    }
    *slot = uvm__chain_add(&l, requests[i]);
  }
  printf("lru_zipf %.1f M/s\n", REQUESTS / (seconds() - start) / 1e6);
  printf("lru_zipf_hits %.1f %%\n", 100.0 * (REQUESTS - misses) / REQUESTS);
  uvm__chain_free(&l);
  uvm_mem_free(requests);
  uvm_mem_free(slot_of);
}

static void write_trace(char *path, const char *text) {
  int fd = mkstemp(path);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) exit(4);
  close(fd);
}

static void stream_read(void) {
  double t = seconds();
  replay("traces/recorded/h200/stream_read.uvt.gz");
  printf("stream_read %.2f s\n", seconds() - t);
}

static void decode_text(void) {
  struct uvm_trace *t;
  struct uvm_error e;
  struct uvm_trace_record r;
  double start = seconds();
  int rc;
  must(uvm_trace_open("traces/recorded/h200/random.uvt.gz", false, &t, &e), &e);
  while ((rc = uvm_trace_next(t, &r, &e)) > 0) continue;
  must(rc, &e);
  uvm_trace_close(t);
  printf("decode_text %.1f MB/s\n", 2.02 / (seconds() - start));   /* the file is 2.02 MB of text */
}

/* In a process of its own. The first to run, for what else this one has used would count. */
static void memory(const char *name, const char *touch) {
  char path[] = "/tmp/uvmsim-bench-XXXXXX", text[160];
  snprintf(text, sizeof text, "uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 1024G managed a\n%s a 0 1024G step=2097152\n", touch);
  write_trace(path, text);
  pid_t child = fork();
  if (!child) replay(path), _exit(0);
  struct rusage u;
  int status;
  if (wait4(child, &status, 0, &u) != child || status) exit(4);
  printf("%s %.0f MiB\n", name, (double)u.ru_maxrss / 1024);
  unlink(path);
}
static void memory_1tib(void) { memory("memory_1tib", "w cpu"); }
static void memory_1tib_gpu(void) { memory("memory_1tib_gpu", "w gpu0"); }

/* All of them, or those named. */
int main(int argc, char **argv) {
  static const struct { const char *name; void (*run)(void); } benches[] = {
      {"memory_1tib", memory_1tib}, {"memory_1tib_gpu", memory_1tib_gpu}, {"access_hit", access_hit}, {"lru_zipf", lru_zipf},
      {"decode_text", decode_text}, {"stream_read", stream_read}};
  for (size_t i = 0; i < sizeof benches / sizeof *benches; i++) {
    bool wanted = argc == 1;
    for (int k = 1; k < argc; k++) wanted |= !strcmp(argv[k], benches[i].name);
    if (wanted) benches[i].run();
  }
  return 0;
}
