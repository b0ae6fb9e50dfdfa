/* --help, the manual page and the shell completion, all from the tables. */
#include "cli/options.h"
#include "core/driver.h"
#include "policies.h"
#include "report/table.h"

static const char *const program = "uvmsim";
static const char *const what = "simulates GPU unified virtual memory: on a machine without a GPU it answers what page migration will do "
                                "to a program, why, and whether "
                                "another policy would do better.";
static const struct {
  const char *status, *meaning;
} statuses[] = {{"0", "ok"},
                {"1", "the answer is no (validate, diff)"},
                {"2", "usage"},
                {"3", "bad input, or input that cannot be read"},
                {"4", "the environment: memory, files that cannot be written, interruption"}};
enum { STATUSES = sizeof statuses / sizeof *statuses };

static bool takes(const struct uvm_command *c, const struct uvm_option *o) { return o->commands & c->bit; }

/* "-m, --machine NAME" */
static void option_title(const struct uvm_option *o, char *out, size_t size) {
  char letter[8] = "";
  if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
  snprintf(out, size, "%s--%s%s%s", letter, o->name, o->arg ? " " : "", o->arg ? o->arg : "");
}

static void help_option(const struct uvm_option *o, FILE *f) {
  enum { INDENT = 32 };
  char title[64];
  option_title(o, title, sizeof title);
  int pad = o->letter ? 0 : 4; /* long names stand in one column */
  int column = fprintf(f, "  %*s%s", pad, "", title);
  if (column + 2 <= INDENT)
    fprintf(f, "%*s", INDENT - column, "");
  else
    fprintf(f, "\n%*s", INDENT, "");
  uvm_wrap(f, o->help, INDENT, INDENT);
}

void uvm_help_command(const struct uvm_command *c, FILE *f) {
  fprintf(f, "usage: %s %s %s%s[options]\n\n", program, c->name, c->operands, *c->operands ? " " : "");
  uvm_wrap(f, c->about, 0, 0);
  fputs("\noptions:\n", f);
  for (const struct uvm_option *o = uvm_option_table; o->name; o++)
    if (takes(c, o)) help_option(o, f);
  fprintf(f, "\nexample: %s\n", c->example);
}

void uvm_help_overview(FILE *f) {
  fprintf(f, "usage: %s COMMAND [options]\n\n%s ", program, program);
  uvm_wrap(f, what, 0, 7);
  fputs("\ncommands:\n", f);
  for (const struct uvm_command *c = uvm_commands; c->name; c++) {
    int column = fprintf(f, "  %s %s", c->name, c->operands);
    fprintf(f, "%*s", 24 - column, "");
    uvm_wrap(f, c->summary, 24, 24);
  }
  fprintf(f, "\n`%s COMMAND --help` explains one; `%s help --man` prints the manual page.\n", program, program);
  fputs("Exit status: ", f);
  char text[256] = "";
  for (int i = 0; i < STATUSES; i++) {
    uvm_list_add(text, sizeof text, "; ", statuses[i].status);
    uvm_list_add(text, sizeof text, " ", statuses[i].meaning);
  }
  uvm_wrap(f, text, 2, 13);
}

/* -- the manual page -- */

/* troff reads a leading dot, a backslash and a minus its own way. */
static void roff(FILE *f, const char *text) {
  for (; *text; text++) {
    if (*text == '\\')
      fputs("\\e", f);
    else if (*text == '-')
      fputs("\\-", f);
    else
      fputc(*text, f);
  }
}

static void man_option(FILE *f, const struct uvm_option *o) {
  char title[64];
  option_title(o, title, sizeof title);
  fputs(".TP\n.B ", f), roff(f, title), fputc('\n', f);
  roff(f, o->help), fputs(". Taken by:", f);
  bool first = true;
  for (const struct uvm_command *c = uvm_commands; c->name; c++)
    if (takes(c, o)) fprintf(f, "%s %s", first ? "" : ",", c->name), first = false;
  fputs(".\n", f);
}

static void print_man(FILE *f) {
  fprintf(f, ".TH UVMSIM 1 \"\" \"uvmsim %s\" \"User Commands\"\n.SH NAME\nuvmsim \\- simulator of GPU unified virtual memory\n",
          UVMSIM_VERSION);
  fputs(".SH SYNOPSIS\n.B uvmsim\n.I COMMAND\n[options]\n.SH DESCRIPTION\n.B uvmsim\n", f), roff(f, what), fputs("\n.SH COMMANDS\n", f);
  for (const struct uvm_command *c = uvm_commands; c->name; c++) {
    fputs(".TP\n.B ", f), roff(f, c->name), fputc(' ', f), roff(f, c->operands), fputc('\n', f);
    roff(f, c->about), fputs("\n.br\nExample:\n.I ", f), roff(f, c->example), fputc('\n', f);
  }
  fputs(".SH OPTIONS\n", f);
  for (const struct uvm_option *o = uvm_option_table; o->name; o++) man_option(f, o);
  fputs(".SH EXIT STATUS\n", f);
  for (int i = 0; i < STATUSES; i++) fprintf(f, ".TP\n.B %s\n", statuses[i].status), roff(f, statuses[i].meaning), fputc('\n', f);
}

/* -- the completion -- */

static void bash_options(FILE *f, const struct uvm_command *c) {
  for (const struct uvm_option *o = uvm_option_table; o->name; o++)
    if (takes(c, o)) fprintf(f, c->bit == UVM_CMD_DIFF && o->sided ? " --%s --%s-b" : " --%s", o->name, o->name);
}

static void bash_parts(FILE *f, const char *hook) {
  for (const struct uvm_part *p = uvm_parts; p->name; p++)
    if (!strcmp(uvm_hook_options[p->hook], hook)) fprintf(f, " %s", p->name);
  for (size_t i = 0; !strcmp(hook, "driver") && uvm_drivers[i]; i++) fprintf(f, " %s", uvm_drivers[i]->name);
}

/* The case of one option: what may follow it. */
static void bash_values(FILE *f, const struct uvm_option *o) {
  if (!o->values || !*o->values) return;
  fprintf(f, "    --%s", o->name);
  if (o->sided) fprintf(f, "|--%s-b", o->name);
  if (o->letter) fprintf(f, "|-%c", o->letter);
  fputs(") files= words=\"", f);
  if (*o->values == '=')
    fputs(o->values + 1, f);
  else if (*o->values == '*')
    bash_parts(f, o->values + 1);
  else
    fprintf(f, "$(uvmsim %s 2>/dev/null)", o->values);
  fputs("\" ;;\n", f);
}

/* First words of the commands (group NULL), or second words of a group's. */
static void bash_commands(FILE *f, const char *group) {
  const char *before = "";
  for (const struct uvm_command *c = uvm_commands; c->name; c++) {
    size_t n = strcspn(c->name, " ");
    if (group && !strncmp(c->name, group, strlen(group)) && c->name[strlen(group)] == ' ') fprintf(f, " %s", c->name + n + 1);
    if (!group && (strncmp(before, c->name, n) || before[n] != ' ')) fprintf(f, " %.*s", (int)n, c->name);
    before = c->name;
  }
}

/* A command's case: its options, the names it takes and whether it takes files. */
static void bash_command(FILE *f, const struct uvm_command *c) {
  fprintf(f, "    '%s') options=\"", c->name), bash_options(f, c), fputc('"', f);
  if (c->bit & (UVM_CMD_POLICIES | UVM_CMD_MACHINES | UVM_CMD_FORMATS))
    fprintf(f, " words=\"$(uvmsim %s --quiet 2>/dev/null)", c->name), bash_commands(f, c->name), fputc('"', f);
  else if (c->bit & UVM_CMD_HELP)
    fputs(" words=\"", f), bash_commands(f, NULL), fputc('"', f);
  else
    fputs(" files=-f", f);
  fputs(" ;;\n", f);
}

static void print_bash(FILE *f) {
  fputs("# Completion of uvmsim for bash; printed by `uvmsim help --bash`.\n_uvmsim() {\n  local word=${COMP_WORDS[COMP_CWORD]} "
        "before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words= options= files=\n  ((COMP_CWORD > 2)) && "
        "case \"$command ${COMP_WORDS[2]}\" in trace*|policies\\ new|policies\\ test) command+=\" ${COMP_WORDS[2]}\" ;; esac\n  case "
        "$command in\n",
        f);
  for (const struct uvm_command *c = uvm_commands; c->name; c++) bash_command(f, c);
  fputs("    trace) words=\"", f), bash_commands(f, "trace"), fputs("\" ;;\n  esac\n", f);
  fputs("  if ((COMP_CWORD == 1)); then words=\"", f), bash_commands(f, NULL), fputs("\" options=\" --help --version\" files=; fi\n", f);
  fputs("  case $before in\n", f);
  for (const struct uvm_option *o = uvm_option_table; o->name; o++) bash_values(f, o);
  fputs("  esac\n  [[ $word == */* ]] && files=-f\n  [[ $word == -* ]] && words=$options files=\n  COMPREPLY=($(compgen $files -W "
        "\"$words\" -- \"$word\"))\n}\n"
        "complete -o filenames -F _uvmsim uvmsim\n",
        f);
}

int uvm_cmd_help(const struct uvm_options *o, struct uvm_error *e) {
  if (o->man) return print_man(stdout), 0;
  if (o->bash) return print_bash(stdout), 0;
  if (!o->noperands) return uvm_help_overview(stdout), 0;
  char *argv[3] = {(char *)o->operand[0], o->noperands > 1 ? (char *)o->operand[1] : "--help", "--help"};
  struct uvm_options named;
  int rc = uvm_options_parse((int)o->noperands + 1, argv, &named, e);
  if (!rc) uvm_help_command(named.command, stdout);
  uvm_options_free(&named);
  return rc;
}
