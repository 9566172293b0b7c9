/** What a plan needs to know of the host. It comes in as data and functions, so that every plan can be tested as data. */

import type { OtherName } from "./mount-table.ts";

/** What stands at a host path. `symlinked`: a symbolic link somewhere on the way there. */
export type PathKind = "file" | "folder" | "other" | "missing" | "symlinked";

export type HostFacts = {
  /** What stands at an absolute host path, looked at without following links. */
  readonly kind: (path: string) => PathKind;
  /** Where a path leads once its links are followed; undefined where it leads nowhere, or nowhere we may look. */
  readonly real: (path: string) => string | undefined;
  /** The names of the folders in a folder, links left out. */
  readonly folders: (path: string) => readonly string[];
  /** Whether all its names can be read and given a place; absent: each folder's can. */
  readonly listable?: (path: string) => boolean;
  /** Every mount point of the host, as this process sees it. */
  readonly mountPoints: readonly string[];
  /** What the floating patterns of the spec stand for in the host's trees (`floating` in denials.ts). */
  readonly found: readonly string[];
  /** Every other path at which the host shows a path, or a part of what lies below it. */
  readonly otherNames: (path: string) => readonly OtherName[];
  /** Paths at which the host's datagram sockets were bound, as they were given. */
  readonly datagramSockets: readonly string[];
  /** Host trees over which this kernel has refused an overlay. */
  readonly unveilable: ReadonlySet<string>;
  /** A user namespace makes the mounts: overlay marks must be `user.` xattrs, and system folders cannot be written. */
  readonly userNamespace: boolean;
  /** What the host calls itself, and so the world. */
  readonly hostname: string;
  /** The world has a stub for names, which its own files name. */
  readonly namesServed: boolean;
  /** Where the upper layers of this world's scratch folders lie; absent: it has none. */
  readonly layers?: string | undefined;
  /** The library that programs of this world load; absent: none. */
  readonly preloadSource?: string | undefined;
};
