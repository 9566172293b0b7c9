import { execFileSync } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { bytesOfChangePath, changePath, patchPath } from "../../../../broker/held/change-path.ts";
import { filePatch, type PatchSide } from "../../../../broker/held/patch.ts";

type Tree = ReadonlyMap<string, PatchSide>;

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "patch-"));
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

describe("a patch of changes", () => {
  test("makes with git's own apply the tree that the command left, modes and links included", () => {
    fc.assert(
      fc.property(trees(), trees(), (before, after) => {
        const folder = mkdtempSync(join(root, "tree-"));
        writeTree(folder, before);
        const patch = patchOf(before, after);
        if (patch !== "") gitApply(folder, patch);
        expect(readTree(folder)).toEqual(shownTree(after));
      }),
      { numRuns: 60 },
    );
  });

  test("makes with patch(1) the text that the command left", () => {
    fc.assert(
      fc.property(texts(), texts(), (old, now) => {
        fc.pre(old !== now && old !== "" && now !== "");
        const folder = mkdtempSync(join(root, "text-"));
        writeFileSync(join(folder, "f"), old);
        const { text } = filePatch("f", file(old), file(now));
        execFileSync("patch", ["-p1", "--binary", "-s"], { cwd: folder, input: text });
        expect(readFileSync(join(folder, "f"), "utf8")).toBe(now);
      }),
      { numRuns: 60 },
    );
  });

  test("is right, if long, where two texts differ in every line: without a bound it takes minutes", () => {
    const text = (letter: string): string =>
      Array.from({ length: 20_000 }, (_, line) => `${letter}${(line * 7919) % 20_011}\n`).join("");
    const { text: patch, added, removed } = filePatch("f", file(text("a")), file(text("b")));
    expect([added, removed]).toEqual([20_000, 20_000]);
    writeFileSync(join(root, "f"), text("a"));
    gitApply(root, patch);
    expect(readFileSync(join(root, "f"), "utf8")).toBe(text("b"));
  });

  test("counts the lines that it adds and removes", () => {
    const { added, removed, binary } = filePatch("f", file("a\nb\nc\n"), file("a\nB\nc\nd\n"));
    expect({ added, removed, binary }).toEqual({ added: 2, removed: 1, binary: false });
  });

  test.each([
    ["a NUL", Buffer.from("a\0b")],
    ["bytes that are no UTF-8", Buffer.from([0x61, 0xff, 0x0a])],
  ])("brings a file with %s as git's binary patch, there and back", (_what, bytes) => {
    const patch = filePatch("f", undefined, { kind: "file", mode: 0o644, bytes });
    expect(patch).toMatchObject({ binary: true, added: null, removed: null, left: null });
    expect(patch.text).toContain(`GIT binary patch\nliteral ${bytes.length}\n`);
    gitApply(root, patch.text);
    expect(readFileSync(join(root, "f"))).toEqual(bytes);
    gitApply(root, patch.text, "-R");
    expect(readdirSync(root)).toEqual([]);
  });

  test("brings any bytes, of any length, with git's own apply", () => {
    const bytes = (): fc.Arbitrary<Buffer> =>
      fc.uint8Array({ maxLength: 400 }).map((array) => Buffer.concat([Buffer.from([0]), array]));
    fc.assert(
      fc.property(bytes(), bytes(), (old, now) => {
        fc.pre(!old.equals(now));
        const folder = mkdtempSync(join(root, "bytes-"));
        writeFileSync(join(folder, "f"), old);
        const side = (content: Buffer): PatchSide => ({ kind: "file", mode: 0o644, bytes: content });
        gitApply(folder, filePatch("f", side(old), side(now)).text);
        expect(readFileSync(join(folder, "f"))).toEqual(now);
      }),
      { numRuns: 40 },
    );
  });

  test("stops git at a file that is too large to be shown, instead of leaving an empty one", () => {
    const { text, left } = filePatch("f", undefined, { kind: "file", mode: 0o644, bytes: null });
    expect(left).toBe("large");
    expect(() => gitApply(root, text)).toThrow(/without full index line/);
    expect(readdirSync(root)).toEqual([]);
  });

  test("shows all the permission bits: a setuid file is seen to be one", () => {
    const { text } = filePatch("f", file("x\n"), { ...file("x\n"), mode: 0o4755 });
    expect(text).toBe("diff --git a/f b/f\nold mode 100644\nnew mode 104755\n");
  });

  test("has no line of its own making for a name with a line break", () => {
    const { text } = filePatch("a\nb", undefined, file("x\n"));
    expect(text.split("\n")[0]).toBe('diff --git "a/a\\nb" "b/a\\nb"');
    gitApply(root, text);
    expect(readdirSync(root)).toEqual(["a\nb"]);
  });

  test("leads git to the file whose name is no UTF-8", () => {
    gitApply(root, filePatch("a\xff b", undefined, file("x\n")).text);
    expect(readdirSync(root, { encoding: "latin1" })).toEqual(["a\xff b"]);
  });
});

describe("a path on the wire", () => {
  test("comes back as the same bytes, whatever they are", () => {
    fc.assert(
      fc.property(byteNames(), (bytes) => {
        expect(bytesOfChangePath(changePath(bytes))).toBe(bytes);
        expect(JSON.parse(JSON.stringify(changePath(bytes)))).toBe(changePath(bytes));
      }),
    );
  });

  test("is one and the same for no two names", () => {
    fc.assert(
      fc.property(byteNames(), byteNames(), (one, other) => {
        expect(changePath(one) === changePath(other)).toBe(one === other);
      }),
    );
  });

  test("is itself where it is text", () => {
    const bytes = Buffer.from("grün/a\nb").toString("latin1");
    expect(changePath(bytes)).toBe("grün/a\nb");
    expect(patchPath("a/", bytes)).toBe('"a/grün/a\\nb"');
  });

  test.each(['"', '"a', '"a"b', '"\\x"', '"\\9"', '"\\"'])("is refused when it is quoted as %s", (path) => {
    expect(bytesOfChangePath(path)).toBeUndefined();
  });
});

function file(text: string): PatchSide & { readonly kind: "file" } {
  return { kind: "file", mode: 0o644, bytes: Buffer.from(text) };
}

/** Texts that share lines, with and without an end, with carriage returns and tabs. */
function texts(): fc.Arbitrary<string> {
  const line = fc.constantFrom(
    "one",
    "two",
    "three",
    "",
    "\tfour\r",
    "-- five",
    "@@ six @@",
    "\\ seven",
    "grün",
  );
  return fc
    .tuple(fc.array(line, { maxLength: 30 }), fc.boolean())
    .map(([lines, ends]) => lines.join("\n") + (ends && lines.length > 0 ? "\n" : ""));
}

function sides(): fc.Arbitrary<PatchSide> {
  return fc.oneof(
    fc
      .tuple(texts(), fc.constantFrom(0o644, 0o755))
      .map(([text, mode]) => ({ kind: "file" as const, mode, bytes: Buffer.from(text) })),
    fc
      .constantFrom("a", "../up", "no where", "grün")
      .map((target) => ({ kind: "link" as const, target: Buffer.from(target) })),
  );
}

/** Names that no other is a folder of: what is a folder here and a file there is two changes. */
function trees(): fc.Arbitrary<Tree> {
  const name = fc.constantFrom(
    "a",
    "b c",
    "d/e",
    "d/grün",
    'q"uote',
    "back\\slash",
    "t\tab",
    "d/new\nline",
    "-dash",
  );
  return fc
    .uniqueArray(fc.tuple(name, sides()), { selector: ([path]) => path, maxLength: 7 })
    .map((entries) => new Map(entries.map(([path, side]) => [Buffer.from(path).toString("latin1"), side])));
}

function byteNames(): fc.Arbitrary<string> {
  const byte = fc.oneof(
    fc.constantFrom('"', "\\", "\n", "a", "/", "\xff", "\xc3", "\xbc", "1"),
    fc.integer({ min: 1, max: 255 }).map((code) => String.fromCharCode(code)),
  );
  return fc.array(byte, { minLength: 1, maxLength: 12 }).map((bytes) => bytes.join("").replaceAll("\0", "0"));
}

function patchOf(before: Tree, after: Tree): string {
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  return paths
    .filter((path) => JSON.stringify(before.get(path)) !== JSON.stringify(after.get(path)))
    .map((path) => filePatch(path, before.get(path), after.get(path)).text)
    .join("");
}

function gitApply(folder: string, patch: string, ...options: readonly string[]): void {
  execFileSync("git", ["apply", "--whitespace=nowarn", ...options, "-"], {
    cwd: folder,
    input: patch,
    env: { ...process.env, GIT_CEILING_DIRECTORIES: dirname(folder), GIT_CONFIG_NOSYSTEM: "1" },
    stdio: ["pipe", "pipe", "pipe"],
  });
}

function writeTree(folder: string, tree: Tree): void {
  for (const [path, side] of tree) {
    const place = placeOf(folder, path);
    mkdirSync(dirname(place), { recursive: true });
    if (side.kind === "link") symlinkSync(Buffer.from(side.target), place);
    else {
      writeFileSync(place, side.bytes ?? "");
      chmodSync(place, side.mode);
    }
  }
}

function placeOf(folder: string, path: string): string {
  return join(folder, Buffer.from(path, "latin1").toString("utf8"));
}

type Shown = Readonly<Record<string, string>>;

function shownTree(tree: Tree): Shown {
  const rows = [...tree].map(([path, side]) => [
    Buffer.from(path, "latin1").toString("utf8"),
    shownSide(side),
  ]);
  return Object.fromEntries(rows) as Shown;
}

function shownSide(side: PatchSide): string {
  return side.kind === "link"
    ? `link ${Buffer.from(side.target).toString("utf8")}`
    : `file ${(side.mode & 0o100) !== 0} ${Buffer.from(side.bytes ?? []).toString("utf8")}`;
}

function readTree(folder: string, below = ""): Shown {
  const rows = readdirSync(join(folder, below)).flatMap((name) => {
    const path = join(below, name);
    const stat = lstatSync(join(folder, path));
    if (stat.isDirectory()) return Object.entries(readTree(folder, path));
    const text = stat.isSymbolicLink()
      ? `link ${readlinkSync(join(folder, path))}`
      : `file ${(stat.mode & 0o100) !== 0} ${readFileSync(join(folder, path), "utf8")}`;
    return [[path, text] as const];
  });
  return Object.fromEntries(rows);
}
