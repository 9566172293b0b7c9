/** Turns a path written by a person into an entry of `fs.read` or `fs.write`. Looks at the host. */
import { accessSync, constants, lstatSync, type Stats } from "node:fs";
import { basename, dirname, isAbsolute, normalize, resolve } from "node:path";
import { isPrivate } from "../../world/backend.ts";
import { notProposedBecause } from "../learn/not-proposed.ts";
import { isKernels } from "../model/folders.ts";
import { isWithin, type ProjectRules, protectedBecause } from "../project/projects.ts";
import { realPlace } from "../model/real-place.ts";
import { quoted } from "../model/refusal.ts";
import type { Never } from "./wish.ts";

/** Where the person makes the wish. */
export type Spot = {
  readonly cwd: string;
  /** The project around `cwd`; undefined where no project is possible. */
  readonly project: string | undefined;
  readonly rules: ProjectRules;
};

/** A place on the host that commands should read or write. */
export type AllowedPlace = {
  /** Absolute, as asked for, and with links resolved. */
  readonly asked: string;
  readonly real: string;
  /** A folder with everything below; otherwise a single file. */
  readonly below: boolean;
  /** The entry of the list. */
  readonly entry: string;
  /** The entry that shows the link in the path; absent without a link. */
  readonly link?: string;
  readonly notes: readonly string[];
};

/** Returns the place meant by `written`, or why no policy can grant access. */
export function placeOf(kind: "read" | "write", written: string, spot: Spot): AllowedPlace | Never {
  const asked = absolute(written, spot);
  if (typeof asked === "object") return asked;
  const real = realPlace(asked);
  const stat = lstatSync(real, { throwIfNoEntry: false });
  const wantsBelow = /\/(\*\*)?$/.test(written);
  const unfit = unfitBecause(written, real, stat, wantsBelow);
  if (unfit !== undefined) return { never: unfit };
  const why = neverBecause(kind, real, spot);
  if (why !== undefined) return { never: `Cannot let commands ${kind} ${quoted(real)}: ${why}` };
  const below = wantsBelow || stat === undefined || stat.isDirectory();
  return {
    asked,
    real,
    below,
    entry: entryOf(real, below, !isPlain(written), spot),
    ...(asked === real ? {} : { link: entryOf(asked, false, !isPlain(written), spot) }),
    notes: [
      ...(asked === real
        ? []
        : [`${quoted(asked)} is a link to ${quoted(real)}, so the entry names that path`]),
      ...(kind === "write" ? writeNotes(real, stat, spot) : readNotes(real, stat)),
    ],
  };
}

/** Whether a path means the same place in any working directory. */
function isPlain(written: string): boolean {
  return isAbsolute(written) || /^(~|\$HOME|\$\{HOME\})(\/|$)/.test(written);
}

function absolute(written: string, { cwd, project, rules }: Spot): string | Never {
  const path = written.replace(/(?<=.)\/\*\*$/, "").replace(/^\/\*\*$/, "/");
  if (path.trim() === "") return { never: "Cannot allow an empty path" };
  if (/[*?]|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(path))
    return {
      never: `Cannot allow ${quoted(written)}: an entry is a path, or 'path/**' for all below it, without other '*', '?' or control characters`,
    };
  const variable = /^(~|\$HOME|\$\{HOME\}|\$PROJECT|\$\{PROJECT\})(?=\/|$)/.exec(path)?.[0];
  if (variable === undefined && /^[~$]/.test(path))
    return {
      never: `Cannot allow ${quoted(written)}: a path must begin with '/', '~/', '$HOME' or '$PROJECT', or be relative to this folder ('./${path}')`,
    };
  if (variable === undefined) return normal(resolve(cwd, path));
  const folder = variable.includes("PROJECT") ? project : rules.home;
  if (folder === undefined)
    return {
      never: `Cannot allow ${quoted(written)}: ${quoted(cwd)} is not in a project. Change to a project folder, or give the full path`,
    };
  return normal(folder + path.slice(variable.length));
}

function normal(path: string): string {
  return normalize(path).replace(/(.)\/+$/, "$1");
}

function unfitBecause(
  written: string,
  real: string,
  stat: Stats | undefined,
  wantsBelow: boolean,
): string | undefined {
  if (stat === undefined || stat.isDirectory()) return undefined;
  if (!stat.isFile()) return `Cannot allow ${quoted(real)}: it is neither a folder nor a regular file`;
  return wantsBelow ? `Cannot allow ${quoted(written)}: it is a file, with nothing below it` : undefined;
}

/** Returns the reason for a refusal that no line of a policy can lift. */
function neverBecause(kind: "read" | "write", real: string, { project, rules }: Spot): string | undefined {
  const inProject = project !== undefined && isWithin(real, project);
  const hidden = rules.hidden.find((folder) => isWithin(real, folder));
  if (hidden !== undefined) return `it lies in SUBSTRATE_HOME ('${hidden}'), which no command sees`;
  if (!inProject && isKernels(real)) return "it belongs to the kernel, and each world has its own";
  if (!inProject && isPrivate(real))
    return "each world has its own such folder, which its commands can already read and write; the host's folder is not visible";
  if (kind === "read" || inProject) return undefined;
  if (isWithin(real, rules.installation))
    return `it belongs to the running installation ('${rules.installation}'), which is read-only in every world`;
  return isSettings(real, rules.home) && !rules.hidden.some((folder) => isWithin(folder, real))
    ? undefined
    : protectedBecause(real, rules);
}

/** A settings folder that a person may open, though no project: `~/.cache`, `~/.gradle`. */
function isSettings(real: string, home: string): boolean {
  return dirname(real) === home && basename(real).startsWith(".");
}

/** Returns `$PROJECT/…` only for a path named relative to the project: the entry then means the same place in every project. */
function entryOf(
  real: string,
  below: boolean,
  relative: boolean,
  { project, rules: { home } }: Spot,
): string {
  const stars = below ? (real === "/" ? "**" : "/**") : "";
  if (relative && project !== undefined && isWithin(real, project))
    return `$PROJECT${real.slice(project.length)}${stars}`;
  return `${isWithin(real, home) ? `$HOME${real.slice(home.length)}` : real}${stars}`;
}

function writeNotes(
  real: string,
  stat: Stats | undefined,
  { rules: { home, uid } }: Spot,
): readonly string[] {
  const runs =
    notProposedBecause(real, home) ??
    (isSettings(real, home) ? "programs outside of worlds read settings from it" : undefined);
  const warning =
    runs === undefined ? [] : [`Files that commands write there take effect on the host: ${runs}`];
  if (stat === undefined) return [...warning, missingNote(real, uid)];
  const closed =
    uid === 0 || mayWrite(real)
      ? []
      : [`The path belongs to user ${stat.uid}, and this user may not write there`];
  return [...warning, ...closed];
}

/** Says what a missing `fs.write` place becomes: the broker creates it below a folder of its own user. */
function missingNote(real: string, uid: number): string {
  const parent = dirname(real);
  const stat = lstatSync(parent, { throwIfNoEntry: false });
  const taken = `${quoted(real)} does not exist, so it counts as a folder (for one file, make the file first)`;
  if (stat?.isDirectory() === true && stat.uid === uid)
    return `${taken}: the broker makes it when a world needs it`;
  const why =
    stat === undefined
      ? "does not exist either"
      : stat.isDirectory()
        ? `belongs to user ${stat.uid}`
        : "is not a folder";
  return `${taken}. The broker cannot make it, because ${quoted(parent)} ${why}: make it yourself, and the entry takes effect`;
}

function readNotes(real: string, stat: Stats | undefined): readonly string[] {
  return stat === undefined ? [`${quoted(real)} does not exist, so it counts as a folder`] : [];
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    // Owned by another user, or on a read-only file system, ignoring which.
    return false;
  }
}
