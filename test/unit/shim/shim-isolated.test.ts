/** What a shim sends for a command that the broker isolates, and what becomes of the descriptors that it was started with. */
import { mkdtempSync, mkdirSync, rmSync, symlinkSync, writeFileSync, chmodSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { spawn } from "node:child_process";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { ended, type FrontEnded } from "../../support/front/front-place.ts";
import { type Call, StreamServer } from "../../support/front/stream-server.ts";

const SHIM = fileURLToPath(new URL("../../../.build/substrate-shim", import.meta.url));

const folder = mkdtempSync(join(tmpdir(), "substrate-shim-"));
const home = join(folder, "home");
const bin = join(folder, "bin");
const path = `${join(home, "shims")}:${bin}:/usr/bin`;
for (const each of ["sock/agents", "shims"]) mkdirSync(join(home, each), { recursive: true });
mkdirSync(bin);
writeFileSync(join(bin, "tool"), "#!/bin/sh\necho on the host\n");
chmodSync(join(bin, "tool"), 0o755);
symlinkSync(SHIM, join(home, "shims/tool"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let server: StreamServer | undefined;
afterEach(() => {
  const [error] = server?.errors ?? [];
  server?.close();
  server = undefined;
  if (error !== undefined) throw error;
});

type Serve = (call: Call) => Promise<void> | void;

/** A broker that isolates every command; serves the stream so. */
async function isolates(stream: Serve): Promise<readonly Call[]> {
  server = await StreamServer.listen(join(home, "sock/agent.sock"), async (call) => {
    if (call.head.startsWith("GET")) return stream(call);
    await call.posted();
    call.answer(200, '{"verdict":"isolate"}');
  });
  return server.calls;
}

/** A shell's script, with the shim on PATH. */
function shell(script: string, env: Readonly<Record<string, string>> = {}): Promise<FrontEnded> {
  const child = spawn("/bin/sh", ["-c", script], {
    cwd: folder,
    env: { HOME: folder, PATH: path, SUBSTRATE_HOME: home, ...env },
  });
  child.stdin.on("error", () => undefined).end("typed");
  return ended(child);
}

describe("a command that is isolated", () => {
  test("is sent after the report as exec sends it: words, folder, variables without the shims, and its parent", async () => {
    const calls = await isolates(async (call) => {
      await call.start();
      await call.until(() => call.texts().length > 0);
      expect(call.input().toString()).toBe("typed");
      call.output("out\n");
      call.output("err\n", 2);
      call.exit(3, { lines: ["Changes are held"] });
    });
    const env = {
      SUBSTRATE_AGENT_ID: "ann",
      SUBSTRATE_PROFILE: "narrow",
      SUBSTRATE_PARENT_SPAN: "spn_outer",
      COLOUR: "red",
      TERM: "vt100",
    };
    const { code, stdout, stderr } = await shell("LD_PRELOAD=/run/substrate-preload.so tool '' 'a b'", env);
    expect([code, stdout.toString()]).toEqual([3, "out\n"]);
    expect(stderr).toBe("err\nsubstrate: Changes are held\n");
    const [report, stream] = calls;
    const reported = await report?.posted();
    const sent = await stream?.request();
    const { argv, cwd, parent_span: parent, agent_id: agent, profile } = reported ?? {};
    expect(sent).toEqual({
      ...{ argv, cwd, agent_id: agent, profile, parent_span: parent },
      approval_wait_ms: 600_000,
      no_time_limit: true,
      stdin: true,
      caller_env: { HOME: folder, PATH: `${bin}:/usr/bin`, COLOUR: "red", TERM: "vt100", PWD: folder },
    });
    expect([argv, agent, profile, parent]).toEqual([["tool", "", "a b"], "ann", "narrow", "spn_outer"]);
    expect(calls).toHaveLength(2);
  });

  test("starts with the null device where its descriptors are closed, and its outputs go to nobody else", async () => {
    await isolates(async (call) => {
      expect(await call.start()).toMatchObject({ stdin: false });
      call.output("lost");
      call.output("lost", 2);
      call.exit(0);
    });
    expect(await shell("exec tool <&- >&- 2>&-")).toMatchObject({ code: 0, stderr: "" });
    await shell("tool <&-; echo after $?").then(({ stdout }) =>
      expect(stdout.toString()).toBe("lostafter 0\n"),
    );
  });

  test("does not start on the host where the broker takes no stream, ends before, or refuses", async () => {
    const cases: readonly (readonly [Serve, number, string])[] = [
      [(call) => call.answer(404, '{"error":{}}'), 126, "the broker did not take the command"],
      [(call) => void call.socket.destroy(), 125, "The broker ended before it replied"],
      [
        (call) => call.answer(403, '{"error":{"code":"policy_denied","message":"No","hint":"Ask"}}'),
        126,
        "substrate: No\n  Ask\n",
      ],
    ];
    for (const [serve, code, words] of cases) {
      await isolates(serve);
      const ran = await shell("tool");
      expect([ran.code, ran.stdout.toString()], words).toEqual([code, ""]);
      expect(ran.stderr).toContain(words);
      server?.close();
    }
  });

  test("has all of its words and variables or does not run, and other replies without a span start nothing", async () => {
    const calls = await isolates(async (call) => {
      await call.start();
      call.exit(0);
    });
    const long = "x".repeat(100_000);
    expect((await shell(`tool ${"$LONG ".repeat(10)}`, { LONG: long })).code).toBe(0);
    expect((await calls[1]?.request())?.["argv"]).toEqual(["tool", ...Array<string>(10).fill(long)]);
    for (const words of ["$(seq 70000)", "\"$(printf '\\377')\""]) {
      const ran = await shell(`tool ${words}`);
      expect([ran.code, ran.stdout.toString()]).toEqual([126, ""]);
      expect(ran.stderr).toContain("cannot be sent to the broker");
    }
    expect(calls.filter(({ head }) => head.startsWith("GET"))).toHaveLength(1);
    server?.close();
    server = await StreamServer.listen(join(home, "sock/agent.sock"), async (call) => {
      await call.posted();
      call.answer(200, '{"verdict":"allow"}');
    });
    expect(await shell("tool")).toMatchObject({ code: 126, stderr: expect.stringContaining("cannot read") });
  });
});
