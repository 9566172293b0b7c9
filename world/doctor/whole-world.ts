import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Isolation } from "../../schemas/generated/types.ts";
import type { HostCheck, HostFinding } from "./face.ts";
import type { WorldBackend } from "../model/world.ts";
import { runInside } from "./inside.ts";
import { MEND_ABOVE, missing, ok, weaker, wordsOf } from "./trials.ts";

/** Prints the command's own view: privileges dropped, and init as the first process of its world. */
const SCRIPT =
  "grep -E '^(NoNewPrivs|Seccomp|CapEff):' /proc/self/status; cat /proc/1/comm; echo here > made";

/** Checks the whole: makes a world as a broker does, runs one command, and reads the isolation vector. */
export function wholeWorldCheck(backend: WorldBackend, required: ReadonlySet<string>): HostCheck {
  return {
    name: "world",
    what: "a whole world and one command in it",
    needed: true,
    run: (signal) => run(backend, required, signal),
  };
}

async function run(
  backend: WorldBackend,
  required: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<HostFinding> {
  const project = await mkdtemp(join(tmpdir(), "substrate-probe-"));
  try {
    await backend.probe(signal);
    const inside = await runInside(backend, project, { kind: "direct" }, SCRIPT, signal);
    const { code, output, isolation, readyMs } = inside;
    if (code !== 0 || !isConfined(output)) return missing(`the command saw: ${output.trim()}`, MEND_ABOVE);
    const absent = [...required].filter((part) => !isOn(part, isolation));
    const less = lessThanOn(isolation);
    const seen = `ready after ${readyMs.toFixed(1)} ms; a command ran without privileges`;
    if (absent.length > 0)
      return missing(
        `${seen}; the default policy requires ${absent.join(", ")}: ${less.join("; ")}`,
        MEND_ABOVE,
      );
    return less.length === 0 ? ok(seen) : weaker(`${seen}; ${less.join("; ")}`);
  } catch (error) {
    return missing(wordsOf(error), MEND_ABOVE);
  } finally {
    await rm(project, { recursive: true, force: true });
  }
}

function isConfined(output: string): boolean {
  return (
    /^NoNewPrivs:\s*1$/m.test(output) &&
    /^Seccomp:\s*2$/m.test(output) &&
    /^CapEff:\s*0+$/m.test(output) &&
    /^substrate-init$/m.test(output)
  );
}

/** Returns the parts below `on`. An unneeded user namespace and an overlay not requested are no weakness. */
function lessThanOn(isolation: Isolation): readonly string[] {
  return Object.entries<string>({ ...isolation })
    .filter(([part]) => !["backend", "overlay", "user"].includes(part) && !isOn(part, isolation))
    .map(([part, word]) => `${part} is '${word}'`);
}

/** Overlays depend on the command and have a check of their own. */
function isOn(part: string, isolation: Isolation): boolean {
  const word = Object.entries<string>({ ...isolation }).find(([name]) => name === part)?.[1];
  return word === "on" || part === "overlay" || (part === "capabilities" && word === "none");
}
