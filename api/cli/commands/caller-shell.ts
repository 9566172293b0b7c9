/** The variables of the shell that this process was started from, for `exec` and `check`. */
import { isUtf8 } from "node:buffer";
import { readFileSync } from "node:fs";
import { umaskField } from "../../client/command.ts";
import { Complaint, type Terminal } from "../terminal/terminal.ts";

/** What the broker takes of a variable (schemas/shared, `Environment`). A longer one no command could get either. */
const LONGEST_NAME = 1024;
const LONGEST_VALUE = 131_071;
const MOST = 4096;

/** All of them: which ones a command gets says the policy, and the broker forgets the others. */
export function callerShell({ environment }: Terminal): {
  readonly caller_env: Record<string, string>;
  readonly umask?: string;
} {
  const variables = Object.entries(environment).filter(
    (one): one is [string, string] =>
      one[1] !== undefined &&
      one[0] !== "" &&
      one[0].length <= LONGEST_NAME &&
      one[1].length <= LONGEST_VALUE &&
      !one[0].startsWith("SUBSTRATE_"),
  );
  // PATH must not be among those that are too many.
  variables.sort(([one], [other]) => Number(other === "PATH") - Number(one === "PATH"));
  return { caller_env: Object.fromEntries(variables.slice(0, MOST)), ...umaskField() };
}

/** What `--env NAME=VALUE` sets, and `--env NAME` takes from the caller's shell. Throws {@link Complaint}. */
export function setVariables(
  { environment }: Terminal,
  given: readonly string[] | undefined,
): { readonly env?: Record<string, string> } {
  if (given === undefined) return {};
  return { env: Object.fromEntries(given.map((one) => setVariable(environment, one))) };
}

/** Whether this process's words are UTF-8: Node has replaced the bytes of others, and a command would act on another file. */
export function areWordsText(): boolean {
  return process.platform !== "linux" || isUtf8(readFileSync("/proc/self/cmdline"));
}

function setVariable(environment: Terminal["environment"], given: string): [string, string] {
  const equals = given.indexOf("=");
  const name = equals < 0 ? given : given.slice(0, equals);
  if (name === "" || name.length > LONGEST_NAME)
    throw new Complaint(`Cannot use '${given}' as --env: it must be NAME=VALUE, or the NAME of a variable`);
  if (equals >= 0) return [name, given.slice(equals + 1)];
  const value = environment[name];
  if (value?.includes("\uFFFD") === true)
    throw new Complaint(
      `Cannot pass '${name}' on: its value is not UTF-8, and the command would get another one`,
    );
  if (value !== undefined) return [name, value];
  throw new Complaint(`Cannot pass '${name}' on: it is not set here. Set it, or write --env ${name}=VALUE`);
}
