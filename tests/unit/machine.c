/* Machine profiles: what the built-in ones say, what a malformed one is answered, how links queue. */
#include "machine/machine.h"
#include "machine/profile.h"
#include "tests/unit/unit.h"

static struct uvm_machine *machine_open(const char *name, const char *costs) {
  struct uvm_machine *m;
  struct uvm_error e;
  int rc = uvm_machine_open(name, costs, &m, &e);
  if (rc) print_error("%s\n", e.text);
  assert_int_equal(rc, 0);
  return m;
}

static const char *text_of(const char *name) {
  for (const struct uvm_machine_entry *m = uvm_machines; m->name; m++)
    if (!strcmp(m->name, name)) return m->text;
  fail_msg("no machine %s", name);
  return NULL;
}

static uint8_t node(const struct uvm_machine *m, const char *name) {
  for (uint8_t i = 0; i < m->nnodes; i++)
    if (!strcmp(m->nodes[i].name, name)) return i;
  return UVM_NONE;
}

static void every_built_in_machine_opens(void **state) {
  (void)state;
  for (const struct uvm_machine_entry *e = uvm_machines; e->name; e++) {
    struct uvm_machine *m = machine_open(e->name, "measured");
    assert_string_equal(m->name, e->name);
    assert_ptr_equal(m->topology.procs, m->procs);
    assert_int_equal(m->topology.driver_version, m->driver_version);
    uvm_machine_close(m);
  }
}

/* The recorded GPU: 132 SMs, 270,336 resident threads, 139 GiB; the specification's row for a discrete GPU on PCIe. */
static void h200_is_a_discrete_gpu_on_pcie(void **state) {
  (void)state;
  struct uvm_machine *m = machine_open("nvidia-h200", "measured");
  uint8_t dram = node(m, "dram"), hbm = node(m, "hbm0");
  assert_int_equal(m->gpu.sms * m->gpu.lanes_per_sm, 270336);
  assert_int_equal(m->nodes[hbm].capacity, 139ull << 30);
  assert_int_equal(m->nodes[dram].capacity, UINT64_MAX);
  assert_int_equal(m->procs[0].reach, 1u << dram);
  assert_int_equal(m->procs[1].reach, 1u << dram | 1u << hbm);
  assert_int_equal(m->procs[0].native_atomics, 1u << dram);
  assert_int_equal(m->procs[1].native_atomics, 1u << hbm);
  assert_int_equal(m->procs[1].fast_link, 0);
  assert_string_equal(m->driver, "nvidia");
  assert_int_equal(m->driver_version, 580);
  uvm_machine_close(m);
}

/* Two GPUs with NVLink: the peer's memory is reachable with atomics over a fast link. */
static void nvlink_peers_reach_each_other(void **state) {
  (void)state;
  struct uvm_machine *m = machine_open("nvidia-h200x2", "measured");
  uint32_t gpus = 1u << node(m, "hbm0") | 1u << node(m, "hbm1");
  for (int p = 1; p <= 2; p++) {
    assert_int_equal(m->procs[p].reach & gpus, gpus);
    assert_int_equal(m->procs[p].native_atomics, gpus);
    assert_int_equal(m->procs[p].fast_link, 1u << (3 - p));
  }
  uvm_machine_close(m);
}

/* A profile says what differs from the one that it is like, any key or section once more; its own costs win over both of the
 * other's. */
static void a_profile_like_another_says_what_differs(void **state) {
  (void)state;
  struct uvm_machine *base = machine_open("nvidia-h200", "traced"), *m = uvm_mem(sizeof *m);
  const char *text = "[machine]\nlike = nvidia-h200\ntitle = T\n[node far]\ncapacity = 4G\n[gpu]\nsms = 7\n"
                     "[link far]\na = far\nb = dram\nlatency_ns = 3\nengines = 1\nup = 1e9\ndown = 2e9\nload = 3e9\nstore = 4e9\n"
                     "[costs.traced]\ntransfer_ns = 5\n";
  assert_int_equal(uvm__profile_parse("file.ini", text, true, m, NULL), 0);
  assert_string_equal(m->title, "T");
  assert_string_equal(m->like, "nvidia-h200");
  assert_string_equal(m->driver, base->driver);
  assert_int_equal(m->nnodes, base->nnodes + 1);
  assert_int_equal(m->nodes[node(m, "far")].capacity, 4ull << 30);
  assert_int_equal(m->nlinks, base->nlinks + 1);
  assert_int_equal(m->links[0].up, base->links[0].up);
  assert_int_equal(m->links[1].store, 4e9);
  assert_int_equal(m->gpu.sms, 7);
  assert_int_equal(m->gpu.ring, base->gpu.ring);
  assert_int_equal(m->costs.transfer_ns, 5);
  assert_int_equal(m->costs.cpu_page_ns, base->costs.cpu_page_ns);
  uvm_machine_close(base);
  uvm_machine_close(m);
}

static void traced_costs_override_and_keep_the_rest(void **state) {
  (void)state;
  struct uvm_machine *a = machine_open("nvidia-h200", "measured"), *b = machine_open("nvidia-h200", "traced");
  assert_int_equal(b->costs.transfer_ns, 2470); /* recorded: 2.47 us + bytes / 55.3 GB/s */
  assert_true(a->costs.transfer_ns < b->costs.transfer_ns);
  assert_int_equal(a->costs.raw_fault_ns, b->costs.raw_fault_ns);
  uvm_machine_close(a);
  uvm_machine_close(b);
}

static void unknown_names_list_the_known(void **state) {
  (void)state;
  struct uvm_machine *m;
  struct uvm_error e;
  assert_int_equal(uvm_machine_open("nvidia-h201", "measured", &m, &e), UVM_EUSAGE);
  assert_non_null(strstr(e.text, "nvidia-h200"));
  assert_int_equal(uvm_machine_open("nvidia-h200", "guessed", &m, &e), UVM_EUSAGE);
  assert_int_equal(uvm_machine_open("/nonexistent/x.ini", "measured", &m, &e), UVM_EINPUT);
  assert_non_null(strstr(e.text, "/nonexistent/x.ini"));
}

/* -- malformed profiles: the built-in text with one line replaced, or one added at the end -- */

struct bad {
  const char *from, *to, *said;
};
static const struct bad bads[] = {
    {"sms = 132", "sms = many", "sms: expected a whole number"},
    {"sms = 132", "sms = 0", "sms: expected a whole number from 1"},
    {"sms = 132", "sms = 99999999999999999999", "sms: expected a whole number"},
    {"sms = 132", "shaders = 132", "found shaders"},
    {"sms = 132", "", "expected the key sms in [gpu]"},
    {"sms = 132", "sms = 132\nsms = 133", "each key of [gpu] once"},
    {"sms = 132", "sms 132", "expected [section] or key = value"},
    {"[gpu]", "[gpus]", "found [gpus]"},
    {"[gpu]", "[gpu 7]", "found [gpu 7]"},
    {"[node dram]", "[node]", "found [node]"},
    {"capacity = 139G", "capacity = -1", "capacity: expected bytes"},
    {"capacity = 139G", "capacity = 0", "capacity: expected bytes"},
    {"home = hbm0", "home = hbm7", "home: expected the name of a [node]"},
    {"reach = dram hbm0", "reach = dram hbm9", "reach: expected names of nodes"},
    {"reach = dram hbm0", "reach = dram", "to reach its home"},
    {"driver = nvidia-580", "driver = nvidia", "driver: expected NAME-VERSION"},
    {"up = 55.3e9", "up = fast", "up: expected a number"},
    {"up = 55.3e9", "up = inf", "up: expected a number"},
    {"a = dram", "a = hbm0", "a link or two between [node hbm0] and [node dram]"},
    {"[link pcie0]", "[link self]\na = dram\nb = dram\nlatency_ns = 0\nengines = 1\nup = 1\ndown = 1\nload = 1\nstore = 1\n[link pcie0]",
     "[link self] to join two nodes"},
    {"[processor cpu]", "[processor host]", "[processor cpu] first"},
    {"[processor gpu0]", "[processor gpu1]", "expected [processor gpu0] after [processor cpu]"},
    {"sms = 132", "sms = 1000001", "sms: expected a whole number from 1 to 10^6"},
    {"warp = 32", "warp = 65", "a warp of at most 64"},
    {"engines = 2", "engines = 9", "at most 8 engines of [link pcie0]"},
    {"driver = nvidia-580", "like = nvidia-h201", "like: expected the name of a machine that is built in, found 'nvidia-h201'"},
    {"driver = nvidia-580", "like = nvidia-h200\nlike = nvidia-h200", "each key of [machine] once"},
};

/* text with the first line `from` replaced; *line is where that was. */
static char *replaced(const char *text, const char *from, const char *to, int *line) {
  char *needle = uvm_format("\n%s\n", from);
  const char *at = strstr(text, needle);
  if (!at) fail_msg("the profile has no line %s", from);
  *line = 2;
  for (const char *p = text; p < at; p++) *line += *p == '\n';
  char *out = uvm_format("%.*s\n%s\n%s", (int)(at - text), text, to, at + strlen(needle));
  uvm_mem_free(needle);
  return out;
}

static int parse(const char *text, struct uvm_error *e) {
  struct uvm_machine *m = uvm_mem(sizeof *m);
  int rc = uvm__profile_parse("file.ini", text, false, m, e);
  uvm_machine_close(m);
  return rc;
}

static void malformed_profiles_are_refused_by_line(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
    struct uvm_error e = {0};
    int line;
    char *text = replaced(text_of("nvidia-h200"), bads[i].from, bads[i].to, &line);
    int rc = parse(text, &e);
    if (rc != UVM_EINPUT || !strstr(e.text, bads[i].said)) fail_msg("%s: said '%s'", bads[i].to, e.text);
    assert_memory_equal(e.text, "file.ini:", 9);
    uvm_mem_free(text);
  }
}

static void the_line_named_is_the_line_at_fault(void **state) {
  (void)state;
  struct uvm_error e;
  int line;
  char *text = replaced(text_of("nvidia-h200"), "sms = 132", "sms = many", &line);
  assert_int_equal(parse(text, &e), UVM_EINPUT);
  char *where = uvm_format("file.ini:%d: ", line);
  assert_memory_equal(e.text, where, strlen(where));
  uvm_mem_free(where);
  uvm_mem_free(text);
}

static void long_lines_are_not_cut(void **state) {
  (void)state;
  struct uvm_error e;
  char text[400] = "[machine]\ntitle = ";
  memset(text + strlen(text), 'x', 300);
  assert_int_equal(parse(text, &e), UVM_EINPUT);
  assert_non_null(strstr(e.text, "file.ini:2: expected a line of at most"));
}

static void an_empty_profile_lacks_its_sections(void **state) {
  (void)state;
  struct uvm_error e;
  assert_int_equal(parse("", &e), UVM_EINPUT);
  assert_non_null(strstr(e.text, "expected a section [machine]"));
}

/* -- links -- */

/* Bandwidth of the recorded link, fixed time as traced: 4 KiB in 2470 + 4096 / 55.3 GB/s = 2544 ns, 2 MiB in 40393 ns. */
static void a_transfer_takes_its_fixed_time_and_its_bytes(void **state) {
  (void)state;
  struct uvm_machine *m = machine_open("nvidia-h200", "traced");
  uint8_t dram = node(m, "dram"), hbm = node(m, "hbm0");
  struct uvm_reservation r = uvm_machine_reserve(m, &(struct uvm_transfer){dram, hbm, UVM_L_MIGRATION, 4096, 2470}, 1000);
  assert_int_equal(r.begin, 1000);
  assert_int_equal(r.end, 1000 + 2544);
  r = uvm_machine_reserve(m, &(struct uvm_transfer){hbm, dram, UVM_L_MIGRATION, 2 << 20, 2470}, 1000);
  assert_int_equal(r.end - r.begin, 40393);
  uvm_machine_close(m);
}

/* Recorded: remote read 51.4 GB/s, remote write 52.5 GB/s. */
static void accesses_have_their_own_rates(void **state) {
  (void)state;
  struct uvm_machine *m = machine_open("nvidia-h200", "measured");
  assert_int_equal(uvm_machine_access(m, 1, node(m, "dram"), 0, 514000, false).end_ps, 10000000);
  assert_int_equal(uvm_machine_access(m, 1, node(m, "dram"), 0, 525000, true).end_ps, 10000000);
  uvm_machine_close(m);
}

static void gpu_memory_can_be_set_and_host_memory_stays(void **state) {
  (void)state;
  struct uvm_machine *m = machine_open("nvidia-h200x2", "measured");
  uvm_machine_set_gpu_memory(m, 64 << 20);
  assert_int_equal(m->topology.nodes[node(m, "hbm0")].capacity, 64 << 20);
  assert_int_equal(m->topology.nodes[node(m, "hbm1")].capacity, 64 << 20);
  assert_int_equal(m->topology.nodes[node(m, "dram")].capacity, UINT64_MAX);
  uvm_machine_close(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_built_in_machine_opens),
      cmocka_unit_test(h200_is_a_discrete_gpu_on_pcie),
      cmocka_unit_test(nvlink_peers_reach_each_other),
      cmocka_unit_test(a_profile_like_another_says_what_differs),
      cmocka_unit_test(traced_costs_override_and_keep_the_rest),
      cmocka_unit_test(unknown_names_list_the_known),
      cmocka_unit_test(malformed_profiles_are_refused_by_line),
      cmocka_unit_test(the_line_named_is_the_line_at_fault),
      cmocka_unit_test(long_lines_are_not_cut),
      cmocka_unit_test(an_empty_profile_lacks_its_sections),
      cmocka_unit_test(a_transfer_takes_its_fixed_time_and_its_bytes),
      cmocka_unit_test(accesses_have_their_own_rates),
      cmocka_unit_test(gpu_memory_can_be_set_and_host_memory_stays),
  };
  return UVM_RUN(tests);
}
