import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { telemetryRows } from "../../../../api/cli/words/telemetry-words.ts";
import { TelemetryRecorder } from "../../../../broker/telemetry/telemetry-recorder.ts";
import { withoutWorldVariables } from "../../../../broker/settings/environment.ts";
import { FRAME_MAX_TELEMETRY_TEXT, TELEMETRY_HEADER_SIZE } from "../../../../schemas/generated/frames.ts";
import type { Span, SpanTelemetry } from "../../../../schemas/generated/types.ts";
import { addressText, decodeHeard, decodeTelemetry } from "../../../../world/linux/telemetry-events.ts";
import { telemetryOf } from "../../../../world/plan/preload.ts";
import {
  PRELOAD_LIBRARY,
  TELEMETRY_KINDS,
  type TelemetryEvent,
  TELEMETRY_VARIABLE,
  withoutPreload,
  withPreload,
} from "../../../../world/model/telemetry.ts";

const ROOT = join(import.meta.dirname, "../../../..");

function record(kind: number, text: Uint8Array, flags = 0): Buffer {
  const header = Buffer.alloc(TELEMETRY_HEADER_SIZE);
  header.writeUInt16LE(text.length, 0);
  header.writeUInt8(kind, 2);
  header.writeUInt8(flags, 3);
  return Buffer.concat([header, text]);
}

const anyText = fc.uint8Array({ maxLength: FRAME_MAX_TELEMETRY_TEXT });
const anyReport = fc.tuple(fc.integer({ min: 1, max: TELEMETRY_KINDS.length }), anyText, fc.nat(255));

describe("what programs report, as init tells it,", () => {
  test("is taken apart whatever its texts are, and none takes another's bytes", () => {
    fc.assert(
      fc.property(fc.array(anyReport, { maxLength: 20 }), (reports) => {
        const frame = Buffer.concat(reports.map(([kind, text, flags]) => record(kind, text, flags)));
        const events = decodeTelemetry(frame);
        expect(events.map(({ kind, cut }) => [kind, cut])).toEqual(
          reports.map(([kind, , flags]) => [TELEMETRY_KINDS[kind - 1], (flags & 1) === 1]),
        );
        for (const { text } of events) expect(text.length).toBeLessThan(2 * FRAME_MAX_TELEMETRY_TEXT);
      }),
    );
  });

  test("is refused as a whole where its bounds are wrong: they are init's own word", () => {
    fc.assert(
      fc.property(anyReport, fc.integer({ min: 1, max: 1100 }), ([kind, text], cut) => {
        const whole = record(kind, text);
        const part = whole.subarray(0, Math.max(1, whole.length - cut));
        if (part.length === whole.length) return;
        expect(() => decodeTelemetry(Buffer.from(part))).toThrow(RangeError);
      }),
    );
    for (const kind of [0, TELEMETRY_KINDS.length + 1, 255])
      expect(() => decodeTelemetry(record(kind, Buffer.from("/x")))).toThrow("no known kind");
  });

  test("has addresses as people write them, and says of others what they are", () => {
    const inet = Buffer.from([2, 0, 1, 187, 198, 18, 0, 1, 0, 0]);
    expect(addressText(inet)).toBe("198.18.0.1:443");
    const inet6 = Buffer.concat([
      Buffer.from([10, 0, 0, 80, 0, 0, 0, 0]),
      Buffer.alloc(15),
      Buffer.from([1]),
    ]);
    expect(addressText(inet6)).toBe("[::1]:80");
    expect(addressText(Buffer.concat([Buffer.from([10, 0, 0, 80]), Buffer.alloc(20)]))).toBe("[::]:80");
    const mapped = Buffer.from("0a0000500000000020010db8000000000001000000000002", "hex");
    expect(addressText(mapped)).toBe("[2001:db8::1:0:0:2]:80");
    expect(addressText(Buffer.from("\x01\0/run/x.sock\0rest"))).toBe("unix:/run/x.sock");
    expect(addressText(Buffer.from("\x01\0\0name\0more"))).toBe("unix:@name\0more");
    expect(addressText(Buffer.from([2, 0, 1]))).toBe("an address of family 2");
    expect(addressText(Buffer.from([16, 0, 0, 0]))).toBe("an address of family 16");
    expect(addressText(Buffer.alloc(1))).toBe("no address");
    fc.assert(fc.property(anyText, (bytes) => void addressText(Buffer.from(bytes))));
  });

  test("counts what was heard; without a word of it nobody listened", () => {
    expect(decodeHeard([])).toBeUndefined();
    expect(decodeHeard(["exec=2", "missed=18446744073709551615", "other=9"])).toEqual({
      kinds: { exec: 2, write: 0, connect: 0, unlink: 0, rename: 0 },
      untold: 0,
      missed: Number.MAX_SAFE_INTEGER,
    });
  });
});

describe("the variables of a world", () => {
  test("go in behind what is there, and come out without a trace", () => {
    const names = fc.constantFrom("/a.so", "/b.so", `${PRELOAD_LIBRARY}x`, "");
    fc.assert(
      fc.property(fc.array(names, { maxLength: 4 }), fc.dictionary(fc.string(), fc.string()), (own, rest) => {
        const list = own.filter((entry) => entry !== "").join(":");
        const env = { ...rest, ...(list === "" ? {} : { LD_PRELOAD: list }) };
        const inside = withPreload(env, "substrate-x");
        expect(inside["LD_PRELOAD"]?.split(":").at(-1)).toBe(PRELOAD_LIBRARY);
        expect(withoutPreload(inside)).toEqual(env);
      }),
    );
  });

  test("leave what has nothing of them as it is, to the letter", () => {
    const env = { LD_PRELOAD: " /a.so :: /b.so" };
    expect(withoutPreload(env)).toBe(env);
    const request = { cmd: "true", env };
    expect(withoutWorldVariables(request)).toBe(request);
    expect(withoutWorldVariables({ env: { [TELEMETRY_VARIABLE]: "x" } })).toEqual({ env: {} });
  });

  test("are those that the library and the shim know", () => {
    const source = (path: string): string => readFileSync(join(ROOT, path), "utf8");
    expect(source("shim/leave.c")).toContain(`#define LIBRARY "${PRELOAD_LIBRARY}"`);
    expect(source("shim/leave.c")).toContain(`#define ADDRESS "${TELEMETRY_VARIABLE}"`);
    expect(source("shim/preload/report.c")).toContain(`#define VARIABLE "${TELEMETRY_VARIABLE}="`);
    expect(source("shim/preload/report.h")).toContain(`#define REPORT_TEXT ${FRAME_MAX_TELEMETRY_TEXT}\n`);
  });
});

describe("a world that is asked for it", () => {
  const everywhere = { kind: (path: string) => (path === "/run" ? "folder" : "file") } as const;
  const source = { library: "/there/library.so", refusal: undefined };

  test("has it, or says why not; one that is not asked says nothing", () => {
    expect(telemetryOf({}, source, everywhere)).toBeUndefined();
    expect(telemetryOf({ telemetry: true }, source, everywhere)).toEqual({ on: true });
    const off = (changes: object, kind = everywhere.kind): unknown =>
      telemetryOf({ telemetry: true }, { ...source, ...changes }, { kind });
    expect(off({ refusal: "the kernel said no" })).toEqual({ on: false, why: "the kernel said no" });
    expect(off({ library: undefined })).toMatchObject({
      on: false,
      why: expect.stringContaining("not there"),
    });
    expect(off({}, () => "file")).toMatchObject({ on: false, why: expect.stringContaining("/run") });
  });
});

describe("the span of a command", () => {
  const on = { telemetry: { on: true } } as const;

  function written(count: number, length = 10): TelemetryEvent[] {
    return Array.from({ length: count }, (_each, at) => ({
      kind: "write",
      text: `/${String(at).padStart(length - 1, "0")}`,
      cut: false,
    }));
  }

  function told(
    events: readonly TelemetryEvent[],
    known: ReadonlyMap<string, string> = new Map(),
  ): SpanTelemetry {
    const recorder = new TelemetryRecorder(on, known);
    recorder.onTelemetry?.({ kind: "events", events });
    recorder.onTelemetry?.({ kind: "counts", counts: decodeHeard([`write=${events.length}`, "missed=3"]) });
    const { telemetry } = recorder.fields([]);
    if (telemetry === undefined) throw new Error("It was asked for");
    return telemetry;
  }

  test("lists fifty of a kind and 32 KiB, and counts the rest", () => {
    const many = told([...written(60), ...written(60)]);
    expect(many.written).toHaveLength(50);
    expect(many).toMatchObject({ counts: { write: 120 }, unlisted: 20, dropped: 3, reason: null });
    expect(told(written(50, 1000)).written).toHaveLength(32);
  });

  test("has no secret, nor the beginning of one where a text was cut", () => {
    const known = new Map([["API_TOKEN", "correct-horse-battery"]]);
    const { written: paths } = told(
      [
        { kind: "write", text: "/tmp/correct-horse-battery.txt", cut: false },
        { kind: "write", text: "/tmp/a b correct-horse-b", cut: true },
      ],
      known,
    );
    expect(paths).toEqual(["/tmp/[redacted:env.API_TOKEN].txt", "/tmp/a b …"]);
  });

  test("names a file once, however many empty steps lead to it", () => {
    const paths = ["/a/./b//c/.//d/../e", "/a/b/c/d/../e", "/a/b/c//d/../e"];
    const { written: listed } = told(paths.map((text) => ({ kind: "write", text, cut: false })));
    expect(listed).toEqual(["/a/b/c/d/../e"]);
  });

  test("has no secret that looks like a path with empty steps, and none that was reported with some", () => {
    const known = new Map([
      ["API_TOKEN", "abcd//efgh/./ijkl"],
      ["API_KEY", "mnop/qrst"],
    ]);
    const paths = ["/tmp/abcd//efgh/./ijkl.txt", "/tmp/mnop//qrst.txt"];
    const { written: listed } = told(
      paths.map((text) => ({ kind: "write", text, cut: false })),
      known,
    );
    expect(listed).toEqual(["/tmp/[redacted:env.API_TOKEN].txt", "/tmp/[redacted:env.API_KEY].txt"]);
  });

  test("names a secret once, however often it was reported", () => {
    const known = new Map([
      ["API_TOKEN", "abcdef"],
      ["API_KEY", "ghijkl"],
    ]);
    const recorder = new TelemetryRecorder(on, known);
    const events = ["1", "2"].map((end) => ({
      kind: "write" as const,
      text: `/${"abcdef".repeat(99)}ghijkl${end}`,
      cut: false,
    }));
    recorder.onTelemetry?.({ kind: "events", events });
    const before = [{ kind: "env.OTHER", place: "cmd" }];
    expect(recorder.fields(before).redacted).toEqual([
      ...before,
      { kind: "env.API_TOKEN", place: "telemetry" },
      { kind: "env.API_KEY", place: "telemetry" },
    ]);
  });

  test("says that it was off and why, and that more is not known when the world is lost", () => {
    const off = new TelemetryRecorder({ telemetry: { on: false, why: "no library" } }, new Map());
    expect(off.onTelemetry).toBeUndefined();
    expect(off.fields([])).toEqual({ telemetry: { state: "off", reason: "no library" }, redacted: [] });
    const unheard = new TelemetryRecorder(on, new Map());
    unheard.onTelemetry?.({ kind: "counts", counts: undefined });
    expect(unheard.fields([])).toMatchObject({ telemetry: { state: "off" } });
    const lost = new TelemetryRecorder(on, new Map());
    lost.onTelemetry?.({ kind: "events", events: written(2) });
    expect(lost.fields([])).toMatchObject({ telemetry: { state: "on", counts: { write: 2 } } });
    expect(JSON.stringify(lost.fields([]))).toContain("there may be more");
    expect(new TelemetryRecorder({}, new Map()).fields([])).toEqual({});
  });

  test("is shown to a person in words that rule no terminal", () => {
    const [row] = telemetryRows({
      telemetry: told([{ kind: "write", text: "/\u001b[2J\n\u202e", cut: false }]),
    } as Span);
    expect(row?.[1]).toBe(
      "reported by the programs themselves; 3 dropped\nopened for writing (1)\n  /\\x1b[2J\\x0a\\u{202e}",
    );
    const off = { telemetry: { state: "off", reason: "no library" } } as Span;
    expect(telemetryRows(off)).toEqual([["telemetry", "off: no library"]]);
    expect(telemetryRows({} as Span)).toEqual([]);
  });
});
