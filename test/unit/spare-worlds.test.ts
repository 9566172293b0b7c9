import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SpareWorlds } from "../../broker/worlds/spare-worlds.ts";
import type { Wanted } from "../../broker/worlds/wanted.ts";
import {
  type PreparedWorld,
  type World,
  type WorldBackend,
  type WorldSpec,
  WorldUnavailable,
} from "../../world/backend.ts";

const IDLE_MS = 60_000;

/** A world that waits, and what became of it. */
class Waiting implements PreparedWorld {
  readonly id: string;
  readonly spec: WorldSpec;
  readonly ready = Promise.resolve();
  readonly over: Promise<void>;
  readonly ends: string[] = [];
  readonly begun: string[] = [];
  fails = false;
  #over: () => void = () => {};

  constructor(id: string, spec: WorldSpec) {
    this.id = id;
    this.spec = spec;
    this.over = new Promise((resolve) => {
      this.#over = resolve;
    });
  }

  begin(layers: string): Promise<World> {
    this.begun.push(layers);
    this.#over();
    if (this.fails) return Promise.reject(new WorldUnavailable("It cannot", "wait"));
    return Promise.resolve({ id: this.id } as World);
  }

  end(cause: string): Promise<void> {
    this.ends.push(cause);
    this.#over();
    return Promise.resolve();
  }
}

function wanted(port = 443, layers = "/layers/spn_1", denied = "/secret"): Wanted {
  const files = { read: ["/**"], denyRead: [denied], write: [], denyWrite: [], seal: [] };
  const access = { kind: "overlay", layers } as const;
  const spec = { project: "/p", identity: "1:2", access, files, hidden: [], sealed: [], limits: {} };
  return {
    spec: { ...spec, seccomp: "enforce" },
    network: { ports: [port], ranges: [] },
    under: "default",
    hash: "sha256:1",
    settings: [],
  };
}

function made(): { readonly spares: SpareWorlds; readonly worlds: readonly Waiting[] } {
  const worlds: Waiting[] = [];
  const prepare = (id: string, spec: WorldSpec): Waiting => {
    const world = new Waiting(id, spec);
    worlds.push(world);
    return world;
  };
  return { spares: new SpareWorlds({ prepare } as unknown as WorldBackend, () => IDLE_MS), worlds };
}

const soon = (): Promise<unknown> => vi.advanceTimersByTimeAsync(1000);

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("the first command of a session finds none; the next gets one, over its own layers, and the one after not the same", async () => {
  const { spares, worlds } = made();
  expect(await spares.begin("s", wanted())).toBeUndefined();
  spares.refill("s", wanted(), "ended");
  await soon();
  expect(worlds).toHaveLength(1);
  expect((await spares.begin("s", wanted(443, "/layers/spn_2")))?.id).toBe(worlds[0]?.id);
  expect(worlds[0]?.begun).toEqual(["/layers/spn_2"]);
  expect(await spares.begin("s", wanted(443, "/layers/spn_3"))).toBeUndefined();
});

test("none is made while a short command runs, and one is while a long one does", async () => {
  const { spares, worlds } = made();
  spares.refill("s", wanted(), "begun");
  await vi.advanceTimersByTimeAsync(100);
  expect(worlds).toHaveLength(0);
  await soon();
  expect(worlds).toHaveLength(1);
  spares.refill("s", wanted(), "ended");
  await soon();
  expect(worlds).toHaveLength(1);
});

test.each([
  ["another network", wanted(80)],
  ["other denied names", wanted(443, "/layers/spn_2", "/other")],
  ["other settings", { ...wanted(), settings: [{ path: "/npmrc", text: "fetch-retries=0" }] }],
])("one made for %s is ended and not used", async (_what, other) => {
  const { spares, worlds } = made();
  spares.refill("s", wanted(), "ended");
  await soon();
  expect(await spares.begin("s", other)).toBeUndefined();
  expect(worlds[0]).toMatchObject({ begun: [], ends: ["its policy has changed"] });
  expect(await spares.begin("s", wanted())).toBeUndefined();
});

test("one that cannot be finished is none: the command gets a world that is made at once", async () => {
  const { spares, worlds } = made();
  spares.refill("s", wanted(), "ended");
  await soon();
  const [only] = worlds;
  if (only !== undefined) only.fails = true;
  expect(await spares.begin("s", wanted())).toBeUndefined();
});

test("a plain command neither takes one nor makes one", async () => {
  const { spares, worlds } = made();
  spares.refill("s", wanted(), "ended");
  await soon();
  const plain = { ...wanted(), spec: { ...wanted().spec, access: { kind: "direct" } as const } };
  expect(await spares.begin("s", plain)).toBeUndefined();
  spares.refill("plain", plain, "ended");
  await soon();
  expect(worlds).toHaveLength(1);
  expect((await spares.begin("s", wanted()))?.id).toBe(worlds[0]?.id);
});

test("eight wait at most, and the one that waits longest makes room", async () => {
  const { spares, worlds } = made();
  for (let session = 0; session < 9; session += 1) {
    spares.refill(`s${session}`, wanted(), "ended");
    await vi.advanceTimersByTimeAsync(50);
  }
  expect(worlds.map(({ ends }) => ends.length)).toEqual([1, 0, 0, 0, 0, 0, 0, 0, 0]);
});

test("one ends when nobody comes, with its session, and with all", async () => {
  const { spares, worlds } = made();
  spares.refill("s", wanted(), "ended");
  await vi.advanceTimersByTimeAsync(IDLE_MS + 100);
  expect(worlds[0]?.ends).toEqual(["it was idle"]);
  for (const session of ["a", "b", "c"]) spares.refill(session, wanted(), "ended");
  await soon();
  await spares.end("b", "restarted");
  expect(worlds.map(({ ends }) => ends.length)).toEqual([1, 0, 1, 0]);
  spares.refill("d", wanted(), "ended");
  await spares.end(undefined, "its policy has changed");
  expect(worlds.map(({ ends }) => ends.length)).toEqual([1, 1, 1, 1]);
  await soon();
  expect(worlds).toHaveLength(4);
});
