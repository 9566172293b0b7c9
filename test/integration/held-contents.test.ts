import {
  chmodSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { homeLayout } from "../../broker/settings/home.ts";
import { actors } from "../support/users/users.ts";
import { eventually, ROOT_OVERLAY, TestBroker } from "../support/broker/broker.ts";
import { change, changed, errorIn, fill, isolated, isolating } from "../support/held/changes.ts";

describe.each(actors())("a file that holds what the command saw, as $kind", (actor) => {
  let broker: TestBroker;
  let file: string;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: isolating() } });
    file = join(broker.project, "f");
  });
  afterAll(() => broker.stop());
  beforeEach(() => {
    rmSync(file, { force: true });
    fill(broker, { f: "one\n" });
  });

  async function heldAndLookedAt(cmd: string): Promise<string> {
    // The kernel stamps files by a clock of 10 ms at most: an edit in the tick of the mount passes for an earlier one.
    await sleep(20);
    const { span_id: span } = await isolated(broker, cmd);
    const { overlay } = homeLayout(broker.home, actor.uid === 0 ? ROOT_OVERLAY : undefined);
    const contents = join(overlay, span, "contents");
    expect(await eventually(() => existsSync(contents), 10_000)).toBe(true);
    return span;
  }

  function replaced(content: string): void {
    const { uid, gid, mode } = statSync(file);
    fill(broker, { beside: content });
    chmodSync(join(broker.project, "beside"), mode);
    expect(statSync(join(broker.project, "beside"))).toMatchObject({ uid, gid });
    renameSync(join(broker.project, "beside"), file);
  }

  test.each([
    ["that was touched", () => utimesSync(file, new Date(), new Date())],
    [
      "that was changed and changed back",
      () => {
        writeFileSync(file, "other\n");
        writeFileSync(file, "one\n");
      },
    ],
    ["in whose place another one came with the same bytes", () => replaced("one\n")],
    [
      "whose mode was another one for a while",
      () => {
        const { mode } = statSync(file);
        chmodSync(file, 0o600);
        chmodSync(file, mode);
      },
    ],
  ])("one %s is no conflict, and neither is its removal", async (_what, act) => {
    const span = await heldAndLookedAt("echo two >> f");
    act();
    expect(await changed(broker, "apply", span)).toMatchObject({ done: ["f"], left: [] });
    expect(readFileSync(file, "utf8")).toBe("one\ntwo\n");
    rmSync(file);
    fill(broker, { f: "one\n" });
    const removal = await heldAndLookedAt("rm f");
    act();
    expect(await changed(broker, "apply", removal)).toMatchObject({ done: ["f"] });
    expect(existsSync(file)).toBe(false);
  });

  test.each([
    ["with other bytes of the same length", () => writeFileSync(file, "ONE\n")],
    ["with another mode", () => chmodSync(file, 0o600)],
    ["in whose place another one came with other bytes", () => replaced("ONE\n")],
  ])("one %s is a conflict, which goes away with its cause", async (_what, act) => {
    const { mode } = statSync(file);
    const span = await heldAndLookedAt("echo two >> f");
    act();
    const before = readFileSync(file, "utf8");
    const error = errorIn(await change(broker, "apply", span));
    expect(error).toMatchObject({ status: 409, code: "apply_conflict", conflicts: [{ path: "f" }] });
    expect(readFileSync(file, "utf8")).toBe(before);
    writeFileSync(file, "one\n");
    chmodSync(file, mode);
    expect(await changed(broker, "apply", span)).toMatchObject({ done: ["f"] });
    expect(readFileSync(file, "utf8")).toBe("one\ntwo\n");
    await changed(broker, "undo", span);
    expect(readFileSync(file, "utf8")).toBe("one\n");
  });
});
