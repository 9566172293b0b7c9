/** Converts policies to a world's spec: paths with variables replaced, and the intersection of two policies. */
import { BoundedMap } from "../model/bounded-map.ts";
import { sharesHostNetwork } from "../model/effective.ts";
import type { GitFolder, Site } from "../model/site.ts";
import { isDeepStrictEqual } from "node:util";
import {
  type FileScope,
  type NetworkRules,
  patternCovers,
  type ProjectAccess,
  type SettingsFile,
  type WorldLimits,
  type WorldSpec,
} from "../../world/backend.ts";
import {
  deniedInGitFolder,
  isOwnGitRow,
  sealedInGitFolder,
  sealedInside,
  settingsAmong,
  settingsIn,
} from "../policy/files/default-denials.ts";
import { fileScope, literalPattern } from "../policy/files/file-scope.ts";
import { isHeldRow, whereBegan } from "../policy/files/held-names.ts";
import { PROFILE_FILE } from "../project/profiles.ts";
import type { CompiledPolicy } from "../policy/index.ts";
import { isWithin } from "../project/projects.ts";
import { type AgentSockets, sharedSockets } from "../project/shared-sockets.ts";
import { openPlace, placesToOpen } from "./write-places.ts";
import type { PolicyDocument } from "../../schemas/generated/types.ts";

export type Surroundings = {
  readonly home: string;
  /** SUBSTRATE_HOME, and the folder of held changes if elsewhere. */
  readonly hidden: readonly string[];
  /** Folder of the running installation: read-only as a whole, except when it is itself the project. */
  readonly checkout?: string;
  /**
   * Running files of the installation, and the sources they are built from: read-only even when the installation is the project.
   */
  readonly installation: readonly string[];
  /** Files elsewhere that settings, approvals and policies are links to: read-only too. */
  readonly linked?: () => readonly string[];
  readonly agents: AgentSockets;
  /** The program that carries out file operations in a world, where it is at the same path. */
  readonly fileProgram: string;
};

/** A spec without its network and settings, which are known only after asking a preset's tool. */
export type SpecOfFiles = Omit<WorldSpec, "network" | "settings">;

const MAX_MADE = 256;

/** A cache of specs for warm and isolated worlds, by policy and project: each command needs a spec. */
export class WarmSpecs {
  readonly #around: Surroundings;
  readonly #uid: number;
  readonly #made = new BoundedMap<string, SpecOfFiles>(MAX_MADE);
  /** The folders opened by a spec, and the spec with their last state. */
  readonly #placed = new WeakMap<SpecOfFiles, { readonly paths: readonly string[]; spec: SpecOfFiles }>();

  /** `uid`: of the broker's user. */
  constructor(around: Surroundings, uid: number) {
    this.#around = around;
    this.#uid = uid;
  }

  /** Returns the cached spec, on an overlay with these layers; `heldBy` as in {@link worldSpec}. */
  isolated(
    hash: string,
    policies: readonly CompiledPolicy[],
    site: Site,
    layers: string,
    heldBy: readonly string[],
  ): SpecOfFiles {
    const made = this.#get(hash, policies, site, "overlay", heldBy);
    return { ...made, access: { kind: "overlay", layers } };
  }

  /** Adds the current state of the folders of `fs.write`; creates missing folders where permitted. */
  placed(spec: SpecOfFiles): SpecOfFiles {
    const known = this.#placed.get(spec) ?? { paths: placesToOpen(spec), spec };
    this.#placed.set(spec, known);
    if (known.paths.length === 0) return spec;
    const places = known.paths.map((path) => openPlace(path, this.#uid));
    if (!isDeepStrictEqual(known.spec.places, places)) known.spec = { ...spec, places };
    return known.spec;
  }

  /** `hash`: hash of all the policies. */
  of(hash: string, policies: readonly CompiledPolicy[], site: Site): SpecOfFiles {
    return this.#get(hash, policies, site, "direct", []);
  }

  #get(
    hash: string,
    policies: readonly CompiledPolicy[],
    site: Site,
    kind: ProjectAccess["kind"],
    heldBy: readonly string[],
  ): SpecOfFiles {
    const git = [
      site.git?.file,
      site.git?.folder?.path,
      ...(site.git?.folder?.others ?? []),
      "",
      site.gitInside,
    ];
    const sockets = sharedSockets(policies, site.project, this.#around).map(({ identity }) => identity);
    const linked = this.#around.linked?.() ?? [];
    const named = [...(site.gitNamed ?? []), "", ...(site.began ?? [])];
    const places = [...git, ...site.profiles, "", ...named, "", ...sockets, "", ...linked];
    const key = [hash, kind, ...heldBy, "", identityOf(site), site.project, ...places].join("\0");
    const known = this.#made.get(key);
    if (known !== undefined) return known;
    const access: ProjectAccess = kind === "direct" ? { kind } : { kind, layers: "" };
    const made = worldSpec(policies, site, access, this.#around, heldBy);
    this.#made.set(key, made);
    return made;
  }
}

/**
 * Builds a spec. `heldBy`: ids of policies whose rows for autorun files deny nothing here, because such changes are held
 * (held-names.ts).
 */
export function worldSpec(
  policies: readonly CompiledPolicy[],
  site: Site,
  access: ProjectAccess,
  around: Surroundings,
  heldBy: readonly string[] = [],
): SpecOfFiles {
  const { project, profiles, git, began = [] } = site;
  const everywhere = (rows: readonly string[]): readonly string[] => whereBegan(rows, project, began);
  const scopes = policies.map(({ id, document }) => ({
    id,
    files: fileScope(document, project, around.home),
  }));
  const own = withProgram(scopes.map(({ files }) => files).reduce(narrower), around.fileProgram);
  const files = withGitFolder(withGitInside(own, site.gitInside), project, git?.folder);
  const sockets = sharedSockets(policies, project, around);
  // Git on the host follows a `.git` file to any folder and runs code found there.
  const links = git === undefined ? [] : [git.file];
  const strict = new Set(scopes.flatMap((one) => (heldBy.includes(one.id) ? [] : one.files.denyWrite)));
  const held = files.denyWrite.filter((row) => isHeldRow(row, project) && !strict.has(row));
  const isHeld = (path: string): boolean => held.some((pattern) => patternCovers(pattern, path));
  // A policy that leaves git's own folder writable also leaves writable the files named by its settings.
  const named = files.seal.length === 0 ? [] : (site.gitNamed ?? []).filter((path) => !isHeld(path));
  const direct = access.kind === "direct";
  const ownRow = (pattern: string): boolean => direct && isOwnGitRow(pattern, literalPattern(project));
  return {
    project,
    identity: identityOf(site),
    access,
    files: {
      ...files,
      denyWrite: [
        ...everywhere(files.denyWrite.filter((pattern) => !ownRow(pattern) && !held.includes(pattern))),
        ...[...profiles, ...links, ...named, ...(around.linked?.() ?? [])].map(literalPattern),
      ],
      seal: [...files.seal, `${literalPattern(project)}/**/${PROFILE_FILE}`],
      ...(direct ? { judged: settingsAmong(files.seal) } : {}),
      ...(held.length === 0 ? {} : { held: everywhere(held) }),
    },
    ...(git?.folder === undefined ? {} : { gitFolder: git.folder.path }),
    hidden: around.hidden,
    sealed: sealedInstallation(project, around),
    limits: policies.map((policy) => worldLimits(policy.document.world?.limits)).reduce(lowerLimits),
    seccomp: seccompMode(policies),
    ...(sharesHostNetwork(policies) ? { hostNetwork: true as const } : {}),
    ...(allowsNamespaces(policies) ? { namespaces: "allow" as const } : {}),
    ...(sockets.length === 0 ? {} : { sockets }),
    ...(asksForTelemetry(policies) ? { telemetry: true as const } : {}),
  };
}

/** Returns the parts of the running installation that no command in a project may change. */
export function sealedInstallation(
  project: string,
  { checkout, installation }: Surroundings,
): readonly string[] {
  return checkout === undefined || isWithin(project, checkout) ? installation : [checkout];
}

/** Returns the strictest mode of the policies. */
export function seccompMode(policies: readonly CompiledPolicy[]): WorldSpec["seccomp"] {
  return policies.every((policy) => policy.document.world?.seccomp === "log") ? "log" : "enforce";
}

/** Whether every policy lets commands make namespaces. */
function allowsNamespaces(policies: readonly CompiledPolicy[]): boolean {
  return policies.every((policy) => policy.document.world?.namespaces === "allow");
}

/**
 * Whether programs report telemetry: only if every policy enables it. Loading a library into every program is an extension, and a
 * second policy without the key does not permit it.
 */
function asksForTelemetry(policies: readonly CompiledPolicy[]): boolean {
  return policies.every((policy) => policy.document.world?.enable_preload === true);
}

/** A replaced git folder makes another world, like a replaced project folder. */
function identityOf({ identity, git }: Site): string {
  return git?.folder === undefined ? identity : `${identity}+${git.folder.identity}`;
}

/**
 * Opens the git folder of a worktree or a submodule like the project, except files that make git run code: these also belong to
 * other projects, so they stay denied whatever the policy lists.
 */
function withGitFolder(files: FileScope, project: string, folder: GitFolder | undefined): FileScope {
  if (folder === undefined) return files;
  const [own, opened] = [`${project}/**`, `${folder.path}/**`];
  const place = literalPattern(folder.path);
  const others = folder.others.map(literalPattern);
  const isDenied = files.denyWrite.some((path) => isWithin(place, path.replace(/\/\*\*$/, "")));
  return {
    ...files,
    read: covers(files.read, own) ? [...files.read, opened] : files.read,
    write: covers(files.write, own) && !isDenied ? [...files.write, opened] : files.write,
    denyWrite: [...files.denyWrite, ...deniedInGitFolder(place, { shared: folder.shared, others })],
    seal: [...files.seal, ...settingsIn(place), ...sealedInGitFolder(place)],
  };
}

/** Seals a git folder inside the project; a policy that leaves `.git` open also leaves this folder open. */
function withGitInside(files: FileScope, folder: string | undefined): FileScope {
  if (folder === undefined || files.seal.length === 0) return files;
  return { ...files, seal: [...files.seal, ...sealedInside(literalPattern(folder))] };
}

/** Shows the program of file operations, which narrow `read` lists leave out. */
function withProgram(files: FileScope, program: string): FileScope {
  return covers(files.read, program) ? files : { ...files, read: [...files.read, program] };
}

function narrower(one: FileScope, other: FileScope): FileScope {
  const write = both(one.write, other.write);
  return {
    read: both(readable(one), readable(other)),
    denyRead: [...new Set([...one.denyRead, ...other.denyRead])],
    write,
    denyWrite: [...new Set([...one.denyWrite, ...other.denyWrite])],
    seal: [...new Set([...one.seal, ...other.seal])],
    scratch: bothKeep(one, other).filter((path) => !covers(write, path)),
  };
}

/** Returns the readable paths: writable paths are always readable. */
function readable({ read, write }: FileScope): readonly string[] {
  return [...read, ...write.filter((path) => !covers(read, path))];
}

/** Returns the paths kept in the world: paths kept by one policy and writable on the host by the other stay in the world. */
function bothKeep(one: FileScope, other: FileScope): readonly string[] {
  const kept = ({ scratch = [], write }: FileScope): readonly string[] => [
    ...scratch,
    ...write.filter((path) => path.endsWith("/**")),
  ];
  return both(kept(one), kept(other));
}

/** Returns the paths of either list covered by the other. */
function both(one: readonly string[], other: readonly string[]): readonly string[] {
  const kept = [...one.filter((path) => covers(other, path)), ...other.filter((path) => covers(one, path))];
  return [...new Set(kept)];
}

/** Whether a scope covers `path` completely: a path, or `path/**`. */
export function covers(scopes: readonly string[], path: string): boolean {
  const folder = path.replace(/\/\*\*$/, "");
  return scopes.some(
    (scope) => scope === path || (scope.endsWith("/**") && isWithin(folder, scope.slice(0, -3) || "/")),
  );
}

/** `world.limits` of a policy as numbers; the schema has checked their format. */

type Written = NonNullable<NonNullable<PolicyDocument["world"]>["limits"]>;

/** Suffixes of Kubernetes and systemd for powers of 1000 and 1024. */
const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  K: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

function worldLimits(written: Written | undefined): WorldLimits {
  if (written === undefined) return {};
  const { cpu, memory, pids, disk } = written;
  return {
    ...(cpu === undefined ? {} : { cpu: cpus(cpu) }),
    ...(memory === undefined ? {} : { memory: bytes(memory) }),
    ...(pids === undefined ? {} : { pids }),
    ...(disk === undefined ? {} : { disk: bytes(disk) }),
  };
}

/** Returns the lower of each limit. */
function lowerLimits(one: WorldLimits, other: WorldLimits): WorldLimits {
  const lower: Partial<Record<keyof WorldLimits, number>> = { ...one };
  for (const [name, value] of Object.entries(other) as [keyof WorldLimits, number][])
    lower[name] = Math.min(lower[name] ?? value, value);
  return lower;
}

function cpus(text: string): number {
  return text.endsWith("m") ? Number(text.slice(0, -1)) / 1000 : Number(text);
}

function bytes(text: string): number {
  const [, number = "", unit = ""] = /^([0-9.]+)([A-Za-z]*)$/.exec(text) ?? [];
  const factor = UNITS[unit];
  if (factor === undefined) throw new Error(`The schema let the size '${text}' through`);
  return Math.round(Number(number) * factor);
}

/**
 * A command's requirements on its world. `network`: the initial rules, later changed as policies change. `under`: the policies by
 * name, because processes left by one policy must not pass to another. `hash`: hash of their content; while it stays the same, a
 * world keeps its current `settings`, so that an answer of a host tool loses no state in the world.
 */
export type Wanted = {
  readonly spec: Omit<WorldSpec, "network" | "settings">;
  readonly network: NetworkRules;
  readonly under: string;
  readonly hash: string;
  readonly settings: readonly SettingsFile[];
};

/** Compares two values; usually both are the same cached object. */
export function isSame(one: object, other: object): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
