/** The package as a person has it: packed, installed by npm without a registry, used and removed. No file of the checkout is used. */
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { differences, lookAt } from "../lanes/home-of-a-person.mjs";
import { eventually } from "../support/broker/broker.ts";
import { asVersion, packed, Person, type PersonOptions } from "../support/programs/package.ts";
import { recordSkip, skip } from "../support/run/skips.ts";
import { type Actor, actors, currentUser, everyActor, type TestUser } from "../support/users/users.ts";

const CLAUDE = `{\n\t"model":"opus"\n}`;

const STARTING = "starting the broker ('substrate broker stop' ends it)";

let folder: string;
let tarball: string;
let version: string;
const people: Person[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sb-pack-"));
  execFileSync("chmod", ["755", folder]);
  tarball = packed(folder);
  version = /substrate-(.*)\.tgz/.exec(tarball)?.[1] ?? "";
}, 120_000);
afterEach(async () => {
  for (const person of people.splice(0)) await person.remove();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** For minutes of rows that are the same for everybody: as root they are left to the ordinary user. */
function oneActor(): readonly Actor[] {
  const ordinary = everyActor().filter(({ uid }) => uid !== 0);
  if (ordinary.length === 0) return actors();
  const chosen = actors().filter(({ uid }) => uid !== 0);
  if (chosen.length === 0)
    recordSkip({
      what: "four rows about an installed package",
      why: "'npm run test:plain-user' runs them as an ordinary user",
    });
  return chosen;
}

async function installed(user: TestUser, options?: PersonOptions): Promise<Person> {
  const person = new Person(user, options);
  people.push(person);
  if (options?.prefix === undefined) await person.install(tarball);
  return person;
}

function event(person: Person, command: string): string {
  return JSON.stringify({
    session_id: "s",
    cwd: person.project,
    hook_event_name: "PreToolUse",
    tool_name: "Bash",
    tool_input: { command },
  });
}

test("the package holds what runs and what builds the native parts, and depends on no other package", () => {
  const names = execFileSync("tar", ["-tzf", tarball], { encoding: "utf8" }).trim().split("\n");
  const strangers = names.filter(
    (name) =>
      !/^package\/(package\.json|README\.md|LICENSE|\.build\/(substrate[\w.-]*|target\.json|client\/[\w./-]+\.(mjs|d\.ts)|prebuilds\/[\w./-]+\.node)|api\/(bin|setup)\/[\w-]+\.mjs|api\/bin\/front\.sh|lima\/(provision\.sh|substrate\.yaml)|policies\/.*\.yaml|schemas\/[\w-]+\.schema\.json|(shim|world\/native)\/.*\.[ch]|systemd\/(user|system)\/substrate(-agent)?\.(service|socket))$/.test(
        name,
      ),
  );
  expect(strangers).toEqual([]);
  expect(names.filter((name) => /\.map$|\.test\.|bundle\.mjs|\.tmp/.test(name))).toEqual([]);
  const manifest = execFileSync("tar", ["-xzOf", tarball, "package/package.json"], { encoding: "utf8" });
  const { dependencies, scripts } = JSON.parse(manifest) as Record<string, object | undefined>;
  expect([dependencies, Object.keys(scripts ?? {}).filter((name) => /install|prepare/.test(name))]).toEqual([
    undefined,
    [],
  ]);
});

describe.each(actors())("installed globally, as $kind", (actor) => {
  test("it connects an agent, decides, and leaves the home as it was but for ~/.substrate, which one command removes", async () => {
    const person = await installed(actor);
    mkdirSync(join(person.home, ".claude"));
    writeFileSync(join(person.home, ".claude/settings.json"), CLAUDE);
    person.own();
    const before = lookAt(person.home, []);
    expect((await person.mustRun(["substrate", "--version"])).stdout).toBe(`${version}\n`);

    const first = await person.run(["substrate", "init", "claude-code", "--yes"]);
    expect([first.code, first.stderr]).toEqual([
      0,
      "substrate: starting the broker, which every command of the agent needs\n",
    ]);
    expect(first.stdout).toContain("$ sudo -n true\n    denied:");
    expect(first.stdout).toMatch(/\$ echo hello\n {4}allowed, and runs as:/);
    expect((await person.mustRun(["substrate", "init", "claude-code"])).stdout).toContain(
      "is connected already",
    );

    const settings = readFileSync(join(person.home, ".claude/settings.json"), "utf8");
    const hook = (JSON.parse(settings) as HookSettings).hooks.PreToolUse[0]?.hooks[0]?.command ?? "";
    expect(hook).toContain(join(person.package, ".build/substrate"));
    const denied = await person.mustRun(["/bin/sh", "-c", hook], { stdin: event(person, "sudo true") });
    expect(JSON.parse(denied.stdout)).toMatchObject({ hookSpecificOutput: { permissionDecision: "deny" } });
    const allowed = await person.mustRun(["/bin/sh", "-c", hook], {
      stdin: event(person, "echo from a world"),
    });
    const { updatedInput } = (JSON.parse(allowed.stdout) as HookAnswer).hookSpecificOutput;
    expect((await person.mustRun(["/bin/sh", "-c", updatedInput.command])).stdout).toBe("from a world\n");
    expect(
      (await person.run(["substrate", "exec", "--agent", "claude-code", "--", "sudo", "true"])).code,
    ).toBe(126);
    expect((await person.mustRun(["substrate", "exec", "--", "echo $((6*7))"])).stdout).toBe("42\n");
    expect((await person.mustRun(["substrate-sh", "-c", "echo $((6*8))"])).stdout).toBe("48\n");

    await person.mustRun(["substrate", "init", "claude-code", "--undo"]);
    await person.mustRun(["substrate", "broker", "stop"]);
    await person.mustRun(["npm", "uninstall", "--global", "--silent", "substrate"]);
    expect(readdirSync(join(person.prefix, "lib/node_modules"))).toEqual([]);
    expect(readdirSync(join(person.prefix, "bin"))).toEqual([]);
    expect(left(before, person, [".substrate"])).toEqual([]);
    await person.mustRun(["rm", "-r", join(person.home, ".substrate")]);
    expect(left(before, person, [])).toEqual([]);
  }, 120_000);

  test("a command starts no Node, and a hook that finds no Node blocks", async () => {
    const person = await installed(actor);
    const nodes = join(person.folder, "nodes");
    const started = join(person.folder, "started");
    mkdirSync(nodes);
    writeFileSync(
      join(nodes, "node"),
      `#!/bin/sh\necho x >> '${started}'\nexec '${process.execPath}' "$@"\n`,
      {
        mode: 0o755,
      },
    );
    person.own();
    const env = { PATH: [nodes, join(person.prefix, "bin"), "/usr/bin", "/bin"].join(":") };
    await person.mustRun(["substrate", "exec", "--", "true"], { env });
    rmSync(started);
    expect((await person.mustRun(["substrate", "exec", "--", "echo hello"], { env })).stdout).toBe("hello\n");
    expect((await person.mustRun(["substrate-sh", "-c", "echo hello"], { env })).stdout).toBe("hello\n");
    expect(existsSync(started)).toBe(false);
    const steps = ["/bin/sh", "-x", join(person.prefix, "bin/substrate"), "exec", "--", "true"];
    const { stderr: shown } = await person.mustRun(steps, { env });
    expect(shown).toContain("/.build/substrate exec -- true");
    expect(shown).not.toContain("readlink");
    if (existsSync("/proc/sys/kernel/arch")) expect(shown).not.toContain("uname");
    await person.mustRun(["substrate", "status"], { env });
    expect(existsSync(started)).toBe(true);

    // Without its native part, and without Node.
    await person.mustRun(["rm", join(person.package, ".build/substrate")]);
    await person.mustRun(["ln", "-s", "/usr/bin/readlink", "/usr/bin/uname", nodes]);
    await person.mustRun(["rm", join(nodes, "node")]);
    const bare = ["/usr/bin/env", `PATH=${nodes}`];
    const front = join(person.prefix, "bin/substrate");
    expect(await person.run([...bare, front, "hook", "claude-code"])).toMatchObject({
      code: 2,
      stderr: "substrate: cannot find 'node' on PATH\n",
    });
    expect((await person.run([...bare, front, "status"])).code).toBe(125);
  }, 120_000);
});

describe.each(oneActor())("installed, as $kind, whoever it is", (actor) => {
  test("in a project's node_modules it serves other projects, refuses its own, and loads no package that lies beside it", async () => {
    const person = new Person(actor);
    people.push(person);
    writeFileSync(join(person.project, "package.json"), "{}");
    const other = join(person.home, "other");
    execFileSync("git", ["init", "--quiet", other]);
    person.own();
    await person.mustRun(["npm", "install", "--silent", tarball]);
    const names = [
      "lmdb",
      "@lmdb/lmdb-linux-x64",
      "msgpackr-extract",
      "bufferutil",
      "utf-8-validate",
      "supports-color",
    ];
    for (const name of names) {
      const planted = join(person.project, "node_modules", name);
      mkdirSync(planted, { recursive: true });
      writeFileSync(join(planted, "index.js"), 'require("fs").writeFileSync(__dirname + "/ran", "")');
    }
    person.own();
    expect((await person.mustRun(["npx", "substrate", "--version"])).stdout).toBe(`${version}\n`);
    const refused = await person.run(["npx", "substrate", "exec", "--", "true"]);
    expect([refused.code, refused.stderr]).toEqual([
      125,
      expect.stringContaining("it contains the installation of Substrate"),
    ]);
    const program = join(person.project, "node_modules/.bin/substrate");
    expect((await person.mustRun([program, "exec", "--", "echo other"], { cwd: other })).stdout).toBe(
      "other\n",
    );
    expect(names.filter((name) => existsSync(join(person.project, "node_modules", name, "ran")))).toEqual([]);
  }, 120_000);

  test("a new version takes the place of an idle broker at the next command, and waits where something runs", async () => {
    const person = await installed(actor);
    const newer = asVersion(tarball, "99.0.0");
    const newest = asVersion(tarball, "99.1.0");
    expect((await person.mustRun(["substrate", "exec", "--", "true"])).stderr).toBe(
      `substrate: ${STARTING}\n`,
    );
    expect(person.broker()).toMatchObject({ version, installation: person.package });
    await person.install(newer);
    // The broker replaces itself within seconds too: it may be gone just now, or new already.
    expect([`replacing the idle broker of version ${version} by 99.0.0`, STARTING, ""]).toContain(
      (await person.mustRun(["substrate", "held"])).stderr.replace(/^substrate: |\n$/g, ""),
    );
    expect(await eventually(() => person.broker()?.version === "99.0.0", 20_000)).toBe(true);

    await person.mustRun(["substrate", "exec", "--keep", "--", "sleep 300 > /dev/null 2>&1 &"]);
    await person.install(newest);
    expect((await person.mustRun(["substrate", "held"])).stderr).toBe(
      "substrate: the broker is still version 99.0.0: 'substrate broker start --current' replaces it by 99.1.0 and ends 1 running process\n",
    );
    expect(person.broker()).toMatchObject({ version: "99.0.0" });
    // The agent's hooks ask nobody for a new broker: the old one goes by itself.
    await person.mustRun(["substrate", "world", "restart", "--force"]);
    expect(await eventually(() => person.broker()?.version === "99.1.0", 20_000)).toBe(true);
    expect((await person.mustRun(["substrate", "exec", "--", "echo new"])).stdout).toBe("new\n");

    await person.mustRun(["npm", "uninstall", "--global", "--silent", "substrate"]);
    expect(await eventually(() => person.broker() === undefined, 25_000)).toBe(true);
  }, 180_000);

  test("native parts of another machine are named by every verb until 'substrate setup' has built them", async () => {
    const person = await installed(actor);
    const target = join(person.package, ".build/target.json");
    const packedFor = JSON.parse(readFileSync(target, "utf8")) as Record<string, string>;
    writeFileSync(target, JSON.stringify({ ...packedFor, libc: "other" }));
    writeFileSync(join(person.package, ".build/substrate-init"), "of another machine");
    const words = `substrate: The native parts in '${person.package}' are for linux-${process.arch}-other, and this is linux-${process.arch}-${packedFor["libc"]}. Run 'substrate setup', which builds them\n`;
    for (const verb of [["exec", "--", "true"], ["broker", "start"], ["init"], ["status"]])
      expect(await person.run(["substrate", ...verb])).toMatchObject({ code: 125, stderr: words });
    expect(await person.run(["substrate", "hook", "claude-code"])).toMatchObject({ code: 2 });
    expect((await person.mustRun(["substrate", "setup"])).stdout).toContain("built .build/substrate-init\n");
    expect((await person.mustRun(["substrate", "setup"])).stdout).toContain("nothing to do");
    expect((await person.mustRun(["substrate", "exec", "--", "echo built"])).stdout).toBe("built\n");
    // It compiles every native part.
  }, 300_000);

  test("two commands at once start one broker", async () => {
    const person = await installed(actor);
    const both = ["one", "two", "three"].map((word) =>
      person.run(["substrate", "exec", "--", `echo ${word}`]),
    );
    const ended = await Promise.all(both);
    expect(ended.map(({ code, stdout }) => [code, stdout])).toEqual([
      [0, "one\n"],
      [0, "two\n"],
      [0, "three\n"],
    ]);
  }, 60_000);
});

test("an installation of root's serves an ordinary user, who writes nothing into it", async () => {
  const user = everyActor().find(({ kind }) => kind === "an ordinary user");
  if (currentUser().uid !== 0 || user === undefined)
    return skip("an installation of root's, used by an ordinary user", "only root can make both");
  const root = await installed(currentUser());
  execFileSync("chmod", ["755", root.folder]);
  const person = await installed(user, { prefix: root.prefix });
  const before = lookAt(root.prefix, []);
  expect((await person.mustRun(["substrate", "exec", "--", "id -u"])).stdout).toBe(`${user.uid}\n`);
  expect((await person.run(["substrate", "init", "claude-code", "--yes"])).code).toBe(0);
  const write = `echo x > ${root.package}/.build/substrate.mjs`;
  expect((await person.run(["substrate", "exec", "--", write])).code).not.toBe(0);
  await person.mustRun(["substrate", "init", "claude-code", "--undo"]);
  expect(differences(before, lookAt(root.prefix, []))).toEqual([]);
}, 120_000);

type HookSettings = {
  readonly hooks: {
    readonly PreToolUse: readonly { readonly hooks: readonly { readonly command: string }[] }[];
  };
};
type HookAnswer = { readonly hookSpecificOutput: { readonly updatedInput: { readonly command: string } } };

/** What differs from before, without the times of folders in which something came and went. */
function left(
  before: ReadonlyMap<string, string>,
  person: Person,
  but: readonly string[],
): readonly string[] {
  const withoutTimes = (all: ReadonlyMap<string, string>) =>
    new Map(
      [...all].map(([path, words]) => {
        const [mode, uid, gid, , , content] = words.split(" ");
        return [path, [mode, uid, gid, content].join(" ")];
      }),
    );
  return differences(withoutTimes(before), withoutTimes(lookAt(person.home, but)));
}
