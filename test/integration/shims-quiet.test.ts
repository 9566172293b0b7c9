/** Shims whose broker is there and hangs. */
import { mkdirSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Ended, actors, currentUser, runAs } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { pathWithShims, SHIM_POLICY, toolFor } from "../support/broker/shims.ts";

describe.each(actors().slice(0, 1))("a shim, as $kind", (actor) => {
  let broker: TestBroker;
  let bin = "";
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: SHIM_POLICY },
    });
    bin = await toolFor(broker);
  });
  afterAll(() => broker.stop());

  /** As whoever serves the socket. */
  function started(words: readonly string[], home: string): Promise<Ended> {
    const env = { PATH: pathWithShims(broker, bin), SUBSTRATE_HOME: home };
    return runAs(currentUser(), words, { cwd: broker.project, env, signal: AbortSignal.timeout(30_000) });
  }

  test.each([
    ["takes nothing more than a socket holds", () => undefined],
    ["sends its answer a byte a second", drip],
  ])(
    "whose broker %s is a no after some seconds",
    async (_how, serve) => {
      const home = join(broker.folder, "hanging");
      mkdirSync(join(home, "sock"), { recursive: true });
      const server = await listening(join(home, "sock/agent.sock"), serve);
      try {
        const long = Array.from({ length: 8 }, () => "x".repeat(100_000));
        const { code, stderr } = await started([join(broker.home, "shims/tool"), ...long], home);
        expect([code, stderr]).toEqual([126, expect.stringContaining("the broker did not answer")]);
      } finally {
        server.close();
      }
    },
    60_000,
  );
});

function drip(socket: Socket): void {
  socket.resume();
  const timer = setInterval(() => socket.write("H"), 1000);
  socket.once("close", () => clearInterval(timer)).on("error", () => undefined);
}

function listening(path: string, serve: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    // The shim goes away in the middle.
    socket.on("error", () => undefined);
    serve(socket);
  });
  return new Promise((resolve) => server.listen(path, () => resolve(server)));
}
