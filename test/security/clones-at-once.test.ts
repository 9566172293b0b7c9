import { existsSync, lstatSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { actors, runAs } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";
import { needs } from "../support/run/needs.ts";

/** One round of twelve clones damaged up to seven of them. */
const ROUNDS = 3;

/** How long a command goes on after it has planted something: longer than init waits for the settings of a repository. */
const GOES_ON_MS = 1500;

/** Longer than an idle world watches folders (world/native/deny/denied_names.c). */
const IDLE_MS = 6000;

/** What a command does beside the clones: calls that give names, one after the other. */
const WRITES = "while [ ! -e stop ]; do echo x > f; mkdir -p dir; rmdir dir; done";

describe.each(actors())("clones beside commands of other worlds, as $kind", (actor) => {
  let broker: TestBroker;
  const at = (path: string): string => join(broker.project, path);
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: {
        default: `id: default\nname: x\nmode: enforce\nfs:\n  deny_write: ["$PROJECT/.git/hooks", "$PROJECT/.git/config", "**/kept.ini"]\n`,
      },
    });
    hostGit(actor, broker.project, "init", "-q");
    hostGit(actor, broker.project, "init", "-q", "source");
    broker.write(at("source/file"), "one\n");
    hostGit(actor, at("source"), "add", "file");
    hostGit(actor, at("source"), "commit", "-q", "-m", "one");
    hostGit(actor, broker.project, "clone", "-q", "source", "whole");
  });
  afterAll(() => broker.stop());
  beforeEach(() => {
    for (const name of readdirSync(broker.project))
      if (!["source", "whole", ".git"].includes(name)) rmSync(at(name), { recursive: true });
  });

  /** Paths of a clone that are missing or are not as they should be. */
  function damageOf(name: string): readonly string[] {
    const wrong = (path: string): boolean => {
      const [whole, here] = [at(join("whole", path)), at(join(name, path))];
      const stat = lstatSync(here, { throwIfNoEntry: false });
      if (stat === undefined) return true;
      // Settings and samples have the same bytes in each clone.
      const isSame = stat.isFile() && /^file$|^\.git\/(?:config$|hooks\/)/.test(path);
      return isSame && readFileSync(whole, "utf8") !== readFileSync(here, "utf8");
    };
    const paths = readdirSync(at("whole"), { recursive: true }).map(String);
    const copies = readdirSync(at(join(name, ".git"))).filter((leaf) => leaf.startsWith("substrate-"));
    return [...paths.filter(wrong), ...copies].map((path) => join(name, path));
  }

  test("of three agents keep all they have", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const names = [...Array(12).keys()].map((n) => `d${round}-${n}`);
      const all = await Promise.all(
        names.map((name, n) => broker.run({ agent_id: `agent${n % 3}`, cmd: `git clone -q source ${name}` })),
      );
      for (const ran of all) expect(ran).toMatchObject({ exit: 0, stderr: "", notices: [] });
      expect(names.flatMap(damageOf)).toEqual([]);
      const next = await broker.run(
        `set -e; for d in ${names.join(" ")}; do git -C $d config user.name b; git -C $d log --format=%s; done | sort | uniq -c`,
      );
      expect(next).toMatchObject({ exit: 0, stderr: "", stdout: "     12 one\n" });
    }
  });

  test("of a person keep all they have, beside a command that writes and ends among them", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const names = [...Array(25).keys()].map((n) => `p${round}-${n}`);
      rmSync(at("stop"), { force: true });
      const running = broker.run(WRITES);
      const cloning = cloneOneAfterTheOther(names);
      // Where the command ends, init seals what came meanwhile: in the middle of one of them.
      if (round === 0) {
        while (!existsSync(at(join(names[12] ?? "", ".git")))) await sleep(1);
        writeFileSync(at("stop"), "");
      }
      expect(await cloning).toMatchObject({ code: 0, stderr: "" });
      writeFileSync(at("stop"), "");
      expect(await running).toMatchObject({ exit: 0, notices: [] });
      expect(names.flatMap(damageOf)).toEqual([]);
    }
  });

  /** Puts the repository `name` into the project without its settings, as a clone is for a moment; returns what puts those there. */
  function putHalf(name: string): () => void {
    const [beside, settings] = [`${broker.project}-${name}`, `${broker.project}-${name}.config`];
    hostGit(actor, broker.project, "init", "-q", beside);
    renameSync(join(beside, ".git/config"), settings);
    renameSync(beside, at(name));
    return () => renameSync(settings, at(join(name, ".git/config")));
  }

  /** Begins a command that gives names until it is stopped, and makes a repository then; waits for its first name. */
  async function beginWrites(agent: string): Promise<() => Promise<unknown>> {
    const running = broker.run({ agent_id: agent, cmd: `${WRITES}; git init -q own` });
    while (!existsSync(at("f"))) await sleep(1);
    return () => {
      writeFileSync(at("stop"), "");
      return running;
    };
  }

  const SET_NAME = "git -C half config user.name b && git -C half config user.name";

  test("keep their settings where a world begins before those stand", async () => {
    const finish = putHalf("half");
    const stop = await beginWrites("late");
    finish();
    // Calls go on while init hears of it.
    await sleep(100);
    expect(await stop()).toMatchObject({ exit: 0, stderr: "", notices: [] });
    expect(await broker.run(SET_NAME)).toMatchObject({ exit: 0, stderr: "", stdout: "b\n" });
  });

  test("let commands change settings that came after a command's end had sealed the rest", async () => {
    const stop = await beginWrites("agent0");
    const finish = putHalf("half");
    await sleep(100);
    expect(await stop()).toMatchObject({ exit: 0, stderr: "", notices: [] });
    finish();
    expect(await broker.run(SET_NAME)).toMatchObject({ exit: 0, stderr: "", stdout: "b\n" });
  });

  test("let commands change settings of what came while another world was idle", async () => {
    await broker.run({ agent_id: "agent1", cmd: "true" });
    await sleep(IDLE_MS);
    putHalf("half")();
    expect(await broker.run(SET_NAME)).toMatchObject({ exit: 0, stderr: "", stdout: "b\n" });
  });

  const PLANTED = "[core]\n\tfsmonitor = touch ran;:\n";
  /** openat2(2) with RESOLVE_IN_ROOT; its number is the same on each architecture. */
  const IN_ROOT = `perl -e '$p = ".git/config.lock"; $how = pack("QQQ", 02001, 0, 16); opendir D, "."; $fd = syscall 437, fileno D, $p, $how, 24; open F, ">&=", $fd or die; syswrite F, "[core]\\n\\tfsmonitor = touch ran;:\\n"'`;
  const UNTIL_RENAMED = "touch begun; while [ -e .git/config.lock ]; do sleep 0.01; done";

  test.each([
    ["writes it", `cat planted >> .git/config.lock`],
    ["keeps it open", `exec 3>> .git/config.lock; ${UNTIL_RENAMED}; cat planted >&3`],
    [
      "gives it a second name",
      `ln .git/config.lock .git/refs/two; ${UNTIL_RENAMED}; cat planted >> .git/refs/two`,
    ],
    ["renames its own onto it", "cp planted .git/refs/own; mv -f .git/refs/own .git/config.lock"],
    ["makes its own in its place", "rm -f .git/config.lock; cat planted > .git/config.lock"],
    ["moves it away", "mv .git/config.lock .git/refs/away; cp planted .git/config.lock"],
    ["writes it through another process's folder", "cat planted >> /proc/$$/cwd/.git/config.lock"],
    [
      "writes it through a link that stands for the reader",
      'p=$PWD; cd /; cat "$p/planted" >> "proc/self/cwd$p/.git/config.lock"',
    ],
    ["writes it by a call with a root of its own", IN_ROOT],
  ])(
    "a person's git writes its own settings beside a command that finds its lock file and %s",
    async (_way, cmd) => {
      const [lock, settings] = [at(".git/config.lock"), at(".git/config")];
      broker.write(at("planted"), PLANTED);
      await broker.run("true");
      const content = `${readFileSync(settings, "utf8")}# A person set this\n`;
      broker.write(lock, content);
      const running = broker.run(cmd);
      await Promise.race([running, eventually(() => existsSync(at("begun")), 10_000)]);
      renameSync(lock, settings);
      await running;
      expect(readFileSync(settings, "utf8")).toBe(content);
      for (const name of ["own", "two", "away"]) rmSync(at(`.git/refs/${name}`), { force: true });
    },
  );

  test("its twin: a command makes, writes, opens again and removes a lock file of its own, and git goes on", async () => {
    const cmd = `umask 027; set -e; echo p > /proc/$$/cwd/plain; echo q >> /proc/self/cwd/plain; cat plain; : > .git/config.lock; echo a >> .git/config.lock; cat .git/config.lock; stat -c %a .git/config.lock
      git config user.name x 2>/dev/null || echo locked; rm .git/config.lock; git config user.name Twin; ls .git | grep -c lock || true`;
    const ran = await broker.run(cmd);
    expect(ran).toMatchObject({ exit: 0, stdout: "p\nq\na\n640\nlocked\n0\n", stderr: "", notices: [] });
    expect(ran.fs_diff?.mods).toContain(".git/config");
    expect(hostGit(actor, broker.project, "config", "--local", "user.name")).toBe("Twin");
  });

  async function cloneOneAfterTheOther(names: readonly string[]): Promise<unknown> {
    const script = `for name in ${names.join(" ")}; do git clone -q source $name || exit 1; done`;
    return await runAs(actor, ["sh", "-c", script], { cwd: broker.project });
  }

  /**
   * A call counts as in progress until init has seen its caller asleep: on a busy machine, one that sleeps in snatches is seldom seen
   * so. The command sleeps for this long before it begins to wait for a repository.
   */
  const ASLEEP_MS = 500;

  /** What the person's git would run, and the command that makes it so, in the repository `name`. */
  const PLANTS: readonly (readonly [string, string])[] = [
    ["a hook", `shutil.copy("evil", name + "/.git/hooks/post-checkout")`],
    ["a folder of hooks", `shutil.copytree("hooks", name + "/.git/hooks")`],
    [
      "settings that it opened for writing before there was code in them",
      `file = open(name + "/.git/config", "a"); time.sleep(0.05); file.write(MONITOR); file.flush()`,
    ],
    ["settings of a worktree", `open(name + "/.git/config.worktree", "x").write(MONITOR)`],
    ["a way to other settings", `open(name + "/.git/commondir", "x").write("../../other")`],
  ];

  const NAMES = ["v0", "v1"];

  /** Waits for each of them to turn up, and tries for a while to plant something in it. */
  const attack = (plant: string): string => `
import os, shutil, sys, time
with open("evil", "w") as file: file.write("#!/bin/sh\\ntouch " + os.getcwd() + "/RAN\\n")
os.chmod("evil", 0o755)
os.makedirs("hooks", exist_ok=True)
shutil.copy("evil", "hooks/post-checkout")
MONITOR = "[core]\\n\\tfsmonitor = " + os.getcwd() + "/evil\\n"
open("ready", "w").close()
time.sleep(${ASLEEP_MS / 1000})
tried = 0
for name in ${JSON.stringify(NAMES)}:
    while not os.path.isdir(name + "/.git"): time.sleep(0.0005)
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        tried += 1
        try:
            ${plant}
        except OSError: time.sleep(0.0005)
    time.sleep(${ASLEEP_MS / 1000})
print(tried)
sys.stdout.flush()
time.sleep(${GOES_ON_MS / 1000})
`;

  describe.each(["a person", "another agent"])("of %s", (who) => {
    test.each(PLANTS)("run no code, while a command waits for them to plant %s", async (_what, plant) => {
      needs("python3");
      broker.write(at("attack.py"), attack(plant));
      const running = broker.run("python3 attack.py");
      while (!existsSync(at("ready"))) await sleep(5);
      await sleep(2 * ASLEEP_MS);
      // Taking what was planted back may make a git that is at work there fail once.
      const clone = "git clone -q source $name 2> /dev/null || { rm -rf $name; git clone -q source $name; }";
      const cmd = `for name in ${NAMES.join(" ")}; do ${clone}; git -C $name status --porcelain; sleep ${(3 * ASLEEP_MS) / 1000}; done`;
      const cloned =
        who === "a person"
          ? await runAs(actor, ["sh", "-c", cmd], { cwd: broker.project })
          : await broker.run({ agent_id: "other", cmd });
      expect(cloned).toMatchObject({ stdout: "", stderr: "" });
      for (const name of NAMES) hostGit(actor, at(name), "status");
      const ran = await running;
      expect(Number(ran.stdout)).toBeGreaterThan(NAMES.length);
      expect(NAMES.flatMap(damageOf)).toEqual([]);
      expect(existsSync(at("RAN"))).toBe(false);
    });
  });

  /** Ways to write EVIL into the settings at `path`. */
  const WAYS: readonly (readonly [string, string])[] = [
    ["opens them for writing", `put(os.open(path, os.O_WRONLY | os.O_APPEND))`],
    [
      "opens them for nothing, and that for writing",
      `fd = os.open(path, os.O_PATH)
        try: put(os.open("/proc/self/fd/%d" % fd, os.O_WRONLY | os.O_APPEND))
        finally: os.close(fd)`,
    ],
    [
      "writes to them by a second name",
      `os.link(path, path + ".2")
        put(os.open(path + ".2", os.O_WRONLY | os.O_APPEND))
        os.unlink(path + ".2")`,
    ],
    [
      "puts another file in their place",
      `put(os.open(path + ".2", os.O_WRONLY | os.O_CREAT))
        os.rename(path + ".2", path)`,
    ],
  ];

  const tryUntilStopped = (way: string, path: string): string => `
import os, time
path, tried, put_in = "${path}", 0, 0
def put(fd):
    global put_in
    os.write(fd, b"#evil\\n")
    os.close(fd)
    put_in += 1
open("ready", "w").close()
while not os.path.exists("stop"):
    tried += 1
    try:
        ${way}
    except OSError: pass
    # A file that grows without end makes git slow.
    if put_in > 50: time.sleep(0.01)
print(tried > 10)
`;

  describe("settings that a person's git replaces again and again", () => {
    const REPLACES = 200;

    /** What `path` holds after a command has tried `way`, while a person's git replaced the file as often as it could. */
    async function raced(way: string, path: string): Promise<{ text: string; stderr: string }> {
      needs("python3");
      hostGit(actor, broker.project, "init", "-q", "raced");
      hostGit(actor, broker.project, "config", "-f", path, "user.name", "first");
      await broker.run("true");
      broker.write(at("race.py"), tryUntilStopped(way, path));
      const running = broker.run("python3 race.py");
      const begun = Promise.race([running, eventually(() => existsSync(at("ready")), 30_000)]);
      expect(await begun).toBe(true);
      const replaces = `for i in $(seq ${REPLACES}); do git config -f ${path} user.name n$i; done`;
      const replaced = await runAs(actor, ["sh", "-c", replaces], { cwd: broker.project });
      broker.write(at("stop"), "");
      expect(await running).toMatchObject({ stdout: "True\n" });
      return { text: readFileSync(at(path), "utf8"), stderr: replaced.stderr };
    }

    describe.each(["raced/.git/config", "raced/kept.ini"])("in %s", (path) => {
      test.each(WAYS)("hold nothing of a command that %s", async (_what, way) => {
        const { text, stderr } = await raced(way, path);
        expect(stderr).toBe("");
        expect(text).toContain(`name = n${REPLACES}\n`);
        expect(text).not.toContain("evil");
      });
    });

    test.each(WAYS)("as twins, are open to a command in raced/config that %s", async (_what, way) => {
      expect((await raced(way, "raced/config")).text).toContain("evil");
    });
  });
});
