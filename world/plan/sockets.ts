/** Plans the host's Unix sockets: which the world shares, and which are masked. Pure. */
import { dirname, normalize } from "node:path";
import type { SharedSocket, WorldSpec } from "../model/world.ts";
import type { HostFacts } from "./host-facts.ts";
import type { MaskOperation, MountOperation } from "./operations.ts";
import { isInAny, isOfKernel, isPrivate, isReadable, isWithin } from "./scopes.ts";

/** The parts of a plan relevant to sockets. */
export type SocketGround = {
  /** False for a denied path. */
  readonly seen: (path: string) => boolean;
  /** Host folders and files bound as they are. */
  readonly bound: readonly string[];
  /** Whether a host path is shown through a veil. */
  readonly isVeiled: (path: string) => boolean;
};

/** Returns the shared sockets that exist and are not denied. */
export function sharedSockets(
  spec: WorldSpec,
  { seen }: Pick<SocketGround, "seen">,
  facts: HostFacts,
): readonly SharedSocket[] {
  return (spec.sockets ?? []).filter(
    ({ source, target }) => facts.kind(source) === "other" && (isPrivate(target) || seen(target)),
  );
}

/** Binds the files of shared sockets: overlays and the world's own folders do not show the host's files. */
export function sharedSocketMounts(
  shared: readonly SharedSocket[],
  spec: WorldSpec,
  { bound }: SocketGround,
): readonly MountOperation[] {
  const isDirect = ({ source, target }: SharedSocket): boolean =>
    spec.access.kind === "direct" && source === target && bound.some((path) => isWithin(source, path));
  return shared
    .filter((socket) => !isDirect(socket))
    .flatMap(({ source, target, folderMode }): readonly MountOperation[] => [
      ...(isPrivate(target) || !isReadable(target, spec) ? place(target, folderMode) : []),
      { op: "bind", source, target, access: "ro" },
    ]);
}

/** Makes the mount point. Programs check who may enter the folder of an agent's socket, and the folder above. */
function place(target: string, folderMode: string | undefined): readonly MountOperation[] {
  const folder = dirname(target);
  const closed: readonly MountOperation[] =
    folderMode === undefined
      ? []
      : [
          { op: "dir", target: dirname(folder), mode: folderMode },
          { op: "dir", target: folder, mode: folderMode },
        ];
  return [...closed, { op: "file", target }];
}

/**
 * Returns the host's datagram sockets to mask in bound folders. Init decides every connect, but sendmsg(2) takes its address from
 * memory, invisible to a filter. Veils refuse such sends by themselves. Programs put any text into the kernel's table, so only
 * paths of sockets or devices are masked.
 */
export function maskedSockets(
  spec: WorldSpec,
  shared: readonly SharedSocket[],
  { seen, bound, isVeiled }: SocketGround,
  facts: HostFacts,
): readonly MaskOperation[] {
  if (spec.access.kind === "overlay") return [];
  const real = facts.datagramSockets.flatMap((path) => facts.real(normalize(path)) ?? []);
  return [...new Set(real)]
    .filter((path) => facts.kind(path) === "other" && !isOfKernel(path))
    .filter((path) => isInAny(bound, path) || !(isVeiled(path) || isPrivate(path)))
    .filter((path) => seen(path) && !shared.some(({ source }) => source === path))
    .map((target) => ({ op: "mask", target }));
}
