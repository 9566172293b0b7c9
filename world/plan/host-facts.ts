/** Facts about the host for a plan, as data and functions, so that every plan can be tested as data. */

import type { SettingsFile } from "../model/world.ts";
import type { OtherName } from "./mount-table.ts";

/** Type of a host path. `symlinked`: a symbolic link somewhere on the path. */
export type PathKind = "file" | "folder" | "other" | "missing" | "symlinked";

export type HostFacts = {
  /** Looks up an absolute host path without following links. */
  readonly kind: (path: string) => PathKind;
  /** Resolves a path's links; undefined for a dangling or inaccessible path. */
  readonly real: (path: string) => string | undefined;
  /** Lists the folders in a folder, without links. */
  readonly folders: (path: string) => readonly string[];
  /** Whether the folder's names can be read and are few enough to be placed; absent: always true. */
  readonly listable?: (path: string) => boolean;
  /** Every mount point of the host, as seen by this process. */
  readonly mountPoints: readonly string[];
  /** Host paths found for the floating patterns of the spec (`floating` in denials.ts). */
  readonly found: readonly string[];
  /** Returns every other path at which the host shows the same path, or a part of its content. */
  readonly otherNames: (path: string) => readonly OtherName[];
  /** Paths of the host's datagram sockets, as bound. */
  readonly datagramSockets: readonly string[];
  /**
   * Whether commands reach no named pipe below the path: the file system can hold none, or this user may not search the folder. Absent:
   * always reachable.
   */
  readonly reachesNoPipes?: (path: string) => boolean;
  /** Host trees without an overlay, refused by this kernel earlier. */
  readonly unveilable: ReadonlySet<string>;
  /** Whether mounts are made in a user namespace: overlay marks must then be `user.` xattrs, and system folders are not writable. */
  readonly userNamespace: boolean;
  /**
   * Files of root's that programs trust only of root or their user, with their text: a user namespace shows root's files as nobody's.
   * Absent: none.
   */
  readonly rootsOwn?: readonly SettingsFile[];
  /**
   * Files that modes keep from this user already. Hiding them would make an overlay of root's folder, and a user namespace shows an
   * overlay's folder as the user's own. Absent: none.
   */
  readonly keptByModes?: ReadonlySet<string>;
  /** The host's name, also the world's name. */
  readonly hostname: string;
  /** The text of the host's hosts file; absent: none. */
  readonly hostsFile?: string;
  /** Whether the world has a DNS stub and the files that point to the stub. */
  readonly namesServed: boolean;
  /** For a world with the host's network: the text of the host's resolv.conf, if the file lies where no world shows it. */
  readonly hostResolver?: string | undefined;
  /** Folder for the upper layers of this world's scratch folders; absent: no scratch folders. */
  readonly layers?: string | undefined;
  /** Library to preload into the world's programs; absent: no library. */
  readonly preloadSource?: string | undefined;
};
