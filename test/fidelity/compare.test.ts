import {
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
  chmodSync,
  symlinkSync,
  linkSync,
  utimesSync,
  truncateSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { needs } from "../support/run/needs.ts";
import { compare, differencesOf, type Seen, type SeenInWorld } from "./compare.ts";
import { type Tree, treeOf } from "./tree.ts";
import type { Workload } from "./workload.ts";
import { WORKLOADS } from "./workloads.ts";
import { xattrReader } from "./xattrs.ts";
import { spawnSync } from "node:child_process";

const ROW: Workload = { name: "a row", command: "true" };
const SEEN: Seen = {
  ...{ exit: 0, stdout: "out\n", stderr: "err\n", observed: ["200 page"] },
  tree: new Map([["./f", "file 1 bytes sha256=aa mode=644"]]),
};
const inWorld = (more: Partial<SeenInWorld> = {}): SeenInWorld => ({ ...SEEN, told: [], ...more });

describe("two runs are compared", () => {
  test("and are the same when all is", () => {
    expect(compare(ROW, "default", SEEN, inWorld())).toEqual({ result: "same" });
  });

  test.each<Partial<SeenInWorld>>([
    { exit: 1 },
    { stdout: "out" },
    { stderr: "err\nsubstrate: more\n" },
    { observed: ["200 other"] },
    { tree: new Map() },
    { tree: new Map([...SEEN.tree, ["./g", "folder"]]) },
    { tree: new Map([["./f", "file 1 bytes sha256=ab mode=644"]]) },
  ])("and are different by %j", (more) => {
    expect(compare(ROW, "default", SEEN, inWorld(more))).toMatchObject({ result: "different" });
  });

  test("but for what the row says that varies", () => {
    const varies = { output: [[/\d+/g, "N"]], content: [/\/f$/], paths: [/\/log$/] } as const;
    const one = { ...SEEN, stdout: "took 12 s" };
    const tree = new Map([
      ["./f", "file 99 bytes sha256=cc mode=644"],
      ["./log", "folder"],
    ]);
    expect(differencesOf(varies, one, { ...one, stdout: "took 9 s", tree })).toEqual([]);
    const otherMode = new Map([["./f", "file 99 bytes sha256=cc mode=600"]]);
    expect(differencesOf(varies, one, { ...one, tree: otherMode })).toHaveLength(1);
  });

  test("and the variables that each command in a world has are the contract's", () => {
    const stdout = "PATH=/bin\nSUBSTRATE_SPAN_ID=spn_1\n";
    expect(compare(ROW, "default", { ...SEEN, stdout: "PATH=/bin\n" }, inWorld({ stdout }))).toEqual({
      result: "same",
    });
  });
});

describe("a row that is to be refused", () => {
  const row: Workload = { ...ROW, refused: { strict: /beside/ } };

  test("is refused when it failed and a line says what was expected", () => {
    const world = inWorld({ exit: 1, told: ["denied: 'beside' cannot be written"] });
    expect(compare(row, "strict", SEEN, world)).toEqual({
      result: "refused",
      notice: "denied: 'beside' cannot be written",
    });
  });

  test.each<Partial<SeenInWorld>>([
    { exit: 1, told: ["something else"] },
    { exit: 0, told: ["'beside' cannot be written"] },
    { exit: 1, stderr: "cp: cannot create 'beside'\n" },
    { exit: 1 },
  ])("is different when it is not, or nobody says so: %j", (more) => {
    expect(compare(row, "strict", SEEN, inWorld(more))).toMatchObject({ result: "different" });
  });

  test("is compared under the policies that do not refuse it", () => {
    expect(compare(row, "default", SEEN, inWorld({ exit: 1 }))).toMatchObject({ result: "different" });
  });
});

describe("a tree", () => {
  const folder = mkdtempSync(join(tmpdir(), "substrate-fidelity-"));
  const xattrsOf = xattrReader(folder);
  const root = join(folder, "t");
  const look = (): Tree =>
    treeOf({ ".": root }, { since: BigInt(Date.now() - 3_600_000) * 1_000_000n, xattrsOf });
  const fresh = (): void => {
    rmSync(root, { recursive: true, force: true });
    mkdirSync(join(root, "d"), { recursive: true });
    writeFileSync(join(root, "f"), "x".repeat(100_000));
    writeFileSync(join(root, "g"), "x".repeat(100_000));
    symlinkSync("f", join(root, "l"));
    utimesSync(join(root, "f"), 1, 2);
  };
  afterAll(() => rmSync(folder, { recursive: true }));

  test("is the same when it was made twice", () => {
    fresh();
    const first = look();
    fresh();
    expect([...look()]).toEqual([...first]);
    expect([...first.keys()].sort()).toEqual([".", "./d", "./f", "./g", "./l"]);
  });

  test.each<[string, (place: string) => void]>([
    ["content", () => writeFileSync(join(root, "g"), "y".repeat(100_000))],
    ["mode", () => chmodSync(join(root, "g"), 0o600)],
    ["a link's target", () => (rmSync(join(root, "l")), symlinkSync("g", join(root, "l")))],
    ["a time that was set", () => utimesSync(join(root, "f"), 1, 3)],
    ["a second name", () => (rmSync(join(root, "g")), linkSync(join(root, "f"), join(root, "g")))],
    [
      "what a name is",
      () => (rmSync(join(root, "d"), { recursive: true }), writeFileSync(join(root, "d"), "")),
    ],
    ["a name that is gone", () => rmSync(join(root, "g"))],
    ["holes", () => (truncateSync(join(root, "g"), 0), truncateSync(join(root, "g"), 100_000))],
    ["an extended attribute", () => setAttribute(join(root, "g"))],
  ])("differs by %s", (_what, change) => {
    fresh();
    const before = look();
    change(root);
    expect(differencesOf({}, { ...SEEN, tree: before }, { ...SEEN, tree: look() })).not.toEqual([]);
  });
});

/** By Python: Node cannot. */
function setAttribute(path: string): void {
  needs("python3");
  const script = "import os, sys; os.setxattr(sys.argv[1], 'user.x', b'1')";
  const { status, error, stderr } = spawnSync("python3", ["-c", script, path], { encoding: "utf8" });
  if (error !== undefined || status !== 0)
    throw new Error(`Cannot set an attribute: ${stderr ?? error?.message}`);
}

describe("the table", () => {
  test("has at least 150 rows, each with a name of its own", () => {
    expect(WORKLOADS.length).toBeGreaterThanOrEqual(150);
    expect(new Set(WORKLOADS.map(({ name }) => name)).size).toBe(WORKLOADS.length);
  });

  test("has no quick row that is known to be different", () => {
    expect(WORKLOADS.filter(({ quick, known }) => quick !== undefined && known !== undefined)).toEqual([]);
  });
});
