import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WorldUnavailable } from "../../world/backend.ts";
import type { NetworkHelper } from "../../world/network/helper.ts";
import { SpareNetwork } from "../../world/network/spare.ts";
import { eventually } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { descendants } from "../support/processes/processes.ts";
import { currentUser } from "../support/users/users.ts";

const PATIENCE_MS = 5000;

/** Of this process, whatever they do: the file's tests start nothing but helpers. */
const children = (): readonly number[] => descendants(process.pid);

/** It listens for questions: 127.0.0.53, port 53, as proc_pid_net(5) writes them. */
function isBorn(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/net/tcp`, "utf8").includes(" 3500007F:0035 ");
  } catch {
    // It has ended meanwhile.
    return false;
  }
}

describe("the network that is kept ready", () => {
  let spare: SpareNetwork;
  let before: readonly number[];
  let taken: NetworkHelper[];
  beforeEach(async () => {
    const { root } = await installationFor(currentUser());
    spare = new SpareNetwork(join(root, ".build/substrate-init"));
    before = children();
    taken = [];
  });
  afterEach(async () => {
    spare.close();
    for (const network of taken) network.end();
    if (!(await eventually(() => added().length === 0, PATIENCE_MS))) throw new Error("A helper was left");
  });

  const added = (): readonly number[] => children().filter((pid) => !before.includes(pid));
  const take = async (): Promise<NetworkHelper> => {
    const network = await spare.take(AbortSignal.timeout(PATIENCE_MS));
    taken.push(network);
    return network;
  };
  /** The pid of the one that waits. */
  const waiting = async (): Promise<number> => {
    const others = (): readonly number[] =>
      added().filter((pid) => taken.every((other) => other.pid !== pid));
    expect(await eventually(() => others().some(isBorn), PATIENCE_MS), "one waits").toBe(true);
    // What it says last is on its way to this process.
    await sleep(100);
    expect(others()).toHaveLength(1);
    return others()[0] ?? 0;
  };

  test("is not there before the first world, and the second world gets it", async () => {
    expect(added()).toEqual([]);
    const first = await take();
    const ready = await waiting();
    expect(ready).not.toBe(first.pid);
    expect((await take()).pid).toBe(ready);
    expect(await waiting()).not.toBe(ready);
  });

  test("is one for each world when worlds come at once", async () => {
    const networks = await Promise.all([take(), take(), take()]);
    expect(new Set(networks.map(({ pid }) => pid)).size).toBe(3);
    const ready = await waiting();
    const more = await Promise.all([take(), take()]);
    expect(more.filter(({ pid }) => pid === ready)).toHaveLength(1);
  });

  test("carries out rules and ends alone, like one that was made for its world", async () => {
    await take();
    await waiting();
    const network = await take();
    await network.allow({ ports: [443], ranges: [] });
    await network.allow({ ports: [443, 80], ranges: [{ cidr: "203.0.113.0/24", ports: "any" }] });
    network.end();
    expect(await network.ended).toBe("its network ended with exit code 0");
  });

  test("goes to nobody once it was killed", async () => {
    await take();
    const killed = await waiting();
    process.kill(killed, "SIGKILL");
    expect(await eventually(() => !added().includes(killed), PATIENCE_MS)).toBe(true);
    const network = await take();
    expect(network.pid).not.toBe(killed);
    await network.allow({ ports: [443], ranges: [] });
  });

  test("gives no sockets for names once it is gone, and says so as of a world that there is not", async () => {
    const network = await take();
    process.kill(network.pid, "SIGKILL");
    expect(await network.ended).toBe("its network ended with SIGKILL");
    expect(() => network.takeDns()).toThrow(WorldUnavailable);
    expect(() => network.takeDns()).toThrow("its network ended with SIGKILL");
    const twin = await take();
    const { udp, tcp } = twin.takeDns();
    expect(() => twin.takeDns()).toThrow("taken already");
    udp.close();
    tcp.close();
  });

  test("is not made again after the end", async () => {
    const first = await take();
    await waiting();
    spare.close();
    expect(await eventually(() => added().length === 1, PATIENCE_MS)).toBe(true);
    const second = await take();
    await sleep(200);
    expect(new Set(added())).toEqual(new Set([first.pid, second.pid]));
  });
});
