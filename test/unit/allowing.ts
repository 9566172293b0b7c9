/** Two policies that allow the same in both ways, and what they say of a command. */
import { decide, parsePolicy, readShell, type Where, withVariables } from "../../broker/policy/index.ts";

export const WHERE: Where = { project: "/projects/app", home: "/home/ann", cwd: "/projects/app" };

export function policyOf(more: string) {
  const loaded = parsePolicy(`id: p\nname: P\nmode: enforce\n${more}`, "p.yaml");
  if ("problems" in loaded) throw new Error(loaded.problems.map((problem) => problem.text).join("\n"));
  return loaded.ok;
}

const AUTO = policyOf(
  'approval: { require: true, auto_approve: ["make", "git *", "cd *", "export *", "ls *"] }',
);
const LIST = policyOf('commands: { allowed: ["make", "git *", "cd *", "export *", "ls *"] }');

/** Under `approval.require`, and under a list of all that may run. */
export function verdicts(
  command: string,
  env: Readonly<Record<string, string>> = {},
  where: Partial<Where> = {},
) {
  const read = withVariables(readShell(command, "bash"), env);
  return [AUTO, LIST].map((policy) => decide(policy, read, { ...WHERE, ...where }).verdict);
}

export const COVERED = ["allow", "allow"];
export const NOT_COVERED = ["ask", "deny"];
