/* Fuzz target of the binary reader behind its checksums: the bytes are the payloads of blocks, and the file around them (header,
 * compression, checksums, index, footer) is right. A block is one byte, its number of events, two for its length, and its payload. */
#include <zlib.h>
#include <zstd.h>
#include "tests/fuzz/fuzz_trace.h"
#include "uvb.h"

struct bytes { uint8_t *v; size_t n, cap; };

static void put(struct bytes *b, const void *p, size_t n) {
  for (size_t i = 0; i < n; i++) UVM_PUSH(b) = ((const uint8_t *)p)[i];
}

static void put_varint(struct bytes *b, uint64_t v) {
  for (; v > 0x7f; v >>= 7) UVM_PUSH(b) = (uint8_t)(v | 0x80);
  UVM_PUSH(b) = (uint8_t)v;
}

static void put_block(struct bytes *out, uint32_t tag, uint32_t events, const uint8_t *raw, size_t n) {
  uint8_t h[UVB_BLOCK_HEADER], stored[1 << 17];
  size_t size = ZSTD_compress(stored, sizeof stored, raw, n, 1);
  MUST(!ZSTD_isError(size));
  uvb_put32(h, tag), uvb_put32(h + 4, events), uvb_put32(h + 8, (uint32_t)n), uvb_put32(h + 12, (uint32_t)size);
  uvb_put32(h + 16, (uint32_t)crc32(crc32(0, h, 16), stored, (uInt)size));
  put(out, h, sizeof h), put(out, stored, size);
}

static void put_header(struct bytes *out) {
  uint8_t h[UVB_HEADER];
  memcpy(h, UVB_MAGIC, 8), uvb_put32(h + 8, UVB_VERSION), uvb_put32(h + 12, (uint32_t)crc32(0, h, 12));
  put(out, h, sizeof h);
}

static void put_footer(struct bytes *out, uint64_t index, uint64_t events) {
  uint8_t f[UVB_FOOTER];
  uvb_put64(f, index), uvb_put64(f + 8, events), uvb_put32(f + 16, (uint32_t)crc32(0, f, 16)), uvb_put32(f + 20, UVB_END);
  put(out, f, sizeof f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct bytes out = {0}, index = {0};
  uint32_t blocks = 0;
  uint64_t total = 0;
  put_header(&out);
  for (size_t n; size >= 3; data += 3 + n, size -= 3 + n, blocks++) {
    n = uvm_min((uint64_t)data[1] | (uint64_t)data[2] << 8, size - 3);
    put_varint(&index, out.n), put_varint(&index, data[0]);
    put_block(&out, UVB_BLOCK, data[0], data + 3, n);
    total += data[0];
  }
  uint64_t where = out.n;
  put_block(&out, UVB_INDEX, blocks, index.v, index.n);
  put_footer(&out, where, total);
  fuzz_trace(out.v, out.n);
  uvm_mem_free(out.v), uvm_mem_free(index.v);
  return 0;
}
