/** A program behind a shim, for tests. */
import { strict as assert } from "node:assert";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import type { TestBroker } from "./broker.ts";

export const SHIM_POLICY = `id: default
name: Shims
mode: enforce
commands:
  denied: ["tool denied *", "sudo *"]
  isolated: ["tool isolated *"]
  ask: ["tool ask *"]
`;

/** Does what its second word names, and says who it is. */
const TOOL = `#!/bin/sh
[ "$2" = touch ] && touch "$3"
[ "$1" = exit ] && exit "$2"
[ "$1" = signal ] && kill -"$2" $$
[ "$1" = pid ] && { echo $$; exec sleep 0.2; }
[ "$1" = chain ] && { tool leaf; exit; }
[ "$1" = cat ] && exec cat
[ "$1" = fds ] && exec ls /proc/self/fd
[ "$1" = words ] && printf '%s|' "$@"
true
`;

/** Installs the tool and its shim; returns its folder. */
export async function toolFor(broker: TestBroker): Promise<string> {
  const bin = join(broker.folder, "bin");
  broker.write(join(bin, "tool"), TOOL);
  chmodSync(join(bin, "tool"), 0o755);
  const made = await broker.cli(["shim", "install", "tool"], { env: { PATH: `${bin}:/usr/bin:/bin` } });
  assert.equal(made.code, 0, made.stderr);
  return bin;
}

/** The PATH of whoever has the shims. */
export function pathWithShims(broker: TestBroker, bin: string): string {
  return `${join(broker.home, "shims")}:${bin}:/usr/bin:/bin`;
}
