/** Small programs that take what they can: each in five lines of C, and no more than a machine survives. */
import { spawnSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestBroker } from "./broker.ts";

/** What a memory bomb of these tests touches at the most, on whatever machine. */
const BOMB = 2 ** 30;

export const PROGRAMS = {
  forks: `#include <unistd.h>
int main(void) { for (;;) { if (fork() < 0) usleep(10000); } }`,
  memory: `#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  for (long done = 0; done < ${BOMB}L; done += 1 << 20) {
    char *part = malloc(1 << 20);
    if (part == NULL) return 3;
    memset(part, 1, 1 << 20);
  }
  return 0;
}`,
  descriptors: `#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  for (int i = 0; i < 8; i++) if (fork() == 0) break;
  long opened = 0;
  while (open("/dev/null", O_RDONLY) >= 0) opened++;
  int why = errno;
  fprintf(stderr, "%ld %d\\n", opened, why);
  sleep(1);
  return 0;
}`,
  spin: `#include <unistd.h>
int main(void) { for (int i = 0; i < 15; i++) if (fork() == 0) break; for (;;) continue; }`,
  detach: `#include <stdio.h>
#include <unistd.h>
int main(int count, char **words) {
  (void)count;
  if (fork() != 0) return 0;
  setsid();
  if (fork() != 0) return 0;
  execlp("sleep", words[1], "600", (char *)0);
  return 1;
}`,
} as const;

/** Compiles a program into the project. */
export function compile(broker: TestBroker, name: string, source: string): void {
  const program = join(broker.project, name);
  writeFileSync(`${program}.c`, source);
  const made = spawnSync("cc", ["-O1", "-static", "-o", program, `${program}.c`]);
  if (made.status !== 0) throw new Error(`'${name}' does not compile: ${made.stderr.toString()}`);
  chmodSync(program, 0o755);
}
