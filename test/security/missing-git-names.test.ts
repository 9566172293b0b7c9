import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Actor, actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { GIT, hostGit, triedGit } from "../support/git/git.ts";
import { needs } from "../support/run/needs.ts";

const POLICY = "id: default\nname: x\nmode: enforce\n";

/** How long a command goes on after it has made the name: the person works in the repository meanwhile. */
const GOES_ON = "touch made; sleep 1";

/** A busy machine runs the person's git no more often in that time. */
const LOOKS_AT_LEAST = 1;

/** A git folder whose settings run a program as soon as git reads them. */
const EVIL = (git: string, canary: string): string =>
  `mkdir ev; cp -r ${git}/objects ${git}/refs ev/; printf '[core]\\n\\trepositoryformatversion=0\\n\\tfsmonitor="touch ${canary}; false"\\n' > ev/config`;

/** A folder of hooks that `git status` runs when it refreshes the index. */
const HOOKS = (folder: string, canary: string): string =>
  `mkdir -p ${folder}; printf '#!/bin/sh\\ntouch ${canary}\\n' > ${folder}/post-index-change; chmod +x ${folder}/post-index-change`;

/** `CANARY` and `GIT` stand for the file that the attack would write and for the git folder that it attacks. */
const ATTACKS: readonly (readonly [string, string, string])[] = [
  ["leads git to another folder", "commondir", "echo $EV > GIT/commondir"],
  ["moves such a file there", "commondir", "echo $EV > c; mv c GIT/commondir"],
  ["links it there", "commondir", "echo $EV > c; ln c GIT/commondir"],
  ["makes a link of that name", "commondir", "echo $EV > c; ln -s $PWD/c GIT/commondir"],
  ["writes through a link that dangles", "commondir", "ln -s GIT/commondir c; echo $EV > c"],
  ["writes from within the folder", "commondir", "cd GIT && echo $EV > ./commondir; cd $P"],
  ["moves a folder of hooks there", "hooks", "HOOKS(d); mv d GIT/hooks"],
  [
    "moves the hooks of a repository there",
    "hooks",
    "mkdir x; git init -q --bare x/y.git; HOOKS(x/y.git/hooks); mv x/y.git/hooks GIT/hooks",
  ],
  [
    "moves a folder with a repository there",
    "hooks",
    "mkdir x; git init -q --bare x/y.git; HOOKS(x); mv x GIT/hooks",
  ],
  ["makes the folder of hooks there", "hooks", "HOOKS(GIT/hooks)"],
  ["links a folder of hooks there", "hooks", "HOOKS(d); ln -s $PWD/d GIT/hooks"],
];

type Place = {
  readonly kind: string;
  readonly work: string;
  readonly git: string;
};

const PLACES: readonly Place[] = [
  { kind: "the project", work: ".", git: ".git" },
  { kind: "a repository below", work: "app", git: "app/.git" },
  { kind: "a submodule", work: "sub", git: ".git/modules/sub" },
];

describe.each(actors())("names that a person's git folder lacks, as $kind", (actor) => {
  let broker: TestBroker;
  const at = (path: string): string => join(broker.project, path);
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    makeRepositories(actor, broker);
  });
  afterAll(() => broker.stop());
  beforeEach(async () => {
    for (const { git } of PLACES) {
      for (const name of ["hooks", "commondir", "config.worktree"])
        rmSync(at(join(git, name)), { recursive: true, force: true });
    }
    for (const name of ["ev", "c", "d", "x", "made", "RAN"])
      rmSync(at(name), { recursive: true, force: true });
    await broker.operator("POST", "/v1/world/restart", {
      all: true,
      force: true,
    });
  });

  const [project, ...others] = PLACES;
  const cases = [
    ...(project === undefined ? [] : ATTACKS.map((attack) => ({ attack, place: project }))),
    ...others.flatMap((place) =>
      [0, 6, 9].flatMap((at) => ATTACKS.slice(at, at + 1).map((attack) => ({ attack, place }))),
    ),
  ].map(({ attack: [claim, name, cmd], place }) => ({
    claim,
    name,
    cmd,
    ...place,
  }));

  test.each(cases)(
    "a command that $claim runs nothing of a person's in $kind while it goes on",
    async ({ name, cmd, work, git }) => {
      const canary = at("RAN");
      const attack = cmd
        .replaceAll(/HOOKS\(([^)]*)\)/g, (_, folder: string) => HOOKS(folder, canary))
        .replaceAll("GIT", git);
      const running = broker.run(`P=$PWD; EV=$PWD/ev; ${EVIL(git, canary)}; ${attack}; ${GOES_ON}`);
      const looks = await workUntil(actor, at(work), at("made"), running);
      const ran = await running;
      expect(ran.exit).toBe(0);
      expect(looks).toBeGreaterThanOrEqual(LOOKS_AT_LEAST);
      expect(existsSync(canary)).toBe(false);
      expect(existsSync(at(join(git, name)))).toBe(false);
      // Refused before it was carried out: nothing had to be taken out.
      expect(messages(ran)).toContain(`'${at(join(git, name))}' was not written`);
    },
  );

  test("the broker moves no folder of an earlier command's there either", async () => {
    await broker.run(`mkdir x && git init -q --bare x/y.git && ${HOOKS("x", at("RAN"))}`);
    await broker.operator("POST", "/v1/world/restart", { all: true, force: true });
    const ran = await broker.run(
      "mv -T x .git/hooks; mv -T x .git/modules/sub/hooks; mv x moved && mv moved x",
    );
    expect(ran).toMatchObject({ exit: 0 });
    for (const git of [".git", ".git/modules/sub"]) expect(existsSync(at(join(git, "hooks")))).toBe(false);
    expect(existsSync(at("x/y.git/config"))).toBe(true);
  });

  test("a thread that changes the path after the look leaves nothing there for longer than it takes to take it out", async (context) => {
    needs("python3");
    broker.write(at("race.py"), RACE);
    const running = broker.run(`python3 race.py; ${GOES_ON}`);
    await untilThere(at("made"));
    await sleep(500);
    expect(existsSync(at(".git/commondir"))).toBe(false);
    if (!messages(await running).includes("it was moved to"))
      context.skip("no name of the thread's came past the look in this run");
  });

  test("its twin: a command adds a worktree, and works in it, while nothing of it is refused", async () => {
    const ran = await broker.run(
      `${GIT} worktree add -q wt && cd wt && ${GIT} commit -q --allow-empty -m two && git log --format=%s | wc -l`,
    );
    expect(ran).toMatchObject({ exit: 0, stderr: "", stdout: "3\n" });
    expect(readFileSync(at(".git/worktrees/wt/commondir"), "utf8")).toBe("../..\n");
    const gone = await broker.run(
      "git worktree remove wt && git worktree add -q --detach wt && git worktree remove wt",
    );
    expect(gone).toMatchObject({ exit: 0, stderr: "" });
  });

  test("its twin: a command makes, clones and moves repositories, and makes one again where it removed it", async () => {
    const ran = await broker.run(
      `git init -q made.d && git -C made.d config user.name b && ${GIT} -C made.d commit -q --allow-empty -m one && git clone -q made.d copy && git clone -q --bare made.d bare.git && mv copy moved && git -C moved log --format=%s && rm -rf made.d && git init -q made.d && git -C made.d config user.name c`,
    );
    expect(ran).toMatchObject({ exit: 0, stderr: "", stdout: "one\n" });
    const next = await broker.run(
      "rm -rf made.d bare.git && git init -q made.d && git init -q --bare bare.git && rm -rf made.d moved bare.git",
    );
    expect(next).toMatchObject({ exit: 0, stderr: "" });
  });

  test("its twin: a command adds a submodule, and `git init` in a repository with hooks goes on", async () => {
    hostGit(actor, at("app"), "init", "-q");
    mkdirSync(at("app/.git/hooks"), { recursive: true });
    await broker.operator("POST", "/v1/world/restart", {
      all: true,
      force: true,
    });
    const ran = await broker.run(
      `git -C app init -q && ${GIT} submodule add -q ./app mod && git -C mod log --format=%s; ${GIT} submodule deinit -qf mod; git rm -qf --cached .gitmodules; true`,
    );
    expect(ran.stdout).toBe("first\n");
    expect(existsSync(at(".git/modules/mod/config"))).toBe(true);
  });

  test("its twin: names like these in ordinary folders are made, moved and linked", async () => {
    const ran = await broker.run(
      "mkdir o && echo 1 > o/commondir && mkdir o/hooks && mv o/hooks o/h && mv o/h o/hooks && echo 2 > config && ln -s config config.worktree && mv o p && cat p/commondir config.worktree && rm -r p config config.worktree",
    );
    expect(ran).toMatchObject({ exit: 0, stderr: "", stdout: "1\n2\n" });
  });
});

describe.each(actors())("the same under the policies as they are shipped, as $kind", (actor) => {
  test.each(["default", "strict"])("with '%s'", async (profile) => {
    // It requires a network of the world's own.
    if (profile === "strict") needs("nft");
    const broker = await TestBroker.start(actor);
    try {
      hostGit(actor, broker.project, "init", "-q");
      broker.write(join(broker.project, "a"), "a\n");
      hostGit(actor, broker.project, "add", "a");
      hostGit(actor, broker.project, "commit", "-qm", "first");
      if (profile !== "default") broker.write(join(broker.project, ".substrate-profile"), `${profile}\n`);
      const canary = join(broker.project, "RAN");
      const running = broker.run(`${EVIL(".git", canary)}; echo ../ev > .git/commondir; ${GOES_ON}`);
      await workUntil(actor, broker.project, join(broker.project, "made"), running);
      await running;
      expect(existsSync(canary)).toBe(false);
      expect(existsSync(join(broker.project, ".git/commondir"))).toBe(false);
    } finally {
      await broker.stop();
    }
  });
});

/** Repositories of a person's, whose git folders have settings and nothing else that is sealed. */
function makeRepositories(actor: Actor, broker: TestBroker): void {
  for (const name of ["", "app", "lib"]) {
    const folder = join(broker.project, name);
    broker.write(join(folder, "a"), "a\n");
    hostGit(actor, folder, "init", "-q");
    hostGit(actor, folder, "add", "a");
    hostGit(actor, folder, "commit", "-qm", "first");
  }
  hostGit(actor, broker.project, "submodule", "add", "-q", "./lib", "sub");
  hostGit(actor, broker.project, "commit", "-qm", "second");
}

/** The person's git, again and again from the moment in which the command has made its name until it ends. How often. */
async function workUntil(
  actor: Actor,
  folder: string,
  made: string,
  running: Promise<unknown>,
): Promise<number> {
  let over = false;
  const ending = running.finally(() => {
    over = true;
  });
  // The caller awaits the command itself, ignoring: it hears of a failure there.
  ending.catch(() => undefined);
  await untilThere(made);
  let looks = 0;
  while (!over) {
    // A new time of the file makes git write the index anew, which runs a hook.
    triedGit(actor, folder, ["-c", "core.untrackedCache=false", "add", "-A", "--", "a"]);
    triedGit(actor, folder, ["status"]);
    triedGit(actor, folder, ["update-index", "--refresh", "--force-write-index"]);
    looks += 1;
    await sleep(20);
  }
  return looks;
}

function messages({ notices }: { readonly notices: readonly { readonly message: string }[] }): string {
  return notices.map(({ message }) => message).join("\n");
}

async function untilThere(path: string): Promise<void> {
  for (let tried = 0; tried < 400 && !existsSync(path); tried += 1) await sleep(25);
  expect(existsSync(path)).toBe(true);
}

/** A race: one thread creates a file while another thread rewrites the path of that call in memory. */
const RACE = `
import ctypes, os, threading, time
libc = ctypes.CDLL(None)
harmless, wanted = b".git/commondiX\\0", b".git/commondir\\0"
text = ctypes.create_string_buffer(harmless)
end = time.monotonic() + 2
def change():
    while time.monotonic() < end:
        ctypes.memmove(text, wanted, len(wanted))
        ctypes.memmove(text, harmless, len(harmless))
threading.Thread(target=change).start()
while time.monotonic() < end:
    fd = libc.open(text, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o644)
    if fd >= 0: os.close(fd)
    try: os.unlink(".git/commondiX")
    except OSError: pass
`;
