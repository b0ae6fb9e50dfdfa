/* The density rule counted out page by page, for whole 2 MiB blocks without thrashing pages or a preferred location: leaves are the
 * pages at the destination, the faulted ones and their 64 KiB; each fault brings the largest node round it more than 51 % full. */
#ifndef UVM_NAIVE_DENSITY_H
#define UVM_NAIVE_DENSITY_H
#include <stdbool.h>

enum { NAIVE_PAGES = 512 };

static inline void naive_density(const bool *there, const bool *faulted, bool *wanted) {
  bool leaf[NAIVE_PAGES];
  for (int p = 0; p < NAIVE_PAGES; p++) leaf[p] = there[p], wanted[p] = faulted[p];
  for (int p = 0; p < NAIVE_PAGES; p++)
    for (int q = p / 16 * 16; faulted[p] && q < p / 16 * 16 + 16; q++) leaf[q] = true;
  for (int p = 0; p < NAIVE_PAGES; p++) {
    int first = p, end = faulted[p] ? p + 1 : p;
    for (int size = 1; faulted[p] && size <= NAIVE_PAGES; size *= 2) {
      int a = p / size * size, count = 0;
      for (int q = a; q < a + size; q++) count += leaf[q];
      if (100 * count > 51 * size) first = a, end = a + size;
    }
    for (int q = first; q < end; q++) wanted[q] = true;
  }
}
#endif
