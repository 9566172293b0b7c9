import { constants } from "node:os";
import { expect, test } from "vitest";
import { FRAME, TAG } from "../../../../schemas/generated/frames.ts";
import { failureWords } from "../../../../world/linux/failure-words.ts";
import { encodeFields } from "../../../../world/linux/frame-codec.ts";

/** The bytes of a frame before its payload. */
const HEADER = encodeFields(FRAME.FAILED, 0, []).length;

function failed(step: string, path: string, errno: number): string {
  return failureWords(
    encodeFields(FRAME.FAILED, 0, [
      [TAG.STEP, step],
      [TAG.PATH, path],
      [TAG.ERRNO, errno],
    ]).subarray(HEADER),
  );
}

test("a world whose forker was killed says that a command did it, and what comes next", () => {
  for (const name of ["ECHILD", "EPIPE", "ECONNRESET"] as const)
    expect(failed("forker", "", constants.errno[name])).toMatch(
      /^A command killed the world's own processes.*the next command gets a new world$/,
    );
});

test("any other failure names its step, its path where it has one, and the kernel's word", () => {
  expect(failed("forker", "", constants.errno.ENOMEM)).toBe("its init gave up at step 'forker': ENOMEM");
  expect(failed("forker", "first leader", constants.errno.ECHILD)).toBe(
    "its init gave up at step 'forker' (first leader): ECHILD",
  );
  expect(failed("denied name", "/p/.env", 0)).toBe(
    "its init gave up at step 'denied name' (/p/.env): no error was reported",
  );
});
