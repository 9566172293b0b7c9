import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { attack, FORBIDDEN } from "../support/policy/command-attacks.ts";

const POLICY = `id: default
name: A short list
mode: enforce
fs:
  write: ["$PROJECT/**"]
  deny_write: ["$PROJECT/keep"]
commands:
  allowed: ["echo *", "cat *", "tee *", "dd *", "true", "[ *", "cp *", "sed *"]
`;

/** Each begins with a word that is allowed. */
const LATER: readonly (readonly [string, (file: string) => string])[] = [
  ["a list", (file) => `echo a; touch ${file}`],
  ["a list of conditions", (file) => `true && touch ${file}`],
  ["the background", (file) => `echo a & touch ${file}`],
  ["a pipeline", (file) => `echo a | touch ${file}`],
  ["a line", (file) => `echo a\ntouch ${file}`],
  ["a substitution", (file) => `echo $(touch ${file})`],
  ["a here-document", (file) => `cat <<E\n$(touch ${file})\nE`],
  ["a condition", (file) => `true; if [ -d . ]; then touch ${file}; fi`],
  ["an assignment", (file) => `echo a; x=$(touch ${file})`],
  ["a redirect", (file) => `echo a > $(touch ${file})`],
];

/** Each is allowed by its words, and writes. */
const WRITERS: readonly (readonly [string, (file: string) => string])[] = [
  [">", (file) => `echo new > ${file}`],
  [">>", (file) => `echo new >> ${file}`],
  [">|", (file) => `echo new >| ${file}`],
  ["<>", (file) => `echo new 1<> ${file}`],
  ["a redirect before the program", (file) => `> ${file} echo new`],
  ["a redirect of a group", (file) => `{ echo new; } > ${file}`],
  ["tee", (file) => `echo new | tee ${file}`],
  ["tee -a", (file) => `echo new | tee -a ${file}`],
  ["dd of=", (file) => `echo new | dd of=${file} status=none`],
  ["cp", (file) => `echo new > other; cp other ${file}`],
  ["sed -i", (file) => `sed -i s/old/new/ ${file}`],
];

describe.each(actors())("an allowed first word, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
  });
  afterAll(() => broker.stop());

  test.each(LATER)("carries nothing in %s", async (_what, command) => {
    await attack(broker, { command }, "commands.allowed");
  });

  test("stands before other allowed ones", async () => {
    expect(await broker.run("echo a; true && echo $(echo b) | cat")).toMatchObject({ stdout: "a\nb\n" });
  });

  test.each(WRITERS)("does not write by %s where nobody may; beside it it does", async (_what, command) => {
    broker.write(join(broker.project, "keep"), "old\n");
    broker.write(join(broker.project, "mine"), "old\n");
    await broker.post({ cmd: command("keep") });
    expect(readFileSync(join(broker.project, "keep"), "utf8")).toBe("old\n");
    await broker.run(command("mine"));
    expect(readFileSync(join(broker.project, "mine"), "utf8")).toContain("new");
    expect(existsSync(join(broker.project, FORBIDDEN))).toBe(false);
  });
});
