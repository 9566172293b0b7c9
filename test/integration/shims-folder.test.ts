/** `substrate shim` where its folder is none, or nothing that PATH can hold: as whoever types it reads it. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { installationFor, type TestInstallation } from "../installation.ts";
import { currentUser, type Ended, runAs } from "../users.ts";

describe("substrate shim", () => {
  const folder = mkdtempSync(join(tmpdir(), "substrate-shims-"));
  let installation: TestInstallation;
  beforeAll(async () => {
    installation = await installationFor(currentUser());
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function shim(home: string, words: readonly string[], path = "/usr/bin:/bin"): Promise<Ended> {
    const env = { SUBSTRATE_HOME: home, PATH: path };
    return runAs(currentUser(), [installation.node, installation.launcher, "shim", ...words], { env });
  }

  test.each([
    ["a file", (path: string) => writeFileSync(path, "")],
    ["a link to nothing", (path: string) => symlinkSync(join(folder, "nowhere"), path)],
  ])("says in one line that %s is no folder", async (_what, make) => {
    const home = mkdtempSync(join(folder, "home-"));
    make(join(home, "shims"));
    const { code, stderr } = await shim(home, ["install", "ls"]);
    expect(stderr).toMatch(/^substrate: Cannot use '.*shims' as the shims folder: E[A-Z]+: [^\n]*\n$/);
    expect(code).toBe(125);
  });

  test("links nothing in a folder that PATH would take for two", async () => {
    const { code, stderr } = await shim(join(folder, "a:b"), ["install", "ls"]);
    expect([code, stderr]).toEqual([125, expect.stringContaining("it holds a ':'")]);
  });

  test("knows its folder on PATH by a slash at the end too", async () => {
    const home = join(folder, "slash");
    mkdirSync(home);
    await shim(home, ["install", "ls"]);
    const { stdout } = await shim(home, ["status", "--json"], `${home}/shims/:/usr/bin:/bin`);
    expect(JSON.parse(stdout)).toMatchObject({ first_on_path: true, shims: [{ state: "in force" }] });
  });
});
