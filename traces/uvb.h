/* .uvb, version 1: the events of .uvt in checked, compressed blocks. All fixed-size numbers are little-endian.
 *
 *   file     header, blocks, index, footer; nothing after it
 *   header   8 bytes magic, u32 version, u32 crc32 of the 12 bytes before
 *   block    u32 tag, u32 events, u32 raw bytes, u32 stored bytes, u32 crc32 of the 16 bytes before and of the payload; then the
 *            payload, one zstd frame of `stored` bytes that expands to `raw`
 *   index    a block with its own tag whose events are the blocks: varints offset in the file, events
 *   footer   u64 offset of the index, u64 events in all, u32 crc32 of the 16 bytes before, u32 tag
 *
 * A payload is a row of events. An event is a byte and its fields: 0 defines the next string (varint length, bytes); n > 0 is the
 * record grammar.c's table has at n - 1, the kernel's table after a kernel and until its "done". First, if the record has optional
 * fields, a varint with a bit for each that is present; then the fields in the table's order as varints: numbers, words and
 * processors as they are, names and allocation ids as a string's number, a section as its name, then 0, or 1 and the
 * iteration.
 * Varints are 7 bits a byte, lowest first, at most 9 bytes. A block ends between events, maybe inside a kernel; strings hold for
 * the rest of the file. The index is one block too, which bounds a file to some 45 GB of events before compression. */
#ifndef UVM_TRACES_UVB_H
#define UVM_TRACES_UVB_H
#include "base/base.h"

#define UVB_MAGIC "\x89UVB\r\n\x1a\n"            /* 8 bytes; a text-mode transfer breaks it */
enum {
  UVB_VERSION = 1,
  UVB_BLOCK = 0x314b4c42,                       /* "BLK1" */
  UVB_INDEX = 0x31584449,                       /* "IDX1" */
  UVB_END = 0x31444e45,                         /* "END1" */
  UVB_FULL = 256 << 10,                         /* a writer ends a block at the first event after so many raw bytes */
  UVB_CAP = 1 << 20,                            /* what a reader accepts, raw and stored */
  UVB_HEADER = 16, UVB_BLOCK_HEADER = 20, UVB_FOOTER = 24,
  UVB_FIELDS = 16,                              /* more than any record has */
};
static inline void uvb_put32(uint8_t *p, uint32_t v) { for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i); }
static inline void uvb_put64(uint8_t *p, uint64_t v) { for (int i = 0; i < 8; i++) p[i] = (uint8_t)(v >> 8 * i); }
static inline uint32_t uvb_get32(const uint8_t *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint64_t uvb_get64(const uint8_t *p) { return uvb_get32(p) | (uint64_t)uvb_get32(p + 4) << 32; }
#endif
