import { expect, test } from "vitest";
import { MAX_READING_MS, readInTime, UNWATCHED_LENGTH } from "../../broker/policy/shell/read.ts";

const LONG = UNWATCHED_LENGTH + 1;

test("a reading that never ends is ended, and the next one is not", () => {
  let turns = 0;
  const forever = (): void => {
    for (;;) turns += 1;
  };
  expect(readInTime(LONG, forever)).toBeUndefined();
  expect(turns).toBeGreaterThan(0);
  expect(readInTime(LONG, () => "read")).toBe("read");
});

test("a reading that had no processor is begun once more, and given the time for it", () => {
  const room = new Int32Array(new SharedArrayBuffer(4));
  let begun = 0;
  // As on a machine that others keep busy: the clock runs, and nothing is done.
  const delayed = (): string => {
    begun += 1;
    Atomics.wait(room, 0, 0, MAX_READING_MS + 100);
    return "read";
  };
  expect(readInTime(LONG, delayed)).toBe("read");
  expect(begun).toBe(2);
});

test.each([1, LONG])("what a reading of %d characters throws is thrown on, the same object", (length) => {
  const error = new RangeError("the stack has ended");
  let caught: unknown;
  try {
    readInTime(length, () => {
      throw error;
    });
  } catch (thrown) {
    caught = thrown;
  }
  expect(caught).toBe(error);
});

test("the end of the stack is a RangeError of this realm", () => {
  const deeper = (): number => 1 + deeper();
  expect(() => readInTime(LONG, deeper)).toThrow(RangeError);
});
