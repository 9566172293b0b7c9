/** `substrate hook` with a broker that is silent, dies or talks nonsense, and when it is ended itself: the tool is blocked. */
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { installationFor } from "../support/broker/installation.ts";
import { eventOf } from "../support/front/hook-cases.ts";
import { actors, type Ended, runAs, spawnAs } from "../support/users/users.ts";

const EVENT = JSON.stringify(eventOf({ tool: "Bash", input: { command: "true" } }, "/"));

function http(document: string): string {
  return `HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(document)}\r\n\r\n${document}`;
}

const DECISION = { verdict: "allow", mode: "enforce", rule: null };

describe.each(actors().slice(0, 1))("the hook of both fronts", (actor) => {
  let home: string;
  let server: Server | undefined;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "substrate-hook-"));
    mkdirSync(join(home, "sock"));
  });
  afterEach(() => {
    server?.close();
    server = undefined;
    rmSync(home, { recursive: true, force: true });
  });

  async function fronts(): Promise<readonly (readonly string[])[]> {
    const { root, node, launcher } = await installationFor(actor);
    return [[join(root, ".build/substrate")], [node, launcher]];
  }

  async function answers(serve: (socket: Socket) => void, stdin = EVENT): Promise<readonly Ended[]> {
    const open = new Set<Socket>();
    server = createServer((socket) => {
      open.add(socket.on("error", () => undefined));
      serve(socket);
    }).listen(join(home, "sock/agent.sock"));
    await once(server, "listening");
    const ended = await Promise.all(
      (await fronts()).map((front) =>
        runAs(actor, [...front, "hook", "claude-code"], {
          cwd: "/",
          env: { SUBSTRATE_HOME: home },
          stdin,
        }),
      ),
    );
    for (const socket of open) socket.destroy();
    return ended;
  }

  const blocked = { code: 2, stdout: "", stderr: expect.stringMatching(/^substrate: .*\. Nothing ran\n$/) };

  test("have their stand-in believed otherwise", async () => {
    for (const ended of await answers((socket) =>
      socket.once("data", () => socket.write(http(JSON.stringify({ decision: DECISION, lines: ["allow"] })))),
    ))
      expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining("allow") });
  });

  test.each<{ what: string; serve: (socket: Socket) => void }>([
    { what: "leaves at once", serve: (socket) => socket.destroy() },
    { what: "leaves after the request", serve: (socket) => socket.once("data", () => socket.destroy()) },
    {
      what: "leaves within its answer",
      serve: (socket) => socket.once("data", () => socket.end(http("{".padEnd(99)).slice(0, -50))),
    },
    { what: "answers no JSON", serve: (socket) => socket.once("data", () => socket.write(http("yes"))) },
    { what: "answers a list", serve: (socket) => socket.once("data", () => socket.write(http("[]"))) },
    {
      what: "answers without a verdict",
      serve: (socket) => socket.once("data", () => socket.write(http('{"lines": ["allow"]}'))),
    },
    {
      what: "answers a verdict that is new",
      serve: (socket) =>
        socket.once("data", () =>
          socket.write(
            http(JSON.stringify({ decision: { ...DECISION, verdict: "later" }, lines: ["later"] })),
          ),
        ),
    },
    { what: "speaks no HTTP", serve: (socket) => socket.once("data", () => socket.write("hello\r\n\r\n")) },
  ])("block the tool when the broker $what", async ({ serve }) => {
    for (const ended of await answers(serve)) expect(ended).toMatchObject(blocked);
  });

  test("block the tool when the broker hangs for ten seconds", async () => {
    const began = performance.now();
    for (const ended of await answers(() => undefined)) expect(ended).toMatchObject(blocked);
    expect(performance.now() - began).toBeLessThan(19_000);
  });

  test.each<{ what: string; serve: (socket: Socket) => void }>([
    { what: "leaves after the request", serve: (socket) => socket.once("data", () => socket.destroy()) },
    { what: "answers a list", serve: (socket) => socket.once("data", () => socket.write(http("[]"))) },
    { what: "hangs", serve: () => undefined },
  ])("stop no prompt when the broker $what", async ({ serve }) => {
    const stdin = JSON.stringify({ hook_event_name: "UserPromptSubmit", cwd: "/", prompt: "Go" });
    const said = expect.stringMatching(/^substrate: .*\. The event is not recorded\n$/);
    for (const ended of await answers(serve, stdin))
      expect(ended).toMatchObject({ code: 0, stdout: "", stderr: said });
  });

  test.each([
    ["gemini", "run_shell_command"],
    ["cursor", "Shell"],
    ["cursor", "beforeShellExecution"],
    ["copilot", "Bash"],
  ] as const)("block the tool when no broker runs: %s, %s", async (agent, tool) => {
    for (const front of await fronts()) {
      const ended = await runAs(actor, [...front, "hook", agent], {
        env: { SUBSTRATE_HOME: home },
        stdin: JSON.stringify(eventOf({ agent, tool, input: { command: "true" } }, "/")),
      });
      // Copilot's model is shown an answer alone.
      const stdout = agent === "copilot" ? expect.stringMatching(/"deny".*No broker answers on/) : "";
      const stderr = expect.stringContaining("No broker answers on") as unknown;
      expect(ended).toMatchObject({ ...blocked, stdout, stderr });
    }
  });

  test.each(["SIGHUP", "SIGTERM", "SIGINT", "SIGQUIT"] as const)(
    "block the tool when %s ends them within the event",
    async (signal) => {
      for (const front of await fronts()) {
        const child = spawnAs(actor, [...front, "hook", "codex"], {
          env: { SUBSTRATE_HOME: home },
          stdio: ["pipe", "pipe", "ignore"],
        });
        child.stdin?.on("error", () => undefined).write(EVENT.slice(0, 50));
        // Both fronts catch SIGHUP first of all they do; what SIGTERM does in Node before that, Node decides.
        await expect.poll(() => catches(child.pid, 1), { timeout: 10_000, interval: 10 }).toBe(true);
        await sleep(200);
        child.kill(signal);
        expect(await once(child, "close")).toEqual([2, null]);
      }
    },
  );

  test("block the tool when the event never ends", async () => {
    const [native = []] = await fronts();
    const child = spawnAs(actor, [...native, "hook", "codex"], {
      env: { SUBSTRATE_HOME: home },
      stdio: ["pipe", "pipe", "ignore"],
    });
    child.stdin?.write("{");
    const began = performance.now();
    expect(await once(child, "close")).toEqual([2, null]);
    expect(performance.now() - began).toBeLessThan(25_000);
  });
});

/** Whether a process catches a signal, by its number. */
function catches(pid: number | undefined, signal: number): boolean {
  const [, mask = "0"] = /^SigCgt:\s+([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return ((BigInt(`0x${mask}`) >> BigInt(signal - 1)) & 1n) === 1n;
}
