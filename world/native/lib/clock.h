/* The clock of time limits: nobody can set it. */
#ifndef SUBSTRATE_LIB_CLOCK_H
#define SUBSTRATE_LIB_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
