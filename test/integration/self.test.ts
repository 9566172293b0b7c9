import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { skip } from "../support/run/skips.ts";

const ROOT = join(import.meta.dirname, "../..");

describe.each(actors())("the project itself, as $kind", (actor) => {
  // The parts with programs of others; the rest reads texts, as they do.
  test("npm run check of types, lint and format passes inside a world, through the API", {
    timeout: 240_000,
  }, async () => {
    if (statSync(ROOT).uid !== actor.uid) {
      skip(
        `npm run check inside a world, as ${actor.kind}`,
        "the checkout belongs to another user, and a project must be one's own",
      );
      return;
    }
    const broker = await TestBroker.start(actor);
    try {
      const reply = await broker.run({
        cmd: "npm run check -- types lint format",
        cwd: ROOT,
        timeout_ms: 200_000,
      });
      expect(reply.exit, `${reply.stdout}${reply.stderr}`).toBe(0);
      expect(reply.stdout).toContain("check: ok");
    } finally {
      await broker.stop();
    }
  });
});
