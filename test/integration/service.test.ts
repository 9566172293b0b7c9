/** The broker as a service: sockets and messages with a stand-in for systemd, and the verbs with a stand-in for systemctl. */
import { randomBytes } from "node:crypto";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { call } from "../../api/client/client.ts";
import type { ExecuteReply, SpansReply } from "../../schemas/generated/types.ts";
import { eventually, settings, TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { checkOf, reportOf } from "../support/broker/doctor-report.ts";
import { StandInManager } from "../support/programs/stand-in-manager.ts";
import { needs } from "../support/run/needs.ts";
import { removeTrees } from "../support/users/folders.ts";
import { type Actor, actors, type Ended, runAs } from "../support/users/users.ts";

const folders: string[] = [];
const pids: number[] = [];
const managers: StandInManager[] = [];
afterEach(async () => {
  for (const pid of pids.splice(0)) {
    try {
      process.kill(pid, "SIGTERM");
    } catch {
      continue;
    }
    await eventually(() => !existsSync(`/proc/${pid}`) || isZombie(pid), 10_000);
  }
  for (const manager of managers.splice(0)) manager.close();
  removeTrees(...folders.splice(0));
});

function isZombie(pid: number): boolean {
  return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
}

function placeFor(
  actor: Actor,
  config = "",
): { readonly folder: string; readonly home: string; readonly project: string } {
  const folder = mkdtempSync(join(actor.uid === 0 ? tmpdir() : actor.home, "sb-"));
  folders.push(folder);
  const place = { folder, home: join(folder, "home"), project: join(folder, "project") };
  for (const each of [place.home, place.project]) mkdirSync(each);
  writeFileSync(join(place.home, "config.yaml"), settings(folder, config));
  execFileSync("chown", ["-R", `${actor.uid}:${actor.gid}`, folder]);
  return place;
}

describe.each(actors())("sockets and messages of a service manager, as $kind", (actor) => {
  test.each(["path", "abstract"])(
    "the broker's main process says READY, signs of life and STOPPING (%s)",
    async (kind) => {
      needs("python3");
      const { folder, home } = placeFor(actor);
      const name = kind === "path" ? join(folder, "notify") : `@substrate-${randomBytes(6).toString("hex")}`;
      const manager = await StandInManager.open(actor, home, name, []);
      managers.push(manager);
      const pid = await manager.start();
      pids.push(pid);
      expect(await manager.line("told READY=1")).toBe("told READY=1 main");
      const from = manager.now;
      expect(await manager.line("told WATCHDOG=1", from)).toBe("told WATCHDOG=1 main");
      process.kill(pid, "SIGTERM");
      expect(await manager.line("told STOPPING=1")).toBe("told STOPPING=1 main");
      expect(await manager.line("ended ")).toBe("ended 0");
    },
  );

  test("a world agent says READY, signs of life and STOPPING, and takes its socket away", async () => {
    needs("python3");
    const { folder, home } = placeFor(actor);
    const socket = join(folder, "agent.sock");
    const verb = ["agent", "--socket", socket];
    const manager = await StandInManager.open(actor, home, join(folder, "notify"), [], verb);
    managers.push(manager);
    const pid = await manager.start();
    pids.push(pid);
    expect(await manager.line("told READY=1")).toBe("told READY=1 main");
    expect(await call(socket, "GET", "/v1/health")).toMatchObject({ document: { state: "serving" } });
    expect(await manager.line("told WATCHDOG=1")).toBe("told WATCHDOG=1 main");
    process.kill(pid, "SIGTERM");
    expect(await manager.line("told STOPPING=1")).toBe("told STOPPING=1 main");
    expect(await manager.line("ended ")).toBe("ended 0");
    expect(existsSync(socket)).toBe(false);
  });

  test("a client that connects while no broker runs waits for the next one, on every socket, and the lost command has its span", async () => {
    needs("python3");
    const { folder, home, project } = placeFor(actor, "agents: { robot: {} }\n");
    const manager = await StandInManager.open(actor, home, join(folder, "notify"), ["robot"]);
    managers.push(manager);
    const first = await manager.start();
    const agent = join(home, "sock/agent.sock");
    const run = (socket: string, cmd: string) =>
      call(socket, "POST", "/v1/execute", {
        agent_id: socket === agent ? "label" : "robot",
        cwd: project,
        cmd,
      });
    const lost = run(agent.replace("agent.sock", "agents/robot.sock"), "echo begun > begun; sleep 600").catch(
      () => "cut",
    );
    expect(await eventually(() => existsSync(join(project, "begun")), 10_000)).toBe(true);
    const from = manager.now;
    process.kill(first, "SIGKILL");
    await manager.line("ended ", from);
    expect(await lost).toBe("cut");

    const sockets = ["agent.sock", "control.sock", "agents/robot.sock"].map((each) =>
      join(home, "sock", each),
    );
    const waiting = Promise.all(
      sockets.map((socket) =>
        socket.endsWith("control.sock")
          ? call(socket, "GET", "/v1/spans?limit=50")
          : run(socket, "echo here"),
      ),
    );
    let isAnswered = false;
    void waiting.then(() => (isAnswered = true));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(isAnswered).toBe(false);
    pids.push(await manager.start());
    const [label, operator, own] = await waiting;
    expect([label?.status, operator?.status, own?.status]).toEqual([200, 200, 200]);
    const ran = own?.document as ExecuteReply | undefined;
    expect(Buffer.from(ran?.stdout_b64 ?? "", "base64").toString()).toBe("here\n");
    const { spans } = (operator?.document ?? { spans: [] }) as SpansReply;
    expect(spans.find(({ cmd }) => cmd?.includes("sleep 600"))).toMatchObject({
      outcome: "lost",
      agent_id: "robot",
    });
  });

  test("the files of handed sockets stay after a stop, and no program in a world gets a descriptor or a variable of the manager", async () => {
    needs("python3");
    const { folder, home, project } = placeFor(actor);
    const manager = await StandInManager.open(actor, home, join(folder, "notify"), []);
    managers.push(manager);
    const pid = await manager.start();
    const cmd =
      "env | grep -cE '^(LISTEN|NOTIFY|WATCHDOG|INVOCATION|SUBSTRATE_NOTIFY)'; ls -l /proc/self/fd | grep -c socket";
    const answer = await call(join(home, "sock/agent.sock"), "POST", "/v1/execute", {
      agent_id: "a",
      cwd: project,
      cmd,
    });
    expect(Buffer.from((answer.document as ExecuteReply).stdout_b64, "base64").toString()).toBe("0\n0\n");
    process.kill(pid, "SIGTERM");
    await manager.line("ended 0");
    expect(readdirSync(join(home, "sock")).toSorted()).toEqual(["agent.sock", "agents", "control.sock"]);
  });
});

/** Answers as systemctl with one service: its state lies in files beside it. */
const SYSTEMCTL = `#!/bin/sh
at=$(dirname "$0")
printf '%s\\n' "$*" >> "$at/said"
[ -e "$at/down" ] && { echo 'Failed to connect to bus: No medium found' >&2; exit 1; }
scope=$1; shift
case "$1" in
  show) case "$*" in *Version*) echo Version=252 ;; *) echo "ActiveState=$(cat "$at/active" 2>/dev/null || echo inactive)"; echo MainPID=0; echo NRestarts=0; echo "UnitFileState=$(cat "$at/enabled" 2>/dev/null || echo disabled)" ;; esac ;;
  enable) echo enabled > "$at/enabled" ;;
  disable) echo disabled > "$at/enabled" ;;
  start) echo active > "$at/active" ;;
  stop) echo inactive > "$at/active" ;;
esac
`;

type Desk = {
  readonly user: string;
  readonly units: string;
  readonly said: () => string;
  readonly flag: (name: string) => void;
  readonly cli: (...words: readonly string[]) => Promise<Ended>;
};

async function deskOf(actor: Actor, more: Readonly<Record<string, string>> = {}): Promise<Desk> {
  const { folder } = placeFor(actor);
  const [bin, user] = [join(folder, "bin"), join(folder, "user")];
  for (const each of [bin, user]) mkdirSync(each);
  writeFileSync(join(bin, "systemctl"), SYSTEMCTL);
  chmodSync(join(bin, "systemctl"), 0o755);
  execFileSync("chown", ["-R", `${actor.uid}:${actor.gid}`, folder]);
  const { node, launcher } = await installationFor(actor);
  const env = {
    HOME: user,
    PATH: `${bin}:${dirname(node)}:/usr/bin:/bin`,
    SUBSTRATE_HOME: join(folder, "home"),
    ...more,
  };
  return {
    user,
    units: join(user, ".config/systemd/user"),
    said: () => readFileSync(join(bin, "said"), "utf8"),
    flag: (name) => writeFileSync(join(bin, name), ""),
    cli: (...words) => runAs(actor, [node, launcher, ...words], { cwd: user, env }),
  };
}

describe.each(actors())("substrate service, as $kind", (actor) => {
  test("shows what it writes, writes only on yes, and a second install has nothing to do", async () => {
    const desk = await deskOf(actor);
    const asked = await desk.cli("service", "install");
    expect(asked.code).toBe(1);
    expect(asked.stdout).toContain("+ListenStream=");
    expect(asked.stderr).toContain("Add --yes");
    expect(existsSync(desk.units)).toBe(false);
    expect(desk.said()).not.toMatch(/--user (enable|start|stop|daemon-reload)/);

    expect((await desk.cli("service", "install", "--yes")).code).toBe(0);
    expect(readdirSync(desk.units).toSorted()).toEqual(["substrate.service", "substrate.socket"]);
    const [before, said] = [readFileSync(join(desk.units, "substrate.service"), "utf8"), desk.said()];
    expect(said).toMatch(
      /--user daemon-reload\n--user enable substrate.socket substrate.service\n(.*\n)?--user start/,
    );
    const again = JSON.parse((await desk.cli("service", "install", "--yes", "--json")).stdout) as object;
    expect(again).toMatchObject({ installed: true, current: true, active: "active", enabled: true });
    expect(readFileSync(join(desk.units, "substrate.service"), "utf8")).toBe(before);
  });

  test("gives its broker the variables that choose its worlds, and nothing else of the installer's", async () => {
    const wanted = {
      SUBSTRATE_BACKEND: "agent",
      SUBSTRATE_AGENT_SOCKET: "/run/some/agent.sock",
      LIMA_HOME: "/srv/lima",
    };
    const desk = await deskOf(actor, { ...wanted, TOKEN: "secret" });
    expect((await desk.cli("service", "install", "--yes")).code).toBe(0);
    const unit = readFileSync(join(desk.units, "substrate.service"), "utf8");
    for (const [name, value] of Object.entries(wanted)) expect(unit).toContain(`${name}=${value}`);
    expect(unit).not.toContain("secret");
  });

  test("an install again brings back what was changed, and removal leaves the folder as it was", async () => {
    const desk = await deskOf(actor);
    await desk.cli("service", "install", "--yes");
    const unit = join(desk.units, "substrate.service");
    const written = readFileSync(unit, "utf8");
    writeFileSync(unit, written.replace("WatchdogSec=60", "WatchdogSec=0"));
    expect((await desk.cli("service", "status")).stdout).toContain(
      "'substrate service install' updates them",
    );
    expect((await desk.cli("service", "install", "--yes")).stdout).toContain("+WatchdogSec=60");
    expect(readFileSync(unit, "utf8")).toBe(written);
    expect((await desk.cli("service", "remove", "--yes")).code).toBe(0);
    expect(readdirSync(desk.user)).toEqual([]);
    expect(desk.said()).toMatch(/--user disable substrate.socket substrate.service\n--user daemon-reload/);
    expect((await desk.cli("service", "remove", "--yes")).stdout).toContain("No service is installed");
    expect((await desk.cli("service", "status", "--json")).code).toBe(1);
  });

  test("a unit of somebody else stays as it is, and so do its folders", async () => {
    const desk = await deskOf(actor);
    mkdirSync(desk.units, { recursive: true });
    const unit = join(desk.units, "substrate.service");
    writeFileSync(unit, "[Service]\nExecStart=/bin/true\n");
    for (const verb of ["install", "remove"]) {
      const ended = await desk.cli("service", verb, "--yes");
      expect([ended.code, ended.stderr]).toEqual([
        125,
        expect.stringContaining("not from 'substrate service install'"),
      ]);
    }
    expect(readFileSync(unit, "utf8")).toBe("[Service]\nExecStart=/bin/true\n");
    expect(readdirSync(desk.units)).toEqual(["substrate.service"]);
  });

  test("without a systemd the error says what to do, and nothing is written", async () => {
    const desk = await deskOf(actor);
    desk.flag("down");
    const ended = await desk.cli("service", "install", "--yes");
    expect(ended.code).toBe(125);
    expect(ended.stderr).toMatch(
      /No systemd of this user answers here \(Failed to connect to bus.*broker start --foreground/,
    );
    expect(existsSync(desk.units)).toBe(false);
  });

  test("a broker by hand does not start beside the service: a start asks systemd, and doctor shows both", async () => {
    const desk = await deskOf(actor);
    await desk.cli("service", "install", "--yes");
    const byHand = await desk.cli("broker", "start", "--foreground");
    expect([byHand.code, byHand.stderr]).toEqual([
      125,
      expect.stringContaining("is started by systemd --user"),
    ]);
    const found = checkOf(reportOf(await desk.cli("world", "doctor", "--json")), "service");
    expect(found).toMatchObject({ verdict: "ok", seen: "systemd --user: active" });
    // Where systemd does not answer, the unit starts nobody.
    desk.flag("down");
    const alone = checkOf(reportOf(await desk.cli("world", "doctor", "--json")), "service");
    expect(alone.seen).toContain("the first command starts the broker");
  });

  test("a broker that was started by hand is replaced when idle, and never under a running command", async () => {
    const broker = await TestBroker.start(actor);
    const desk = await deskOf(actor);
    const env = {
      HOME: desk.user,
      PATH: `${join(dirname(desk.user), "bin")}:${dirname(process.execPath)}:/usr/bin:/bin`,
    };
    try {
      const kept = broker.post({ cmd: "echo > begun; sleep 600" }).catch(() => "cut");
      expect(await eventually(() => existsSync(join(broker.project, "begun")), 10_000)).toBe(true);
      const busy = await broker.cli(["service", "install", "--yes"], { env });
      expect([busy.code, busy.stderr]).toEqual([125, expect.stringContaining("'substrate broker stop'")]);
      expect(existsSync(desk.units)).toBe(false);
      expect((await broker.cli(["world", "restart", "--force", "--agent", "test"], { env })).code).toBe(0);
      await kept;
      expect((await broker.cli(["service", "install", "--yes"], { env })).stderr).toBe("");
      expect(await eventually(() => broker.process.exitCode !== null, 10_000)).toBe(true);
      expect(existsSync(desk.units)).toBe(true);
    } finally {
      await broker.stop();
    }
  });
});
