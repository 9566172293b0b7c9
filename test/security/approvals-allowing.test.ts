/** What the shipped `approval.auto_approve` lets through when `approval.require` asks about everything else. */
import { chmodSync, existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Approval } from "../../schemas/generated/types.ts";
import { actors } from "../support/users/users.ts";
import { Person } from "../support/broker/approvals.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";

const SHIPPED = readFileSync(join(import.meta.dirname, "../../policies/default.yaml"), "utf8");
const POLICY = SHIPPED.replace(/^mode: .*$/m, "mode: enforce").replace(
  /^approval:$/m,
  "approval:\n  require: true",
);
/** Every git command, as an operator may have written it. */
const BROAD = POLICY.replace(
  /^ {2}auto_approve: \[[^\]]*\]/m,
  '  auto_approve: ["git *", "cd *", "make", "npm test"]',
);
const RULES = { "the shipped rules": POLICY, "the rules git * and cd *": BROAD };
const CASES = actors().flatMap((actor) =>
  Object.entries(RULES).map(([rules, policy]) => ({ actor, kind: actor.kind, rules, policy })),
);
/** What an attack leaves where git or make stood when it ran. */
const EFFECTS = ["RAN", "nested/RAN", "bare/RAN", "n/RAN"];
const PACKAGE = JSON.stringify({ name: "p", version: "1.0.0", scripts: { test: "touch tested" } });

describe.each(CASES)("under approval.require with $rules, as $kind", ({ actor, policy }) => {
  let broker: TestBroker;
  let person: Person;
  const at = (name: string): string => join(broker.project, name);

  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: policy } });
    person = new Person(broker);
    hostGit(actor, broker.project, "init", "-q", ".");
    hostGit(actor, broker.project, "commit", "-q", "--allow-empty", "-m", "first");
    broker.write(at("Makefile"), "all:\n\t@touch made\n");
    broker.write(at("package.json"), PACKAGE);
    broker.write(at("attack"), "#!/bin/sh\ntouch RAN\n");
    chmodSync(at("attack"), 0o755);
    broker.write(at("bin/make"), "#!/bin/sh\ntouch RAN\n");
    chmodSync(at("bin/make"), 0o755);
    broker.write(at("more.mk"), "$(shell touch RAN)\n");
    // A repository that a command made, with settings that are programs.
    hostGit(actor, broker.project, "init", "-q", "nested");
    hostGit(actor, at("nested"), "config", "alias.z", "!touch RAN");
    hostGit(actor, at("nested"), "config", "core.fsmonitor", "touch RAN; :");
    hostGit(actor, broker.project, "init", "-q", "--bare", "bare");
    hostGit(actor, at("bare"), "config", "alias.z", "!touch RAN");
    broker.write(
      at("settings/git/config"),
      "[alias]\n\tz = !touch RAN\n[core]\n\tfsmonitor = touch RAN; :\n",
    );
  });
  afterEach(() => {
    for (const name of [...EFFECTS, "made", "tested"]) rmSync(at(name), { force: true });
  });
  afterAll(() => broker.stop());

  const attacks: readonly (readonly [string, () => Readonly<Record<string, unknown>>])[] = [
    [
      "make with a function in MAKEFLAGS",
      () => ({ cmd: "make", env: { MAKEFLAGS: "$(info $(shell touch RAN))" } }),
    ],
    ["make with MAKEFLAGS before it", () => ({ cmd: "MAKEFLAGS='$(info $(shell touch RAN))' make" })],
    ["make with GNUMAKEFLAGS", () => ({ cmd: "make", env: { GNUMAKEFLAGS: "--eval=$(shell touch RAN)" } })],
    ["make with another PATH of the same line", () => ({ cmd: "PATH=$PWD/bin:$PATH; make" })],
    [
      "make with a makefile that a variable names",
      () => ({ argv: ["make"], env: { MAKEFILES: at("more.mk") } }),
    ],
    ["git in a folder that -C names", () => ({ cmd: "git -C nested z" })],
    ["git with the folder of another repository", () => ({ cmd: "git --git-dir=nested/.git z" })],
    ["git with a setting of its words", () => ({ cmd: "git -c alias.z='!touch RAN' z" })],
    ["git after a cd", () => ({ cmd: "cd nested && git z" })],
    [
      "git that makes a repository with settings and uses it",
      () => ({
        cmd: "git init -q n; git config -f n/.git/config alias.z '!touch ../RAN'; git -C n z",
      }),
    ],
    [
      "git with settings of the project's files",
      () => ({ cmd: "git status", env: { XDG_CONFIG_HOME: at("settings") } }),
    ],
    ["git with a home in the project", () => ({ cmd: "git status", env: { HOME: at("settings") } })],
    ["git status in a nested repository", () => ({ cmd: "git status", cwd: at("nested") })],
    ["any git command in a nested repository", () => ({ cmd: "git z", cwd: at("nested") })],
    ["git in a bare repository", () => ({ cmd: "git z", cwd: at("bare") })],
    [
      "npm test with another shell for scripts",
      () => ({ cmd: "npm test", env: { NPM_CONFIG_SCRIPT_SHELL: at("attack") } }),
    ],
    [
      "npm test with the same in small letters",
      () => ({ cmd: "npm test", env: { npm_config_script_shell: at("attack") } }),
    ],
    [
      "npm test with the same in mixed letters",
      () => ({ cmd: "npm test", env: { Npm_Config_Script_Shell: at("attack") } }),
    ],
  ];

  test.each(attacks)("%s asks a person, and runs nothing", async (_what, body) => {
    const told = await person.told(body());
    expect({ code: told.code, ran: EFFECTS.filter((name) => existsSync(at(name))) }).toEqual({
      code: "approval_required",
      ran: [],
    });
  });

  test.each([
    ["git status", undefined],
    ["LANG=C LC_ALL=C.UTF-8 git log --oneline -n 3", undefined],
    ["git diff --stat", { NO_COLOR: "1", TERM: "dumb", CI: "true", COLUMNS: "80" }],
    ["git branch -a", { TZ: "Europe/Berlin" }],
  ] as const)("%s asks nobody", async (cmd, env) => {
    expect(await person.told({ cmd, ...(env === undefined ? {} : { env }) })).toMatchObject({
      status: 200,
    });
  });

  test("make and npm test ask nobody, and run what the project says", async () => {
    expect(await person.told({ cmd: "make" })).toMatchObject({ status: 200 });
    expect(existsSync(at("made"))).toBe(true);
    expect(await person.told({ cmd: "npm test" })).toMatchObject({ status: 200 });
    expect(existsSync(at("tested"))).toBe(true);
  });

  test("what git starts by a person's own settings asks at its start, and runs after a yes", async () => {
    hostGit(actor, broker.project, "config", "diff.external", "touch RAN; :");
    hostGit(actor, broker.project, "add", "Makefile");
    const cmd = "git diff --cached";
    await person.told({ cmd });
    expect(existsSync(at("RAN"))).toBe(false);
    const isStart = (one: Approval): boolean => one.rule?.fragment.includes("touch RAN; :") === true;
    expect((await person.list()).approvals.filter(isStart)).toMatchObject([
      { waiting: 0, rule: { list: "approval.require" } },
    ]);
    const waiting = person.told({ cmd, approval_wait_ms: 20_000 });
    expect(await person.answer((await person.waitedFor()).approval_id, "once")).toEqual({ status: 200 });
    expect(await waiting).toMatchObject({ status: 200 });
    expect(existsSync(at("RAN"))).toBe(true);
  });
});
