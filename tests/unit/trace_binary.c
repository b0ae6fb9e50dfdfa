/* The binary format: the same events as text, and every damaged byte is found. */
#include "tests/unit/trace_files.h"
#include <zlib.h>
#include <zstd.h>

static const char small[] = "uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 65536 managed weights\nw cpu a 0 65536\nbegin s/1\n"
                            "kernel gpu0 lanes=64 name=k\nr a 0 65536 split=cyclic\nnext\natomic a 0 8 by=block\ndone\nsync\nend\nfree a\n";

static struct blob binary_of(const char *text) {
  spew(in_folder("in.uvt"), text, strlen(text));
  convert(in_folder("in.uvt"), in_folder("out.uvb"));
  return slurp(in_folder("out.uvb"));
}

static void test_text_binary_text(void **state) {
  (void)state;
  free(binary_of(small).v);
  convert(in_folder("out.uvb"), in_folder("back.uvt"));
  struct blob b = slurp(in_folder("back.uvt"));
  assert_string_equal((char *)b.v, small);
  free(b.v);
}

static void test_format_is_found_by_content(void **state) {
  (void)state;
  struct blob b = binary_of(small);
  spew(in_folder("misnamed.uvt"), b.v, b.n);
  free(b.v);
  struct uvm_error e;
  struct uvm_trace *t;
  assert_int_equal(uvm_trace_open(in_folder("misnamed.uvt"), true, &t, &e), 0);
  assert_string_equal(uvm_trace_format(t), "uvb");
  struct uvm_trace_facts f;
  assert_int_equal(uvm_trace_survey(t, &f, &e), 0);
  assert_true(f.kernels == 1 && f.accesses == 3 && f.records == 9);
  uvm_trace_close(t);
}

/* Any change to any byte: refused. Every byte is under a checksum or compared, so none can pass. */
static void test_every_byte_counts(void **state) {
  (void)state;
  struct blob b = binary_of(small);
  struct uvm_error e;
  assert_int_equal(read_memory(b.v, b.n, NULL, &e), 0);
  for (size_t i = 0; i < b.n; i++)
    for (int bit = 0; bit < 8; bit++) {
      b.v[i] ^= (uint8_t)(1 << bit);
      if (read_memory(b.v, b.n, NULL, &e) != UVM_EINPUT) fail_msg("byte %zu, bit %d: accepted", i, bit);
      b.v[i] ^= (uint8_t)(1 << bit);
    }
  free(b.v);
}

static void test_cut_anywhere(void **state) {
  (void)state;
  struct blob b = binary_of(small);
  struct uvm_error e;
  for (size_t n = 0; n < b.n; n++) assert_int_equal(read_memory(b.v, n, NULL, &e), UVM_EINPUT);
  b.v = realloc(b.v, b.n + 1);
  b.v[b.n] = 0;
  assert_int_equal(read_memory(b.v, b.n + 1, NULL, &e), UVM_EINPUT);   /* and nothing may follow */
  assert_non_null(strstr(e.text, "expected the end of the file, found more bytes"));
  free(b.v);
}

/* Blocks of several kinds: many, and a kernel that crosses their borders. */
static void test_many_blocks(void **state) {
  (void)state;
  FILE *f = fopen(in_folder("big.uvt"), "w");
  assert_non_null(f);
  fprintf(f, "uvmtrace 1\nprocessor cpu\nprocessor gpu0\nalloc a 1073741824 managed a\nkernel gpu0 lanes=1024\n");
  for (unsigned i = 0; i < 200000; i++) fprintf(f, "r a %u 8\n", i * 4096u);        /* about 1.4 MB of events: six blocks */
  fprintf(f, "done\n");
  assert_int_equal(fclose(f), 0);
  convert(in_folder("big.uvt"), in_folder("big.uvb"));
  convert(in_folder("big.uvb"), in_folder("big2.uvt"));
  struct blob a = slurp(in_folder("big.uvt")), b = slurp(in_folder("big2.uvt")), c = slurp(in_folder("big.uvb"));
  assert_same(a, b);
  unsigned blocks = 0;
  for (size_t i = 0; i + 4 <= c.n; i++) blocks += !memcmp(c.v + i, "BLK1", 4);
  assert_in_range(blocks, 4, 8);
  free(a.v);
  free(b.v);
  free(c.v);
}

static void test_messages_name_the_record(void **state) {
  (void)state;
  struct blob b = binary_of(small);
  b.v[30] ^= 1;                                                  /* stored size of the first block: its checksum is wrong then */
  struct uvm_error e;
  assert_int_equal(read_memory(b.v, b.n, NULL, &e), UVM_EINPUT);
  assert_non_null(strstr(e.text, "memory: expected "));
  free(b.v);
}

/* A writer that breaks the rules makes a file that the reader refuses, by record. */
static void test_rules_hold_in_binary(void **state) {
  (void)state;
  struct uvm_error e;
  struct uvm_trace_writer *w;
  assert_int_equal(uvm_trace_create(in_folder("odd.uvb"), &w, &e), 0);
  const struct uvm_trace_record alloc = {.op = UVM_TR_ALLOC, .id = "a", .label = "a", .bytes = 4096};
  assert_int_equal(uvm_trace_write(w, NULL, &(struct uvm_trace_record){.op = UVM_TR_PROCESSOR, .label = "cpu"}, &e), 0);
  assert_int_equal(uvm_trace_write(w, NULL, &alloc, &e), 0);
  const struct uvm_trace_record past = {.op = UVM_TR_ACCESS, .access = {.op = UVM_OP_W, .offset = 4096, .bytes = 1}};
  assert_int_equal(uvm_trace_write(w, NULL, &past, &e), 0);
  assert_int_equal(uvm_trace_commit(w, &e), 0);
  assert_int_equal(read_path(in_folder("odd.uvb"), NULL, &e), UVM_EINPUT);
  assert_non_null(strstr(e.text, "odd.uvb: record 3: expected a range inside allocation \"a\" of 4096 bytes, found offset 4096, length 1"));
}

static void put32(uint8_t *p, uint32_t v) { for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i); }
static uint32_t get32(const uint8_t *p) { return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24; }

/* Damage that a checksum does not show: the first block's events are changed and packed again. Whatever comes out, the reader
 * answers; most changes break a rule, and a reader that asked nothing would accept them all. */
static void test_packed_rubbish(void **state) {
  (void)state;
  enum { HEAD = 16, BLOCK = 20, ROUNDS = 4000 };                 /* of the layout in traces/uvb.h */
  struct blob b = binary_of(small);
  uint8_t raw[4096], file[8192];
  size_t stored = get32(b.v + HEAD + 12), n = ZSTD_decompress(raw, sizeof raw, b.v + HEAD + BLOCK, stored);
  assert_int_equal(n, get32(b.v + HEAD + 8));
  uint64_t seed = 7;
  unsigned refused = 0;
  for (int i = 0; i < ROUNDS; i++) {
    uint8_t changed[sizeof raw];
    memcpy(changed, raw, n);
    for (uint64_t k = 0; k <= uvm_random(&seed) % 3; k++) changed[uvm_random(&seed) % n] = (uint8_t)uvm_random(&seed);
    memcpy(file, b.v, HEAD + BLOCK);
    size_t packed = ZSTD_compress(file + HEAD + BLOCK, sizeof file - HEAD - BLOCK, changed, n, 1);
    put32(file + HEAD + 12, (uint32_t)packed);
    put32(file + HEAD + 16, (uint32_t)crc32(crc32(0, file + HEAD, 16), file + HEAD + BLOCK, (uInt)packed));
    size_t rest = b.n - HEAD - BLOCK - stored;
    memcpy(file + HEAD + BLOCK + packed, b.v + HEAD + BLOCK + stored, rest);
    struct uvm_error e;
    int code = read_memory(file, HEAD + BLOCK + packed + rest, NULL, &e);
    assert_true(code == 0 || code == UVM_EINPUT);
    refused += code != 0;
  }
  assert_in_range(refused, ROUNDS / 2, ROUNDS);
  free(b.v);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_text_binary_text),
    cmocka_unit_test(test_format_is_found_by_content),
    cmocka_unit_test(test_every_byte_counts),
    cmocka_unit_test(test_cut_anywhere),
    cmocka_unit_test(test_many_blocks),
    cmocka_unit_test(test_messages_name_the_record),
    cmocka_unit_test(test_rules_hold_in_binary),
    cmocka_unit_test(test_packed_rubbish),
  };
  return RUN_IN_FOLDER(tests);
}
