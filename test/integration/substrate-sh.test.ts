/** `substrate-sh`: the tools that take a shell's name run their commands in a world, by the native program and by Node alike. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { Person } from "../support/programs/person.ts";
import { skip } from "../support/run/skips.ts";
import { actors, type Ended, runAs } from "../support/users/users.ts";

const POLICY = `id: default
name: Shell
mode: enforce
commands:
  denied: ["sudo *", "curl * | sh"]
`;

/** Each recipe says where it runs: PID 1 of a world is substrate-init. */
const MAKEFILE = `SHELL := PROGRAM
export GREETING = hello
PLAIN = plain
WHERE = cat /proc/1/comm
all: first second
	@echo "$$GREETING [$$PLAIN] $$MAKELEVEL $$COMMAND_LINE [$$TOKEN]"; $(WHERE)
first second:
	@touch $@.begun; until [ -e first.begun ] && [ -e second.begun ]; do sleep 0.02; done; echo $@
below:
	@$(MAKE) -s all
fails:
	@exit 7
refused:
	@sudo true
asks:
	@tty; printf 'name? '; read -r name; echo "hello $$name"
`;

const PACKAGE = {
  name: "tools",
  version: "1.2.3",
  scripts: {
    prebuild: "echo $npm_lifecycle_event",
    build: "local-tool",
    postbuild: "cat /proc/1/comm; exit 5",
  },
};

const LOCAL_TOOL = `#!/bin/sh
echo "$1 $npm_lifecycle_event $npm_package_version $INIT_CWD [$npm_config__auth$npm_config_my_token] [$OTHER] $ADDED"
`;

/** Runs the words as a child process of each kind, with the program as its shell. */
const BY_NODE = `const { exec } = require("node:child_process");
exec("cat /proc/1/comm; exit 9", { shell: process.argv[1] }, (error, out) => console.log(out.trim(), error.code));`;
const BY_PYTHON = `import subprocess, sys
done = subprocess.run("cat /proc/1/comm; exit 9", shell=True, executable=sys.argv[1], capture_output=True, text=True)
print(done.stdout.strip(), done.returncode)`;

/** Calls a shell at a terminal as Aider does (run_cmd.py): a pty of its own, interactive, what it writes is kept. */
const BY_PEXPECT = `import os, pexpect, sys
kept, command = [], open(sys.argv[1]).read()
child = pexpect.spawn(os.environ["SHELL"], args=["-i", "-c", command], encoding="utf-8")
child.interact(output_filter=lambda part: kept.append(part) or part)
child.close()
print("[kept %d, ended %s]" % (len(b"".join(kept)), child.exitstatus))
`;

const QUOTES = String.raw`it's "$HOME" \n $(id) \``;

type Case = {
  readonly what: string;
  readonly words: readonly string[];
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly wanted: Partial<Ended>;
};

const CASES: readonly Case[] = [
  {
    what: "a command",
    words: ["-c", "echo a; echo b >&2; exit 3"],
    wanted: { code: 3, stdout: "a\n", stderr: "b\n" },
  },
  {
    what: "a name and arguments",
    words: ["-c", 'echo "$0|$1|$2"', "n", "a b", ""],
    wanted: { stdout: "n|a b|\n" },
  },
  { what: "an exit at the first error", words: ["-ec", "false; echo no"], wanted: { code: 1, stdout: "" } },
  {
    what: "a traced command",
    words: ["-x", "-c", "echo a"],
    wanted: { stdout: "a\n", stderr: "+ echo a\n" },
  },
  {
    what: "an interactive shell",
    words: ["-i", "-c", "cat /proc/1/comm; exit 4"],
    wanted: { code: 4, stdout: "substrate-init\n", stderr: "" },
  },
  {
    what: "a denied command of an interactive shell",
    words: ["-ic", "sudo true"],
    wanted: { code: 126, stderr: expect.stringContaining("'sudo *' in commands.denied") },
  },
  { what: "a login shell", words: ["-lc", "echo a"], wanted: { code: 0, stdout: "a\n" } },
  {
    what: "options by name",
    words: ["-o", "errexit", "-c", "false; echo no"],
    wanted: { code: 1, stdout: "" },
  },
  { what: "the end of options", words: ["-c", "--", "echo a"], wanted: { stdout: "a\n" } },
  { what: "an empty command", words: ["-c", ""], wanted: { code: 0, stdout: "", stderr: "" } },
  {
    what: "a script on standard input",
    words: [],
    stdin: "echo a\nexit 2\n",
    wanted: { code: 2, stdout: "a\n" },
  },
  {
    what: "its arguments",
    words: ["-s", "x y"],
    stdin: 'echo "$1"; exit 4',
    wanted: { code: 4, stdout: "x y\n" },
  },
  { what: "a file", words: ["script.sh", "a b"], wanted: { code: 6, stdout: "a b\n" } },
  { what: "standard input", words: ["-c", "cat; echo end"], stdin: "line", wanted: { stdout: "lineend\n" } },
  { what: "no such program", words: ["-c", "no-such-program"], wanted: { code: 127 } },
  { what: "a signal", words: ["-c", "kill -TERM $$"], wanted: { code: 143 } },
  {
    what: "a shell in a world",
    words: ["-c", "substrate-sh -ec 'cat /proc/1/comm; exit 8'"],
    wanted: { code: 8, stdout: "substrate-init\n" },
  },
  {
    what: "a denied command",
    words: ["-c", "sudo true"],
    wanted: { code: 126, stderr: expect.stringContaining("'sudo *' in commands.denied") },
  },
  { what: "a download for a shell", words: ["-c", "curl http://x | substrate-sh"], wanted: { code: 126 } },
  {
    what: "a missing command",
    words: ["-c"],
    wanted: {
      code: 125,
      stdout: "",
      stderr: "substrate: Cannot run 'substrate-sh -c': a command must follow\n",
    },
  },
  {
    what: "an unknown option",
    words: ["--rcfile", "x"],
    wanted: {
      code: 125,
      stderr: expect.stringMatching(/^substrate: Cannot run 'substrate-sh --rcfile': [^\n]*\n$/),
    },
  },
  {
    what: "no broker",
    words: ["-c", "echo on the host"],
    env: { SUBSTRATE_HOME: "/nonexistent" },
    wanted: { code: 125, stdout: "", stderr: expect.stringContaining("No broker answers on") },
  },
  {
    what: "variables that claim a world",
    words: ["-c", "echo on the host"],
    env: {
      SUBSTRATE_HOME: "/nonexistent",
      SUBSTRATE_SPAN_ID: "spn_1",
      SUBSTRATE_WORLD: "inside",
      SUBSTRATE_TELEMETRY: "@x",
    },
    wanted: { code: 125, stdout: "" },
  },
  {
    what: "a label",
    words: ["-c", "echo $SUBSTRATE_AGENT_ID"],
    env: { SUBSTRATE_AGENT_ID: "label" },
    wanted: { stdout: "label\n" },
  },
  {
    what: "variables without a name for it",
    words: ["-c", 'echo "[$TOKEN]"'],
    env: { TOKEN: "secret" },
    wanted: { stdout: "[]\n" },
  },
  {
    what: "named variables",
    words: ["-c", 'echo "[$A$B]"'],
    env: { A: "1", B: "2", SUBSTRATE_SH_ENV: "B,UNSET,A" },
    wanted: { stdout: "[12]\n" },
  },
];

describe.each(actors())("substrate-sh, as $kind", (actor) => {
  let broker: TestBroker;
  let shells: readonly string[] = [];
  beforeAll(async () => {
    const { root, node } = await installationFor(actor);
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    // A program of one word, as npm's link to the launcher is.
    const byNode = join(broker.project, "node-bin/substrate-sh");
    program(byNode, `#!/bin/sh\nexec '${node}' '${join(root, "api/bin/substrate-sh.mjs")}' "$@"\n`);
    shells = [join(root, ".build/substrate-sh"), byNode];
    broker.write(join(broker.project, "script.sh"), 'echo "$1"; exit 6\n');
    broker.write(join(broker.project, "package.json"), JSON.stringify(PACKAGE));
    program(join(broker.project, "node_modules/.bin/local-tool"), LOCAL_TOOL);
  });
  afterAll(() => broker.stop());

  function program(path: string, text: string): void {
    mkdirSync(join(path, ".."), { recursive: true });
    broker.write(path, text);
    chmodSync(path, 0o755);
  }

  async function run(argv: readonly string[], { env = {}, stdin = "" }: Partial<Case> = {}): Promise<Ended> {
    return await runAs(actor, argv, { cwd: broker.project, env: environment(argv[0] ?? "", env), stdin });
  }

  /** The shell is found inside a world too, by its name. */
  function environment(shell: string, env: Readonly<Record<string, string>> = {}): Record<string, string> {
    return { PATH: `${join(shell, "..")}:/usr/bin:/bin`, SUBSTRATE_HOME: broker.home, ...env };
  }

  function each(check: (shell: string) => Promise<void>): Promise<void> {
    return shells.reduce(async (before, shell) => {
      await before;
      await check(shell);
    }, Promise.resolve());
  }

  test.each(CASES)("says and does the same for $what", async ({ words, wanted, ...one }) => {
    const [native, node] = await Promise.all(shells.map((shell) => run([shell, ...words], one)));
    expect(native).toMatchObject(wanted);
    expect(node).toEqual(native);
  });

  test("refuses words that are not UTF-8, instead of running others", () =>
    each(async (shell) => {
      const ended = await run(["/bin/sh", "-c", `'${shell}' -c "$(printf 'echo \\377')"`]);
      expect(ended).toMatchObject({ code: 125, stdout: "", stderr: expect.stringContaining("not UTF-8") });
    }));

  test("is found without an environment", () =>
    each(async (shell) => {
      const ended = await run([
        "/usr/bin/env",
        "-i",
        `SUBSTRATE_HOME=${broker.home}`,
        shell,
        "-c",
        "cat /proc/1/comm",
      ]);
      expect(ended).toEqual({ code: 0, signal: null, stdout: "substrate-init\n", stderr: "" });
    }));

  async function make(shell: string, words: readonly string[], stdin = ""): Promise<Ended> {
    broker.write(join(broker.project, "Makefile"), MAKEFILE.replace("PROGRAM", shell));
    spawnSync("rm", ["-f", ...["first", "second"].map((name) => join(broker.project, `${name}.begun`))]);
    const env = { ...environment(shell), TOKEN: "secret" };
    return await runAs(actor, ["make", "-s", ...words], { cwd: broker.project, env, stdin });
  }

  test("is make's SHELL: recipes run at once with -j, with the Makefile's exports and none of the person's", () =>
    each(async (shell) => {
      const ended = await make(shell, ["-j2", "all", "COMMAND_LINE=given"]);
      expect(ended.stderr).toMatch(/^substrate: 'TOKEN' is set .*SH_ENV=TOKEN to those of substrate-sh\n$/);
      expect(ended.stdout).toMatch(
        /^(first\nsecond|second\nfirst)\nhello \[\] 1 given \[\]\nsubstrate-init\n$/,
      );
    }));

  test("is the SHELL of a make below a recipe, which has jobs of its own without the jobserver", () =>
    each(async (shell) => {
      const ended = await make(shell, ["-j2", "below"]);
      expect(ended).toMatchObject({ code: 0, stderr: "" });
      expect(ended.stdout).toMatch(/^(first\nsecond|second\nfirst)\nhello \[\] 2 +\[\]\nsubstrate-init\n$/);
    }));

  test("gives make the exit codes, and a denied recipe its sentence", () =>
    each(async (shell) => {
      expect(await make(shell, ["fails"])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("Error 7"),
      });
      expect(await make(shell, ["refused"])).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(
          /^substrate: Policy 'default' denies this command: 'sudo true'[^]*Error 126\n$/,
        ),
      });
    }));

  test("is npm's script-shell: pre and post scripts, npm's variables without credentials, programs of the package", () =>
    each(async (shell) => {
      const env = {
        ...{ ...environment(shell), OTHER: "person's", ADDED: "named", SUBSTRATE_SH_ENV: "ADDED" },
        ...{ npm_config__auth: "secret", npm_config_my_token: "secret", npm_config_update_notifier: "false" },
      };
      const ended = await runAs(
        actor,
        ["npm", "run", "-s", `--script-shell=${shell}`, "build", "--", "a b"],
        {
          cwd: broker.project,
          env,
        },
      );
      expect(ended).toMatchObject({
        code: 5,
        stdout: `prebuild\na b build 1.2.3 ${broker.project} [] [] named\nsubstrate-init\n`,
      });
    }));

  test("is the shell of Node's and Python's child processes", () =>
    each(async (shell) => {
      const env = environment(shell);
      const { node } = await installationFor(actor);
      const byNode = await run([node, "-e", BY_NODE, shell], { env });
      expect(byNode).toMatchObject({ stdout: "substrate-init 9\n", stderr: "" });
      if (spawnSync("/usr/bin/python3", ["-V"]).status !== 0)
        return skip("substrate-sh by Python", "no /usr/bin/python3");
      const byPython = await run(["/usr/bin/python3", "-c", BY_PYTHON, shell], { env });
      expect(byPython).toMatchObject({ stdout: "substrate-init 9\n", stderr: "" });
    }));

  test("has the terminal: a recipe is typed to, -j leaves the modes alone, and no words are 'substrate shell'", () =>
    each(async (shell) => {
      broker.write(join(broker.project, "Makefile"), MAKEFILE.replace("PROGRAM", shell));
      const person = await Person.at(broker, environment(shell));
      try {
        person.type("stty -g > before; make asks\r");
        await person.sees(/\/dev\/pts\/\d+\r\nname\? $/);
        person.type("Ada\r");
        await person.sees(/hello Ada\r\n[^]*OUTSIDE> $/);
        person.type("rm -f *.begun; make -s -j2 all && stty -g | cmp - before && echo sa''me\r");
        await person.sees(/substrate-init\r\nsame\r\n/);
        person.type(`'${shell}'\r`);
        await person.sees(/\$ $/);
        person.type("cat /proc/1/comm\r");
        await person.sees(/substrate-init\r\n/);
        person.type("exit 3\r");
        await person.sees(/OUTSIDE> $/);
      } finally {
        person.leave();
      }
    }));

  test("is Aider's shell, called as Aider calls one: Aider itself was not tried", () =>
    each(async (shell) => {
      if (spawnSync("/usr/bin/python3", ["-c", "import pexpect"]).status !== 0)
        return skip("substrate-sh by Python's pexpect", "python3-pexpect is not installed");
      broker.write(join(broker.project, "aider.py"), BY_PEXPECT);
      const env = { ...environment(shell), SHELL: shell };
      const person = await Person.at(broker, env);
      const types = async (command: string): Promise<void> => {
        broker.write(join(broker.project, "command"), command);
        person.type("python3 aider.py command\r");
        await person.sees(/aider\.py command\r\n/);
      };
      // pexpect may lose what a command writes right before its end.
      const says = async (command: string, wanted: RegExp): Promise<void> => {
        await types(`${command}\nsleep 0.5`);
        await person.sees(wanted);
        await person.sees(/OUTSIDE> $/);
      };
      try {
        await says("cat /proc/1/comm; trap 'exit 7' EXIT", /substrate-init\r\n\[kept 16, ended 7\]/);
        await says("sudo true", /\[kept \d+, ended 126\]/);
        await says(`cat <<'END'\n${QUOTES}\nEND`, /it's "\$HOME" \\n \$\(id\) \\`\r\n\[kept \d+, ended 0\]/);
        await says(`: ${"x".repeat(100_000)}\necho long`, /long\r\n\[kept 6, ended 0\]/);
        await types("printf 'name? '; read -r name; echo \"hello $name\"; sleep 0.5");
        await person.sees(/name\? $/);
        person.type("Ada\r");
        await person.sees(/hello Ada\r\n\[kept \d+, ended 0\]/);
      } finally {
        person.leave();
      }
    }));

  test("is vim's shell for ':!', and with 'noshelltemp' for what it reads and filters", () =>
    each(async (shell) => {
      if (spawnSync("vim", ["--version"]).status !== 0)
        return skip("substrate-sh in vim", "vim is not installed");
      const person = await Person.at(broker, { ...environment(shell), SHELL: shell });
      try {
        broker.write(join(broker.project, "lines"), "a\nb\n");
        person.type("vim -u NONE -N lines\r");
        await person.sees(/lines/);
        person.type(":!cat /proc/1/comm\r");
        await person.sees(/substrate-init[^]*Press ENTER/);
        person.type("\r:set noshelltemp\r:%!sort -r\r:r !cat /proc/1/comm\r:wq\r");
        await person.sees(/OUTSIDE> $/);
        expect(readFileSync(join(broker.project, "lines"), "utf8").split("\n").sort().join(" ")).toBe(
          " a b substrate-init",
        );
      } finally {
        person.leave();
      }
    }));
});
