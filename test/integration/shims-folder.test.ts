/** `substrate shim` where its folder is none, or nothing that PATH can hold: as whoever types it reads it. */
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../actors.ts";
import { installationFor, type TestInstallation } from "../installation.ts";
import { skip } from "../skips.ts";
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

describe.each(actors())("substrate shim install, as $kind", (actor) => {
  let folder = "";
  let installation: TestInstallation;
  beforeAll(async () => {
    installation = await installationFor(actor);
    folder = mkdtempSync(join(actor.uid === 0 ? tmpdir() : actor.home, "substrate-shims-"));
    chmodSync(folder, 0o755);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** A home of the actor's with an empty shims folder. */
  function home(): string {
    const made = mkdtempSync(join(folder, "home-"));
    mkdirSync(join(made, "shims"));
    for (const path of [made, join(made, "shims")]) {
      chmodSync(path, 0o700);
      chownSync(path, actor.uid, actor.gid);
    }
    return made;
  }

  function install(at: string): Promise<Ended> {
    const env = { SUBSTRATE_HOME: at, PATH: "/usr/bin:/bin" };
    return runAs(actor, [installation.node, installation.launcher, "shim", "install", "ls"], { env });
  }

  test.each([
    [
      "anybody can write to",
      (path: string) => chmodSync(path, 0o777),
      /Other users can write.*mode 777.*chmod go-w/,
    ],
    [
      "a group can write to",
      (path: string) => chmodSync(path, 0o770),
      /Other users can write.*mode 770.*chmod go-w/,
    ],
    ["is another user's", (path: string) => chownSync(path, 54_321, 54_321), /belongs to user 54321/],
  ] as const)("links nothing in a folder that %s, nor below one", async (what, give, why) => {
    if (what === "is another user's" && process.getuid?.() !== 0)
      return skip(`shims in a folder that ${what}`, "only root can give a folder away");
    for (const part of ["shims", "."]) {
      const at = home();
      give(join(at, part));
      // Whoever cannot look into it is told so by the kernel.
      if (part === "." && actor.uid !== 0 && what === "is another user's") chmodSync(at, 0o755);
      const { code, stderr } = await install(at);
      expect([code, readdirSync(join(at, "shims"))], stderr).toEqual([125, []]);
      expect(stderr).toMatch(why);
    }
  });

  test("links in one that nobody else can write to", async () => {
    const at = home();
    expect((await install(at)).stdout).toContain("linked: ls");
    expect(readdirSync(join(at, "shims"))).toEqual(["ls"]);
  });
});
