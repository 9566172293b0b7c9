import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DiffReply, HeldReply } from "../../schemas/generated/types.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import {
  change,
  changed,
  diffOf,
  errorIn,
  fill,
  isolated,
  isolating,
  layersOf,
} from "../support/held/changes.ts";
import { actorsWith } from "../support/run/needs.ts";

const MIB = 1024 * 1024;

/** Nests folders with names of 250 characters by steps, so that their paths are as long as it likes, and fills the last with files. */
function nested(levels: number, files: number): string {
  return `
import os
for _ in range(${levels}):
    os.mkdir("n" * 250); os.chdir("n" * 250)
for i in range(${files}):
    os.close(os.open("f%d" % i, os.O_CREAT | os.O_WRONLY, 0o644))
`;
}

describe.each(actorsWith("python3"))("held changes without end, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: isolating() } });
  });
  afterAll(() => broker.stop());

  async function heldBy(script: string): Promise<string> {
    broker.write(join(broker.project, "make.py"), script);
    return (await isolated(broker, "python3 make.py")).span_id;
  }

  /** The broker's processes that read held changes. */
  function readers(): readonly number[] {
    const { pid } = broker.process;
    const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      textOf(`/proc/${pid}/task/${task}/children`).split(" ").filter(Boolean).map(Number),
    );
    return children.filter((child) => textOf(`/proc/${child}/cmdline`).includes("substrate-init\0held\0"));
  }

  /** Lines of bugs in the broker's log. */
  function bugs(): readonly string[] {
    return textOf(join(broker.home, "log/broker.log"))
      .split("\n")
      .filter((line) => line.includes('"level":50'));
  }

  test("below paths that no call can name are one refused row, and what lies beside them is applied", async () => {
    const span = await heldBy(`open("fine", "w").write("fine")\n${nested(1300, 600)}`);
    const seen = join(layersOf(broker, span), "seen");
    expect(await eventually(() => existsSync(seen), 10_000)).toBe(true);
    expect(statSync(seen).size).toBeLessThan(MIB);
    const { changes } = await diffOf(broker, span);
    const longest = changes.reduce((most, { path }) => Math.max(most, path.length), 0);
    expect(changes).toHaveLength(18);
    expect(longest).toBe(17 * 251 - 1);
    const error = errorIn(await change(broker, "apply", span));
    expect(error).toMatchObject({ status: 409, code: "apply_conflict" });
    expect(error.message).toContain("the path is too long");
    expect(await changed(broker, "apply", span, ["fine"])).toMatchObject({ done: ["fine"] });
    expect((await changed(broker, "discard", span)).left).toEqual([]);
    expect((await diffOf(broker, span)).changes).toEqual([]);
  }, 60_000);

  test("in a folder of the project that a command removed are refused with its removal", async () => {
    mkdirSync(join(broker.project, "deep"));
    fill(broker, { "make.py": `import os\nos.chdir("deep")\n${nested(20, 1)}` });
    expect(await broker.run("python3 make.py")).toMatchObject({ exit: 0 });
    const { span_id: span } = await isolated(broker, "rm -r deep");
    const seen = join(layersOf(broker, span), "seen");
    expect(await eventually(() => existsSync(seen), 10_000)).toBe(true);
    expect(textOf(seen)).toContain("\0a path in the project's folder of this name is too long");
    expect(errorIn(await change(broker, "apply", span)).code).not.toBe("internal");
    expect(existsSync(join(broker.project, "deep"))).toBe(true);
    await changed(broker, "discard", span);
    expect(await broker.run("rm -r deep")).toMatchObject({ exit: 0 });
  }, 60_000);

  test("whose list is too long are neither read nor kept, and a person can discard them", async () => {
    // The path of each file has some 3,800 characters.
    const span = await heldBy(nested(15, 18_500));
    const asked = await broker.call("GET", `/v1/diff/${span}`);
    for (const answer of [asked, await change(broker, "apply", span)]) {
      const error = errorIn(answer);
      expect(error).toMatchObject({ status: 413, code: "too_large" });
      expect(error.hint).toContain(`'substrate discard ${span}'`);
    }
    const { held } = (await broker.operator("GET", "/v1/held")).document as HeldReply;
    expect(held.find(({ span_id: id }) => id === span)?.problem).toContain("longer than 64 MiB");
    expect(await eventually(() => readers().length === 0, 10_000)).toBe(true);
    expect(readdirSync(layersOf(broker, span)).sort()).toEqual(["upper", "work"]);
    expect(errorIn(await change(broker, "discard", span, ["n".repeat(250)]))).toMatchObject({ status: 413 });
    expect(await changed(broker, "discard", span)).toMatchObject({ done: ["."], left: [] });
    expect((await diffOf(broker, span)).changes).toEqual([]);
    expect(readdirSync(join(layersOf(broker, span), "upper"))).toEqual([]);
    expect(errorIn(await change(broker, "discard", span))).toMatchObject({ status: 404 });
    expect(bugs()).toEqual([]);
  }, 120_000);

  test("are read by one process at a time, however many ask; when those leave it ends, and no bug is logged", async () => {
    const spans = [await heldBy(nested(0, 30_000)), await heldBy(nested(1, 30_000))];
    const [span = "", other = ""] = spans;
    await eventually(() => spans.every((one) => existsSync(join(layersOf(broker, one), "seen"))), 30_000);
    let most = 0;
    const watch = setInterval(() => (most = Math.max(most, readers().length)), 5);
    const answers = await Promise.all(
      Array.from({ length: 16 }, () => broker.call("GET", `/v1/diff/${span}`)),
    );
    clearInterval(watch);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    for (const { document } of answers) expect((document as DiffReply).changes).toHaveLength(10_000);
    expect(most).toBe(1);

    const clients = Array.from({ length: 16 }, () => new AbortController());
    const left = clients.map(({ signal }, at) =>
      broker.call("GET", `/v1/diff/${at % 2 === 0 ? span : other}`, undefined, signal).then(
        ({ status }) => status,
        () => "left",
      ),
    );
    expect(await eventually(() => readers().length === 1, 10_000)).toBe(true);
    for (const client of clients) client.abort();
    expect(new Set(await Promise.all(left))).toEqual(new Set(["left"]));
    expect(await eventually(() => readers().length === 0, 10_000)).toBe(true);
    expect(bugs()).toEqual([]);

    const small = (await isolated(broker, "echo done > small")).span_id;
    expect(await changed(broker, "apply", small)).toMatchObject({ done: ["small"] });
    for (const one of spans) await changed(broker, "discard", one);
  }, 120_000);
});

/** Empty for a process that has just ended. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
