import {
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Actor, actors } from "../support/users/users.ts";
import { eventually, type Ran, TestBroker } from "../support/broker/broker.ts";
import { GIT, hostGit } from "../support/git/git.ts";
import { buildProgram } from "../support/programs/programs.ts";
import { REPLACE } from "../support/programs/git-settings.ts";

const ENFORCE = "id: default\nname: Settings of git\nmode: enforce\n";

/** The next command begins a world of its own. */
async function restart(broker: TestBroker): Promise<void> {
  const { status } = await broker.operator("POST", "/v1/world/restart", { all: true, force: true });
  expect(status).toBe(200);
}

function refusals(ran: Ran): readonly string[] {
  return ran.notices.filter(({ kind }) => kind === "denied").map(({ message }) => message);
}

describe.each(actors())("settings of git that run nothing, as $kind", (actor) => {
  let broker: TestBroker;
  let ground: string;
  const config = (): string => join(broker.project, ".git/config");
  const host = (...words: readonly string[]): string => hostGit(actor, broker.project, ...words);

  beforeAll(async () => {
    ground = mkdtempSync(join(actor.home, "sb-settings-"));
    chownSync(ground, actor.uid, actor.gid);
    hostGit(actor, ground, "init", "-q", "--bare", "-b", "main", "far.git");
    const policy = `${ENFORCE}fs:\n  write: ["$PROJECT/**", "${ground}/far.git/**"]\n`;
    broker = await TestBroker.start(actor, { policies: { default: policy } });
    host("init", "-q", "-b", "main");
    host("config", "alias.st", "!git status");
    host("config", "core.pager", "less -R");
    host("remote", "add", "kept", "https://example.org/one.git");
  });
  afterAll(async () => {
    await broker.stop();
    rmSync(ground, { recursive: true, force: true });
  });

  /** What a person set there stays, word for word. */
  function expectPersons(): void {
    expect(host("config", "alias.st")).toBe("!git status");
    expect(host("config", "core.pager")).toBe("less -R");
  }

  test("a command names itself, adds a remote, commits, pushes with -u, and the host has it all", async () => {
    const cmd = `git config user.name Ann && git config user.email ann@example.org && git remote add origin ${ground}/far.git && echo 1 > f && git add f && git commit -qm one && git push -qu origin main && git status -sb`;
    expect(await broker.run(cmd)).toMatchObject({
      exit: 0,
      stdout: "## main...origin/main\n",
      stderr: "",
      notices: [],
    });
    expect(host("config", "--local", "user.email")).toBe("ann@example.org");
    expect(host("config", "branch.main.remote")).toBe("origin");
    expect(hostGit(actor, join(ground, "far.git"), "log", "--format=%an %s")).toBe("Ann one");
    expectPersons();
  });

  test("changes, renames and removes settings, stashes, and sets what a branch follows", async () => {
    const cmd = `git config user.name Bob && git config user.email a@example.org && git config --unset user.email && git config user.email b@example.org && git remote rename origin far && git checkout -q -b topic && git branch -q --set-upstream-to far/main && echo 2 > f && git stash -q && git stash pop -q && git checkout -q -f main && git remote add gone x && git remote remove gone && git config --get-regexp '^(user|branch[.]topic)'`;
    expect(await broker.run(cmd)).toMatchObject({
      exit: 0,
      stdout:
        "user.name Bob\nuser.email b@example.org\nbranch.topic.remote far\nbranch.topic.merge refs/heads/main\n",
      stderr: "",
      notices: [],
    });
    expect(host("remote")).toBe("far\nkept");
    expectPersons();
  });

  test("the change is in the diff, and is not listed as what runs later", async () => {
    const { fs_diff } = await broker.run("git config user.name Cleo");
    expect(fs_diff).toMatchObject({ mods: [".git/config"], writes: [], deletes: [], autorun: [] });
  });

  test("git init in a repository that is there keeps what its modes are worth, and the mode of the file", async () => {
    const { mode } = statSync(config());
    expect(await broker.run("git init")).toMatchObject({ exit: 0, stderr: "", notices: [] });
    expect(host("config", "core.filemode")).toBe("true");
    expect(statSync(config()).mode).toBe(mode);
    expectPersons();
  });

  test("commands of two worlds at once lose nothing", async () => {
    const keys = (agent: string): string =>
      Array.from(
        { length: 12 },
        (_each, at) => `until git config branch.${agent}${at}.merge x 2>/dev/null; do :; done`,
      ).join("; ");
    const both = ["one", "two"].map((agent_id) => broker.run({ agent_id, cmd: keys(agent_id) }));
    for (const ran of await Promise.all(both)) expect(ran.exit).toBe(0);
    expect(host("config", "--get-regexp", "^branch[.](one|two)[0-9]+[.]merge").split("\n")).toHaveLength(24);
    expectPersons();
  });

  test.each([
    [
      "a remote whose name is an option of the fetch",
      "'remote.--upload-pack=touch RAN;git-upload-pack.url' .",
    ],
    ["one that a git which only looks would fetch from", "remote.p.promisor true"],
    ["a branch that follows such a name", "branch.main.remote '--upload-pack=touch RAN'"],
    ["a branch that follows another folder", "branch.main.remote ./beside"],
    ["a program as the address of a new remote", "remote.odd.url 'ext::sh -c id'"],
    ["an address that a helper of that name reaches", "remote.odd.url ext://sh"],
    ["another address of a remote that stands there", "remote.kept.url https://example.org/other.git"],
    ["one more address for pushes with it", "--add remote.kept.pushurl https://example.org/other.git"],
    ["where all pushes go", "remote.pushDefault odd"],
    ["what each push sends along", "--add remote.kept.push +refs/heads/*:refs/heads/*"],
  ])("its attack: %s is refused, and the reply says how a person sets it", async (_what, words) => {
    const before = readFileSync(config(), "utf8");
    const ran = await broker.run(`git config ${words}`);
    expect(ran.exit).not.toBe(0);
    expect(readFileSync(config(), "utf8")).toBe(before);
    expect(ran.notices).toMatchObject([{ kind: "denied" }]);
    expect(ran.notices[0]?.message).toContain("A person can set it on the host: git config");
  });

  test("a person's change meanwhile is kept, and holds for the next command", async () => {
    await broker.run("git config user.name Dan");
    host("config", "core.editor", "vim");
    const ran = await broker.run(
      "git config user.name Eve; git config core.editor; git config core.editor x",
    );
    expect(ran.stdout).toBe("vim\n");
    expect(refusals(ran)).toHaveLength(1);
    expect([host("config", "core.editor"), host("config", "--local", "user.name")]).toEqual(["vim", "Eve"]);
  });

  test("a file that was written on Windows keeps its ends of lines, and is changed and judged as every other", async () => {
    const was = readFileSync(config(), "utf8");
    writeFileSync(config(), was.replaceAll("\n", "\r\n"));
    try {
      const ran = await broker.run("git config user.name Dora && git config branch.main.rebase true");
      expect(ran).toMatchObject({ exit: 0, stderr: "", notices: [] });
      expect(host("config", "--local", "user.name")).toBe("Dora");
      expect(readFileSync(config(), "utf8")).toContain("\tst = !git status\r\n");
      expect(refusals(await broker.run("git config core.pager 'touch RAN;'"))[0]).toContain("core.pager");
      expectPersons();
    } finally {
      writeFileSync(config(), was);
    }
  });

  test("a person's change beside one that is refused is not taken for the command's", async () => {
    const running = broker.run(
      "git config core.pager evil; touch ready; while [ ! -e done ]; do sleep 0.1; done",
    );
    expect(await eventually(() => existsSync(join(broker.project, "ready")), 10_000)).toBe(true);
    host("config", "core.sshCommand", "ssh -v");
    broker.write(join(broker.project, "done"), "");
    expect(refusals(await running)).toHaveLength(1);
    expect(host("config", "core.sshCommand")).toBe("ssh -v");
    expectPersons();
  });

  test("in a repository below, in a bare one and in a submodule a command does the same", async () => {
    for (const [name, ...more] of [["app"], ["store.git", "--bare"]] as const)
      hostGit(actor, broker.project, "init", "-q", ...more, name);
    hostGit(actor, join(broker.project, "app"), "commit", "-q", "--allow-empty", "-m", "first");
    host("submodule", "--quiet", "add", join(broker.project, "app"), "lib");
    await restart(broker);
    const places = ["app", "store.git", "lib"];
    for (const place of places) {
      const ran = await broker.run(`cd ${place} && git config user.name Fay && git config core.pager evil`);
      expect(refusals(ran)).toHaveLength(1);
      expect(hostGit(actor, join(broker.project, place), "config", "--local", "user.name")).toBe("Fay");
    }
    const submodule = await broker.run({ cmd: "git config user.name Gil", cwd: join(broker.project, "lib") });
    expect(submodule).toMatchObject({ exit: 0, stderr: "" });
    expect(hostGit(actor, join(broker.project, "lib"), "config", "--local", "user.name")).toBe("Gil");
  });

  test("in a worktree a command writes the settings of its main repository", async () => {
    const tree = join(ground, "tree");
    host("worktree", "add", "-q", tree, "-b", "tree");
    const ran = await broker.run({ cmd: "git config user.name Hal; git config core.pager evil", cwd: tree });
    expect(refusals(ran)).toHaveLength(1);
    expect(host("config", "--local", "user.name")).toBe("Hal");
    expectPersons();
  });

  test("an isolated command changes nothing of them, and its commit is held", async () => {
    const before = readFileSync(config(), "utf8");
    const policy = join(broker.home, "policies/default.yaml");
    const shipped = readFileSync(policy, "utf8");
    broker.write(policy, `${shipped}commands:\n  isolated: ["git *"]\n`);
    const ran = await broker.run(
      `${GIT} commit -q --allow-empty -m held; git config user.name Ida; git log -1 --format=%s`,
    );
    expect(ran).toMatchObject({ stdout: "held\n", fs_diff: { held: true } });
    expect(readFileSync(config(), "utf8")).toBe(before);
    expect(host("log", "-1", "--format=%s")).not.toBe("held");
    broker.write(policy, shipped);
  });

  test("git init in a project without a repository leaves one with its settings", async () => {
    const cwd = mkdtempSync(join(broker.folder, "new-"));
    chownSync(cwd, actor.uid, actor.gid);
    const cmd =
      "git init -q -b main && git config user.name Jo && git config user.email j@example.org && git remote add origin x && git commit -q --allow-empty -m one";
    expect(await broker.run({ cmd, cwd })).toMatchObject({ exit: 0, stderr: "", notices: [] });
    expect(hostGit(actor, cwd, "log", "--format=%s")).toBe("one");
    expect(hostGit(actor, cwd, "config", "remote.origin.url")).toBe("x");
  });

  test("its attack: the same with a hook and a program is taken out when the command ends", async () => {
    const cwd = mkdtempSync(join(broker.folder, "new-"));
    chownSync(cwd, actor.uid, actor.gid);
    const cmd =
      "git init -q && git config core.pager evil; printf '#!/bin/sh\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit";
    await broker.run({ cmd, cwd });
    expect(existsSync(join(cwd, ".git/config"))).toBe(false);
    expect(existsSync(join(cwd, ".git/hooks/post-commit"))).toBe(false);
  });
});

describe.each(actors())("a repository that a command makes, as $kind", (actor) => {
  test("gets no hook and no program from a later command that ends its world", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: ENFORCE } });
    try {
      expect(await broker.run("git init -q && git config user.name Kim")).toMatchObject({
        exit: 0,
        notices: [],
      });
      const hook = "printf '#!/bin/sh\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit";
      await broker.run(`${hook}; git config core.pager evil; kill -9 -1`);
      expect(existsSync(join(broker.project, ".git/hooks/post-commit"))).toBe(false);
      expect(readFileSync(join(broker.project, ".git/config"), "utf8")).not.toContain("evil");
    } finally {
      await broker.stop();
    }
  });

  test("its twin: a person's repository keeps its own when a command ends its world", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: ENFORCE } });
    try {
      hostGit(actor, broker.project, "init", "-q");
      hostGit(actor, broker.project, "config", "core.pager", "less -R");
      broker.write(join(broker.project, ".git/hooks/post-commit"), "#!/bin/sh\n");
      await broker.run("git config user.name Lou; git config core.pager evil; kill -9 -1");
      expect(hostGit(actor, broker.project, "config", "core.pager")).toBe("less -R");
      expect(hostGit(actor, broker.project, "config", "--local", "user.name")).toBe("Lou");
      expect(existsSync(join(broker.project, ".git/hooks/post-commit"))).toBe(true);
    } finally {
      await broker.stop();
    }
  });
});

describe.each(actors())("a repository that another world made, as $kind", (actor) => {
  test("gets settings by both, each of which has sealed it", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: ENFORCE } });
    try {
      repository(actor, broker);
      await broker.run({ agent_id: "one", cmd: "git init -q sub" });
      const config = join(broker.project, "sub/.git/config");
      const ran = await broker.run({ agent_id: "two", cmd: "git -C sub config user.name Two" });
      expect(ran).toMatchObject({ exit: 0, notices: [] });
      const evil = "echo '[core]\npager = evil' >> sub/.git/config";
      for (const agent of ["one", "two"])
        expect((await broker.run({ agent_id: agent, cmd: evil })).exit).not.toBe(0);
      const last = await broker.run({ agent_id: "one", cmd: "git -C sub config user.email one@example.org" });
      expect(last).toMatchObject({ exit: 0, notices: [] });
      expect(readFileSync(config, "utf8")).toMatch(/name = Two\n\temail = one@example.org\n$/);
    } finally {
      await broker.stop();
    }
  });
});

describe.each(actors())("who cheats while settings are replaced, as $kind", (actor) => {
  let broker: TestBroker;
  const config = (): string => join(broker.project, ".git/config");

  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: ENFORCE } });
    repository(actor, broker);
    buildProgram(broker, "replace", REPLACE);
  });
  afterAll(() => broker.stop());

  /** Looks at what the host reads for as long as the command runs. */
  async function watched(cmd: string): Promise<{ readonly ran: Ran; readonly seen: ReadonlySet<string> }> {
    const seen = new Set<string>();
    let over = false;
    const running = broker.run(cmd).finally(() => {
      over = true;
    });
    while (!over) {
      seen.add(readFileSync(config(), "utf8"));
      await turn();
    }
    seen.add(readFileSync(config(), "utf8"));
    return { ran: await running, seen };
  }

  test.each([
    ["writes other content into the file while the call waits", "content", "80"],
    ["puts other files and links in its place", "names", "80"],
    ["keeps the file open, mapped and by another name, and writes to it later", "writer", "30"],
    ["opens each new file as early as it can, and anew for writing", "opener", "80"],
    ["renames the folder above", "parent", "80"],
  ])(
    "has nothing of it on the host: %s",
    async (_claim, way, rounds) => {
      const { ran, seen } = await watched(`./replace ${way} ${rounds} .git`);
      expect({ exit: ran.exit, stderr: ran.stderr }).toEqual({ exit: 0, stderr: "" });
      expect([...seen].filter((text) => text.includes("evil"))).toEqual([]);
      expect(ran.stdout).toBe("1 0\n");
      expect(readFileSync(config(), "utf8")).toContain("name = good");
      expect(left(broker)).toEqual([]);
    },
    60_000,
  );

  test("nor does a command of another world that opens each new file as early as it can", async () => {
    const [cheating, { ran, seen }] = await Promise.all([
      broker.run({ agent_id: "other", cmd: "./replace opener 0 .git" }),
      watched("./replace content 60 .git"),
    ]);
    expect(cheating.stdout).toBe("0 0\n");
    expect(ran.stdout).toBe("1 0\n");
    expect([...seen].filter((text) => text.includes("evil"))).toEqual([]);
  }, 60_000);

  test("its twin: the same program has its way with a folder that is no repository's", async () => {
    const ran = await broker.run("mkdir -p plain/hooks && echo > plain/config && ./replace opener 20 plain");
    expect(ran.stdout).toMatch(/^1 [1-9]/);
  });

  test.each([
    ["a link", "ln -s ../evil.config .git/config.lock"],
    ["a pipe", "mkfifo .git/config.lock"],
    ["a folder", "mkdir .git/config.lock"],
    ["a file with two names", "printf '[user]\\n\\tname = evil\\n' > e; ln e .git/config.lock"],
    [
      "more than a mebibyte",
      "{ printf '[user]\\n\\tname = evil\\n'; head -c 1100000 /dev/zero | tr '\\0' '#'; } > .git/config.lock",
    ],
    [
      "a file of another name",
      "printf '[user]\\n\\tname = evil\\n' > .git/other; mv .git/other .git/config; rm -f .git/other; false",
    ],
  ])("%s does not become the settings", async (_what, make) => {
    const before = readFileSync(config(), "utf8");
    const ran = await broker.run(
      `${make} && mv -fT .git/config.lock .git/config; echo $?; rm -rf .git/config.lock e`,
    );
    expect(ran.stdout).toBe("1\n");
    expect(readFileSync(config(), "utf8")).toBe(before);
  });

  test("through a link to the git folder settings are judged as by its own name", async () => {
    const ran = await broker.run(
      "ln -s .git way; git config -f way/config user.name linked; git config -f way/config core.pager evil; rm way",
    );
    expect(refusals(ran)).toHaveLength(1);
    expect(hostGit(actor, broker.project, "config", "--local", "user.name")).toBe("linked");
    expect(readFileSync(config(), "utf8")).not.toContain("evil");
  });

  test("a repository whose hooks folder is a link gets no settings, and the reply says why", async () => {
    const bare = join(broker.project, "linked");
    hostGit(actor, broker.project, "init", "-q", "linked");
    rmSync(join(bare, ".git/hooks"), { recursive: true });
    await restart(broker);
    const ran = await broker.run("cd linked && git config user.name evil");
    expect(ran.exit).not.toBe(0);
    expect(refusals(ran).join()).toContain(`mkdir '${bare}/.git/hooks'`);
    expect(readFileSync(join(bare, ".git/config"), "utf8")).not.toContain("evil");
  });
});

function repository(actor: Actor, broker: TestBroker): void {
  hostGit(actor, broker.project, "init", "-q", "-b", "main");
  broker.write(join(broker.project, ".git/config"), "[core]\n\tbare = false\n");
}

/** What is left of the new files. */
function left(broker: TestBroker): readonly string[] {
  return readdirSync(join(broker.project, ".git/hooks")).filter((name) => name.startsWith("substrate"));
}
