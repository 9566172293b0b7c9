import { type Dirent, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type CaseKind, type CaseProblem, parseCase, type PolicyCase } from "./parse-case.ts";

const KINDS: readonly CaseKind[] = ["ALLOW", "DENY"];

/** A case has a few lines; a larger file is something else. */
const MAX_CASE_BYTES = 1024 * 1024;

export type FoundCases = { readonly cases: readonly PolicyCase[]; readonly problems: readonly CaseProblem[] };

/** Reads the cases in a folder, in path order. A missing folder has no cases. */
export function readCases(folder: string): FoundCases {
  const found = entriesOf(folder).map((entry): FoundCases => {
    const place = join(folder, entry.name);
    const kind = KINDS.find((name) => name === entry.name);
    if (kind === undefined || !entry.isDirectory())
      return notACase(place, `cases must be in ${KINDS.join(" or ")}`);
    return joined(entriesOf(place).map((file) => readOne(join(place, file.name), file, kind)));
  });
  return joined(found);
}

function readOne(place: string, entry: Dirent, kind: CaseKind): FoundCases {
  if (!entry.isFile() || !entry.name.endsWith(".yaml"))
    return notACase(place, "a case must be a regular file whose name ends in .yaml");
  const bytes = readFileSync(place);
  if (bytes.length > MAX_CASE_BYTES)
    return notACase(place, `a case may have at most ${MAX_CASE_BYTES} bytes`);
  const parsed = parseCase(bytes.toString("utf8"), place, kind);
  return "ok" in parsed ? { cases: [parsed.ok], problems: [] } : { cases: [], problems: parsed.problems };
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).sort((one, other) =>
      one.name < other.name ? -1 : 1,
    );
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

function notACase(place: string, why: string): FoundCases {
  return { cases: [], problems: [{ place, text: `${place}: Skipped: ${why}` }] };
}

function joined(parts: readonly FoundCases[]): FoundCases {
  return { cases: parts.flatMap(({ cases }) => cases), problems: parts.flatMap(({ problems }) => problems) };
}
