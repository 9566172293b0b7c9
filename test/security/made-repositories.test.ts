import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { GIT, hostGit } from "../support/git/git.ts";

describe.each(actors())("removing and moving repositories, as $kind", (actor) => {
  let broker: TestBroker;
  const at = (path: string): string => join(broker.project, path);
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\nmode: enforce\n" },
    });
    hostGit(actor, broker.project, "init", "-q");
    hostGit(actor, broker.project, "commit", "-q", "--allow-empty", "-m", "first");
  });
  afterAll(() => broker.stop());
  beforeEach(() => {
    for (const name of readdirSync(broker.project))
      if (name !== ".git") rmSync(at(name), { recursive: true, force: true });
  });

  /** The next command begins a world of its own, which seals what it finds. */
  async function restart(): Promise<void> {
    const { status } = await broker.operator("POST", "/v1/world/restart", { all: true, force: true });
    expect(status).toBe(200);
  }

  async function expectRun(cmd: string): Promise<void> {
    expect(await broker.run(cmd)).toMatchObject({ exit: 0, stderr: "" });
  }

  test("what a person lets git run in a command's repository stays, and the rest of it is removed", async () => {
    await expectRun(`git init -q n`);
    await restart();
    broker.write(at("n/.git/hooks/pre-commit"), "#!/bin/sh\n");
    hostGit(actor, at("n"), "config", "core.hooksPath", ".husky");
    await broker.run("rm -f n/.git/hooks/pre-commit n/.git/config n/.git/description");
    expect(existsSync(at("n/.git/hooks/pre-commit"))).toBe(true);
    expect(readFileSync(at("n/.git/config"), "utf8")).toContain("hooksPath");
    expect(existsSync(at("n/.git/description"))).toBe(false);
  });

  test("a thousand refusals leave the broker answering", async () => {
    hostGit(actor, broker.project, "init", "-q", "mine");
    const ran = await broker.run("for i in $(seq 1005); do rm -f mine/.git/config; done 2>/dev/null");
    expect(ran.exit).not.toBe(0);
    expect(existsSync(at("mine/.git/config"))).toBe(true);
    await expectRun("true");
  });

  test.each([
    ["a person's repository", (): void => void hostGit(actor, broker.project, "init", "-q", "big/z/mine")],
    ["a command's repository", (): void => {}],
  ])(
    "commands that move a folder of thousands of folders with %s leave the broker answering",
    async (_whose, add) => {
      await expectRun(
        "mkdir big big/z && git init -q big/z/n && cd big && seq -f 'f%g' 3900 | xargs mkdir && mkdir z/mine",
      );
      add();
      await restart();
      const moves = "while :; do mv big gib; mv gib big; sleep 0.5; done";
      const attack = broker.run(`for i in $(seq 12); do (${moves}) 2>/dev/null & done; sleep 4`);
      const waits: number[] = [];
      for (const until = performance.now() + 4000; performance.now() < until; await sleep(20)) {
        const asked = performance.now();
        await broker.call("GET", "/v1/health");
        waits.push(performance.now() - asked);
      }
      await attack;
      expect(waits.toSorted((one, other) => one - other)[Math.floor(waits.length / 2)]).toBeLessThan(500);
      await restart();
    },
  );

  const MADE = `git init -q n && cd n && ${GIT} commit -q --allow-empty -m one && cd ..`;

  describe.each([
    ["a later command", (): Promise<void> => Promise.resolve()],
    ["a command in another world", () => restart()],
    [
      "a command beside a kept process",
      async (): Promise<void> => {
        await broker.run({ cmd: "sleep 30 >/dev/null 2>&1 &", background: "keep" });
      },
    ],
    [
      "a command of another broker",
      async (): Promise<void> => {
        await broker.kill("SIGTERM");
        broker = await broker.again();
      },
    ],
  ])("by %s", (_whose, between) => {
    test.each([
      ["one that it made", MADE, "rm -rf n", "n"],
      ["a clone in other folders", `${MADE} && mkdir -p v/w && git clone -q n v/w/c`, "rm -rf v", "v"],
      ["a bare one", "git init -q --bare b.git", "rm -r b.git", "b.git"],
      ["a worktree", "git worktree add -q wt", "git worktree remove wt && git branch -q -D wt", "wt"],
      ["its git folder alone", MADE, "rm -rf n/.git", "n/.git"],
      ["what git clean removes", MADE, "git clean -qffdx", "n"],
    ])("a command's repository is removed: %s", async (_what, first, removes, gone) => {
      await expectRun(first);
      await between();
      const ran = await broker.run(removes);
      expect(ran).toMatchObject({ exit: 0, stderr: "" });
      expect(existsSync(at(gone))).toBe(false);
      expect(ran.notices.filter(({ kind }) => kind !== "held")).toEqual([]);
      expect(ran.fs_diff?.deletes.length).toBeGreaterThan(0);
    });

    test("a command's repository is removed and cloned again by one command, and works", async () => {
      await expectRun(`${MADE} && git clone -q n c`);
      await between();
      await expectRun(
        `rm -rf c && git clone -q n c && git -C c config user.name again && git -C c log --format=%s`,
      );
      expect(readFileSync(at("c/.git/config"), "utf8")).toContain("again");
      await expectRun("git -C c status");
    });

    test("a command's repository is moved, and is sealed and works where it is then", async () => {
      await expectRun(`mkdir v && cd v && ${MADE}`);
      await between();
      await expectRun("mv v/n v/m && mv v u && cd u/m && git status && git log --format=%s");
      const tried = await broker.run("echo evil > u/m/.git/hooks/post-commit; cd u/m && git log --format=%s");
      expect(tried.stdout).toBe("one\n");
      expect(existsSync(at("u/m/.git/hooks/post-commit"))).toBe(false);
      expect(existsSync(at("u/m/.git/config"))).toBe(true);
      await expectRun("rm -rf u");
      expect(existsSync(at("u"))).toBe(false);
    });
  });

  describe("what a person made stays", () => {
    beforeEach(async () => {
      hostGit(actor, broker.project, "init", "-q", "mine/app");
      hostGit(actor, at("mine/app"), "config", "alias.z", "!true");
      hostGit(actor, at("mine/app"), "commit", "-q", "--allow-empty", "-m", "first");
      hostGit(actor, at("mine/app"), "worktree", "add", "-q", "../w");
      await restart();
    });

    test.each([
      ["removes it", "rm -rf mine"],
      ["removes its settings", "rm -f mine/app/.git/config"],
      ["removes a sample of its hooks", "rm -f mine/app/.git/hooks/pre-commit.sample"],
      ["moves it", "mv mine/app mine/other"],
      ["moves the folder above it", "mv mine other"],
      ["moves its git folder", "mv mine/app/.git mine/app/git"],
      ["moves the folder of a worktree of its", "mv mine/app/.git/worktrees/w mine/app/.git/worktrees/v"],
      [
        "makes a git folder around it first",
        "cd mine && mkdir objects refs && echo 'ref: refs/heads/a' > HEAD; cd ..; rm -rf mine/app/.git",
      ],
      ["cleans it away", "git clean -qffdx"],
    ])("when a command %s, and the reply says in a sentence why", async (_claim, cmd) => {
      const before = readFileSync(at("mine/app/.git/config"), "utf8");
      const ran = await broker.run(`${cmd}; true`);
      expect(readFileSync(at("mine/app/.git/config"), "utf8")).toBe(before);
      expect(existsSync(at("mine/app/.git/hooks/pre-commit.sample"))).toBe(true);
      expect(readFileSync(at("mine/app/.git/worktrees/w/commondir"), "utf8")).toBe("../..\n");
      const denied = ran.notices.filter(({ kind }) => kind === "denied");
      expect(denied.length).toBeGreaterThan(0);
      expect(denied[0]?.message).toContain("was not written");
    });

    test("when commands take its HEAD away and put it back", async () => {
      hostGit(actor, broker.project, "init", "-q", "mine/plain");
      await restart();
      await broker.run("rm mine/plain/.git/HEAD");
      await broker.run("echo ref: refs/heads/a > mine/plain/.git/HEAD");
      await broker.run(
        "rm mine/plain/.git/config; mv mine/plain/.git mine/plain/git; rm -rf mine/plain; true",
      );
      expect(existsSync(at("mine/plain/.git/config"))).toBe(true);
      expect(existsSync(at("mine/plain/.git/hooks/pre-commit.sample"))).toBe(true);
    });

    test("its choice of a policy too, in a folder that a command makes a git folder", async () => {
      broker.write(at("mine/chosen/.substrate-profile"), "default\n");
      await restart();
      await broker.run(
        "mkdir mine/chosen/objects mine/chosen/refs && echo ref: refs/heads/a > mine/chosen/HEAD",
      );
      await broker.run("rm mine/chosen/.substrate-profile; true");
      expect(existsSync(at("mine/chosen/.substrate-profile"))).toBe(true);
    });

    test("its twin: empty folders beside it are removed, and files in it", async () => {
      await expectRun("mkdir mine/empty && touch mine/app/file && rmdir mine/empty && rm mine/app/file");
    });
  });

  test("what takes the place of a removed repository's settings is judged", async () => {
    await expectRun(MADE);
    await restart();
    await broker.run(
      `rm n/.git/config; printf '[core]\\nfsmonitor = touch ${at("RAN")}; :\\n' > n/.git/config`,
    );
    await broker.run(
      `rm -rf n; ${MADE}; printf '[core]\\nfsmonitor = touch ${at("RAN")}; :\\n' >> n/.git/config`,
    );
    if (existsSync(at("n/.git/config"))) hostGit(actor, at("n"), "status");
    expect(existsSync(at("RAN"))).toBe(false);
  });

  test("a repository of the project's own that commands make anew is judged, also when its maker ends the world", async () => {
    const empty = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\nmode: enforce\n" },
    });
    try {
      const ran = join(empty.project, "RAN");
      await empty.run(`git init -q && ${GIT} commit -q --allow-empty -m one`);
      await empty.operator("POST", "/v1/world/restart", { all: true, force: true });
      await empty.run("git status");
      await empty.run(
        `cp -r .git saved; rm -rf .git; mkdir .git; cp -r saved/objects saved/refs .git/; echo ref: refs/heads/main > .git/HEAD; printf '[core]\nfsmonitor = touch ${ran}; :\n' > .git/config; kill -9 -1`,
      );
      expect(existsSync(join(empty.project, ".git/HEAD"))).toBe(true);
      hostGit(actor, empty.project, "status");
      expect(existsSync(ran)).toBe(false);
    } finally {
      await empty.stop();
    }
  });

  test("a denial of the policy's own holds in a repository that a command made", async () => {
    const denying = await TestBroker.start(actor, {
      policies: {
        default:
          "id: default\nname: x\nmode: enforce\nfs:\n  deny_write: ['$PROJECT/.git/config', '$PROJECT/.git/hooks', '$PROJECT/n/.git/keep']\n",
      },
    });
    try {
      await denying.run("git init -q n");
      denying.write(join(denying.project, "n/.git/keep"), "x");
      await denying.operator("POST", "/v1/world/restart", { all: true, force: true });
      await denying.run("rm -rf n; mv n m; true");
      expect(readFileSync(join(denying.project, "n/.git/keep"), "utf8")).toBe("x");
    } finally {
      await denying.stop();
    }
  });
});
