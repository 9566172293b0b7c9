/**
 * Public interface of `world/`: all exports for the broker, the virtual machine and the API. `model/world.ts` describes a backend and
 * a world.
 */
export type * from "./model/world.ts";
export { INPUT_WINDOW } from "./model/world.ts";
export type { Ending, RunUsage } from "./model/endings.ts";
export type { DoctorOrder, HostCheck, HostFinding } from "./doctor/face.ts";
export { ANY_FOLDER, isCrowded, isTooLarge } from "./model/held.ts";
export type {
  ApplyEnding,
  Held,
  HeldAttribute,
  HeldChange,
  HeldKind,
  HeldSide,
  HeldStore,
  OpenSides,
  PathReason,
  Waiter,
} from "./model/held.ts";
export type {
  Asker,
  Captured,
  DatagramPort,
  Dialled,
  DnsSockets,
  NetworkRules,
  Ports,
  StreamListener,
  WorldNetwork,
  WorldSocket,
} from "./model/network.ts";
export { hasSaidAll, isReset, joinSockets, reset } from "./model/sockets.ts";
export { DisabledWorld } from "./disabled/world.ts";
export { timeLimit } from "./model/time-limit.ts";
export { abortError, WorldUnavailable } from "./model/unavailable.ts";
export type { ProgramEvent, ProgramFile, ProgramGate, ProgramStart } from "./model/programs.ts";
export { TELEMETRY_KINDS, withoutPreload } from "./model/telemetry.ts";
export type * from "./model/telemetry.ts";
export { MountsNow, type MountTable } from "./plan/mounts-now.ts";
/** To display a diff: the content on both sides of a change. */
export { countChanges, NO_CHANGES } from "./model/fs-diff.ts";
export { Listing } from "./overlay/listing.ts";
/** To read a deny list: its rows about files that tools run later. */
export { RUN_LATER_FOR_AGENTS, spelledOut } from "./overlay/run-later.ts";

/** To read and change files inside a world. */
export * from "./files/file-order.ts";

/** To modify held changes: callers lock too, although the store holds a mutex. */
export { KeyedMutex } from "./model/keyed-mutex.ts";

/** To check a policy: `world/` decides which deny patterns are valid, because `world/` enforces the patterns. */
export { patternComplaint } from "./plan/globs.ts";
export { type Cover, coverOf, patternCovers } from "./plan/cover.ts";
export { isOfKernel as isKernels, isPrivate } from "./plan/scopes.ts";
