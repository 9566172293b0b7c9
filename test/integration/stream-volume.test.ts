/** Streams with as much as a long build, a dump or a fleet of agents sends through them. */
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { TestBroker } from "../support/broker/broker.ts";
import { withBroker } from "../support/broker/budgets.ts";
import { StreamClient } from "../support/broker/stream.ts";
import { actors } from "../support/users/users.ts";

const MB = 1_000_000;
const PIECE = 50_000;

/** `ready` is written once the terminal passes bytes as they are. */
const WAYS = [
  { what: "pipes", cmd: "echo ready; exec cat", more: {} },
  {
    what: "a raw terminal",
    cmd: `stty raw -echo; echo ready; exec head -c ${100 * MB}`,
    more: { pty: true },
  },
];

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Types a long input piece by piece, as a client does that reads while it writes. */
async function typeAll(client: StreamClient, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; at += PIECE) {
    client.type(bytes.subarray(at, at + PIECE));
    if (at % (20 * PIECE) === 0) await sleep(1);
  }
}

function residentKb({ process: { pid } }: TestBroker): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

describe.each(actors())("streams of much, as $kind", (actor) => {
  test.each(WAYS)(
    "100 MB of random bytes pass $what unchanged in both directions",
    async ({ cmd, more }) => {
      await withBroker(actor, {}, async (broker) => {
        const bytes = randomBytes(100 * MB);
        const client = await StreamClient.open(broker, { cmd, timeout_ms: 600_000, ...more });
        await client.shows(/^ready\n/);
        await typeAll(client, bytes);
        client.tell({ type: "stdin_eof" });
        expect(await client.ended()).toMatchObject({ exit: 0 });
        const received = client.out.subarray("ready\n".length);
        expect(received.length).toBe(bytes.length);
        expect(hashOf(received)).toBe(hashOf(bytes));
      });
    },
    300_000,
  );

  test.each(WAYS)(
    "a reader that stops for ten seconds before $what grows the broker by less than 16 MB, and loses nothing",
    async ({ more }) => {
      await withBroker(actor, {}, async (broker) => {
        const size = 64 * MB;
        const raw = "pty" in more ? "stty raw -echo; " : "";
        const cmd = `${raw}head -c ${size} /dev/zero | tr '\\0' x`;
        const warm = await StreamClient.open(broker, { cmd: `${raw}head -c ${MB} /dev/zero`, ...more });
        await warm.ended();
        const before = residentKb(broker);
        const client = await StreamClient.open(broker, { cmd, ...more });
        await client.started();
        client.pause();
        let most = 0;
        for (let second = 0; second < 10; second += 1) {
          await sleep(1000);
          most = Math.max(most, residentKb(broker) - before);
        }
        client.resume();
        expect(await client.ended()).toMatchObject({ exit: 0 });
        expect(most).toBeLessThan(16_000);
        expect(client.out.equals(Buffer.alloc(size, "x"))).toBe(true);
      });
    },
    180_000,
  );

  test("a hundred terminals at once each have their own device, input and end", async () => {
    await withBroker(actor, {}, async (broker) => {
      const names = Array.from({ length: 100 }, (_, at) => `terminal-${at}`);
      const clients = await Promise.all(
        names.map((name) =>
          StreamClient.open(broker, { cmd: `tty; read -r line; echo "${name} read $line"`, pty: true }),
        ),
      );
      for (const client of clients) await client.shows(/^\/dev\/pts\/\d+\r\n/);
      const devices = new Set(clients.map(({ screen }) => screen.slice(0, screen.indexOf("\r"))));
      expect(devices.size).toBe(100);
      for (const [at, client] of clients.entries()) client.type(`line ${at}\r`);
      const ends = await Promise.all(clients.map((client) => client.ended()));
      expect(ends.filter(({ exit }) => exit === 0)).toHaveLength(100);
      for (const [at, { screen }] of clients.entries())
        expect(screen).toContain(`line ${at}\r\n${names[at]} read line ${at}\r\n`);
    });
  }, 180_000);

  test("a thousand short commands, of pipes and of terminals, each arrive with their whole output", async () => {
    await withBroker(actor, {}, async (broker) => {
      const run = async (number: number): Promise<void> => {
        const pty = number % 2 === 1;
        const lines = 1 + (number % 50);
        const cmd = `i=0; while [ $i -lt ${lines} ]; do echo "${number} $i"; i=$((i+1)); done; exit ${number % 7}`;
        const client = await StreamClient.open(broker, { cmd, pty, agent_id: `agent-${number % 5}` });
        const end = pty ? "\r\n" : "\n";
        const wanted = Array.from({ length: lines }, (_, at) => `${number} ${at}${end}`).join("");
        expect(await client.ended()).toMatchObject({ type: "exit", exit: number % 7 });
        expect(client.screen).toBe(wanted);
      };
      let next = 0;
      const work = async (): Promise<void> => {
        while (next < 1000) await run(next++);
      };
      await Promise.all(Array.from({ length: 10 }, work));
      expect(next).toBe(1000);
    });
  }, 300_000);
});
