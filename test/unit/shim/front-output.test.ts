/** What the native front makes of the broker's messages on GET /v1/stream, right ones and wrong ones. */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { FrontPlace, residentKb, type Serve } from "../../support/front/front-place.ts";
import { BINARY, frame, PING, PONG, TEXT } from "../../support/front/stream-server.ts";

const place = new FrontPlace();
afterAll(() => place.remove());
afterEach(() => place.stopServing());

test("a broker that is too old for the request is left to Node, and any other refusal is printed", async () => {
  const refusing = (message: string): Serve =>
    async function (call) {
      call.accept();
      await call.request();
      call.text({ type: "error", error: { code: "invalid_request", message, hint: "Look" } });
    };
  const old = await place.runs(refusing("Unknown field 'outputs' (did you mean 'output'?)"));
  expect([old.stdout.toString(), old.stderr]).toEqual([expect.stringMatching(/^Node: exec/), ""]);
  const other = await place.runs(refusing("Field 'cwd' must be an absolute path"));
  expect([other.code, other.stdout.toString()]).toEqual([125, ""]);
  expect(other.stderr).toContain("Field 'cwd' must be");
});

describe("a command's output", () => {
  test("goes to the two standard outputs byte by byte, and the exit code is the command's", async () => {
    const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const { code, stdout, stderr } = await place.runs(async (call) => {
      await call.start();
      call.output(all);
      call.output("to stderr\n", 2);
      call.output("");
      call.exit(7);
    });
    expect({ code, stderr }).toEqual({ code: 7, stderr: "to stderr\n" });
    expect(stdout.equals(all)).toBe(true);
  });

  test("is the same when every byte comes alone, in fragments, with a ping between them, which is answered", async () => {
    const parts = [
      frame(BINARY, Buffer.from("\u0001ab"), BINARY),
      frame(PING, Buffer.from("still there?")),
      frame(0, Buffer.alloc(0), 0),
      frame(0, Buffer.from("cd"), 0x80),
      frame(BINARY, Buffer.alloc(0), BINARY),
      frame(0, Buffer.from("\u0002e"), 0x80),
    ];
    const { code, stdout, stderr } = await place.runs(async (call) => {
      await call.start();
      call.socket.setNoDelay(true);
      for (const byte of Buffer.concat(parts)) {
        call.socket.write(Buffer.of(byte));
        await sleep(1);
      }
      await call.until(() => call.frames.some(({ opcode }) => opcode === PONG));
      expect(call.frames.find(({ opcode }) => opcode === PONG)?.payload.toString()).toBe("still there?");
      call.exit(0);
    });
    expect({ code, stdout: stdout.toString(), stderr }).toEqual({ code: 0, stdout: "abcd", stderr: "e" });
  });

  test("of a channel without a number of its own is left out, as is a text of an unknown type", async () => {
    const { stdout, stderr, code } = await place.runs(async (call) => {
      await call.start();
      call.output("nobody's", 9);
      call.text({ type: "telemetry", exit: 9 });
      call.output("ours");
      call.exit(0);
    });
    expect({ code, stdout: stdout.toString(), stderr }).toEqual({ code: 0, stdout: "ours", stderr: "" });
  });

  test("that nobody reads waits in the broker: the front takes a bounded part", async () => {
    let taken = 0;
    const chunk = Buffer.alloc(65_536, "x");
    await place.serve(async (call) => {
      await call.start();
      while (call.output(chunk) || (await call.untilDrained())) taken += chunk.length;
    });
    const child = place.start(["exec", "--", "yes"]);
    child.stdout?.pause();
    await sleep(1000);
    const before = taken;
    await sleep(300);
    expect(taken).toBe(before);
    expect(taken).toBeLessThan(4 * 1024 * 1024);
    expect(residentKb(child.pid)).toBeLessThan(4096);
    child.kill("SIGKILL");
    await once(child, "close");
  });

  test("whose reader has gone ends the front by SIGPIPE and closes the connection", async () => {
    await place.serve(async (call) => {
      await call.start();
      while (!call.closed) {
        call.output("y\n".repeat(1000));
        await sleep(1);
      }
    });
    const child = place.start(["exec", "--", "yes"]);
    child.stdout?.once("data", () => child.stdout?.destroy());
    const [code, signal] = await once(child, "exit");
    expect([code, signal]).toEqual([null, "SIGPIPE"]);
    await place.calls[0]?.untilClosed();
  });
});

describe("sentences", () => {
  test("stand behind the output, each with its prefix, harmless on a terminal", async () => {
    const lines = ["plain – sentence", "\u001b[2Jcleared\nforged: line", "\u0000\ud800\u200b"];
    const { stderr } = await place.runs(async (call) => {
      await call.start();
      call.output("last output\n", 2);
      call.exit(0, { lines });
    });
    expect(stderr).toBe(
      "last output\nsubstrate: plain – sentence\nsubstrate: \\x1b[2Jcleared\\x0aforged: line\nsubstrate: \\x00\\u{d800}\\u{200b}\n",
    );
  });

  test.each([
    [
      "a member of a member",
      '{"x":{"type":"exit","exit":9,"lines":["no"]},"type":"exit","exit":3,"lines":["yes"]}',
    ],
    ["a string", '{"x":"\\",\\"exit\\":9,\\"","type":"exit","exit":3,"lines":["yes"]}'],
    ["an escaped name", '{"\\u0074ype":"\\u0065xit","ex\\u0069t":3,"lines":["y\\u0065s"]}'],
    ["blanks", ' {\t"type" :\n"exit" , "exit":\r3 , "lines" : [ "yes" , {"no":[1]} ] } '],
    [
      "two members of one name",
      '{"type":"error","type":"exit","exit":9,"exit":3,"lines":["no"],"lines":["yes"]}',
    ],
  ])("are read from the message's own members, whatever %s says", async (_what, text) => {
    const { code, stderr } = await place.runs(async (call) => {
      await call.start();
      call.text(text);
    });
    expect({ code, stderr }).toEqual({ code: 3, stderr: "substrate: yes\n" });
  });

  test.each([
    ['{"type":"exit","exit":0', "half a message"],
    ['{"type":"exit","exit":01}', "a wrong number"],
    ['{"type":"exit","exit":0,}', "a comma too many"],
    ['{"type":"exit","exit":0} x', "something behind it"],
    ['{"type":"exit","exit":"\\x"}', "a wrong escape"],
    ['{"type":"exit","exit":0,"a":"\n"}', "a line end in a string"],
    [`{"type":"exit","exit":0,"a":${"[".repeat(65)}${"]".repeat(65)}}`, "too many levels"],
    ['{"type":"exit"}', "no exit code"],
    ['{"type":"exit","exit":1e2}', "an exit code in another spelling"],
    ['{"type":"exit","exit":256}', "an exit code that is none"],
  ])("%s is an answer that nobody can read: %s", async (text) => {
    const { code, stderr } = await place.runs(async (call) => {
      await call.start();
      call.text(text);
    });
    expect([code, stderr]).toEqual([
      125,
      expect.stringMatching(/^substrate: The broker's answer is not JSON: .*\n$/),
    ]);
  });
});

describe("a refusal", () => {
  const ERROR = { code: "internal", message: "It \u001b broke", hint: "Mend\nit" };
  const SAID = "substrate: It \\x1b broke\n  Mend\\x0ait\n";

  test.each([
    [{}, 125],
    [{ code: "policy_denied" }, 126],
    [{ code: "approval_required" }, 126],
    [{ code: "approval_denied" }, 126],
    [{ code: "scope_denied" }, 126],
    [{ code: "budget_exceeded" }, 126],
    [{ code: "isolation_unavailable" }, 125],
    [{ code: "policy_denied", exit: 3 }, 3],
    [{ code: "internal", exit: 126 }, 126],
  ])("%j ends with %i, as message or as answer of HTTP, and prints message and hint", async (more, exit) => {
    const error = { ...ERROR, ...more };
    const asMessage = await place.runs((call) => {
      call.accept();
      call.text({ type: "error", error });
    });
    expect(asMessage).toMatchObject({ code: exit, stderr: SAID });
    const asAnswer = await place.runs((call) => call.answer(403, JSON.stringify({ error })));
    expect(asAnswer).toMatchObject({ code: exit, stderr: SAID });
  });

  test("takes nothing from standard input", async () => {
    await place.serve(async (call) => {
      call.accept();
      await call.request();
      await sleep(200);
      expect(call.frames.length).toBe(1);
      call.text({ type: "error", error: ERROR });
    });
    expect(await place.run(["exec", "--", "cat"], { stdin: "secret" })).toMatchObject({ code: 125 });
  });
});

describe("a connection that ends too soon", () => {
  const GONE =
    "substrate: The broker ended before it replied. 'substrate broker logs' shows its last messages, 'substrate broker start' starts it again\n";

  test.each<[string, Serve]>([
    ["at once", (call) => void call.socket.destroy()],
    ["in its first line", (call) => void call.socket.end("HTTP/1.1 1")],
    ["after its head", (call) => (call.accept(), void call.socket.end())],
    ["with a close", (call) => (call.accept(), void call.socket.end(frame(8, Buffer.of(3, 243))))],
    [
      "in the middle of the output",
      async (call) => void ((await call.start()) && call.socket.end(Buffer.of(0x82, 100, 1, 65))),
    ],
  ])("%s is said, with the exit code of a failure", async (_when, how) => {
    const { code, stderr } = await place.runs(how);
    expect([code, stderr]).toEqual([125, GONE]);
  });

  test.each<[string, Buffer]>([
    ["a masked frame", Buffer.of(0x81, 0x82, 0, 0, 0, 0, 123, 125)],
    ["a reserved bit", Buffer.of(0xc1, 2, 123, 125)],
    ["an unknown kind of frame", Buffer.of(0x83, 0)],
    ["a continuation of nothing", Buffer.of(0x80, 0)],
    ["a message inside a message", Buffer.of(0x02, 1, 1, 0x82, 1, 1)],
    ["a ping in fragments", Buffer.of(0x09, 0)],
    ["a long ping", Buffer.concat([Buffer.of(0x89, 126, 0, 126), Buffer.alloc(126)])],
  ])("is what %s becomes", async (_what, bytes) => {
    const { code } = await place.runs(async (call) => {
      await call.start();
      call.socket.write(bytes);
      await call.untilClosed();
    });
    expect(code).toBe(125);
  });

  test("is what an answer 101 of no WebSocket server becomes", async () => {
    const { code } = await place.runs(
      (call) => void call.socket.write("HTTP/1.1 101 Yes\r\nupgrade: websocket\r\n\r\n"),
    );
    expect(code).toBe(125);
  });

  test("is what a text without end becomes, after 16 MiB", async () => {
    const { code, stderr } = await place.runs(async (call) => {
      await call.start();
      call.socket.write(frame(TEXT, Buffer.from('{"a":"'), TEXT));
      for (let sent = 0; sent < 20 && !call.closed; sent++) {
        if (!call.socket.write(frame(0, Buffer.alloc(1 << 20, "x"), 0))) await call.untilDrained();
      }
    });
    expect([code, stderr]).toEqual([125, "substrate: The broker's answer is longer than 16 MiB\n"]);
  });
});
