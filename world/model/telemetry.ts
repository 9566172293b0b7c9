/**
 * Reports of a command's programs about themselves, sent by a preloaded library: for people to read, never a basis for decisions.
 * A program can omit or forge reports.
 */

/**
 * Path of the library in every world with telemetry: a mount point directly below another mount point, so no process inside can
 * move or remove it.
 */
export const PRELOAD_LIBRARY = "/run/substrate-preload.so";

/** Variable that tells the dynamic linker which libraries to load. */
export const PRELOAD_VARIABLE = "LD_PRELOAD";

/** Variable that tells the library the listener's address. */
export const TELEMETRY_VARIABLE = "SUBSTRATE_TELEMETRY";

/** A program about to start, a file opened for writing, an address dialled, a name removed, the new name of a moved file. */
export type TelemetryKind = "exec" | "write" | "connect" | "unlink" | "rename";

export const TELEMETRY_KINDS: readonly TelemetryKind[] = ["exec", "write", "connect", "unlink", "rename"];

/** An attempted action; whether the action succeeded is unknown. Any characters, chosen by the program. */
export type TelemetryEvent = {
  readonly kind: TelemetryKind;
  /** A path, a bare name to be looked up in PATH, `address:port`, or `unix:` and a path. */
  readonly text: string;
  /** The text was truncated. */
  readonly cut: boolean;
};

export type TelemetryCounts = {
  readonly kinds: Readonly<Record<TelemetryKind, number>>;
  /** Number of counted actions dropped from the events, because there were too many. */
  readonly untold: number;
  /** Malformed reports, plus reports that senders could not deliver. */
  readonly missed: number;
};

/** Batches of events, then the counts, once, before the command's ending settles; undefined: there was no listener. */
export type TelemetryReport =
  | { readonly kind: "events"; readonly events: readonly TelemetryEvent[] }
  | { readonly kind: "counts"; readonly counts: TelemetryCounts | undefined };

/** Whether commands of the world have telemetry, if its spec asks for telemetry. */
export type WorldTelemetry = { readonly on: true } | { readonly on: false; readonly why: string };

/** Returns a command's variables with the library added after the command's own preloads. */
export function withPreload(
  env: Readonly<Record<string, string>>,
  address: string,
): Readonly<Record<string, string>> {
  const own = env[PRELOAD_VARIABLE] ?? "";
  const list = own === "" ? PRELOAD_LIBRARY : `${own}:${PRELOAD_LIBRARY}`;
  return { ...env, [PRELOAD_VARIABLE]: list, [TELEMETRY_VARIABLE]: address };
}

/** Removes the additions of `withPreload`, for variables that leave a world. Returns the same object if nothing was added. */
export function withoutPreload<Value extends Readonly<Record<string, string | undefined>>>(
  env: Value,
): Value {
  const list = env[PRELOAD_VARIABLE];
  if (list?.includes(PRELOAD_LIBRARY) !== true && env[TELEMETRY_VARIABLE] === undefined) return env;
  const { [TELEMETRY_VARIABLE]: _address, ...rest } = env;
  const left = list === undefined ? undefined : withoutLibrary(list);
  if (left !== "") return { ...rest, ...(left === undefined ? {} : { [PRELOAD_VARIABLE]: left }) } as Value;
  const { [PRELOAD_VARIABLE]: _list, ...clean } = rest;
  return clean as unknown as Value;
}

/** Blanks and colons separate the entries (ld.so(8)). */
function withoutLibrary(list: string): string {
  if (!list.includes(PRELOAD_LIBRARY)) return list;
  return list
    .split(/[ :]/)
    .filter((entry) => entry !== "" && entry !== PRELOAD_LIBRARY)
    .join(":");
}
