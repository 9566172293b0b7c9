import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { BrokerFile } from "../../schemas/generated/types.ts";
import { actors } from "../support/users/users.ts";
import { eventually, settings, TestBroker } from "../support/broker/broker.ts";
import { processesWith } from "../support/processes/processes.ts";
import { removeTrees } from "../support/users/folders.ts";

describe.each(actors())("a broker's life, as $kind", (actor) => {
  test("its sockets, its home and its trace are its owner's alone", async () => {
    const broker = await TestBroker.start(actor);
    try {
      await broker.run("true");
      const mode = (path: string): string => (statSync(join(broker.home, path)).mode & 0o777).toString(8);
      expect([
        mode("."),
        mode("sock/agent.sock"),
        mode("sock/control.sock"),
        mode("trace/trace.jsonl"),
        mode("log/broker.log"),
      ]).toEqual(["700", "600", "600", "600", "600"]);
      expect(readFileSync(join(broker.home, "policies/default.yaml"), "utf8")).toContain("id: default");
    } finally {
      await broker.stop();
    }
  });

  test("after kill -9 its worlds go, and the next broker closes what was open as lost", async () => {
    const marker = `orphan-${randomBytes(6).toString("hex")}`;
    const broker = await TestBroker.start(actor);
    try {
      const waiting = broker
        .post({ cmd: `(setsid sh -c ': ${marker}; sleep 600' &); : ${marker}; sleep 600` })
        .catch(() => "cut");
      expect(await eventually(() => processesWith(marker).length >= 2, 20_000)).toBe(true);
      await broker.kill("SIGKILL");
      expect(await waiting).toBe("cut");
      expect(await eventually(() => processesWith(marker).length === 0, 10_000)).toBe(true);
      const next = await broker.again();
      try {
        expect(await next.run("echo again")).toMatchObject({ stdout: "again\n" });
        const lost = next.spans().find((span) => span.outcome === "lost");
        expect(lost).toMatchObject({ event_type: "command_complete", replayable: false });
        expect(lost?.cmd).toContain(marker);
        expect((await next.cli(["trace", "verify"])).code).toBe(0);
      } finally {
        await next.kill("SIGTERM");
      }
    } finally {
      await broker.stop();
    }
  });

  test("'broker stop' returns though the broker's parent never reaps it, as process 1 of many containers", async () => {
    const broker = await TestBroker.start(actor, { wrap: () => ["sh", "-c", '"$@" & exec sleep 300', "sh"] });
    try {
      const { pid } = JSON.parse(readFileSync(join(broker.home, "run/broker.json"), "utf8")) as BrokerFile;
      expect(await broker.cli(["broker", "stop"])).toMatchObject({
        code: 0,
        stdout: "The broker has stopped\n",
      });
      expect(readFileSync(`/proc/${pid}/stat`, "utf8")).toMatch(/\) Z /);
    } finally {
      await broker.stop();
    }
  });

  test("when its home is removed, it ends itself and its worlds, and a broker in the new home keeps its sockets", async () => {
    const marker = `homeless-${randomBytes(6).toString("hex")}`;
    const broker = await TestBroker.start(actor);
    try {
      const cut = broker.post({ cmd: `: ${marker}; sleep 600` }).catch(() => "cut");
      expect(await eventually(() => processesWith(marker).length > 0, 20_000)).toBe(true);
      const gone = new Promise<number | null>((resolve) => broker.process.once("exit", resolve));
      // The kernel closes the work folder of an overlay, to its owner too.
      removeTrees(broker.home);
      const next = await broker.again();
      try {
        expect(await gone).toBe(125);
        expect(await cut).not.toMatchObject({ status: 200 });
        expect(await eventually(() => processesWith(marker).length === 0, 10_000)).toBe(true);
        expect((await next.cli(["broker", "status"])).code).toBe(0);
        expect((await next.cli(["broker", "stop"])).code).toBe(0);
      } finally {
        await next.kill("SIGTERM");
      }
    } finally {
      await broker.stop();
    }
  });

  test("when it stops, its worlds, sockets and pid file are gone and a running command is ended", async () => {
    const marker = `stopped-${randomBytes(6).toString("hex")}`;
    const broker = await TestBroker.start(actor);
    try {
      const waiting = broker.post({ cmd: `: ${marker}; sleep 600` }).catch(() => undefined);
      expect(await eventually(() => processesWith(marker).length > 0, 20_000)).toBe(true);
      await broker.kill("SIGTERM");
      await waiting;
      expect(processesWith(marker)).toEqual([]);
      for (const path of ["sock/agent.sock", "sock/control.sock", "run/broker.json", "run/start.lock"])
        expect(existsSync(join(broker.home, path))).toBe(false);
    } finally {
      await broker.stop();
    }
  });

  test("a second broker in the same home refuses, and the first goes on", async () => {
    const broker = await TestBroker.start(actor);
    try {
      const second = await broker.cli(["broker", "start", "--foreground"]);
      expect(second).toMatchObject({ code: 125 });
      expect(second.stderr).toMatch(/Another broker/);
      expect(await broker.cli(["broker", "start"])).toMatchObject({ code: 0 });
      expect(await broker.run("echo first")).toMatchObject({ stdout: "first\n" });
    } finally {
      await broker.stop();
    }
  });

  test("a world that is idle ends, and the next command gets another", async () => {
    const broker = await TestBroker.start(actor, { config: "worlds:\n  idle_secs: 1\n" });
    try {
      const { world_id: first } = await broker.run("true");
      expect(await eventually(async () => (await broker.run("true")).world_id === first, 1000)).toBe(true);
      const warm = async (): Promise<boolean> =>
        (await broker.cli(["world", "status", "--json"])).stdout.includes(first);
      expect(await eventually(async () => !(await warm()), 10_000)).toBe(true);
      expect((await broker.run("true")).world_id).not.toBe(first);
    } finally {
      await broker.stop();
    }
  });

  test("a world is not shared when the policy says so", async () => {
    const broker = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\nworld:\n  reuse_session: false\n" },
    });
    try {
      const [one, two] = [await broker.run("echo a > /tmp/left"), await broker.run("ls /tmp/left")];
      expect(two.exit).not.toBe(0);
      expect(two.world_id).not.toBe(one.world_id);
    } finally {
      await broker.stop();
    }
  });

  test("an agent with a socket of its own is that agent, and nobody else can be it", async () => {
    const broker = await TestBroker.start(actor, { config: "agents:\n  claude:\n" });
    try {
      const { call } = await import("../../api/client/client.ts");
      const own = join(broker.home, "sock/agents/claude.sock");
      const answer = await call(own, "POST", "/v1/execute", {
        cmd: "echo $SUBSTRATE_AGENT_ID",
        cwd: broker.project,
      });
      expect(answer).toMatchObject({ status: 200, document: { agent_id: "claude" } });
      const { span_id: span } = answer.document as { span_id: string };
      expect(
        await call(own, "POST", "/v1/execute", { agent_id: "other", cmd: "true", cwd: broker.project }),
      ).toMatchObject({ status: 400 });
      expect(await broker.refused({ agent_id: "claude", cmd: "true" })).toMatchObject({ status: 400 });
      expect(await broker.call("GET", `/v1/trace/${span}`)).toMatchObject({ status: 404 });
      expect(await call(own, "GET", `/v1/trace/${span}`)).toMatchObject({ status: 200 });
      const { span_id: foreign } = await broker.run("true");
      expect(await call(own, "GET", `/v1/trace/${foreign}`)).toMatchObject({ status: 404 });
    } finally {
      await broker.stop();
    }
  });

  test("exec and check speak for an agent through the socket that it has, and for others through the one they share", async () => {
    const broker = await TestBroker.start(actor, {
      config: "agents:\n  claude: { policy: claude-code }\n",
    });
    try {
      const exec = (agent: string) =>
        broker.cli(["exec", "--agent", agent, "--", "echo $SUBSTRATE_AGENT_ID"]);
      expect(await exec("claude")).toMatchObject({ stdout: "claude\n", code: 0 });
      expect(await exec("me")).toMatchObject({ stdout: "me\n", code: 0 });
      expect((await exec("../agent")).code).toBe(125);
      const check = async (agent: string) =>
        (await broker.cli(["check", "--agent", agent, "--", "git push"])).stdout.split("\n")[0];
      expect(await check("claude")).toBe("ask  policy claude-code (enforce)");
      expect(await check("me")).toMatch(/^allow {2}policy default/);
    } finally {
      await broker.stop();
    }
  });

  test("an agent that the settings name has its socket at once, and one they drop loses it with its calls", async () => {
    const broker = await TestBroker.start(actor);
    const { call } = await import("../../api/client/client.ts");
    const own = join(broker.home, "sock/agents/late.sock");
    const config = join(broker.home, "config.yaml");
    try {
      broker.write(config, settings(broker.folder, "agents:\n  late: {}\n"));
      expect(await eventually(() => existsSync(own), 20_000)).toBe(true);
      const body = { cmd: "touch begun; sleep 60", cwd: broker.project };
      const running = call(own, "POST", "/v1/execute", body).then(
        () => "answered",
        () => "cut",
      );
      expect(await eventually(() => existsSync(join(broker.project, "begun")), 20_000)).toBe(true);
      expect(await broker.refused({ agent_id: "late", cmd: "true" })).toMatchObject({ status: 400 });
      const file = JSON.parse(readFileSync(join(broker.home, "run/broker.json"), "utf8")) as BrokerFile;
      expect(file.sockets.agents).toEqual({ late: own });

      broker.write(config, settings(broker.folder, "agents: {}\n"));
      expect(await eventually(() => !existsSync(own), 20_000)).toBe(true);
      expect(await running).toBe("cut");
      expect(await broker.run({ agent_id: "late", cmd: "echo a label now" })).toMatchObject({ exit: 0 });
      const ended = (): boolean => broker.spans().some(({ outcome }) => outcome === "cancelled");
      expect(await eventually(ended, 20_000)).toBe(true);
    } finally {
      await broker.stop();
    }
  });

  test("a trace that was edited is named by its line", async () => {
    const broker = await TestBroker.start(actor);
    try {
      for (const cmd of ["echo one", "echo two", "echo three"]) await broker.run(cmd);
      await broker.kill("SIGTERM");
      expect((await broker.cli(["trace", "verify"])).stdout).toMatch(/is intact: 6 lines/);
      const path = join(broker.home, "trace/trace.jsonl");
      writeFileSync(path, readFileSync(path, "utf8").replace('"cmd":"echo two"', '"cmd":"echo tw0"'));
      const verified = await broker.cli(["trace", "verify", "--json"]);
      expect(verified.code).toBe(1);
      expect(JSON.parse(verified.stdout)).toMatchObject({ ok: false, line: 3 });
    } finally {
      await broker.stop();
    }
  });

  test("a home whose socket path is too long for the kernel is refused in words", async () => {
    const broker = await TestBroker.start(actor);
    try {
      const long = join(broker.folder, "x".repeat(120));
      const started = await broker.cli(["broker", "start"], { env: { SUBSTRATE_HOME: long } });
      expect(started.code).toBe(125);
      expect(started.stderr).toMatch(/107/);
      expect(existsSync(long)).toBe(false);
      rmSync(long, { recursive: true, force: true });
    } finally {
      await broker.stop();
    }
  });

  test("settings that do not load keep the broker from starting, and later mistakes change nothing", async () => {
    const broker = await TestBroker.start(actor, { config: "projects: [/nowhere]\n" });
    try {
      const config = join(broker.home, "config.yaml");
      expect((await broker.refused({ cmd: "true" })).code).toBe("project_not_allowed");
      writeFileSync(config, "projects: 5\n");
      expect((await broker.refused({ cmd: "true" })).code).toBe("project_not_allowed");
      // As any file is for a moment that is written in place.
      writeFileSync(config, "");
      expect((await broker.refused({ cmd: "true" })).code).toBe("project_not_allowed");
      writeFileSync(config, settings(broker.folder));
      expect(await broker.run("true")).toMatchObject({ exit: 0 });
      writeFileSync(config, "projects: 5\n");
      await broker.kill("SIGTERM");
      const started = await broker.cli(["broker", "start"]);
      expect(started.code).toBe(125);
      expect(started.stderr).toMatch(/config\.yaml:1:\d+/);
    } finally {
      await broker.stop();
    }
  });
});
