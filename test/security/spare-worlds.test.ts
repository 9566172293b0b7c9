/** Worlds that are made ahead of need for isolated commands: what they must not be, and what is left of them. */
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { actors } from "../actors.ts";
import { eventually, type Ran, TestBroker } from "../broker.ts";
import { checkOf, overlayOf, reportOf } from "../doctor-report.ts";
import { descendants, parentOf, processesWith } from "../processes.ts";

const policy = (more = ""): string =>
  `id: default\nname: Spare\nmode: enforce\nfs: { deny_read: ["**/.env"${more}] }\ncommands: { isolated: [": held"] }\n`;

/** All but the overlay is made: PID 1 waits for its broker, and nothing is below it. */
const WAITING_MS = 10_000;

describe.each(actors())("worlds that wait for isolated commands, as $kind", (actor) => {
  let broker: TestBroker | undefined;
  afterEach(async () => {
    await broker?.stop();
    broker = undefined;
  });

  const started = async (config?: string): Promise<TestBroker> => {
    broker = await TestBroker.start(actor, {
      policies: { default: policy() },
      ...(config === undefined ? {} : { config }),
    });
    return broker;
  };

  /** One isolated command, and the world that waits for the next. */
  async function withSpare(of: TestBroker): Promise<number> {
    await of.run(": held; true");
    return await settled(of);
  }

  test("is what the next one runs in, once, and it sees nothing of the one before", async () => {
    const of = await started();
    const ids = new Set<string>();
    for (let round = 0; round < 4; round += 1) {
      const spare = await withSpare(of);
      const mark = `spare-${randomBytes(6).toString("hex")}`;
      const running = of.run(
        `: held; ls /tmp/trace; ls; echo x >/tmp/trace; touch trace; : ${mark}; sleep 1`,
      );
      expect(await eventually(() => processesWith(mark).length > 0, 5000)).toBe(true);
      expect(ancestors(processesWith(mark)[0] ?? 0)).toContain(spare);
      const ran = await running;
      expect(ran).toMatchObject({ exit: 0, stdout: "", fs_diff: { writes: ["trace"], held: true } });
      ids.add(ran.world_id);
      expect(existsSync(join(of.project, "trace"))).toBe(false);
    }
    expect(ids.size).toBe(4);
  });

  test("has the project as it is when the command comes: an edit, a new file, and a denied name made since", async () => {
    const of = await started();
    of.write(join(of.project, "edited"), "before");
    await withSpare(of);
    of.write(join(of.project, "edited"), "after");
    of.write(join(of.project, "new"), "new");
    of.write(join(of.project, "below/.env"), "secret");
    of.write(join(of.project, ".env"), "secret");
    const ran = await of.run(
      ": held; cat edited new; cat .env below/.env; echo x >.env; mv below other; true",
    );
    expect(ran.stdout).toBe("afternew");
    expect(ran.stdout + ran.stderr).not.toContain("secret");
    expect(readFileSync(join(of.project, ".env"), "utf8")).toBe("secret");
    const { isolation } = await of.run(": held; true");
    expect(isolation).toEqual(ran.isolation);
  });

  test("is as closed as one that is made at once", async () => {
    const of = await started();
    const look =
      ": held; cat /proc/self/status | grep -E '^(Cap|NoNewPrivs|Seccomp)'; cat /proc/self/mountinfo | cut -d' ' -f5- | sed 's/[0-9]*:[0-9]*//g' | sort | sed 's/upperdir=.*//; s#/proc/self/fd/[0-9]*#FD#g'; ls /proc | grep -c '^[0-9]'; cat /proc/net/dev | wc -l; touch /usr/x 2>&1; ls -A /tmp /run";
    const first = await of.run(look);
    await withSpare(of);
    const second = await of.run(look);
    expect(second.stdout).toBe(first.stdout);
    expect(second.stdout).toMatch(/CapEff:\s+0{16}/);
    expect(second.isolation).toEqual(first.isolation);
  });

  test("goes when the policy changes, and the next command gets one by the new words", async () => {
    const of = await started();
    const spare = await withSpare(of);
    of.write(join(of.project, "plain"), "plain");
    writeFileSync(join(of.home, "policies/default.yaml"), policy(', "plain"'));
    const ran = await of.run(": held; cat plain");
    expect(ran.exit).not.toBe(0);
    expect(ran.stdout).toBe("");
    expect(await eventually(() => !existsSync(`/proc/${spare}`), 5000)).toBe(true);
  });

  test("goes with its session's worlds, with its time, and when it is killed: the next is made at once", async () => {
    const of = await started("worlds: { idle_secs: 1 }\n");
    expect(await eventually(() => waiting(of).length === 0, 100)).toBe(true);
    const killed = await withSpare(of);
    process.kill(killed, "SIGKILL");
    expect(await of.run(": held; echo on")).toMatchObject({ exit: 0, stdout: "on\n" });
    const idle = await withSpare(of);
    expect(await eventually(() => !existsSync(`/proc/${idle}`), 10_000)).toBe(true);
    const restarted = await withSpare(of);
    expect((await of.cli(["world", "restart", "--all"])).code).toBe(0);
    expect(await eventually(() => !existsSync(`/proc/${restarted}`), 5000)).toBe(true);
  });

  test("does not hold 16 commands at once up, and none of them sees another", async () => {
    const of = await started();
    await withSpare(of);
    const run = (at: number): Promise<Ran> =>
      of.run(`: held; echo ${at} >mine-${at}; sleep 0.5; ls; cat mine-*`);
    const all = await Promise.all(Array.from({ length: 16 }, (_, at) => run(at)));
    for (const [at, ran] of all.entries()) {
      expect(ran).toMatchObject({ exit: 0, stdout: `mine-${at}\n${at}\n` });
      expect(ran.fs_diff).toMatchObject({ writes: [`mine-${at}`], held: true });
    }
    expect(new Set(all.map(({ world_id }) => world_id)).size).toBe(16);
    expect(readdirSync(of.project)).toEqual([]);
  });

  test("leaves nothing when its broker is killed, and nothing when it stops", async () => {
    const of = await started();
    await withSpare(of);
    const all = descendants(of.process.pid ?? 0);
    expect(await eventually(() => readdirSync(overlayOf(of)).length === 0, 5000)).toBe(true);
    await of.kill("SIGKILL");
    expect(await eventually(() => all.every((pid) => !existsSync(`/proc/${pid}`)), 3000)).toBe(true);
    // Of all brokers of this user: what another test has just killed is on its way.
    const left = async (): Promise<readonly string[]> => {
      const report = reportOf(await of.cli(["world", "doctor", "--json"]));
      const names = ["left-processes", "left-layers", "left-cgroups"];
      return names.filter((name) => checkOf(report, name).verdict !== "ok");
    };
    await eventually(async () => (await left()).length === 0, 10_000);
    expect(await left()).toEqual([]);
    const next = await of.again();
    await next.run(": held; true");
    await settled(next);
    const others = descendants(next.process.pid ?? 0);
    await next.kill("SIGTERM");
    expect(await eventually(() => others.every((pid) => !existsSync(`/proc/${pid}`)), 3000)).toBe(true);
  });
});

/** The one that waits, once it is the only one: a world that is ending looks like one for a moment. */
async function settled(broker: TestBroker): Promise<number> {
  let seen = 0;
  const stays = async (): Promise<boolean> => {
    const [only = 0, ...others] = waiting(broker);
    const stayed = only !== 0 && only === seen && others.length === 0;
    seen = only;
    await sleep(100);
    return stayed;
  };
  expect(await eventually(stays, WAITING_MS)).toBe(true);
  return seen;
}

/** Outer processes of worlds that wait: one child, PID 1, which has none. */
function waiting(broker: TestBroker): readonly number[] {
  const all = descendants(broker.process.pid ?? 0);
  return all.filter((pid) => {
    const [child, ...others] = all.filter((each) => parent(each) === pid);
    return (
      parent(pid) === broker.process.pid &&
      child !== undefined &&
      others.length === 0 &&
      !all.some((each) => parent(each) === child)
    );
  });
}

function ancestors(pid: number): readonly number[] {
  const above = parent(pid);
  return above <= 1 ? [] : [above, ...ancestors(above)];
}

function parent(pid: number): number {
  try {
    return parentOf(pid);
  } catch {
    // It has ended meanwhile.
    return 0;
  }
}
