import { appendFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { isNewcomersRun } from "../support/run/extent.ts";
import { skip } from "../support/run/skips.ts";
import { Place } from "./place.ts";
import { Registries } from "./registries.ts";
import { type Round, roundsOf, sidesOf } from "./rounds.ts";
import { closing, type Line, tableLine } from "./table.ts";
import type { Workload } from "./workload.ts";
import { WORKLOADS } from "./workloads.ts";

const { extent, report } = inject("fidelity");
const ROWS = extent === "quick" ? WORKLOADS.filter(isQuick) : WORKLOADS;
const lines: Line[] = [];

function isQuick({ quick }: Workload): boolean {
  return quick === true || (quick === "at length" && !isNewcomersRun());
}

/** As soon as it is known: a run that is ended early has said what it found. */
function say(text: string): void {
  if (report !== null) appendFileSync(report, text);
}

afterAll(() => {
  process.stdout.write(closing(lines));
  say(`\n${closing(lines)}`);
});

describe.each(actors())("the same inside as outside, as $kind", (actor) => {
  let plain: Place;
  const registries = new Registries(actor);
  beforeAll(async () => {
    plain = await Place.start(actor);
  });
  afterAll(async () => {
    await plain.stop();
    await registries.close();
  });

  // Not `test.each`: it cuts a long name, and `-t` would not find it.
  for (const row of ROWS)
    test(`${row.name}`, { timeout: row.policies === undefined ? 180_000 : 600_000 }, async () => {
      const started = performance.now();
      const keep = (outcome: Line["outcome"]): void => {
        const line = { who: actor.kind, row, seconds: (performance.now() - started) / 1000, outcome };
        lines.push(line);
        say(tableLine(line));
      };
      const place = row.registry === true ? await registries.place() : plain;
      const why = typeof place === "string" ? place : await place.whyNot(row);
      if (typeof place === "string" || why !== undefined) {
        keep({ skipped: `${why}` });
        return skip(`fidelity of "${row.name}"`, `${why}`);
      }
      const sides = extent === "bare" ? (["bare"] as const) : sidesOf(row, { short: extent === "quick" });
      const rounds = await roundsOf(place, row, sides).catch((error: unknown) => {
        keep({ failed: String(error) });
        throw error;
      });
      keep({ rounds });
      expect(differencesIn(rounds), JSON.stringify(row.known)).toEqual([]);
    });
});

function differencesIn(rounds: readonly Round[]): readonly string[] {
  return rounds.flatMap(({ side, result }) =>
    result.result === "different" ? result.differences.map((each) => `${side}: ${each}`) : [],
  );
}
