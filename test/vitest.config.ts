import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { KINDS } from "./faults/victims.ts";
import { SLOW_FILES } from "./lanes/choice.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

// The workers inherit it: test/support/run/skips.ts writes there, test/support/run/reporter.ts reads it.
process.env["SUBSTRATE_TEST_SKIPS"] ??= join(tmpdir(), `substrate-skips-${process.pid}.jsonl`);
rmSync(process.env["SUBSTRATE_TEST_SKIPS"], { force: true });

// `npm run faults` sets them; here is the only place that reads them.
const faults = {
  rounds: wholeNumber("SUBSTRATE_FAULT_ROUNDS") ?? 12,
  seed: wholeNumber("SUBSTRATE_FAULT_SEED") ?? Math.floor(Math.random() * 2 ** 31),
  kind: victimKind(),
};

// `npm run fidelity` sets them; without it the quick rows run.
const fidelity = { extent: extentOfFidelity(), report: process.env["SUBSTRATE_FIDELITY_REPORT"] ?? null };

const SHARED = {
  environment: "node",
  globals: false,
  pool: "forks",
  // What happens in a moment on a quiet machine may take seconds beside another test.
  expect: { poll: { timeout: 10_000 } },
  testTimeout: 60_000,
  hookTimeout: 60_000,
} as const;

const WITH_BROKERS = {
  ...SHARED,
  provide: { faults, fidelity },
  isolate: true,
  // `.ci/run` sets it, so that one busy moment in an hour of tests is a line to read and no failure.
  retry: wholeNumber("SUBSTRATE_TEST_RETRY") ?? 0,
};

export default defineConfig({
  root: ROOT,
  cacheDir: join(ROOT, ".build/vitest"),
  test: {
    reporters: ["default", fileURLToPath(new URL("./support/run/reporter.ts", import.meta.url))],
    globalSetup: fileURLToPath(new URL("./support/run/global.ts", import.meta.url)),
    // Three took longer here: the same files in 481 s instead of 431.
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
          ...WITH_BROKERS,
          name: "real",
          include: ["test/{integration,security,golden,fidelity}/**/*.test.ts"],
          exclude: SLOW_FILES,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...WITH_BROKERS,
          name: "slow",
          include: SLOW_FILES,
          sequence: { groupOrder: 2 },
        },
      },
      {
        // npm run test:vm
        test: {
          ...SHARED,
          name: "machine",
          // An emulated processor on a busy machine.
          testTimeout: 900_000,
          hookTimeout: 900_000,
          include: ["test/machine/**/*.test.ts"],
          isolate: true,
          // Each file boots a machine, and the first makes the disk of both.
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});

function victimKind(): (typeof KINDS)[number] | null {
  const text = process.env["SUBSTRATE_FAULT_KIND"];
  const kind = KINDS.find((each) => each === text);
  if (text !== undefined && kind === undefined)
    throw new Error(`Cannot use SUBSTRATE_FAULT_KIND='${text}': it must be one of ${KINDS.join(", ")}`);
  return kind ?? null;
}

function extentOfFidelity(): "quick" | "all" | "bare" {
  const text = process.env["SUBSTRATE_FIDELITY"] ?? "quick";
  if (text === "quick" || text === "all" || text === "bare") return text;
  throw new Error(`Cannot use SUBSTRATE_FIDELITY='${text}': it must be 'quick', 'all' or 'bare'`);
}

function wholeNumber(name: string): number | undefined {
  const text = process.env[name];
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new Error(`Cannot use ${name}='${text}': it must be a whole number from 1`);
  return Number(text);
}
