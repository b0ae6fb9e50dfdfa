#include "cli/options.h"

#define RUN(field) true, offsetof(struct uvm_session_config, field)
#define OWN(field) false, offsetof(struct uvm_options, field)
const struct uvm_option uvm_option_table[] = {
    {"machine", 'm', UVM_O_TEXT, RUN(machine), UVM_CMD_RUNS, "NAME", "machine to simulate, or a profile file (default nvidia-h200)", "machines --quiet"},
    {"policy", 'p', UVM_O_TEXT, RUN(policy), UVM_CMD_RUNS, "NAME", "migration policy (default: the one of the machine's driver)", "policies --quiet"},
    {"driver", 0, UVM_O_TEXT, RUN(driver), UVM_CMD_RUNS, "NAME", "kernel driver, with or without a version: nvidia, nvidia-595 (default: the machine's)", NULL},
    {"engine", 0, UVM_O_TEXT, RUN(engine), UVM_CMD_RUNS, "NAME", "what makes plans true: model (virtual time)", NULL},
    {"gpu-memory", 0, UVM_O_SIZE, RUN(gpu_memory), UVM_CMD_RUNS, "SIZE", "memory of each GPU: bytes, or with K, M, G, T (binary)", NULL},
    {"oversubscribe", 0, UVM_O_FACTOR, RUN(oversubscribe), UVM_CMD_RUNS, "F", "memory of each GPU: the most managed bytes alive at once, divided by F", NULL},
    {"place", 0, UVM_O_TEXT, RUN(place), UVM_CMD_RUNS, "PART", "another part for the question where a page goes", NULL},
    {"prefetch", 0, UVM_O_TEXT, RUN(prefetch), UVM_CMD_RUNS, "PART", "another prefetcher: what comes along with a fault", NULL},
    {"evict", 0, UVM_O_TEXT, RUN(evict), UVM_CMD_RUNS, "PART", "another evictor: who leaves when memory is full", NULL},
    {"thrash", 0, UVM_O_TEXT, RUN(thrash), UVM_CMD_RUNS, "PART", "another thrashing control", NULL},
    {"costs", 0, UVM_O_TEXT, RUN(costs), UVM_CMD_RUNS, "SET", "prices of the machine: measured, or traced (as with a profiler attached)", NULL},
    {"seed", 0, UVM_O_NUMBER, RUN(seed), UVM_CMD_RUNS, "N", "seed of whatever draws random numbers (default 0)", NULL},
    {"option", 'o', UVM_O_SETTING, RUN(settings), UVM_CMD_RUNS, "NAME.KEY=VALUE", "sets an option of a driver or policy; see `uvmsim policies NAME`; may be repeated", NULL},

    {"observed", 0, UVM_O_TEXT, OWN(observed), UVM_CMD_VALIDATE | UVM_CMD_DIFF, "FILE", "recorded events to compare with (.csv, .csv.gz)", ""},
    {"sections", 0, UVM_O_TEXT, OWN(sections), UVM_CMD_VALIDATE, "FILE", "recorded spread of section times: workload,section,part,iterations,runs,min,median,max", ""},
    {"workload", 0, UVM_O_TEXT, OWN(workload), UVM_CMD_VALIDATE, "NAME", "name of this trace in the --sections file (default: the trace's base name)", NULL},
    {"tolerance", 0, UVM_O_FACTOR, OWN(tolerance), UVM_CMD_VALIDATE, "PERCENT", "how far counts may be off, and times outside the recorded spread (default: decisions exact, times not judged)", NULL},
    {"alloc", 0, UVM_O_TEXT, OWN(alloc), UVM_CMD_WHY, "N", "the allocation: its number, or its id", NULL},
    {"page", 0, UVM_O_NUMBER, OWN(page), UVM_CMD_WHY, "P", "the 4 KiB page, counted from the start of the allocation", NULL},
    {"events", 0, UVM_O_TEXT, OWN(events), UVM_CMD_REPLAY, "FILE", "writes every event, in the form of a recording (.csv, .csv.gz)", ""},
    {"output", 'o', UVM_O_TEXT, OWN(output), UVM_CMD_CONVERT, "FILE", "file to write; its suffix picks the format: .uvt, .uvt.gz, .uvt.zst, .uvb", ""},

    {"man", 0, UVM_O_SWITCH, OWN(man), UVM_CMD_HELP, NULL, "prints the manual page (troff)", NULL},
    {"bash", 0, UVM_O_SWITCH, OWN(bash), UVM_CMD_HELP, NULL, "prints the completion for bash", NULL},
    {"json", 0, UVM_O_TEXT, OWN(json), UVM_CMD_ALL & ~UVM_CMD_HELP, "FILE", "writes the report as JSON; -: to standard output, and nothing else there", ""},
    {"deterministic", 0, UVM_O_SWITCH, OWN(deterministic), UVM_CMD_RUNS, NULL, "leaves wall-clock time out: the same input gives the same bytes", NULL},
    {"quiet", 'q', UVM_O_SWITCH, OWN(quiet), UVM_CMD_ALL & ~UVM_CMD_HELP, NULL, "no report for people (lists: names only); no progress bar", NULL},
    {"help", 'h', UVM_O_SWITCH, OWN(help), UVM_CMD_ALL, NULL, "explains the command", NULL},
    {0}};
