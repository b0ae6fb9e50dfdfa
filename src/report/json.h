/* JSON, on cJSON: integers without loss (cJSON's own numbers are doubles), memory through the one door. */
#ifndef UVM_JSON_H
#define UVM_JSON_H
#include <cjson/cJSON.h>
#include "base/base.h"

/* An object or array that begins a document; free with cJSON_Delete, or give it to uvm_json_write. */
cJSON *uvm_json_object(void);
cJSON *uvm_json_list(cJSON *in, const char *key);          /* a new empty array in an object */
cJSON *uvm_json_item(cJSON *list);                         /* a new object at the end of an array */
void uvm_json_u64(cJSON *in, const char *key, uint64_t v); /* UINT64_MAX: null */
void uvm_json_i64(cJSON *in, const char *key, int64_t v);
void uvm_json_text(cJSON *in, const char *key, const char *v); /* NULL: null */
/* Writes the document, whole or not at all, and frees it in any case. */
int uvm_json_write(cJSON *document, const char *path, struct uvm_error *e);
#endif
