/** The table that a run prints, and its three counts. */
import type { Round, Side } from "./rounds.ts";
import type { Workload } from "./workload.ts";

export type Line = {
  readonly who: string;
  readonly row: Workload;
  readonly seconds: number;
  readonly outcome:
    | { readonly rounds: readonly Round[] }
    | { readonly skipped: string }
    | { readonly failed: string };
};

export type Word = "same" | "refused" | "different" | "skipped" | "failed";

/** A row is what the worse of its rounds is. */
export function wordOf({ outcome }: Line): Word {
  if ("skipped" in outcome) return "skipped";
  if ("failed" in outcome) return "failed";
  const results = outcome.rounds.map(({ result }) => result.result);
  return (["different", "refused", "same"] as const).find((word) => results.includes(word)) ?? "different";
}

/** What is said when every row has run: the counts for each who ran them, and marks that may go. */
export function closing(lines: readonly Line[]): string {
  const whose = [...new Set(lines.map(({ who }) => who))];
  const counts = whose.map((who) =>
    countsLine(
      who,
      lines.filter((line) => line.who === who),
    ),
  );
  return [...counts, ...staleNotes(lines)].map((line) => `${line}\n`).join("");
}

/** One sentence with the three counts; a row that could not be compared has its own. */
function countsLine(who: string, lines: readonly Line[]): string {
  const count = (word: Word): number => lines.filter((line) => wordOf(line) === word).length;
  const known = lines.filter((line) => wordOf(line) === "different" && isKnown(line)).length;
  const run = lines.length - count("skipped");
  return (
    `fidelity, as ${who}: ${run} workloads: ${count("same")} same, ` +
    `${count("refused")} refused with the notice that was expected, ${count("different")} different` +
    `${known === 0 ? "" : ` (${known} of them known)`}; ${count("skipped")} skipped` +
    `${count("failed") === 0 ? "" : `; ${count("failed")} could not be compared`}`
  );
}

/** A row of the table, with what differs below it. */
export function tableLine(line: Line): string {
  const { who, row, seconds, outcome } = line;
  if ("skipped" in outcome) return `skipped    ${row.name} [${who}] — ${outcome.skipped}\n`;
  if ("failed" in outcome) return `failed     ${row.name} [${who}]: ${outcome.failed}\n`;
  const words = outcome.rounds.map(
    (round) => `${round.side} ${round.result.result}${isKnownOf(row, round) ? " (known)" : ""}`,
  );
  const head = `${wordOf(line).padEnd(10)} ${row.name} [${who}: ${words.join(", ")}; ${seconds.toFixed(1)} s]\n`;
  return head + outcome.rounds.flatMap((round) => details(row, round)).join("");
}

/** Whether the row says why each of its differences is there. */
function isKnown({ row, outcome }: Line): boolean {
  if (!("rounds" in outcome)) return false;
  return outcome.rounds.every((round) => round.result.result !== "different" || isKnownOf(row, round));
}

function isKnownOf({ known }: Workload, { side, result }: Round): boolean {
  return result.result === "different" && side !== "bare" && known?.[side] !== undefined;
}

function details({ known }: Workload, { side, result }: Round): string[] {
  if (result.result === "same") return [];
  const why = side === "bare" ? undefined : known?.[side];
  if (result.result === "different" && why !== undefined) return [`           ${side}: known: ${why}\n`];
  const lines = result.result === "refused" ? [result.notice] : result.differences;
  return lines.map((line) => `           ${side}: ${line}\n`);
}

/** Marks that hold for nobody any more. */
function staleNotes(lines: readonly Line[]): string[] {
  const rounds = lines.flatMap(({ row, outcome }) =>
    !("rounds" in outcome) ? [] : outcome.rounds.map(({ side, result }) => ({ row, side, result })),
  );
  const marked = rounds.filter(({ row, side }) => side !== "bare" && row.known?.[side] !== undefined);
  const differs = marked.filter(({ result }) => result.result === "different").map(nameOf);
  const notes = marked.map(nameOf).filter((name) => !differs.includes(name));
  return [...new Set(notes)].map((name) => `its \`known\` may go, it is not different any more: ${name}`);
}

function nameOf({ row, side }: { readonly row: Workload; readonly side: Side }): string {
  return `${row.name} [${side}]`;
}
