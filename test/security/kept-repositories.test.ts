import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";

const IDENTITY = "-c user.name=a -c user.email=a@example.org";

/** How long a name that a kept process makes may stand on the host before it is taken out. */
const TAKEN_OUT_MS = 500;

describe.each(actors())("repositories that commands make beside kept processes, as $kind", (actor) => {
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

  beforeEach(() => rmSync(at("RAN"), { force: true }));

  async function until(path: string): Promise<void> {
    for (let tried = 0; tried < 400 && !existsSync(at(path)); tried += 1) await sleep(25);
    expect(existsSync(at(path))).toBe(true);
  }

  async function untilGone(path: string): Promise<void> {
    for (let tried = 0; tried < 400 && existsSync(at(path)); tried += 1) await sleep(25);
    expect(existsSync(at(path))).toBe(false);
  }

  /** `later` runs after the reply of the command that `first` belongs to, in a process that it leaves behind. */
  async function runKept(name: string, first: string, early: string, later: string): Promise<void> {
    const script = `#!/bin/sh\n${early}\ntouch "$P/${name}.ready"\nwhile [ ! -e "$P/${name}.go" ]; do sleep 0.02; done\n${later}\ntouch "$P/${name}.done"\n`;
    broker.write(at(`${name}.sh`), script);
    const ran = await broker.run({
      cmd: `${first} && (P=$PWD sh ./${name}.sh >/dev/null 2>&1 &) ; while [ ! -e ${name}.ready ]; do sleep 0.02; done`,
      background: "keep",
    });
    expect(ran.exit).toBe(0);
    broker.write(at(`${name}.go`), "");
    await until(`${name}.done`);
    await sleep(TAKEN_OUT_MS);
  }

  const HOOK = (place: string): string =>
    `printf '#!/bin/sh\\ntouch %s\\n' "$P/RAN" > ${place}/.evil; printf '#!/bin/sh\\ntouch %s\\n' "$P/RAN" > ${place}/post-index-change; chmod +x ${place}/post-index-change`;
  const MONITOR = `[core]\\n\\tfsmonitor = touch %s; :\\n`;
  const PERSON = (name: string): void => {
    broker.write(at(`${name}/touched`), "x");
    hostGit(actor, at(name), "add", "touched");
    hostGit(actor, at(name), "status");
  };

  test.each([
    ["writes a hook", "a1", ":", HOOK("a1/.git/hooks")],
    ["appends a monitor to the settings", "a2", ":", `printf '${MONITOR}' "$P/RAN" >> a2/.git/config`],
    ["replaces the settings", "a3", ":", `git config -f a3/.git/config core.fsmonitor "touch $P/RAN; :"`],
    [
      "adds a second file of settings",
      "a4",
      "git -C a4 config extensions.worktreeConfig true",
      `printf '${MONITOR}' "$P/RAN" > a4/.git/config.worktree`,
    ],
    ["stands in the folder of hooks", "a5", "cd a5/.git/hooks", HOOK(".")],
    ["has the settings open for writing", "a6", "exec 3>>a6/.git/config", `printf '${MONITOR}' "$P/RAN" >&3`],
    ["has a descriptor of the git folder", "a7", "exec 4<a7/.git", HOOK("/proc/self/fd/4/hooks")],
    ["stands in the git folder", "a8", "cd a8/.git", `printf '${MONITOR}' "$P/RAN" >> config`],
    [
      "has a descriptor of the folder of hooks",
      "a9",
      "exec 4<a9/.git/hooks",
      `printf '#!/bin/sh\\ntouch %s\\n' "$P/RAN" > /proc/self/fd/4/post-index-change; chmod +x /proc/self/fd/4/post-index-change`,
    ],
    [
      "has a second name for the settings",
      "b1",
      "ln b1/.git/config b1-second",
      `printf '${MONITOR}' "$P/RAN" >> b1-second`,
    ],
    [
      "moves the git folder away and makes another",
      "b2",
      ":",
      `mv b2/.git b2/old; git init -q b2; printf '${MONITOR}' "$P/RAN" >> b2/.git/config`,
    ],
    [
      "moves the repository and changes it there",
      "b3",
      ":",
      `mv b3 b3-else; printf '${MONITOR}' "$P/RAN" >> b3-else/.git/config; mv b3-else b3`,
    ],
  ])("a kept process that %s changes nothing that git runs", async (_claim, name, early, later) => {
    await runKept(name, `git init -q ${name}`, early, later);
    if (existsSync(at(`${name}/.git/config`))) PERSON(name);
    expect(existsSync(at("RAN"))).toBe(false);
  });

  test("a repository that a kept process makes after the reply brings no code", async () => {
    await runKept(
      "late",
      "true",
      ":",
      `git init -q late; printf '${MONITOR}' "$P/RAN" >> late/.git/config; ${HOOK("late/.git/hooks")}`,
    );
    await untilGone("late/.git/hooks/post-index-change");
    await untilGone("late/.git/config");
    const kept = readdirSync(join(broker.home, "quarantine"), { recursive: true }).map(String);
    expect(kept.some((name) => name.endsWith("/config"))).toBe(true);
    expect(existsSync(at("RAN"))).toBe(false);
  });

  /** A git folder that is called otherwise, whose settings run a program. */
  const ODD = (name: string): string =>
    `mkdir -p ${name}/objects ${name}/refs; echo 'ref: refs/heads/main' > ${name}/HEAD; printf '[core]\\n\\tbare = false\\n\\tfsmonitor = touch %s; :\\n' "$P/RAN" > ${name}/config`;

  test.each([
    ["a file", "c1", `${ODD("c1-odd")}; mkdir c1; echo 'gitdir: ../c1-odd' > c1/.git`],
    ["a link", "c2", `${ODD("c2-odd")}; mkdir c2; ln -s ../c2-odd c2/.git`],
  ])("a kept process leads git to no folder of its own by %s", async (_claim, name, later) => {
    await runKept(name, "true", ":", later);
    expect(existsSync(at(`${name}-odd/config`))).toBe(true);
    await untilGone(`${name}/.git`);
  });

  test("a folder with a line end in its name hides no repository from what is sealed", async () => {
    const long = broker.run("while [ ! -e nl.end ]; do sleep 0.02; done");
    const place = "nl\nx/n";
    const done = await broker.run({
      cmd: `mkdir "$(printf 'nl\\nx')" && cd "$(printf 'nl\\nx')" && git init -q n && (P=$OLDPWD; while [ ! -e $P/nl.go ]; do sleep 0.02; done; printf '${MONITOR}' "$P/RAN" >> n/.git/config; touch $P/nl.done) >/dev/null 2>&1 &
        while [ ! -e n/.git/HEAD ] && [ ! -e "$(printf 'nl\\nx')/n/.git/HEAD" ]; do sleep 0.02; done; sleep 0.1`,
      background: "keep",
    });
    expect(done.exit).toBe(0);
    broker.write(at("nl.go"), "");
    await until("nl.done");
    if (existsSync(at(`${place}/.git/config`))) PERSON(place);
    expect(existsSync(at("RAN"))).toBe(false);
    broker.write(at("nl.end"), "");
    await long;
  });

  test.each([
    ["a worktree", "d1", "git worktree add -q d1", ":"],
    ["a worktree that it makes itself", "d2", "true", "git worktree add -q d2; sleep 0.4"],
  ])("a kept process leads %s to no other settings", async (_claim, name, first, again) => {
    const common = `.git/worktrees/${name}/commondir`;
    await runKept(
      name,
      first,
      `${ODD(`${name}-odd`)}; rm ${name}-odd/config`,
      `${again}; ${ODD(`${name}-odd`)}; echo "$P/${name}-odd" > ${common}; mv ${common} x; echo "$P/${name}-odd" > ${common}`,
    );
    // Whoever may remove a worktree may remove that file of it.
    if (existsSync(at(common))) hostGit(actor, at(name), "status");
    expect(existsSync(at("RAN"))).toBe(false);
  });

  test("a command that still runs changes nothing in what another one made, after the reply of that", async () => {
    const long = broker.run(
      `while [ ! -e e.go ]; do sleep 0.02; done; printf '${MONITOR}' RAN >> e/.git/config; printf '#!/bin/sh\\nid\\n' > e/.git/hooks/post-index-change; touch e.done; while [ ! -e e.end ]; do sleep 0.02; done`,
    );
    await broker.run("git init -q e");
    const before = readFileSync(at("e/.git/config"), "utf8");
    broker.write(at("e.go"), "");
    await until("e.done");
    expect(readFileSync(at("e/.git/config"), "utf8")).toBe(before);
    expect(existsSync(at("e/.git/hooks/post-index-change"))).toBe(false);
    broker.write(at("e.end"), "");
    await long;
  });

  test("its twin: commands of one world clone, commit and add worktrees beside each other", async () => {
    await broker.run(`git init -q source && git -C source ${IDENTITY} commit -q --allow-empty -m one`);
    const all = await Promise.all(
      [...Array(12).keys()].map((at) =>
        broker.run(
          `git clone -q source f${at} && cd f${at} && git config user.name b && git ${IDENTITY} commit -q --allow-empty -m two && git worktree add -q ../g${at} && git -C ../g${at} log --format=%s | wc -l`,
        ),
      ),
    );
    for (const ran of all) expect(ran).toMatchObject({ exit: 0, stderr: "", stdout: "2\n" });
  });

  let clones = 0;
  test("its twin: a kept process clones, and a later command works in the clone", async () => {
    // A second try finds nothing of the first.
    const [source, clone, tree] = ["source", "clone", "tree"].map((name) => `h${clones}-${name}`);
    clones++;
    const add = `git -C ${clone} worktree add -q ../${tree}`;
    await runKept(
      `h${clones}`,
      `git init -q ${source} && git -C ${source} ${IDENTITY} commit -q --allow-empty -m one`,
      ":",
      // A git beside the sealing may fail once, as the threat model says.
      `: > h.out; git clone -q ${source} ${clone} || { rm -rf ${clone}; git clone -q ${source} ${clone}; } >> h.out 2>&1
      ${add} || { rm -rf ${tree}; git -C ${clone} worktree prune; ${add} --force HEAD; } >> h.out 2>&1`,
    );
    expect(readFileSync(at("h.out"), "utf8")).toBe("");
    const next = await broker.run(`git -C ${clone} log --format=%s && git -C ${tree} log --format=%s`);
    expect(next).toMatchObject({ exit: 0, stderr: "", stdout: "one\none\n" });
  });

  test("its twin: a kept process commits in the repository, and a later command works in it", async () => {
    await runKept(
      "twin",
      "git init -q twin",
      ":",
      `cd twin && echo x > file && git add file && git ${IDENTITY} commit -qm one && git branch other && git config user.name kept`,
    );
    expect(readFileSync(at("twin/.git/config"), "utf8")).toContain("name = kept");
    expect(hostGit(actor, at("twin"), "log", "--format=%s")).toBe("one");
    const next = await broker.run(
      `cd twin && git checkout -q other && git config user.email b@example.org && git log --format=%s && ls .git/hooks | wc -l`,
    );
    expect(next).toMatchObject({ exit: 0, stderr: "" });
    expect(next.stdout).toMatch(/^one\n[1-9]/);
    expect(readFileSync(at("twin/.git/config"), "utf8")).toContain("b@example.org");
  });
});
