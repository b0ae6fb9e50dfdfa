#include "report/json.h"
#include <inttypes.h>

/* With these cJSON never sees an allocation fail, so no call below needs a path for it. */
cJSON *uvm_json_object(void) {
  cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = uvm_mem, .free_fn = uvm_mem_free});
  return cJSON_CreateObject();
}

cJSON *uvm_json_list(cJSON *in, const char *key) { return cJSON_AddArrayToObject(in, key); }

cJSON *uvm_json_item(cJSON *list) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddItemToArray(list, o);
  return o;
}

void uvm_json_u64(cJSON *in, const char *key, uint64_t v) {
  char text[24];
  snprintf(text, sizeof text, "%" PRIu64, v);
  if (v == UINT64_MAX)
    cJSON_AddNullToObject(in, key);
  else
    cJSON_AddRawToObject(in, key, text);
}

void uvm_json_i64(cJSON *in, const char *key, int64_t v) {
  char text[24];
  snprintf(text, sizeof text, "%" PRId64, v);
  cJSON_AddRawToObject(in, key, text);
}

void uvm_json_text(cJSON *in, const char *key, const char *v) {
  if (v)
    cJSON_AddStringToObject(in, key, v);
  else
    cJSON_AddNullToObject(in, key);
}

int uvm_json_write(cJSON *document, const char *path, struct uvm_error *e) {
  struct uvm_out o;
  int rc = uvm_out_open(&o, path, e);
  if (!rc) {
    char *text = cJSON_Print(document);
    fprintf(o.f, "%s\n", text);
    cJSON_free(text);
    rc = uvm_out_commit(&o, e);
  }
  cJSON_Delete(document);
  return rc;
}
