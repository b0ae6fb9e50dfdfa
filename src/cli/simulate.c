#include "cli/simulate.h"
#include <signal.h>
#include <unistd.h>
#include "cli/progress.h"
#include "machine/machine.h"

static volatile sig_atomic_t running;

int uvm_cli_places(const struct uvm_options *o, int side, struct uvm_places *out, struct uvm_error *e) {
  const struct uvm_session_config *c = &o->side[side].config;
  struct uvm_machine *m;
  int rc = uvm_machine_open(c->machine, c->costs, &m, e);
  if (rc) return rc;
  uvm_places_init(out, &m->topology);
  uvm_machine_close(m);
  return 0;
}

int uvm_cli_simulate(const struct uvm_options *o, int side, const struct uvm_observer *observers, size_t n, struct uvm_session_result *r,
                     struct uvm_error *e) {
  struct uvm_session_config c = o->side[side].config;
  c.trace = o->operand[side] ? o->operand[side] : o->operand[0];
  struct uvm_progress_bar bar = {.trace = c.trace};
  c.observers = observers, c.nobservers = n;
  if (!o->quiet && isatty(STDERR_FILENO)) c.progress = uvm_progress_show, c.progress_ctx = &bar;
  *r = (struct uvm_session_result){0};
  running = 1;
  int rc = uvm_session_run(&c, r, e);
  running = 0;
  uvm_progress_erase(&bar);
  return rc;
}

/* -- signals -- */

static void stop(int signal_number) {
  if (running && !uvm_stop && signal_number != SIGPIPE) {
    uvm_stop = true;
    return;
  }
  uvm_out_remove_all();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void uvm_cli_catch_signals(void) {
  static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
  for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
    struct sigaction old, action = {.sa_handler = stop};
    sigaction(caught[i], NULL, &old);
    if (old.sa_handler != SIG_IGN) sigaction(caught[i], &action, NULL); /* nohup and shells' background jobs ignore some on purpose */
  }
}
