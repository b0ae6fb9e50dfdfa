#include "cli/options.h"

const struct uvm_command uvm_commands[] = {
    {"replay", UVM_CMD_REPLAY, "TRACE", 1, 1, "replays a trace on a machine and reports what page migration does",
     "Replays TRACE in virtual time: which pages fault, what the driver moves, maps, duplicates and evicts, and what that costs. The "
     "report lists allocations, those that moved most first, and ends with what the numbers mean and what to try next. The driver and its "
     "policy are the machine's own unless others are named. TRACE is a .uvt file, plain or compressed, or - for standard input "
     "(docs/trace-format.md describes it).",
     "uvmsim replay app.uvt --machine nvidia-h200 --oversubscribe 1.5 --json report.json", uvm_cmd_replay},
    {"validate", UVM_CMD_VALIDATE, "TRACE", 1, 1, "compares a replay with what a real driver was recorded doing",
     "Replays TRACE and puts the result beside the recording given with --observed, allocation by allocation: CPU faults and GPU fault "
     "batches in order, pages moved each way, transfer sizes, thrashing control. Verdicts: exact; subsequence (every recorded row is "
     "found, in order, among the simulated ones: recorders lose rows of wide kernels); close (counts within --tolerance); differs, with "
     "the first difference. With --sections, predicted section times stand beside the recorded spread, with the largest cause of each. The "
     "exit status is 1 when something differs by more than --tolerance.",
     "uvmsim validate chase.uvt.gz --observed chase.events.csv.gz --sections sections.csv", uvm_cmd_validate},
    {"why", UVM_CMD_WHY, "TRACE", 1, 1, "tells the biography of one page: each fault, the rule that decided, the cost",
     "Replays TRACE and prints everything that happened to one page: when, what, the rule that decided, where the page was and who had it "
     "mapped then, and what it cost.",
     "uvmsim why app.uvt --alloc weights --page 16", uvm_cmd_why},
    {"diff", UVM_CMD_DIFF, "A [B]", 1, 2, "finds the first decision in which two runs, or a run and a recording, part",
     "Compares faults, transfers, thrashing control and evictions, each in order, and prints the first decision in which the two sides "
     "part, with what stands around it. The sides are: two runs of one trace (diff TRACE --policy nvidia --prefetch-b none): any option of "
     "a run followed by -b is for the second one; runs of two traces (diff before.uvt after.uvt), say without and with advice; a run and a "
     "recording (diff TRACE --observed FILE); or two event files (diff A.csv B.csv). Times are not compared. GPU faults include those that "
     "found their page mapped by then, which a replay's report leaves out. The exit status is 1 when the sides part.",
     "uvmsim diff app.uvt --evict-b fifo --gpu-memory 64M", uvm_cmd_diff},
    {"trace info", UVM_CMD_INFO, "TRACE", 1, 1, "says what a trace holds", "Reads TRACE, checks all of it, and says what it holds.",
     "uvmsim trace info app.uvt.gz", uvm_cmd_trace_info},
    {"trace convert", UVM_CMD_CONVERT, "TRACE", 1, 1, "writes a trace in another form",
     "Reads TRACE, checks all of it, and writes it to the file given with --output, whole or not at all. - writes text to standard output.",
     "uvmsim trace convert app.uvt -o app.uvt.gz", uvm_cmd_trace_convert},
    {"policies new", UVM_CMD_NEW, "NAME", 1, 1, "writes NAME.c, a policy to begin with",
     "Writes NAME.c into this folder: a commented policy that runs as it is. --policy ./NAME.c compiles it, with $CC or cc, and loads it; "
     "so do --place, --prefetch, --evict and --thrash, for the one question. A shared object, ./NAME.so, is loaded as it is.",
     "uvmsim policies new mine", uvm_cmd_policies_new},
    {"policies test", UVM_CMD_TEST, "FILE", 1, 1, "holds a policy to its contract, and against the driver's own",
     "Runs the policy in FILE (./mine.c, ./mine.so) on random traces: every kind of access, advice, prefetches, odd sizes, little memory, "
     "one GPU and two. The driver checks each answer, and the same run twice must tell the same. A trace that fails is left in this "
     "folder. A writable global or static variable is refused: it would outlive a run, and runs may share it. At the end a few small "
     "workloads stand beside the driver's own policy. The exit status is 1 when the policy fails.",
     "uvmsim policies test ./mine.c", uvm_cmd_policies_test},
    {"policies", UVM_CMD_POLICIES, "[NAME]", 0, 1, "lists migration policies and their parts, or explains one with its options",
     "Without NAME: the policies, the parts that --place, --prefetch, --evict and --thrash take, and the drivers. With NAME, or a policy "
     "file (./mine.c, ./mine.so): the questions that it answers and its options, with ranges and defaults, as -o takes them.",
     "uvmsim policies nvidia", uvm_cmd_policies},
    {"machines", UVM_CMD_MACHINES, "[NAME]", 0, 1, "lists machines, or explains one",
     "Without NAME: the machines built in. With NAME (or a profile file): processors, memories, links and prices.",
     "uvmsim machines nvidia-h200", uvm_cmd_machines},
    {"formats", UVM_CMD_FORMATS, "[NAME]", 0, 1, "lists file formats, or explains one",
     "Without NAME: the formats that uvmsim reads and writes. With NAME: what is in one.", "uvmsim formats uvt", uvm_cmd_formats},
    {"help", UVM_CMD_HELP, "[COMMAND]", 0, 2, "explains a command; prints the manual page or the shell completion",
     "Without COMMAND: an overview.", "uvmsim help replay", uvm_cmd_help},
    {0}};
