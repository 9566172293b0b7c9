/** Small C programs that tests run inside worlds. */
import { spawnSync } from "node:child_process";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import type { TestBroker } from "../broker/broker.ts";
import { recordSkip } from "../run/skips.ts";

/** Compiles a program into the broker's project, as `./name`. */
export function buildProgram(broker: TestBroker, name: string, source: string): void {
  const path = join(broker.project, name);
  broker.write(`${path}.c`, source);
  const made = spawnSync("cc", ["-O1", "-static", "-o", path, `${path}.c`]);
  if (made.status !== 0) throw new Error(`'${name}' does not compile: ${made.stderr.toString()}`);
  chmodSync(path, 0o755);
}

/** Whether a call of the i386 interface reaches this kernel. Records a skip where the machine ends the caller instead. */
export function hasI386Calls(broker: TestBroker, probe: string): boolean {
  const { signal } = spawnSync(join(broker.project, probe), ["i386"]);
  if (signal !== "SIGSEGV") return true;
  recordSkip({ what: "calls of the i386 interface", why: "this machine ends a program at 'int $0x80'" });
  return false;
}

/** Makes one system call by number and says what came of it: `ok`, or the error number. `i386` calls the old way. */
export const PROBE = `
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
  long a[7] = {0};
  if (count > 1 && strcmp(words[1], "i386") == 0) {
    long result = 20;
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory");
    if (result < 0) printf("%ld\\n", -result);
    else printf("ok\\n");
    return 0;
  }
  for (int i = 1; i < count && i < 8; i++) a[i - 1] = (long)strtoull(words[i], NULL, 0);
  long result = syscall(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
  if (result < 0) printf("%d\\n", errno);
  else printf("ok\\n");
  return 0;
}
`;
