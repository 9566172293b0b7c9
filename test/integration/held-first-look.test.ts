import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { change, changed, errorIn, fill, isolated, isolating, layersOf } from "../support/held/changes.ts";

describe.each(actors())("what went in the project since an isolated command, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: isolating() } });
  });
  afterAll(() => broker.stop());

  /** Nobody has asked for the changes by then. */
  async function heldAndLookedAt(cmd: string): Promise<string> {
    const { span_id: span } = await isolated(broker, cmd);
    expect(await eventually(() => existsSync(join(layersOf(broker, span), "seen")), 10_000)).toBe(true);
    return span;
  }

  test("does not come back by an apply: the person who removed it is asked first", async () => {
    fill(broker, { "kept.txt": "one\n", "other.txt": "one\n" });
    const span = await heldAndLookedAt("echo two >> kept.txt; echo two >> other.txt");
    rmSync(join(broker.project, "kept.txt"));
    const error = errorIn(await change(broker, "apply", span));
    expect(error).toMatchObject({ status: 409, code: "apply_conflict", conflicts: [{ path: "kept.txt" }] });
    expect(existsSync(join(broker.project, "kept.txt"))).toBe(false);
    expect(await changed(broker, "apply", span, ["other.txt"])).toMatchObject({ done: ["other.txt"] });
  });

  test("is not seen by a later command, which says so where it misses a name of it", async () => {
    fill(broker, { f: "old\n" });
    const { span_id: span } = await isolated(
      broker,
      "mkdir -p parts/left-pad && echo x > parts/left-pad/index.js",
    );
    const missed = await broker.run("ls parts");
    expect(missed.notices.map(({ kind, message }) => [kind, message])).toEqual([
      ["session", expect.stringContaining(`which may be why it failed: 'substrate diff ${span}' shows them`)],
    ]);
    const module = await broker.run(`node -e 'require("left-pad")'`);
    expect(module.notices.map(({ message }) => message)).toEqual([expect.stringContaining(span)]);
    const lock = "echo 'npm ci can only install with an existing left-pad' >&2; exit 1";
    expect((await isolated(broker, lock)).notices.map(({ message }) => message)).toEqual([
      expect.stringContaining(span),
    ]);
    for (const other of ["ls nowhere", "grep parts f", "ls f", "cat src/directory"])
      expect((await broker.run(other)).notices).toEqual([]);
    await changed(broker, "apply", span);
    expect(await broker.run("ls parts/none")).toMatchObject({ notices: [] });
  });

  test("conflicts with a later command that is held too, which says so at once", async () => {
    const told = async (cmd: string): Promise<readonly [string, readonly string[]]> => {
      const { span_id: span, notices } = await isolated(broker, cmd);
      return [span, notices.filter(({ kind }) => kind === "session").map(({ message }) => message)];
    };
    fill(broker, { "lock.json": "{}\n", "own.txt": "" });
    const [first] = await told("echo 1 > lock.json; echo first > made");
    expect((await told("echo own > own.txt; mkdir apart"))[1]).toEqual([]);
    const [second, words] = await told("echo 2 > lock.json; echo second > made");
    expect(words).toEqual([
      expect.stringMatching(/Both change '(?:lock\.json', 'made|made', 'lock\.json)', and an apply/),
    ]);
    expect(words[0]).toContain(`'substrate apply ${first}'`);
    await changed(broker, "apply", first);
    expect(errorIn(await change(broker, "apply", second))).toMatchObject({ code: "apply_conflict" });
    await changed(broker, "discard", second);
    // What is applied or discarded is in nobody's way.
    expect((await told("echo 3 > lock.json"))[1]).toEqual([]);
  });

  test("is not told from another folder that stood in its place when it was looked at", async () => {
    for (let attempt = 1; ; attempt += 1) {
      fill(broker, { f: "old\n" });
      const { span_id: span } = await isolated(broker, "echo new > f");
      const away = `${broker.project}-away`;
      renameSync(broker.project, away);
      fill(broker, { f: "another one\n" });
      // Longer than a first look lets wait.
      await sleep(500);
      const wasSeen = existsSync(join(layersOf(broker, span), "seen"));
      rmSync(broker.project, { recursive: true });
      renameSync(away, broker.project);
      await changed(broker, "apply", span);
      expect(readFileSync(join(broker.project, "f"), "utf8")).toBe("new\n");
      if (!wasSeen) return;
      // On a busy machine the look may come before the folder is moved, but not each time.
      expect(attempt).toBeLessThan(5);
    }
  });

  test("is told, and is no bug, when another folder took the project's place while a call waited for its turn", async () => {
    fill(broker, { f: "old\n" });
    const long = await isolated(broker, "mkdir many; for i in $(seq 1500); do echo $i > many/$i; done");
    const spans = await Promise.all([1, 2, 3].map((number) => isolated(broker, `echo ${number} > waits`)));
    // They take their turns one after the other, and the project goes somewhere among them.
    const answers = [long, ...spans].map(({ span_id: span }) => change(broker, "apply", span));
    const begun = (): boolean =>
      broker.spans().some((line) => line.parent_span === long.span_id && line.held_changes !== undefined);
    expect(await eventually(begun, 20_000)).toBe(true);
    const away = `${broker.project}-moved`;
    renameSync(broker.project, away);
    fill(broker, { f: "another one\n" });
    for (const answer of await Promise.all(answers)) {
      if (answer.status !== 200) expect(errorIn(answer).code).not.toBe("internal");
    }
    expect(readFileSync(join(broker.project, "f"), "utf8")).toBe("another one\n");
    expect(existsSync(join(broker.project, "waits"))).toBe(false);
    rmSync(broker.project, { recursive: true });
    renameSync(away, broker.project);
  });
});
