import { describe, expect, inject, test } from "vitest";
import { type Actor, actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { LOAD_POLICY } from "../faults/load.ts";
import { type Doctor, FaultRounds } from "../faults/round.ts";
import { KINDS, KINDS_FOR_ANYBODY } from "../faults/victims.ts";
import { recordSkip } from "../support/run/skips.ts";

const { rounds, seed, kind: only } = inject("faults");

/** The trace begins a new file with nearly every commit of its index. */
const SMALL_FILES = "trace: { file_mib: 0.01 }\n";

/** Then another home: reading a trace from its start costs more with every round. */
const ROUNDS_PER_HOME = 25;

/** A round takes about one second; a machine under load may take twenty times as long. */
const ROUND_PATIENCE_MS = 20_000;

const isRoot = process.getuid?.() === 0;
if (!isRoot)
  recordSkip({ what: "faults that kill the network of a world", why: "only root can tell whose it is" });
const KINDS_HERE = isRoot ? KINDS : KINDS_FOR_ANYBODY;

describe.each(actors())("under fire, as $kind", (actor) => {
  test(
    `nothing is left and nobody else is harmed when broker, init, forker, leader or network are killed, ${rounds} times from seed ${seed}${only === null ? "" : `, ${only} alone`}`,
    async () => {
      const killed: Record<string, number> = {};
      let [commands, asked, done] = [0, 0, 0];
      for (let first = 0; first < rounds; first += ROUNDS_PER_HOME) {
        const home = await oneHome(actor, first, Math.min(rounds, first + ROUNDS_PER_HOME));
        asked += home.applies.asked;
        done += home.applies.done;
        for (const result of home.results) {
          killed[result.kind] = (killed[result.kind] ?? 0) + 1;
          commands += result.commands;
        }
      }
      process.stdout.write(
        `faults as ${actor.kind}: ${rounds} rounds from seed ${seed}, ${commands} commands under load, ${asked} applies and undos of which ${done} were acknowledged, killed ${JSON.stringify(killed)}\n`,
      );
      expect(Object.values(killed).reduce((sum, count) => sum + count, 0)).toBe(rounds);
      expect(commands).toBeGreaterThan(rounds);
      expect(asked).toBeGreaterThan(0);
    },
    rounds * ROUND_PATIENCE_MS,
  );
});

type Ended = { readonly kind: string; readonly commands: number };

async function oneHome(
  actor: Actor,
  from: number,
  to: number,
): Promise<{ readonly results: readonly Ended[]; readonly applies: FaultRounds["applies"] }> {
  const started = await TestBroker.start(actor, {
    policies: { default: LOAD_POLICY },
    config: SMALL_FILES,
  });
  const fire = new FaultRounds(started, await doctorOf(started), only === null ? KINDS_HERE : [only]);
  const results: Ended[] = [];
  try {
    for (let round = from; round < to; round += 1) {
      const { kind, commands, findings } = await fire.run(seed + round);
      expect(findings, `round ${round} of seed ${seed} killed the ${kind}`).toEqual([]);
      results.push({ kind, commands });
    }
  } finally {
    await fire.broker.stop();
  }
  return { results, applies: fire.applies };
}

/** `world doctor`, when this version has one. */
async function doctorOf(broker: TestBroker): Promise<Doctor> {
  const tried = await broker.cli(["world", "doctor", "--json"]);
  if (/unknown command/.test(tried.stderr)) {
    recordSkip({ what: "the doctor after each fault", why: "this version has no 'world doctor'" });
    return () => Promise.resolve([]);
  }
  return async (current) => {
    const { code, stdout, stderr } = await current.cli(["world", "doctor", "--json"]);
    return code === tried.code
      ? []
      : [`the doctor ended with ${code}, before the faults with ${tried.code}: ${stdout}${stderr}`];
  };
}
