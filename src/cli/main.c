/* uvmsim: the program. Chooses the command, prints its error, and turns its result into the exit status:
 * 0 ok, 1 the answer is no, 2 usage, 3 bad input, 4 environment. */
#include <errno.h>
#include <fcntl.h>
#include "cli/options.h"
#include "cli/simulate.h"

/* What was written to standard output arrived, or the status says that it did not. */
static int flush_output(int rc) {
  if ((!fflush(stdout) && !ferror(stdout)) || rc == UVM_EENV) return rc; /* one message is enough */
  fprintf(stderr, "uvmsim: standard output: cannot be written: %s\n", strerror(errno));
  return UVM_EENV;
}

/* A standard stream that the caller closed must fail when used, not be the next file that is opened. */
static void occupy_standard_streams(void) {
  for (int fd = 0; fd <= 2; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd) return;
}

static int run(int argc, char **argv) {
  struct uvm_options o;
  struct uvm_error e = {0};
  int rc = uvm_options_parse(argc, argv, &o, &e);
  if (!rc && o.help)
    uvm_help_command(o.command, stdout);
  else if (!rc)
    rc = o.command->run(&o, &e);
  if (rc && *e.text) fprintf(stderr, "uvmsim: %s\n", e.text);
  uvm_options_free(&o);
  return rc;
}

int main(int argc, char **argv) {
  occupy_standard_streams();
  uvm_cli_catch_signals();
  int rc = 0;
  if (argc < 2) {
    uvm_help_overview(stderr);
    return -UVM_EUSAGE;
  }
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
    uvm_help_overview(stdout);
  else if (!strcmp(argv[1], "--version"))
    printf("uvmsim %s\n", UVMSIM_VERSION);
  else
    rc = run(argc - 1, argv + 1);
  return -flush_output(rc);
}
