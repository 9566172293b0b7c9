/** Rows about a machine that fails in the middle of a command: the command is told, its span is closed, and the next one is served. */
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { eventually, type TestBroker } from "../support/broker/broker.ts";
import { StreamClient } from "../support/broker/stream.ts";
import { untilReady } from "../support/world/lima.ts";
import type { LimaGuest } from "./lima-guest.ts";

const POLICY = `id: default
name: Failures
mode: enforce
commands: { isolated: ["sh held.sh", "touch held", "dd *"] }
`;

const FILL = `fallocate -l $(df --output=avail -B1 / | tail -n 1) /fill 2> /dev/null
dd if=/dev/zero of=/more bs=64K status=none 2> /dev/null; [ "$(df --output=avail / | tail -n 1)" -eq 0 ]`;

type Ground = {
  readonly machine: LimaGuest;
  readonly shared: { readonly broker: TestBroker; readonly setPolicy: (text: string) => void };
};

export function failureRows(ground: () => Ground): void {
  test("a forward that is cut ends its commands at once, and is there again for a later one without a manual step", async () => {
    const { machine, shared } = ground();
    shared.setPolicy(POLICY);
    const verbs = machine.lima.verbs.length;
    const marker = await lostBy(ground(), () => machine.cut());
    // The agent has heard it too.
    const gone = async (): Promise<boolean> => (await machine.place.processesWith(marker)).length === 0;
    expect(await eventually(gone, 120_000)).toBe(true);
    await untilReady(shared.broker);
    expect(machine.lima.verbs.slice(verbs)).toEqual(["stop", "start"]);
  });

  test("a machine that dies closes the spans of its commands, is started again, and has the changes that it held", async () => {
    const { machine, shared } = ground();
    const { broker } = shared;
    const { span_id: held } = await broker.run("touch held");
    await machine.guest.must("sync");
    const verbs = machine.lima.verbs.length;
    await lostBy(ground(), () => machine.crash());
    await untilReady(broker);
    expect(machine.lima.verbs.slice(verbs)).toEqual(["start"]);
    const shown = await broker.operator("GET", `/v1/diff/${held}`);
    expect(shown.document).toMatchObject({ changes: [{ path: "held", kind: "write" }] });
    expect((await broker.operator("POST", `/v1/discard/${held}`, {})).status).toBe(200);
  });

  test("a full disk of the machine is its commands' error, and free again it holds changes", async () => {
    const { machine, shared } = ground();
    const { broker } = shared;
    await machine.guest.must(FILL);
    const { document } = await broker.post({ cmd: "dd if=/dev/zero of=big bs=1M count=4" });
    const { stderr_b64: err = "", error } = document as { stderr_b64?: string; error?: { message: string } };
    expect(error?.message ?? Buffer.from(err, "base64").toString()).toMatch(/ENOSPC|No space left/i);
    await machine.guest.must("rm /fill /more");
    const { fs_diff: diff, exit } = await broker.run("dd if=/dev/zero of=big bs=1M count=4");
    expect([exit, diff?.writes, diff?.held]).toEqual([0, ["big"], true]);
  });
}

/** Starts a command and has something done to its machine: its caller is told, and its span is closed. Returns a word of the command's. */
async function lostBy({ shared: { broker } }: Ground, act: () => Promise<void>): Promise<string> {
  const marker = `marked-${randomBytes(6).toString("hex")}`;
  const running = await StreamClient.open(broker, { cmd: `echo begun; : ${marker}; sleep 600` });
  await running.shows("begun\n");
  const span = await running.started();
  await act();
  expect(await running.ended()).toMatchObject({ type: "exit", signal: "SIGKILL" });
  expect(running.err.toString()).toContain("the connection to its world agent was lost");
  expect(await broker.span(span)).toMatchObject({ event_type: "command_complete", signal: "SIGKILL" });
  return marker;
}
