/** A branch with files that commands may not make: git shows them as deleted, and what records that is told. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";
import { actors } from "../support/users/users.ts";

const POLICY = readFileSync(join(import.meta.dirname, "../../policies/claude-code.yaml"), "utf8").replace(
  "\nid: claude-code\n",
  "\nid: default\n",
);

const SKILLS = "sub/.claude/skills";

describe.each(actors())("the skills of a branch, as $kind", (actor) => {
  let broker: TestBroker;
  let checkedOut = "";
  const git = (...words: string[]): string => hostGit(actor, broker.project, ...words).trim();
  const messages = async (cmd: string): Promise<string> => {
    const { notices } = await broker.run(cmd);
    return notices.map(({ message }) => message).join("\n");
  };

  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    git("init", "-q", "-b", "main");
    broker.write(join(broker.project, "a"), "1\n");
    git("add", "a");
    git("commit", "-qm", "one");
    git("checkout", "-qb", "skilled");
    broker.write(join(broker.project, SKILLS, "x/SKILL.md"), "x\n");
    git("add", "-A");
    git("commit", "-qm", "skills");
    git("checkout", "-q", "main");
  });
  beforeEach(async () => {
    git("checkout", "-qf", "main");
    git("branch", "-f", "work", "skilled");
    checkedOut = await messages("git checkout -q work");
  });
  afterAll(() => broker.stop());

  test("told to the command that stages their deletion, with what takes it back", async () => {
    expect(checkedOut).toContain(SKILLS);
    expect(existsSync(join(broker.project, SKILLS))).toBe(false);
    expect(await messages("git status --short")).toBe("");
    const told = await messages("git add -A");
    expect(told).toContain(`git will commit that '${SKILLS}' was deleted`);
    await broker.run(/'(git restore [^']*)'/.exec(told)?.[1] ?? "false");
    expect(git("diff", "--cached", "--name-only")).toBe("");
  });

  test("told to the command that commits their deletion, with what keeps them", async () => {
    const told = await messages("echo 2 > a; git commit -qam two");
    expect(told).toContain(`git committed that '${SKILLS}' was deleted`);
    const [first = "false", second = "false"] = [...told.matchAll(/'(git [^']*)'/g)].map(([, cmd]) => cmd);
    await broker.run(`${first} && ${second}`);
    expect(git("diff", "--name-only", "HEAD~1", "HEAD")).toBe("a");
  });

  test("told to a command that commits it on a branch made for that", async () => {
    const told = await messages("git checkout -q -B other && echo 5 > a && git commit -qam five");
    expect(told).toContain(`git committed that '${SKILLS}' was deleted`);
  });

  test("not told to a command that goes back to a branch without them", async () => {
    expect(await messages("git checkout -q main && echo 3 > a && git commit -qam three")).toBe("");
    expect(await messages("git status --short")).toBe("");
  });

  test("not told after a person took them back", async () => {
    git("checkout", "--", SKILLS);
    expect(await messages("echo 4 > a; git commit -qam four")).toBe("");
    expect(git("show", "--format=", "--name-only", "HEAD")).toBe("a");
  });
});
