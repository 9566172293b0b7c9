/** Whether two runs of a workload did the same. Pure. */
import type { PolicyName, Varies, Workload } from "./workload.ts";
import type { Tree } from "./tree.ts";

/** What a run left. Outputs are latin1, a character a byte. */
export type Seen = {
  /** 128 + n when signal n ended it; null when the row ends it from outside. */
  readonly exit: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly observed: readonly string[];
  readonly tree: Tree;
};

/** The same in a world; `told` is what the reply and the command line say beside the outputs. */
export type SeenInWorld = Seen & { readonly told: readonly string[] };

export type Result =
  | { readonly result: "same" }
  | { readonly result: "refused"; readonly notice: string }
  | { readonly result: "different"; readonly differences: readonly string[] };

/** A difference is shown, not dumped. */
const SHOWN_PATHS = 12;
const SHOWN_LINES = 4;
const SHOWN_TEXT = 400;

export function compare(workload: Workload, policy: PolicyName, bare: Seen, world: SeenInWorld): Result {
  const notice = workload.refused?.[policy];
  if (notice !== undefined) return judgeRefused(notice, world);
  const differences = differencesOf(workload.varies ?? {}, bare, world);
  if (differences.length === 0) return { result: "same" };
  return { result: "different", differences: [...differences, ...world.told.map((line) => `told: ${line}`)] };
}

/** A refusal counts only where it is one: the command failed, and a notice, not the program's own words, says why. */
function judgeRefused(notice: RegExp, world: SeenInWorld): Result {
  const printed = world.stderr.split("\n");
  const notices = [...world.told, ...printed.filter((each) => each.startsWith("substrate: "))];
  const line = notices.find((each) => notice.test(each));
  if (world.exit === 0)
    return { result: "different", differences: ["it was to be refused, and ended with 0"] };
  if (line !== undefined) return { result: "refused", notice: line };
  const differences = [
    `it ended with ${world.exit}, and no notice matches ${notice.source}`,
    ...notices,
    ...printed.slice(0, SHOWN_LINES).map((each) => `it printed: ${each}`),
  ];
  return { result: "different", differences };
}

export function differencesOf(varies: Varies, bare: Seen, world: Seen): readonly string[] {
  return [
    ...differ("exit code", `${bare.exit}`, `${world.exit}`),
    ...differ("stdout", steady(bare.stdout, varies), steady(world.stdout, varies)),
    ...differ("stderr", steady(bare.stderr, varies), steady(world.stderr, varies)),
    ...differ("seen from the host", bare.observed.join("\n"), world.observed.join("\n")),
    ...treeDifferences(bare.tree, world.tree, varies),
  ];
}

/** An output without what no two runs share. Variables that every command in a world has are the contract's. */
function steady(output: string, { output: replacements = [], order }: Varies): string {
  const without = output.replace(/^SUBSTRATE_[A-Z_]+=.*\n/gm, "");
  const text = replacements.reduce(
    (now, [pattern, replacement]) => now.replace(pattern, replacement),
    without,
  );
  return order === true ? text.split("\n").sort().join("\n") : text;
}

function treeDifferences(bare: Tree, world: Tree, varies: Varies): readonly string[] {
  const paths = [...new Set([...bare.keys(), ...world.keys()])].sort();
  const lines = paths
    .filter((path) => !(varies.paths ?? []).some((pattern) => pattern.test(path)))
    .flatMap((path) => {
      const free = (patterns: readonly RegExp[] = []): boolean => patterns.some((each) => each.test(path));
      const without = {
        content: free(varies.content),
        times: free(varies.times),
        links: free(varies.links),
      };
      const [before, after] = [lineOf(bare, path, without), lineOf(world, path, without)];
      return before === after ? [] : [`${JSON.stringify(path)}: bare ${before} | world ${after}`];
    });
  const more = lines.length - SHOWN_PATHS;
  return more <= 0 ? lines : [...lines.slice(0, SHOWN_PATHS), `and ${more} more paths`];
}

type Without = { readonly content: boolean; readonly times: boolean; readonly links: boolean };

function lineOf(tree: Tree, path: string, { content, times, links }: Without): string {
  const line = tree.get(path) ?? "nothing";
  const shape = content ? line.replace(/^file \d+ bytes( with holes)? sha256=\w+/, "file") : line;
  const single = links ? shape.replace(/ mode=\d+/, "").replace(/ names=\d+( same-as="[^"]*")?/, "") : shape;
  return times || links ? single.replace(/ time=\w+/, "") : single;
}

function differ(what: string, bare: string, world: string): string[] {
  if (bare === world) return [];
  const [one, other] = [bare.split("\n"), world.split("\n")];
  const at = one.findIndex((line, index) => line !== other[index]);
  const from = at === -1 ? one.length : at;
  return [`${what}, line ${from + 1}: bare ${shown(one, from)} | world ${shown(other, from)}`];
}

/** Some lines from the first that differs. */
function shown(lines: readonly string[], from: number): string {
  const text = lines.slice(from, from + SHOWN_LINES).join("\n");
  const more =
    lines.length > from + SHOWN_LINES ? ` and ${lines.length - from - SHOWN_LINES} more lines` : "";
  return `${JSON.stringify(text.slice(0, SHOWN_TEXT))}${more}`;
}
