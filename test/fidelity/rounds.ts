/** One row, from its preparation to its results. */
import { dirname, join } from "node:path";
import { freePort } from "../support/broker/published.ts";
import { compare, type Result, type Seen, type SeenInWorld } from "./compare.ts";
import type { Place } from "./place.ts";
import { type Command, type Ended, runBare } from "./run-bare.ts";
import { runByApi, runByHand } from "./run-in-world.ts";
import { take } from "./steps.ts";
import type { PolicyName, Workload } from "./workload.ts";

/** `bare` is a second bare run in place of a world: what it finds different is the row's own unsteadiness. */
export type Side = PolicyName | "bare";

export type Round = { readonly side: Side; readonly result: Result };

/** Runs a row bare and then on each side, each time in the same place, filled anew. */
export async function roundsOf(
  place: Place,
  row: Workload,
  sides: readonly Side[],
): Promise<readonly Round[]> {
  try {
    await place.prepare(row);
    await place.refill(row);
    const bare = await seenBare(place, row);
    // Two installs that fail alike prove nothing.
    if (row.registry === true && bare.exit !== 0)
      throw new Error(`The bare command ended with ${bare.exit}: ${bare.stdout}${bare.stderr}`);
    const judged = forWhom(row, place);
    const rounds: Round[] = [];
    for (const side of sides) {
      await place.refill(row);
      const result =
        side === "bare"
          ? compare(judged, "default", bare, { ...(await seenBare(place, row)), told: [] })
          : compare(judged, side, bare, await seenInWorld(place, row, side));
      rounds.push({ side, result });
    }
    return rounds;
  } finally {
    await endWorlds(place);
    place.remove(row);
  }
}

/** The row for this actor: a refusal that is declared for the other actor is left out. */
function forWhom(row: Workload, { actor }: Place): Workload {
  if (row.refusedTo === undefined || row.refusedTo === actor.kind) return row;
  const { refused: _refused, ...same } = row;
  return same;
}

/** `short`: of many policies one that isolates and one that does not, for `npm test`. */
export function sidesOf(
  { strictest = "strict", policies }: Workload,
  { short = false }: { readonly short?: boolean } = {},
): readonly Side[] {
  if (policies === undefined) return ["default", strictest];
  return short ? policies.filter((name) => name === "enforced" || name === "ci") : policies;
}

async function seenBare(place: Place, row: Workload): Promise<Seen> {
  const port = await freePort();
  const running = runBare(place.actor, commandOf(place, row, port), place);
  return await seen(place, row, port, running);
}

async function seenInWorld(place: Place, row: Workload, policy: PolicyName): Promise<SeenInWorld> {
  const port = await freePort();
  const spot = { agent_id: agentOf(row, policy), cwd: place.projectOf(row), port };
  if (row.meanwhile !== undefined) await operate(place, "publish", spot);
  const command = commandOf(place, row, port);
  const home = row.registry === true ? place.homeLines() : [];
  const running =
    row.through === "exec"
      ? runByHand(place.broker, policy, command)
      : runByApi(place.broker, policy, command);
  const found = await seen(place, row, port, running);
  if (row.meanwhile !== undefined) await operate(place, "publish", { ...spot, close: true });
  const { told } = await running.ended;
  if (row.registry !== true) return { ...found, told };
  return { ...found, told, observed: [...found.observed, ...changesOf(home, place.homeLines())] };
}

/** What a world's command changed in the home folder, which no bare run is compared with: nothing is expected. */
function changesOf(before: readonly string[], after: readonly string[]): readonly string[] {
  const gone = before.filter((line) => !after.includes(line)).map((line) => `the home had ${line}`);
  const made = after.filter((line) => !before.includes(line)).map((line) => `the home has ${line}`);
  return [...gone, ...made];
}

async function seen(
  place: Place,
  row: Workload,
  port: number,
  running: { readonly ended: Promise<Ended>; readonly end: () => void },
): Promise<Seen> {
  const over = new AbortController();
  const ended = running.ended.finally(() => over.abort());
  const around = { port, project: place.projectOf(row), end: running.end, over: over.signal };
  const [{ exit, stdout, stderr }, observed] = await Promise.all([ended, take(row.meanwhile ?? [], around)]);
  return { exit, stdout, stderr, observed, tree: place.look(row) };
}

function commandOf(place: Place, row: Workload, port: number): Command {
  const project = place.projectOf(row);
  const cwd = row.from === undefined ? project : join(dirname(project), row.from);
  const env = { ...place.environmentOf(row), ...(row.from === undefined ? {} : { PWD: cwd }) };
  return {
    cwd,
    cmd: row.command,
    shell: row.shell ?? "sh",
    stdin: row.stdin,
    env: row.meanwhile === undefined ? env : { ...env, PORT: `${port}` },
  };
}

/** Who runs it: each strict policy has an agent of its name, `substrate exec` without one is a person. */
function agentOf({ through }: Workload, policy: PolicyName): string {
  return policy === "default" && through === "exec" ? "human" : policy;
}

/** The next row begins without this one's worlds. */
async function endWorlds(place: Place): Promise<void> {
  await operate(place, "restart", { all: true, force: true });
}

async function operate({ broker }: Place, what: "publish" | "restart", body: object): Promise<void> {
  const { status, document } = await broker.operator("POST", `/v1/world/${what}`, body);
  if (status !== 200) throw new Error(`POST /v1/world/${what}: ${status} ${JSON.stringify(document)}`);
}
