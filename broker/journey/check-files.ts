/** Judges files that an agent's own tool opens on the host, by the lists and resolved names that a world enforces for commands. */
import { existsSync } from "node:fs";
import { normalize } from "node:path";
import type { CheckFilesRequest, CheckReply, DecisionRule } from "../../schemas/generated/types.ts";
import { type Cover, isKernels, isPrivate } from "../../world/backend.ts";
import type { Broker } from "../broker.ts";
import { gitReads } from "../git/tool-writes.ts";
import { isWithin } from "../model/folders.ts";
import { landingOf } from "../model/landing.ts";
import type { Place } from "../model/place.ts";
import { isRefusal, type Refusal, refusal } from "../model/refusal.ts";
import { groundOf } from "../policies/judge.ts";
import { fileLists, onlyListed } from "../policy/files/file-lists.ts";
import { fileScope } from "../policy/files/file-scope.ts";
import { isCovered } from "../policy/files/path-denials.ts";
import type { CompiledPolicy } from "../policy/index.ts";
import { NO_PROJECT } from "../project/projects.ts";
import { type Deciding, placeOnHost } from "../project/request.ts";
import { denyingCover, hasWildcard, leadsTo } from "../scopes/denied-places.ts";
import { type SpecOfFiles, worldSpec } from "../worlds/world-spec.ts";
import { isWritable, reasonOf, type WriteRules } from "./refused-writes.ts";

type Access = CheckFilesRequest["files"][number]["access"];

type Rule = Omit<DecisionRule, "fragment">;

/** A row of a deny list, and the real places behind a name without wildcards. */
type Row = {
  readonly rule: Rule;
  readonly cover: Cover;
  readonly isWild: boolean;
  readonly places: readonly string[];
};

/** What holds for a request. */
type Judging = {
  readonly policies: readonly [CompiledPolicy, ...CompiledPolicy[]];
  readonly place: Place;
  readonly spec: SpecOfFiles;
  readonly hidden: readonly Row[];
  readonly readOnly: readonly Row[];
  readonly writes: WriteRules;
  /** Whether the files are opened in a world, and not on the host. */
  readonly isInside: boolean;
};

/** A file's names: `spelled` in each way that a tool may read the text, and `landings` with links followed. */
type Names = { readonly spelled: readonly string[]; readonly landings: readonly string[] };

/**
 * Returns the verdict on files: allow, or deny with the rule against the first one, in observe mode too, where the host's files keep
 * their protection. Opens and charges nothing; records only where a session began.
 */
export function checkFiles(broker: Broker, agent: string, request: CheckFilesRequest): CheckReply | Refusal {
  const place = placeOnHost(broker, request.cwd);
  if (isRefusal(place)) return place;
  const { session_key: key } = request;
  // A session whose first sign is a file: Cursor and Copilot tell of no beginning.
  if (key !== undefined && place.project !== NO_PROJECT && broker.agentSessions.of(agent, key) === undefined)
    broker.startFolders.note(place.cwd);
  const ground = groundOf(broker, agent, place, request.profile);
  if (isRefusal(ground)) return ground;
  const { policies, id, hash } = ground.effective;
  const spec = broker.warmSpecs.of(hash, policies, ground.site);
  const judging = judgingBy(broker, policies, place, spec, false);
  const found = firstRule(request.files, judging);
  if (isRefusal(found)) return found;
  const { rule } = found;
  const mode = policies.some((policy) => policy.mode === "enforce") ? "enforce" : "observe";
  return {
    decision: { verdict: rule === null ? "allow" : "deny", mode, rule },
    policy_id: id,
    policy_hash: hash,
  };
}

/**
 * Returns the rule against files that are opened inside the session's world: its own folders (/tmp, /proc) are not the host's, and
 * writes below `fs.scratch` stay in it.
 */
export function fileRule(
  broker: Broker,
  asked: Deciding | { readonly agent_id: string; readonly cwd?: string; readonly profile?: string },
  files: CheckFilesRequest["files"],
): { readonly rule: DecisionRule | null } | Refusal {
  if ("agent_id" in asked) {
    const place = placeOnHost(broker, asked.cwd);
    if (isRefusal(place)) return place;
    const ground = groundOf(broker, asked.agent_id, place, asked.profile);
    if (isRefusal(ground)) return ground;
    return fileRule(broker, { ...ground, place, isGranted: false }, files);
  }
  const { place, site, effective, isGranted } = asked;
  const { policies, hash } = effective;
  const spec = isGranted
    ? worldSpec(policies, site, { kind: "direct" }, broker.around)
    : broker.warmSpecs.of(hash, policies, site);
  return firstRule(files, judgingBy(broker, policies, place, spec, true));
}

/** Bounds a call, which other calls wait for: a path of 2,000 names takes 40 ms. */
const MOST_MS = 500;

function firstRule(
  files: CheckFilesRequest["files"],
  judging: Judging,
): { readonly rule: DecisionRule | null } | Refusal {
  const until = performance.now() + MOST_MS;
  for (const { path, access, finds } of files) {
    const rule =
      ruleAgainst(path, access, judging) ??
      (finds === true && isFound(path, judging) ? foundRule(path, access) : undefined);
    if (rule !== undefined) return { rule };
    if (performance.now() > until)
      return refusal(
        "invalid_request",
        `files: judging them takes more than ${MOST_MS} ms`,
        "Ask about fewer files, or with shorter paths",
        { path: "files" },
      );
  }
  return { rule: null };
}

function judgingBy(
  { around, gitNamed, environments }: Broker,
  policies: readonly [CompiledPolicy, ...CompiledPolicy[]],
  place: Place,
  spec: SpecOfFiles,
  isInside: boolean,
): Judging {
  const folders = { project: place.project, home: around.home };
  const { denyWrite } = policies[0].rules.sources;
  const rows = (list: "deny_read" | "deny_write", reason: string): readonly Row[] =>
    policies.flatMap((policy) => rowsOf(policy, list, folders, reason));
  const built = (patterns: readonly string[], list: string, source: string, reason: string): readonly Row[] =>
    patterns.map((pattern) => row({ list, pattern, source, reason }, pattern));
  const own = "it belongs to Substrate itself";
  return {
    policies,
    place,
    spec,
    isInside,
    hidden: [
      ...rows("deny_read", "it is hidden from commands"),
      ...built(spec.hidden, "fs.deny_read", BUILT_IN, own),
    ],
    readOnly: [
      ...rows("deny_write", "no command may change it"),
      ...built([...spec.files.seal, ...spec.files.denyWrite], "fs.deny_write", denyWrite, SEALED),
      ...built(spec.sealed, "fs.deny_write", BUILT_IN, own),
    ],
    writes: {
      ...folders,
      policies,
      installation: spec.sealed,
      places: [],
      searched: environments.path,
      plain: false,
      isWritable,
      gitReason: (path) => gitNamed.reason(place.project, path),
    },
  };
}

/** Source of rules that no policy changes. */
const BUILT_IN = "built in";

const SEALED = "git, an agent or another tool reads it by itself, so no command may change it";

function rowsOf(
  policy: CompiledPolicy,
  list: "deny_read" | "deny_write",
  { project, home }: { readonly project: string; readonly home: string },
  reason: string,
): readonly Row[] {
  const scope = fileScope(policy.document, project, home);
  const patterns = list === "deny_read" ? scope.denyRead : scope.denyWrite;
  const source = policy.rules.sources[list === "deny_read" ? "denyRead" : "denyWrite"];
  return fileLists(policy.document)[list].map((written, index) =>
    row({ list: `fs.${list}`, pattern: written, source, reason }, patterns[index] ?? written),
  );
}

function row(rule: Rule, pattern: string): Row {
  return { rule, cover: denyingCover(pattern), isWild: hasWildcard(pattern), places: leadsTo(pattern) };
}

function ruleAgainst(path: string, access: Access, judging: Judging): DecisionRule | undefined {
  const names = namesOf(path, judging);
  if (judging.isInside && isOfWorld(names, judging)) return insideRule(path, access, names, judging);
  const rule =
    readRule(names, access, judging) ?? (access === "write" ? writeRule(names, judging) : undefined);
  return rule === undefined ? undefined : { ...rule, fragment: `${access} ${path}` };
}

/** Whether a tool that finds files would take the path for another one: it is relative, and no file is there. */
function isFound(path: string, { place }: Judging): boolean {
  return !path.startsWith("/") && !existsSync(`${place.cwd}/${path}`);
}

function foundRule(path: string, access: Access): DecisionRule {
  const reason =
    "no file is there, and the agent would look for another one of that name: give the absolute path, also of a new file";
  return {
    list: `fs.${access === "write" ? "deny_write" : "deny_read"}`,
    pattern: path,
    source: BUILT_IN,
    reason,
    fragment: `${access} ${path}`,
  };
}

/** Whether a path is the world's own by each of its spellings; what a link there leads to, only the world knows. */
function isOfWorld({ spelled }: Names, { spec: { project } }: Judging): boolean {
  return spelled.every((path) => !isWithin(path, project) && (isPrivate(path) || isKernels(path)));
}

function insideRule(
  path: string,
  access: Access,
  { spelled }: Names,
  { hidden }: Judging,
): DecisionRule | undefined {
  const rule = hidden.find(({ cover }) => spelled.some(cover.covers))?.rule;
  return rule === undefined ? undefined : { ...rule, fragment: `${access} ${path}` };
}

/** What languages cut off both ends of a text: more than JavaScript's trim does (Rust U+0085, Python U+001C). */
// oxlint-disable-next-line no-control-regex
const BLANK_ENDS = /^[\p{White_Space}\p{Cc}\ufeff]+|[\p{White_Space}\p{Cc}\ufeff]+$/gu;

/** Gemini CLI takes `@` for the mark of a reference, `file:` for a URL, and `%2E` for a dot. */
function decoded(path: string): readonly string[] {
  const bare = path.replace(/^@[/\\]*/, "").replace(/^file:(?:\/\/[^/]*)?/i, "");
  if (bare === path && !path.includes("%")) return [path];
  try {
    return [path, bare, decodeURIComponent(path), decodeURIComponent(bare)].filter((text) => text !== "");
  } catch {
    return [path, bare].filter((text) => text !== "");
  }
}

/** Some tools take `~` for the home, some cut blanks off, and some take `..` as text where the kernel follows links first. */
function namesOf(path: string, { place, writes }: Judging): Names {
  const given = [path, path.replace(BLANK_ENDS, "")].flatMap(decoded);
  const texts = [...new Set(given)].flatMap((text) => [
    text.startsWith("/") ? text : `${place.cwd}/${text}`,
    ...(/^~(?:\/|$)/.test(text) ? [`${writes.home}${text.slice(1)}`] : []),
  ]);
  const spelled = texts.map((text) => normalize(text).replace(/(.)\/$/, "$1"));
  return {
    spelled: [...new Set(spelled)],
    landings: [...new Set([...texts, ...spelled].map((text) => landingOf(text)))],
  };
}

function readRule(names: Names, access: Access, judging: Judging): Rule | undefined {
  const { hidden, policies, spec } = judging;
  return (
    hidden.find((one) => denies(one, names))?.rule ??
    (access === "search" ? searchRule(names, judging) : undefined) ??
    first(names.landings, (landing) => kernelRule(landing, spec)) ??
    first(policies, (policy) => unlisted("read", names, policy, judging))
  );
}

function writeRule(names: Names, judging: Judging): Rule | undefined {
  const { readOnly, policies } = judging;
  return (
    readOnly.find((one) => denies(one, names))?.rule ??
    first(names.landings, (landing) => gitRule(landing, judging)) ??
    first(policies, (policy) => unlisted("write", names, policy, judging))
  );
}

function denies({ cover, places }: Row, { spelled, landings }: Names): boolean {
  return (
    [...spelled, ...landings].some(cover.covers) ||
    places.some((place) => landings.some((landing) => isWithin(landing, place)))
  );
}

/** The rule against a search that would read a hidden name below the folder. A name that a wildcard hides is taken to be there. */
function searchRule({ landings }: Names, { hidden }: Judging): Rule | undefined {
  const found = hidden.find(({ cover, isWild, places }) =>
    landings.some(
      (landing) =>
        (isWild && cover.reachesBelow(landing)) || places.some((place) => isWithin(place, landing)),
    ),
  );
  if (found === undefined) return undefined;
  const reason = "the folder may hold hidden files: a shell command (grep, rg) searches it without them";
  return { ...found.rule, reason };
}

/** `/proc` shows other processes' variables and memory, `/run` their sockets: commands see those of their world alone. */
function kernelRule(landing: string, { project }: SpecOfFiles): Rule | undefined {
  if (isWithin(landing, project) || !(isKernels(landing) || isWithin(landing, "/run"))) return undefined;
  const reason = "commands see only their world's own, and none of the host's";
  return { list: "fs.read", pattern: `/${landing.split("/")[1] ?? ""}`, source: BUILT_IN, reason };
}

/** Files of git that no list names: what a command brings is looked at when it ends. A policy that leaves git open leaves them, too. */
function gitRule(landing: string, { spec, policies: [{ rules }], isInside }: Judging): Rule | undefined {
  const reason = isInside || spec.files.seal.length === 0 ? undefined : gitReads(landing, spec.project);
  if (reason === undefined) return undefined;
  return { list: "fs.deny_write", pattern: ".git", source: rules.sources.denyWrite, reason };
}

/** The rule against a place that a policy's `read` and `write`, or `write`, does not cover. */
function unlisted(
  list: "read" | "write",
  { landings }: Names,
  policy: CompiledPolicy,
  { spec, writes, isInside }: Judging,
): Rule | undefined {
  const { read, write } = fileScope(policy.document, writes.project, writes.home);
  const { gitFolder } = spec;
  const git = gitFolder === undefined ? [] : spec.files[list].filter((entry) => entry === `${gitFolder}/**`);
  const scratch = isInside ? (spec.files.scratch ?? []) : [];
  const opened = [...write, ...git, ...scratch, ...(list === "read" ? read : [])];
  const landing = landings.find((one) => !isCovered(one, opened, writes));
  if (landing === undefined) return undefined;
  const reason = list === "write" ? reasonOf(landing, writes) : `no entry covers '${landing}'`;
  const pattern = onlyListed(fileLists(policy.document)[list]);
  return { list: `fs.${list}`, pattern, source: policy.rules.sources[list], reason };
}

function first<Item, Found>(
  items: readonly Item[],
  find: (item: Item) => Found | undefined,
): Found | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
