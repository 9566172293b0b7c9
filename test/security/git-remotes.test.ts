/** Remotes that commands add, remove and rename: they open no host, and lead no push or pull of a person's elsewhere. */
import { chownSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";
import { actorsWith } from "../support/run/needs.ts";
import { actors } from "../support/users/users.ts";

const PERSONS = "http://registry.example.test/a.git";
const OTHER = "stranger.example.test";

const PUSHES = [["push"], ["push", "-q", "-u", "origin", "main"], ["pull", "-q"]] as const;

/** A row of a test: its title, the commands, and the git commands that the person runs afterwards. */
type Row = [what: string, commands: readonly string[], pushes?: readonly (readonly string[])[]];

type Shown = {
  readonly presets: Readonly<
    Record<"@git", { readonly hosts: readonly string[]; readonly notes: readonly string[] }>
  >;
};

describe.each(actorsWith("python3", "nft"))("@git and the remotes of commands, as $kind", (actor) => {
  let place: NetworkPlace;
  beforeEach(async () => {
    place = await NetworkPlace.open(actor, { default: networkPolicy(["@git"]) });
  });
  afterEach(() => place.close());

  const host = (...words: readonly string[]): string => hostGit(actor, place.broker.project, ...words);

  /** After the time in which a new remote of a person's opens its host. */
  async function reached(name: string): Promise<string | undefined> {
    await place.run("sleep 2.5");
    return (await place.dial([`${name} 80`])).dialled[0]?.came;
  }

  async function shown(): Promise<Shown["presets"]["@git"]> {
    const { stdout } = await place.broker.cli(["policy", "show", "--json"]);
    return (JSON.parse(stdout) as Shown).presets["@git"];
  }

  test("a person's remote opens its host, also one that a command took away and put back; a command's opens none", async () => {
    host("init", "-q");
    host("remote", "add", "home", PERSONS);
    expect(await reached("registry.example.test")).toBe("connected");
    const added = await place.run(
      `git remote add x http://${OTHER}/x.git && git config remote.y.url ssh://${OTHER}:80/y && git remote add z http://${OTHER}/\u00fc.git`,
    );
    expect(added).toMatchObject({ exit: 0 });
    expect(host("remote")).toBe("home\nx\ny\nz");
    expect(await reached(OTHER)).toBe("NXDOMAIN");
    const back = await place.run(`git remote remove home && git remote add home ${PERSONS}`);
    expect(back).toMatchObject({ exit: 0 });
    expect(await reached("registry.example.test")).toBe("connected");
    // Another process reads the same record, and a person's change of the file adopts nothing.
    host("config", "user.name", "Ann");
    expect(await shown()).toEqual({
      hosts: ["registry.example.test:80"],
      notes: [
        expect.stringMatching(/left out 3 addresses .*\('x', 'y', 'z'\)\. Name the host in net\.allowed$/),
      ],
    });
    host("remote", "add", "mine", `http://${OTHER}/mine.git`);
    expect(await reached(OTHER)).toBe("connected");
    host("remote", "remove", "mine");
    const moved = `${place.broker.project}-moved`;
    renameSync(place.broker.project, moved);
    try {
      const { stdout } = await place.broker.cli(["policy", "show", "--json"], { cwd: moved });
      expect((JSON.parse(stdout) as Shown).presets["@git"].hosts).toEqual(["registry.example.test:80"]);
    } finally {
      renameSync(moved, place.broker.project);
    }
  });

  test("a repository that commands made opens no host", async () => {
    const made = await place.run(`git init -q && git remote add x http://${OTHER}/x.git`);
    expect(made).toMatchObject({ exit: 0 });
    expect(host("remote", "get-url", "x")).toBe(`http://${OTHER}/x.git`);
    expect(await reached(OTHER)).toBe("NXDOMAIN");
    expect((await shown()).hosts).toEqual([]);
  });
});

describe.each(actors())("a person's next push and pull, as $kind", (actor) => {
  let broker: TestBroker;
  let ground: string;
  beforeAll(async () => {
    ground = mkdtempSync(join(actor.home, "sb-remotes-"));
    chownSync(ground, actor.uid, actor.gid);
    const policy = `id: default\nname: Remotes\nmode: enforce\nfs:\n  write: ["$PROJECT/**", "${ground}/**"]\n`;
    broker = await TestBroker.start(actor, { policies: { default: policy } });
  });
  afterAll(async () => {
    await broker.stop();
    rmSync(ground, { recursive: true, force: true });
  });

  const host = (...words: readonly string[]): string => hostGit(actor, broker.project, ...words);
  const evil = (): string => join(ground, "evil.git");
  const home = (): string => join(ground, "home.git");
  const heads = (name: string): string =>
    hostGit(actor, join(ground, name), "for-each-ref", "--format=%(objectname)");

  /** A person's clone with a commit that is not pushed; the other repository is the attacker's. */
  beforeEach(() => {
    rmSync(join(broker.project, ".git"), { recursive: true, force: true });
    for (const name of ["home.git", "evil.git"]) {
      rmSync(join(ground, name), { recursive: true, force: true });
      hostGit(actor, ground, "init", "-q", "--bare", "-b", "main", name);
    }
    host("init", "-q", "-b", "main");
    host("remote", "add", "origin", join(ground, "home.git"));
    host("commit", "-q", "--allow-empty", "-m", "one");
    host("push", "-q", "-u", "origin", "main");
    host("commit", "-q", "--allow-empty", "-m", "two");
  });

  test.each([
    ["a remote that is taken away and put back", ["git remote remove origin", "git remote add origin EVIL"]],
    [
      "and with it what its branch follows",
      [
        "git remote remove origin",
        "git remote add origin EVIL",
        "git config branch.main.remote origin",
        "git config branch.main.merge refs/heads/main",
      ],
    ],
    ["a remote that is renamed and put back", ["git remote rename origin old", "git remote add origin EVIL"]],
    [
      "a renamed remote with a second address",
      ["git remote rename origin old", "git config --add remote.old.url EVIL"],
    ],
    ["a push remote", ["git remote add fork EVIL", "git config branch.main.pushRemote fork"]],
    ["another upstream", ["git remote add fork EVIL", "git config branch.main.remote fork"]],
    ["more than a person typed", ["git remote add fork EVIL", "git config push.default matching"]],
    ["another branch than a person typed", ["git config push.default upstream"]],
    [
      "what was taken away before a person changed another setting",
      ["git remote remove origin", "PERSON config user.name Ann", "git remote add origin EVIL"],
    ],
    [
      "a first origin beside a remote of another name",
      [
        "PERSON remote rename origin github",
        "git branch --unset-upstream main && git remote add origin EVIL",
      ],
    ],
    [
      "a remote or upstream that is taken away beside a command's origin",
      [
        "PERSON remote rename origin github",
        "git remote add origin EVIL",
        "git config push.default current",
        "git branch --unset-upstream main",
      ],
      // Whoever names a command's remote goes there.
      [["push"], ["pull", "-q"]],
    ],
    [
      "the loss of an address for pushes alone",
      ["PERSON remote set-url --push origin no_push", "git config --unset remote.origin.pushurl"],
    ],
    [
      "a remote of a command's that a person's branch follows",
      [
        "PERSON remote remove origin",
        "git remote add mine HOME",
        "PERSON push -q -u mine main",
        "git remote set-url mine EVIL",
      ],
    ],
    [
      "the modern spelling of a remote in the old one",
      [
        "PERSON remote remove origin",
        "PERSON config remote.origin.url HOME",
        "git config --add remote.origin.url EVIL",
      ],
    ],
  ] satisfies Row[] as Row[])("is not led elsewhere by %s", async (_what, commands, pushes = PUSHES) => {
    const ran = [];
    for (const step of commands.map((one) => one.replaceAll("EVIL", evil()).replaceAll("HOME", home())))
      if (step.startsWith("PERSON ")) host(...step.split(" ").slice(1));
      else ran.push(await broker.run({ cmd: step }));
    expect(ran.some(({ exit }) => exit !== 0)).toBe(true);
    expect(ran.flatMap(({ notices }) => notices.map(({ message }) => message)).join("\n")).toContain(
      "was not changed",
    );
    for (const words of pushes) {
      try {
        host(...words);
      } catch {
        // Without its remote a person's push fails, and goes nowhere.
      }
    }
    expect(heads("evil.git")).toBe("");
  });

  test("does not keep commands from branches of their own, that follow a person's remote or none", async () => {
    const ran = await broker.run({
      cmd: `git checkout -q -b topic origin/main && git switch -q -c other --track origin/main && git push -q -u origin HEAD:other 2>/dev/null; git checkout -q -b new && git push -q -u origin new && git branch -q -u origin/main new && git branch -q --unset-upstream topic && git config --get-regexp '^branch'`,
    });
    expect(ran).toMatchObject({ exit: 0, notices: [] });
    expect(ran.stdout).toContain("branch.other.merge refs/heads/other\n");
    expect(ran.stdout).toContain("branch.new.merge refs/heads/main\n");
    expect(heads("home.git").split("\n")).toHaveLength(3);
  });

  test("waits for no file of very many routes", async () => {
    const branches = (name: string): string => `[branch "main"]\n${`\tremote = ${name}\n`.repeat(6000)}`;
    const remotes = `[remote "one"]\n\turl = /x\n[remote "two"]\n\turl = /x\n`;
    const write = `while read -r name; do { cat "$1"; cat $name; } > .git/new && mv .git/new .git/config; done`;
    broker.write(join(broker.project, "one"), remotes + branches("one"));
    broker.write(join(broker.project, "two"), remotes + branches("two"));
    const began = performance.now();
    await broker.run({ cmd: `cp .git/config was; set -- was; printf 'one\\ntwo\\n' | { ${write}; }` });
    expect(performance.now() - began).toBeLessThan(4000);
  });

  test("goes where a renamed remote leads, and commands may follow with branches of their own", async () => {
    const ran = await broker.run({
      cmd: `git remote rename origin home && git remote add fork ${ground}/evil.git && git checkout -q -b topic && git push -q -u fork topic && git branch -m topic other`,
    });
    expect(ran).toMatchObject({ exit: 0, notices: [] });
    expect(host("config", "branch.other.remote")).toBe("fork");
    host("checkout", "-q", "main");
    host("push", "-q");
    expect(heads("home.git")).toBe(host("rev-parse", "main"));
    const back = await broker.run({
      cmd: "git remote rename home origin && git branch -D other && git remote remove fork",
    });
    expect(back).toMatchObject({ exit: 0, notices: [] });
    expect(host("config", "branch.main.remote")).toBe("origin");
  });
});
