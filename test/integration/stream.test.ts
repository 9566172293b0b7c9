/** Commands whose input and output travel while they run: WebSocket and server-sent events. */
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { eventually, type TestBroker } from "../support/broker/broker.ts";
import { withBroker } from "../support/broker/budgets.ts";
import { StreamClient } from "../support/broker/stream.ts";
import { processesWith } from "../support/processes/processes.ts";
import { actors } from "../support/users/users.ts";

const MI = 1024 * 1024;
const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const DENIES = `id: default
name: Streams
mode: enforce
commands: { denied: ["forbidden *"] }
`;

describe.each(actors())("streams, as $kind", (actor) => {
  test("output arrives while the command still runs, and the exit message is the reply without the outputs", async () => {
    await withBroker(actor, {}, async (broker) => {
      const client = await StreamClient.open(broker, {
        cmd: "echo first; until [ -e go ]; do sleep 0.02; done; echo second >&2; exit 3",
      });
      const span = await client.started();
      await client.shows("first\n");
      expect(client.err).toHaveLength(0);
      broker.write(join(broker.project, "go"), "");
      const last = await client.ended();
      expect(await client.closed).toBe(1000);
      expect(client.err.toString()).toBe("second\n");
      expect(last).toMatchObject({
        type: "exit",
        span_id: span,
        exit: 3,
        stdout_bytes: 6,
        stderr_bytes: 7,
        lines: [],
      });
      expect(last).not.toHaveProperty("stdout_b64");
      expect(await broker.span(span)).toMatchObject({ exit: 3, outcome: "ended", replayable: true });
    });
  });

  test("input of any size passes unchanged in both directions, and its end is the command's end of file", async () => {
    await withBroker(actor, {}, async (broker) => {
      const bytes = randomBytes(5 * MI + 1);
      const client = await StreamClient.open(broker, { cmd: "cat; echo over >&2" });
      for (let at = 0; at < bytes.length; at += MI) client.type(bytes.subarray(at, at + MI));
      client.tell({ type: "stdin_eof" });
      expect(await client.ended()).toMatchObject({ exit: 0 });
      expect(sha256(client.out)).toBe(sha256(bytes));
      expect(client.err.toString()).toBe("over\n");
    });
  });

  test("a client that asks is told how much of its input was taken, also when nobody reads it", async () => {
    await withBroker(actor, {}, async (broker) => {
      const client = await StreamClient.open(broker, {
        cmd: "head -c 1000 >/dev/null; exec 0<&-; sleep 0.5",
        stdin: true,
      });
      client.type(Buffer.alloc(100_000));
      client.type(Buffer.alloc(100_000));
      await client.ended();
      const taken = client.messages.filter(({ type }) => type === "stdin_taken");
      expect(taken.reduce((sum, { bytes = 0 }) => sum + bytes, 0)).toBeGreaterThanOrEqual(65_536);
    });
  });

  test("a call without input is replayable, and reads an empty file", async () => {
    await withBroker(actor, {}, async (broker) => {
      const client = await StreamClient.open(broker, { cmd: "cat; echo read", stdin: false });
      const { span_id: span = "" } = await client.ended();
      expect(client.screen).toBe("read\n");
      expect((await broker.span(span)).replayable).toBe(true);
      const typed = await StreamClient.open(broker, { cmd: "cat" });
      typed.type("x");
      typed.tell({ type: "stdin_eof" });
      const last = await typed.ended();
      expect(await broker.span(last.span_id ?? "")).toMatchObject({
        replayable: false,
        given: { not_kept: ["stdin"] },
      });
    });
  });

  test("what cannot run is an error message and close code 1008; a later message that makes no sense ends the command", async () => {
    await withBroker(actor, { policies: { default: DENIES } }, async (broker) => {
      const cases = [
        { first: { cmd: "forbidden thing" }, code: "policy_denied" },
        { first: { cmd: "true", bogus: 1 }, code: "invalid_request", path: "bogus" },
        { first: { cmd: "true", cols: 80 }, code: "invalid_request", path: "cols" },
        { first: { cmd: "true", pty: true, rows: 0 }, code: "invalid_request", path: "rows" },
        { first: { cmd: "true", idempotency_key: "k" }, code: "invalid_request", path: "idempotency_key" },
        { first: { cmd: "true", stdin: true, stdin_b64: "" }, code: "invalid_request", path: "stdin" },
      ];
      const agentsShell = await StreamClient.open(broker, { session_shell: true, pty: true });
      expect((await agentsShell.ended()).error).toMatchObject({
        code: "invalid_request",
        path: "session_shell",
      });
      for (const { first, code, path } of cases) {
        const client = await StreamClient.open(broker, first);
        const { error } = await client.ended();
        expect(error, JSON.stringify(first)).toMatchObject({ code, ...(path === undefined ? {} : { path }) });
        expect(await client.closed).toBe(1008);
        expect(client.messages).toHaveLength(1);
      }
      for (const wrong of ['{"type":"dance"}', '{"type":"resize","cols":5}', "no JSON"]) {
        const marker = `marker-${randomBytes(6).toString("hex")}`;
        const client = await StreamClient.open(broker, { argv: ["sh", "-c", "sleep 60; true", marker] });
        await client.started();
        client.tell(wrong);
        expect((await client.ended()).error?.code, wrong).toBe("invalid_request");
        expect(await eventually(() => processesWith(marker).length === 0, 5000), wrong).toBe(true);
      }
    });
  });

  test("a client that goes away ends its command, also one that was stopped because nobody takes its input", async () => {
    await withBroker(actor, {}, async (broker) => {
      for (const input of [0, 3 * MI]) {
        const marker = `marker-${randomBytes(6).toString("hex")}`;
        const client = await StreamClient.open(broker, { argv: ["sh", "-c", "sleep 60; true", marker] });
        await client.started();
        expect(await eventually(() => processesWith(marker).length > 0, 5000)).toBe(true);
        if (input > 0) client.type(Buffer.alloc(input));
        await sleep(100);
        client.leave();
        expect(await eventually(() => processesWith(marker).length === 0, 5000), `${input} bytes`).toBe(true);
      }
    });
  });

  test("a signal reaches every process of a command without a terminal", async () => {
    await withBroker(actor, {}, async (broker) => {
      const client = await StreamClient.open(broker, {
        cmd: "trap 'echo caught; exit 9' USR1; echo ready; while :; do sleep 0.05; done",
      });
      await client.shows("ready\n");
      client.tell({ type: "signal", signal: "SIGUSR1" });
      expect(await client.ended()).toMatchObject({ exit: 9 });
      expect(client.screen).toContain("caught\n");
      const deaf = await StreamClient.open(broker, { cmd: "trap '' INT; echo ready; sleep 60" });
      await deaf.shows("ready\n");
      deaf.tell({ type: "signal", signal: "SIGKILL" });
      expect(await deaf.ended()).toMatchObject({ exit: 137, signal: "SIGKILL" });
    });
  });

  test("a reader that stops grows the broker by less than 16 MB, and nothing is lost", async () => {
    await withBroker(actor, {}, async (broker) => {
      const bytes = 64 * MI;
      // A first command, so that what a world needs is there already.
      await broker.run("true");
      const before = residentKb(broker);
      const client = await StreamClient.open(broker, {
        cmd: `head -c ${bytes} /dev/zero | tr '\\0' x | tee >(cksum >&2) 2>&1`,
        shell: "bash",
      });
      await client.shows("x");
      client.pause();
      await sleep(3000);
      expect((residentKb(broker) - before) * 1024).toBeLessThan(16 * MI);
      client.resume();
      await client.ended();
      expect(client.out.length + client.err.length).toBeGreaterThanOrEqual(bytes);
      expect(client.out.subarray(0, bytes).equals(Buffer.alloc(bytes, "x"))).toBe(true);
    });
  });

  test("clients that leave in the middle of a handshake end nothing, and one without a first message takes no command", async () => {
    await withBroker(actor, {}, async (broker) => {
      for (const path of ["/nope", "/v1/stream", "/v1/stream/spn_x"]) {
        for (let round = 0; round < 30; round += 1) {
          const socket = connect(join(broker.home, "sock/agent.sock"));
          socket.on("error", () => {});
          socket.write(
            `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: ${round % 2 === 0 ? "websocket" : "h2c"}\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
            () => socket.destroy(),
          );
          await new Promise((resolve) => socket.once("close", resolve));
        }
      }
      expect(await broker.run("echo lives")).toMatchObject({ stdout: "lives\n" });
    });
  });

  test("a reader that stands still when its command's time is over ends no other command", async () => {
    await withBroker(actor, {}, async (broker) => {
      const other = await StreamClient.open(broker, { cmd: "sleep 12; echo lived" });
      const still = await StreamClient.open(broker, {
        cmd: "head -c 3000000 /dev/zero; sleep 60",
        timeout_ms: 1500,
      });
      await still.started();
      still.pause();
      expect(await other.ended()).toMatchObject({ exit: 0 });
      still.resume();
      expect(await still.ended()).toMatchObject({ timed_out: true });
    });
  });

  test("an agent takes up neither a person's detached command nor one that was not to be detached", async () => {
    await withBroker(actor, {}, async (broker) => {
      const persons = { agent_id: "human", cmd: "sleep 60", on_disconnect: "detach" };
      const person = await StreamClient.open(broker, persons, "control.sock");
      const span = await person.started();
      person.leave();
      await sleep(200);
      const stranger = await StreamClient.attach(broker, span);
      expect((await stranger.ended()).error?.code).toBe("not_found");
      const own = await StreamClient.attach(broker, span, "control.sock");
      await own.started();
      own.tell({ type: "signal", signal: "SIGKILL" });
      expect(await own.ended()).toMatchObject({ exit: 137 });
      const plain = await StreamClient.open(broker, { cmd: "sleep 60" });
      const second = await StreamClient.attach(broker, await plain.started());
      expect((await second.ended()).error?.code).toBe("not_found");
    });
  });

  test("a detached command goes on, and whoever attaches gets its output and its end", async () => {
    await withBroker(actor, {}, async (broker) => {
      const client = await StreamClient.open(broker, {
        cmd: "echo before; until [ -e go ]; do sleep 0.02; done; head -c 300000 /dev/zero | tr '\\0' y; echo after; exit 4",
        on_disconnect: "detach",
      });
      const span = await client.started();
      await client.shows("before\n");
      const second = await StreamClient.attach(broker, span);
      expect((await second.ended()).error?.code).toBe("busy");
      client.leave();
      await sleep(200);
      const third = await StreamClient.attach(broker, span);
      await third.shows("before\n");
      third.leave();
      await sleep(200);
      broker.write(join(broker.project, "go"), "");
      expect(await eventually(async () => (await broker.span(span)).outcome === "ended", 10_000)).toBe(true);
      const last = await StreamClient.attach(broker, span);
      expect(await last.ended()).toMatchObject({ type: "exit", exit: 4 });
      expect(last.screen).toMatch(/y{200000,}after\n$/);
      expect(last.out).toHaveLength(256 * 1024);
      expect((await (await StreamClient.attach(broker, span)).ended()).error?.code).toBe("not_found");
    });
  });

  test("an agent attaches to its own commands alone", async () => {
    const config = "agents: { one: {}, two: {} }\n";
    await withBroker(actor, { config }, async (broker) => {
      const detached = { agent_id: "one", cmd: "sleep 60", on_disconnect: "detach" };
      const client = await StreamClient.open(broker, detached, "agents/one.sock");
      const span = await client.started();
      client.leave();
      await sleep(200);
      for (const socket of ["agents/two.sock", "agent.sock"]) {
        const stranger = await StreamClient.attach(broker, span, socket);
        expect((await stranger.ended()).error?.code, socket).toBe("not_found");
      }
      const own = await StreamClient.attach(broker, span, "agents/one.sock");
      await own.started();
      own.tell({ type: "signal", signal: "SIGTERM" });
      expect(await own.ended()).toMatchObject({ exit: 143 });
    });
  });

  test("server-sent events carry the same: base64, then exit or error; what is no request is a plain 400", async () => {
    await withBroker(actor, { policies: { default: DENIES } }, async (broker) => {
      const events = await eventsOf(broker, { cmd: "printf 'a\\0b'; echo no >&2; exit 5" });
      expect(events.map(({ event }) => event)).toEqual(["started", "stdout", "stderr", "exit"]);
      expect(Buffer.from(events[1]?.data ?? "", "base64").toString()).toBe("a\0b");
      expect(JSON.parse(events[3]?.data ?? "")).toMatchObject({ type: "exit", exit: 5 });
      const [denied] = await eventsOf(broker, { cmd: "forbidden thing" });
      expect(denied?.event).toBe("error");
      expect(JSON.parse(denied?.data ?? "")).toMatchObject({ error: { code: "policy_denied" } });
      const wrong = await broker.call("POST", "/v1/stream", { agent_id: "test", cmd: "true", stdin: true });
      expect(wrong).toMatchObject({ status: 400, document: { error: { path: "stdin" } } });
      expect((await broker.call("GET", "/v1/stream")).status).toBe(400);
    });
  });
});

function residentKb({ process: { pid } }: TestBroker): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

type Event = { readonly event: string; readonly data: string };

function eventsOf(broker: TestBroker, body: object): Promise<readonly Event[]> {
  const payload = JSON.stringify({ agent_id: "test", cwd: broker.project, ...body });
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { socketPath: join(broker.home, "sock/agent.sock"), method: "POST", path: "/v1/stream" },
      (response) => {
        expect(response.statusCode).toBe(200);
        expect(response.headers["content-type"]).toContain("text/event-stream");
        let text = "";
        response.on("data", (part: Buffer) => (text += part.toString("utf8")));
        response.on("end", () =>
          resolve(
            text
              .split("\n\n")
              .filter(Boolean)
              .map(
                (one) => /^event: (?<event>.*)\ndata: (?<data>.*)$/s.exec(one)?.groups as unknown as Event,
              ),
          ),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end(payload);
  });
}
