/** The CLI's two fronts: whatever the native one does itself, Node does the same, byte by byte. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ApprovalsReply } from "../../schemas/generated/types.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { actors, type Ended, runAs, spawnAs } from "../support/users/users.ts";

const POLICY = `id: default
name: Fronts
mode: enforce
commands:
  denied: ["sudo *"]
  ask: ["make deploy", "make release *"]
  isolated: ["touch isolated*"]
  warn: ["touch warned*"]
world:
  env: [PASSED]
`;

const OBSERVING = `id: observing
name: Observing
mode: observe
commands:
  denied: ["touch denied*"]
`;

/** A shell command line whose output and exit code the test compares between both fronts. */
type Case = {
  readonly what: string;
  readonly words: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** A script that runs the front as `"$@"`. */
  readonly within?: string;
  /** The standard output that both fronts must print; without it the test compares one front with the other. */
  readonly stdout?: string;
};

/** Lines for standard output and error in turn, as many of each. */
const IN_TURN = "i=0; while [ $i -lt 200 ]; do i=$((i + 1)); echo out $i; echo err $i >&2; done";

function inTurn(count: number): string {
  return Array.from({ length: count }, (_, at) => `out ${at + 1}\nerr ${at + 1}\n`).join("");
}

const CASES: readonly Case[] = [
  { what: "a shell command", words: ["exec", "--", "echo out; echo err >&2; exit 3"] },
  { what: "a program and its words", words: ["exec", "--", "printf", "%s|", "a b", "", "ü", "--json", "--"] },
  { what: "words without --", words: ["exec", "echo", "plain"] },
  { what: "bash", words: ["exec", "--shell", "bash", "--", "[[ a == a ]] && echo $BASH_VERSINFO"] },
  { what: "bytes that are no text", words: ["exec", "--", "printf '\\377\\000\\033[31m'"] },
  { what: "no final line end", words: ["exec", "--", "printf x; printf y >&2"] },
  {
    what: "two outputs that are one, in order",
    words: ["exec", "--", IN_TURN],
    within: 'exec "$@" 2>&1',
    stdout: inTurn(200),
  },
  {
    what: "one file for two outputs, in order",
    words: ["exec", "--", IN_TURN],
    within: '"$@" > turns.$$ 2>&1; cat turns.$$; rm turns.$$',
    stdout: inTurn(200),
  },
  {
    what: "a program whose outputs are one",
    words: ["run", "--", "sh", "-c", IN_TURN],
    within: 'exec "$@" 2>&1',
    stdout: inTurn(200),
  },
  {
    what: "two outputs that are two files",
    words: ["exec", "--", "echo out; echo err >&2"],
    within: '"$@" > one.$$ 2> two.$$; cat two.$$ one.$$; rm one.$$ two.$$',
    stdout: "err\nout\n",
  },
  { what: "a long output", words: ["exec", "--", "seq 1 100000"] },
  { what: "a signal", words: ["exec", "--", "kill -TERM $$"] },
  { what: "a program that is not there", words: ["exec", "--", "not-installed-anywhere"] },
  { what: "a program word that is not there", words: ["exec", "--", "not-installed-anywhere", "x"] },
  { what: "standard input", words: ["exec", "--", "cat; echo end"], stdin: "line 1\nline 2" },
  { what: "empty standard input", words: ["exec", "--", "wc -c"] },
  {
    what: "much standard input",
    words: ["exec", "--", "sha256sum"],
    stdin: "0123456789abcdef\n".repeat(60_000),
  },
  { what: "unread standard input", words: ["exec", "--", "true"], stdin: "x".repeat(500_000) },
  { what: "a variable", words: ["exec", "--env", "A=1", "--env=B=", "--env", "A=2", "--", "echo $A-$B-"] },
  {
    what: "a variable of the caller",
    words: ["exec", "--env", "MINE", "--", "echo $MINE"],
    env: { MINE: "ü" },
  },
  {
    what: "a variable that the policy passes on",
    words: ["exec", "--", "echo $PASSED"],
    env: { PASSED: "1" },
  },
  { what: "an unset variable", words: ["exec", "--env", "UNSET", "--", "true"] },
  { what: "a time limit", words: ["exec", "--timeout", "300ms", "--", "echo began; sleep 60"] },
  { what: "a time limit that is long enough", words: ["exec", "--timeout=1h", "--", "true"] },
  { what: "a wrong time limit", words: ["exec", "--timeout", "soon", "--", "true"] },
  { what: "a denied command", words: ["exec", "--", "sudo", "true"] },
  {
    what: "a denied part of a command",
    words: ["exec", "--", "true && sudo \u001b[2J true"],
    stdin: "unread",
  },
  { what: "a command that needs a person", words: ["exec", "--", "make deploy"] },
  { what: "a required approval", words: ["exec", "--require-approval", "--", "true"] },
  { what: "a command that leaves nothing behind", words: ["exec", "--keep", "--", "echo out; exit 3"] },
  { what: "a wait for nobody", words: ["exec", "--wait", "--timeout", "9s", "--", "exit 4"] },
  { what: "an isolated command", words: ["exec", "--", "touch isolated.txt"] },
  { what: "an unknown profile", words: ["exec", "--profile", "none", "--", "true"] },
  { what: "a profile of the caller", words: ["exec", "--", "true"], env: { SUBSTRATE_PROFILE: "none" } },
  {
    what: "an observing policy",
    words: ["exec", "--agent", "watched", "--", "touch denied.txt; rm denied.txt"],
  },
  {
    what: "an agent with its own socket",
    words: ["exec", "--agent", "watched", "--", "echo $SUBSTRATE_AGENT_ID"],
  },
  { what: "a misspelt agent", words: ["exec", "--agent", "wathced", "--", "true"] },
  { what: "another agent", words: ["exec", "--agent", "else", "--", "echo $SUBSTRATE_AGENT_ID"] },
  {
    what: "a label",
    words: ["exec", "--", "echo $SUBSTRATE_AGENT_ID"],
    env: { SUBSTRATE_AGENT_ID: "label" },
  },
  { what: "a label that is none", words: ["exec", "--", "true"], env: { SUBSTRATE_AGENT_ID: "../x" } },
  { what: "a refused name", words: ["exec", "--", "getent hosts nowhere.example || echo no"] },
  { what: "SUBSTRATE_WORLD=disabled", words: ["exec", "--", "true"], env: { SUBSTRATE_WORLD: "disabled" } },
  { what: "a program with pipes", words: ["run", "--", "sh", "-c", "tty; cat; exit 4"], stdin: "typed" },
  { what: "a program of one word", words: ["run", "--", "pwd"] },
  { what: "a program of one word with spaces", words: ["run", "--", "echo $((6 * 7)); exit 3"] },
  { what: "a program in the person's home", words: ["run", "--real-home", "--", "sh", "-c", "echo $HOME"] },
  { what: "a program that is denied", words: ["run", "--", "sudo", "true"] },
  { what: "a program with a shell's option", words: ["run", "--shell", "sh", "--", "true"] },
  {
    what: "a span that does not run",
    words: ["attach", "spn_01a20fa9-c84d-7f39-8a07-a5213ad578a2"],
  },
  { what: "a span that is none", words: ["attach", "../x y"] },
  { what: "no command", words: ["exec"] },
  { what: "an unknown option", words: ["exec", "--unknown", "--", "true"] },
  { what: "a wrong shell", words: ["exec", "--shell", "zsh", "--", "true"] },
  { what: "a check", words: ["check", "--", "true"] },
  { what: "a check of a denied command", words: ["check", "--", "true && sudo \u001b[2J\nx"] },
  { what: "a check of a command that needs a person", words: ["check", "--", "make", "deploy"] },
  { what: "a check of an isolated command", words: ["check", "--", "touch isolated.txt"] },
  { what: "a check of what only the run decides", words: ["check", "--", 'ls "$X"; make all'] },
  {
    what: "a check by an observing policy",
    words: ["check", "--agent", "watched", "--", "touch denied.txt"],
  },
  { what: "a check of an unknown profile", words: ["check", "--profile", "none", "--", "true"] },
  { what: "a check as JSON", words: ["check", "--json", "--", "sudo x"] },
  { what: "no verb", words: [] },
  { what: "help", words: ["exec", "--help"] },
  { what: "an unknown verb", words: ["exek", "--", "true"] },
];

const CATCHES = `for s in INT TERM HUP; do trap "echo got $s; exit 9" $s; done; echo ready; while :; do sleep 0.1; done`;
const IGNORES = `trap "" TERM; echo ready; while :; do sleep 0.1; done`;

describe.each(actors())("the native front and Node, as $kind", (actor) => {
  let broker: TestBroker;
  let fronts: readonly (readonly string[])[] = [];
  beforeAll(async () => {
    const { root, node, launcher } = await installationFor(actor);
    fronts = [[join(root, ".build/substrate")], [node, launcher]];
    broker = await TestBroker.start(actor, {
      policies: { default: POLICY, observing: OBSERVING },
      config: "agents:\n  watched: { policy: observing }\n",
    });
  });
  afterAll(() => broker.stop());

  async function run(
    front: readonly string[],
    { words, env = {}, stdin = "", within }: Case,
  ): Promise<Ended> {
    const ended = await runAs(
      actor,
      [...(within === undefined ? [] : ["sh", "-c", within, "sh"]), ...front, ...words],
      {
        cwd: broker.project,
        env: { SUBSTRATE_HOME: broker.home, ...env },
        stdin,
      },
    );
    return { ...ended, stdout: withoutIds(ended.stdout), stderr: withoutIds(ended.stderr) };
  }

  test.each(CASES)("say and do the same for $what", async (one) => {
    const [native, node] = await Promise.all(fronts.map((front) => run(front, one)));
    expect(native).toEqual(node);
    if (one.stdout !== undefined) expect(native?.stdout).toBe(one.stdout);
  });

  test.each<{ what: string; cmd: string; signals: readonly NodeJS.Signals[]; code: number; stdout: string }>([
    { what: "catches", cmd: CATCHES, signals: ["SIGINT"], code: 9, stdout: "ready\ngot INT\n" },
    { what: "catches", cmd: CATCHES, signals: ["SIGTERM"], code: 9, stdout: "ready\ngot TERM\n" },
    { what: "catches", cmd: CATCHES, signals: ["SIGHUP"], code: 9, stdout: "ready\ngot HUP\n" },
    { what: "dies of", cmd: "echo ready; exec sleep 60", signals: ["SIGINT"], code: 130, stdout: "ready\n" },
    { what: "ignores", cmd: IGNORES, signals: ["SIGTERM", "SIGINT"], code: 130, stdout: "ready\n" },
  ])(
    "pass $signals on to a command that $what the first, and end at the second",
    async ({ cmd, signals, code, stdout }) => {
      for (const front of fronts) {
        const child = spawnAs(actor, [...front, "exec", "--", cmd], {
          cwd: broker.project,
          env: { SUBSTRATE_HOME: broker.home },
          stdio: ["ignore", "pipe", "ignore"],
        });
        let printed = "";
        child.stdout?.on("data", (bytes: Buffer) => {
          printed += bytes.toString();
          if (printed === "ready\n") void sendInTurn(child, signals);
        });
        expect([await once(child, "close"), printed]).toEqual([[code, null], stdout]);
      }
    },
  );

  test("start one broker together where none runs", async () => {
    const home = join(broker.folder, "none");
    const away = { what: "", words: ["exec", "--", "echo", "ran"], env: { SUBSTRATE_HOME: home } };
    // The project is listed there too.
    broker.write(join(home, "config.yaml"), readFileSync(join(broker.home, "config.yaml"), "utf8"));
    const ended = await Promise.all(fronts.map((front) => run(front, away)));
    await broker.cli(["broker", "stop"], { env: away.env });
    for (const each of ended) {
      expect(each).toMatchObject({ code: 0, stdout: "ran\n" });
      expect(each.stderr).toMatch(
        /^(substrate: starting the broker \('substrate broker stop' ends it\)\n)?$/,
      );
    }
  });

  test("give a command the caller's file mode creation mask, and its replay too", async () => {
    const env = { SUBSTRATE_HOME: broker.home };
    for (const front of fronts) {
      const masked = (mask: string, ...words: readonly string[]): Promise<Ended> =>
        runAs(actor, ["/bin/sh", "-c", `umask ${mask}; exec "$@"`, "sh", ...front, ...words], {
          cwd: broker.project,
          env,
        });
      const made = 'umask; : > "made.$1"; stat -c %a "made.$1"; rm "made.$1"';
      const words = ["exec", "--", "sh", "-c", made, "sh"];
      expect((await masked("077", ...words, "secret")).stdout).toBe("0077\n600\n");
      expect((await masked("002", ...words, "shared")).stdout).toBe("0002\n664\n");
      expect((await masked("022", ...words, "usual")).stdout).toBe("0022\n644\n");
      expect((await masked("027", "run", "--real-home", "--", "sh", "-c", "umask")).stdout).toBe("0027\n");
      const span = broker.spans().findLast(({ cmd }) => cmd?.includes('"secret"'));
      expect(span?.replay_context?.umask).toBe("0077");
      expect((await run(front, { what: "", words: ["replay", span?.span_id ?? ""] })).code).toBe(0);
    }
  });

  test.each([`exec -- "$(printf 'touch \\351')"`, `exec --env "X=$(printf '\\351')" -- touch other`])(
    "refuse words that are not UTF-8, instead of acting on other files: %s",
    async (words) => {
      for (const front of fronts) {
        const ended = await runAs(actor, ["/bin/sh", "-c", `"$@" ${words}`, "sh", ...front], {
          cwd: broker.project,
          env: { SUBSTRATE_HOME: broker.home },
        });
        expect(ended).toMatchObject({ code: 125, stdout: "", stderr: expect.stringContaining("not UTF-8") });
        expect(readdirSync(broker.project).filter((name) => /other|\uFFFD/.test(name))).toEqual([]);
      }
    },
  );

  test("say the same of what --keep leaves running", async () => {
    const left: Ended[] = [];
    for (const front of fronts) {
      const words = ["exec", "--keep", "--", "sleep 300 >/dev/null 2>&1 & echo $! >left; exit 3"];
      left.push(await run(front, { what: "", words }));
      await run(front, { what: "", words: ["exec", "--", 'kill "$(cat left)"'] });
    }
    expect(left[0]).toEqual(left[1]);
    expect(left[0]).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/^substrate: 1 process is still running in this folder's world: /),
    });
  });

  test.each([
    ["once", { code: 2, stdout: "", stderr: expect.stringMatching(/\nmake: /) }],
    ["deny", { code: 126, stdout: "", stderr: expect.stringContaining("denied") }],
  ])("wait for a person's answer on another terminal: %s", async (answer, wanted) => {
    const ended: Ended[] = [];
    for (const front of fronts) {
      const waiting = run(front, {
        what: "",
        words: ["exec", "--wait", "--", `make release ${answer}=${ended.length}`],
      });
      const id = await releaseQuestion(front);
      const words = answer === "deny" ? ["deny", id] : ["approve", id, `--${answer}`];
      expect(await run(front, { what: "", words })).toMatchObject({ code: 0 });
      ended.push(await waiting);
    }
    expect(ended[0]).toEqual(ended[1]);
    expect(ended[0]).toMatchObject(wanted);
    expect(ended[0]?.stderr).toMatch(
      /^substrate: waiting for approval: 'substrate approve apr_ID --once' or /,
    );
  });

  /** The id of the question about `make release`, once its caller has had time to say so. */
  async function releaseQuestion(front: readonly string[]): Promise<string> {
    for (;;) {
      const list = await runAs(actor, [...front, "approvals", "--json"], {
        cwd: broker.project,
        env: { SUBSTRATE_HOME: broker.home },
      });
      await sleep(500);
      const { approvals } = JSON.parse(list.stdout) as ApprovalsReply;
      const found = approvals.find(({ rule }) => rule?.fragment.startsWith("make release"));
      if (found !== undefined) return found.approval_id;
    }
  }

  test("differ in this: 'exec' and 'check' need no Node", async () => {
    const build = join(broker.folder, "without-node/.build");
    mkdirSync(build, { recursive: true });
    copyFileSync(fronts[0]?.[0] ?? "", join(build, "substrate"));
    broker.write(join(build, "node"), "#!/bin/sh\necho Node\n");
    chmodSync(join(build, "node"), 0o755);
    const front = [join(build, "substrate")];
    expect(await run(front, { what: "", words: ["status"] })).toMatchObject({ stdout: "Node\n" });
    expect(await run(front, { what: "", words: ["check", "--", "true"] })).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^allow /),
    });
    const piped = { what: "", words: ["exec", "--", "cat; exit 3"], stdin: "from stdin" };
    expect(await run(front, piped)).toMatchObject({ code: 3, stdout: "from stdin", stderr: "" });
    const options = [
      "--keep",
      "--wait",
      "--timeout",
      "9s",
      "--agent",
      "watched",
      "--shell",
      "bash",
      "--env",
      "A=1",
    ];
    const many = { what: "", words: ["exec", ...options, "--", "exit $((A + 4))"] };
    expect(await run(front, many)).toMatchObject({ code: 5, stdout: "", stderr: "" });
  });
});

/** One signal after the other has had time to arrive. */
async function sendInTurn(child: ChildProcess, signals: readonly NodeJS.Signals[]): Promise<void> {
  for (const name of signals) {
    child.kill(name);
    await sleep(300);
  }
}

function withoutIds(text: string): string {
  return text.replaceAll(/\b(spn|apr|ses|wld)_[0-9a-f-]{36}\b/g, "$1_ID");
}
