import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { open, type RootDatabase } from "lmdb";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Marks } from "../../../../broker/project/marks.ts";
import { markedBelow } from "../../../../broker/project/marked-below.ts";
import { UnmarkedFolders } from "../../../../broker/project/unmarked.ts";

let base: string;
let database: RootDatabase;
let marks: Marks;

const at = (path: string): string => join(base, path);
const make = (...paths: readonly string[]): void =>
  paths.forEach((path) => mkdirSync(at(path), { recursive: true }));
const fail = (what: string, error: unknown): never => {
  throw new Error(what, { cause: error });
};

function use(path: string, byPerson = false): void {
  const { dev, ino } = statSync(at(path));
  marks.use(at(path), `${dev}:${ino}`, byPerson);
}

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "substrate-marks-")));
  mkdirSync(at("db"));
  database = open({ path: at("db"), maxDbs: 4, overlappingSync: false });
  marks = new Marks(database, fail);
  make("app/.git", "app/vendor/lib/.git", "app/src");
});
afterEach(async () => {
  await database.close();
  rmSync(base, { recursive: true, force: true });
});

describe("a mark counts", () => {
  test("where nobody has worked", () => {
    make("app/new/.git");
    expect(marks.counts(at("app"))).toBe(true);
    expect(marks.counts(at("app/new"))).toBe(true);
  });
  test("when it stood below the project at its first use, and not when it turned up later", () => {
    use("app");
    make("app/new/.git");
    expect(marks.counts(at("app"))).toBe(true);
    expect(marks.counts(at("app/vendor/lib"))).toBe(true);
    expect(marks.counts(at("app/new"))).toBe(false);
  });
  test("not when it is an old file under a new name, or an old folder in a new place", () => {
    writeFileSync(at("app/README"), "");
    use("app");
    linkSync(at("app/README"), at("app/src/.git"));
    make("app/x");
    renameSync(at("app/vendor/lib/.git"), at("app/x/.git"));
    for (const path of ["app/src", "app/x"]) expect(marks.counts(at(path)), path).toBe(false);
  });
  test("once a person has worked there, for that folder alone", () => {
    use("app");
    make("app/new/.git", "app/new2/.git");
    use("app/new", true);
    expect(marks.counts(at("app/new"))).toBe(true);
    expect(marks.counts(at("app/new2"))).toBe(false);
    renameSync(at("app/new"), at("app/old"));
    make("app/new/.git");
    expect(marks.counts(at("app/new"))).toBe(false);
  });
  test("when the folder was a project before the one around it", () => {
    make("outer/.git", "outer/inner/.git");
    rmSync(at("outer/inner/.git"), { recursive: true });
    use("outer/inner");
    use("outer");
    make("outer/inner/.git");
    expect(marks.counts(at("outer/inner"))).toBe(true);
  });
  test("when the folder around it is another one under the same name", () => {
    use("app");
    renameSync(at("app"), at("old"));
    make("app/new/.git");
    expect(marks.counts(at("app/new"))).toBe(true);
    expect(marks.counts(at("old/vendor/lib"))).toBe(true);
  });
  test("the same for the next broker", async () => {
    use("app");
    make("app/new/.git");
    await database.flushed;
    const again = new Marks(database, fail);
    expect(again.counts(at("app/new"))).toBe(false);
    expect(again.counts(at("app/vendor/lib"))).toBe(true);
  });
});

describe("folders below", () => {
  test("are looked through by level, not into .git or node_modules and through no link", () => {
    make("deep/a/b/c/d/.git", "deep/x/.git/.git", "deep/node_modules/p/.git");
    expect(markedBelow(at("deep"))).toEqual({ marked: [at("deep/x"), at("deep/a/b/c/d")], complete: true });
  });
  test("that are too many are told as such", () => {
    for (let number = 0; number < 4001; number += 1) make(`many/${number}`);
    expect(markedBelow(at("many"))).toEqual({ marked: [], complete: false });
  });
});

describe("an unmarked folder", () => {
  const rules = { home: "/home/nobody", listed: [], scratch: [], counts: () => true, known: () => undefined };
  const why = (path: string, change: object = {}): string =>
    new UnmarkedFolders().unfit(path, { ...rules, ...change })?.why ?? "fits";

  test("below a scratch folder fits where it or a folder around it is listed there, or is in a home there", () => {
    make("plain");
    expect(why(at("plain"))).toContain("/tmp");
    expect(why(at("plain"), { listed: ["/tmp"] })).toContain("/tmp");
    for (const listed of [at("plain"), base]) expect(why(at("plain"), { listed: [listed] })).toBe("fits");
    expect(why(at("plain"), { home: base })).toBe("fits");
    expect(why(at("plain"), { home: base, scratch: [at("plain")] })).toContain(at("plain"));
  });
  test("with programs that start outside does not fit, unless it is listed or a home lies there", () => {
    for (const path of ["/usr/local/bin", "/usr/share", "/var/spool/cron"])
      expect(why(path)).toContain("programs");
    expect(why("/usr/share/tool", { listed: ["/usr/share/tool"] })).toBe("fits");
    expect(why("/var/ann/notes", { home: "/var/ann" })).toBe("fits");
    make("bin", "go/bin", "notes", "binder");
    const home = { home: base };
    for (const path of ["bin", "bin/more", "go", "go/bin"]) expect(why(at(path), home)).toContain("programs");
    for (const path of ["notes", "binder"]) expect(why(at(path), home)).toBe("fits");
  });
  test("above a listed one, or above a marked one, names it", () => {
    const home = { home: base };
    expect(why(at("app"), { ...home, listed: [at("app/src")] })).toContain(at("app/src"));
    expect(why(at("app"), home)).toContain(at("app/vendor/lib"));
    expect(why(at("app"), { ...home, listed: [at("app")] })).toBe("fits");
    expect(why(at("app"), { ...home, counts: () => false })).toBe("fits");
    expect(why(at("app"), { ...home, known: () => ({ marked: [], complete: true }) })).toBe("fits");
  });
});
