/** What the doctor can see of worlds elsewhere: whether the agent answers, and what its worlds achieve. */
import type { HostCheck } from "../world/backend.ts";
import { WorldUnavailable } from "../world/backend.ts";
import type { RemoteBackend } from "./remote-backend.ts";

export function agentChecks(backend: RemoteBackend): readonly HostCheck[] {
  return [
    {
      name: "agent",
      what: "A world agent answers, and makes worlds",
      needed: true,
      run: async (signal) => {
        try {
          const isolation = await backend.probe(signal);
          const less = Object.entries(isolation)
            .map(([name, word]) => `${name} ${String(word)}`)
            .filter((line) => / (off|degraded)/.test(line))
            .join("; ");
          return {
            verdict: "ok",
            seen: `${isolation.backend} makes worlds${less === "" ? "" : ` (${less})`}`,
            mend: [],
          };
        } catch (error) {
          if (!(error instanceof WorldUnavailable)) throw error;
          return { verdict: "missing", seen: error.message, mend: [`# ${error.hint}`] };
        } finally {
          await backend.close();
        }
      },
    },
  ];
}
