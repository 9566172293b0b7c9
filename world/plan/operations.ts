import { join } from "node:path";

/**
 * A mount plan is data: a list of operations that `substrate-init` applies in order, without judging them. Sources are paths on
 * the host, targets are paths inside the world.
 */
export type MountOperation =
  | { readonly op: "root" }
  /** Makes the new root's own mount read-only; mounts on top are unaffected. */
  | { readonly op: "closed" }
  | { readonly op: "tmpfs"; readonly target: string; readonly options: string }
  | { readonly op: "dir"; readonly target: string; readonly mode: string }
  | { readonly op: "file"; readonly target: string; readonly mode?: string }
  /** `kept`: writable, and init reports whether commands have written there. */
  | {
      readonly op: "bind";
      readonly source: string;
      readonly target: string;
      readonly access: "rw" | "ro" | "kept";
    }
  | { readonly op: "readonly"; readonly target: string }
  | { readonly op: "text"; readonly target: string; readonly text: string }
  | { readonly op: "proc"; readonly target: string }
  | { readonly op: "device"; readonly name: string }
  | { readonly op: "devpts"; readonly target: string }
  | { readonly op: "symlink"; readonly text: string; readonly target: string }
  | MaskOperation
  | { readonly op: "hide"; readonly target: string }
  /**
   * `spine`: announces a folder, rebuilt in memory, on the path to mounts of the host; all come before the first `fill`.
   * `sources`: the folder from which their children are bound.
   */
  | { readonly op: "spine" | "fill" | "sources"; readonly target: string }
  /** A folder shown by the veil above, even if missing on the host. */
  | { readonly op: "folder"; readonly target: string }
  /** A file shown by the veil above, in place of the host's or in addition. */
  | { readonly op: "show"; readonly target: string; readonly text: string }
  | VeilOperation
  | OverlayOperation;

export type MaskOperation = { readonly op: "mask"; readonly target: string };

/** A host tree under a layer of whiteouts; with `layers`, writes go to their upper layer. */
export type VeilOperation = {
  readonly op: "veil";
  readonly source: string;
  readonly target: string;
  readonly layers: string | undefined;
  readonly userxattr: boolean;
};

type OverlayOperation = {
  readonly op: "overlay";
  readonly lower: string;
  readonly upper: string;
  readonly work: string;
  readonly target: string;
  /** Whiteouts and opaque marks in `user.` xattrs: an unprivileged user namespace may write no others. */
  readonly userxattr: boolean;
};

/** Encodes an operation as words, joined by NUL for init. */
export function operationWords(operation: MountOperation): readonly string[] {
  switch (operation.op) {
    case "root":
    case "closed":
      return [operation.op];
    case "tmpfs":
      return ["tmpfs", operation.target, operation.options];
    case "dir":
      return ["dir", operation.target, operation.mode];
    case "bind":
      return ["bind", operation.source, operation.target, operation.access];
    case "device":
      return ["device", operation.name];
    case "text":
    case "show":
      return [operation.op, operation.target, operation.text];
    case "symlink":
      return ["symlink", operation.text, operation.target];
    case "overlay":
      return overlayWords(operation);
    case "veil":
      return veilWords(operation);
    case "file":
      return operation.mode === undefined
        ? ["file", operation.target]
        : ["file", operation.target, operation.mode];
    case "hide":
    case "folder":
    case "spine":
    case "fill":
    case "sources":
    case "readonly":
    case "proc":
    case "devpts":
    case "mask":
      return [operation.op, operation.target];
  }
}

/** Formats an operation for people, without the content of files. */
export function operationLine(operation: MountOperation): string {
  return operation.op === "text" || operation.op === "show"
    ? `${operation.op} ${operation.target}`
    : operationWords(operation).join(" ");
}

function veilWords({ source, target, layers, userxattr }: VeilOperation): readonly string[] {
  const upper = layers === undefined ? [] : [join(layers, "upper"), join(layers, "work")];
  return ["veil", source, target, ...upper, ...(userxattr ? ["userxattr"] : [])];
}

function overlayWords(operation: OverlayOperation): readonly string[] {
  const words = ["overlay", operation.lower, operation.upper, operation.work, operation.target];
  return operation.userxattr ? [...words, "userxattr"] : words;
}
