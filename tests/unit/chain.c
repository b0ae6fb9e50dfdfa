/* The chain in order of use, exact LRU, against one that stamps each use and looks for the oldest stamp. */
#include "policies/chain.h"
#include "base/base.h"
#include "tests/unit/unit.h"

enum { PAGES = 300, REQUESTS = 50000 };
static struct uvm__chain list;
static uint32_t slot_of[PAGES]; /* 0: not in memory */
static uint64_t stamp[PAGES];   /* the reference: when it was used last; 0: not in memory */

static uint32_t oldest_stamp(void) {
  uint32_t oldest = PAGES;
  for (uint32_t p = 0; p < PAGES; p++)
    if (stamp[p] && (oldest == PAGES || stamp[p] < stamp[oldest])) oldest = p;
  return oldest;
}

/* All of it, oldest first. */
static void assert_order(size_t n) {
  assert_int_equal(list.held, n);
  uint64_t before = 0;
  for (uint32_t s = uvm__chain_oldest(&list); s; s = uvm__chain_newer(&list, s), n--) {
    uint32_t page = list.v[s].thing;
    assert_true(n && slot_of[page] == s && stamp[page] > before);
    before = stamp[page];
  }
  assert_int_equal(n, 0);
}

/* One page leaves, whichever is the oldest in both. */
static void evict(void) {
  uint32_t slot = uvm__chain_oldest(&list), page = oldest_stamp();
  assert_int_equal(list.v[slot].thing, page);
  uvm__chain_remove(&list, slot);
  slot_of[page] = 0, stamp[page] = 0;
}

/* Low pages are asked for most. Now and then a page goes for another reason than being the oldest. */
static void run(size_t frames, uint64_t seed) {
  size_t held = 0;
  memset(slot_of, 0, sizeof slot_of), memset(stamp, 0, sizeof stamp);
  for (uint64_t now = 1; now <= REQUESTS; now++) {
    uint32_t page = (uint32_t)(uvm_random(&seed) % (1 + uvm_random(&seed) % PAGES));
    assert_int_equal(slot_of[page] != 0, stamp[page] != 0); /* a hit in both or in neither */
    if (uvm_random(&seed) % 50 == 0) {
      if (slot_of[page]) uvm__chain_remove(&list, slot_of[page]), held--;
      slot_of[page] = 0, stamp[page] = 0;
      continue;
    }
    if (slot_of[page]) {
      uvm__chain_renew(&list, slot_of[page]);
    } else {
      if (held == frames) evict(), held--;
      slot_of[page] = uvm__chain_add(&list, page);
      held++;
    }
    stamp[page] = now;
    if (now % 500 == 0) assert_order(held);
  }
  uvm__chain_free(&list);
}

static void hits_misses_and_victims_are_those_of_stamps(void **state) {
  static const size_t frames[] = {1, 2, 7, 64, PAGES};
  (void)state;
  for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) run(frames[i], i);
}

static void an_empty_list_has_no_oldest(void **state) {
  (void)state;
  assert_int_equal(uvm__chain_oldest(&list), 0);
  uvm__chain_remove(&list, uvm__chain_add(&list, 5));
  assert_int_equal(uvm__chain_oldest(&list), 0);
  uvm__chain_free(&list);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(hits_misses_and_victims_are_those_of_stamps),
                                     cmocka_unit_test(an_empty_list_has_no_oldest)};
  return UVM_RUN(tests);
}
