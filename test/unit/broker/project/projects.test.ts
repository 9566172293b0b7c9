import { isRefusal } from "../../../../broker/model/refusal.ts";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { locateProject, type ProjectRules } from "../../../../broker/project/projects.ts";

let base: string;
let rules: ProjectRules;

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "substrate-projects-")));
  for (const folder of ["ann/.substrate", "ann/.config/tool", "ann/code/app/src", "ann/plain/sub"])
    mkdirSync(join(base, folder), { recursive: true });
  mkdirSync(join(base, "ann/code/app/.git"));
  rules = {
    home: join(base, "ann"),
    hidden: [join(base, "ann/.substrate")],
    uid: process.getuid?.() ?? 0,
    installation: "/opt/substrate",
    roots: [],
  };
});

afterEach(() => rmSync(base, { recursive: true, force: true }));

function locate(path: string, change: Partial<ProjectRules> = {}): string {
  const found = locateProject(path.startsWith("/") ? path : join(base, path), { ...rules, ...change });
  return isRefusal(found) ? found.code : found.project.slice(base.length + 1);
}

describe("a project is", () => {
  test("the nearest folder with .git above the working directory", () =>
    expect(locate("ann/code/app/src")).toBe("ann/code/app"));
  test("the working directory where there is none", () =>
    expect(locate("ann/plain/sub")).toBe("ann/plain/sub"));
  test("the working directory where the nearest .git is in the home folder", () => {
    mkdirSync(join(base, "ann/.git"));
    expect(locate("ann/plain/sub")).toBe("ann/plain/sub");
  });
  test("the folder with a .substrate-profile", () => {
    writeFileSync(join(base, "ann/plain/.substrate-profile"), "strict\n");
    expect(locate("ann/plain/sub")).toBe("ann/plain");
  });
  test("where a link leads, not the link", () => {
    symlinkSync(join(base, "ann/code/app"), join(base, "ann/plain/link"));
    expect(locate("ann/plain/link")).toBe("ann/code/app");
  });
});

describe("never a project is", () => {
  test.each(["/", "/etc", "/usr", "/lib", "/lib64", "/var", "/proc/sys", "/dev"])("%s", (path) => {
    expect(locate(path, { uid: 0 })).toBe("project_not_allowed");
  });
  test("the folder of the home that is on PATH, unless it is marked, and its neighbour is one", () => {
    for (const name of ["bin/tools", "binary"]) mkdirSync(join(base, "ann", name), { recursive: true });
    expect([locate("ann/bin"), locate("ann/bin/tools"), locate("ann/binary")]).toEqual([
      "project_not_allowed",
      "project_not_allowed",
      "ann/binary",
    ]);
    mkdirSync(join(base, "ann/bin/tools/.git"));
    expect(locate("ann/bin/tools")).toBe("ann/bin/tools");
  });
  test("the home folder", () => expect(locate("ann")).toBe("project_not_allowed"));
  test("a folder above the home folder", () => expect(locate(base)).toBe("project_not_allowed"));
  test("a dot folder directly in the home folder", () =>
    expect(locate("ann/.config")).toBe("project_not_allowed"));
  test("a link to the home folder", () => {
    symlinkSync(rules.home, join(base, "ann/plain/home"));
    expect(locate("ann/plain/home")).toBe("project_not_allowed");
  });
  test("what contains SUBSTRATE_HOME", () =>
    expect(locate("ann/code/app", { hidden: [join(base, "ann/code/app/state")] })).toBe(
      "project_not_allowed",
    ));
  test("what lies in SUBSTRATE_HOME", () =>
    expect(locate("ann/code/app", { hidden: [join(base, "ann/code")] })).toBe("project_not_allowed"));
  test("a folder that contains the running installation, which may itself be one", () => {
    const installation = join(base, "ann/code/app");
    expect(locate("ann/code", { installation })).toBe("project_not_allowed");
    expect(locate("ann/code/app", { installation })).toBe("ann/code/app");
  });
  test("git's own folder, even with a .git of its own", () => {
    mkdirSync(join(base, "ann/code/app/.git/.git"));
    expect(locate("ann/code/app/.git")).toBe("ann/code/app");
    mkdirSync(join(base, "ann/bare/.git/.git"), { recursive: true });
    expect(locate("ann/bare/.git")).not.toBe("ann/bare/.git");
  });
  test("a folder below a settings folder, unless it is marked as a project", () => {
    expect(locate("ann/.config/tool")).toBe("project_not_allowed");
    mkdirSync(join(base, "ann/.config/tool/.git"));
    expect(locate("ann/.config/tool")).toBe("ann/.config/tool");
  });
  test("somebody else's folder", () =>
    expect(locate("ann/code/app", { uid: 12345 })).toBe("project_not_allowed"));
  test("a folder outside the configured roots", () =>
    expect(locate("ann/code/app", { roots: [join(base, "ann/plain")] })).toBe("project_not_allowed"));
  test("a prefix neighbour of a configured root", () => {
    mkdirSync(join(base, "ann/plainer"));
    expect(locate("ann/plainer", { roots: [join(base, "ann/plain")] })).toBe("project_not_allowed");
  });
});

describe("a working directory is refused when it", () => {
  test.each([["is relative", "relative/path"]])("%s", (_name, path) => {
    expect(locateProject(path, rules)).toMatchObject({ code: "invalid_request" });
  });
  test("does not exist", () => expect(locate("ann/missing")).toBe("invalid_request"));
  test("is a file", () => {
    writeFileSync(join(base, "ann/file"), "");
    expect(locate("ann/file")).toBe("invalid_request");
  });
});
