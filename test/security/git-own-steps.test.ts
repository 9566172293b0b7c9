/**
 * A policy that denies `git reset --hard` lets git take the steps of its own commands (`git stash`, `git worktree add`), and nobody
 * else has that from git: the verdict is whether what was never committed is still there.
 */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { type Ran, TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";
import { whyNotHere } from "../support/run/needs.ts";
import { skip } from "../support/run/skips.ts";

const POLICY = `id: default
name: No reset
mode: enforce
commands:
  denied: ["git reset --hard *", "git clean -f *"]
`;

/** As git starts it, by whoever else: each is run from a script, so that the command line says nothing of it. */
const STEP = "git reset --hard -q --no-recurse-submodules";

const ATTACKS: Readonly<Record<string, string>> = {
  "an alias": `git -c alias.stash2='!${STEP}' stash2`,
  "an alias that is named as a step's command": `git -c 'alias.stash=!${STEP}' -c alias.x='!${STEP}' x stash`,
  "an alias without a shell": "git -c alias.x='reset --hard -q --no-recurse-submodules' x; true",
  "git submodule foreach": `git submodule foreach ${STEP}; git submodule foreach '${STEP}'`,
  "git rebase --exec": `git rebase --exec '${STEP}' HEAD; git -c rebase.autoStash=false rebase -x '${STEP}' HEAD~1`,
  "git bisect run": `git bisect start HEAD HEAD~1; git bisect run ${STEP}; git bisect reset`,
  "an editor": `export GIT_EDITOR='${STEP}' GIT_SEQUENCE_EDITOR='${STEP}'
git -c user.name=a -c user.email=b@c commit --allow-empty; git -c user.name=a -c user.email=b@c rebase -i HEAD~1`,
  "a program that shows changes": `GIT_EXTERNAL_DIFF='${STEP}; true' git diff`,
  "a program that sees changes": `git -c core.fsmonitor='${STEP}; true' stash list; git -c core.fsmonitor='${STEP}; true' status`,
  "a git that lies in the project":
    "cp /usr/bin/git git; GIT_EXEC_PATH=$PWD ./git reset --hard; ./git reset --hard",
  "a name for its caller": `bash -c 'exec -a git bash -c "${STEP}" stash'`,
  "words of its caller": `python3 -c 'import os, sys; os.system("${STEP}")' stash`,
  "a shell, plainly": STEP,
};

/** That need a program which a machine may lack are left out there. */
const HERE = Object.entries(ATTACKS).filter(([, cmd]) => whyNotHere(cmd) === undefined);

describe.each(actors())("steps of git's own, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
  });
  afterAll(() => broker.stop());

  /** Two commits, a module, and a change that was never committed. */
  beforeEach(() => {
    const { project } = broker;
    const git = (...words: readonly string[]): string => hostGit(actor, project, ...words);
    rmSync(join(project, ".git"), { recursive: true, force: true });
    git("init", "-q", "-b", "main");
    broker.write(join(project, "work.txt"), "one\n");
    git("add", "work.txt");
    git("commit", "-qm", "one");
    git("commit", "-qm", "two", "--allow-empty");
    broker.write(join(project, "work.txt"), "never committed\n");
  });

  const work = (): string => readFileSync(join(broker.project, "work.txt"), "utf8");
  async function run(script: string): Promise<Ran> {
    broker.write(join(broker.project, "run.sh"), `${script}\n`);
    return await broker.run({ argv: ["sh", "run.sh"] });
  }

  test("git stash keeps what was changed, and brings it back", async () => {
    const ran = await run("git stash && cat work.txt && git stash pop -q && cat work.txt");
    expect(ran).toMatchObject({ exit: 0, notices: [] });
    expect(ran.stdout).toMatch(/\none\nnever committed\n$/);
    expect(await broker.run("git stash -u -q && git stash pop -q")).toMatchObject({ exit: 0, notices: [] });
    expect(work()).toBe("never committed\n");
    expect(await broker.run({ argv: ["git", "stash", "-q"] })).toMatchObject({ exit: 0, notices: [] });
    expect(work()).toBe("one\n");
  });

  test("git worktree add fills its folder", async () => {
    const ran = await run("git worktree add -q trees/side && cat trees/side/work.txt");
    expect(ran).toMatchObject({ exit: 0, stdout: "one\n", notices: [] });
    expect(work()).toBe("never committed\n");
  });

  test.each(HERE)("are none by %s", async (_way, script) => {
    const ran = await run(script);
    expect(work()).toBe("never committed\n");
    expect(ran.notices.map(({ kind }) => kind)).not.toEqual([]);
  });

  test("say in the trace what was refused", async () => {
    if (HERE.length === 0) skip("attacks on git's own steps", "no program of theirs is installed");
    const ran = await run(STEP);
    expect(ran.notices[0]?.message).toContain("git reset --hard");
  });
});
