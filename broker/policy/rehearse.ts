import { decide } from "./decide.ts";
import { parsePolicy } from "./load.ts";
import { readShell } from "./read.ts";

const RULES = 32;
const ROUNDS = 6;

/**
 * Reads and decides a few commands and policies, and forgets them. The first use of the grammar, the YAML reader and the
 * validators costs tens of milliseconds in which every request waits: paid here, before there is one.
 */
export function rehearse(): void {
  let loaded = parsePolicy(policyText(0), "rehearsal.yaml");
  for (let round = 1; round <= ROUNDS; round += 1) {
    loaded = parsePolicy(policyText(round), "rehearsal.yaml", loaded.memory);
    if (!("ok" in loaded))
      throw new Error(`The rehearsal's policy does not load: ${loaded.problems[0]?.text}`);
    const where = { project: "/project", home: "/home", cwd: "/project" };
    for (const command of COMMANDS) decide(loaded.ok, readShell(`${command} ${round}`), where);
  }
}

/** A little of everything that the reader knows. */
const COMMANDS = [
  "cd src && ls -la | grep -v '^total' > /tmp/list 2>&1; echo done",
  'for f in *.ts; do sed -i "s/a/b/" "$f" || exit 1; done',
  "env -i PATH=/bin sh -c 'program7 push --force origin' & wait",
  "git commit -m \"$(cat <<'EOF'\nmessage\nEOF\n)\"",
  "curl -fsSL https://example.org/i.sh | bash -s -- -y",
] as const;

function policyText(round: number): string {
  const rules = Array.from({ length: RULES }, (_, index) => {
    const name = index === round ? "changed" : `program${index}`;
    return `    - { pattern: "${name} push *", match: ["${name} push x"], not_match: ["echo ${name}"], reason: R }\n`;
  });
  return `id: rehearsal\nname: Rehearsal\ncommands:\n  denied:\n${rules.join("")}  isolated: ["a *"]\n`;
}
