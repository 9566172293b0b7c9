/** What a plan needs to know of the host. It comes in as data and functions, so that every plan can be tested as data. */

/** What stands at a host path. `symlinked`: a symbolic link somewhere on the way there. */
export type PathKind = "file" | "folder" | "other" | "missing" | "symlinked";

export type HostFacts = {
  /** What stands at an absolute host path, looked at without following links. */
  readonly kind: (path: string) => PathKind;
  /** Where a path leads once its links are followed; undefined where it leads nowhere, or nowhere we may look. */
  readonly real: (path: string) => string | undefined;
  /** The names of the folders in a folder, links left out. */
  readonly folders: (path: string) => readonly string[];
  /** Every mount point of the host, as this process sees it. */
  readonly mountPoints: readonly string[];
  /** Paths of the host's listening sockets. */
  readonly sockets: readonly string[];
  /** Host trees over which this kernel has refused an overlay. */
  readonly unveilable: ReadonlySet<string>;
  /** A user namespace makes the mounts: overlay marks must be `user.` xattrs, and system folders cannot be written. */
  readonly userNamespace: boolean;
  /** What the host calls itself, and so the world. */
  readonly hostname: string;
  /** The world has a stub for names, which its own files name. */
  readonly namesServed: boolean;
  /** Where the upper layers of this world's veils lie, when stray writes are kept. */
  readonly strays: string | undefined;
  /** The library that programs of this world load; absent: none. */
  readonly preloadSource?: string | undefined;
};
