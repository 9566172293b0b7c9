/** Checks overlays and whiteouts on the file system for held changes. */
import { existsSync, mkdtempSync, realpathSync, statfsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { HostCheck, HostFinding } from "./face.ts";
import type { WorldBackend } from "../model/world.ts";
import { LaunchFailed } from "../linux/launch.ts";
import { removeLayers } from "../overlay/layers.ts";
import { runInside } from "./inside.ts";
import { MEND_ABOVE, missing, ok, type Trials, wordsOf } from "./trials.ts";

/** Prefix of folders made and removed by a check. */
export const DOCTOR_FOLDER = ".substrate-doctor-";

/** Magic numbers of file systems (include/uapi/linux/magic.h). */
const FILE_SYSTEMS: Readonly<Record<number, string>> = {
  0xef53: "ext4",
  0x5846_5342: "xfs",
  0x9123_683e: "btrfs",
  0x0102_1994: "tmpfs",
  0x794c_7630: "overlayfs",
  0x6969: "nfs",
  0x6573_5546: "fuse",
  0x2fc1_2fc1: "zfs",
};

export function overlayChecks(
  trials: Trials,
  backend: WorldBackend,
  overlay: string,
  needed: boolean,
): readonly HostCheck[] {
  const check = (
    name: string,
    what: string,
    run: (folder: string, signal: AbortSignal) => Promise<HostFinding>,
  ) => ({
    name,
    what,
    needed,
    run: (signal: AbortSignal) => inFolderNear(overlay, (folder) => run(folder, signal)),
  });
  return [
    check("overlay", "overlay of a project that holds its changes", (folder, signal) =>
      tryOverlay(backend, folder, signal),
    ),
    check("whiteouts", "whiteouts (mknod c 0 0) that hide a name", (folder, signal) =>
      tryWhiteout(trials, folder, signal),
    ),
  ];
}

/** Runs a check in a new folder on the file system of the layers, even if their folder does not exist yet. */
async function inFolderNear(
  overlay: string,
  act: (folder: string) => Promise<HostFinding>,
): Promise<HostFinding> {
  const place = nearestExisting(overlay);
  let folder: string;
  try {
    folder = mkdtempSync(join(realpathSync(place), DOCTOR_FOLDER));
  } catch (error) {
    return missing(wordsOf(error), `# Let this user write in '${place}', or choose another SUBSTRATE_HOME`);
  }
  try {
    return await act(folder);
  } finally {
    await removeLayers(folder);
  }
}

async function tryOverlay(backend: WorldBackend, folder: string, signal: AbortSignal): Promise<HostFinding> {
  const [project, layers] = [join(folder, "project"), join(folder, "layers")];
  await mkdir(project);
  for (const name of ["kept", "changed", "removed"]) await writeFile(join(project, name), name);
  try {
    const script = "echo new > made && echo more >> changed && rm removed";
    const { code, output, diff } = await runInside(
      backend,
      project,
      { kind: "overlay", layers },
      script,
      signal,
    );
    const held = JSON.stringify([diff?.writes, diff?.mods, diff?.deletes]);
    const unchanged = existsSync(join(project, "removed")) && !existsSync(join(project, "made"));
    if (code === 0 && unchanged && held === '[["made"],["changed"],["removed"]]')
      return ok(`held a new, a changed and a removed file, on ${fileSystemOf(folder)}`);
    const how = `the command ended with ${code ?? "a signal"}, held ${held}`;
    return missing(`${how} ${output.trim()}`.trim(), elsewhere(folder));
  } catch (error) {
    return missing(wordsOf(error), overlayMend(error, folder));
  }
}

function overlayMend(error: unknown, folder: string): string {
  if (!(error instanceof LaunchFailed) || !error.step.startsWith("mount overlay")) return MEND_ABOVE;
  if (error.errno === "ENODEV") return "sudo modprobe overlay";
  return elsewhere(folder);
}

function elsewhere(folder: string): string {
  return `# Let held changes lie on ext4, xfs, btrfs or tmpfs: choose a SUBSTRATE_HOME there; '${dirname(folder)}' is on ${fileSystemOf(folder)}`;
}

async function tryWhiteout(trials: Trials, folder: string, signal: AbortSignal): Promise<HostFinding> {
  const own = await trials.needsUserNamespace(signal);
  const tried = await trials.probe(["whiteout", own ? "user" : "none", join(folder, "gone")], signal);
  if (tried.ok) return ok(own ? "made one in a user namespace" : "made one");
  const isFirst = tried.step.startsWith("mknod");
  return missing(`${tried.step} failed with ${tried.errno}`, isFirst ? elsewhere(folder) : MEND_ABOVE);
}

function nearestExisting(path: string): string {
  return existsSync(path) || path === "/" ? path : nearestExisting(dirname(path));
}

function fileSystemOf(folder: string): string {
  const { type } = statfsSync(folder);
  return FILE_SYSTEMS[type] ?? `a file system of type 0x${type.toString(16)}`;
}
