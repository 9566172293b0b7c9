import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

const MI = 1024 * 1024;
const COMMANDS = 16;

/** Twice as much as one command may be sent, of which the caller gets the first and last 8 MiB. */
const WRITES = `head -c ${32 * MI} /dev/zero`;

/** 24 of them took 1,819 MiB of the broker before there was a bound, and 573 MiB since. */
const MOST_MIB = 900;

describe.each(actors().slice(0, 1))("many commands that write much at once, as $kind", (actor) => {
  test("all get what they were promised, and the broker stays in bounds", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: "id: default\nname: x\n" } });
    try {
      const lengths = await Promise.all(Array.from({ length: COMMANDS }, () => sent(broker)));
      expect(Math.min(...lengths)).toBeGreaterThan((16 * MI * 4) / 3);
      expect(peak(broker)).toBeLessThan(MOST_MIB);
      const one = await broker.run({ cmd: WRITES, max_output_bytes: 16 * MI });
      expect(one.stdout_bytes).toBe(32 * MI);
      const digest = createHash("sha256").update(Buffer.from(one.stdout_b64, "base64")).digest("hex");
      expect(digest).toBe(
        createHash("sha256")
          .update(Buffer.alloc(16 * MI))
          .digest("hex"),
      );
    } finally {
      await broker.stop();
    }
  });

  test("those that wait are ended by their time-out and by their client all the same", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: "id: default\nname: x\n" } });
    try {
      const leaving = new AbortController();
      const hold = { cmd: `${WRITES}; sleep 60`, max_output_bytes: 16 * MI };
      const held = Array.from({ length: 4 }, () => broker.post(hold, leaving.signal).catch(() => null));
      for (let tries = 0; tries < 100; tries += 1) {
        const began = broker.spans().filter(({ event_type }) => event_type === "command_start").length;
        if (began >= 4) break;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      await new Promise((resolve) => setTimeout(resolve, 1500));
      const cut = await broker.run({ cmd: WRITES, max_output_bytes: 16 * MI, timeout_ms: 500 });
      expect(cut.timed_out).toBe(true);
      expect(cut.duration_ms).toBeLessThan(4000);
      expect(await broker.run("echo small")).toMatchObject({ stdout: "small\n" });
      leaving.abort();
      await Promise.all(held);
      expect((await broker.run({ cmd: WRITES, max_output_bytes: 16 * MI })).stdout_bytes).toBe(32 * MI);
    } finally {
      await broker.stop();
    }
  });
});

/** The length of a reply, read and not kept. */
function sent(broker: TestBroker): Promise<number> {
  const body = JSON.stringify({
    ...{ agent_id: "test", cwd: broker.project, cmd: WRITES },
    max_output_bytes: 16 * MI,
  });
  return new Promise((resolve, reject) => {
    const asked = request(
      { socketPath: join(broker.home, "sock/agent.sock"), path: "/v1/execute", method: "POST" },
      (answer) => {
        let length = 0;
        answer.on("data", (chunk: Buffer) => {
          length += chunk.length;
        });
        answer.on("end", () => (answer.statusCode === 200 ? resolve(length) : reject(new Error("refused"))));
      },
    );
    asked.on("error", reject);
    asked.end(body);
  });
}

/** In MiB. */
function peak(broker: TestBroker): number {
  const status = readFileSync(`/proc/${broker.process.pid}/status`, "utf8");
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}
