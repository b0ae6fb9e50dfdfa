/* Transfers and accesses over links. */
#include <assert.h>
#include "machine/machine.h"

/* Index of the link that joins two nodes, -1 none. */
static int joining(const struct uvm_machine *m, uvm_node a, uvm_node b) {
  for (int i = 0; i < m->nlinks; i++) {
    const struct uvm_link *l = &m->links[i];
    if ((l->a == a && l->b == b) || (l->a == b && l->b == a)) return i;
  }
  return -1;
}

static uvm_ns moving(double rate, uint64_t bytes) { return (uvm_ns)((double)bytes * 1e9 / rate + 0.5); }

static struct uvm_reservation hold(struct uvm_link *l, uvm_node from, uvm_ns now, uint64_t bytes, uint64_t fixed) {
  bool up = l->a == from;
  uvm_ns *ready = up ? &l->free_up : &l->free_down;
  uvm_ns begin = now > *ready ? now : *ready;
  *ready = begin + fixed + moving(up ? l->up : l->down, bytes);
  return (struct uvm_reservation){begin, *ready};
}

struct uvm_reservation uvm_machine_reserve(struct uvm_machine *m, uvm_node src, uvm_node dst, uvm_ns now, uint64_t bytes, uint64_t fixed) {
  if (src == dst) return (struct uvm_reservation){now, now + fixed + moving(m->gpu.memory_rate, bytes)};
  int direct = joining(m, src, dst);
  if (direct >= 0) return hold(&m->links[direct], src, now, bytes, fixed);
  for (uvm_node by = 0; by < m->nnodes; by++) {
    int first = joining(m, src, by), second = joining(m, by, dst);
    if (first < 0 || second < 0) continue;
    struct uvm_reservation in = hold(&m->links[first], src, now, bytes, fixed);
    return (struct uvm_reservation){in.begin, hold(&m->links[second], by, in.end, bytes, fixed).end};
  }
  assert(!"the profile's check joins all nodes");
  return (struct uvm_reservation){now, now};
}

double uvm_machine_access_rate(const struct uvm_machine *m, uvm_proc p, uvm_node n, bool write) {
  if (m->procs[p].home == n) return m->gpu.memory_rate;
  int i = joining(m, m->procs[p].home, n);
  if (i < 0) return m->gpu.memory_rate;
  return write ? m->links[i].store : m->links[i].load;
}

uvm_ns uvm_machine_access_ns(const struct uvm_machine *m, uvm_proc p, uvm_node n, uint64_t bytes, bool write) {
  return moving(uvm_machine_access_rate(m, p, n, write), bytes);
}
