/* Fuzz target of the command line: any words, a line each, are understood or refused; numbers are read as they are written, and
 * settings that a driver's table accepts lie in its range. */
#include "cli/options.h"
#include "core/driver.h"
#include "tests/fuzz/fuzz.h"

enum { WORDS = 64 };

static void check_numbers(const char *word) {
  char text[32];
  uint64_t u, bytes, ns;
  double f;
  if (uvm_parse_u64(word, UINT64_MAX, &u)) {
    snprintf(text, sizeof text, "%llu", (unsigned long long)u);
    const char *digits = word + strspn(word, "0");
    MUST(!strcmp(*digits ? digits : "0", text));
    MUST(uvm_parse_size(word, &bytes) == (u <= INT64_MAX) && (u > INT64_MAX || bytes == u));
    MUST(uvm_parse_ns(word, &ns) == (u <= INT64_MAX) && (u > INT64_MAX || ns == u));
  }
  if (uvm_parse_size(word, &bytes)) MUST(bytes <= INT64_MAX);
  if (uvm_parse_ns(word, &ns)) MUST(ns <= INT64_MAX);
  if (uvm_parse_f64(word, &f)) MUST(f - f == 0 && !word[strspn(word, "+-.0123456789eE")]);
}

static void check_setting(const struct uvm_setting *s) {
  for (size_t i = 0; uvm_drivers[i]; i++) {
    const struct uvm_driver *d = uvm_drivers[i];
    struct uvm_error e = {0};
    if (strcmp(s->owner, d->name) || !uvm_opt_find(d->opts, s->key)) continue;
    void *state = uvm_mem(d->state_size);
    int rc = uvm_opt_set(d->opts, state, s->owner, s->key, s->value, &e);
    if (rc) fuzz_check_error(rc, &e);
    uvm_mem_free(state);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = uvm_mem(size + 1), *word[WORDS + 1] = {0}, *rest = memcpy(text, data, size);
  int n = 0;
  while (rest && n < WORDS) check_numbers(word[n++] = strsep(&rest, "\n"));
  struct uvm_options o;
  struct uvm_error e = {0};
  int rc = uvm_options_parse(n, word, &o, &e);
  if (rc) fuzz_check_error(rc, &e);
  for (size_t i = 0; i < o.side[1].settings.n; i++) check_setting(&o.side[1].settings.v[i]);
  uvm_options_free(&o);
  uvm_mem_free(text);
  return 0;
}
