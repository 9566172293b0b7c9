/** Requests that only some servers take for HTTP, and the protocols that begin in the same way. */
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { FirstBytesReader, MAX_FIRST_BYTES } from "../../../../broker/network/first-bytes.ts";
import { NAME, ended, read, readByBytes, spell } from "../../../support/network/hellos.ts";
import { joiner } from "../../../support/network/joined.ts";

const EVIL = { kind: "disagrees", protocol: "http", named: "evil.example" };
const OPAQUE = { kind: "unreadable" };

describe("a request that only some servers take for HTTP, by", () => {
  test.each([
    ["a method of 65 letters", `${"A".repeat(65)} / HTTP/1.1`],
    ["a method of 20,000 letters", `${"A".repeat(20_000)} / HTTP/1.1`],
    ["RTSP's version", "GET / RTSP/1.1"],
    ["RTSP's version and method", "OPTIONS * RTSP/1.0"],
    ["ICE's version and method", "SOURCE / ICE/1.1"],
    ["a version of a wrong shape", "GET / HTTP/+1.1"],
    ["no version", "GET /"],
    ["no version, and a target without a slash", "GET index.html"],
    ["no version, behind another method", "POST /x"],
    ["no version, and a blank", "GET / "],
    ["a no-break space before it", "\xa0GET / HTTP/1.1"],
    ["a file separator before it", "\x1cGET / HTTP/1.1"],
    ["next lines between its words", "GET\x85/\x85HTTP/1.1"],
    ["a unit separator behind its method", "GET\x1f/ HTTP/1.1"],
    ["a no-break space before its version", "GET /\xa0HTTP/1.1"],
    ["separators and no version", "\x1dGET\x1e/"],
    ["a byte before its method that is none of a word", "@GET / HTTP/1.1"],
    ["such a byte within its method", "G,ET / HTTP/1.1"],
    ["a NUL before its method", "\0GET / HTTP/1.1"],
    ["a record type before its method", "\x16GET / HTTP/1.1"],
    ["a byte beyond ASCII in its method", "GET\xe9 / HTTP/1.1"],
    ["a DEL before its method, and no further blank", "\x7fGET / HTTP/1.1"],
  ])("%s, is compared like any other", (_, line) => {
    for (const header of ["Host: ", "hOST:", "Accept: */*\r\nHost : ", "A: b\r\n Host: "]) {
      const wrong = Buffer.from(`${line}\r\n${header}evil.example\r\n\r\n`, "latin1");
      expect(read(wrong), header).toEqual(EVIL);
      expect(readByBytes(wrong), header).toEqual(EVIL);
      const right = Buffer.from(`${line}\r\n${header}${NAME}\r\n\r\n`, "latin1");
      expect(read(right), header).toEqual({ kind: "agrees" });
      expect(readByBytes(right), header).toEqual({ kind: "agrees" });
    }
  });

  test.each([
    ["bare line feeds", "GET /\nHost: evil.example\n\n"],
    ["a bare CR before its host", "GET /\r\nA: b\rHost: evil.example\r\n\r\n"],
    ["an end that only some servers see", "GET /\r\nA: b\r\n\nHost: evil.example\r\n\r\n"],
    ["a line that is no header before its host", "POST /\r\nfoo bar\r\nHost: evil.example\r\n\r\n"],
    ["a second host", `GET /\r\nHost: ${NAME}\r\nHost: evil.example\r\n\r\n`],
    ["an absolute target", "OPTIONS rtsp://evil.example/ RTSP/1.0\r\n"],
    [
      "more bytes before its host than are held",
      `GET /\r\nA: ${"b".repeat(200_000)}\r\nHost: evil.example\r\n\r\n`,
    ],
  ])("another version or none and %s, disagrees", (_, text) => {
    expect(read(Buffer.from(text, "latin1"))).toEqual(EVIL);
    expect(readByBytes(Buffer.from(text, "latin1"))).toEqual(EVIL);
  });

  test("a folded host, a longer authority, or an end in mid-line, disagrees too", () => {
    expect(read(Buffer.from(`GET /\r\nHost: ${NAME}\r\n .evil.example\r\n\r\n`)).kind).toBe("disagrees");
    expect(read(Buffer.from(`GET http://${NAME}\xa0@evil.example/ RTSP/1.0\r\n`, "latin1")).kind).toBe(
      "disagrees",
    );
    expect(ended("GET /\r\nHost: evil.example")).toEqual(EVIL);
    expect(ended(`GET /\r\nHost: ${NAME}`)).toEqual({ kind: "agrees" });
  });

  test("an endless host, is cut at the bound, also far behind its first line", () => {
    for (const before of ["", `A: ${"b".repeat(MAX_FIRST_BYTES)}\r\n`]) {
      const text = `GET /\r\n${before}Host: ${"a".repeat(MAX_FIRST_BYTES)}`;
      expect(read(Buffer.from(text.slice(0, -100)))).toEqual({ kind: "undecided" });
      expect(read(Buffer.from(text))).toMatchObject({ kind: "malformed", protocol: "http" });
      expect(readByBytes(Buffer.from(text))).toMatchObject({ kind: "malformed", protocol: "http" });
    }
  });

  test("a word as long as all that is read, behind an empty line, is cut", () => {
    const text = `\r\n${"A".repeat(MAX_FIRST_BYTES)}`;
    expect(read(Buffer.from(text))).toMatchObject({ kind: "malformed", protocol: "http" });
    expect(readByBytes(Buffer.from(text))).toMatchObject({ kind: "malformed", protocol: "http" });
  });
});

describe("another protocol", () => {
  test.each([
    ["SSH", "SSH-2.0-OpenSSH_9.2 Debian-2\r\n"],
    ["SSH with a version in its comment", "SSH-2.0-client library/1.0\r\n"],
    ["SMTP", "EHLO client.example\r\n"],
    ["FTP", "USER anonymous\r\n"],
    ["FTP of a path", "CWD /pub\r\n"],
    ["IMAP", "A001 LOGIN user word\r\n"],
    ["IMAP of a numbered folder", "a1 SELECT INBOX/2024\r\n"],
    ["a Redis command in one line", "GET key\r\n"],
    ["a Redis command with a path", "GET user/1\r\n"],
    ["Redis commands, one after the other", "GET key\r\nHGET hash field\r\nHLEN hash\r\n"],
    ["memcached", "get key\r\n"],
    ["NATS", 'CONNECT {"verbose":false}\r\nPING\r\n'],
    ["PostgreSQL", "\0\0\0\x08\x04\xd2\x16\x2f"],
    ["MySQL", "\xa0\0\0\x01\x85\xa6\x03\0"],
    ["LDAP", "0\x1e\x02\x01\x01`\x19\x02\x01\x03\x04\x08cn=admin\x80\x06secret"],
    ["git's own", `0032git-upload-pack /project.git\0host=evil.example\0`],
    ["RTSP", `OPTIONS rtsp://${NAME}/ RTSP/1.0\r\nCSeq: 1\r\n\r\n`],
    ["SIP", "REGISTER sip:other.example SIP/2.0\r\nTo: <sip:a@other.example>\r\n"],
    ["a file of digits", "0123456789abcdef".repeat(MAX_FIRST_BYTES / 16)],
    ["what follows the empty line", "GET /\r\n\r\nHost: evil.example\r\n"],
    ["a value with a host behind its line", "SELECT INBOX\r\nHost: evil.example\r\n"],
    ["random bytes behind a path", `CWD /pub\r\n${"\0\x01\xff\r\x80\n\x07".repeat(20_000)}`],
  ])("is not held back: %s", (_, text) => {
    expect(read(Buffer.from(text, "latin1"))).toEqual(OPAQUE);
    expect(readByBytes(Buffer.from(text, "latin1"))).toEqual(OPAQUE);
    expect(ended(text)).toEqual(OPAQUE);
  });

  test("may send a part of 'host:' at the end of its bytes, and they pass after a moment", () => {
    const reader = new FirstBytesReader(NAME, spell);
    expect(reader.push(Buffer.from("GET key\r\nho"))).toEqual({ kind: "undecided" });
    expect(reader.isHarmless).toBe(true);
    expect(reader.push(Buffer.from("tel\r\n"))).toEqual(OPAQUE);
    expect(reader.push(Buffer.from("host: "))).toEqual({ kind: "undecided" });
    expect(reader.isHarmless).toBe(false);
  });

  test("may begin with a blank of Python's, and its bytes pass after a moment", () => {
    const reader = new FirstBytesReader(NAME, spell);
    expect(reader.push(Buffer.from("\x1cfirst words of a text"))).toEqual({ kind: "undecided" });
    expect(reader.isHarmless).toBe(true);
  });

  test("gets its line to the server while its client waits, and a foreign host behind it does not arrive", async () => {
    const connect = await joiner();
    const { client, server, pump } = await connect({ firstBytes: new FirstBytesReader(NAME, spell) });
    let received = "";
    server.on("data", (bytes: Buffer) => (received += bytes.toString()));
    for (const line of ["GET key\r\n", "HGET hash field\r\n", "PING\r\n"]) {
      client.write(line);
      while (!received.endsWith(line)) await once(server, "data");
    }
    client.write("Host: evil.example\r\n\r\n");
    expect(await pump.ended).toMatchObject({ ended: "cut", refused: { named: "evil.example" } });
    expect(received).toBe("GET key\r\nHGET hash field\r\nPING\r\n");
  });
});
