/** What a broker believes of an agent in a guest that was taken over: nothing that could reach beyond the project. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { RemoteBackend } from "../../../lima/remote-backend.ts";
import type { CommandRun, World, WorldSpec } from "../../../world/backend.ts";
import { NO_CHANGES, WorldUnavailable } from "../../../world/backend.ts";
import type { Isolation } from "../../../schemas/generated/types.ts";

const PROJECT = "/home/ann/project";
const SPEC: WorldSpec = {
  project: PROJECT,
  identity: "1:2",
  access: { kind: "direct" },
  files: { read: ["/**"], denyRead: [], write: [], denyWrite: [], seal: [] },
  hidden: [],
  sealed: [],
  limits: {},
  seccomp: "enforce",
  network: { ports: [], ranges: [] },
};

const ISOLATION: Isolation = {
  ...{ backend: "linux", user: "on", mount: "on", pid: "on", net: "on", ipc: "on", uts: "on", cgroup: "on" },
  ...{ seccomp: "on", no_new_privs: "on", capabilities: "none", exec_gate: "on", overlay: "off" },
};

/** Its answers by call; a function gets what was asked. */
type Script = Readonly<Record<string, unknown>>;

const SILENCE = Symbol("no answer");

const HONEST: Script = {
  welcome: { backend: "linux", filters: { enforce: "sha256:00", log: null } },
  probe: ISOLATION,
  start: {
    ...{ mountedAt: null, isolation: ISOLATION, pid: 7, limits: {}, mounts: [], hasNetwork: false },
    telemetry: null,
  },
  changes: { ...NO_CHANGES, writes: ["made", ".git/config"] },
  settle: { sealed: [`${PROJECT}/.git/config`], unsealed: [] },
  end: null,
};

let folder: string;
let server: Server;
let backend: RemoteBackend;
let script: Script;
let socket: WebSocket | undefined;
let taken: string[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "sb-hostile-"));
  script = HONEST;
  taken = [];
  server = createServer();
  const sockets = new WebSocketServer({ server });
  sockets.on("headers", (headers) => headers.push("substrate-protocol: 1"));
  sockets.on("connection", (opened) => {
    socket = opened;
    opened.on("message", (data: Buffer) => {
      const { call, name } = JSON.parse(data.toString()) as { call?: number; name?: string };
      if (call !== undefined && name !== undefined)
        if (script[name] !== SILENCE) opened.send(JSON.stringify({ answer: call, result: script[name] }));
    });
  });
  await new Promise<void>((resolve) => server.listen(join(folder, "a.sock"), resolve));
  backend = new RemoteBackend({
    ...{ name: "agent", socket: join(folder, "a.sock"), version: "1.2.3", store: "0123456789abcdef" },
    ...{ uid: process.getuid?.() ?? 0, remedy: "start it", welcomeMs: 500 },
    takeOut: (path) => {
      taken.push(path);
      return "/quarantine";
    },
  });
});

afterEach(async () => {
  await backend.close();
  socket?.terminate();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const started = (): Promise<World> => backend.start("wld_1", SPEC, AbortSignal.timeout(5000));

function run(world: World, told: string[] = []): CommandRun {
  return world.exec({
    ...{ argv: ["true"], cwd: PROJECT, env: {}, stdin: undefined, background: "kill", window: 1000 },
    onOutput: () => {},
    onViolation: () => {},
    onSealed: (path) => told.push(path),
  });
}

const say = (message: unknown): void => socket?.send(JSON.stringify(message));

describe("an agent that was taken over", () => {
  test("an honest one is believed: its world, its listing, its sealed names", async () => {
    const world = await started();
    expect(world.isolation.backend).toBe("agent:linux");
    const told: string[] = [];
    const command = run(world, told);
    say({ tell: "sealed", told: { run: 1, path: `${PROJECT}/.git/config` } });
    const usage = { cpuMs: 1, memoryPeakBytes: null, processes: null };
    const ending = { kind: "exited", code: 3, usage, kept: 0, leftover: false };
    say({ tell: "ending", told: { run: 1, ending } });
    expect(await command.ending).toEqual(ending);
    expect(told).toEqual([`${PROJECT}/.git/config`]);
    expect((await command.changes(AbortSignal.timeout(1000))).writes).toEqual(["made", ".git/config"]);
    expect((await world.settle([], true)).sealed).toEqual([`${PROJECT}/.git/config`]);
  });

  test.each([
    ["isolation that is no vector", { probe: { backend: "linux" } }],
    ["a number for a vector", { probe: 7 }],
    ["nothing", { probe: undefined }],
  ])("%s is no answer, and the connection ends", async (_what, lie) => {
    script = { ...HONEST, ...lie };
    await expect(backend.probe(AbortSignal.timeout(5000))).rejects.toThrow("its answer cannot be read");
    script = HONEST;
    expect(await backend.probe(AbortSignal.timeout(5000))).toMatchObject({ backend: "agent:linux" });
  });

  test.each(["../other/made", "/etc/passwd", "a/../../b", "..", "a/./b"])(
    "a change of '%s' is none of the project's",
    async (path) => {
      script = { ...HONEST, changes: { ...NO_CHANGES, autorun: [path] } };
      const world = await started();
      const changes = await run(world).changes(AbortSignal.timeout(1000));
      expect(changes).toMatchObject({ autorun: [], truncated: true });
      expect(changes.summary).toContain("is not in the project");
      expect(await world.ended).toContain("is not in the project");
    },
  );

  test("a sealed name out of the project is not judged, which could take a person's file away", async () => {
    for (const path of ["/home/ann/.git/config", `${PROJECT}/../.git/config`, `${PROJECT}-2/x`]) {
      script = { ...HONEST, settle: { sealed: [path], unsealed: [] } };
      expect(await (await started()).settle([], true)).toEqual({ sealed: [], unsealed: [] });
      const told: string[] = [];
      const world = await started();
      const command = run(world, told);
      // Runs are numbered from 1 in each connection.
      say({ tell: "sealed", told: { run: 1, path } });
      expect(await command.ending).toMatchObject({ kind: "world_lost" });
      expect(told).toEqual([]);
    }
    expect(taken).toEqual([]);
  });

  test("what is no message ends the connection, and every command with the cause", async () => {
    for (const message of [
      { tell: "ending", told: { run: 1, ending: { kind: "exited" } } },
      { tell: "constructor", told: {} },
      { tell: "captured", told: { world: "wld_1", stream: "../x", address: "1.2.3.4", port: 1, inode: 0 } },
      { call: 1, name: "decide", asks: { run: 1, question: 1, start: null } },
      [],
    ]) {
      const command = run(await started());
      say(message);
      expect(await command.ending).toMatchObject({
        kind: "world_lost",
        cause: expect.stringMatching(
          /^the connection to its world agent was lost: it sent what cannot be read/,
        ),
      });
    }
  });

  test("a question about a command that nobody runs is answered no", async () => {
    await started();
    const answer = new Promise<string>((resolve) =>
      socket?.on("message", (data: Buffer) => {
        const text = data.toString();
        if (text.includes('"answer":99')) resolve(text);
      }),
    );
    const file = { called: "sudo", path: "/usr/bin/sudo", argv: ["sudo"], same: [] };
    const start = { pid: 2, folder: "/", files: [file], cut: false, unread: null };
    say({ call: 99, name: "decide", asks: { run: 12, question: 1, start } });
    expect(JSON.parse(await answer)).toEqual({ answer: 99, result: false });
  });

  test("one that takes the connection and never greets makes no world, in words, and is asked again", async () => {
    script = { ...HONEST, welcome: SILENCE };
    await expect(started()).rejects.toMatchObject({
      name: "WorldUnavailable",
      message: `The world agent on '${join(folder, "a.sock")}' took the connection, and did not answer in 0.5 s`,
      hint: "start it",
    });
    if (socket !== undefined && socket.readyState !== socket.CLOSED) await once(socket, "close");
    script = HONEST;
    expect((await started()).isolation.backend).toBe("agent:linux");
  });

  test("one that never greets keeps nobody longer than it wants to wait, nor a stop", async () => {
    script = { ...HONEST, welcome: SILENCE };
    await expect(backend.probe(AbortSignal.timeout(100))).rejects.toMatchObject({
      name: "WorldUnavailable",
      message: "Cannot make a world: the world agent was not ready in time",
    });
    const stopping = new AbortController();
    const cause = new WorldUnavailable("The broker is stopping", "Try again");
    const waiting = backend.start("wld_1", SPEC, stopping.signal);
    stopping.abort(cause);
    await expect(waiting).rejects.toBe(cause);
  });

  test("the worlds of a connection that breaks are lost, also one that was made in that moment", async () => {
    const world = await started();
    const second = backend.start("wld_2", SPEC, AbortSignal.timeout(5000)).then(
      ({ ended }) => ended,
      (error: unknown) => String(error),
    );
    socket?.terminate();
    expect(await world.ended).toMatch(/^the connection to its world agent was lost/);
    expect(await second).toMatch(/connection to (its|the) world agent/);
  });

  test("one that does not try out its isolation in time makes no world, in words", async () => {
    script = { ...HONEST, probe: SILENCE };
    await expect(backend.probe(AbortSignal.timeout(200))).rejects.toMatchObject({
      name: "WorldUnavailable",
      message: "Cannot make a world: the world agent was not ready in time",
    });
  });

  test("another protocol, and a server of another kind, are refused in words", async () => {
    server.removeAllListeners("upgrade");
    server.on("upgrade", (_request, opened) => {
      const body = JSON.stringify({ error: { message: "it speaks protocol 9", hint: "install 9" } });
      opened.end(`HTTP/1.1 426 Refused\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    });
    await expect(backend.probe(AbortSignal.timeout(5000))).rejects.toMatchObject({
      message: "The world agent refused: it speaks protocol 9",
      hint: "install 9",
    });
  });
});
