/**
 * The face of `world/`: all that the broker, the virtual machine and the API may import of it. The interface of a backend and a
 * world is `model/world.ts`.
 */
export type * from "./model/world.ts";
export type { Ending, RunUsage } from "./model/endings.ts";
export type { DoctorOrder, HostCheck, HostFinding } from "./doctor/face.ts";
export { ANY_FOLDER } from "./model/held.ts";
export type { ApplyEnding, Held, HeldChange, HeldKind, HeldStore, PathReason } from "./model/held.ts";
export type { Captured, NetworkRules, Ports, WorldNetwork } from "./model/network.ts";
export { WorldUnavailable } from "./model/unavailable.ts";
export { PROGRAM_PATIENCE_MS } from "./model/programs.ts";
export type { ProgramEvent, ProgramFile, ProgramGate, ProgramStart } from "./model/programs.ts";
export { TELEMETRY_KINDS, withoutPreload } from "./model/telemetry.ts";
export type * from "./model/telemetry.ts";
export { MountsNow, type MountTable } from "./plan/mounts-now.ts";
/** For whoever shows a diff: what stands on both sides of a change. */
export { beyondBounds, MAX_FILES, MAX_FOLDERS, NO_CHANGES } from "./model/fs-diff.ts";
export { type HeldSide, HeldSides } from "./overlay/sides.ts";
/** For whoever reads a deny list: which of its rows are about files that tools run later. */
export { RUN_LATER_FOR_AGENTS, spelledOut } from "./overlay/run-later.ts";

/** For whoever changes held changes: the store does it once more for itself. */
export { KeyedMutex } from "./model/keyed-mutex.ts";

/** For whoever reads a policy: what its deny lists may say is decided here, where it is carried out. */
export { patternComplaint } from "./plan/globs.ts";
export { type Cover, coverOf, patternCovers } from "./plan/cover.ts";
export { isOfKernel as isKernels, isPrivate } from "./plan/scopes.ts";
