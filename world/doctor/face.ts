/** What a doctor is asked and says; part of `world/backend.ts`. */

/** What came of trying one thing; `mend` holds command lines, or comments that begin with `#`. */
export type HostFinding = {
  readonly verdict: "ok" | "weaker" | "missing";
  /** What was seen, with the kernel's own word where there is one. */
  readonly seen: string;
  readonly mend: readonly string[];
};

/** One thing that worlds want of their host, tried by doing it. It cleans up after itself, also when `signal` aborts. */
export type HostCheck = {
  readonly name: string;
  readonly what: string;
  /** Without it what was asked for cannot be carried out. */
  readonly needed: boolean;
  readonly run: (signal: AbortSignal) => Promise<HostFinding>;
};

/** What a doctor is told about whoever asks. */
export type DoctorOrder = {
  /** Parts of the isolation vector that must be there, beyond those without which no world is made. */
  readonly required: ReadonlySet<string>;
  /** Where the layers of overlays lie; it need not exist. */
  readonly overlay: string;
  /** Whether layers of that name hold something that somebody may still want. */
  readonly isWanted: (layers: string) => boolean;
  /** Remove what is ours and belongs to nobody any more. */
  readonly mend: boolean;
};
