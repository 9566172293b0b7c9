/** Which folders an agent may name as its own. Judged by what is on the host afterwards. */
import { spawnSync } from "node:child_process";
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Actor, actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

const POLICIES = {
  default: `
id: default
name: Places
mode: enforce
fs: { deny_read: ["secret.txt", "**/.env"] }
`,
  narrow: `
id: narrow
name: One program less
mode: enforce
selectable: true
commands: { denied: ["id *"] }
`,
  wide: `
id: wide
name: As the default
mode: enforce
selectable: true
`,
  looking: `
id: looking
name: Nothing is written
mode: enforce
selectable: true
fs: { write: [] }
`,
};

describe.each(actors())("the folder that an agent names, as $kind", (actor) => {
  let folder: string;
  let broker: TestBroker;
  const at = (path: string): string => join(folder, "ann", path);

  /** Makes files of the actor's in the home of a person called ann. */
  function make(...paths: readonly string[]): void {
    for (const path of paths) {
      mkdirSync(dirname(at(path)), { recursive: true });
      if (path.endsWith("/")) mkdirSync(at(path), { recursive: true });
      else writeFileSync(at(path), "as it was\n");
    }
    giveTo(actor, join(folder, "ann"));
  }

  beforeAll(async () => {
    folder = mkdtempSync(join(actor.uid === 0 ? "/opt" : actor.home, "sb-places-"));
    make(
      "work/app/.git/config",
      "work/other/deep/er/.git/HEAD",
      "work/plain/file",
      "own/.substrate/",
      ".config/x",
    );
    make(
      "shared/reports/file",
      "marked/.git/HEAD",
      "marked/reports/file",
      "listed/app/.git/config",
      "runtime/bus/",
    );
    make("outer/.git/HEAD", "outer/secret.txt", "outer/vendor/lib/.git/HEAD", "outer/README");
    broker = await TestBroker.start(actor, {
      folder,
      policies: POLICIES,
      config: `
projects: ["/", "${at("listed")}", "${at("scratch-ok")}", "${at(".agents/trees")}"]
policies: { projects: { "~/shared/reports": looking, "~/marked/reports": looking } }
`,
      environment: {
        HOME: at(""),
        XDG_RUNTIME_DIR: at("runtime"),
        PATH: [process.env["PATH"], ...["onpath", "conda/bin", "marked-tools/bin", "bin"].map(at)].join(":"),
      },
    });
  });
  afterAll(async () => broker?.stop());

  async function refusedIn(cwd: string, cmd = "touch was-here"): Promise<string> {
    const refused = await broker.refused({ cwd, cmd });
    expect(refused, cwd).toMatchObject({ status: 403, code: "project_not_allowed" });
    expect(existsSync(join(cwd, "was-here")), cwd).toBe(false);
    return `${refused.message}\n${refused.hint}`;
  }

  async function runsIn(cwd: string): Promise<void> {
    expect(await broker.run({ cwd, cmd: "touch was-here && rm was-here" }), cwd).toMatchObject({ exit: 0 });
  }

  describe("above repositories", () => {
    const ATTACK = `git config -f app/.git/config core.fsmonitor 'id > pwned; :'; touch was-here`;

    test("is no project, and the error names one that is", async () => {
      expect(await refusedIn(at("work"), ATTACK)).toContain(at("work/app"));
      expect(readFileSync(at("work/app/.git/config"), "utf8")).toBe("as it was\n");
    });
    test("is none when the repositories lie deeper, either", async () => {
      expect(await refusedIn(at("work/other"))).toContain(at("work/other/deep/er"));
    });
    test("the repository is one, a folder beside it is one, and so is what config.yaml lists", async () => {
      for (const path of ["work/app", "work/plain", "listed"]) await runsIn(at(path));
    });
    test("many folders without a repository are not looked through, and the error says so", async () => {
      const made = Array.from({ length: 4100 }, (_, number) => at(`many/${number}`));
      for (const path of made) mkdirSync(path, { recursive: true });
      giveTo(actor, at("many"));
      expect(await refusedIn(at("many"))).toMatch(/more than 4000 folders/);
      mkdirSync(at("many/.git"));
      giveTo(actor, at("many"));
      await runsIn(at("many"));
    });
  });

  describe("a checkout in a settings folder of the home", () => {
    const PLUGIN = ".oh-my-zsh/custom/plugins/hints";

    test("is none for an agent, whose files the next shell would load, and the error says what to do", async () => {
      make(`${PLUGIN}/.git/HEAD`, `${PLUGIN}/hints.plugin.zsh`);
      const said = await refusedIn(at(PLUGIN), "echo 'touch ~/was-here' >>hints.plugin.zsh");
      expect(said).toContain("'substrate exec -- true'");
      expect(readFileSync(at(`${PLUGIN}/hints.plugin.zsh`), "utf8")).toBe("as it was\n");
    });
    test("is one once a person has worked in it", async () => {
      make(".config/editor/.git/HEAD", ".config/editor/init.lua");
      await refusedIn(at(".config/editor"));
      const own = await broker.cli(["exec", "--", "touch", "init.lua"], { cwd: at(".config/editor") });
      expect(own).toMatchObject({ code: 0 });
      await runsIn(at(".config/editor"));
    });
    test("is one where config.yaml lists it, or a folder around it", async () => {
      make(".agents/trees/app/.git/HEAD");
      await runsIn(at(".agents/trees/app"));
    });
    test("is one where it is a worktree of a project elsewhere, or a profile says so, and not as a submodule of settings", async () => {
      make(
        ".worktrees/app/.git",
        ".profiled/app/.substrate-profile",
        ".editor/.git/HEAD",
        ".editor/pack/p/.git",
      );
      writeFileSync(at(".worktrees/app/.git"), `gitdir: ${at("work/app/.git/worktrees/app")}\n`);
      writeFileSync(at(".editor/pack/p/.git"), "gitdir: ../../.git/modules/pack/p\n");
      await refusedIn(at(".editor/pack/p"));
      writeFileSync(at(".profiled/app/.substrate-profile"), "wide\n");
      for (const path of [".worktrees/app", ".profiled/app"]) await runsIn(at(path));
    });
  });

  describe("above a folder that config.yaml gives a policy to", () => {
    test("is no project without a mark", async () => {
      expect(await refusedIn(at("shared"))).toContain(at("shared/reports"));
      const answer = await broker.refused({ cwd: at("shared/reports"), cmd: "echo x > file" });
      expect(answer).toMatchObject({ code: "policy_denied", policy_id: "looking" });
      expect(await broker.run({ cwd: at("shared/reports"), cmd: "cat file" })).toMatchObject({ exit: 0 });
    });
    test("with a mark is under that policy too", async () => {
      const ran = await broker.run({ cwd: at("marked"), cmd: "echo x > reports/file; echo y > beside" });
      expect(ran.stderr).toMatch(/Read-only file system/);
      expect(readFileSync(at("marked/reports/file"), "utf8")).toBe("as it was\n");
      expect(ran.policy_id).toBe("default");
    });
  });

  describe("where all programs keep files and sockets", () => {
    const made: string[] = [];
    afterAll(() => made.forEach((path) => rmSync(path, { recursive: true, force: true })));
    function scratch(parent: string): string {
      const path = mkdtempSync(join(parent, "sb-scratch-"));
      made.push(path);
      giveTo(actor, path);
      return path;
    }

    test.each(["/tmp", "/var/tmp", "/dev/shm", ...(actor.uid === 0 ? ["/usr/local", "/var/cache"] : [])])(
      "an unmarked folder below %s is no project",
      async (parent) => {
        const path = scratch(parent);
        expect(await refusedIn(path)).toContain("git init");
        mkdirSync(join(path, ".git"));
        giveTo(actor, path);
        await runsIn(path);
      },
    );
    test("nor is one below XDG_RUNTIME_DIR", async () => {
      expect(await refusedIn(at("runtime/bus"))).toContain(at("runtime"));
      await refusedIn(at("runtime"));
      make("runtime/app/.git/HEAD");
      await runsIn(at("runtime/app"));
    });
  });

  describe("where programs lie that a person starts by name", () => {
    test("is none while it has no mark: the folder on PATH, what lies in it, and what is installed around it", async () => {
      make("onpath/more/", "conda/bin/", "conda/lib/x/", "conda/envs/", "marked-tools/bin/", "bin/");
      for (const path of ["onpath", "onpath/more", "conda", "conda/bin", "conda/lib/x", "marked-tools"])
        expect(await refusedIn(at(path)), path).toContain("programs that start outside");
      await runsIn(at("conda/envs"));
      await runsIn(at("work/plain"));
      make("marked-tools/.git/HEAD");
      await runsIn(at("marked-tools"));
    });
    test("is none on the PATH of a person's own shell either, and an agent's says nothing", async () => {
      make("later/bin/", "agents/bin/");
      await runsIn(at("later"));
      await broker.run({
        cwd: at("work/app"),
        cmd: "true",
        env: { PATH: `${at("agents/bin")}:/usr/bin:/bin` },
      });
      await broker.run({
        cwd: at("work/app"),
        cmd: "true",
        caller_env: { PATH: `${at("agents/bin")}:/usr/bin` },
      });
      await runsIn(at("agents"));
      const path = `${at("later/bin")}:${process.env["PATH"]}`;
      const own = await broker.cli(["exec", "--", "true"], { cwd: at("work/app"), env: { PATH: path } });
      expect(own, own.stderr).toMatchObject({ code: 0 });
      await refusedIn(at("later/bin"));
      await runsIn(at("later"));
    });
  });

  describe("with a mark that a command made", () => {
    const MADE = {
      "a folder": "mkdir -p s/.git",
      "a repository": "git init -q s",
      "a renamed old one": "mkdir -p s && mv vendor/lib/.git s/.git || mkdir s/.git",
      "a hard link to an old file": "mkdir -p s && ln README s/.git",
      "a profile": "mkdir -p s && echo looking > s/.substrate-profile",
    };
    test.each(Object.entries(MADE))(
      "%s: is in the project as before, and its denials hold",
      async (_name, cmd) => {
        rmSync(at("outer/s"), { recursive: true, force: true });
        await broker.run({ cwd: at("outer"), cmd: "cat README" });
        await broker.run({ cwd: at("outer"), cmd });
        expect(existsSync(at("outer/s")), cmd).toBe(true);
        const span = await broker.run({ cwd: at("outer/s"), cmd: "cat ../secret.txt ../*.txt" });
        expect(span.stdout).not.toContain("as it was");
      },
    );
    test("after a restart of the broker as well", async () => {
      await broker.kill("SIGTERM");
      broker = await broker.again();
      expect((await broker.run({ cwd: at("outer/s"), cmd: "cat ../secret.txt" })).stdout).toBe("");
    });
    test("until a person has worked there; and what stood there before the first command counts", async () => {
      const options = { cwd: at("outer/s"), env: { HOME: at("") } };
      rmSync(at("outer/s"), { recursive: true, force: true });
      await broker.run({ cwd: at("outer"), cmd: "git init -q s" });
      const person = await broker.cli(["exec", "--", "cat ../secret.txt"], options);
      expect(person, person.stderr).toMatchObject({ stdout: "as it was\n" });
      expect((await broker.run({ cwd: at("outer/s"), cmd: "cat ../secret.txt" })).stdout).toBe("as it was\n");
      make("outer2/.git/HEAD", "outer2/secret.txt", "outer2/lib/.git/HEAD");
      await broker.run({ cwd: at("outer2"), cmd: "true" });
      expect((await broker.run({ cwd: at("outer2/lib"), cmd: "cat ../secret.txt" })).stdout).toBe(
        "as it was\n",
      );
    });
    test("a label that says it is a person is none", async () => {
      await broker.run({ cwd: at("outer"), cmd: "mkdir -p t/.git" });
      const ran = await broker.run({ agent_id: "human", cwd: at("outer/t"), cmd: "cat ../secret.txt" });
      expect(ran.stdout).toBe("");
    });
    test("a profile that a command made does not hide the project's", async () => {
      make("ruled/src/");
      writeFileSync(at("ruled/.substrate-profile"), "narrow\n");
      make("ruled/file");
      await broker.run({
        cwd: at("ruled"),
        cmd: "mkdir -p s/.git; echo wide > s/.substrate-profile; cp s/.substrate-profile src",
      });
      for (const path of ["ruled", "ruled/s", "ruled/src"]) {
        expect(await broker.refused({ cwd: at(path), cmd: "id" }), path).toMatchObject({
          code: "policy_denied",
        });
        expect(await broker.run({ cwd: at(path), cmd: "true" }), path).toMatchObject({ exit: 0 });
      }
    });
    test("a project without a mark stays one when a command makes repositories in it", async () => {
      make("fresh/");
      await broker.run({ cwd: at("fresh"), cmd: "git init -q one" });
      await runsIn(at("fresh"));
      await runsIn(at("fresh/one"));
    });
  });

  describe("by another spelling", () => {
    test("is the folder that it leads to", async () => {
      symlinkSync(at(""), join(folder, "way"));
      symlinkSync(at("work"), at("work/plain/up"));
      const parents = [`${at("work")}/`, `${at("work")}/app/..`, at("work/plain/up"), `${at("work")}//./`];
      for (const cwd of [...parents, join(folder, "way/work"), `/proc/self/root${at("work")}`])
        await refusedIn(cwd);
      for (const cwd of [
        at(""),
        join(folder, "way"),
        at(".config"),
        at(".config/"),
        `${at("work")}/../.config`,
      ])
        await refusedIn(cwd);
    });
    test("through /proc is no way to a folder that its own path refuses", async () => {
      const child = spawnSync("sh", ["-c", "echo $$"], { cwd: at("work") });
      expect(child.status).toBe(0);
      for (const cwd of ["/proc/self/cwd", "/proc/self", "/proc/1/root", "/proc/self/fd"]) {
        const answer = await broker.post({ cwd, cmd: "touch was-here" });
        if (answer.status !== 200) continue;
        // Where the broker was started: the test's own project.
        expect(cwd).toBe("/proc/self/cwd");
        expect(existsSync(join(broker.project, "was-here"))).toBe(true);
      }
    });
    test("that is gone, is a file, or has letters of other scripts", async () => {
      for (const cwd of [at("missing"), at("work/plain/file")])
        expect(await broker.refused({ cwd, cmd: "true" })).toMatchObject({ status: 400 });
      make("wörk ⼯/app/.git/HEAD");
      await refusedIn(at("wörk ⼯"));
      await runsIn(at("wörk ⼯/app"));
    });
  });
});

function giveTo(actor: Actor, path: string): void {
  if (actor.uid === process.getuid?.()) return;
  chownSync(path, actor.uid, actor.gid);
  spawnSync("chown", ["-Rh", `${actor.uid}:${actor.gid}`, path]);
}
