/* The command line, as two tables: commands and options. The parser, --help, the man page and the shell completion all read
 * them, so they cannot drift apart. */
#ifndef UVM_OPTIONS_H
#define UVM_OPTIONS_H
#include "session.h"

struct uvm_side {                       /* one run, as asked for: `diff` has two */
  struct uvm_session_config config;     /* trace, observers and progress are the command's to fill in */
  UVM_VEC(struct uvm_setting) settings; /* behind config.settings */
};
struct uvm_options {
  const struct uvm_command *command;
  const char *operand[8];
  size_t noperands;
  struct uvm_side side[2]; /* [1] is [0] but for what the options ending in -b say */
  const char *json, *events, *timeline, *observed, *sections, *workload, *alloc, *output;
  double tolerance; /* percent; negative: not given */
  uint64_t page;    /* UVM_NEVER: not given */
  bool deterministic, quiet, help, man, bash;
  UVM_VEC(const char *) asked; /* the words that say how the first side runs, as they were given */
};

enum uvm_command_bit {
  UVM_CMD_REPLAY = 1,
  UVM_CMD_VALIDATE = 2,
  UVM_CMD_WHY = 4,
  UVM_CMD_DIFF = 8,
  UVM_CMD_INFO = 16,
  UVM_CMD_CONVERT = 32,
  UVM_CMD_POLICIES = 64,
  UVM_CMD_MACHINES = 128,
  UVM_CMD_FORMATS = 256,
  UVM_CMD_HELP = 512,
  UVM_CMD_NEW = 1024,
  UVM_CMD_TEST = 2048,
  UVM_CMD_ALL = 4095,
  UVM_CMD_RUNS = UVM_CMD_REPLAY | UVM_CMD_VALIDATE | UVM_CMD_WHY | UVM_CMD_DIFF,
};
struct uvm_command {
  const char *name;     /* "replay", "trace info" */
  uint16_t bit;         /* enum uvm_command_bit */
  const char *operands; /* as the usage line shows them */
  size_t min, max;      /* how many of them */
  const char *summary, *about, *example;
  int (*run)(const struct uvm_options *o, struct uvm_error *e); /* 0, UVM_ENO (the answer is no), or an error */
};
extern const struct uvm_command uvm_commands[]; /* ends with a NULL name*/

enum uvm_option_type { UVM_O_SWITCH, UVM_O_TEXT, UVM_O_SIZE, UVM_O_FACTOR, UVM_O_NUMBER, UVM_O_SETTING };
struct uvm_option {
  const char *name;
  char letter;       /* 0 none */
  uint8_t type;      /* enum uvm_option_type */
  bool sided;        /* offset is in struct uvm_session_config; `diff` also takes --NAME-b */
  size_t offset;     /* in struct uvm_options otherwise */
  uint16_t commands; /* who takes it */
  const char *arg, *help;
  const char *values; /* for completion: a command of uvmsim that lists them; "=WORDS" themselves; "*HOOK" parts, or drivers; "" files */
};
extern const struct uvm_option uvm_option_table[]; /* ends with a NULL name */

/* argv without the program's name. UVM_EUSAGE: e says what and lists what is known. Frees with uvm_options_free. */
int uvm_options_parse(int argc, char **argv, struct uvm_options *o, struct uvm_error *e);
void uvm_options_free(struct uvm_options *o);
/* UVM_EUSAGE: "unknown WHAT 'NAME'; did you mean 'X'? known: a, b, c". names ends with NULL. */
int uvm_unknown(struct uvm_error *e, const char *what, const char *name, const char *const *names);

/* An output that goes to standard output, which then holds nothing else. */
static inline bool uvm_to_stdout(const char *path) { return path && !strcmp(path, "-"); }

int uvm_cmd_replay(const struct uvm_options *o, struct uvm_error *e);
int uvm_cmd_validate(const struct uvm_options *o, struct uvm_error *e);
int uvm_cmd_why(const struct uvm_options *o, struct uvm_error *e);
int uvm_cmd_diff(const struct uvm_options *o, struct uvm_error *e);
int uvm_cmd_trace_info(const struct uvm_options *o, struct uvm_error *e);
int uvm_cmd_trace_convert(const struct uvm_options *o, struct uvm_error *e);
int uvm_cmd_policies(const struct uvm_options *o, struct uvm_error *e);
int uvm_cmd_policies_new(const struct uvm_options *o, struct uvm_error *e);
int uvm_cmd_policies_test(const struct uvm_options *o, struct uvm_error *e);
int uvm_cmd_machines(const struct uvm_options *o, struct uvm_error *e);
int uvm_cmd_formats(const struct uvm_options *o, struct uvm_error *e);
int uvm_cmd_help(const struct uvm_options *o, struct uvm_error *e);
void uvm_help_command(const struct uvm_command *c, FILE *f);
void uvm_help_overview(FILE *f);
#endif
