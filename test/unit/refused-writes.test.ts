import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { reasonOf } from "../../broker/journey/refused-writes.ts";
import { policyOf } from "./started.ts";

const home = mkdtempSync(join(tmpdir(), "substrate-refused-"));
afterAll(() => rmSync(home, { recursive: true }));
const at = (path: string): string => join(home, path);

for (const path of [".cargo/.package-cache", ".cargo/bin/tool", ".local/bin/own", ".tool/state/file"]) {
  mkdirSync(join(at(path), ".."), { recursive: true });
  writeFileSync(at(path), "");
}
mkdirSync(at(".config"));
mkdirSync(at("work/app/bin"), { recursive: true });
mkdirSync(at(".rubies/3/bin"), { recursive: true });

const RULES = {
  ...{ policies: [policyOf({}, { fs: { write: ["$PROJECT/**"] } })], project: "/projects/app", home },
  ...{ installation: [], places: [], plain: false, searched: `${at(".local/bin")}:/usr/bin:relative` },
};

describe("what a refused write says may be opened", () => {
  test.each([
    ["the folder of a file", ".tool/state/new", ".tool/state"],
    ["a folder of a working tree that is called as those of programs", "work/app/bin/new", "work/app/bin"],
    ["a working tree with such a folder", "work/app/new", "work/app"],
    ["the file alone, where its folder holds credentials", ".cargo/.package-cache", ".cargo/.package-cache"],
  ])("is %s", (_what, path, opened) => {
    expect(reasonOf(at(path), RULES)).toContain(
      `"substrate policy allow write ${at(opened)}" allows it, or ask for the scope 'fs.write:${at(opened)}'`,
    );
  });

  test.each([
    ["a missing file beside credentials", ".cargo/config.toml"],
    ["a folder of credentials", ".cargo"],
    ["a credential", ".cargo/credentials.toml"],
    ["a folder that may hold credentials of many", ".config/new"],
    ["a folder of programs that is on nobody's PATH here", ".cargo/bin/new"],
    ["a folder around such a one", ".rubies/3/new"],
    ["a new program on PATH", ".local/bin/new"],
    ["a program on PATH", ".local/bin/own"],
    ["a folder around programs on PATH", ".local/new"],
  ])("is never %s", (_what, path) => {
    const said = reasonOf(at(path), RULES);
    expect(said).toContain("no folder around it is safe to open");
    expect(said).toContain("fs.write of policy");
    expect(said).toContain("request_scopes");
    expect(said).not.toContain("policy allow write");
  });
});
