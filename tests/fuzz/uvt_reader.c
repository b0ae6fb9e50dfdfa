/* Fuzz target of the trace readers: any bytes are read to their end or refused, twice the same, and what is handed out keeps the
 * promises of trace.h. */
#include "tests/fuzz/fuzz_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_trace(data, size);
  return 0;
}
