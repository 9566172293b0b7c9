/** What the doctor can see of worlds elsewhere: whether Lima has its machine, whether the agent answers, and what its worlds achieve. */
import { type HostCheck, type HostFinding, WorldUnavailable } from "../world/backend.ts";
import type { Instance, Limactl } from "./limactl.ts";
import { broken } from "./machine.ts";
import type { RemoteBackend } from "./remote-backend.ts";

/** Starts no machine: while none runs, its agent counts as not asked. @param machine the machine's name */
export function limaChecks(limactl: Limactl, machine: string, backend: RemoteBackend): readonly HostCheck[] {
  let isRunning = false;
  const agents = agentChecks(backend).map((check) => ({
    ...check,
    run: async (signal: AbortSignal): Promise<HostFinding> => {
      if (isRunning) return await check.run(signal);
      await backend.close();
      return { verdict: "weaker", seen: "Not asked, because no machine runs", mend: [] };
    },
  }));
  return [
    {
      name: "lima",
      what: "Lima 1.0 or newer is installed, and its machine runs",
      needed: true,
      run: (signal) =>
        unlessUnavailable(async () => {
          await limactl.check(signal);
          const found = await limactl.find(machine, signal);
          isRunning = found?.status === "Running";
          return machineFinding(machine, found);
        }),
    },
    ...agents,
  ];
}

/** @param found undefined: there is no such machine */
function machineFinding(machine: string, found: Instance | undefined): HostFinding {
  if (found?.status === "Running")
    return { verdict: "ok", seen: `The virtual machine '${machine}' runs`, mend: [] };
  if (found?.status === "Broken") throw broken(found);
  const seen =
    found === undefined
      ? `The virtual machine '${machine}' is not made yet: the first command makes it, in some minutes`
      : `The virtual machine '${machine}' does not run (${found.status}): the next command starts it`;
  return { verdict: "weaker", seen, mend: ["substrate exec -- true"] };
}

export function agentChecks(backend: RemoteBackend): readonly HostCheck[] {
  return [
    {
      name: "agent",
      what: "A world agent answers, and makes worlds",
      needed: true,
      run: async (signal) => {
        try {
          return await unlessUnavailable(async () => {
            const isolation = await backend.probe(signal);
            const less = Object.entries(isolation)
              .map(([name, word]) => `${name} ${String(word)}`)
              .filter((line) => / (off|degraded)/.test(line))
              .join("; ");
            const seen = `${isolation.backend} makes worlds${less === "" ? "" : ` (${less})`}`;
            return { verdict: "ok", seen, mend: [] };
          });
        } finally {
          await backend.close();
        }
      },
    },
  ];
}

async function unlessUnavailable(look: () => Promise<HostFinding>): Promise<HostFinding> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof WorldUnavailable)) throw error;
    return { verdict: "missing", seen: error.message, mend: [`# ${error.hint}`] };
  }
}
