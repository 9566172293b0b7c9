#define _GNU_SOURCE
#include "real.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#define REAL_NAME(name) #name,
static const char *const NAMES[REAL_COUNT] = {REAL_FUNCTIONS(REAL_NAME)};

static _Atomic(void *) found[REAL_COUNT];

static int absent(void) {
  errno = ENOSYS;
  return -1;
}

/* Ahead of need: the dynamic linker takes a lock for it, which another thread may hold for ever as seen from a signal handler or
   from a child of vfork(2). It asks the kernel nothing. */
__attribute__((constructor)) static void find_all(void) {
  for (int i = 0; i < REAL_COUNT; i++) real_function((enum real_number)i);
}

/* Also before that: a library may be begun before this one. */
void *real_function(enum real_number number) {
  void *known = atomic_load_explicit(&found[number], memory_order_relaxed);
  if (known != NULL) return known;
  known = dlsym(RTLD_NEXT, NAMES[number]);
  if (known == NULL) known = (void *)(ptrdiff_t)absent;
  atomic_store_explicit(&found[number], known, memory_order_relaxed);
  return known;
}
