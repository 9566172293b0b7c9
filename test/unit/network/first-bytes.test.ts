import { describe, expect, test } from "vitest";
import { FirstBytesReader, MAX_FIRST_BYTES } from "../../../broker/network/first-bytes.ts";
import { ended, NAME, read, readByBytes, spell } from "../../support/network/hellos.ts";

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

describe("what is neither", () => {
  test.each([
    ["SSH", "SSH-2.0-OpenSSH_9.2\r\n"],
    ["SMTP", "EHLO client.example\r\n"],
    ["Redis", "*1\r\n$4\r\nPING\r\n"],
    ["git", "0032git-upload-pack /project.git\0host=evil.example\0"],
    ["PostgreSQL", "\0\0\0\x08\x04\xd2\x16\x2f"],
    ["RTSP", "OPTIONS rtsp://evil.example/ RTSP/1.0\r\n"],
    ["a lone record type", "\x16\x01"],
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
