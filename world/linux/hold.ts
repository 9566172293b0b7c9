/** A plan in two parts: all that can be done ahead of need, and what is for one command alone. */
import { join } from "node:path";
import { FRAME, TAG } from "../../schemas/generated/frames.ts";
import type { Layers } from "../overlay/layers.ts";
import type { MountPlan } from "../plan/mounts.ts";
import { type MountOperation, operationWords } from "../plan/operations.ts";
import { encodeFields, type Field } from "./frame-codec.ts";

/** A world that waits for its command, and with it for its layers. */
export type Hold = {
  /** All is done that can be: the next thing that happens to it is `layers`, or its end. */
  readonly onStaged: () => void;
  /** Its network is gone, and so is what could be begun. */
  readonly onLost: (cause: string) => void;
  /** Those of its command, once there is one. */
  readonly layers: Promise<Layers>;
};

/** The operations that a launch holds back. */
export type Rest = { readonly onStaged: () => void; readonly operations: Promise<readonly MountOperation[]> };

export type Divided = { readonly first: MountPlan; readonly rest: Rest };

/**
 * Divides a plan before the overlay of the project: what follows may lie on it or cover it, and keeps its order. A project
 * that nobody may read has none, and nothing is held back.
 */
export function divided(plan: MountPlan, project: string, hold: Hold): Divided {
  const found = plan.mounts.findIndex((mount) => mount.op === "overlay" && mount.target === project);
  const at = found < 0 ? plan.mounts.length : found;
  const operations = hold.layers.then(({ folder }) =>
    plan.mounts.slice(at).map((each) => onto(each, folder)),
  );
  // Whoever launches hears of it, ignoring here: the launch may be over.
  operations.catch(() => {});
  return {
    first: { ...plan, mounts: plan.mounts.slice(0, at) },
    rest: { onStaged: hold.onStaged, operations },
  };
}

function onto(operation: MountOperation, layers: string): MountOperation {
  if (operation.op !== "overlay") return operation;
  return { ...operation, upper: join(layers, "upper"), work: join(layers, "work") };
}

/** What is looked at when limits are set must not wait for a command. */
export function staging(rest: Rest, onSet: () => void): Rest {
  const onStaged = (): void => {
    onSet();
    rest.onStaged();
  };
  return { ...rest, onStaged };
}

export function encodeRest(operations: readonly MountOperation[]): Buffer {
  const fields = operations.map((operation): Field => [TAG.MOUNT, operationWords(operation).join("\0")]);
  return encodeFields(FRAME.REST, 0, fields);
}
