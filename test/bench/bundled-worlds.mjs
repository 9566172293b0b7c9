/** What starts worlds, for benches that need no broker. */
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const CHECKOUT = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Both out of one bundle: what the one throws is of a class that the other knows.
 * @param {string} folder
 * @returns {Promise<typeof import("../../world/linux/backend.ts") & typeof import("../../world/linux/launch.ts")>}
 */
export async function bundledWorlds(folder) {
  const outfile = join(folder, "worlds.mjs");
  const contents = 'export * from "./backend.ts"; export * from "./launch.ts";';
  await build({
    stdin: { contents, resolveDir: join(CHECKOUT, "world/linux") },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    outfile,
    logLevel: "error",
  });
  return await import(pathToFileURL(outfile).href);
}
