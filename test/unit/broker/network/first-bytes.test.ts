import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { allowanceOf } from "../../../../broker/network/allowance.ts";
import { Bound } from "../../../../broker/network/bound.ts";
import { Egress } from "../../../../broker/network/egress.ts";
import { FirstBytesReader, MAX_FIRST_BYTES } from "../../../../broker/network/first-bytes.ts";
import {
  NAME,
  ended,
  helloMessage,
  read,
  readByBytes,
  realHello,
  records,
  sized,
  spell,
  tls,
} from "../../../support/network/hellos.ts";
import { joiner, until } from "../../../support/network/joined.ts";

describe("a request", () => {
  test.each([
    ["a plain one", `GET / HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`],
    [
      "with a port, in another case, with blanks",
      `GET / HTTP/1.1\r\nA: b\r\nhOST:\t GOOD.example.:8080 \r\n\r\n`,
    ],
    ["with bare line feeds", `GET / HTTP/1.0\nHost: ${NAME}\n\n`],
    ["after empty lines", `\r\n\r\nGET / HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`],
    ["folded", `GET / HTTP/1.1\r\nHost:\r\n ${NAME}\r\n\r\n`],
    ["with an absolute target", `GET http://${NAME}:80/x HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`],
    ["without a host", "GET / HTTP/1.0\r\nAccept: */*\r\n\r\n"],
    ["with an empty host", "GET / HTTP/1.1\r\nHost:\r\n\r\n"],
    ["with a body that names another", `POST / HTTP/1.1\r\nHost: ${NAME}\r\n\r\nHost: evil.example\r\n`],
    [
      "with another's name elsewhere",
      `GET /?u=http://evil.example/ HTTP/1.1\r\nX-Host: evil.example\r\nHost: ${NAME}\r\n\r\n`,
    ],
  ])("%s agrees", (_, text) => {
    expect(read(Buffer.from(text, "latin1"))).toEqual({ kind: "agrees" });
    expect(readByBytes(Buffer.from(text, "latin1"))).toEqual({ kind: "agrees" });
  });

  test.each([
    ["a plain one", "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "evil.example"],
    ["before its end", "GET / HTTP/1.1\r\nHost: evil.example\r\nA: b\r\nX", "evil.example"],
    [
      "of two hosts the second",
      `GET / HTTP/1.1\r\nHost: ${NAME}\r\nhost: evil.example\r\n\r\n`,
      "evil.example",
    ],
    [
      "of two hosts the first",
      `GET / HTTP/1.1\r\nHost: evil.example\r\nHost: ${NAME}\r\n\r\n`,
      "evil.example",
    ],
    ["with an absolute target", `GET http://evil.example/ HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`, "evil.example"],
    ["with a user before it", `GET http://${NAME}@evil.example/ HTTP/1.1\r\n\r\n`, `${NAME}@evil.example`],
    ["with a backslash", `GET http://evil.example\\@${NAME}/ HTTP/1.1\r\n\r\n`, "evil.example"],
    ["of HTTP/0.9", "GET http://evil.example/\r\n", "evil.example"],
    ["to a proxy", "CONNECT evil.example:443 HTTP/1.1\r\n\r\n", "evil.example"],
    ["with a method of its own", "x-any / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "evil.example"],
    ["after blanks", " \tGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "evil.example"],
    ["with a blank before the colon", "GET / HTTP/1.1\r\nHost : evil.example\r\n\r\n", "evil.example"],
    [
      "in what some take for a folded line",
      "GET / HTTP/1.1\r\nA: b\r\n Host: evil.example\r\n\r\n",
      "evil.example",
    ],
    ["folded", "GET / HTTP/1.1\r\nHost:\r\n\tevil.example\r\n\r\n", "evil.example"],
    [
      "folded after the right name",
      `GET / HTTP/1.1\r\nHost: ${NAME}\r\n .evil.example\r\n\r\n`,
      `${NAME} .evil.example`,
    ],
    ["an address", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "[::1]"],
    ["a list", `GET / HTTP/1.1\r\nHost: ${NAME}, evil.example\r\n\r\n`, `${NAME}, evil.example`],
  ])("%s disagrees", (_, text, named) => {
    expect(read(Buffer.from(text, "latin1"))).toEqual({ kind: "disagrees", protocol: "http", named });
    expect(readByBytes(Buffer.from(text, "latin1"))).toEqual({ kind: "disagrees", protocol: "http", named });
  });

  test.each([
    ["a bare CR in a line", `GET / HTTP/1.1\r\nA: b\rHost: evil.example\r\n\r\n`],
    ["a bare CR within the host", `GET / HTTP/1.1\r\nHost: \r${NAME}\r\n\r\n`],
    ["a bare CR in the request line", `GET\r/ HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`],
    ["an end that only some servers see", `GET / HTTP/1.1\r\nA: b\r\n\nHost: evil.example\r\n\r\n`],
    ["a NUL in the request line", `GET /\0 HTTP/1.1\r\nHost: evil.example\r\n\r\n`],
    ["more bytes than are read", `GET / HTTP/1.1\r\nA: ${"b".repeat(MAX_FIRST_BYTES)}\r\n\r\n`],
  ])("with %s is cut", (_, text) => {
    expect(read(Buffer.from(text, "latin1"))).toMatchObject({ kind: "malformed", protocol: "http" });
    expect(readByBytes(Buffer.from(text, "latin1"))).toMatchObject({ kind: "malformed", protocol: "http" });
  });

  test("that its client cut off counts as far as it came", () => {
    expect(ended("GET / HTTP/1.1\r\nHost: evil.example")).toEqual({
      kind: "disagrees",
      protocol: "http",
      named: "evil.example",
    });
    expect(ended(`GET / HTTP/1.1\r\nHost: ${NAME}\r\n`)).toEqual({ kind: "agrees" });
  });
});

test("another host is shown in letters that a terminal and a trace can take, however it was written", () => {
  const hosts = ["\u001b[31mevil.example", "a".repeat(60_000), "\u00fcvil.example"];
  for (const host of hosts) {
    const { kind, named = "" } = read(Buffer.from(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`, "latin1")) as {
      kind: string;
      named?: string;
    };
    expect(kind).toBe("disagrees");
    expect(named).toMatch(/^[\x20-\x7e]{12,254}$/);
  }
});

test.each([
  ["2.1", [2, 1]],
  ["0.3", [0, 3]],
  ["4.3", [4, 3]],
  ["15.3", [15, 3]],
])("a hello in a record of version %s passes for no other protocol: Java and Go take it", (_, version) => {
  const hello = records(helloMessage({ names: ["evil.example"] }));
  hello.set(version, 1);
  for (const found of [read(hello), readByBytes(hello)])
    expect(found).toMatchObject({ kind: "malformed", protocol: "tls" });
});

describe("what is neither", () => {
  test.each([
    ["SSH", "SSH-2.0-OpenSSH_9.2\r\n"],
    ["SMTP", "EHLO client.example\r\n"],
    ["Redis", "*1\r\n$4\r\nPING\r\n"],
    ["git", "0032git-upload-pack /project.git\0host=evil.example\0"],
    ["PostgreSQL", "\0\0\0\x08\x04\xd2\x16\x2f"],
    ["RTSP", `OPTIONS rtsp://${NAME}/ RTSP/1.0\r\n`],
    ["a lone record type", "\x16\x01abcd"],
    ["a record of another version without a hello", "\x16\x02\x01\x00\x10\x02"],
    ["bytes beyond ASCII", "\x80\x81\x82\x83"],
  ])("is unreadable: %s", (_, text) => {
    expect(read(Buffer.from(text, "latin1"))).toEqual({ kind: "unreadable" });
    expect(readByBytes(Buffer.from(text, "latin1"))).toEqual({ kind: "unreadable" });
  });

  test("may pass while it is one word, and is read on behind it", () => {
    const reader = new FirstBytesReader(NAME, spell);
    expect(reader.push(Buffer.from("ruok"))).toEqual({ kind: "undecided" });
    expect(reader.isHarmless).toBe(true);
    expect(reader.push(Buffer.from(" / HTTP/1.1\r\nHost: evil.example\r\n"))).toEqual({ kind: "undecided" });
    expect(reader.isHarmless).toBe(false);
    expect(reader.push(Buffer.from("\r\n")).kind).toBe("disagrees");
  });

  test("ends as unreadable when its client says no more", () => {
    expect(ended("ruok")).toEqual({ kind: "unreadable" });
    expect(ended("")).toEqual({ kind: "unreadable" });
  });
});

/** RFC 9113 §3.4. */
const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

describe("HTTP/2 without TLS", () => {
  test.each([
    ["the preface alone", PREFACE],
    ["settings behind it", `${PREFACE}\0\0\0\x04\0\0\0\0\0`],
    ["a name behind it, which nobody reads", `${PREFACE}\0\0\x0e\x01\x04\0\0\0\x01\x41\x0cevil.example`],
  ])("passes and is told apart: %s", (_, text) => {
    expect(read(Buffer.from(text, "latin1"))).toEqual({ kind: "http2" });
    expect(readByBytes(Buffer.from(text, "latin1"))).toEqual({ kind: "http2" });
  });

  test("is not known before its preface is whole", () => {
    const reader = new FirstBytesReader(NAME, spell);
    expect(reader.push(Buffer.from(PREFACE.slice(0, -1)))).toEqual({ kind: "undecided" });
    expect(reader.push(Buffer.from(PREFACE.slice(-1)))).toEqual({ kind: "http2" });
    expect(reader.isSettled).toBe(true);
  });

  test.each([
    ["a header of HTTP/1 in the preface", "PRI * HTTP/2.0\r\nHost: evil.example\r\n\r\n"],
    ["a blank line before the preface", `\r\n${PREFACE}`],
    ["a preface with another end", "PRI * HTTP/2.0\r\n\r\nSX\r\n\r\n"],
    ["a preface with bare line feeds", "PRI * HTTP/2.0\n\nSM\n\n"],
    ["a request of HTTP/1.1 with its method", `PRI / HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`],
  ])("is not what only looks like it, which is cut: %s", (_, text) => {
    const cut = { kind: "malformed", protocol: "http" };
    expect(read(Buffer.from(text, "latin1"))).toMatchObject(cut);
    expect(readByBytes(Buffer.from(text, "latin1"))).toMatchObject(cut);
  });
});

describe("a ClientHello", () => {
  test("of a real client agrees with its own name and with no other", async () => {
    const hello = await realHello(NAME);
    expect(read(hello)).toEqual({ kind: "agrees" });
    expect(read(await realHello("evil.example"))).toEqual(tls("evil.example"));
  });

  test("is read over the borders of records and segments", () => {
    for (const name of [NAME, "evil.example"]) {
      const hello = records(helloMessage({ names: [name] }), [1, 3, 60]);
      expect(readByBytes(hello)).toEqual(name === NAME ? { kind: "agrees" } : tls(name));
    }
  });

  test("names one host in any case, with a last dot, and beyond ASCII in punycode alone", () => {
    expect(read(records(helloMessage({ names: ["GOOD.Example."] })))).toEqual({ kind: "agrees" });
    expect(read(records(helloMessage({ names: ["xn--bcher-kva.example"] })), "bücher.example")).toEqual({
      kind: "agrees",
    });
    const latin1 = records(helloMessage({ names: ["bücher.example"] }));
    expect(read(latin1, "bücher.example").kind).toBe("disagrees");
  });

  test("without a name agrees, also one without extensions", () => {
    expect(read(records(helloMessage({})))).toEqual({ kind: "agrees" });
    const bare = helloMessage({}).subarray(0, -2);
    bare[3] = (bare[3] ?? 0) - 2;
    expect(read(records(bare))).toEqual({ kind: "agrees" });
  });

  test("with a second name, or a second list of them, does not agree", () => {
    expect(read(records(helloMessage({ names: [NAME, "evil.example"] })))).toEqual(tls("evil.example"));
    const list = sized(2, Buffer.concat([Buffer.of(0), sized(2, Buffer.from("evil.example"))]));
    expect(read(records(helloMessage({ names: [NAME], after: [[0, list]] }))).kind).toBe("malformed");
  });

  test.each([
    "good.example.evil.example",
    "evilgood.example",
    "good.example\0.evil.example",
    " good.example",
    "127.0.0.1",
  ])("for %j disagrees", (name) => {
    expect(read(records(helloMessage({ names: [name] })))).toEqual(tls(name.replace("\0", "?")));
  });

  test("is cut when another record stands before or within it", () => {
    const hello = records(helloMessage({ names: ["evil.example"] }));
    const alert = Buffer.of(21, 3, 1, 0, 2, 1, 100);
    const split = records(helloMessage({ names: [NAME] }), [40]);
    expect(read(Buffer.concat([alert, hello])).kind).toBe("malformed");
    expect(read(Buffer.concat([split.subarray(0, 45), alert, split.subarray(45)])).kind).toBe("malformed");
  });

  test("is cut when it is empty, not whole, too long, no hello, or of SSL 2", () => {
    expect(read(Buffer.of(22, 3, 1, 0, 0)).kind).toBe("malformed");
    expect(read(Buffer.of(22, 3, 1, 0x40, 1)).kind).toBe("malformed");
    expect(read(Buffer.of(22, 3, 1, 0, 4, 1, 1, 0, 1)).kind).toBe("malformed");
    expect(read(Buffer.of(22, 3, 1, 0, 4, 2, 0, 0, 0)).kind).toBe("malformed");
    expect(read(Buffer.of(0x80, 0x2e, 1, 3, 1, 0)).kind).toBe("malformed");
    expect(read(Buffer.of(0x80, 0x2e, 1, 0, 2, 0)).kind).toBe("malformed");
    const reader = new FirstBytesReader(NAME, spell);
    expect(reader.push(records(helloMessage({ names: [NAME] })).subarray(0, 60)).kind).toBe("undecided");
    expect(reader.isHarmless).toBe(false);
    expect(reader.end().kind).toBe("malformed");
  });
});

describe("a second ClientHello, which a server of TLS 1.3 may ask for,", () => {
  const changeCipherSpec = Buffer.of(20, 3, 3, 0, 1, 1);
  const alert = Buffer.of(21, 3, 3, 0, 2, 1, 90);
  const data = Buffer.of(23, 3, 3, 0, 5, 1, 2, 3, 4, 5);
  const first = records(helloMessage({ names: [NAME], after: [[43, Buffer.of(2, 3, 4)]] }));
  const second = (name: string): Buffer => records(helloMessage({ names: [name] }), [50]);

  test.each([
    ["at once", first, []],
    ["behind what servers skip", first, [changeCipherSpec, alert]],
    [
      "behind early data",
      records(
        helloMessage({
          names: [NAME],
          after: [
            [43, Buffer.of(2, 3, 4)],
            [42, Buffer.of()],
          ],
        }),
      ),
      [changeCipherSpec, data, data],
    ],
  ])("must name the same host: %s", (_, hello, between) => {
    for (const name of [NAME, "evil.example"]) {
      const bytes = Buffer.concat([hello, ...between, second(name)]);
      const answer = name === NAME ? { kind: "agrees" } : tls(name);
      expect(read(bytes)).toEqual(answer);
      expect(readByBytes(bytes)).toEqual(answer);
    }
  });

  test("is held back until it is judged, and what stood before it is not", () => {
    const reader = new FirstBytesReader(NAME, spell);
    expect(reader.push(first)).toEqual({ kind: "agrees" });
    expect(reader.push(changeCipherSpec)).toEqual({ kind: "agrees" });
    expect(reader.isSettled).toBe(false);
    expect(reader.push(second("evil.example").subarray(0, 60))).toEqual({ kind: "undecided" });
    expect(reader.push(second("evil.example").subarray(60)).kind).toBe("disagrees");
  });

  test("is waited for no longer once the handshake goes on, or when 1.3 was not offered", () => {
    for (const rest of [data, Buffer.of(22, 3, 3, 0, 1, 16)]) {
      const reader = new FirstBytesReader(NAME, spell);
      expect(reader.push(Buffer.concat([first, changeCipherSpec, rest]))).toEqual({ kind: "agrees" });
      expect(reader.isSettled).toBe(true);
    }
    const reader = new FirstBytesReader(NAME, spell);
    reader.push(records(helloMessage({ names: [NAME] })));
    expect(reader.isSettled).toBe(true);
  });
});

const CONNECTIONS = 20;

/** Each of them begins something that never comes to an end. */
test.each([
  ["a header line", "GET / HTTP/1.1\r\nA: ", 60_000, Buffer.from("b")],
  ["header lines", "GET / HTTP/1.1\r\n", 60_000, Buffer.from("a: b\r\n")],
  ["a ClientHello", "\x16\x03\x01\x40\x00\x01\x00\xf0\x00", 16_000, Buffer.from("b")],
])("%s that comes byte by byte takes little more memory than it has bytes", (_, start, bytes, piece) => {
  const before = used();
  const kept = Array.from({ length: CONNECTIONS }, () =>
    heldAfter(Buffer.from(start, "latin1"), bytes, piece),
  );
  const each = (used() - before) / CONNECTIONS;
  expect(kept.map(({ firstBytes }) => firstBytes.answer.kind)).toEqual(kept.map(() => "undecided"));
  expect(each).toBeLessThan(6 * bytes);
});

test("what a world's connections hold back together is bounded, and free again when it has gone or was cut", async () => {
  const held = new Bound(1000);
  const connect = await joiner();
  const part = `GET / HTTP/1.1\r\nA: ${"a".repeat(600)}`;
  const first = await connect({ firstBytes: new FirstBytesReader(NAME, spell), held });
  first.client.write(part);
  await until(() => first.world.bytesRead === part.length);
  const second = await connect({ firstBytes: new FirstBytesReader(NAME, spell), held });
  second.client.write(part);
  expect((await second.pump.ended).refused?.kind).toBe("malformed");
  first.client.write("\r\n\r\n");
  await until(() => first.pump.egress > part.length);
  const third = await connect({ firstBytes: new FirstBytesReader(NAME, spell), held });
  third.client.write(part);
  await until(() => third.world.bytesRead === part.length);
  expect(held.take(600)).toBe(false);
  third.pump.cut("enough");
  expect(held.take(1000)).toBe(true);
});

/** One connection that has sent so many bytes, each in a buffer of its own, as the kernel gives them. */
function heldAfter(
  start: Buffer,
  bytes: number,
  piece: Buffer,
): { firstBytes: FirstBytesReader; egress: Egress } {
  const firstBytes = new FirstBytesReader(NAME, spell);
  const world = Object.assign(new EventEmitter(), { resume: () => undefined, pause: () => undefined });
  const never = (): never => {
    throw new Error("Nothing was to be decided");
  };
  const egress = new Egress({
    world: world as unknown as Socket,
    upstream: Object.assign(new EventEmitter(), {
      write: () => true,
      writableLength: 0,
    }) as unknown as Socket,
    allowance: allowanceOf([], []),
    firstBytes,
    held: undefined,
    onSent: () => undefined,
    onRefused: never,
    onSpent: never,
    onFailed: never,
  });
  egress.start();
  world.emit("data", start);
  for (let sent = 0; sent < bytes; sent += 1)
    world.emit("data", new Uint8Array([piece[sent % piece.length] ?? 0]));
  return { firstBytes, egress };
}

/** Bytes in use, after everything that is garbage is gone. */
function used(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  return heapUsed + Math.max(external, arrayBuffers);
}
