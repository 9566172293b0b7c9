import { expect, test } from "vitest";
import type { Wanted } from "../../../../broker/worlds/world-spec.ts";
import { Worlds } from "../../../../broker/worlds/worlds.ts";
import type { World, WorldBackend, WorldSpec } from "../../../../world/backend.ts";

const SPEC = { project: "/p", identity: "test" } as unknown as Wanted["spec"];

function wanted(...ports: readonly number[]): Wanted {
  return { spec: SPEC, network: { ports, ranges: [] }, under: "default", hash: "one", settings: [] };
}

/** Worlds that are made at once and told when they are to end; `network` is that of all of them. */
function made(
  network: World["network"],
  most?: number,
  kept: readonly string[] = [],
): { readonly worlds: Worlds; readonly ended: readonly string[] } {
  const ended: string[] = [];
  const start = (id: string, spec: WorldSpec): Promise<World> =>
    Promise.resolve({
      id,
      spec,
      network,
      ended: new Promise(() => undefined),
      processes: () => Promise.resolve(kept.map((argv, pid) => ({ pid, parent: 1, argv }))),
      end: () => Promise.resolve(void ended.push(id)),
    } as unknown as World);
  return { worlds: new Worlds({ start } as unknown as WorldBackend, () => 60_000, most), ended };
}

test("a world that got no network is replaced when the policy asks for another one, and stays for the same", async () => {
  const { worlds, ended } = made(null);
  const first = await worlds.lease("s", wanted(), () => "a");
  const again = await worlds.lease("s", wanted(), () => "a");
  expect(again.world.id).toBe(first.world.id);
  const other = await worlds.lease("s", wanted(443), () => "a");
  expect(other.world.id).not.toBe(first.world.id);
  expect(other.world.spec.network.ports).toEqual([443]);
  expect(ended).toEqual([]);
  first.release(false);
  again.release(false);
  await new Promise(setImmediate);
  expect(ended).toEqual([first.world.id]);
});

test("what was kept in a world that ends for another one is told to the next command, without arguments", async () => {
  const { worlds } = made(null, undefined, ["/usr/bin/node --token x", "node y", "sleep 6"]);
  (await worlds.lease("s", wanted(), () => "a")).release(false);
  const next = await worlds.lease("s", wanted(443), () => "a");
  expect(next.lost).toBe(
    "3 processes that were kept in this session's world ended with it, because its policy has changed, or a session has begun in another folder: node, sleep",
  );
  expect((await worlds.lease("s", wanted(443), () => "a")).lost).toBeUndefined();
});

test("a world with a network stays, and whoever serves it changes its rules", async () => {
  const { worlds, ended } = made({} as unknown as NonNullable<World["network"]>);
  const first = await worlds.lease("s", wanted(), () => "a");
  first.release(false);
  expect((await worlds.lease("s", wanted(443), () => "a")).world.id).toBe(first.world.id);
  expect(ended).toEqual([]);
});

test("a world gets its settings by the policy that it is made for, and keeps them while that says the same", async () => {
  const { worlds, ended } = made({} as unknown as NonNullable<World["network"]>);
  const settings = [{ path: "/opt/tool/rc", text: "retries=0\n" }];
  const first = await worlds.lease("s", wanted(), () => "a");
  first.release(false);
  const told = await worlds.lease("s", { ...wanted(), settings }, () => "a");
  told.release(false);
  expect(told.world.id).toBe(first.world.id);
  const edited = await worlds.lease("s", { ...wanted(), hash: "two", settings }, () => "a");
  edited.release(false);
  expect(edited.world.spec.settings).toEqual(settings);
  expect(ended).toEqual([first.world.id]);
  const same = await worlds.lease("s", { ...wanted(), hash: "three", settings }, () => "a");
  same.release(false);
  const forgotten = await worlds.lease("s", { ...wanted(), hash: "three" }, () => "a");
  expect(forgotten.world.id).toBe(edited.world.id);
  expect((await worlds.lease("s", { ...wanted(), hash: "four" }, () => "a")).world.spec.settings).toEqual([]);
});

test("whoever asks for the changes of a command that held none waits until its layers are removed", async () => {
  let removed = (): void => undefined;
  const backend = {
    start: (id: string, spec: WorldSpec) =>
      Promise.resolve({ id, spec, network: null, end: () => Promise.resolve() } as unknown as World),
    dropHeld: () =>
      new Promise<void>((resolve) => {
        removed = resolve;
      }),
  };
  const worlds = new Worlds(backend as unknown as WorldBackend, () => 60_000);
  const isolated = {
    ...wanted(),
    spec: { ...SPEC, access: { kind: "overlay" as const, layers: "/layers" } },
  };
  const { release } = await worlds.leaseFresh(isolated);
  release(false);
  let isGone = false;
  const waiting = worlds.ending.untilGone("/layers").then(() => {
    isGone = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isGone).toBe(false);
  removed();
  await waiting;
  await worlds.ending.untilGone("/layers");
});

test("with no room left, the oldest unused world of whoever has most ends, and none that runs a command", async () => {
  const { worlds, ended } = made(null, 4);
  const lease = (session: string, owner: string) => worlds.lease(session, wanted(), () => owner);
  const [one, two, running, other] = [
    await lease("1", "greedy"),
    await lease("2", "greedy"),
    await lease("3", "greedy"),
    await lease("4", "other"),
  ];
  for (const { release } of [two, one, other]) release(false);
  await lease("5", "late");
  await lease("6", "later");
  await Promise.resolve();
  expect(ended).toEqual([one.world.id, two.world.id]);
  await lease("7", "latest");
  await Promise.resolve();
  expect(ended).toEqual([one.world.id, two.world.id, other.world.id]);
  await expect(lease("8", "greedy")).rejects.toThrow("4 worlds are warm already");
  running.release(false);
  expect((await lease("8", "greedy")).world.id).not.toBe(running.world.id);
});
