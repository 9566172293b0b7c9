import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decide, loadPolicy, readShell } from "../../broker/policy/index.ts";
import { corpus } from "./commands.ts";

const WHERE = { project: "/projects/app", home: "/home/ann", cwd: "/projects/app" };
const POLICIES = ["default", "strict", "claude-code"] as const;

/** What each of {@link POLICIES} says of one command, in their order: `allow`, `deny sudo *`. */
export type Verdicts = Readonly<Record<string, readonly string[]>>;

/** Every command of the corpus, those of `innocent.txt` too, with its verdicts by the shipped policies of `checkout`. */
export function verdictsOfCorpus(checkout: string): Verdicts {
  const policies = POLICIES.map((name) => {
    const folder = join(checkout, "policies");
    const loaded = loadPolicy(join(folder, `${name}.yaml`), folder);
    if ("problems" in loaded) throw new Error(loaded.problems.map(({ text }) => text).join("\n"));
    return loaded.ok;
  });
  const verdicts = texts(checkout).map((text): [string, string[]] => {
    const read = readShell(text);
    const said = policies.map((policy) => {
      const { verdict, rule } = decide(policy, read, WHERE);
      return rule === null ? verdict : `${verdict} ${rule.pattern}`;
    });
    return [text, said];
  });
  return Object.fromEntries(verdicts);
}

function texts(checkout: string): readonly string[] {
  const innocent = readFileSync(join(checkout, "test/corpus/innocent.txt"), "utf8");
  const lines = innocent.split("\n").filter((line) => line !== "");
  return [...new Set([...corpus().map(({ text }) => text), ...lines])];
}

/** Writes `verdicts.json`, a line for each command. */
export function recordVerdicts(checkout: string, path: string): void {
  const lines = Object.entries(verdictsOfCorpus(checkout)).map(
    ([text, said]) => `  ${JSON.stringify(text)}: ${JSON.stringify(said)}`,
  );
  writeFileSync(path, `{\n${lines.join(",\n")}\n}\n`);
}
