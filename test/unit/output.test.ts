import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BoundedOutput } from "../../broker/worlds/output.ts";

describe("bounded output", () => {
  test("whatever the chunks, it keeps the first half and the last half, and counts and hashes all", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 30 }),
        fc.nat({ max: 100 }),
        (chunks, limit) => {
          const output = new BoundedOutput(limit);
          for (const chunk of chunks) output.push(chunk);
          const all = Buffer.concat(chunks);
          const head = Math.ceil(limit / 2);
          const kept =
            all.length <= limit
              ? all
              : Buffer.concat([all.subarray(0, head), all.subarray(all.length - (limit - head))]);
          expect(output.bytes()).toEqual(kept);
          expect(output.total).toBe(all.length);
          expect(output.truncated).toBe(all.length > limit);
          expect(output.sha256()).toBe(createHash("sha256").update(all).digest("hex"));
        },
      ),
    );
  });
});
