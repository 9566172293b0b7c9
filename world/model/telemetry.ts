/**
 * What the programs of a command say of themselves, by a library that is loaded into them: for people to see, never to decide
 * by. A program may leave it out or make it up.
 */

/** Where the library is in every world that has it: a mount point directly below one, which nobody inside can move or remove. */
export const PRELOAD_LIBRARY = "/run/substrate-preload.so";

/** By which the dynamic linker knows what to load. */
export const PRELOAD_VARIABLE = "LD_PRELOAD";

/** By which the library knows where somebody listens. */
export const TELEMETRY_VARIABLE = "SUBSTRATE_TELEMETRY";

/** A program that was to start, a file opened for writing, an address dialled, a name taken away, the new name of what was moved. */
export type TelemetryKind = "exec" | "write" | "connect" | "unlink" | "rename";

export const TELEMETRY_KINDS: readonly TelemetryKind[] = ["exec", "write", "connect", "unlink", "rename"];

/** What was about to be done, whether it then succeeded or not. Any characters, chosen by the program. */
export type TelemetryEvent = {
  readonly kind: TelemetryKind;
  /** A path, a bare name that is looked for on PATH, `address:port`, or `unix:` and a path. */
  readonly text: string;
  /** There is more of it. */
  readonly cut: boolean;
};

export type TelemetryCounts = {
  readonly kinds: Readonly<Record<TelemetryKind, number>>;
  /** How many of those were not told as events, because they were too many. */
  readonly untold: number;
  /** What was no report, and reports that senders say nobody took. */
  readonly missed: number;
};

/** Events in batches, then once, before the command's ending settles, what came of them; undefined: nobody listened. */
export type TelemetryReport =
  | { readonly kind: "events"; readonly events: readonly TelemetryEvent[] }
  | { readonly kind: "counts"; readonly counts: TelemetryCounts | undefined };

/** Of a world whose spec asks for it: whether its commands have it. */
export type WorldTelemetry = { readonly on: true } | { readonly on: false; readonly why: string };

/** A command's variables with the library behind whatever it wants to be loaded itself. */
export function withPreload(
  env: Readonly<Record<string, string>>,
  address: string,
): Readonly<Record<string, string>> {
  const own = env[PRELOAD_VARIABLE] ?? "";
  const list = own === "" ? PRELOAD_LIBRARY : `${own}:${PRELOAD_LIBRARY}`;
  return { ...env, [PRELOAD_VARIABLE]: list, [TELEMETRY_VARIABLE]: address };
}

/** The same without what `withPreload` adds: variables that leave a world. The same object where there is nothing of it. */
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

/** Entries stand between blanks and colons (ld.so(8)). */
function withoutLibrary(list: string): string {
  if (!list.includes(PRELOAD_LIBRARY)) return list;
  return list
    .split(/[ :]/)
    .filter((entry) => entry !== "" && entry !== PRELOAD_LIBRARY)
    .join(":");
}
