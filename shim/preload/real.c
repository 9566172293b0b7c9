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

/* Resolves all functions at load: dlsym(3) takes the dynamic linker's lock. In a signal handler or a child of
   vfork(2) the holder of the lock may never run on. Makes no system call. */
__attribute__((constructor)) static void find_all(void) {
  for (int i = 0; i < REAL_COUNT; i++) real_function((enum real_number)i);
}

/* Resolves on demand before find_all(): the linker may run the constructors of other libraries first. */
void *real_function(enum real_number number) {
  void *known = atomic_load_explicit(&found[number], memory_order_relaxed);
  if (known != NULL) return known;
  known = dlsym(RTLD_NEXT, NAMES[number]);
  if (known == NULL) known = (void *)(ptrdiff_t)absent;
  atomic_store_explicit(&found[number], known, memory_order_relaxed);
  return known;
}
