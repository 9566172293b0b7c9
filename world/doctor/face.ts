/** The doctor's input and output; part of `world/backend.ts`. */

/** Result of one check; `mend` holds command lines, or comments that begin with `#`. */
export type HostFinding = {
  readonly verdict: "ok" | "weaker" | "missing";
  /** The observation, with the kernel's own error where available. */
  readonly seen: string;
  readonly mend: readonly string[];
};

/** A check of one feature that worlds need, made by using the feature. Cleans up after itself, also when `signal` aborts. */
export type HostCheck = {
  readonly name: string;
  readonly what: string;
  /** Whether the requested isolation fails without the feature. */
  readonly needed: boolean;
  readonly run: (signal: AbortSignal) => Promise<HostFinding>;
};

/** The caller's requirements. */
export type DoctorOrder = {
  /** Required parts of the isolation vector, beyond those needed for any world. */
  readonly required: ReadonlySet<string>;
  /** Folder for the layers of overlays; may be missing. */
  readonly overlay: string;
  /** Whether somebody may still want the content of the layers with that name. */
  readonly isWanted: (layers: string) => boolean;
  /** Remove left-overs of Substrate without an owner. */
  readonly mend: boolean;
};
