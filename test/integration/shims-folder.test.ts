/** `substrate shim` where its folder is none, or nothing that PATH can hold: as whoever types it reads it. */
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ErrorReply, Span } from "../../schemas/generated/types.ts";
import { Person } from "../support/broker/approvals.ts";
import { TestBroker, eventually } from "../support/broker/broker.ts";
import { type TestInstallation, installationFor } from "../support/broker/installation.ts";
import { SHIM_POLICY, pathWithShims, toolFor } from "../support/broker/shims.ts";
import { skip } from "../support/run/skips.ts";
import { type Ended, actors, currentUser, runAs } from "../support/users/users.ts";

describe("substrate shim", () => {
  const folder = mkdtempSync(join(tmpdir(), "substrate-shims-"));
  let installation: TestInstallation;
  beforeAll(async () => {
    installation = await installationFor(currentUser());
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function shim(home: string, words: readonly string[], path = "/usr/bin:/bin"): Promise<Ended> {
    const env = { SUBSTRATE_HOME: home, PATH: path };
    return runAs(currentUser(), [installation.node, installation.launcher, "shim", ...words], { env });
  }

  test.each([
    ["a file", (path: string) => writeFileSync(path, "")],
    ["a link to nothing", (path: string) => symlinkSync(join(folder, "nowhere"), path)],
  ])("says in one line that %s is no folder", async (_what, make) => {
    const home = mkdtempSync(join(folder, "home-"));
    make(join(home, "shims"));
    const { code, stderr } = await shim(home, ["install", "ls"]);
    expect(stderr).toMatch(/^substrate: Cannot use '.*shims' as the shims folder: E[A-Z]+: [^\n]*\n$/);
    expect(code).toBe(125);
  });

  test("links nothing in a folder that PATH would take for two", async () => {
    const { code, stderr } = await shim(join(folder, "a:b"), ["install", "ls"]);
    expect([code, stderr]).toEqual([125, expect.stringContaining("it holds a ':'")]);
  });

  test("knows its folder on PATH by a slash at the end too", async () => {
    const home = join(folder, "slash");
    mkdirSync(home);
    await shim(home, ["install", "ls"]);
    const { stdout } = await shim(home, ["status", "--json"], `${home}/shims/:/usr/bin:/bin`);
    expect(JSON.parse(stdout)).toMatchObject({ first_on_path: true, shims: [{ state: "in force" }] });
  });
});

describe.each(actors())("substrate shim install, as $kind", (actor) => {
  let folder = "";
  let installation: TestInstallation;
  beforeAll(async () => {
    installation = await installationFor(actor);
    folder = mkdtempSync(join(actor.uid === 0 ? tmpdir() : actor.home, "substrate-shims-"));
    chmodSync(folder, 0o755);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** A home of the actor's with an empty shims folder. */
  function home(): string {
    const made = mkdtempSync(join(folder, "home-"));
    mkdirSync(join(made, "shims"));
    for (const path of [made, join(made, "shims")]) {
      chmodSync(path, 0o700);
      chownSync(path, actor.uid, actor.gid);
    }
    return made;
  }

  function install(at: string): Promise<Ended> {
    const env = { SUBSTRATE_HOME: at, PATH: "/usr/bin:/bin" };
    return runAs(actor, [installation.node, installation.launcher, "shim", "install", "ls"], { env });
  }

  test.each([
    [
      "anybody can write to",
      (path: string) => chmodSync(path, 0o777),
      /Other users can write.*mode 777.*chmod go-w/,
    ],
    [
      "a group can write to",
      (path: string) => chmodSync(path, 0o770),
      /Other users can write.*mode 770.*chmod go-w/,
    ],
    ["is another user's", (path: string) => chownSync(path, 54_321, 54_321), /belongs to user 54321/],
  ] as const)("links nothing in a folder that %s, nor below one", async (what, give, why) => {
    if (what === "is another user's" && process.getuid?.() !== 0)
      return skip(`shims in a folder that ${what}`, "only root can give a folder away");
    for (const part of ["shims", "."]) {
      const at = home();
      give(join(at, part));
      // Whoever cannot look into it is told so by the kernel.
      if (part === "." && actor.uid !== 0 && what === "is another user's") chmodSync(at, 0o755);
      const { code, stderr } = await install(at);
      expect([code, readdirSync(join(at, "shims"))], stderr).toEqual([125, []]);
      expect(stderr).toMatch(why);
    }
  });

  test("links in one that nobody else can write to", async () => {
    const at = home();
    expect((await install(at)).stdout).toContain("linked: ls");
    expect(readdirSync(join(at, "shims"))).toEqual(["ls"]);
  });
});

// Shims where no project can be: judged by the policy that the operator gives, and on record where they were.

const POLICY = SHIM_POLICY.replace("denied: [", 'denied: ["tool look $PROJECT/*", ');

describe.each(actors())("shims in no project, as $kind", (actor) => {
  describe.each(["enforce", "observe"] as const)("in %s mode", (mode) => {
    let broker: TestBroker;
    let bin = "";
    beforeAll(async () => {
      broker = await TestBroker.start(actor, {
        policies: { default: POLICY.replace("enforce", mode), narrow: NARROW },
        config: `policies: { projects: { /usr: narrow } }\n`,
      });
      bin = await toolFor(broker);
    });
    afterAll(() => broker.stop());

    function shell(script: string, cwd: string, env: object = {}): Promise<Ended> {
      const all = { PATH: pathWithShims(broker, bin), SUBSTRATE_HOME: broker.home, ...env };
      return runAs(actor, ["/bin/sh", "-c", script], { cwd, env: all });
    }

    function recorded(words: readonly string[]): Span | undefined {
      const cmd = JSON.stringify(words);
      return broker.spans().find((span) => span.component === "shim" && span.cmd === cmd);
    }

    test.each([
      ["the root folder", () => "/"],
      ["the home folder", () => actor.home],
      ["a system folder", () => "/etc"],
      ["SUBSTRATE_HOME", () => broker.home],
    ])("in %s a rule decides as elsewhere, and what starts is on record there", async (what, place) => {
      const file = join(broker.project, what.replaceAll(" ", "-"));
      const twin = ["tool", "twin", "touch", file];
      expect(await shell(twin.join(" "), place())).toMatchObject({ code: 0, stderr: "" });
      expect(existsSync(file)).toBe(true);
      expect(recorded(twin)).toMatchObject({ cwd: place(), decision: { verdict: "allow", mode } });
      const denied = ["tool", "denied", "touch", `${file}-denied`];
      const { code, stderr } = await shell(denied.join(" "), place());
      const [wanted, verdict] = mode === "enforce" ? [126, "deny"] : [0, "would_deny"];
      expect([code, existsSync(`${file}-denied`)], stderr).toEqual([wanted, mode !== "enforce"]);
      expect(recorded(denied)).toMatchObject({ cwd: place(), decision: { verdict } });
    });

    test("a folder that is deleted under whoever works there is one of these", async () => {
      const folder = join(broker.project, "deleted");
      const { code, stderr } = await shell(
        `mkdir '${folder}' && cd '${folder}' && rmdir '${folder}' && tool gone`,
        "/",
      );
      // The tool's own shell says something about it.
      expect([code, stderr]).toEqual([0, expect.not.stringContaining("substrate")]);
      expect(recorded(["tool", "gone"])).toMatchObject({ cwd: `${folder} (deleted)` });
    });

    test("SHIM_BYPASS=1 starts what is denied, and that is on record", async () => {
      const words = ["tool", "denied", "touch", join(broker.project, "bypassed")];
      const ended = await shell(words.join(" "), "/", { SHIM_BYPASS: "1" });
      expect([ended.code, ended.stderr]).toEqual([0, ""]);
      expect(recorded(words)).toMatchObject({ cwd: "/", message: expect.stringContaining("SHIM_BYPASS=1") });
    });

    test("nothing is in $PROJECT, and the operator's policy for the folder holds", async () => {
      const refused = mode === "enforce" ? 126 : 0;
      expect((await shell("tool look /a", "/")).code).toBe(0);
      expect((await shell(`tool look '${broker.project}/a'`, broker.project)).code).toBe(refused);
      expect((await shell("tool narrowed", "/")).code).toBe(0);
      expect((await shell("tool narrowed", "/usr/lib")).code).toBe(126);
    });

    test("commands and questions that are no shim's get no such place", async () => {
      for (const path of ["/v1/execute", "/v1/check"]) {
        const body = { agent_id: "ann", argv: ["true"], cwd: "/" };
        const { status, document } = await broker.call("POST", path, body);
        expect([status, (document as ErrorReply).error.code]).toEqual([403, "project_not_allowed"]);
      }
    });
  });

  test("what asks there waits for a person, who is offered no answer for always", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: SHIM_POLICY } });
    try {
      const env = { PATH: pathWithShims(broker, await toolFor(broker)), SUBSTRATE_HOME: broker.home };
      const person = new Person(broker);
      const file = join(broker.project, "asked");
      const running = runAs(actor, ["/bin/sh", "-c", `tool ask touch '${file}'`], { cwd: "/", env });
      const asked = await person.waitedFor();
      expect(asked).toMatchObject({ project: "/", cwd: "/" });
      expect(asked.offers).not.toContain("always");
      expect(await person.answer(asked.approval_id, "once")).toEqual({ status: 200 });
      expect(await running).toMatchObject({ code: 0, stderr: expect.stringContaining("waits for a person") });
      expect(await eventually(() => existsSync(file), 5000)).toBe(true);
    } finally {
      await broker.stop();
    }
  });
});

const NARROW = `id: narrow
name: Of one folder
mode: enforce
commands: { denied: ["tool narrowed"] }
`;

// Which program a shim stands for, by whatever way it is started: judged by what the program behind it did.

describe.each(actors().slice(0, 1))("a shim, as $kind", (actor) => {
  let broker: TestBroker;
  let bin = "";
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: SHIM_POLICY },
    });
    bin = await toolFor(broker);
  });
  afterAll(() => broker.stop());

  const shim = (): string => join(broker.home, "shims/tool");

  /** Whatever would call itself for ever is gone after five seconds. */
  function shell(script: string, path = pathWithShims(broker, bin)): Promise<Ended> {
    const env = { PATH: path, SUBSTRATE_HOME: broker.home };
    return runAs(actor, ["/usr/bin/timeout", "5", "/bin/sh", "-c", script], {
      cwd: broker.project,
      env,
    });
  }

  function executable(path: string, text: string): string {
    broker.write(path, text);
    chmodSync(path, 0o755);
    return path;
  }

  test("stands for the same program behind further links, as those of a venv", async () => {
    const link = join(broker.project, "other-name");
    symlinkSync(shim(), link);
    expect(await shell(`'${link}' words a`)).toMatchObject({
      code: 0,
      stdout: "words|a|",
      stderr: "",
    });
    expect((await shell(`'${link}' denied touch '${link}-touched'`)).code).toBe(126);
    expect(existsSync(`${link}-touched`)).toBe(false);
  });

  test("in the first line of a script is that program with the script, also where PATH has the script", async () => {
    const script = executable(join(bin, "script"), `#!${shim()} words\n`);
    expect(await shell("script a")).toMatchObject({
      code: 0,
      stdout: `words|${script}|a|`,
      stderr: "",
    });
  });

  test("of another installation is no program behind it", async () => {
    const other = join(broker.folder, "other");
    mkdirSync(other);
    copyFileSync(readlinkSync(shim()), join(other, "substrate-shim"));
    chmodSync(other, 0o755);
    symlinkSync(join(other, "substrate-shim"), join(other, "tool"));
    const path = `${join(broker.home, "shims")}:${other}:${bin}:/usr/bin:/bin`;
    expect(await shell("tool words apart", path)).toMatchObject({
      code: 0,
      stdout: "words|apart|",
      stderr: "",
    });
    const cmd = JSON.stringify(["tool", "words", "apart"]);
    const starts = broker.spans().filter((span) => span.cmd === cmd && span.event_type === "command_start");
    expect(starts.length).toBe(1);
  });

  test("looks for it in the working directory where PATH has an empty folder, and the rules do too", async () => {
    const path = `${join(broker.home, "shims")}::${bin}:/usr/bin:/bin`;
    executable(join(broker.project, "tool"), "#!/bin/sh\necho here\n");
    expect((await shell("tool twin", path)).stdout).toBe("here\n");
    const denied = SHIM_POLICY.replace("denied: [", `denied: ["${join(broker.project, "tool")} *", `);
    broker.write(join(broker.home, "policies/default.yaml"), denied);
    expect(await shell("tool twin", path)).toMatchObject({
      code: 126,
      stdout: "",
    });
  });

  test("is the program that its name leads to, also behind many folders of PATH", async () => {
    const [impostor, tool] = [join(broker.folder, "many/impostor"), join(broker.folder, "many/tool")];
    executable(impostor, "#!/bin/sh\necho started\n");
    symlinkSync(impostor, tool);
    const behind = (folders: readonly string[]): string =>
      [join(broker.home, "shims"), ...folders, join(broker.folder, "many"), "/usr/bin:/bin"].join(":");
    const policy = SHIM_POLICY.replace("denied: [", 'denied: ["impostor seen *", ');
    broker.write(join(broker.home, "policies/default.yaml"), policy);
    const folders = Array.from({ length: 200 }, (_, at) => join(broker.folder, `no-${at}`));
    expect((await shell("tool twin x", behind(folders))).stdout).toBe("started\n");
    expect(await shell("tool seen x", behind(folders))).toMatchObject({ code: 126, stdout: "" });
    // The same folders again are no further ones.
    expect((await shell("tool twin x", behind([...folders, ...folders]))).stdout).toBe("started\n");
    expect(await shell("tool seen x", behind([...folders, ...folders]))).toMatchObject({
      code: 126,
      stdout: "",
    });
    const far = behind(Array.from({ length: 300 }, (_, at) => join(broker.folder, `no-${at}`)));
    const refused = await shell("tool twin x", far);
    expect([refused.code, refused.stderr]).toEqual([126, expect.stringContaining("too long to be checked")]);
    broker.write(join(broker.home, "policies/default.yaml"), policy.replace("enforce", "observe"));
    expect((await shell("tool seen x", far)).stdout).toBe("started\n");
  });

  test("starts a file without a first line as execvp(3) and every shell do", async () => {
    executable(join(bin, "tool"), `printf '%s|' "$0" "$@"\n`);
    expect(await shell("tool a b")).toMatchObject({
      code: 0,
      stdout: `${join(bin, "tool")}|a|b|`,
      stderr: "",
    });
  });
});
