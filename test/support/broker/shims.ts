/** A program behind a shim, for tests. */
import { strict as assert } from "node:assert";
import { chmodSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { TestBroker } from "./broker.ts";

export const SHIM_POLICY = `id: default
name: Shims
mode: enforce
commands:
  denied: ["tool denied *", "sudo *"]
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

/** A policy under which `bash`, which worlds have too, is isolated where it gets a script. */
export const isolating = (mode: "enforce" | "observe"): string => `id: default
name: Shims
mode: ${mode}
commands:
  denied: ["bash denied *"]
  ask: ["bash -c *asked*"]
  isolated: ["bash -c *"]
`;

/** Installs the shim of a program of the system. */
export async function installShim(broker: TestBroker, name: string): Promise<void> {
  const made = await broker.cli(["shim", "install", name], { env: { PATH: "/usr/bin:/bin" } });
  assert.equal(made.code, 0, made.stderr);
}

/** The variables of whoever has the shims, and only the system's programs behind them. */
export function shimsEnvironment({ home }: TestBroker): Record<string, string> {
  return { PATH: `${join(home, "shims")}:/usr/bin:/bin`, SUBSTRATE_HOME: home };
}

/** The PATH of whoever has the shims. */
export function pathWithShims(broker: TestBroker, bin: string): string {
  return `${join(broker.home, "shims")}:${bin}:/usr/bin:/bin`;
}

/** Shims of a home that run, or wait for the end of the program that one of them became. */
export function shimsOf(home: string): readonly string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        if (!readlinkSync(`/proc/${pid}/exe`).endsWith("/substrate-shim")) return false;
        return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`SUBSTRATE_HOME=${home}`);
      } catch {
        // Ended meanwhile.
        return false;
      }
    });
}
