/** Commands whose outcome is the same every time, with all they need, and an edit that changes it. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ReplayReply } from "../../schemas/generated/types.ts";

export type GoldenSpan = {
  readonly name: string;
  /** A program that this host must have. */
  readonly needs: string;
  readonly cmd: string;
  readonly exit: number;
  readonly files: () => Readonly<Record<string, string | Uint8Array>>;
  /** Of the project, and what it becomes. */
  readonly edit: () => { readonly path: string; readonly content: string | Uint8Array };
  /** What differs then. */
  readonly differs: keyof ReplayReply["matches"];
};

/** What an install, a build or a test changes is held: the policy says so for these. */
export const POLICY = `id: default
name: Golden
mode: enforce
fs: { write: ["$PROJECT/**"] }
commands:
  isolated: ["npm install *", "make *"]
`;

export const GOLDEN_SPANS: readonly GoldenSpan[] = [
  {
    name: "npm install from a registry folder",
    needs: "npm",
    // How long it took would be another output each time, and the cache holds dates.
    cmd: "npm install --silent --no-audit --no-fund --offline --cache /tmp/cache",
    exit: 0,
    files: () => ({
      "package.json":
        '{ "name": "app", "version": "1.0.0", "dependencies": { "even": "file:registry/even-1.0.0.tgz" } }\n',
      "registry/even-1.0.0.tgz": packed("module.exports = (n) => n % 2 === 0;\n"),
    }),
    edit: () => ({ path: "registry/even-1.0.0.tgz", content: packed("module.exports = () => true;\n") }),
    differs: "fs_diff",
  },
  {
    name: "a build",
    needs: "make",
    cmd: "make all",
    exit: 0,
    files: () => ({
      Makefile:
        "all: out/greeting\nout/greeting: name.txt\n\tmkdir -p out\n\t(echo hello; cat name.txt) > out/greeting\n",
      "name.txt": "world\n",
    }),
    edit: () => ({ path: "name.txt", content: "moon\n" }),
    differs: "fs_diff",
  },
  {
    name: "a test run",
    needs: "node",
    cmd: "node --test --test-reporter=dot sum.test.js",
    exit: 0,
    files: () => ({
      "sum.js": "module.exports = (a, b) => a + b;\n",
      "sum.test.js":
        'const { test } = require("node:test");\nconst assert = require("node:assert");\ntest("sum", () => assert.equal(require("./sum.js")(1, 2), 3));\n',
    }),
    edit: () => ({ path: "sum.js", content: "module.exports = (a, b) => a - b;\n" }),
    differs: "exit",
  },
  {
    name: "a failing command",
    needs: "sh",
    cmd: "grep -n TODO list.txt; sh check.sh",
    exit: 7,
    files: () => ({
      "list.txt": "done\nTODO write\n",
      "check.sh": "echo 'the list is not done' >&2\nexit 7\n",
    }),
    edit: () => ({ path: "list.txt", content: "done\nTODO read\n" }),
    differs: "stdout",
  },
];

/** An npm package as a registry serves it, the same bytes for the same text. */
function packed(index: string): Uint8Array {
  const folder = mkdtempSync(join(tmpdir(), "substrate-package-"));
  try {
    mkdirSync(join(folder, "package"));
    writeFileSync(
      join(folder, "package/package.json"),
      '{ "name": "even", "version": "1.0.0", "main": "index.js" }\n',
    );
    writeFileSync(join(folder, "package/index.js"), index);
    const made = spawnSync(
      "tar",
      ["czf", "even.tgz", "--mtime=2026-01-01", "--owner=0", "--group=0", "package"],
      {
        cwd: folder,
        encoding: "utf8",
      },
    );
    if (made.status !== 0) throw new Error(`tar ended with ${made.status}: ${made.stderr}`);
    return readFileSync(join(folder, "even.tgz"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
