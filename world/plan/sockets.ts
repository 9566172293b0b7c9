/** Unix sockets of the host: those that the world shares, and those that are masked. Pure. */
import { dirname, normalize } from "node:path";
import type { SharedSocket, WorldSpec } from "../model/world.ts";
import type { HostFacts } from "./host-facts.ts";
import type { MaskOperation, MountOperation } from "./operations.ts";
import { isOfKernel, isPrivate, isReadable, isWithin } from "./scopes.ts";

/** What of a plan the sockets depend on. */
export type SocketGround = {
  /** False for a path that a list denies. */
  readonly seen: (path: string) => boolean;
  /** Host folders and files that are bound as they are. */
  readonly bound: readonly string[];
  /** Whether a host path is shown through a veil. */
  readonly isVeiled: (path: string) => boolean;
};

/** The shared sockets that are there now and that no list denies, each by its path in the world. */
export function sharedSockets(
  spec: WorldSpec,
  { seen }: SocketGround,
  facts: HostFacts,
): readonly SharedSocket[] {
  return (spec.sockets ?? []).filter(
    ({ source, target }) => facts.kind(source) === "other" && (isPrivate(target) || seen(target)),
  );
}

/** A bind of the socket's own file: in an overlay, and in a folder that is the world's own, the host's file is not there. */
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

/** Programs ask who else may enter the folder of an agent's socket, and the folder above it. */
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
 * Datagram sockets of the host in bound folders. Init decides about every connect, but sendmsg(2) has its address in memory, where
 * no filter can look. Through a veil such a send is refused. The kernel's table has any text that a program has bound: only what is a
 * socket, or a device, is masked.
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
    .filter((path) => inAny(bound, path) || !(isVeiled(path) || isPrivate(path)))
    .filter((path) => seen(path) && !shared.some(({ source }) => source === path))
    .map((target) => ({ op: "mask", target }));
}

function inAny(folders: readonly string[], path: string): boolean {
  return folders.some((folder) => isWithin(path, folder));
}
