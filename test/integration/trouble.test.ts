import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Actor, everyActor, spawnAs } from "../support/users/users.ts";
import { type BrokerOptions, eventually, TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { processesWith } from "../support/processes/processes.ts";

async function withBroker(
  actor: Actor,
  options: BrokerOptions,
  use: (broker: TestBroker) => Promise<void>,
): Promise<void> {
  const broker = await TestBroker.start(actor, options);
  try {
    await use(broker);
  } finally {
    await broker.stop();
  }
}

const ISOLATING = {
  policies: { default: "id: default\nname: x\nmode: enforce\ncommands:\n  isolated: ['true']\n" },
};

describe.each(everyActor())("in trouble, as $kind", (actor) => {
  test("a kept process that floods its outputs harms no other command of the session", async () => {
    await withBroker(actor, {}, async (broker) => {
      const other = broker.run("sleep 1; echo unharmed");
      await broker.run({ cmd: "yes & sleep 0.1", background: "keep" });
      expect(await other).toMatchObject({ stdout: "unharmed\n", exit: 0 });
      const world = (await broker.run("true")).world_id;
      expect((await other).world_id).toBe(world);
    });
  });

  test("an isolated command that leaves a huge sparse file, or one that nobody can read, is answered", async () => {
    await withBroker(actor, ISOLATING, async (broker) => {
      const sparse = await broker.run("true; truncate -s 500G big");
      expect(sparse.fs_diff).toMatchObject({ writes: ["big"], held: true, truncated: true, tree_hash: null });
      const closed = await broker.run(
        "true; mkdir closed; echo x > closed/file; chmod 000 closed/file closed",
      );
      expect(closed).toMatchObject({ exit: 0, fs_diff: { dirs: ["closed"], held: true } });
      expect((await broker.span(closed.span_id)).outcome).toBe("ended");
    });
  });

  test("an isolated command that makes folders deeper than a path can be long is answered, and what it left is held", async () => {
    await withBroker(actor, ISOLATING, async (broker) => {
      const deep =
        "true; n=$(printf '%0200d' 0); for i in $(seq 40); do mkdir $n && cd -P $n || exit 9; done; echo x > file";
      const { exit, fs_diff: diff } = await broker.run(deep);
      expect(exit).toBe(0);
      expect(diff).toMatchObject({ held: true, truncated: true });
      expect(diff?.dirs.length).toBeGreaterThan(10);
      expect(diff?.summary).toMatch(/cannot be read/);
      expect((await broker.run("true; echo y > plain")).fs_diff).toMatchObject({ writes: ["plain"] });
    });
  });

  test("an isolated command cannot keep anything running, and says so before it runs", async () => {
    await withBroker(actor, ISOLATING, async (broker) => {
      const error = await broker.refused({ cmd: "true", background: "keep" });
      expect(error).toMatchObject({ status: 400, code: "invalid_request" });
    });
  });

  test("nor can a command whose policy gives each its own world", async () => {
    const policies = { default: "id: default\nname: x\nworld:\n  reuse_session: false\n" };
    await withBroker(actor, { policies }, async (broker) => {
      expect(await broker.refused({ cmd: "true", background: "keep" })).toMatchObject({ status: 400 });
      expect(await broker.run("true")).toMatchObject({ exit: 0 });
    });
  });

  test("a command that ends its own world is answered as killed, and told what it did", async () => {
    await withBroker(actor, {}, async (broker) => {
      const watched = broker.run({ cmd: "touch begun; sleep 60" });
      expect(await eventually(() => existsSync(join(broker.project, "begun")), 10_000)).toBe(true);
      const ran = await broker.run("kill -9 -1; sleep 5");
      expect(ran).toMatchObject({ signal: "SIGKILL", exit: 137 });
      const words = /A command killed the world's own processes.*the next command gets a new world/;
      // What its leader told before it died is all that one of them may hear.
      expect(`${ran.stderr}${(await watched).stderr}`).toMatch(words);
      const next = await broker.run("echo next");
      expect(next.stdout).toBe("next\n");
      expect(next.world_id).not.toBe(ran.world_id);
    });
  });

  test("a project that was removed and made again gets a world that sees the new one", async () => {
    await withBroker(actor, {}, async (broker) => {
      const again = join(broker.folder, "again");
      broker.write(join(again, "old"), "");
      await broker.run({ cmd: "ls", cwd: again });
      rmSync(again, { recursive: true });
      mkdirSync(again);
      broker.write(join(again, "new"), "");
      expect(await broker.run({ cmd: "ls", cwd: again })).toMatchObject({ stdout: "new\n" });
    });
  });

  test("a stop under load ends everything and leaves no process", async () => {
    const marker = `load-${randomBytes(6).toString("hex")}`;
    await withBroker(actor, {}, async (broker) => {
      let posting = true;
      const client = async (agent: string): Promise<void> => {
        while (posting) await broker.post({ cmd: `: ${marker}`, agent_id: agent }).catch(() => undefined);
      };
      const clients = ["a", "b", "c", "d"].map(client);
      await new Promise((resolve) => setTimeout(resolve, 300));
      await broker.kill("SIGTERM");
      posting = false;
      await Promise.all(clients);
      expect(await eventually(() => processesWith(marker).length === 0, 2000)).toBe(true);
      expect((await broker.cli(["trace", "verify"])).code).toBe(0);
      const starts = broker.spans().filter((span) => span.event_type === "command_start");
      const ends = new Set(
        broker
          .spans()
          .filter((span) => span.outcome !== null)
          .map((span) => span.span_id),
      );
      expect(starts.filter((span) => !ends.has(span.span_id))).toEqual([]);
    });
  });

  test("a stop answers the caller of a running command", async () => {
    await withBroker(actor, {}, async (broker) => {
      const waiting = broker.run("sleep 600");
      await eventually(() => broker.spans().some((span) => span.cmd === "sleep 600"), 5000);
      await broker.kill("SIGTERM");
      expect(await waiting).toMatchObject({ signal: "SIGKILL" });
    });
  });

  test("a trace that was cut is still found out after the next start", async () => {
    await withBroker(actor, {}, async (broker) => {
      for (const cmd of ["echo one", "echo two"]) await broker.run(cmd);
      await broker.kill("SIGTERM");
      const path = join(broker.home, "trace/trace.jsonl");
      writeFileSync(path, readFileSync(path, "utf8").split("\n").slice(0, -2).join("\n").concat("\n"));
      expect((await broker.cli(["trace", "verify"])).code).toBe(1);
      const next = await broker.again();
      await next.run("echo three");
      await next.kill("SIGTERM");
      const verified = await broker.cli(["trace", "verify"]);
      expect(verified.code).toBe(1);
      expect(verified.stdout).toMatch(/cut/);
    });
  });

  test("commands that wait behind others in a pipeline end with their client", async () => {
    const marker = `pipeline-${randomBytes(6).toString("hex")}`;
    await withBroker(actor, {}, async (broker) => {
      const socket = connect(join(broker.home, "sock/agent.sock"));
      for (const seconds of [600, 601]) {
        const body = JSON.stringify({
          agent_id: "test",
          cwd: broker.project,
          cmd: `: ${marker}; sleep ${seconds}`,
        });
        socket.write(`POST /v1/execute HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
      }
      expect(await eventually(() => processesWith(marker).length >= 2, 5000)).toBe(true);
      socket.destroy();
      expect(await eventually(() => processesWith(marker).length === 0, 2000)).toBe(true);
    });
  });

  test("Ctrl-C on exec ends the command and gives 130", async () => {
    const marker = `interrupt-${randomBytes(6).toString("hex")}`;
    await withBroker(actor, {}, async (broker) => {
      const { node, launcher } = await installationFor(actor);
      const child = spawnAs(actor, [node, launcher, "exec", "--", `: ${marker}; sleep 600`], {
        cwd: broker.project,
        env: { SUBSTRATE_HOME: broker.home },
        stdio: ["ignore", "pipe", "pipe"],
      });
      const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
      expect(await eventually(() => processesWith(marker).length >= 2, 5000)).toBe(true);
      child.kill("SIGINT");
      expect(await ended).toBe(130);
      expect(await eventually(() => processesWith(marker).length === 0, 2000)).toBe(true);
    });
  });

  test("ids and paths of any kind are refused as what they are", async () => {
    await withBroker(actor, {}, async (broker) => {
      expect(await broker.call("GET", "/v1/trace/%ff")).toMatchObject({ status: 400 });
      expect(await broker.call("GET", `/v1/trace/${"x".repeat(5000)}`)).toMatchObject({ status: 404 });
      expect(await broker.refused({ cmd: "true", session_id: "s".repeat(100) })).toMatchObject({
        status: 404,
      });
    });
  });

  test("a folder with another use is not taken as SUBSTRATE_HOME", async () => {
    await withBroker(actor, {}, async (broker) => {
      broker.write(join(broker.folder, "busy/file"), "");
      const started = await broker.cli(["broker", "start"], {
        env: { SUBSTRATE_HOME: join(broker.folder, "busy") },
      });
      expect(started.code).toBe(125);
      expect(started.stderr).toMatch(/other files/);
    });
  });
});
