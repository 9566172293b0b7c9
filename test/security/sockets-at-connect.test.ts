import { existsSync, linkSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Answer } from "../../api/client/client.ts";
import { actors, runAs } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { buildProgram } from "../support/programs/programs.ts";
import { HostListener, SOCKETS } from "../support/programs/sockets.ts";

const REFUSED = "111\n"; // ECONNREFUSED

type Case = {
  readonly what: string;
  readonly bind: readonly string[];
  /** What the client names, relative to the project. */
  readonly name: string;
  readonly then?: (project: string) => void;
};

const CASES: readonly Case[] = [
  {
    what: "bound by a relative path",
    bind: ["stream", "relative.sock"],
    name: "relative.sock",
  },
  {
    what: "renamed after it was bound",
    bind: ["stream", "before.sock"],
    name: "after.sock",
    then: (project) => renameSync(join(project, "before.sock"), join(project, "after.sock")),
  },
  {
    what: "with a line end in its name",
    bind: ["stream", "two\nlines.sock"],
    name: "two\nlines.sock",
  },
  {
    what: "of another network namespace",
    bind: ["stream", "space.sock", "netns"],
    name: "space.sock",
  },
  {
    what: "under a second name, a hard link",
    bind: ["stream", "first.sock"],
    name: "second.sock",
    then: (project) => linkSync(join(project, "first.sock"), join(project, "second.sock")),
  },
  {
    what: "through a symbolic link",
    bind: ["stream", "linked.sock"],
    name: "link",
    then: (project) => symlinkSync("linked.sock", join(project, "link")),
  },
  {
    what: "of packets",
    bind: ["seqpacket", "packets.sock"],
    name: "packets.sock",
  },
  {
    what: "of datagrams",
    bind: ["dgram", "datagrams.sock"],
    name: "datagrams.sock",
  },
];

describe.each(actors())("Unix sockets of the host in the project, as $kind", (actor) => {
  let broker: TestBroker;
  const listeners: HostListener[] = [];
  const listen = async (words: readonly string[]): Promise<HostListener> => {
    const made = await HostListener.start(actor, broker.project, join(broker.project, "sock"), words);
    listeners.push(made);
    return made;
  };
  const restart = (): Promise<Answer> =>
    broker.operator("POST", "/v1/world/restart", {
      agent_id: "test",
      cwd: broker.project,
    });
  const run = async (argv: readonly string[]): Promise<string> => (await broker.run({ argv })).stdout;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\nmode: enforce\n" },
    });
    buildProgram(broker, "sock", SOCKETS);
  });
  afterAll(async () => {
    for (const listener of listeners) listener.close();
    await broker.stop();
  });

  test.each(CASES)("one $what is not reached, warm or new; on the host it is", async (each) => {
    const [type = "stream"] = each.bind;
    await run(["true"]);
    const host = await listen(each.bind);
    each.then?.(broker.project);
    const absolute = join(broker.project, each.name);
    const names = [each.name, absolute, `/proc/self/root${absolute}`, `/proc/self/cwd/${each.name}`];
    const dial = async (): Promise<void> => {
      for (const name of names) expect(await run(["./sock", "dial", type, name, "connect"])).toBe(REFUSED);
      expect(await run(["./sock", "dial", type, each.name, "nonblock"])).toBe(REFUSED);
      expect(await run(["./sock", "at", type, ".", each.name])).toBe(REFUSED);
      if (type === "dgram") expect(await run(["./sock", "dial", type, each.name, "sendto"])).toBe(REFUSED);
    };
    await dial();
    expect((await restart()).status).toBe(200);
    await dial();
    expect(host.came).toBe(0);
    const twin = await runAs(actor, ["./sock", "dial", type, each.name, "connect"], { cwd: broker.project });
    expect(twin.stdout).toBe("ok\n");
    await expect.poll(() => host.came).toBe(1);
  });

  test("a refused one is told as a violation of its command", async () => {
    await listen(["stream", "told.sock"]);
    const { span_id: span } = await broker.run({
      argv: ["./sock", "dial", "stream", "told.sock", "connect"],
    });
    const told = broker
      .spans()
      .filter((line) => line.parent_span === span && line.event_type === "violation");
    expect(JSON.stringify(told)).toContain("told.sock");
  });

  test("threads that swap the address and the descriptor do not reach one, and their world goes on", async () => {
    const host = await listen(["stream", "./hst-race.sock"]);
    expect(await run(["./sock", "race", "./hst-race.sock", "3000"])).toBe("own\n");
    expect(host.came).toBe(0);
    expect(await run(["echo", "here"])).toBe("here\n");
  });

  test("a blocking connect to a full queue waits, holds nobody else, and goes on when there is room", async () => {
    const kept = await broker.post({
      argv: ["./sock", "full", "./full.sock", "3000"],
      background: "keep",
    });
    expect(kept.status).toBe(200);
    const waiting = broker.run({
      argv: ["./sock", "dial", "stream", "./full.sock", "connect"],
    });
    const started = performance.now();
    expect(await run(["./sock", "dial", "stream", "./full.sock", "nonblock"])).toBe("11\n"); // EAGAIN
    expect(performance.now() - started).toBeLessThan(1500);
    expect((await waiting).stdout).toBe("ok\n");
  });

  test("threads that take O_NONBLOCK back do not hold PID 1: other commands and the end of theirs go on", async () => {
    const held = broker.run({
      argv: ["./sock", "hold", "./held.sock", "2000"],
    });
    await expect.poll(() => existsSync(join(broker.project, "held.sock"))).toBe(true);
    for (let turn = 0; turn < 5; turn += 1) expect(await run(["echo", "here"])).toBe("here\n");
    expect((await held).stdout).toBe("held\n");
    const left = broker.run({
      argv: ["./sock", "hold", "./left.sock", "60000"],
      timeout_ms: 1000,
    });
    expect((await left).timed_out).toBe(true);
  });

  test("a world starts, whatever text a program of the host has bound", async () => {
    const up = broker.project
      .split("/")
      .slice(1)
      .map(() => "..")
      .join("/");
    // Short: all of it must fit into the 107 bytes of a socket's name.
    const outside = `/tmp/sb-${process.pid}-${actor.uid}`;
    const host = await listen(["dgram", `${broker.project}/${up}${outside}`]);
    try {
      expect((await restart()).status).toBe(200);
      expect(await run(["echo", "here"])).toBe("here\n");
      expect(host.came).toBe(0);
    } finally {
      rmSync(outside);
    }
  });

  test("addresses of other families, and abstract ones, are dialled as ever", async () => {
    const inside = `
      const net = require("node:net");
      const dial = (where) => new Promise((resolve) => {
        const socket = net.connect(where, () => { socket.end(); resolve("ok"); });
        socket.on("error", ({ code }) => resolve(code));
      });
      const serve = (where) => new Promise((resolve) => {
        const server = net.createServer((socket) => socket.end()).listen(where, () => resolve(server));
      });
      (async () => {
        const [tcp, abstract] = [await serve({ port: 0, host: "127.0.0.1" }), await serve("\\0substrate-own")];
        const port = tcp.address().port;
        console.log(await dial({ port, host: "127.0.0.1" }), await dial("\\0substrate-own"), await dial({ port: 1, host: "127.0.0.1" }));
        tcp.close(); abstract.close();
      })();`;
    expect(await run([process.execPath, "-e", inside])).toBe("ok ok ECONNREFUSED\n");
    expect(await run(["./sock", "blocking", "0", "0"])).toBe("ok 111\n");
  });

  test.each(["stream", "seqpacket", "dgram"])(
    "a %s server that a command started is reached by the next command, in the project and in /tmp",
    async (type) => {
      for (const path of [`./own-${type}.sock`, `/tmp/own-${type}.sock`]) {
        const cmd = `./sock listen ${type} ${path} > own-${type}.log & while ! grep -q up own-${type}.log; do sleep 0.02; done`;
        await broker.run({ cmd, background: "keep" });
        expect(await run(["./sock", "dial", type, path, "connect"])).toBe("ok\n");
        if (type === "dgram") {
          expect(await run(["./sock", "dial", type, path, "sendto"])).toBe("ok\n");
          expect(await run(["./sock", "dial", type, path, "sendmsg"])).toBe("ok\n");
        }
        const came = (): Promise<string> => run(["grep", "-c", "came", `own-${type}.log`]);
        await expect.poll(came).toBe(type === "dgram" ? "3\n" : "1\n");
      }
    },
  );
});
