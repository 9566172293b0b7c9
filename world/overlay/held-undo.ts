/** Plans the steps that undo applied changes. */
import type { Journal, Past, Step } from "./held-journal.ts";
import { ancestorsOf, parentOf, ROW, type Sight } from "./rows.ts";
import { anyTime } from "./held-steps.ts";

/** Whether a file exists at a path below `layers`. */
export type Look = (path: string) => Promise<boolean>;

/** A step of an apply to reverse, at its own path or at a path below. */
type Reverse = { readonly path: string; readonly past: Past; readonly index: number; readonly step: Step };

export async function undoSteps(
  journal: Journal,
  chosen: ReadonlySet<string>,
  look: Look,
): Promise<readonly Step[]> {
  const staying = [...journal.applied.keys()].filter((path) => !chosen.has(path));
  const { carriers, holders } = attributesOf(journal);
  const held = new Set(staying.map((path) => holders.get(path)));
  const sizes = sizesOf(journal.left);
  const expect = (path: string): string => expectOf(journal.left.get(path), sizes.get(path));
  const steps: Step[] = [];
  const parents = new Set<string>();
  const stays = new Set([...staying, ...foldersAbove(staying)]);
  for (const { path, past, index, step } of reversesOf(journal, chosen, stays)) {
    const source = `${past.folder}/old/${index}${path.slice(step.path.length)}`;
    if (step.kind === "attributes") {
      // An earlier apply may have set the times already, so take the oldest saved attributes.
      const first = held.has(path) ? undefined : carriers.get(path);
      steps.push({ kind: "attributes", how: "whole", path, source: first ?? source, expect: expect(path) });
      continue;
    }
    parents.add(parentOf(path));
    // If the step replaced anything but a folder, nothing existed below.
    const before =
      step.expect !== "" &&
      (step.path === path || step.expect.startsWith(`${ROW.folder} `)) &&
      (await look(source));
    const there = expect(path);
    if (before) steps.push({ kind: "put", how: "whole", path, source, expect: there });
    else steps.push({ kind: "take", how: "whole", path, source: "", expect: there });
  }
  return [...steps, ...timesOf(journal, held, parents, carriers, steps)];
}

/** Returns the steps to reverse, one per selected path, without paths covered by the step of a folder above. */
function reversesOf(
  journal: Journal,
  chosen: ReadonlySet<string>,
  staying: ReadonlySet<string>,
): readonly Reverse[] {
  const found = new Map<string, Reverse>();
  const places = new Map(journal.past.map((past) => [past.folder, placesOf(past)]));
  for (const path of chosen) {
    const past = journal.past.find(({ folder }) => folder === journal.applied.get(path));
    const covering = past === undefined ? null : coverOf(past, places.get(past.folder) ?? new Map(), path);
    if (covering === null) continue;
    // A folder put or replaced by one step is reversed as a whole, unless the folder or a path inside is to stay.
    const whole = covering.step.kind === "put" && !staying.has(covering.step.path);
    const reverse = whole ? { ...covering, path: covering.step.path } : covering;
    found.set(reverse.path, reverse);
  }
  return [...found.values()].filter(
    ({ path }) => ![...ancestorsOf(path)].some((folder) => takesAllBelow(found.get(folder))),
  );
}

function takesAllBelow(reverse: Reverse | undefined): boolean {
  return reverse !== undefined && reverse.step.kind !== "attributes";
}

/** Indexes the steps of an apply by path. */
function placesOf({ steps }: Past): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (const [index, { kind, how, path }] of steps.entries())
    if (kind === "put" || kind === "take" || (kind === "attributes" && how === "whole"))
      places.set(path, index);
  return places;
}

function coverOf(past: Past, places: ReadonlyMap<string, number>, path: string): Reverse | null {
  for (const at of [path, ...ancestorsOf(path)]) {
    const index = places.get(at);
    const step = index === undefined ? undefined : past.steps[index];
    if (index === undefined || step === undefined || (step.kind === "attributes" && at !== path)) continue;
    return { path, past, index, step };
  }
  return null;
}

/** Restores the times of folders that gain or lose names; not where an applied change stays. */
function timesOf(
  journal: Journal,
  held: ReadonlySet<string | undefined>,
  parents: ReadonlySet<string>,
  carriers: ReadonlyMap<string, string>,
  steps: readonly Step[],
): readonly Step[] {
  const done = new Set(steps.filter(({ kind }) => kind === "attributes").map(({ path }) => path));
  return [...parents].flatMap((path): readonly Step[] => {
    const sight = journal.left.get(path);
    if (done.has(path) || sight === undefined) return [];
    const source = held.has(path) ? undefined : carriers.get(path);
    return [
      {
        kind: "attributes",
        how: source === undefined ? "nothing" : "times",
        path,
        source: source ?? "",
        expect: anyTime(sight.text),
      },
    ];
  });
}

type Attributes = {
  /** By path: the saved copy with the attributes from before the first apply still in effect there. */
  readonly carriers: ReadonlyMap<string, string>;
  /** By applied path: the path whose attributes changed with the apply: the parent folder, or the path itself. */
  readonly holders: ReadonlyMap<string, string>;
};

function attributesOf({ past }: Journal): Attributes {
  const carriers = new Map<string, string>();
  const holders = new Map<string, string>();
  for (const change of past) {
    if (change.verb === "apply") {
      for (const [index, { kind, path }] of change.steps.entries())
        if (kind === "attributes" && !carriers.has(path)) carriers.set(path, `${change.folder}/old/${index}`);
      const places = placesOf(change);
      for (const path of change.paths) holders.set(path, holderOf(coverOf(change, places, path), path));
    }
    if (change.verb === "undo") {
      for (const path of change.paths) holders.delete(path);
      const held = new Set(holders.values());
      for (const path of carriers.keys()) if (!held.has(path)) carriers.delete(path);
    }
  }
  return { carriers, holders };
}

function holderOf(cover: Reverse | null, path: string): string {
  const step = cover?.step;
  return step?.kind === "attributes" ? step.path : parentOf(step?.path ?? path);
}

function foldersAbove(paths: readonly string[]): ReadonlySet<string> {
  const folders = new Set<string>();
  for (const path of paths) {
    for (const folder of ancestorsOf(path)) {
      if (folders.has(folder)) break;
      folders.add(folder);
    }
  }
  return folders;
}

type Size = { readonly count: number; readonly newest: bigint };

/** Number of known paths and latest ctime below each folder. */
function sizesOf(left: ReadonlyMap<string, Sight>): ReadonlyMap<string, Size> {
  const sizes = new Map<string, Size>();
  for (const [path, { ctime }] of left) {
    if (path === "") continue;
    for (const folder of ancestorsOf(path)) {
      const { count, newest } = sizes.get(folder) ?? { count: 0, newest: 0n };
      sizes.set(folder, { count: count + 1, newest: ctime > newest ? ctime : newest });
    }
  }
  return sizes;
}

function expectOf(sight: Sight | undefined, size: Size | undefined): string {
  if (sight === undefined) return "";
  const words = sight.text.split(" ");
  // Undoing one of several hard links changes the ctime of the file, seen under every other name.
  const ctime = sight.type === ROW.file && sight.links > 1 ? 0n : sight.ctime;
  const below =
    sight.type === ROW.folder ? [String(size?.newest ?? 0), String(size?.count ?? 0)] : ["0", "0"];
  return [...words.slice(0, 5), String(ctime), words[6], ...below].join(" ");
}
