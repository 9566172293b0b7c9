import { describe, expect, test } from "vitest";
import { FirstBytesReader } from "../../../broker/network/first-bytes.ts";
import {
  NAME,
  helloMessage,
  read,
  readByBytes,
  realHello,
  records,
  sized,
  spell,
  tls,
} from "../../support/network/hellos.ts";

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
