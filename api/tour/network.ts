/** The tour's stop about the network: a name refused by the running broker, then a name allowed by a second broker. */
import { createServer, type Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ExecuteReply, Span } from "../../schemas/generated/types.ts";
import { Complaint } from "../cli/terminal/terminal.ts";
import { execute, expect, type Guide, PROFILE, ran, say, show, title, traced } from "./guide.ts";
import { withOwnBroker } from "./own-broker.ts";

/** A name without an owner (RFC 2606 section 2). The refusal needs no DNS question. */
const STRANGER = "collector.example";

const GREETING = "hello from this machine";

/** Time to wait for a connection's span: the broker writes the span at the connection's end, after the command's reply. */
const SPAN_PATIENCE_MS = 5000;

/** Runs the stop. Needs no network: the reached server belongs to the tour. */
export async function network(guide: Guide): Promise<void> {
  title(
    guide,
    "4",
    "Names are the rule: one that no policy allows is unknown, and one that is allowed is reached",
  );
  if (!(await blockedName(guide))) return;
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.end(`${GREETING}\n`);
  });
  let seen = 0;
  server.on("connection", () => {
    seen += 1;
  });
  const port = await listen(server);
  try {
    await withOwnBroker(guide, policyFor(port), async (own) => {
      say(
        guide,
        `a server of the tour listens on this machine's port ${port}, and a second broker, for this one`,
      );
      say(guide, `step, has a policy with: net: { allowed: ["host.internal:${port}"] }`);
      await allowedName(own, port);
      expect(seen === 1, "the server should see one connection");
      await worldsLocalhost(own, port);
      expect(seen === 1, "the server should see no other connection");
    });
  } finally {
    server.close();
  }
}

/** Shows the refused name. False on a host whose worlds have no network; the stop ends there. */
async function blockedName(guide: Guide): Promise<boolean> {
  const reply = ran(guide, await execute(guide, { ...dial(STRANGER, 443), profile: PROFILE }));
  const said = text(reply.stderr_b64);
  show(guide, said);
  expect(reply.exit !== 0, "the name should be refused");
  const isTold = said.includes(`substrate: The name '${STRANGER}'`);
  if (!isTold && reply.isolation.net !== "on") {
    say(guide, `SKIP an allowed connection — net is '${reply.isolation.net}' here`);
    return false;
  }
  expect(isTold, "the command should be told why the name was refused");
  const { violation } = await childOf(guide, reply, "violation");
  expect(violation?.subject === STRANGER, "the refused name should be in the trace");
  say(guide, `violation ${violation?.kind} ${violation?.subject}; no question left this machine`);
  return true;
}

async function allowedName(guide: Guide, port: number): Promise<void> {
  const reply = ran(guide, await execute(guide, dial("host.internal", port)));
  show(guide, text(reply.stdout_b64));
  expect(
    reply.exit === 0 && text(reply.stdout_b64).trim() === GREETING,
    "the allowed connection should reach the server",
  );
  const { connection, usage, duration_ms: ms } = await childOf(guide, reply, "connection");
  const bytes = `${usage?.egress_bytes} bytes out, ${usage?.ingress_bytes} in`;
  say(
    guide,
    `connection ${connection?.host}:${connection?.port}, ${bytes}, ${ms} ms, ${connection?.program}`,
  );
}

/** Dials the server's port at 127.0.0.1 instead of by name: the world has its own localhost. */
async function worldsLocalhost(guide: Guide, port: number): Promise<void> {
  const reply = ran(guide, await execute(guide, dial("127.0.0.1", port)));
  show(guide, text(reply.stderr_b64));
  expect(reply.exit !== 0, "the world's localhost should be its own");
  say(guide, "localhost is the world's own, so the server saw no connection");
}

function dial(host: string, port: number): { readonly cmd: string; readonly shell: string } {
  return { cmd: `exec 3<>/dev/tcp/${host}/${port} && cat <&3`, shell: "bash" };
}

function policyFor(port: number): string {
  return `id: default
name: The network stop of the tour
mode: enforce
net:
  allowed: ["host.internal:${port}"]
`;
}

async function childOf(guide: Guide, reply: ExecuteReply, type: Span["event_type"]): Promise<Span> {
  for (const end = Date.now() + SPAN_PATIENCE_MS; ; await sleep(25)) {
    const { children } = await traced(guide, reply.span_id);
    const child = children.find(({ event_type: of }) => of === type);
    if (child !== undefined) return child;
    expect(Date.now() < end, `the command should have a ${type} in the trace`);
  }
}

function text(base64: string): string {
  return Buffer.from(base64, "base64").toString("utf8");
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      if (address === null || typeof address === "string")
        reject(new Complaint("The tour cannot open a port on 127.0.0.1"));
      else resolve(address.port);
    });
  });
}
