import { once } from "node:events";
import { mkdtempSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { socketAt } from "../../../../broker/model/host-socket.ts";
import { MAX_MESSAGE, messagesOf } from "../../../../broker/ssh-agent/messages.ts";
import { MAX_CONNECTIONS, SshAgentRelay } from "../../../../broker/ssh-agent/relay.ts";
import { eventually } from "../../../support/broker/broker.ts";
import {
  extension,
  LIST,
  message,
  messagesIn,
  REMOVE_ALL,
  string,
} from "../../../support/programs/ssh-agent-client.ts";

const FAILURE = message(5);

/** Stands for an agent: keeps its connections and what came on each, and answers as it is told. */
class Agent {
  readonly server: Server;
  readonly connections: Socket[] = [];
  readonly requests: Buffer[] = [];

  constructor(answer: (request: Buffer, socket: Socket) => void | Promise<void>) {
    this.server = createServer((socket) => {
      this.connections.push(socket.on("error", () => undefined));
      void this.#serve(socket, answer);
    });
  }

  async #serve(
    socket: Socket,
    answer: (request: Buffer, socket: Socket) => void | Promise<void>,
  ): Promise<void> {
    try {
      for await (const request of messagesOf(socket)) {
        this.requests.push(request);
        await answer(request, socket);
      }
    } catch {
      // The relay broke off.
    }
  }
}

let folder: string;
let relay: SshAgentRelay;
const open: Server[] = [];
const clients: Socket[] = [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "sb-relay-"));
  relay = new SshAgentRelay(join(folder, "relay"));
  relay.server.listen(relay.path);
  await once(relay.server, "listening");
  open.push(relay.server);
});
afterEach(() => {
  relay.close();
  for (const client of clients.splice(0)) client.destroy();
  for (const server of open.splice(0)) server.close();
  rmSync(folder, { recursive: true, force: true });
});

async function agentAt(name: string, answer: ConstructorParameters<typeof Agent>[0]): Promise<Agent> {
  const agent = new Agent(answer);
  agent.server.listen(join(folder, name));
  await once(agent.server, "listening");
  open.push(agent.server);
  return agent;
}

/** Leads the relay to the socket as each command does, and says whether it was found. */
function leadTo(name: string): boolean {
  const found = socketAt(join(folder, name));
  return found !== undefined && relay.leadTo(found) !== undefined;
}

function dialRelay(): Socket {
  const client = connect(relay.path);
  clients.push(client.on("error", () => undefined));
  return client;
}

/** Sends everything, ends its half, and returns what came until the end. */
async function exchange(...sent: readonly Buffer[]): Promise<readonly Buffer[]> {
  const client = dialRelay();
  for (const each of sent) client.write(each);
  client.end();
  return await messagesIn(client);
}

test("answers come in the order of pipelined requests, also where the refused ones need no agent", async () => {
  const agent = await agentAt("agent", async (request, socket) => {
    await sleep(5);
    socket.write(message(14, request));
  });
  leadTo("agent");
  const sign = message(13, string("key"), string("data"));
  const sent = [
    LIST,
    REMOVE_ALL,
    sign,
    message(17),
    extension("query"),
    extension("other"),
    message(22),
    LIST,
  ];
  const answers = [LIST, null, sign, null, extension("query"), null, null, LIST].map((request) =>
    request === null ? FAILURE : message(14, request),
  );
  expect(await exchange(Buffer.concat(sent))).toEqual(answers);
  expect(agent.requests).toEqual([LIST, sign, extension("query"), LIST]);
});

test("one request at a time reaches the agent, and a half-closed client gets its answer", async () => {
  let isBusy = false;
  let overlapped = false;
  await agentAt("agent", async (_, socket) => {
    overlapped ||= isBusy;
    isBusy = true;
    await sleep(20);
    isBusy = false;
    socket.write(message(6));
  });
  leadTo("agent");
  expect(await exchange(LIST, LIST, LIST)).toEqual([message(6), message(6), message(6)]);
  expect(overlapped).toBe(false);
});

test("each client has a connection of its own to the agent, and both end together", async () => {
  const agent = await agentAt("agent", (_, socket) => void socket.write(message(6)));
  leadTo("agent");
  const [one, other] = [dialRelay(), dialRelay()];
  await expect.poll(() => agent.connections.length).toBe(2);
  one.destroy();
  await expect.poll(() => agent.connections.filter(({ closed }) => closed).length).toBe(1);
  const ended = once(other.resume(), "close");
  for (const connection of agent.connections) connection.destroy();
  other.end();
  await ended;
});

test("an agent that ends while nothing is asked ends its client at once", async () => {
  const agent = await agentAt("agent", () => undefined);
  leadTo("agent");
  const client = dialRelay();
  await expect.poll(() => agent.connections.length).toBe(1);
  const ended = once(client.resume(), "end");
  agent.connections[0]?.end();
  await ended;
});

test.each([
  ["an empty message", Buffer.alloc(4)],
  ["a message beyond the bound", Buffer.from([0, 4, 0, 1])],
  ["the words of another protocol", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
])("%s ends the connection, and the agent sees nothing of it", async (_, bytes) => {
  const agent = await agentAt("agent", (__, socket) => void socket.write(message(6)));
  leadTo("agent");
  const client = dialRelay();
  const ended = once(client.resume(), "close");
  client.write(Buffer.concat([bytes, LIST]));
  await ended;
  await expect.poll(() => agent.connections.every(({ closed }) => closed)).toBe(true);
  expect(agent.requests).toEqual([]);
});

test("an agent's reply passes whole up to the bound, and one beyond it ends the connection", async () => {
  const longest = string(Buffer.alloc(MAX_MESSAGE, 12));
  await agentAt(
    "agent",
    ([...request], socket) => void socket.write(request[4] === 11 ? longest : Buffer.from([0, 4, 0, 1, 14])),
  );
  leadTo("agent");
  expect(await exchange(LIST)).toEqual([longest]);
  expect(await exchange(message(13))).toEqual([]);
});

test("a client that reads nothing is not read, so a flood of refused requests takes no memory", async () => {
  await agentAt("agent", () => undefined);
  leadTo("agent");
  const client = dialRelay();
  const flood = Buffer.concat(Array.from({ length: 10_000 }, () => REMOVE_ALL));
  let sent = 0;
  const pour = (): void => {
    while (sent < 40_000_000 && client.write(flood)) sent += flood.length;
    sent += flood.length;
    client.once("drain", pour);
  };
  pour();
  let before = -1;
  expect(
    await eventually(async () => {
      const stands = sent === before;
      before = sent;
      await sleep(300);
      return stands;
    }, 20_000),
  ).toBe(true);
  expect(sent).toBeLessThan(10_000_000);
});

test("connections beyond the bound are closed, and room is made by each that ends", async () => {
  const agent = await agentAt("agent", (_, socket) => void socket.write(message(6)));
  leadTo("agent");
  const held = Array.from({ length: MAX_CONNECTIONS }, () => dialRelay().resume());
  await expect.poll(() => agent.connections.length, { timeout: 10_000 }).toBe(MAX_CONNECTIONS);
  expect(await exchange(LIST).catch(() => [])).toEqual([]);
  held[0]?.destroy();
  await expect.poll(async () => (await exchange(LIST).catch(() => [])).length).toBe(1);
});

test("a link that takes the place of the agent's socket leads to no other server", async () => {
  await agentAt("agent", (_, socket) => void socket.write(message(6)));
  const other = await agentAt("other", () => undefined);
  leadTo("agent");
  renameSync(join(folder, "agent"), join(folder, "moved"));
  symlinkSync(join(folder, "other"), join(folder, "agent"));
  expect(await exchange(LIST).catch(() => [])).toEqual([]);
  expect(other.connections).toEqual([]);
  rmSync(join(folder, "agent"));
  renameSync(join(folder, "moved"), join(folder, "agent"));
  leadTo("agent");
  expect(await exchange(LIST)).toEqual([message(6)]);
});

test("without an agent, and after its end, a connection is closed; the next agent at the path is found", async () => {
  expect(await exchange(LIST).catch(() => [])).toEqual([]);
  const first = await agentAt("agent", (_, socket) => void socket.write(message(6)));
  leadTo("agent");
  expect(await exchange(LIST)).toEqual([message(6)]);
  first.server.close();
  await expect.poll(() => socketAt(join(folder, "agent"))).toBeUndefined();
  expect(await exchange(LIST).catch(() => [])).toEqual([]);
  await agentAt("agent", (_, socket) => void socket.write(message(12)));
  expect(leadTo("agent")).toBe(true);
  expect(await exchange(LIST)).toEqual([message(12)]);
});
