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
  made("p/.git");
  made("q/.venv");
  writeFileSync(at("q/.venv/pyvenv.cfg"), "");
  symlinkSync(made("p/tools/bin"), at("link"));
  const left = [
    made("p/.venv/bin"),
    made("q/.venv/bin"),
    made("q/node_modules/.bin"),
    at("link"),
    "bin",
    "",
    ".",
  ];
  expect(hostPath(["/usr/bin", ...left, "/bin"].join(":"), "/home/p")).toBe("/usr/bin:/bin");
});

test("keeps installations, also those that are repositories, and the home's own", () => {
  made("homebrew/.git");
  made("home/.git");
  made("home/.pyenv/.git");
  const kept = [
    made("homebrew/bin"),
    made("home/.local/bin"),
    made("home/bin"),
    made("home/.pyenv/versions/3/bin"),
  ];
  expect(hostPath(kept.join(":"), at("home"))).toBe(kept.join(":"));
  expect(hostPath(undefined, at("home"))).toBe("/usr/local/bin:/usr/bin:/bin");
});
