/* A fuzz target without a fuzzer: feeds it the files named on the command line. */
#include "tests/fuzz/fuzz.h"

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    FILE *f = fopen(argv[i], "rb");
    if (!f) return fprintf(stderr, "%s: cannot be opened\n", argv[i]), 1;
    struct { uint8_t *v; size_t n, cap; } bytes = {0};
    for (int c; (c = getc(f)) != EOF;) UVM_PUSH(&bytes) = (uint8_t)c;
    fclose(f);
    LLVMFuzzerTestOneInput(bytes.v, bytes.n);
    uvm_mem_free(bytes.v);
  }
  return argc < 2;
}
