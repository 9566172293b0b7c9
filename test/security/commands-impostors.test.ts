import { chmodSync, existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { attack, type Disguise, FORBIDDEN, NOTHING_OPAQUE } from "../support/policy/command-attacks.ts";

const LISTED = `id: default
name: A short list
mode: enforce
commands:
  allowed: ["cat *", "git version", "true"]
`;

/** Names of the list, for programs that are others. `cat` in the project is a script that makes the forbidden file. */
const IMPOSTORS: readonly (readonly [string, string])[] = [
  ["a program of that name in the project", "./cat a"],
  ["its absolute path", "$PWD/cat a"],
  ["a folder before the others on PATH", 'PATH="$PWD:$PATH" cat a'],
  ["PATH that is exported", "true; export PATH=.; cat a"],
  ["env with a PATH", "env PATH=. cat a"],
  ["a function", `cat() { touch ${FORBIDDEN}; }; cat a`],
  ["an alias", `alias cat='touch ${FORBIDDEN}'\ncat a`],
  ["a command hash", "hash -p ./cat cat; cat a"],
  ["a library", "LD_PRELOAD=./x.so cat a"],
  ["a startup file", "BASH_ENV=./cat bash -c 'cat a'"],
  ["the folder of git's own programs", "GIT_EXEC_PATH=. git version"],
  ["a brace that dash takes for a name", "./{cat,a}"],
];

describe.each(actors())("an impostor, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: LISTED } });
    broker.write(join(broker.project, "a"), "text\n");
    broker.write(join(broker.project, "cat"), `#!/bin/sh\ntouch ${FORBIDDEN}\n`);
    broker.write(join(broker.project, "{cat,a}"), `#!/bin/sh\ntouch ${FORBIDDEN}\n`);
    for (const name of ["cat", "{cat,a}"]) chmodSync(join(broker.project, name), 0o755);
  });
  afterAll(() => broker.stop());

  test.each(IMPOSTORS)("%s does not pass for what is allowed", async (_what, cmd) => {
    expect(await broker.refused({ cmd })).toMatchObject({ code: "policy_denied" });
    expect(existsSync(join(broker.project, FORBIDDEN))).toBe(false);
  });

  test.each([
    ["PATH", "."],
    ["LD_PRELOAD", "./x.so"],
    ["BASH_ENV", "./cat"],
  ])("a request's %s makes no impostor", async (name, value) => {
    const error = await broker.refused({ cmd: "cat a", env: { [name]: value } });
    expect(error).toMatchObject({ code: "policy_denied" });
    expect(existsSync(join(broker.project, FORBIDDEN))).toBe(false);
  });

  test("the program itself runs, by its name and by its path, and with a harmless variable", async () => {
    for (const cmd of ["cat a", "/usr/bin/cat a", "LC_ALL=C cat ./a", "git version > /dev/null; cat a"])
      expect(await broker.run({ cmd, env: { LANG: "C" } })).toMatchObject({ stdout: "text\n" });
  });
});

const VARIABLES: readonly (readonly [string, Disguise["command"], "commands.denied" | "commands.opaque"])[] =
  [
    [
      "GIT_SSH_COMMAND",
      (file) => `GIT_SSH_COMMAND='touch ${file}' git ls-remote ssh://h/r`,
      "commands.denied",
    ],
    [
      "GIT_SSH_COMMAND, exported",
      (file) => `export GIT_SSH_COMMAND='touch ${file}'; git fetch`,
      "commands.denied",
    ],
    [
      "GIT_SSH_COMMAND through env",
      (file) => `env GIT_SSH_COMMAND='touch ${file}' git fetch`,
      "commands.denied",
    ],
    ["PAGER", (file) => `PAGER='touch ${file}' git -p version`, "commands.denied"],
    ["EDITOR", (file) => `EDITOR='touch ${file}' git commit`, "commands.denied"],
    ["LESSOPEN", (file) => `LESSOPEN='|touch ${file}' less a`, "commands.denied"],
    [
      "GIT_CONFIG_COUNT",
      (file) => `GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!touch ${file}' git x`,
      "commands.denied",
    ],
    ["LD_PRELOAD", (file) => `LD_PRELOAD=./x.so cat ${file}`, "commands.opaque"],
    ["BASH_ENV", (file) => `BASH_ENV=./${file} bash -c :`, "commands.opaque"],
    ["NODE_OPTIONS", (file) => `NODE_OPTIONS='--require ./${file}' node x.js`, "commands.opaque"],
    ["PYTHONSTARTUP", (file) => `PYTHONSTARTUP=${file} python3`, "commands.opaque"],
    [
      "GIT_CONFIG_PARAMETERS",
      (file) => `GIT_CONFIG_PARAMETERS="'alias.x'='!touch ${file}'" git x`,
      "commands.opaque",
    ],
  ];

describe.each(actors())("a variable that loads code, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: NOTHING_OPAQUE } });
  });
  afterAll(() => broker.stop());

  test.each(VARIABLES)("%s is seen", async (_what, command, list) => {
    await attack(broker, { command }, list);
  });

  test("one of a request is seen too, and its value is not told", async () => {
    const env = { GIT_SSH_COMMAND: `touch ${FORBIDDEN}`, TOKEN: "hunter2hunter2" };
    const error = await broker.refused({ cmd: "git ls-remote ssh://h/r", env });
    expect(error.rule).toMatchObject({ list: "commands.denied", pattern: `touch ${FORBIDDEN}` });
    const loaded = await broker.refused({
      cmd: "true",
      env: { ...env, GIT_SSH_COMMAND: "", LD_PRELOAD: "./x.so" },
    });
    expect(loaded.rule).toMatchObject({ list: "commands.opaque" });
    expect(JSON.stringify(loaded)).not.toContain("hunter2");
    expect(existsSync(join(broker.project, FORBIDDEN))).toBe(false);
  });

  test("harmless ones run: a pager, memory for node, a library's folder", async () => {
    const harmless =
      "PAGER=cat GIT_PAGER=cat NODE_OPTIONS=--max-old-space-size=512 LD_LIBRARY_PATH=/none PYTHONPATH=src";
    expect(await broker.run(`${harmless} git --version | head -c 3`)).toMatchObject({ stdout: "git" });
    const env = { PAGER: "cat", NODE_ENV: "test", EDITOR: "true" };
    expect(await broker.run({ cmd: 'echo "$NODE_ENV"', env })).toMatchObject({ stdout: "test\n" });
  });
});
