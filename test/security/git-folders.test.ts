import { createHash } from "node:crypto";
import {
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Actor, actors, spawnAs } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { GIT, hostGit } from "../support/git/git.ts";

const ENFORCE = "id: default\nname: x\nmode: enforce\n";

/** Everything below a folder: names, links and contents. */
function fingerprint(folder: string): string {
  const hash = createHash("sha256");
  const walk = (path: string): void => {
    const stat = lstatSync(path);
    hash.update(`${path}\0${stat.mode}\0`);
    if (stat.isDirectory()) for (const name of readdirSync(path).sort()) walk(join(path, name));
    else if (stat.isSymbolicLink()) hash.update(readlinkSync(path));
    else if (stat.isFile()) hash.update(readFileSync(path));
  };
  walk(folder);
  return hash.digest("hex");
}

function repository(actor: Actor, folder: string): void {
  hostGit(actor, join(folder, ".."), "init", "-q", folder);
  hostGit(actor, folder, "commit", "-q", "--allow-empty", "-m", "first");
}

const FORGE =
  'for f in "$V"/.git "$V"/.git/refs/heads "$V"/.git/hooks "$V"/.git/worktrees/*; do echo x > "$f/evil"; done 2>/dev/null; true';

describe.each(actors())("git folders outside the project, as $kind", (actor) => {
  let broker: TestBroker;
  /** Where no world has a folder of its own, unlike a test's own place below /tmp. */
  let ground: string;
  let victim: string;

  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: ENFORCE } });
    ground = mkdtempSync(join(actor.home, "sb-git-"));
    own(actor, ground);
    victim = join(ground, "victim");
    repository(actor, victim);
    hostGit(actor, victim, "worktree", "add", "-q", join(ground, "others"));
  });

  afterAll(async () => {
    await broker.stop();
    rmSync(ground, { recursive: true, force: true });
  });

  describe.each(["where worlds are private", "on the host"])("%s", (where) => {
    const place = (): string => (where === "on the host" ? ground : broker.folder);

    test("a worktree commits, stashes and reads its log, and the host has the commit", async () => {
      const main = join(place(), "main");
      const tree = join(place(), "tree");
      repository(actor, main);
      hostGit(actor, main, "worktree", "add", "-q", tree);
      const cmd = `echo 1 > f && git add f && ${GIT} commit -qm inside && echo 2 > f && ${GIT} stash -q && cat f && ${GIT} stash pop -q && cat f && git log --format=%s`;
      expect(await broker.run({ cmd, cwd: tree })).toMatchObject({
        exit: 0,
        stdout: "1\n2\ninside\nfirst\n",
      });
      expect(hostGit(actor, main, "log", "--format=%s", "tree")).toBe("inside\nfirst");
      expect(hostGit(actor, main, "fsck", "--no-dangling")).toBe("");
      await cannotPlantCode(join(main, ".git"), tree);
    });

    test("a person's worktree beside the project stays whole when git removes it, and a command's own is removed", async () => {
      const [main, beside] = [join(place(), "keeps"), join(place(), "beside")];
      repository(actor, main);
      hostGit(actor, main, "worktree", "add", "-q", beside);
      hostGit(actor, main, "worktree", "add", "-q", join(main, "within"));
      const folders = ["beside", "within"].map((name) => join(main, ".git/worktrees", name));
      const cmd = `git worktree remove ../beside; git worktree prune -v; rm -r .git/worktrees/*; git worktree list`;
      const { notices } = await broker.run({ cmd, cwd: main });
      expect(notices.map(({ message }) => message).join()).toContain(
        "git finds a person's working tree by it, and no command removes one",
      );
      // What git finds the tree by, and its state.
      for (const folder of folders)
        expect(readdirSync(folder)).toEqual(expect.arrayContaining(["HEAD", "commondir", "gitdir", "index"]));
      expect(hostGit(actor, beside, "status", "--porcelain")).toBe("");
      expect(hostGit(actor, main, "worktree", "list")).toContain("[beside]");
      hostGit(actor, main, "worktree", "remove", beside);
      const own = { cmd: "git worktree add -q mine && cd mine && git log --format=%s", cwd: main };
      expect(await broker.run(own)).toMatchObject({ exit: 0, stdout: "first\n" });
      const gone = { cmd: "git worktree remove mine && git worktree list", cwd: main };
      expect(await broker.run(gone)).toMatchObject({
        exit: 0,
        stdout: expect.not.stringContaining("mine") as string,
      });
    });

    test("a submodule commits, rebases and reads its log, and the host has the commit", async () => {
      const [library, above] = [join(place(), "library"), join(place(), "above")];
      repository(actor, library);
      repository(actor, above);
      hostGit(actor, above, "submodule", "--quiet", "add", library, "lib");
      hostGit(actor, above, "commit", "-qm", "with lib");
      const cmd = `echo 1 > f && git add f && ${GIT} commit -qm inside && ${GIT} rebase -q --exec true HEAD~1 && git log --format=%s`;
      const cwd = join(above, "lib");
      expect(await broker.run({ cmd, cwd })).toMatchObject({ exit: 0, stdout: "inside\nfirst\n" });
      expect(hostGit(actor, cwd, "log", "--format=%s")).toBe("inside\nfirst");
      const outside = fingerprint(join(above, ".git/refs"));
      await cannotPlantCode(join(above, ".git/modules/lib"), cwd);
      await broker.run({ cmd: `echo x > ${above}/.git/refs/heads/evil; true`, cwd });
      expect(fingerprint(join(above, ".git/refs"))).toBe(outside);
    });
  });

  /** What git runs or is led by, in a folder that can be written otherwise. */
  async function cannotPlantCode(folder: string, cwd: string): Promise<void> {
    const guarded = (): string =>
      [join(folder, "hooks"), join(folder, "config"), join(cwd, ".git")].map(fingerprint).join();
    const before = guarded();
    const cmd = [
      `echo x > ${folder}/hooks/post-commit`,
      `echo x >> ${folder}/config`,
      `git config core.fsmonitor evil`,
      `mv ${folder}/hooks ${folder}/old`,
      `mv ${folder} ${folder}-old`,
      `rm -rf ${folder}/config`,
      `echo "gitdir: $PWD/evil" > .git`,
      `rm -f .git`,
      `mv .git .old`,
      `echo seen > ${folder}/description`,
    ].join("; ");
    await broker.run({ cmd, cwd });
    expect(guarded()).toBe(before);
    expect(readFileSync(join(folder, "description"), "utf8")).toBe("seen\n");
  }

  test.each([
    ["the victim's git folder", 'printf "gitdir: $V/.git\\n" > .git'],
    ["another worktree of the victim", 'printf "gitdir: $V/.git/worktrees/others\\n" > .git'],
    ["a link to the victim", 'ln -s "$V" way; printf "gitdir: $PWD/way/.git/worktrees/others\\n" > .git'],
    [
      "a forged worktree folder that leads to the victim",
      'mkdir -p x/worktrees/y; echo "$V/.git" > x/worktrees/y/commondir; echo "$PWD/.git" > x/worktrees/y/gitdir; printf "gitdir: $PWD/x/worktrees/y\\n" > .git',
    ],
    [
      "a forged worktree folder beside a link to the victim",
      'mkdir -p x/worktrees/y; ln -s "$V/.git/objects" x/objects; ln -s "$V/.git/refs" x/refs; echo "ref: x" > x/HEAD; echo ../.. > x/worktrees/y/commondir; echo "$PWD/.git" > x/worktrees/y/gitdir; printf "gitdir: $PWD/x/worktrees/y\\n" > .git',
    ],
    ["two folders", 'printf "gitdir: $PWD/x\\ngitdir: $V/.git\\n" > .git'],
    ["the victim, by a link in the place of the file", 'ln -s "$V/.git" .git'],
    [
      "the victim, in ten megabytes",
      '{ printf "gitdir: $V/.git"; head -c 10000000 /dev/zero | tr "\\0" "\\n"; } > .git',
    ],
    ["a pipe that nobody writes to", "mkfifo .git"],
  ])("a .git that an agent wrote gives nothing: it leads to %s", async (_name, forge) => {
    const cwd = mkdtempSync(join(broker.folder, "agent-"));
    own(actor, cwd);
    const before = fingerprint(victim);
    const env = { V: victim };
    const forged = await broker.run({ cmd: forge, cwd, env });
    expect(forged).toMatchObject({ exit: 0 });
    const stands = lstatSync(join(cwd, ".git"), { throwIfNoEntry: false }) !== undefined;
    expect(forged.notices.some(({ kind }) => kind === "quarantined")).toBe(!stands);
    expect(await broker.run({ cmd: `${FORGE}; touch own && echo works`, cwd, env })).toMatchObject({
      exit: 0,
      stdout: "works\n",
    });
    expect(fingerprint(victim)).toBe(before);
  });

  test("a policy that does not let the project be written does not let its git folder be written", async () => {
    const tree = join(ground, "closed-tree");
    const main = join(ground, "closed");
    repository(actor, main);
    hostGit(actor, main, "worktree", "add", "-q", tree);
    const lists = ["write: []", `deny_write: ['${main}']`, `write: ['${tree}/src/**']`];
    for (const list of lists) {
      broker.write(join(broker.home, "policies/default.yaml"), `${ENFORCE}fs:\n  ${list}\n`);
      const before = fingerprint(join(main, ".git"));
      const cmd = `${GIT} commit -q --allow-empty -m no; echo x > ${main}/.git/refs/heads/no; git log --format=%s`;
      expect(await broker.run({ cmd, cwd: tree })).toMatchObject({ exit: 0, stdout: "first\n" });
      expect([list, fingerprint(join(main, ".git"))]).toEqual([list, before]);
    }
    broker.write(join(broker.home, "policies/default.yaml"), ENFORCE);
    const cmd = `${GIT} commit -q --allow-empty -m yes`;
    expect(await broker.run({ cmd, cwd: tree })).toMatchObject({ exit: 0 });
    expect(hostGit(actor, tree, "log", "--format=%s")).toBe("yes\nfirst");
  });

  test("an isolated command in a worktree reads the git folder and does not write it", async () => {
    const [main, tree] = [join(ground, "held"), join(ground, "held-tree")];
    repository(actor, main);
    hostGit(actor, main, "worktree", "add", "-q", tree);
    const file = join(broker.home, "policies/default.yaml");
    broker.write(file, `${ENFORCE}commands:\n  isolated: ["git commit *"]\n`);
    const before = fingerprint(join(main, ".git"));
    await broker.run({
      cmd: `git log --format=%s; git -c user.name=a -c user.email=b commit --allow-empty -qm no`,
      cwd: tree,
    });
    expect(fingerprint(join(main, ".git"))).toBe(before);
    broker.write(file, ENFORCE);
  });

  test("a repository that is swapped for a link to the victim while worlds start gives nothing", async () => {
    const [main, tree] = [join(ground, "swapped"), join(ground, "swapped-tree")];
    repository(actor, main);
    hostGit(actor, main, "worktree", "add", "-q", tree);
    const file = join(broker.home, "policies/default.yaml");
    broker.write(file, `${ENFORCE}world:\n  reuse_session: false\n`);
    const before = fingerprint(victim);
    const swap = `while :; do mv '${main}' '${main}.away' && ln -s '${victim}' '${main}'; rm -f '${main}'; mv '${main}.away' '${main}'; done`;
    const swapper = spawnAs(actor, ["sh", "-c", swap], { cwd: ground, env: {}, stdio: "ignore" });
    const answers: number[] = [];
    try {
      for (let round = 0; round < 15; round += 1) {
        const cmd = `echo x > ${main}/.git/refs/heads/evil; ${FORGE}`;
        answers.push((await broker.post({ cmd, cwd: tree, env: { V: victim } })).status);
      }
    } finally {
      const gone = new Promise((resolve) => swapper.once("exit", resolve));
      swapper.kill("SIGKILL");
      await gone;
    }
    expect(fingerprint(victim)).toBe(before);
    // Where a folder changes under a mount in the making there is no world; nothing else goes wrong.
    expect(answers.filter((status) => status !== 200 && status !== 503)).toEqual([]);
    broker.write(file, ENFORCE);
  }, 30_000);
});

function own(actor: Actor, folder: string): void {
  mkdirSync(folder, { recursive: true });
  chownSync(folder, actor.uid, actor.gid);
}
