/** Plans the telemetry library at its fixed path. Pure. */
import { dirname } from "node:path";
import { PRELOAD_LIBRARY, type WorldTelemetry } from "../model/telemetry.ts";
import type { WorldSpec } from "../model/world.ts";
import type { HostFacts } from "./host-facts.ts";
import type { MountOperation } from "./operations.ts";

/**
 * Binds the library. Folder and file are both mount points, which the kernel neither moves nor removes (EBUSY). A separate folder
 * could be moved away, and another library put in its place for later commands.
 */
export function preload({ preloadSource }: HostFacts): readonly MountOperation[] {
  if (preloadSource === undefined) return [];
  return [
    { op: "file", target: PRELOAD_LIBRARY },
    { op: "bind", source: preloadSource, target: PRELOAD_LIBRARY, access: "ro" },
  ];
}

/** Path of the library on the host, and the reason if the kernel refused to bind the library. */
export type PreloadSource = { readonly library: string | undefined; readonly refusal: string | undefined };

/** Whether a world has telemetry; undefined if its spec does not ask. */
export function telemetryOf(
  { telemetry }: Pick<WorldSpec, "telemetry">,
  { library, refusal }: PreloadSource,
  { kind }: Pick<HostFacts, "kind">,
): WorldTelemetry | undefined {
  if (telemetry !== true) return undefined;
  const place = dirname(PRELOAD_LIBRARY);
  if (refusal !== undefined) return { on: false, why: refusal };
  if (library === undefined || kind(library) !== "file")
    return {
      on: false,
      why: "the library that programs would load is not there: run 'npm run build' in the checkout, or install the package again",
    };
  return kind(place) === "folder"
    ? { on: true }
    : { on: false, why: `this host has no folder ${place}, where programs would find the library` };
}
