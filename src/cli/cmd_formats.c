/* formats: what uvmsim reads and writes. */
#include "cli/options.h"
#include "report/json.h"
#include "report/table.h"

static const struct format {
  const char *name, *suffixes, *use, *about;
} formats[] = {
    {"uvt", ".uvt .uvt.gz .uvt.zst", "trace, read and written",
     "The text trace: what a program did. UTF-8 lines, fields separated by blanks, # begins a comment; the first line is `uvmtrace 1`. "
     "Records: page, processor, alloc, free, r|w|rw|atomic, kernel ... done, prefetch, advise, memcpy, sync, record, wait, delay, begin "
     "... end. docs/trace-format.md describes each one."},
    {"uvb", ".uvb", "trace, read and written",
     "The binary twin of uvt: the same records in compressed, checksummed blocks. Converting text to binary and back gives the same "
     "canonical text."},
    {"events", ".csv .csv.gz", "events, read (validate, diff) and written (replay --events)",
     "What a driver did, one event a line: t_ns,dur_ns,kind,alloc,offset,value,flags,src,dst, sorted by t_ns. Recordings of real drivers "
     "have the same form. Kinds: h2d d2h d2d (value bytes, flags cause: 1 user 2 fault 3 prefetch 4 eviction 5 access counters), gpu_fault "
     "(one a batch: its lowest page, value merged entries, flags 1 read 2 write), cpu_fault, thrash, throttle, remote_map (flags 1 "
     "coherence 2 thrashing 3 policy 5 eviction), section (flags name, value iteration). Only in ours: fault (one a distinct page and "
     "batch), populate, duplicate, collapse, map, unmap, revoke, evict, unpin, prefetch, advise, kernel, h2h, interrupted (a run was "
     "stopped then: the rows are partial). Readers skip kinds that they do not know."},
    {"sections", ".csv", "recorded section times, read (validate --sections)",
     "The spread of section times over repeated runs: workload,section,part,iterations,runs,min,median,max, times in seconds. part: all, "
     "or first and rest."},
    {"report", ".json", "report, written (--json)",
     "One JSON object with \"schema\": 1. replay: machine, driver, policy, engine, trace, total, processors, sections, allocations, "
     "link_waits (who waited for whom); null is what this run cannot know. docs/report-format.md describes each key. With --deterministic "
     "the same input gives the same bytes."},
    {"timeline", ".json .json.gz", "timeline, written (replay --timeline)",
     "The Trace Event Format, as ui.perfetto.dev and chrome://tracing read it: a process for each processor and one for the links; slices "
     "for sections, kernels, fault service, waits, prefetches, evictions and transfers, instants for faults and decisions, counters for "
     "residency. About 110 bytes an event; .gz compresses."},
    {"profile", ".ini", "machine, read (--machine FILE.ini)",
     "A machine: nodes, processors, links and prices. Keys that end in _ns or _ps are times, a link's up, down, load and store and "
     "memory_rate are bytes a second, sizes are bytes or with K, M, G. `uvmsim machines nvidia-h200` prints one to start from. With `like "
     "= nvidia-h200` in [machine] a profile says only what differs from that one."},
    {0}};

static void print_list(bool names_only) {
  struct uvm_table t;
  uvm_table_init(&t, names_only ? "l" : "lll", NULL);
  for (const struct format *f = formats; f->name; f++) {
    uvm_table_cell(&t, "%s", f->name);
    if (!names_only) uvm_table_cell(&t, "%s", f->suffixes), uvm_table_cell(&t, "%s", f->use);
  }
  uvm_table_print(&t, stdout);
}

static const struct format *find(const char *name, struct uvm_error *e) {
  const char *known[sizeof formats / sizeof *formats];
  size_t n = 0;
  for (const struct format *f = formats; f->name; f++) {
    if (!strcmp(f->name, name)) return f;
    known[n++] = f->name;
  }
  known[n] = NULL;
  return uvm_unknown(e, "format", name, known), NULL;
}

static int write_json(const struct format *only, const char *path, struct uvm_error *e) {
  cJSON *o = uvm_json_object();
  uvm_json_u64(o, "schema", 1);
  cJSON *list = uvm_json_list(o, "formats");
  for (const struct format *f = formats; f->name; f++) {
    if (only && f != only) continue;
    cJSON *item = uvm_json_item(list);
    uvm_json_text(item, "name", f->name);
    uvm_json_text(item, "suffixes", f->suffixes);
    uvm_json_text(item, "use", f->use);
    uvm_json_text(item, "about", f->about);
  }
  return uvm_json_write(o, path, e);
}

int uvm_cmd_formats(const struct uvm_options *o, struct uvm_error *e) {
  const struct format *f = NULL;
  int rc = 0;
  if (o->noperands && !(f = find(o->operand[0], e))) return e->code;
  if (o->json && (rc = write_json(f, o->json, e))) return rc;
  if (uvm_to_stdout(o->json)) return 0;
  if (!f) return print_list(o->quiet), 0;
  printf("%s (%s): %s\n\n", f->name, f->suffixes, f->use);
  uvm_wrap(stdout, f->about, 0, 0);
  return 0;
}
