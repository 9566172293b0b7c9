/** What an agent says of its own shell must not put another program behind a name that a rule lets through. */
import { chmodSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ErrorReply } from "../../schemas/generated/types.ts";
import { actors, runAs } from "../support/users/users.ts";
import { Person } from "../support/broker/approvals.ts";
import { TestBroker } from "../support/broker/broker.ts";

const SYSTEM = "/usr/local/bin:/usr/bin:/bin";
const POLICY = `id: default
name: Caller
mode: enforce
commands: { denied: ["id *"] }
fs: { write: ["$PROJECT/**", "$HOME/.written/**"] }
approval: { require: true, auto_approve: ["git --version", "sh go.sh", "cd sub"] }
world: { env: [CI, NODE_ENV, VIRTUAL_ENV, NVM_DIR, "NODE_*"] }
`;

describe.each(actors())("an agent's own PATH and variables, as $kind", (actor) => {
  let broker: TestBroker;
  const { home } = actor;
  const at = (name: string): string => join(broker.project, name);
  const ask = (caller_env: Readonly<Record<string, string>>, cmd = "git --version", more = {}) =>
    broker.post({ cmd, caller_env: { PATH: SYSTEM, ...caller_env }, ...more });

  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    broker.write(at("bin/git"), "#!/bin/sh\ntouch RAN\n");
    chmodSync(at("bin/git"), 0o755);
    broker.write(at("bin/harmless"), "#!/bin/sh\necho harmless ran\n");
    chmodSync(at("bin/harmless"), 0o755);
    broker.write(at("sub/bin/git"), "#!/bin/sh\ntouch RAN\n");
    chmodSync(at("sub/bin/git"), 0o755);
    await runAs(actor, ["ln", "-s", "/usr/bin/id", at("bin/innocent")]);
    broker.write(at("go.sh"), "harmless\ninnocent\n");
  });
  afterEach(() => rmSync(at("RAN"), { force: true }));
  afterAll(() => broker.stop());

  test.each([
    ["a folder of the project", () => ({ PATH: `${at("bin")}:${SYSTEM}` })],
    ["a relative folder", () => ({ PATH: `bin:${SYSTEM}` })],
    ["the working directory", () => ({ PATH: `:${SYSTEM}` })],
    ["a folder that commands write", () => ({ PATH: `${home}/.written/bin:${SYSTEM}` })],
    ["a folder below a hidden one that leads out of it", () => ({ PATH: `${home}/.x/../bin:${SYSTEM}` })],
    ["a folder of every world's own", () => ({ PATH: `/tmp/bin:${SYSTEM}` })],
    ["a folder of the home that may be a project", () => ({ PATH: `${home}/work/bin:${SYSTEM}` })],
    ["a hidden folder of the home", () => ({ PATH: `${home}/.nvm/versions/node/v22/bin:${SYSTEM}` })],
    ["a version manager's folder there", () => ({ NVM_DIR: `${home}/.nvm` })],
    ["a variable that loads code, which the policy passes", () => ({ NODE_OPTIONS: "--require=./x.cjs" })],
    ["settings of the project", () => ({ NODE_ENV: "x" })],
    ["an environment in the project", () => ({ VIRTUAL_ENV: at(".venv") })],
  ])("%s is no part of what a rule lets through", async (_what, shell) => {
    const { status, document } = await ask(shell());
    expect(status, JSON.stringify(document)).toBe(403);
    expect((document as ErrorReply).error.code).toBe("approval_required");
    expect(existsSync(at("RAN"))).toBe(false);
  });

  test.each([
    ["nothing more", () => ({})],
    ["words that only say where they are", () => ({ CI: "true" })],
    ["what the policy does not pass", () => ({ LD_PRELOAD: "./x.so", MAKEFLAGS: "-f x", SECRET: "x" })],
  ])("with %s the rule lets it through", async (_what, shell) => {
    const { status, document } = await ask(shell());
    expect(status, JSON.stringify(document)).toBe(200);
  });

  test("a person's own shell is taken as it is, and the planted program still asks", async () => {
    const env = { PATH: `${at("none")}:${SYSTEM}`, NODE_ENV: "test", VIRTUAL_ENV: at(".venv") };
    expect(await broker.cli(["exec", "--", "git --version"], { env })).toMatchObject({ code: 0 });
    const planted = await broker.cli(["exec", "--", "git --version"], {
      env: { PATH: `${at("bin")}:${SYSTEM}` },
    });
    expect(planted.code).toBe(126);
    expect(existsSync(at("RAN"))).toBe(false);
  });

  test("a yes to a command with one PATH is none to the same with another, and the person sees which", async () => {
    const person = new Person(broker);
    const shell = { PATH: `${at("none")}:${SYSTEM}` };
    const body = { cmd: "git --version", caller_env: shell };
    const first = await person.told(body);
    const { subject } = await person.question(first.approval_id);
    expect(subject).toMatchObject({ env: [`PATH=${shell.PATH}`] });
    expect(await person.answer(first.approval_id, "session")).toMatchObject({ status: 200 });
    expect(await ask({ PATH: `${at("other")}:${SYSTEM}` })).toMatchObject({ status: 403 });
    expect(await person.told(body)).toMatchObject({ status: 200 });
  });

  test("a relative folder of PATH is another one after cd, and what lies there asks at its start", async () => {
    const env = { PATH: `bin:${SYSTEM}` };
    const planted = await broker.cli(["exec", "--", "cd sub && git --version"], { env });
    expect(existsSync(at("sub/RAN")), planted.stderr).toBe(false);
    expect(planted).not.toMatchObject({ code: 0 });
    const plain = await broker.cli(["exec", "--", "cd sub && git --version"], {
      env: { PATH: `none:${SYSTEM}` },
    });
    expect(plain, plain.stderr).toMatchObject({ code: 0 });
  });

  test("a denied program under another name in a folder of PATH does not start below a command either", async () => {
    const env = { PATH: `${at("bin")}:${SYSTEM}` };
    const { stdout, stderr } = await broker.cli(["exec", "--", "sh go.sh"], { env });
    expect(stdout).toBe("harmless ran\n");
    expect(stderr).toMatch(/refuses to start this program: '.*\/innocent' matches 'id \*'/);
  });

  test("a credential of the caller's shell is neither passed on nor on record", async () => {
    const token = `ghp_${"a1B2".repeat(9)}`;
    const listed = { NODE_AUTH_TOKEN: token, GITHUB_TOKEN: token };
    const { status } = await ask(listed, "git --version");
    expect(status).toBe(403);
    const env = { ...listed, CI: "1" };
    const ran = await broker.cli(["exec", "--json", "--", "git --version"], { env });
    expect(ran.code, ran.stderr).toBe(0);
    const { span_id: span } = JSON.parse(ran.stdout) as { span_id: string };
    expect(await broker.span(span)).toMatchObject({ replayable: false, given: { not_kept: ["env"] } });
    expect(JSON.stringify(broker.spans())).not.toContain(token);
  });
});
