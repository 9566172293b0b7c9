import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { eventually, TestBroker } from "../support/broker/broker.ts";

const POLICY = `id: default
name: Stopped
mode: enforce
fs: { write: ["$PROJECT/**"] }
commands: { denied: ["expr *"] }
`;

/** While the broker stands still: many long starts that are asked about, and beside them one that no rule concerns. */
const FLOOD = `
import os, subprocess, time
open("ready", "w").close()
while not os.path.exists("stopped"): time.sleep(0.02)
kids, slowest = [], 0
for _ in range(400):
    pid = os.fork()
    if pid == 0:
        try: os.execv("/usr/bin/expr", ["expr"] + ["z" * 1000] * 60)
        except OSError as error: os._exit(100 + error.errno)
    kids.append(pid)
until = time.monotonic() + 3
while time.monotonic() < until:
    began = time.monotonic()
    subprocess.call(["/bin/true"])
    slowest = max(slowest, time.monotonic() - began)
codes = {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in kids}
print(slowest < 2, codes)
`;
import { actorsWith } from "../support/run/needs.ts";

describe.each(actorsWith("python3"))("as $kind", (actor) => {
  let broker: TestBroker;
  beforeEach(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
  });
  afterEach(() => broker.stop());

  test("a broker that stands still stops no program that no rule concerns, however much it is asked", async () => {
    broker.write(`${broker.project}/flood.py`, FLOOD);
    const running = broker.run("python3 flood.py");
    expect(await eventually(() => existsSync(`${broker.project}/ready`), 10_000)).toBe(true);
    broker.process.kill("SIGSTOP");
    try {
      broker.write(`${broker.project}/stopped`, "");
      await sleep(7000);
    } finally {
      broker.process.kill("SIGCONT");
    }
    expect((await running).stdout).toBe("True {113}\n");
    expect((await broker.run("echo on")).stdout).toBe("on\n");
  });
});
