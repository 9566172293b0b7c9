import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { hostPath } from "../../../../broker/project/host-path.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sb-host-path-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const at = (...names: readonly string[]): string => join(folder, ...names);
function made(...names: readonly string[]): string {
  mkdirSync(at(...names), { recursive: true });
  return at(...names);
}

test("leaves out what a project's commands write", () => {
  for (const mark of ["p/.git", "q/.venv"]) made(mark);
  writeFileSync(at("q/.venv/pyvenv.cfg"), "");
  symlinkSync(made("p/tools/bin"), at("link"));
  const places = ["p/bin", "p", "p/.venv/bin", "q/.venv/bin", "q/node_modules/.bin", "home/work/bin"];
  const left = [...places.map((place) => made(place)), at("link"), "bin", "", "."];
  expect(hostPath(["/usr/bin", ...left, "/bin"].join(":"), at("home"))).toBe("/usr/bin:/bin");
  for (const nothing of [undefined, "", left.join(":")])
    expect(hostPath(nothing, at("home"))).toBe("/usr/local/bin:/usr/bin:/bin");
});

test("keeps installations, also those that are repositories, and the home's own", () => {
  for (const mark of ["home/.git", "home/.pyenv/.git"]) made(mark);
  const homes = ["home/.local/bin", "home/bin", "home/go/bin", "home/.pyenv/versions/3/bin"];
  const kept = ["/opt/homebrew/bin", made("tools/bin"), ...homes.map((place) => made(place))];
  expect(hostPath(kept.join(":"), at("home"))).toBe(kept.join(":"));
});
