import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { mayHold } from "../../../../broker/held/past.ts";
import type { Span } from "../../../../schemas/generated/types.ts";
import { dropLeftLayers } from "../../../../world/overlay/layers.ts";

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "substrate-layers-"));
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

function layers(span: string, files: readonly string[]): void {
  mkdirSync(join(root, span, "upper"), { recursive: true });
  mkdirSync(join(root, span, "work/work"), { recursive: true });
  for (const file of files) writeFileSync(join(root, span, "upper", file), "");
}

describe("layers that a killed broker left", () => {
  test("go when their span holds nothing or nothing was written, and stay when somebody could ask for them", async () => {
    layers("spn_lost", ["half-done"]);
    layers("spn_held", ["change"]);
    layers("spn_unknown", ["change"]);
    layers("spn_begun", []);
    expect(await dropLeftLayers(root, (span) => span !== "spn_lost")).toBe(2);
    expect(readdirSync(root).sort()).toEqual(["spn_held", "spn_unknown"]);
  });

  test("that come after the call are not touched", async () => {
    const dropping = dropLeftLayers(root, () => false);
    layers("spn_new", []);
    expect(await dropping).toBe(0);
    expect(existsSync(join(root, "spn_new"))).toBe(true);
  });

  test("without a folder to look into are none", async () => {
    expect(await dropLeftLayers(join(root, "absent"), () => false)).toBe(0);
  });

  test.each([
    ["listed as held", { outcome: "ended", held: true }, true],
    ["lost with its world, and listed", { outcome: "lost", held: true }, true],
    ["lost with its broker", { outcome: "lost", held: undefined }, false],
    ["listed as changing nothing", { outcome: "ended", held: false }, false],
    ["whose listing failed", { outcome: "failed", held: undefined }, true],
  ] as const)("are kept as their span says: one %s", (_what, { outcome, held }, kept) => {
    const fs_diff = held === undefined ? null : ({ held } as Span["fs_diff"]);
    const none = (): readonly Span[] => [];
    expect(mayHold({ event_type: "command_complete", outcome, fs_diff } as Span, none)).toBe(kept);
  });

  test("are kept when they were applied, since they can be taken back", () => {
    const span = { event_type: "command_complete", outcome: "ended", overlay: {} } as Span;
    const applied = { held_changes: { action: "apply" } } as Span;
    expect(mayHold(span, () => [applied])).toBe(true);
    expect(mayHold(span, () => [{} as Span])).toBe(false);
  });

  test("are kept when the trace does not know the span: somebody may have begun a new one", () => {
    expect(mayHold(undefined, () => [])).toBe(true);
  });
});
