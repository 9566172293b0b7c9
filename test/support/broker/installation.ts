import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runAs, type TestUser } from "../users/users.ts";

/** An installation of Substrate that a user can run: `node launcher …`. */
export type TestInstallation = { readonly root: string; readonly node: string; readonly launcher: string };

const ROOT = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "");
const PARTS = [".build", "api", "broker", "package.json", "policies", "schemas", "systemd", "world"];

/**
 * This checkout, or a copy in the user's home that the user owns when the checkout or this Node lie where only root
 * can read (a clone below /root). The copy holds what runs, not what builds and tests.
 */
export async function installationFor(user: TestUser): Promise<TestInstallation> {
  if (await canUse(user)) return installation(ROOT, process.execPath);
  const root = join(user.home, "substrate");
  const node = join(user.home, "node/bin/node");
  if (!existsSync(root)) copyTo(user, root, node);
  return installation(root, node);
}

/** A copy of the installation in a folder of the user's, as a newcomer has one in the home. */
export function installationIn(folder: string, user: TestUser): TestInstallation {
  const root = join(folder, "substrate");
  const node = join(folder, "node/bin/node");
  copyTo(user, root, node);
  return installation(root, node);
}

async function canUse(user: TestUser): Promise<boolean> {
  const script = 'test -x "$1" && test -r "$2" && test -x "$3"';
  const wanted = [process.execPath, join(ROOT, "package.json"), join(ROOT, ".build/substrate-init")];
  const looked = await runAs(user, ["/bin/sh", "-c", script, "sh", ...wanted], { cwd: "/" });
  return looked.code === 0;
}

function installation(root: string, node: string): TestInstallation {
  return { root, node, launcher: join(root, "api/bin/substrate.mjs") };
}

function copyTo(user: TestUser, root: string, node: string): void {
  mkdirSync(dirname(node), { recursive: true });
  cpSync(process.execPath, node);
  for (const part of PARTS) {
    cpSync(join(ROOT, part), join(root, part), { recursive: true, verbatimSymlinks: true });
  }
  rmSync(join(root, ".build/node"), { force: true });
  symlinkSync(node, join(root, ".build/node"));
  const changed = spawnSync("chown", ["-R", `${user.uid}:${user.gid}`, root, dirname(dirname(node))]);
  if (changed.status !== 0)
    throw new Error(`Cannot give '${root}' to '${user.name}': ${changed.stderr.toString()}`);
}
