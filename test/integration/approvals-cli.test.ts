import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runAtTerminal } from "../support/programs/at-terminal.ts";
import { actors, spawnAs } from "../support/users/users.ts";
import { Person } from "../support/broker/approvals.ts";
import { type Front, FRONTS } from "../support/programs/person.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import type { Approval } from "../../schemas/generated/types.ts";

const POLICY = `id: default
name: CLI
mode: enforce
commands:
  ask: ["touch *"]
`;

type Typed = { readonly code: number; readonly text: string };

describe.each(
  actors()
    .slice(0, 1)
    .flatMap((actor) => FRONTS.map((front) => ({ actor, kind: actor.kind, front }))),
)("exec at a terminal with the $front front, as $kind", ({ actor, front }) => {
  let broker: TestBroker;
  let person: Person;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    person = new Person(broker);
  });
  afterAll(() => broker.stop());

  const has = (name: string): boolean => existsSync(join(broker.project, name));

  const onTerminal = (words: readonly string[], typed: Keys, early = ""): Promise<Typed> =>
    atTerminal(broker, ["exec", ...words], typed, early, front);

  test("exec asks at a terminal, shows what and why, and runs when told so", async () => {
    const { code, text } = await onTerminal(["--", "touch inline && echo ran"], ["y\r"]);
    expect(text).toMatch(/command +touch inline && echo ran/);
    expect(text).toMatch(/matches +touch \* +in commands\.ask, default\.yaml:5/);
    expect(text).toContain("y)es, once  s)ession  a)lways  n)o  p)review [n]");
    expect(text).toMatch(/ran\r?\n$/);
    expect(code).toBe(0);
    expect(has("inline")).toBe(true);
  });

  test.each([
    ["an empty line", "\r"],
    ["another letter", "x\r"],
    ["Ctrl-C", "\u0003"],
    ["the end of input", "\u0004"],
  ])("%s is no", async (what, key) => {
    const name = `no-${what.replaceAll(" ", "-")}`;
    const { code, text } = await onTerminal(["--", `touch ${name}`], [key]);
    expect(text).toContain("denied; nothing ran");
    expect(code).toBe(126);
    expect(has(name)).toBe(false);
    expect(await person.told({ cmd: `touch ${name}`, agent_id: "human" })).toMatchObject({
      code: "approval_denied",
    });
  });

  test("what somebody else answered meanwhile counts, and the question here ends", async () => {
    const elsewhere = (decision: "deny" | "once") => async () => {
      const [first] = (await person.list()).approvals.filter(({ subject }) => subject.cmd === cmd);
      await person.answer(first?.approval_id, decision);
      return "";
    };
    let cmd = "touch no-elsewhere";
    const denied = await onTerminal(["--", cmd], [elsewhere("deny")]);
    expect(denied.text).toContain("the question was answered elsewhere or has expired");
    expect(denied.text).toContain("A person denied this command");
    expect(denied.code).toBe(126);
    expect(has("no-elsewhere")).toBe(false);
    cmd = "touch yes-elsewhere";
    const approved = await onTerminal(["--", cmd], [elsewhere("once")]);
    expect(approved.text).toContain("the question was answered elsewhere or has expired");
    expect(approved.code).toBe(0);
    expect(has("yes-elsewhere")).toBe(true);
  });

  test("p tries it out, says what it would do, and asks again", async () => {
    const { text } = await onTerminal(["--", "touch p1 p2"], ["p\r", "d\r"]);
    expect(text).toMatch(/preview +writes 2 files: p1, p2; exit 0/);
    expect(has("p1")).toBe(false);
  });

  test("what was typed before the question was there is no answer to it", async () => {
    const { code } = await onTerminal(["--", "touch early"], ["\r"], "o\r");
    expect(code).toBe(126);
    expect(has("early")).toBe(false);
  });

  test("an answer for the session is not asked for again", async () => {
    expect((await onTerminal(["--", "touch kept"], ["s\r"])).code).toBe(0);
    const { code, text } = await onTerminal(["--", "touch kept"], []);
    expect(code).toBe(0);
    expect(text).not.toContain("[n]");
  });

  test("a program that the running command starts is asked about at the terminal, and waits", async () => {
    broker.write(join(broker.project, "inner.sh"), "touch inner && echo started\n");
    const { code, text } = await onTerminal(["--", "sh inner.sh"], ["y\r"]);
    expect(text).toMatch(/note +A running command starts this program and waits for the answer/);
    expect(text).toMatch(/started\r?\n$/);
    expect(code).toBe(0);
    expect(has("inner")).toBe(true);
  });

  test("another caller of the same name and folder asks nothing here", async () => {
    broker.write(join(broker.project, "slow.sh"), "sleep 3\n");
    broker.write(join(broker.project, "theirs.sh"), "touch theirs\n");
    const mine = onTerminal(["--", "sh slow.sh && echo mine"], []);
    await sleep(500);
    const leaving = new AbortController();
    const theirs = person
      .told({ cmd: "sh theirs.sh", agent_id: "human", approval_wait_ms: 30_000 }, leaving.signal)
      .catch(() => undefined);
    const asked = await person.waitedFor();
    const { code, text } = await mine;
    expect(text).not.toContain("[n]");
    expect(text).toMatch(/mine\r?\n$/);
    expect(code).toBe(0);
    await person.answer(asked.approval_id, "deny");
    await theirs;
    expect(has("theirs")).toBe(false);
  });

  test("a question that stood before the call is asked at the terminal that waits for it", async () => {
    const cmd = "touch stood";
    const before = await person.told({ cmd, agent_id: "human" });
    expect(before.code).toBe("approval_required");
    broker.write(join(broker.project, "late.sh"), `sleep 1; ${cmd}\n`);
    const { approval_id: inner } =
      (await broker.run({ cmd: "sh late.sh", agent_id: "human" })).notices[0] ?? {};
    const { code, text } = await onTerminal(["--", "sh late.sh && echo ran"], ["y\r"]);
    expect(text).toContain("[n]");
    expect(text).toMatch(/ran\r?\n$/);
    expect(code).toBe(0);
    await expect(person.question(inner)).rejects.toThrow("No question");
    expect(has("stood")).toBe(true);
    await person.answer(before.approval_id, "deny");
  });

  test("--require-approval asks about what is allowed", async () => {
    const { code, text } = await onTerminal(["--require-approval", "--", "echo allowed"], ["o\r"]);
    expect(text).toMatch(/reason +The caller wants a person to look at the command/);
    expect(text).toMatch(/allowed\r?\n$/);
    expect(code).toBe(0);
  });
});

describe.each(actors().slice(0, 1))("approvals on the command line, as $kind", (actor) => {
  let broker: TestBroker;
  let person: Person;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    person = new Person(broker);
  });
  afterAll(() => broker.stop());

  const has = (name: string): boolean => existsSync(join(broker.project, name));

  test("without a terminal it is refused with 126 and a sentence that says how to answer", async () => {
    for (const words of [
      ["exec", "--", "touch piped"],
      ["exec", "--require-approval", "--", "echo piped"],
    ]) {
      const { code, stderr, stdout } = await broker.cli(words);
      expect(code).toBe(126);
      expect(stdout).toBe("");
      expect(stderr).toMatch(/A person must approve this command first/);
      expect(stderr).toMatch(/substrate approve apr_[0-9a-f-]+ --once/);
    }
    expect(has("piped")).toBe(false);
  });

  test("exec --wait waits for an answer from anywhere, and says which question it waits for", async () => {
    const yes = broker.cli(["exec", "--wait", "--", "touch patient && echo ran"]);
    const { approval_id: id } = await person.waitedFor();
    await sleep(1000);
    await person.answer(id, "once");
    const { code, stdout, stderr } = await yes;
    expect(stdout).toBe("ran\n");
    expect(stderr).toMatch(/^substrate: waiting for approval: 'substrate approve apr_[0-9a-f-]+ --once'/);
    expect(code).toBe(0);
    const no = broker.cli(["exec", "--wait", "--", "touch impatient"]);
    await person.answer((await person.waitedFor()).approval_id, "deny");
    expect(await no).toMatchObject({ code: 126 });
    expect(has("impatient")).toBe(false);
  });

  test("without a wait a program that a running command starts is refused at once, with the question's id", async () => {
    broker.write(join(broker.project, "once.sh"), "touch once-inner\n");
    const began = performance.now();
    const ran = await broker.run({ cmd: "sh once.sh", agent_id: "human" });
    expect(performance.now() - began).toBeLessThan(5000);
    expect(ran.exit).not.toBe(0);
    const [notice] = ran.notices;
    expect(notice).toMatchObject({ kind: "approval_required", program: "touch" });
    await person.answer(notice?.approval_id, "once");
    expect(await broker.run({ cmd: "sh once.sh", agent_id: "human" })).toMatchObject({
      exit: 0,
      notices: [],
    });
    expect(has("once-inner")).toBe(true);
  });

  test("approvals --watch prints questions as they come, a line of JSON for each with --json", async () => {
    const { node, launcher } = await installationFor(actor);
    const watch = spawnAs(actor, [node, launcher, "approvals", "--watch", "--json"], {
      cwd: broker.project,
      env: { SUBSTRATE_HOME: broker.home },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let text = "";
    watch.stdout?.on("data", (data: Buffer) => {
      text += data.toString();
    });
    for (const name of ["first", "second"]) {
      const asked = await person.told({ cmd: `touch watched-${name}` });
      const isThere = await eventually(() => text.includes(`${asked.approval_id}`), 5000);
      expect(isThere, text).toBe(true);
      await person.answer(asked.approval_id, "deny");
    }
    const gone = new Promise<number | null>((resolve) => watch.once("exit", resolve));
    watch.kill("SIGINT");
    expect(await gone).toBe(130);
    const commands = text
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as Approval).subject.cmd);
    expect(commands.slice(-2)).toEqual(["touch watched-first", "touch watched-second"]);
  });

  test("approvals lists what waits, approve lets it run, deny refuses it", async () => {
    const waiting = broker.cli(["exec", "--", "true"]);
    expect((await waiting).code).toBe(0);
    const call = person.told({ cmd: "touch listed", agent_id: "lister", approval_wait_ms: 30_000 });
    const { approval_id: id } = await person.waitedFor();
    const { stdout } = await broker.cli(["approvals"]);
    expect(stdout).toMatch(
      new RegExp(`${id}  asked \\d+ s ago, expires in \\d+ s, 1 call that waits for it`),
    );
    expect(stdout).toMatch(/agent +lister in \//);
    const shown = JSON.parse((await broker.cli(["approvals", "--json"])).stdout) as { approvals: unknown[] };
    expect(shown.approvals.length).toBeGreaterThan(0);
    expect((await broker.cli(["approvals", "preview", id])).stdout).toBe("writes 1 file: listed; exit 0\n");
    expect(await broker.cli(["approve", id])).toMatchObject({ code: 125 });
    expect(await broker.cli(["approve", id, "--once", "--always"])).toMatchObject({ code: 125 });
    expect(has("listed")).toBe(false);
    expect(await broker.cli(["approve", id, "--once"])).toMatchObject({
      code: 0,
      stdout: "Approved (once): 1 call that waits goes on\n",
      stderr: expect.stringMatching(/^ {2}command {2}touch listed$/m) as unknown,
    });
    expect(await call).toMatchObject({ status: 200 });
    const again = await broker.cli(["deny", id]);
    expect(again.code).toBe(125);
    expect(again.stderr).toContain("was approved for one run");
    const refused = await person.told({ cmd: "touch denied" });
    expect(await broker.cli(["deny", refused.approval_id ?? ""])).toMatchObject({
      code: 0,
      stdout: "Denied\n",
    });
    expect(
      await eventually(
        async () => (await person.told({ cmd: "touch denied" })).code === "approval_denied",
        0,
      ),
    ).toBe(true);
  });
});

type Keys = readonly (string | (() => Promise<string>))[];

/** Runs the command line on a terminal, and types each answer when its question has been asked that often. */
async function atTerminal(
  broker: TestBroker,
  words: readonly string[],
  typed: Keys,
  early = "",
  front: Front = "node",
): Promise<Typed> {
  const { actor } = broker;
  const { root, node, launcher } = await installationFor(actor);
  const [program, ...first] = front === "native" ? [join(root, ".build/substrate")] : [node, launcher];
  const env = { PATH: "/usr/bin:/bin", HOME: actor.home, TERM: "dumb", SUBSTRATE_HOME: broker.home };
  const left = [...typed];
  let asked = 0;
  return runAtTerminal(
    [program ?? node, ...first, ...words],
    { cwd: broker.project, env },
    ({ text, type }) => {
      const questions = text().split("[n]").length - 1;
      const next = questions > asked ? left.shift() : undefined;
      if (typeof next === "function") void next().then(type);
      else if (next !== undefined) type(next);
      asked = questions;
    },
    early,
  );
}

test("a killed exec leaves no question behind that reads the terminal, and the terminal as it was", async () => {
  const [actor] = actors();
  if (actor === undefined) throw new Error("There is no actor");
  const broker = await TestBroker.start(actor, { policies: { default: POLICY } });
  try {
    const { root } = await installationFor(actor);
    const begin = 'sh -c \'echo "pid $$;"; exec "$@"\' sh "$@"';
    const script = `stty -g; ${begin}; sleep 1; stty -g; read -r line; echo "read $line"`;
    const front = join(root, ".build/substrate");
    const modesOf = (text: string): string[] => text.match(/^[0-9a-f]+(:[0-9a-f]+)+/gm) ?? [];
    let killed = false;
    let typed = false;
    const { text } = await runAtTerminal(
      ["/bin/sh", "-c", script, "sh", front, "exec", "--", "touch killed"],
      {
        cwd: broker.project,
        env: { PATH: "/usr/bin:/bin", HOME: actor.home, TERM: "dumb", SUBSTRATE_HOME: broker.home },
      },
      ({ text, type }) => {
        if (!killed && text().includes("[n]")) {
          killed = true;
          process.kill(Number(/pid (\d+);/.exec(text())?.[1]), "SIGKILL");
        }
        if (typed || modesOf(text()).length < 2) return;
        typed = true;
        type("for the shell\r");
      },
    );
    expect(text).toContain("read for the shell");
    expect(modesOf(text)[1]).toBe(modesOf(text)[0]);
    expect(existsSync(join(broker.project, "killed"))).toBe(false);
  } finally {
    await broker.stop();
  }
});

describe.each(actors())("approvals --watch, as $kind", (actor) => {
  let broker: TestBroker;
  let person: Person;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    person = new Person(broker);
  });
  afterAll(() => broker.stop());

  test("asks at a terminal, answer by answer, and Ctrl-C leaves the rest waiting", async () => {
    const ask = (name: string) => person.told({ cmd: `touch ${name}`, approval_wait_ms: 30_000 });
    const yes = ask("watch-yes");
    await person.waitedFor();
    void yes.then(() => ask("watch-left"));
    const { code, text } = await atTerminal(broker, ["approvals", "--watch"], ["y\r", "\u0003"]);
    expect(text).toMatch(/command +touch watch-yes/);
    expect(text).toContain("approved, once");
    expect(code).toBe(130);
    expect(await yes).toMatchObject({ status: 200 });
    const left = await person.waitedFor();
    expect(left.subject.cmd).toBe("touch watch-left");
    await person.answer(left.approval_id, "deny");
  });

  test("a key that was meant for a question that is gone does not answer the next one", async () => {
    const gone = person.told({ cmd: "touch watch-gone", approval_wait_ms: 30_000 });
    const first = await person.waitedFor();
    const next = async (): Promise<string> => {
      await person.answer(first.approval_id, "deny");
      await gone;
      await person.told({ cmd: "touch watch-next" });
      await sleep(1000);
      return "y\r";
    };
    const leave = (): Promise<string> => sleep(2500, "\u0003");
    const { text } = await atTerminal(broker, ["approvals", "--watch"], [next, leave]);
    expect(text).toMatch(/touch watch-gone[^]*touch watch-next/);
    expect(text).not.toContain("approved, once");
    expect(await person.told({ cmd: "touch watch-next" })).toMatchObject({ code: "approval_required" });
  });

  test("approve shows at a terminal what it is about, and asks", async () => {
    const { approval_id: id = "" } = await person.told({ cmd: "touch shown" });
    const no = await atTerminal(broker, ["approve", id, "--always"], ["\r"]);
    expect(no.text).toMatch(/command +touch shown[^]*Approve it \(always\)\? [^]*Nothing is approved/);
    expect(no.code).toBe(125);
    expect((await person.question(id)).subject.cmd).toBe("touch shown");
    const yes = await atTerminal(broker, ["approve", id, "--once"], ["y\r"]);
    expect(yes.text).toContain("Approved (once)");
    const { approval_id: other = "" } = await person.told({ cmd: "touch unasked" });
    const unasked = await atTerminal(broker, ["approve", other, "--once", "--yes"], []);
    expect(unasked.text).toMatch(/command +touch unasked[^]*Approved \(once\)/);
  });
});
