/* why: one page's biography. */
#include "cli/simulate.h"
#include "report/why.h"

static int check(const struct uvm_options *o, struct uvm_error *e) {
  if (!o->alloc) return uvm_fail(e, UVM_EUSAGE, "why: --alloc is missing: the allocation's number, id or label");
  if (o->page == UVM_NEVER) return uvm_fail(e, UVM_EUSAGE, "why: --page is missing: the 4 KiB page's index in the allocation");
  return 0;
}

static int check_found(const struct uvm_options *o, const struct uvm_why *w, struct uvm_error *e) {
  uint64_t pages = (w->bytes + UVM_PAGE - 1) / UVM_PAGE;
  if (!w->found) return uvm_fail(e, UVM_EUSAGE, "%s: has no allocation '%s'; see `uvmsim trace info`", o->operand[0], o->alloc);
  if (w->page >= pages)
    return uvm_fail(e, UVM_EUSAGE, "%s: allocation '%s' has pages 0 to %llu, not %llu", o->operand[0], o->alloc,
                    (unsigned long long)pages - 1, (unsigned long long)w->page);
  return 0;
}

static int report(const struct uvm_options *o, const struct uvm_why *w, const struct uvm_session_result *r, struct uvm_error *e) {
  int rc = check_found(o, w, e);
  if (rc) return rc;
  if (o->json && (rc = uvm_why_json(w, o->json, e))) return rc;
  if (!o->quiet && !uvm_to_stdout(o->json)) uvm_why_print(w, stdout);
  return r->interrupted ? uvm_fail(e, UVM_EENV, "%s: interrupted; the story is partial", o->operand[0]) : 0;
}

int uvm_cmd_why(const struct uvm_options *o, struct uvm_error *e) {
  struct uvm_places places;
  int rc = check(o, e);
  if (rc || (rc = uvm_cli_places(o, 0, &places, e))) return rc;
  struct uvm_why why;
  struct uvm_session_result result;
  uvm_why_init(&why, &places, o->alloc, o->page);
  rc = uvm_cli_simulate(o, 0, &(struct uvm_observer){&why, uvm_why_event}, 1, &result, e);
  if (!rc) rc = report(o, &why, &result, e);
  uvm_why_free(&why);
  return rc;
}
