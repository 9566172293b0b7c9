import { existsSync, realpathSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { actors } from "../actors.ts";
import { TestBroker } from "../broker.ts";
import { skip } from "../skips.ts";

describe.each(actors().slice(0, 1))("the running installation, as $kind", (actor) => {
  test("is read-only when it is itself the project, and cannot be moved away; the rest of it can be written", async () => {
    const root = realpathSync(join(import.meta.dirname, "../.."));
    if (statSync(root).uid !== actor.uid) {
      skip(`the installation as a project, as ${actor.kind}`, "the checkout belongs to another user");
      return;
    }
    const broker = await TestBroker.start(actor);
    const probe = `substrate-test-${process.pid}`;
    try {
      const attempt = `for d in .build node_modules policies api/bin; do echo x > $d/${probe}; done; mv api api-moved; mv .build build-moved; echo x > ${probe}`;
      await broker.run({ cmd: attempt, cwd: root });
      for (const folder of [".build", "node_modules", "policies", "api/bin"])
        expect(existsSync(join(root, folder, probe))).toBe(false);
      expect(existsSync(join(root, "api/bin/substrate.mjs"))).toBe(true);
      expect(existsSync(join(root, probe))).toBe(true);
    } finally {
      rmSync(join(root, probe), { force: true });
      await broker.stop();
    }
  });
});
