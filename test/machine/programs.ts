/** Programs that take what they can get, for a guest without a compiler. */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** How long the hog spins. */
export const SPIN_MS = 6000;

const SOURCES = {
  forks: `#include <unistd.h>
int main(void) { for (;;) if (fork() < 0) sleep(1); }`,
  memory: `#include <stdlib.h>
#include <string.h>
int main(int count, char **words) {
  for (long left = count > 1 ? atol(words[1]) : 0; left > 0; left--) {
    char *part = malloc(1 << 20);
    if (part == NULL) return 3;
    memset(part, 1, 1 << 20);
  }
  return 0;
}`,
  spin: `#include <stdio.h>
#include <time.h>
static long since(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
int main(void) {
  long start = since(CLOCK_MONOTONIC);
  while (since(CLOCK_MONOTONIC) - start < ${SPIN_MS}) continue;
  printf("%ld\\n", since(CLOCK_PROCESS_CPUTIME_ID));
}`,
} as const;

/** Compiles `forks`, `memory MIB` and `spin`, which prints the processor time it got in milliseconds. */
export function compilePrograms(folder: string): void {
  mkdirSync(folder, { recursive: true });
  for (const [name, source] of Object.entries(SOURCES)) {
    const file = join(folder, `${name}.c`);
    writeFileSync(file, source);
    execFileSync("cc", ["-O1", "-static", "-o", join(folder, name), file]);
  }
}
