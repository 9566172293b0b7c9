/** What a command has of the shell that `substrate exec` was typed in. */
import { chmodSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CheckReply, ExecuteReply } from "../../schemas/generated/types.ts";
import { actors, runAs } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";

const SYSTEM = "/usr/local/bin:/usr/bin:/bin";
const SHIPPED = readFileSync(join(import.meta.dirname, "../../policies/default.yaml"), "utf8");

describe.each(actors())("the caller's shell, as $kind", (actor) => {
  let broker: TestBroker;
  const exec = (words: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    broker.cli(["exec", ...words], { env });

  beforeAll(async () => {
    const environment = { CI: "brokers", NODE_ENV: "brokers", UNLISTED: "brokers" };
    broker = await TestBroker.start(actor, { policies: { default: SHIPPED }, environment });
    broker.write(join(broker.project, "node_modules/.bin/its-tool"), "#!/bin/sh\necho its-tool ran\n");
    chmodSync(join(broker.project, "node_modules/.bin/its-tool"), 0o755);
  });
  afterAll(() => broker.stop());

  test("CI, NODE_ENV, VIRTUAL_ENV, version managers and the locale are the caller's, and nothing else is", async () => {
    const env = {
      ...{
        CI: "1",
        NODE_ENV: "test",
        RAILS_ENV: "test",
        VIRTUAL_ENV: "/v",
        NVM_DIR: "/n",
        PYENV_VERSION: "3",
        LC_TIME: "C",
      },
      ...{ UNLISTED: "x", NODE_OPTIONS: "--no-warnings", PYTHONPATH: "/x", GIT_DIR: "/x", HOME: "/nowhere" },
    };
    const { stdout, code } = await exec(["--", "env"], env);
    expect(code).toBe(0);
    const found = new Set(stdout.split("\n"));
    for (const line of [
      "CI=1",
      "NODE_ENV=test",
      "VIRTUAL_ENV=/v",
      "NVM_DIR=/n",
      "PYENV_VERSION=3",
      "LC_TIME=C",
    ])
      expect(found).toContain(line);
    expect(stdout).not.toMatch(/^(UNLISTED|NODE_OPTIONS|PYTHONPATH|GIT_DIR)=/m);
    expect(found).toContain(`HOME=${actor.home}`);
    const plain = (await exec(["--", "env"])).stdout;
    expect(plain).not.toMatch(/^(CI|NODE_ENV)=/m);
  });

  test("a variable that make would read, or that the output of a failed command names, is told too", async () => {
    const env = { CC: "clang", DATABASE_URL: "x", MYAPP: "1", CI: "1" };
    const told = async (cmd: string): Promise<string> => (await exec(["--", cmd], env)).stderr;
    expect(await told("make --version > /dev/null")).toMatch(
      /^substrate: 'CC' is set in the calling shell and empty/,
    );
    broker.write(join(broker.project, "fails"), 'echo "KeyError: DATABASE_URL, CI, MYAPPS" >&2; exit 1\n');
    broker.write(join(broker.project, "passes"), "echo DATABASE_URL\n");
    expect(await told("sh fails")).toMatch(
      /\nsubstrate: 'DATABASE_URL' is set in the calling shell and empty/,
    );
    expect(await told("sh passes")).toBe("");
  });

  test("a variable that the text names, that the shell has and that is not passed is told; others are not", async () => {
    const env = { API_URL: "https://example.org", DEPLOY_TO: "x", CI: "1", PWD: "/", HOSTNAME: "here" };
    const told = async (...words: readonly string[]): Promise<string> => (await exec(words, env)).stderr;
    expect(await told("--", 'echo "$API_URL/$CI" "${DEPLOY_TO:-none}" $NOWHERE')).toMatch(
      /^substrate: 'API_URL', 'DEPLOY_TO' are set in the calling shell and empty in the world: .*"substrate exec --env API_URL" gives a variable to one command, SUBSTRATE_SH_ENV=API_URL to those of substrate-sh\n$/,
    );
    for (const words of [
      ["--env", "API_URL", "--", "echo $API_URL"],
      ["--", "API_URL=y; echo $API_URL"],
      ["--", "for API_URL in a b; do echo $API_URL; done"],
      ["--", "echo API_URL $CI $HOME $PWD"],
      ["--", "printenv", "$API_URL"],
      ["--shell", "bash", "--", "echo $HOSTNAME $OSTYPE"],
    ])
      expect(await told(...words), words.join(" ")).not.toContain("in the calling shell");
  });

  test("variables by which git works elsewhere or as somebody else are told where the command runs git", async () => {
    const env = { GIT_INDEX_FILE: "/tmp/other", GIT_AUTHOR_NAME: "Joe", GIT_PAGER: "cat", GIT_ASKPASS: "x" };
    const ofGit = await broker.cli(["exec", "--", "git --version"], { env });
    expect(ofGit.stderr).toMatch(
      /^substrate: 'GIT_INDEX_FILE', 'GIT_AUTHOR_NAME' are set in the calling shell/,
    );
    expect((await broker.cli(["exec", "--", "git", "--version"], { env })).stderr).toBe(ofGit.stderr);
    expect((await broker.cli(["exec", "--", "echo digit"], { env })).stderr).toBe("");
    const given = ["exec", "--env", "GIT_INDEX_FILE", "--env", "GIT_AUTHOR_NAME", "--", "git --version"];
    expect((await broker.cli(given, { env })).stderr).toBe("");
  });

  test("soft limits of the shell do not hold for the command, which can lower them for itself; the help says so", async () => {
    const { node, launcher } = await installationFor(actor);
    const limited = ["/bin/sh", "-c", 'ulimit -S -n 256; exec "$@"', "sh", node, launcher, "exec", "--"];
    const run = async (cmd: string): Promise<string> => {
      const env = { PATH: SYSTEM, HOME: actor.home, SUBSTRATE_HOME: broker.home };
      return (await runAs(actor, [...limited, cmd], { cwd: broker.project, env })).stdout;
    };
    expect(Number(await run("ulimit -Sn"))).toBeGreaterThan(256);
    expect(await run("ulimit -n 200; ulimit -Sn")).toBe("200\n");
    const { stdout } = await broker.cli(["exec", "--help"]);
    expect(stdout).toContain("'ulimit' settings of this shell do not apply: the world has resource limits");
  });

  test("a call of the API that says nothing of a shell has the broker's own", async () => {
    expect((await broker.run("echo $CI $NODE_ENV $UNLISTED")).stdout).toBe("brokers brokers\n");
  });

  test("PATH is the caller's, in its order, with a project's own programs and folders that do not exist", async () => {
    const PATH = `/none:${broker.project}/node_modules/.bin:relative:${SYSTEM}`;
    expect(await exec(["--", "its-tool"], { PATH: SYSTEM })).toMatchObject({ code: 127 });
    expect(await exec(["--", "its-tool; cd /; its-tool; echo $PATH"], { PATH })).toMatchObject({
      code: 0,
      stdout: `its-tool ran\nits-tool ran\n${PATH}\n`,
    });
    expect(await exec(["--", "its-tool", "word"], { PATH })).toMatchObject({
      code: 0,
      stdout: "its-tool ran\n",
    });
  });

  test("the shims' folder, which no world shows, is no part of PATH", async () => {
    const { stdout } = await exec(["--", "echo $PATH"], { PATH: `${broker.home}/shims:${SYSTEM}` });
    expect(stdout).toBe(`${SYSTEM}\n`);
  });

  test("--env sets a variable or takes one from here, as often as needed", async () => {
    const env = { TAKEN: "from here", EMPTY: "" };
    const words = ["--env", "SET=a=b", "--env", "TAKEN", "--env", "EMPTY", "--env", "NODE_ENV=set"];
    expect(
      await exec([...words, "--", 'echo "$SET|$TAKEN|${EMPTY-unset}|$NODE_ENV"'], {
        ...env,
        NODE_ENV: "here",
      }),
    ).toMatchObject({ code: 0, stdout: "a=b|from here||set\n" });
    const unset = await exec(["--env", "NOT_SET_HERE", "--", "true"]);
    expect(unset).toMatchObject({ code: 125, stdout: "" });
    expect(unset.stderr).toContain("'NOT_SET_HERE'");
    expect(await exec(["--env", "=x", "--", "true"])).toMatchObject({ code: 125 });
  });

  test("--shell bash runs and checks a command of bash", async () => {
    const arrays = "a=(one two); echo ${a[1]}";
    expect(await exec(["--shell", "bash", "--", arrays])).toMatchObject({ code: 0, stdout: "two\n" });
    expect(await exec(["--shell", "sh", "--", "echo $0"])).toMatchObject({ code: 0, stdout: "/bin/sh\n" });
    expect(await broker.cli(["check", "--shell", "bash", "--", arrays])).toMatchObject({ code: 0 });
    for (const words of [
      ["--shell", "zsh", "--", "true"],
      ["--shell", "bash", "--", "echo", "x"],
    ]) {
      expect(await exec(words)).toMatchObject({ code: 125, stdout: "" });
      expect(await broker.cli(["check", ...words])).toMatchObject({ code: 125, stdout: "" });
    }
  });

  test("check takes the body of execute, and what only running needs changes nothing", async () => {
    const body = { agent_id: "test", cmd: "[[ a ]]", shell: "bash", cwd: broker.project };
    const needless = {
      timeout_ms: 5,
      stdin_b64: "",
      background: "keep",
      max_output_bytes: 0,
      no_time_limit: true,
    };
    const { status, document } = await broker.call("POST", "/v1/check", { ...body, ...needless });
    expect(status, JSON.stringify(document)).toBe(200);
    expect((document as CheckReply).decision).toMatchObject({ verdict: "allow" });
    const strange = await broker.call("POST", "/v1/check", { ...body, caller_environment: {} });
    expect(strange.status).toBe(400);
  });

  test("the span keeps what was passed, and a replay has it again", async () => {
    const env = { CI: "yes", PATH: `${broker.project}/node_modules/.bin:${SYSTEM}` };
    const { stdout } = await exec(["--json", "--", 'its-tool; echo "$CI"'], env);
    const { span_id: span } = JSON.parse(stdout) as ExecuteReply;
    expect(await broker.span(span)).toMatchObject({
      replayable: true,
      given: { caller_env: { CI: "yes" } },
      replay_context: { path: env.PATH },
    });
    const replayed = await broker.cli(["replay", span, "--json"]);
    expect(JSON.parse(replayed.stdout)).toMatchObject({
      matches: { exit: true, stdout: true, stderr: true, fs_diff: true },
      drift: [],
    });
    expect(replayed.code).toBe(0);
  });
});

describe.each(actors())("a policy's word about the caller's shell, as $kind", (actor) => {
  const start = (text: string): Promise<TestBroker> =>
    TestBroker.start(actor, { policies: { default: `id: default\nname: Test\nmode: enforce\n${text}` } });

  test("world.env takes globs", async () => {
    const broker = await start('world: { env: ["APP_*", EXACT] }\n');
    try {
      const env = { APP_ONE: "1", APP_: "2", XAPP_ONE: "no", EXACT: "3", EXACTLY: "no", CI: "no" };
      const { stdout } = await broker.cli(["exec", "--", "env | sort | grep -E 'APP|EXACT|^CI'"], { env });
      expect(stdout).toBe("APP_=2\nAPP_ONE=1\nEXACT=3\n");
    } finally {
      await broker.stop();
    }
  });

  test("a program of the caller's PATH is judged by what it is", async () => {
    const broker = await start('commands: { denied: ["id *"] }\n');
    try {
      broker.write(join(broker.project, "bin/other"), "#!/bin/sh\necho other\n");
      chmodSync(join(broker.project, "bin/other"), 0o755);
      await runAs(actor, ["ln", "-s", "/usr/bin/id", join(broker.project, "bin/innocent")]);
      const env = { PATH: `${broker.project}/bin:${SYSTEM}` };
      expect(await broker.cli(["check", "--", "innocent"], { env })).toMatchObject({ code: 126 });
      expect(await broker.cli(["exec", "--", "innocent"], { env })).toMatchObject({ code: 126, stdout: "" });
      expect(await broker.cli(["exec", "--", "other"], { env })).toMatchObject({
        code: 0,
        stdout: "other\n",
      });
    } finally {
      await broker.stop();
    }
  });
});

describe.each(actors())("a broker that npm started, as $kind", (actor) => {
  test("has none of npm's variables, and no folder of the project's on PATH", async () => {
    const broker = await TestBroker.start(actor, {});
    try {
      const { node, launcher } = await installationFor(actor);
      const words = { scripts: { start: `${node} ${launcher} broker start` }, name: "p", version: "1.0.0" };
      broker.write(join(broker.project, "package.json"), JSON.stringify(words));
      const home = join(broker.folder, "other");
      const env = { SUBSTRATE_HOME: home, npm_config_update_notifier: "false", OWN: "stays" };
      const started = await runAs(actor, ["npm", "start"], { cwd: broker.project, env });
      expect(started, started.stderr).toMatchObject({ code: 0 });
      try {
        const { pid } = JSON.parse(readFileSync(join(home, "run/broker.json"), "utf8")) as { pid: number };
        const variables = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
        expect(variables.filter((one) => /^(npm_|INIT_CWD)/.test(one))).toEqual([]);
        expect(variables).toContain("OWN=stays");
        expect(variables.find((one) => one.startsWith("PATH="))).not.toMatch(
          /node_modules\/\.bin|node-gyp-bin/,
        );
      } finally {
        await runAs(actor, [node, launcher, "broker", "stop"], { cwd: broker.project, env });
      }
    } finally {
      await broker.stop();
    }
  });
});
