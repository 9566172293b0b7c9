/** The folders below SUBSTRATE_HOME that serve as homes of their own, one for each profile. */
import { chmodSync, mkdirSync } from "node:fs";
import { type OwnHome, WorldUnavailable } from "../../world/backend.ts";
import { isWithin } from "../model/folders.ts";
import { lookExactlyAt } from "../model/host-paths.ts";

/** An id of a policy, so never a path. */
const ID = /^[a-z0-9-]+$/;

/** The broker's parts needed to open a home. */
export type HomeNeeds = {
  /** Folder of the homes: real path. Only the broker writes there, because every world hides SUBSTRATE_HOME. */
  readonly homes: string;
  /** Real path of the user's home. */
  readonly userHome: string;
  readonly uid: number;
};

/**
 * Returns the home of a profile for a project, and makes its folder when first needed. A link or a file there, or a folder of
 * another user, is refused. Throws `WorldUnavailable`.
 */
export function openOwnHome({ homes, userHome, uid }: HomeNeeds, id: string, project: string): OwnHome {
  const folder = `${homes}/${id}`;
  if (!ID.test(id)) throw unusable(folder, "its name is not the id of a policy");
  if (userHome === "/")
    throw unusable(folder, "the home of this user is '/', which it cannot take the place of");
  const problem = makeFolder(folder);
  const stat = lookExactlyAt(folder);
  if (stat === undefined) throw unusable(folder, problem ?? "it was removed at once");
  if (!stat.isDirectory()) throw unusable(folder, "it is a link or a file");
  if (stat.uid !== BigInt(uid)) throw unusable(folder, `it belongs to user ${stat.uid}; this is user ${uid}`);
  // A command may have closed its home to itself.
  if ((stat.mode & 0o700n) !== 0o700n) chmodSync(folder, 0o700);
  return { path: userHome, folder, identity: identityOf(stat), way: wayTo(project, userHome, folder) };
}

/**
 * Makes the first folder, so that the first command does not change its identity. The world refuses whatever else has the name.
 */
function wayTo(project: string, userHome: string, folder: string): string | null {
  if (!isWithin(project, userHome)) return null;
  const first = `${folder}/${project.slice(userHome.length + 1).split("/", 1)[0] ?? ""}`;
  makeFolder(first);
  const stat = lookExactlyAt(first);
  // An inode number is soon used again; no program can set the birth time.
  return stat === undefined ? "missing" : `${identityOf(stat)}:${stat.birthtimeNs}`;
}

/** Returns a problem. mkdir(2) does not follow a link in the last component. */
function makeFolder(path: string): string | undefined {
  try {
    mkdirSync(path, { mode: 0o700 });
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EEXIST" ? undefined : (error as Error).message;
  }
}

function identityOf({ dev, ino }: { readonly dev: bigint; readonly ino: bigint }): string {
  return `${dev}:${ino}`;
}

function unusable(folder: string, why: string): WorldUnavailable {
  return new WorldUnavailable(
    `Cannot use '${folder}' as a home of its own: ${why}`,
    "Move it away; the next command makes a new folder there",
  );
}
