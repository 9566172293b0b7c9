import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

// The workers inherit it: test/skips.ts writes there, test/reporter.ts reads it.
process.env["SUBSTRATE_TEST_SKIPS"] ??= join(tmpdir(), `substrate-skips-${process.pid}.jsonl`);
rmSync(process.env["SUBSTRATE_TEST_SKIPS"], { force: true });

const SHARED = {
  environment: "node",
  globals: false,
  pool: "forks",
  testTimeout: 60_000,
  hookTimeout: 60_000,
} as const;

export default defineConfig({
  root: ROOT,
  cacheDir: join(ROOT, ".build/vitest"),
  test: {
    reporters: ["default", fileURLToPath(new URL("./reporter.ts", import.meta.url))],
    globalSetup: fileURLToPath(new URL("./global.ts", import.meta.url)),
    maxWorkers: 2,
    projects: [
      {
        // These start no broker and share nothing, so one process may hold many of them.
        test: {
          ...SHARED,
          name: "pure",
          include: ["test/{unit,pins}/**/*.test.ts"],
          isolate: false,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...SHARED,
          name: "real",
          include: ["test/{integration,security}/**/*.test.ts"],
          isolate: true,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
