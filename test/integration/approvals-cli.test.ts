import { existsSync } from "node:fs";
import { join } from "node:path";
import { spawn } from "node-pty";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../actors.ts";
import { Person } from "../approvals.ts";
import { eventually, TestBroker } from "../broker.ts";
import { installationFor } from "../installation.ts";

const POLICY = `id: default
name: CLI
mode: enforce
commands:
  ask: ["touch *"]
`;

type Typed = { readonly code: number; readonly text: string };

describe.each(actors().slice(0, 1))("approvals on the command line, as $kind", (actor) => {
  let broker: TestBroker;
  let person: Person;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    person = new Person(broker);
  });
  afterAll(() => broker.stop());

  const has = (name: string): boolean => existsSync(join(broker.project, name));

  /** Runs `exec` on a terminal, and types each answer when its question has been asked that often. */
  async function onTerminal(
    words: readonly string[],
    typed: readonly (string | (() => Promise<string>))[],
    early = "",
  ): Promise<Typed> {
    const { node, launcher } = await installationFor(actor);
    const terminal = spawn(node, [launcher, "exec", ...words], {
      cwd: broker.project,
      cols: 200,
      env: { PATH: "/usr/bin:/bin", HOME: actor.home, TERM: "dumb", SUBSTRATE_HOME: broker.home },
    });
    let text = "";
    const left = [...typed];
    let asked = 0;
    terminal.onData((data) => {
      text += data;
      const questions = text.split("[d]").length - 1;
      const next = questions > asked ? left.shift() : undefined;
      if (typeof next === "function") void next().then((keys) => terminal.write(keys));
      else if (next !== undefined) terminal.write(next);
      asked = questions;
    });
    if (early !== "") terminal.write(early);
    const code = await new Promise<number>((resolve) => terminal.onExit(({ exitCode }) => resolve(exitCode)));
    await new Promise((resolve) => setTimeout(resolve, 100));
    return { code, text };
  }

  test("exec asks at a terminal, shows what and why, and runs when told so", async () => {
    const { code, text } = await onTerminal(["--", "touch inline && echo ran"], ["o\r"]);
    expect(text).toMatch(/command +touch inline && echo ran/);
    expect(text).toMatch(/matches +touch \* +in commands\.ask, default\.yaml:5/);
    expect(text).toContain("o)nce s)ession a)lways d)eny p)review [d]");
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

  test("a yes to what somebody else denied meanwhile is 126, and a no to what they approved runs nothing", async () => {
    const elsewhere = (decision: "deny" | "once", keys: string) => async () => {
      const [first] = (await person.list()).approvals.filter(({ subject }) => subject.cmd === cmd);
      await person.answer(first?.approval_id, decision);
      return keys;
    };
    let cmd = "touch no-elsewhere";
    const denied = await onTerminal(["--", cmd], [elsewhere("deny", "o\r")]);
    expect(denied.text).toContain("A person denied this command a moment ago");
    expect(denied.code).toBe(126);
    cmd = "touch yes-elsewhere";
    const approved = await onTerminal(["--", cmd], [elsewhere("once", "d\r")]);
    expect(approved.text).toContain("was approved for one run");
    expect(approved.code).toBe(125);
    for (const name of ["no-elsewhere", "yes-elsewhere"]) expect(has(name)).toBe(false);
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
    expect(text).not.toContain("[d]");
  });

  test("--require-approval asks about what is allowed", async () => {
    const { code, text } = await onTerminal(["--require-approval", "--", "echo allowed"], ["o\r"]);
    expect(text).toMatch(/reason +Who asks wants a person to look at it/);
    expect(text).toMatch(/allowed\r?\n$/);
    expect(code).toBe(0);
  });

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

  test("approvals lists what waits, approve lets it run, deny refuses it", async () => {
    const waiting = broker.cli(["exec", "--", "true"]);
    expect((await waiting).code).toBe(0);
    const call = person.told({ cmd: "touch listed", agent_id: "lister", approval_wait_ms: 30_000 });
    const { approval_id: id } = await person.waitedFor();
    const { stdout } = await broker.cli(["approvals"]);
    expect(stdout).toMatch(new RegExp(`${id}  asked \\d+ s ago, good for \\d+ s, 1 call that waits for it`));
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
