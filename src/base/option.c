#include "base/base.h"

const struct uvm_opt *uvm_opt_find(const struct uvm_opt *table, const char *key) {
  for (; table && table->name; table++)
    if (!strcmp(table->name, key)) return table;
  return NULL;
}

static void store(const struct uvm_opt *o, void *state, uint64_t u, double f) {
  char *at = (char *)state + o->offset;
  switch ((enum uvm_type)o->type) {
  case UVM_BOOL: *(bool *)at = u != 0; break;
  case UVM_U32: *(uint32_t *)at = (uint32_t)u; break;
  case UVM_F64: *(double *)at = f; break;
  case UVM_U64:
  case UVM_SIZE:
  case UVM_NS: *(uint64_t *)at = u; break;
  }
}

void uvm_opt_defaults(const struct uvm_opt *table, void *state) {
  for (; table && table->name; table++) store(table, state, (uint64_t)table->def, table->def);
}

static bool parse(const struct uvm_opt *o, const char *value, uint64_t *u, double *f) {
  bool ok = false;
  switch ((enum uvm_type)o->type) {
  case UVM_BOOL:
    *u = !strcmp(value, "1") || !strcmp(value, "true");
    ok = *u || !strcmp(value, "0") || !strcmp(value, "false");
    break;
  case UVM_U32: ok = uvm_parse_u64(value, UINT32_MAX, u); break;
  case UVM_U64: ok = uvm_parse_u64(value, UINT64_MAX, u); break;
  case UVM_SIZE: ok = uvm_parse_size(value, u); break;
  case UVM_NS: ok = uvm_parse_ns(value, u); break;
  case UVM_F64: return uvm_parse_f64(value, f) && *f >= o->min && *f <= o->max;
  }
  return ok && (o->type == UVM_BOOL || ((double)*u >= o->min && (double)*u <= o->max));
}

int uvm_opt_set(const struct uvm_opt *table, void *state, const char *owner, const char *key, const char *value, struct uvm_error *e) {
  static const char *const kinds[] = {"true or false",         "a whole number", "a whole number", "a number", "a size (bytes, K, M, G, T)",
                                      "a time (ns, us, ms, s)"};
  const struct uvm_opt *o = uvm_opt_find(table, key);
  uint64_t u = 0;
  double f = 0;
  if (!parse(o, value, &u, &f)) {
    if (o->type == UVM_BOOL) return uvm_fail(e, UVM_EUSAGE, "option %s.%s: expected %s, found '%s'", owner, key, kinds[o->type], value);
    return uvm_fail(e, UVM_EUSAGE, "option %s.%s: expected %s from %.15g to %.15g, found '%s'", owner, key, kinds[o->type], o->min, o->max,
                    value);
  }
  store(o, state, u, f);
  return 0;
}
