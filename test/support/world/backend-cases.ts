/** What every backend must do, whatever it is made of: one list of cases, run against each. */
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { HealthReply } from "../../../schemas/generated/types.ts";
import { validateHealthReply } from "../../../schemas/generated/validators.js";
import { eventually, TestBroker } from "../broker/broker.ts";
import { has, needs } from "../run/needs.ts";
import { skip } from "../run/skips.ts";
import { HERE, type Place } from "../processes/place.ts";
import type { Actor } from "../users/users.ts";
import { ScopeAsker } from "../broker/scopes.ts";
import { liveCases } from "./live-cases.ts";

export type BackendUnderTest = {
  /** SUBSTRATE_BACKEND's word, for titles. */
  readonly word: string;
  /** What the vector must say. */
  readonly backend: RegExp;
  readonly environment: Readonly<Record<string, string>>;
  /** A broker that other cases use too, with this policy from now on; absent: one for these cases. */
  readonly shared?: { broker: TestBroker; readonly setPolicy: (text: string) => void };
  /** Waits for what makes worlds; absent: it is there with the broker. */
  readonly ready?: (broker: TestBroker) => Promise<unknown>;
  /** The machine that runs the worlds; absent: the test's own. */
  readonly place?: () => Place;
  /** Whether its worlds have a network beyond their own loopback. */
  readonly hasNetwork: boolean;
  /** Whether held changes can be shown and applied. */
  readonly holds: boolean;
  /** What is left of worlds outside of them, by name; empty when there is nothing but processes. */
  readonly leftovers: () => Promise<readonly string[]>;
};

const policyWith = (port: number): string => `
id: default
name: Backends
mode: enforce
fs:
  deny_read: ["$PROJECT/secret"]
  deny_write: ["$PROJECT/frozen"]
commands:
  denied: ["forbidden *"]
  isolated: ["touch held", "mkdir held-folder"]
net:
  allowed: ["host.internal:${port}"]
world:
  enable_preload: true
`;

/** What the vector says of the network. */
function netOf({ hasNetwork }: Pick<BackendUnderTest, "hasNetwork">): unknown {
  if (!hasNetwork) return expect.stringMatching(/^degraded: no host can be reached/);
  return has("nft") ? "on" : expect.stringMatching(/^degraded: nft is not installed/);
}

export function backendCases(actor: Actor, subject: BackendUnderTest): void {
  const place = (): Place => subject.place?.() ?? HERE;
  const processesWith = (marker: string): Promise<readonly number[]> => place().processesWith(marker);
  const isGone = async (marker: string): Promise<boolean> => (await processesWith(marker)).length === 0;
  describe(`the backend ${subject.word}, as ${actor.kind}`, () => {
    let broker: TestBroker;
    const server = new CountingServer();
    beforeAll(async () => {
      await server.listen();
      broker = await brokerOf(actor, subject, policyWith(server.port));
      broker.write(join(broker.project, ".git/HEAD"), "ref: refs/heads/main\n");
      broker.write(join(broker.project, "secret"), "secret words");
      broker.write(join(broker.project, "frozen"), "frozen");
      broker.write(join(broker.folder, "outside"), "outside");
    });
    afterAll(async () => {
      server.close();
      if (subject.shared === undefined) await broker.stop();
      else subject.shared.broker = broker;
      expect(await subject.leftovers()).toEqual([]);
    });

    test("programs report of themselves", async () => {
      const { span_id: id, stderr } = await broker.run(": >reported; rm reported");
      const { telemetry } = await broker.span(id);
      expect(telemetry).toMatchObject({ state: "on", reason: null, dropped: 0 });
      expect(telemetry?.written).toEqual([join(broker.project, "reported")]);
      expect(telemetry?.unlinked).toEqual([join(broker.project, "reported")]);
      expect(stderr).toBe("");
    });

    test("health and every reply name the backend, and say 'on' for what a world needs", async () => {
      const { status, document } = await broker.call("GET", "/v1/health");
      expect(status, JSON.stringify(document)).toBe(200);
      expect(validateHealthReply(document), JSON.stringify(validateHealthReply.errors)).toBe(true);
      const health = document as HealthReply;
      expect(health.backend).toMatch(subject.backend);
      const { isolation } = await broker.run("true");
      expect(isolation).toMatchObject({
        backend: health.backend,
        // There the kernel makes no overlay over the host's trees: SUBSTRATE_HOME is covered, and the vector says so.
        mount:
          health.backend.startsWith("container:") && actor.uid !== 0
            ? expect.stringMatching(/^degraded: 1 denied names outside of the project/)
            : "on",
        pid: "on",
        net: netOf(subject),
        ipc: "on",
        uts: "on",
        seccomp: "on",
        no_new_privs: "on",
        capabilities: "none",
      });
      expect(isolation.user).toMatch(actor.uid === 0 ? /^off: not needed/ : /^on$/);
    });

    test("outputs, exit codes and standard input are the command's own", async () => {
      expect(await broker.run("echo out; echo err >&2; exit 3")).toMatchObject({
        stdout: "out\n",
        stderr: "err\n",
        exit: 3,
      });
      const input = randomBytes(300_000).toString("base64");
      const echoed = await broker.run({ cmd: "cat", stdin_b64: input });
      expect(echoed.stdout_b64 === input).toBe(true);
      expect(await broker.run({ argv: ["no-such-program"] })).toMatchObject({ exit: 127 });
      expect(await broker.run("kill -9 $$")).toMatchObject({ signal: "SIGKILL", exit: 137 });
    });

    test("arguments arrive as they were, whatever a shell would make of them", async () => {
      const words = [
        "",
        "a  b",
        "'",
        '"',
        "$HOME `id` $(id)",
        "\\",
        "*",
        "-n",
        "line\nline",
        "\u00e9\u{1f600}",
        "\t;&|<>",
      ];
      const { stdout } = await broker.run({ argv: ["printf", "[%s]", ...words] });
      expect(stdout).toBe(words.map((word) => `[${word}]`).join(""));
      const env = { $bytes: "AAAA", QUOTED: words.join("|") };
      expect(await broker.run({ cmd: 'printf %s "$QUOTED"', env })).toMatchObject({
        stdout: words.join("|"),
      });
    });

    liveCases(() => broker);

    test("a program that a command starts meets the same rules, and others start", async () => {
      const script = (word: string): string => `#!/bin/sh\nexec ./${word} now\n`;
      for (const [name, text] of [
        ["forbidden", "#!/bin/sh\n: >ran-forbidden\n"],
        ["harmless", "#!/bin/sh\n: >ran-harmless\n"],
        ["tries", script("forbidden")],
        ["does", script("harmless")],
      ] as const) {
        broker.write(join(broker.project, name), text);
        chmodSync(join(broker.project, name), 0o755);
      }
      const refused = await broker.run("./tries");
      expect(refused.exit).toBe(126);
      expect(refused.notices).toMatchObject([{ kind: "denied", program: "forbidden" }]);
      expect(existsSync(join(broker.project, "ran-forbidden"))).toBe(false);
      expect(await broker.run("./does")).toMatchObject({ exit: 0, notices: [] });
      expect(existsSync(join(broker.project, "ran-harmless"))).toBe(true);
    });

    test("the token of its scopes is a command's to read on a descriptor, beside any input, and no other command's", async () => {
      const scope_token = await new ScopeAsker(broker).token(["fs.read:$PROJECT"]);
      const cmd =
        "cat <&$SUBSTRATE_SCOPE_FD; echo; cat; (echo x >&$SUBSTRATE_SCOPE_FD) 2>/dev/null || echo sealed";
      expect(await broker.run({ cmd, scope_token })).toMatchObject({ stdout: `${scope_token}\nsealed\n` });
      const stdin_b64 = Buffer.from("input\n").toString("base64");
      const long = `: ${"x".repeat(100_000)}; ${cmd}`;
      const both = await broker.run({ cmd: long, scope_token, stdin_b64 });
      expect(both.stdout).toBe(`${scope_token}\ninput\nsealed\n`);
      const other = await broker.run("echo ${SUBSTRATE_SCOPE_FD-none}; cat <&8");
      expect(other).toMatchObject({ stdout: "none\n" });
    });

    test("a token for the network opens it, or its command does not run and is told why; it is not spent then", async () => {
      const scope_token = await new ScopeAsker(broker).granted(["net:a.example:443"]);
      const post = () => broker.post({ cmd: "true", scope_token });
      const worldsHaveNetworks = subject.hasNetwork;
      const none = { status: 503, document: { error: { code: "isolation_unavailable" } } };
      expect(await post()).toMatchObject(worldsHaveNetworks ? { status: 200 } : none);
      const spent = { status: 403, document: { error: { code: "scope_denied" } } };
      expect(await post()).toMatchObject(worldsHaveNetworks ? spent : none);
    });

    test("a command is the caller, and so are the files that it makes", async () => {
      const { stdout } = await broker.run("id -u; id -g; touch made; stat -c '%u %g' made");
      expect(stdout).toBe(`${actor.uid}\n${actor.gid}\n${actor.uid} ${actor.gid}\n`);
      const made = statSync(join(broker.project, "made"));
      expect([made.uid, made.gid]).toEqual([actor.uid, actor.gid]);
    });

    test("it has no capability in any set, no way to more, and a filter", async () => {
      const { stdout } = await broker.run("grep -E '^(Cap|NoNewPrivs|Seccomp):?' /proc/self/status");
      const lines = stdout.split("\n").filter((line) => line.startsWith("Cap"));
      expect(lines).toHaveLength(5);
      for (const line of lines) expect(line).toMatch(/:\s0{16}$/);
      expect(stdout).toMatch(/^NoNewPrivs:\s1$/m);
      expect(stdout).toMatch(/^Seccomp:\s2$/m);
      expect((await broker.run("unshare -U true; unshare -m true; mount -t tmpfs x /mnt")).exit).not.toBe(0);
    });

    test("the host is read-only, the project is not, and what is denied in it stays denied", async () => {
      await broker.run("echo inside > inside; echo x > ../outside; echo x > frozen; true");
      expect(readFileSync(join(broker.project, "inside"), "utf8")).toBe("inside\n");
      expect(readFileSync(join(broker.folder, "outside"), "utf8")).toBe("outside");
      expect(readFileSync(join(broker.project, "frozen"), "utf8")).toBe("frozen");
      expect(await broker.run("cat secret")).toMatchObject({ stdout: "" });
      const marker = `/etc/substrate-${randomBytes(6).toString("hex")}`;
      await broker.run(`touch ${marker} /usr${marker}; true`);
      expect([existsSync(marker), existsSync(`/usr${marker}`)]).toEqual([false, false]);
    });

    test("nothing of the way in can be seen from inside: no second tree, no broker's folder", async () => {
      const { stdout } = await broker.run(`ls -d /host /oldroot /channel; ls -A ${broker.home}; true`);
      expect(stdout).toBe("");
    });

    test("no process of the host can be seen, and PID 1 can be neither inspected nor ended", async () => {
      const { stdout: pids } = await broker.run("echo /proc/[0-9]* | wc -w");
      expect(Number(pids)).toBeLessThan(12);
      const { stdout } = await broker.run(
        "cat /proc/1/environ /proc/1/maps; readlink /proc/1/fd/0 /proc/1/root; ls /proc/1/root/; kill -9 1; true",
      );
      expect(stdout.trim()).toBe("");
      expect(await broker.run("echo alive")).toMatchObject({ stdout: "alive\n" });
    });

    test("there is no network but the world's own loopback", async () => {
      const { stdout } = await broker.run(
        "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; cat /proc/net/route",
      );
      expect(stdout.split("\n")[0]).toBe("lo");
      expect(stdout.split("\n").filter((line) => line.startsWith("eth"))).toEqual([]);
    });

    test("an allowed name is reached and counted, another port and a denied name are not", async () => {
      if (!subject.hasNetwork)
        return skip(`the network of ${subject.word}`, "its worlds have only their loopback");
      needs("python3", "nft");
      const ask = `import socket,sys
s=socket.create_connection(("host.internal",int(sys.argv[1])),5)
s.sendall(b"asked")
s.shutdown(socket.SHUT_WR)
print(s.recv(100).decode(),end="")`;
      const { port } = server;
      const reached = await broker.run({ argv: ["python3", "-c", ask, `${port}`] });
      expect(reached).toMatchObject({ stdout: "served\n", exit: 0 });
      expect(reached.scopes_used).toContain(`net:host.internal:${port}`);
      expect(reached.usage).toMatchObject({ egress_bytes: 5, ingress_bytes: 7 });
      expect(server.heard).toEqual(["asked"]);
      const other = await broker.run({ argv: ["python3", "-c", ask, "9"] });
      expect(other).toMatchObject({ exit: 1, stderr: expect.stringContaining("Connection refused") });
      const name = await broker.run("getent hosts denied.example; echo $?");
      expect(name.stdout).toBe("2\n");
      expect(name.notices).toMatchObject([{ kind: "network" }]);
      expect((await broker.run("getent hosts host.internal")).stdout).toMatch(/^198\.1[89]\./);
      expect(server.heard).toEqual(["asked"]);
    });

    test("a command that ignores SIGTERM is gone when its time is over, with all it started", async () => {
      const marker = `stubborn-${randomBytes(6).toString("hex")}`;
      const reply = await broker.run({
        cmd: `trap '' TERM; (setsid sh -c ': ${marker}; sleep 600' &); : ${marker}; sleep 600 & wait; sleep 600`,
        timeout_ms: 300,
      });
      expect(reply).toMatchObject({ timed_out: true, signal: "SIGKILL" });
      expect(await processesWith(marker)).toEqual([]);
    });

    test("what a command leaves goes on with background: keep, and ends without", async () => {
      const marker = `left-${randomBytes(6).toString("hex")}`;
      const daemon = `(setsid sh -c ': ${marker}; sleep 600' </dev/null >/dev/null 2>&1 &); sleep 0.2; echo done`;
      expect(await broker.run(daemon)).toMatchObject({ stdout: "done\n" });
      expect(await processesWith(marker)).toEqual([]);
      expect(await broker.run({ cmd: daemon, background: "keep" })).toMatchObject({ stdout: "done\n" });
      expect(await isGone(marker)).toBe(false);
      expect((await broker.cli(["world", "status", "--json"])).stdout).toContain(marker);
    });

    test("an isolated command's changes are held and listed, and the project stays as it was", async () => {
      broker.write(join(broker.project, "old"), "old");
      const reply = await broker.run("touch held; mkdir held-folder; echo new > old; rm inside; true");
      expect(reply.decision.verdict).toBe("isolate");
      expect(reply.isolation.overlay).toBe("on");
      expect(reply.fs_diff).toMatchObject({
        writes: ["held"],
        mods: ["old"],
        deletes: ["inside"],
        dirs: ["held-folder"],
        held: true,
      });
      expect(existsSync(join(broker.project, "held"))).toBe(false);
      expect(readFileSync(join(broker.project, "old"), "utf8")).toBe("old");
    });

    test("held changes are shown, applied, taken back and discarded", async () => {
      const { span_id: span } = await broker.run("touch held; echo new > old");
      const of = async (action: string): Promise<unknown> =>
        (
          await broker.operator(
            action === "diff" ? "GET" : "POST",
            `/v1/${action}/${span}`,
            action === "diff" ? undefined : {},
          )
        ).document;
      if (!subject.holds)
        return expect(await of("diff")).toMatchObject({ error: { code: "isolation_unavailable" } });
      expect(await of("diff")).toMatchObject({
        changes: [
          { path: "held", kind: "write" },
          { path: "old", kind: "mod", added: 1, removed: 1 },
        ],
        patch: expect.stringContaining("+new"),
      });
      expect(await of("apply")).toMatchObject({ done: ["held", "old"], left: [] });
      expect(readFileSync(join(broker.project, "old"), "utf8")).toBe("new\n");
      expect(await of("undo")).toMatchObject({ done: ["held", "old"] });
      expect(readFileSync(join(broker.project, "old"), "utf8")).toBe("old");
      broker.write(join(broker.project, "old"), "a person's");
      expect(await of("apply")).toMatchObject({ error: { code: "apply_conflict" } });
      expect(await of("discard")).toMatchObject({ done: ["held", "old"] });
      expect(readFileSync(join(broker.project, "old"), "utf8")).toBe("a person's");
    });

    test("a command whose world is lost is told so, and the next one gets another world", async () => {
      const marker = `lost-${randomBytes(6).toString("hex")}`;
      const running = broker.run({ cmd: `: ${marker}; sleep 600`, agent_id: "loser" });
      expect(await eventually(async () => !(await isGone(marker)), 20_000 * place().patience)).toBe(true);
      await place().killWorldOf(marker);
      const lost = await running;
      expect(lost).toMatchObject({ signal: "SIGKILL" });
      expect(lost.stderr).toContain("the world ended");
      expect(await eventually(() => isGone(marker), 2000 * place().patience)).toBe(true);
      const next = await broker.run({ cmd: "echo again", agent_id: "loser" });
      expect(next.stdout).toBe("again\n");
      expect(next.world_id).not.toBe(lost.world_id);
    });

    test("after kill -9 of the broker nothing of its worlds is left", async () => {
      const marker = `orphan-${randomBytes(6).toString("hex")}`;
      const waiting = broker.post({ cmd: `: ${marker}; sleep 600` }).catch(() => "cut");
      expect(await eventually(async () => !(await isGone(marker)), 20_000 * place().patience)).toBe(true);
      await broker.kill("SIGKILL");
      expect(await waiting).toBe("cut");
      expect(await eventually(() => isGone(marker), 2000 * place().patience)).toBe(true);
      expect(await eventually(async () => (await subject.leftovers()).length === 0, 10_000)).toBe(true);
      broker = await broker.again();
      await subject.ready?.(broker);
      expect(await broker.run("echo back")).toMatchObject({ stdout: "back\n" });
      const folder = join(broker.home, "run/containers");
      const folders = existsSync(folder) ? readdirSync(folder) : [];
      expect(folders.filter((name) => !name.startsWith("root"))).toEqual([]);
    });
  });
}

async function brokerOf(
  actor: Actor,
  { shared, environment }: BackendUnderTest,
  policy: string,
): Promise<TestBroker> {
  if (shared === undefined)
    return await TestBroker.start(actor, { policies: { default: policy }, environment });
  shared.setPolicy(policy);
  return shared.broker;
}

/** Answers after its client's end, and keeps what it heard. */
class CountingServer {
  readonly heard: string[] = [];
  readonly #server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("data", (bytes: Buffer) => this.heard.push(bytes.toString()));
    socket.on("end", () => socket.end("served\n"));
    socket.on("error", () => {});
  });

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  close(): void {
    this.#server.close();
  }
}
