import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ConnectionLines } from "../../../../broker/network/gateway.ts";
import type { SpanRecord } from "../../../../broker/spans/trace.ts";

const lineOf = (name: string): SpanRecord => ({ span_id: name }) as SpanRecord;

/** A disk that is full while a test says so. */
class Disk {
  isFull = false;
  readonly written: string[] = [];
  readonly faults: string[] = [];
  readonly lines = new ConnectionLines({
    write: ({ span_id: id }) => {
      if (this.isFull) throw new Error("ENOSPC");
      this.written.push(id);
    },
    onFault: (error) => this.faults.push(String(error)),
  });
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("a line is written at once", () => {
  const disk = new Disk();
  disk.lines.add(lineOf("a"));
  expect(disk.written).toEqual(["a"]);
  expect(vi.getTimerCount()).toBe(0);
});

test("lines that found no room are written when there is, in their order, and each once", () => {
  const disk = new Disk();
  disk.isFull = true;
  for (const name of ["a", "b", "c"]) disk.lines.add(lineOf(name));
  vi.advanceTimersByTime(5000);
  expect(disk.written).toEqual([]);
  expect(disk.faults.length).toBeGreaterThan(0);
  disk.isFull = false;
  vi.advanceTimersByTime(1000);
  disk.lines.add(lineOf("d"));
  expect(disk.written).toEqual(["a", "b", "c", "d"]);
  expect(vi.getTimerCount()).toBe(0);
});

test("of ten thousand that wait one more is refused, said, and does not throw", () => {
  const disk = new Disk();
  disk.isFull = true;
  for (let at = 0; at <= 10_000; at += 1) disk.lines.add(lineOf(String(at)));
  expect(disk.faults.at(-1)).toContain("10000 lines of connections wait");
  disk.isFull = false;
  disk.lines.end();
  expect(disk.written).toHaveLength(10_000);
  expect(vi.getTimerCount()).toBe(0);
});
