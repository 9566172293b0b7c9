import type { Insertion } from "./place-additions.ts";

/** A line of the diff: kept, taken out, put in. Its text ends with its line end, if it has one. */
type Step = { readonly mark: " " | "-" | "+"; readonly text: string };

/** Lines around a change, as `diff -u` shows them. */
const CONTEXT = 3;

/** The unified diff of insertions into a text, for `patch`; empty when there are none. `to`: of a copy. Pure. */
export function unifiedDiff(
  text: string,
  insertions: readonly Insertion[],
  label: string,
  to = label,
): string {
  const steps = stepsOf(text, insertions);
  const hunks = hunksIn(steps);
  if (hunks.length === 0) return "";
  return `--- ${label}\n+++ ${to}\n${hunks.map((hunk) => printed(steps, hunk)).join("")}`;
}

function stepsOf(text: string, insertions: readonly Insertion[]): readonly Step[] {
  const steps: Step[] = [];
  let offset = 0;
  for (const line of linesOf(text)) {
    const end = offset + line.length;
    const here = insertions.filter(({ at }) => at >= offset && at < end);
    steps.push(...lineSteps(line, offset, here));
    offset = end;
  }
  const last = insertions.filter(({ at }) => at >= offset);
  return last.length === 0 ? steps : appended(steps, last.map((one) => one.text).join(""));
}

function lineSteps(line: string, offset: number, insertions: readonly Insertion[]): readonly Step[] {
  if (insertions.length === 0) return [{ mark: " ", text: line }];
  const sorted = [...insertions].sort((one, other) => other.at - one.at);
  const made = linesOf(
    sorted.reduce((done, { at, text }) => done.slice(0, at - offset) + text + done.slice(at - offset), line),
  );
  const kept = made.indexOf(line);
  if (kept === -1) return [{ mark: "-", text: line }, ...made.map((text): Step => ({ mark: "+", text }))];
  return made.map((text, index): Step => ({ mark: index === kept ? " " : "+", text }));
}

/** Behind a last line without an end, that line changes too. */
function appended(steps: readonly Step[], text: string): readonly Step[] {
  const last = steps.at(-1);
  if (last === undefined || last.text.endsWith("\n"))
    return [...steps, ...linesOf(text).map((line): Step => ({ mark: "+", text: line }))];
  const made = linesOf(last.text + text).map((line): Step => ({ mark: "+", text: line }));
  return [
    ...steps.slice(0, -1),
    ...(last.mark === "+" ? [] : [{ mark: "-" as const, text: last.text }]),
    ...made,
  ];
}

type Hunk = { readonly from: number; readonly to: number };

/** Changes nearer to each other than twice the context share a hunk. */
function hunksIn(steps: readonly Step[]): readonly Hunk[] {
  const hunks: { from: number; to: number }[] = [];
  for (const [index, { mark }] of steps.entries()) {
    if (mark === " ") continue;
    const [from, to] = [Math.max(index - CONTEXT, 0), Math.min(index + CONTEXT + 1, steps.length)];
    const before = hunks.at(-1);
    if (before !== undefined && from <= before.to) before.to = to;
    else hunks.push({ from, to });
  }
  return hunks;
}

function printed(steps: readonly Step[], { from, to }: Hunk): string {
  const inside = steps.slice(from, to);
  const before = steps.slice(0, from);
  const count = (all: readonly Step[], mark: "-" | "+"): number =>
    all.filter((step) => step.mark === " " || step.mark === mark).length;
  const range = (mark: "-" | "+"): string => {
    const lines = count(inside, mark);
    // diff(1): a range of no lines names the line before it.
    return `${mark}${count(before, mark) + (lines === 0 ? 0 : 1)},${lines}`;
  };
  return `@@ ${range("-")} ${range("+")} @@\n${inside.map(stepText).join("")}`;
}

function stepText({ mark, text }: Step): string {
  return text.endsWith("\n") ? `${mark}${text}` : `${mark}${text}\n\\ No newline at end of file\n`;
}

function linesOf(text: string): readonly string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}
