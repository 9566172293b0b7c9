import { chmodSync, existsSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HomeFolder } from "../support/users/folders.ts";
import { actors } from "../support/users/users.ts";
import { Person } from "../support/broker/approvals.ts";
import { TestBroker } from "../support/broker/broker.ts";

const POLICY = `id: default
name: Asks
mode: enforce
approval: { require: true }
`;

const GOOD = "#!/bin/sh\nprintf good\n";
const EVIL = "#!/bin/sh\nprintf evil\n";

describe.each(actors())("the files that a command runs, as $kind", (actor) => {
  let broker: TestBroker;
  let person: Person;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    person = new Person(broker);
  });
  afterAll(() => broker.stop());

  const inProject = (name: string): string => join(broker.project, name);
  const put = (name: string, content: string, mode = 0o755): void => {
    broker.write(inProject(name), content);
    chmodSync(inProject(name), mode);
  };
  const offersOf = async (body: Readonly<Record<string, unknown>>): Promise<readonly string[]> => {
    const { approval_id: id } = await person.told(body);
    return (await person.question(id)).offers;
  };

  test.each([
    ["a builtin before it", { cmd: "cd sub && ./run" }, "sub/run"],
    ["a file through <>", { cmd: "sh <>run" }, "run"],
    ["a program that another one starts", { cmd: "script -qec ./run /dev/null" }, "run"],
    ["a file behind its option", { argv: ["bash", "--rcfile", "run", "-ic", "true"] }, "run"],
    ["a sourced file", { cmd: ". ./sub/../env" }, "env"],
    ["a sourced name in PATH", { cmd: ". named", env: { PATH: "bin:/usr/bin:/bin" } }, "bin/named"],
    ["a relative PATH behind cd", { cmd: "cd sub && tool", env: { PATH: ".:/usr/bin:/bin" } }, "sub/tool"],
    ["a name without its ending", { argv: ["node", "build"] }, "build.js"],
    ["a file that an option has attached", { argv: ["node", "--require=./early.js", "-e", ""] }, "early.js"],
  ] as const)("%s asks again once it is another", async (_what, body, file) => {
    const isNode = file.endsWith(".js");
    const content = (word: string): string =>
      isNode ? `process.stdout.write("${word}")` : `#!/bin/sh\nprintf ${word}\n`;
    put("sub/kept", "");
    put(file, content("good"));
    expect(await offersOf(body)).toEqual(["once", "session", "always", "deny"]);
    await person.approve(body, "session");
    expect((await person.told(body)).status).toBe(200);
    put(file, content("evil"));
    expect(await person.told(body)).toMatchObject({ code: "approval_required" });
    put(file, content("good"));
    expect((await person.told(body)).status).toBe(200);
  });

  test.each([
    ["the program that a script's first line names", "#!PROJECT/runner -e\n", { cmd: "./job" }],
    ["that of a script which a shell's text starts", "#!PROJECT/runner\n", { argv: ["sh", "-c", "./job"] }],
    [
      "what env looks up in PATH for it",
      "#!/usr/bin/env -S A=1 runner\n",
      { cmd: "./job", env: { PATH: "PROJECT:/usr/bin:/bin" } },
    ],
    ["the program of that program's first line", "#!PROJECT/second-run\n", { cmd: "./job" }],
  ])("%s asks again once it is another", async (_what, line, call) => {
    const body = JSON.parse(JSON.stringify(call).replaceAll("PROJECT", broker.project)) as object & {
      cmd?: string;
    };
    put("job", line.replaceAll("PROJECT", broker.project));
    put("second-run", `#!${broker.project}/runner\n`);
    put("runner", GOOD);
    await person.approve(body, "session");
    expect((await person.told(body)).status).toBe(200);
    put("runner", EVIL);
    expect(await person.told(body)).toMatchObject({ code: "approval_required" });
    put("runner", GOOD);
    expect((await person.told(body)).status).toBe(200);
  });

  test("a script that programs of the system run offers every answer, and one whose first line may name another file a single run", async () => {
    for (const line of [
      "#!/bin/sh\n",
      "#!/usr/bin/env sh\n",
      "#! /usr/bin/env -S sh -e\n",
      "no such line\n",
    ]) {
      put("plain", `${line}true\n`);
      expect(await offersOf({ cmd: "./plain" }), line).toEqual(["once", "session", "always", "deny"]);
    }
    for (const line of [
      "#!runner",
      "#!/bin/sh runner",
      "#!/usr/bin/node --require=./early.js",
      "#!/usr/bin/env -S -u X runner",
      "#!/usr/bin/env -Srunner",
      "#!/usr/bin/env -S sh runner",
      "#!/usr/bin/env ./runner",
    ]) {
      put("other", `${line}\n`);
      expect(await offersOf({ cmd: "./other" }), line).toEqual(["once", "deny"]);
    }
  });

  test.each([
    ["a file that a variable names", { cmd: "PERL5DB_FILE=./run true" }, "run"],
    ["a file that is only made later", { cmd: "PYTHONHASHFILE=later.py true" }, "later.py"],
    ["a file in a list", { cmd: "true", env: { MAKEFILES: "a.mk b.mk" } }, "b.mk"],
    ["a file behind an option", { cmd: "RUSTFLAGS='-Clinker=./link' true" }, "link"],
    ["a file with separators in its name", { cmd: "MAKEFILES=./a,b:c.mk true" }, "a,b:c.mk"],
  ] as const)("%s asks again once it is another", async (_what, body, file) => {
    await person.approve(body, "session");
    expect((await person.told(body)).status).toBe(200);
    put(file, EVIL);
    expect(await person.told(body)).toMatchObject({ code: "approval_required" });
  });

  test.each([
    ["a folder of modules", { cmd: "PERL5LIB=sub true" }],
    ["a list of folders", { cmd: "LD_LIBRARY_PATH=/usr/lib:sub true" }],
    ["an empty entry", { cmd: "PYTHONPATH=: true" }],
    ["what is exported", { cmd: "export MAKEFILES=a.mk; true" }],
    ["what is exported later", { cmd: "MAKEFILES=a.mk; export MAKEFILES; true" }],
    ["what is exported by set -a", { cmd: "set -a; MAKEFILES=a.mk; true" }],
    ["what is exported already", { cmd: "MAKEFILES=b.mk; true", env: { MAKEFILES: "c.mk" } }],
    ["what a loop sets", { cmd: "export MAKEFILES; for MAKEFILES in a.mk; do true; done" }],
    ["what read sets", { cmd: "export MAKEFILES; read MAKEFILES <<X\na.mk\nX\ntrue" }],
    ["a value that is found out later", { cmd: 'PYTHONPATH="$(pwd)" true' }],
  ])("%s in a variable is approved for one run only", async (_what, body) => {
    put("sub/kept", "");
    expect(await offersOf(body)).toEqual(["once", "deny"]);
  });

  test.each([
    ["a word", { cmd: "NODE_ENV=production VERSION=1.2.3 true" }],
    ["a folder of the system", { cmd: "JAVA_HOME=/usr/lib LC_ALL=C true" }],
    [
      "an activated environment",
      (project: string) => ({ cmd: "true", env: { VIRTUAL_ENV: `${project}/sub` } }),
    ],
  ])("%s in a variable can be approved for good", async (_what, body) => {
    put("sub/kept", "");
    expect(await offersOf(typeof body === "function" ? body(broker.project) : body)).toContain("always");
  });

  test.each([
    ["a shell", { cmd: "bash -c :", env: { BASH_ENV: "./be" } }],
    ["node", { argv: ["node", "-e", ""], env: { NODE_OPTIONS: "--require ./early.js" } }],
    ["perl", { argv: ["perl", "-e", "1"], env: { PERL5OPT: "-MEvil -I." } }],
    ["git", { cmd: "git diff", env: { GIT_EXTERNAL_DIFF: "./ged" } }],
    ["a shell find elsewhere", { cmd: "cd sub && ./kept", env: { CDPATH: "other" } }],
  ])(
    "what a variable of the call makes %s load or run is approved for one run only",
    async (_program, body) => {
      expect(await offersOf(body)).toEqual(["once", "deny"]);
      const harmless = { CI: "1", NODE_OPTIONS: "--max-old-space-size=512" };
      expect(await offersOf({ ...body, env: harmless })).toEqual(["once", "session", "always", "deny"]);
    },
  );

  test("a script where commands' writes stay in their world is approved for one run only", async () => {
    const home = new HomeFolder(actor);
    home.write("cache/x.sh", GOOD);
    home.write("plain/x.sh", GOOD);
    const policy = `${POLICY}fs: { read: ["/**"], write: ["$PROJECT/**"], scratch: ["${home.path}/cache/**"] }\n`;
    const other = await TestBroker.start(actor, { policies: { default: policy } });
    try {
      const asked = new Person(other);
      const offers = async (cmd: string): Promise<readonly string[]> => {
        const { approval_id: id } = await asked.told({ cmd });
        return (await asked.question(id)).offers;
      };
      expect(await offers(`sh ${home.path}/cache/x.sh`)).toEqual(["once", "deny"]);
      expect(await offers(`sh ${home.path}/plain/x.sh`)).toEqual(["once", "session", "always", "deny"]);
    } finally {
      await other.stop();
      home.remove();
    }
  });

  test("a file in PATH that nobody could start asks again once somebody can", async () => {
    put("first/tool", EVIL, 0o644);
    put("second/tool", GOOD);
    const body = { cmd: "tool", env: { PATH: `${inProject("first")}:${inProject("second")}:/usr/bin` } };
    await person.approve(body, "session");
    expect(await person.told(body)).toMatchObject({ status: 200, stdout: "good" });
    for (const mode of [0o755, 0o744]) {
      chmodSync(inProject("first/tool"), mode);
      expect(await person.told(body)).toMatchObject({ code: "approval_required" });
    }
    chmodSync(inProject("first/tool"), 0o644);
    expect(await person.told(body)).toMatchObject({ status: 200, stdout: "good" });
  });

  test.each([
    "sh r*n",
    "sh $SCRIPT",
    "sh <(cat run)",
    "cat run | sh",
    "cat run | bash -s x",
    "{ sh; } < run",
    "exec < run; sh",
    'cd "$SUB" && sh run',
    "find . -execdir ./run ';'",
    "sh /proc/self/cwd/run",
    "sh through/run",
    "node sub",
  ])("what '%s' runs is not known before, so it is approved for one run only", async (cmd) => {
    put("run", GOOD);
    put("sub/run", GOOD);
    if (!existsSync(inProject("through"))) symlinkSync("/proc/self/cwd", inProject("through"));
    const offers = await offersOf({ cmd, shell: "bash", env: { SCRIPT: "./run", SUB: "sub" } });
    expect(offers).toEqual(["once", "deny"]);
  });

  test.each([
    "cd sub && ls *.txt",
    "exec ls",
    "trap 'echo x' EXIT; sh run $HOME *.txt",
    "python3 -c 'print(1)' *.txt",
    "sh <<'E'\necho x\nE",
    "not-installed-anywhere x",
  ])("'%s' says what it runs, and may be approved for always", async (cmd) => {
    put("run", GOOD);
    expect(await offersOf({ cmd })).toEqual(["once", "session", "always", "deny"]);
  });
});
