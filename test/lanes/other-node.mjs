import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BUILD } from "../../api/setup/checkout.mjs";
import { lastLines, run } from "../../api/setup/programs.mjs";
import { SetUpError } from "../../api/setup/say.mjs";

/**
 * Another Node than this one, from npm. The package of this platform holds the program itself and needs no install script, unlike the
 * package `node`, which only fetches it.
 * @param {string} wanted a version or a range
 * @returns {Promise<string>} the path of the program
 */
export async function nodeOf(wanted) {
  const name = `node-${process.platform}-${process.arch}`;
  const folder = join(BUILD, "lanes", wanted);
  const node = join(folder, "node_modules", name, "bin/node");
  if (existsSync(node)) return node;

  const draft = `${folder}.${process.pid}.tmp`;
  mkdirSync(draft, { recursive: true });
  try {
    writeFileSync(join(draft, "package.json"), '{ "private": true }\n');
    const npm = await run([
      "npm",
      "install",
      "--prefix",
      draft,
      "--no-audit",
      "--no-fund",
      `${name}@${wanted}`,
    ]);
    if (!npm.ok)
      throw new SetUpError(
        `'npm install ${name}@${wanted}' ended with ${npm.ending}:\n${lastLines(npm.tail, 15)}`,
      );
    renameSync(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return node;
}
