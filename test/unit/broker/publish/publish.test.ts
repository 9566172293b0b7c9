import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { type PublishEvent, Publisher } from "../../../../broker/publish/publisher.ts";
import type { World } from "../../../../world/backend.ts";
import { eventually } from "../../../support/broker/broker.ts";
import { freePort, talk } from "../../../support/broker/published.ts";

/** A world of which only the network is real: a server on this host that says `word`. */
type FakeWorld = { readonly world: World; readonly end: () => void; readonly dialled: readonly Socket[] };

async function fakeWorld(word: string): Promise<FakeWorld> {
  const held: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    held.push(socket);
    socket.on("error", () => undefined).resume();
    socket.on("end", () => socket.end(word));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of held) socket.destroy();
    server.close();
  });
  const dialled: Socket[] = [];
  const dial = async (): Promise<Socket> => {
    const { port } = server.address() as AddressInfo;
    const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
    dialled.push(socket);
    await once(socket, "connect");
    return socket;
  };
  let end = (): void => undefined;
  const ended = new Promise<string>((resolve) => {
    end = () => resolve("over");
  });
  const isolation = { net: "on" };
  return { world: { ended, isolation, network: { connect: dial } } as unknown as World, end, dialled };
}

let worlds: Map<string, Promise<World>>;
let events: PublishEvent[];
let publisher: Publisher;
let port: number;

beforeEach(async () => {
  worlds = new Map();
  events = [];
  publisher = new Publisher({
    worldOf: (session) => worlds.get(session),
    ownerOf: (session) => `session ${session}`,
    onEvent: (event) => events.push(event),
  });
  port = await freePort();
});
afterEach(() => publisher.end());

async function begin(session: string, word = session): Promise<FakeWorld> {
  const fake = await fakeWorld(word);
  worlds.set(session, Promise.resolve(fake.world));
  return fake;
}

/** Connected, and silent. */
async function visitor(): Promise<{ readonly socket: Socket; readonly broken: () => string | undefined }> {
  const socket = connect({ host: "127.0.0.1", port });
  let broken: string | undefined;
  socket.on("error", ({ code }: NodeJS.ErrnoException) => {
    broken = code;
  });
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return { socket, broken: () => broken };
}

test("a connection that comes while the world is made is answered when it is ready", async () => {
  await begin("s");
  expect(await publisher.open("s", port, port)).toEqual({ wasOpen: false });
  let ready = (_world: World): void => undefined;
  worlds.set("s", new Promise((resolve) => (ready = resolve)));
  const waiting = talk(port);
  await visitor();
  ready((await fakeWorld("late")).world);
  expect(await waiting).toBe("late");
});

test("connections into a world that has ended are reset, and those into its successor stay", async () => {
  const old = await begin("s", "old");
  await publisher.open("s", port, port);
  const early = await visitor();
  await expect.poll(() => publisher.of("s")[0]?.connections).toBe(1);
  await expect.poll(() => old.dialled.length).toBe(1);
  await begin("s", "new");
  const late = await visitor();
  old.end();
  await expect.poll(early.broken).toBe("ECONNRESET");
  expect(late.broken()).toBeUndefined();
  expect(await talk(port)).toBe("new");
});

test("a client that leaves before the world answers leaves nothing behind", async () => {
  const fake = await begin("s");
  await publisher.open("s", port, port);
  let ready = (_world: World): void => undefined;
  worlds.set("s", new Promise((resolve) => (ready = resolve)));
  const { socket } = await visitor();
  socket.resetAndDestroy();
  await once(socket, "close");
  ready(fake.world);
  await expect.poll(() => fake.dialled.length).toBe(1);
  await expect.poll(() => fake.dialled[0]?.destroyed).toBe(true);
  expect(await eventually(() => publisher.of("s")[0]?.connections === 0, 2000)).toBe(true);
});

test("a port that is closed while a connection waits resets it, and is free", async () => {
  await begin("s");
  await publisher.open("s", port, port);
  worlds.set("s", new Promise(() => undefined));
  const { broken } = await visitor();
  publisher.closeAll("s", "its world has ended");
  await expect.poll(broken).toBe("ECONNRESET");
  expect(await talk(port)).toBe("ECONNREFUSED");
  expect(events.map(({ event }) => event)).toEqual(["opened", "closed"]);
});

test("a port whose session ends while it is opened is not open afterwards, and nothing is said of it", async () => {
  await begin("s");
  const opening = publisher.open("s", port, port);
  while (publisher.of("s").length === 0) await Promise.resolve();
  worlds.delete("s");
  publisher.closeAll("s", "its world has ended");
  expect(await opening).toMatchObject({ kind: "no_world" });
  expect(await talk(port)).toBe("ECONNREFUSED");
  expect(events).toEqual([]);
});

test("of many that want one port at the same time one has it, and the others are told who", async () => {
  const names = ["a", "b", "c", "d"];
  await Promise.all(names.map((name) => begin(name)));
  const answers = await Promise.all(names.map((name) => publisher.open(name, port, port)));
  const owner = names[answers.findIndex((answer) => "wasOpen" in answer)];
  const refused = answers.filter((answer) => "kind" in answer);
  expect(refused).toHaveLength(3);
  for (const { kind, message, reason } of refused) {
    expect([kind, message]).toEqual(["published", expect.stringContaining(`session ${owner}`)]);
    expect(reason).not.toContain(`session ${owner}`);
  }
  expect(await talk(port)).toBe(owner);
});

test("the policies of the last command hold, whichever was carried out first", async () => {
  const { world } = await begin("s");
  const other = await freePort();
  await Promise.all([
    publisher.follow("s", world, "one", [port]),
    publisher.follow("s", world, "two", [other]),
    publisher.follow("s", world, "two", [other]),
  ]);
  expect(publisher.of("s").map(({ hostPort, problem }) => [hostPort, problem])).toEqual([[other, null]]);
  expect([await talk(port), await talk(other)]).toEqual(["ECONNREFUSED", "s"]);
  expect(events.filter(({ event, hostPort }) => event === "opened" && hostPort === other)).toHaveLength(1);
  await publisher.follow("s", world, "none", []);
  expect(publisher.of("s")).toEqual([]);
});

test("a world without a network has no ports, and says so once", async () => {
  const { world } = await begin("s");
  const bare = { ...world, network: null, isolation: { ...world.isolation, net: "degraded: no way in" } };
  worlds.set("s", Promise.resolve(bare));
  expect(await publisher.open("s", port, port)).toMatchObject({
    kind: "no_network",
    message: expect.stringContaining("degraded: no way in") as string,
  });
  await publisher.follow("s", bare, "one", [port]);
  await publisher.follow("s", bare, "two", [port]);
  expect(publisher.of("s")).toMatchObject([{ port, by: "policy", problem: { kind: "no_network" } }]);
  expect(events.map(({ event }) => event)).toEqual(["failed"]);
  expect(await talk(port)).toBe("ECONNREFUSED");
});
