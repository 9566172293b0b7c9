/** The folders below SUBSTRATE_HOME that serve as homes of their own, one for each profile. */
import { lstatSync, mkdirSync } from "node:fs";
import { type OwnHome, WorldUnavailable } from "../../world/backend.ts";

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
 * Returns the home of a profile, and makes its folder when first needed. A link or a file there, or a folder of another user, is
 * refused. Throws `WorldUnavailable`.
 */
export function openOwnHome({ homes, userHome, uid }: HomeNeeds, id: string): OwnHome {
  const folder = `${homes}/${id}`;
  if (!ID.test(id)) throw unusable(folder, "its name is not the id of a policy");
  if (userHome === "/")
    throw unusable(folder, "the home of this user is '/', which it cannot take the place of");
  const { dev, ino } = lookAt(folder, uid) ?? made(folder, uid);
  return { path: userHome, folder, identity: `${dev}:${ino}` };
}

type Look = { readonly dev: bigint; readonly ino: bigint };

function made(folder: string, uid: number): Look {
  try {
    // mkdir(2) does not follow a link in the last component.
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw unusable(folder, (error as Error).message);
  }
  const look = lookAt(folder, uid);
  if (look === undefined) throw unusable(folder, "it was removed at once");
  return look;
}

/** Undefined for a missing folder. */
function lookAt(folder: string, uid: number): Look | undefined {
  const stat = lstatSync(folder, { bigint: true, throwIfNoEntry: false });
  if (stat === undefined) return undefined;
  if (!stat.isDirectory()) throw unusable(folder, "it is a link or a file");
  if (stat.uid !== BigInt(uid)) throw unusable(folder, `it belongs to user ${stat.uid}; this is user ${uid}`);
  return { dev: stat.dev, ino: stat.ino };
}

function unusable(folder: string, why: string): WorldUnavailable {
  return new WorldUnavailable(
    `Cannot use '${folder}' as a home of its own: ${why}`,
    "Move it away; the next command makes a new folder there",
  );
}
