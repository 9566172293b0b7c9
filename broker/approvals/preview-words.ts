import type { ApprovalPreview } from "../../schemas/generated/types.ts";

export const NO_PREVIEW: ApprovalPreview = {
  state: "none",
  why: null,
  writes: 0,
  mods: 0,
  deletes: 0,
  dirs: 0,
  names: [],
  autorun: [],
  truncated: false,
  exit: null,
  signal: null,
  timed_out: false,
  duration_ms: 0,
};

export const RUNNING_PREVIEW: ApprovalPreview = { ...NO_PREVIEW, state: "running" };

/** A failed preview with its reason. */
export function noPreview(why: string): ApprovalPreview {
  return { ...NO_PREVIEW, state: "failed", why };
}
