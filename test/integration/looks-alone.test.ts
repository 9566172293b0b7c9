import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { installationFor } from "../installation.ts";
import { skip } from "../skips.ts";
import { ordinaryUser, runAs } from "../users.ts";

/** More than one process looks at alone. */
const NAMES = Array.from({ length: 1500 }, (_each, at) => `f${at}`);

/** `struct look` of world/init/looks.h. */
const LOOK_BYTES = 80;

const user = ordinaryUser();
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "substrate-looks-"));
  chmodSync(folder, 0o755);
  for (const name of NAMES) writeFileSync(join(folder, name), name);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a user who may have no more processes has many names looked at by one", async () => {
  if (user === null) return skip("looks of a user without processes", "no user could be made");
  const { root } = await installationFor(user);
  const looks = [join(root, ".build/substrate-init"), "looks", folder];
  const stdin = NAMES.map((name) => `${name}\0`).join("");
  const free = await runAs(user, looks, { stdin });
  const alone = await runAs(user, ["prlimit", "--nproc=1", ...looks], { stdin });
  expect(free).toMatchObject({ code: 0, signal: null });
  expect(free.stdout).toHaveLength(NAMES.length * LOOK_BYTES);
  expect(alone).toEqual(free);
});
