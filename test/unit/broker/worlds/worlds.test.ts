import { expect, test } from "vitest";
import type { Wanted } from "../../../../broker/worlds/world-spec.ts";
import { Worlds } from "../../../../broker/worlds/worlds.ts";
import type { World, WorldBackend, WorldSpec } from "../../../../world/backend.ts";

const SPEC = { project: "/p", identity: "test" } as unknown as Wanted["spec"];

function wanted(...ports: readonly number[]): Wanted {
  return { spec: SPEC, network: { ports, ranges: [] }, under: "default", hash: "one", settings: [] };
}

/** Worlds that are made at once and told when they are to end; `network` is that of all of them. */
function made(network: World["network"]): { readonly worlds: Worlds; readonly ended: readonly string[] } {
  const ended: string[] = [];
  const start = (id: string, spec: WorldSpec): Promise<World> =>
    Promise.resolve({
      id,
      spec,
      network,
      ended: new Promise(() => undefined),
      end: () => Promise.resolve(void ended.push(id)),
    } as unknown as World);
  return { worlds: new Worlds({ start } as unknown as WorldBackend, () => 60_000), ended };
}

test("a world that got no network is replaced when the policy asks for another one, and stays for the same", async () => {
  const { worlds, ended } = made(null);
  const first = await worlds.lease("s", wanted());
  const again = await worlds.lease("s", wanted());
  expect(again.world.id).toBe(first.world.id);
  const other = await worlds.lease("s", wanted(443));
  expect(other.world.id).not.toBe(first.world.id);
  expect(other.world.spec.network.ports).toEqual([443]);
  expect(ended).toEqual([]);
  first.release(false);
  again.release(false);
  await Promise.resolve();
  expect(ended).toEqual([first.world.id]);
});

test("a world with a network stays, and whoever serves it changes its rules", async () => {
  const { worlds, ended } = made({} as unknown as NonNullable<World["network"]>);
  const first = await worlds.lease("s", wanted());
  first.release(false);
  expect((await worlds.lease("s", wanted(443))).world.id).toBe(first.world.id);
  expect(ended).toEqual([]);
});

test("a world gets its settings by the policy that it is made for, and keeps them while that says the same", async () => {
  const { worlds, ended } = made({} as unknown as NonNullable<World["network"]>);
  const settings = [{ path: "/opt/tool/rc", text: "retries=0\n" }];
  const first = await worlds.lease("s", wanted());
  first.release(false);
  const told = await worlds.lease("s", { ...wanted(), settings });
  told.release(false);
  expect(told.world.id).toBe(first.world.id);
  const edited = await worlds.lease("s", { ...wanted(), hash: "two", settings });
  edited.release(false);
  expect(edited.world.spec.settings).toEqual(settings);
  expect(ended).toEqual([first.world.id]);
  const same = await worlds.lease("s", { ...wanted(), hash: "three", settings });
  same.release(false);
  const forgotten = await worlds.lease("s", { ...wanted(), hash: "three" });
  expect(forgotten.world.id).toBe(edited.world.id);
  expect((await worlds.lease("s", { ...wanted(), hash: "four" })).world.spec.settings).toEqual([]);
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
