import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readShell } from "../../broker/policy/index.ts";
import { ClosedRoot } from "../corpus/closed-root.ts";
import { corpus } from "../corpus/commands.ts";
import { type Recorded, shortcomings } from "../corpus/compare.ts";
import { programNames } from "../corpus/names.ts";
import { disguised } from "../corpus/random-scripts.ts";
import { skip } from "../support/run/skips.ts";

const MINUTES = 5 * 60_000;

test("the shells of this machine run nothing that the reader does not say", { timeout: MINUTES }, () => {
  const commands = corpus();
  const texts = commands.map(({ text }) => text);
  const root = ClosedRoot.make(programNames(texts));
  if (typeof root === "string") {
    skip("that the reader sees what this machine's shells run", root);
    return;
  }
  try {
    const dash = root.run("dash", texts);
    const bash = root.run("bash", texts);
    const wrong = commands.flatMap((command, index) => {
      const executed = { dash: dash[index], bash: bash[index] };
      return shortcomings(command, executed, readShell);
    });
    expect(wrong).toEqual([]);
    const ran = [...dash, ...bash].filter(({ calls }) => calls.length > 0).length;
    expect(ran).toBeGreaterThan(1.5 * recordedRuns());
  } finally {
    root.remove();
  }
});

/**
 * Bash 5.2.15 reads a substitution, writes it down again and runs that: what stands behind a `;` after a here-document is
 * not in it, and never runs. That the reader says it does is no harm.
 */
const LOST = "x=$( cat <<'E'\ntext\nE\ntrue; npm\n)";
const MAY_BE_LOST = /\$\( [^]*<<'?E\d'?\n/;

test("a command in random disguise is run, and read, as the words it has", { timeout: MINUTES }, () => {
  const scripts = fc.sample(disguised, { numRuns: 150 });
  const texts = scripts.map(({ text }) => text);
  const root = ClosedRoot.make(programNames([LOST, ...texts]));
  if (typeof root === "string") {
    skip("that the reader sees through a disguise as this machine's shells do", root);
    return;
  }
  try {
    for (const shell of ["dash", "bash"] as const) {
      const [probe, ...ran] = root.run(shell, [LOST, ...texts]);
      const loses = probe?.calls.some(([program]) => program === "npm") === false;
      for (const [index, { calls, missing }] of ran.entries()) {
        const { words, text } = scripts[index] ?? { words: [], text: "" };
        if (!loses || !MAY_BE_LOST.test(text))
          expect(calls, `${shell} runs ${JSON.stringify(text)}`).toContainEqual(words);
        const command = { group: "random", text, expectation: "read", bashOnly: false } as const;
        const executed = { dash: { calls, missing }, bash: { calls, missing } };
        expect(shortcomings(command, executed, readShell)).toEqual([]);
      }
    }
  } finally {
    root.remove();
  }
});

/** How many commands of the recorded corpus ran anything in a shell of their own: far fewer here would be no proof. */
function recordedRuns(): number {
  const text = readFileSync(join(import.meta.dirname, "../corpus/executed.json"), "utf8");
  const { commands } = JSON.parse(text) as Recorded;
  return Object.values(commands).filter(({ dash, bash }) => dash.calls.length + bash.calls.length > 0).length;
}
