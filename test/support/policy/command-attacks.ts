/** Commands that would make a file, in a disguise: whether the file is there says who won. */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { TestBroker } from "../broker/broker.ts";

/** A disguise: given the name of a file, a command that makes it by `touch`. */
export type Disguise = {
  readonly command: (file: string) => string;
  readonly shell?: "bash";
};

/** `touch` is denied for this one name, and nothing else is. */
export const FORBIDDEN = "forbidden";
export const POLICY = `id: default
name: One file is forbidden
mode: enforce
commands:
  denied: ["touch ${FORBIDDEN}"]
  opaque: allow
`;
/** The same, and what cannot be known is denied. */
export const NOTHING_OPAQUE = POLICY.replace("opaque: allow", "opaque: deny");

/** The attack is refused by its rule and makes nothing; in the same disguise another file is made. */
export async function attackAndTwin(broker: TestBroker, disguise: Disguise): Promise<void> {
  await attack(broker, disguise, "commands.denied");
  await makes(broker, disguise.command, "permitted", disguise.shell);
}

/** The attack is refused by that list and makes nothing. */
export async function attack(
  broker: TestBroker,
  { command, shell }: Disguise,
  list: "commands.denied" | "commands.opaque" | "commands.allowed",
  more: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const cmd = command(FORBIDDEN);
  const error = await broker.refused({ cmd, ...(shell === undefined ? {} : { shell }), ...more });
  expect([cmd, error.code, error.rule?.list]).toEqual([cmd, "policy_denied", list]);
  expect(existsSync(join(broker.project, FORBIDDEN)), `${cmd} made its file`).toBe(false);
}

/** The command runs and makes the file, which is removed again. */
export async function makes(
  broker: TestBroker,
  command: (file: string) => string,
  file: string,
  shell?: "bash",
): Promise<void> {
  const cmd = command(file);
  const { stderr } = await broker.run({ cmd, ...(shell === undefined ? {} : { shell }) });
  const path = join(broker.project, file);
  expect(existsSync(path), `${cmd} did not make its file: ${stderr}`).toBe(true);
  rmSync(path);
}
