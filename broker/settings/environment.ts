import { BoundedMap } from "../model/bounded-map.ts";
import type { BaseEnvironment, Variables } from "../model/environment.ts";
import { createHash } from "node:crypto";
import { homedir, userInfo } from "node:os";
import { withoutPreload } from "../../world/backend.ts";
import { redact, secretsIn } from "../secrets/redact.ts";
import { realpathSync } from "node:fs";
import { isWithin } from "../model/folders.ts";

const ALWAYS = ["HOME", "USER", "LOGNAME", "SHELL"];

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** What of the host's environment may become a command's: read once, at start, by the entry point. */
export type HostEnvironment = Readonly<Record<string, string | undefined>>;

/** What a policy's commands get beyond PATH and the user's own variables. */
export type Passing = {
  /** Whether a variable of a shell is passed. */
  readonly passes: (name: string) => boolean;
  /** What the policy's worlds add. */
  readonly added: () => Variables;
};

/** The shell that a call comes from. */
export type CallerShell = {
  readonly variables: Variables;
  /** Differs where {@link trusts} may. */
  readonly key: string;
  readonly isPersons: boolean;
  /** Whether a variable that the broker's own shell has not, or not so, may stand before programs that a rule allows. */
  readonly trusts: (name: string, value: string) => boolean;
};

/** Environments that are kept, of policies and of shells; edits and other shells make new ones. */
const MAX_MADE = 64;

/** The host's variables with the user's own filled in. Asks the user database: once, at start. */
export function hostEnvironment(variables: HostEnvironment): HostEnvironment {
  const user = userInfo();
  return {
    ...withoutPreload(variables),
    HOME: homedir(),
    USER: user.username,
    LOGNAME: user.username,
    SHELL: user.shell ?? "/bin/sh",
  };
}

/** What every command of a policy gets, made once per policy: it is on the path of each. */
export class BaseEnvironments {
  readonly #host: HostEnvironment;
  readonly #hidden: string;
  readonly #made = new BoundedMap<string, BaseEnvironment>(MAX_MADE);
  /** PATH of every command whose request has none of its own. */
  readonly path: string;

  /** @param hidden SUBSTRATE_HOME: no world has what lies there, so a PATH that leads there (to the shims) leads nowhere. */
  constructor(host: HostEnvironment, hidden: string) {
    this.#host = host;
    this.#hidden = hidden;
    this.path = ownPath(host["PATH"] ?? "", hidden) || DEFAULT_PATH;
  }

  /** `policy` is the hash of what holds. */
  of(policy: string, passing: Passing): BaseEnvironment {
    return this.#kept(policy, () => {
      const variables = { ...this.#base(passing.passes), ...passing.added() };
      return made({ variables, brought: {}, trusted: variables, bound: variables }, undefined);
    });
  }

  /** The same with the variables of the caller's shell in place of the broker's. */
  ofShell(policy: string, passing: Passing, shell: CallerShell): BaseEnvironment {
    const callers = passedBy(withoutPreload(shell.variables), passing.passes);
    const path = ownPath(shell.variables["PATH"] ?? "", this.#hidden) || this.path;
    const key = [policy, shell.key, path, ...Object.entries(callers).flat()].join("\0");
    return this.#kept(key, () => {
      const { variables: base } = this.of(policy, passing);
      const user = this.#base(() => false);
      const variables = { ...user, PATH: path, ...callers, ...passing.added() };
      const brought = only(variables, (name, value) => base[name] !== value);
      const trusted = only(variables, (name, value) => base[name] === value || shell.trusts(name, value));
      const bound = shell.isPersons ? base : variables;
      return made({ variables, brought, trusted, bound }, callers);
    });
  }

  #kept(key: string, make: () => BaseEnvironment): BaseEnvironment {
    const known = this.#made.get(key);
    if (known !== undefined) return known;
    const environment = make();
    this.#made.set(key, environment);
    return environment;
  }

  /** PATH, HOME, USER, LOGNAME, SHELL, and the variables that pass. Nothing else of the broker's. */
  #base(passes: Passing["passes"]): Variables {
    const base: Record<string, string> = { PATH: this.path };
    for (const name of ALWAYS) base[name] = this.#host[name] ?? "";
    return { ...base, ...passedBy(this.#host, passes) };
  }
}

function passedBy(variables: HostEnvironment, passes: Passing["passes"]): Variables {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(variables)) {
    if (value === undefined || name === "PATH" || ALWAYS.includes(name) || !passes(name)) continue;
    passed[name] = value;
  }
  return passed;
}

function only(variables: Variables, isWanted: (name: string, value: string) => boolean): Variables {
  return Object.fromEntries(Object.entries(variables).filter(([name, value]) => isWanted(name, value)));
}

function made(
  lists: Pick<BaseEnvironment, "variables" | "brought" | "trusted" | "bound">,
  callers: Variables | undefined,
): BaseEnvironment {
  const { variables } = lists;
  const kept = callers === undefined ? undefined : { variables: callers, areKept: !holdSecrets(callers) };
  return { ...lists, hash: environmentHash(variables), secrets: secretsIn(variables), callers: kept };
}

function holdSecrets(variables: Variables): boolean {
  const known = secretsIn(variables);
  return Object.entries(variables).some(
    ([name, value]) => known.has(name) || redact(`${name}=${value}`, "env").redacted.length > 0,
  );
}

/** SHA-256 over the sorted `NAME=value`, each ended by NUL. */
export function environmentHash(variables: Variables): string {
  const hash = createHash("sha256");
  for (const name of Object.keys(variables).sort()) hash.update(`${name}=${variables[name]}\0`);
  return `sha256:${hash.digest("hex")}`;
}

/** A request as it is without what a world adds to the variables of its commands: whoever asks from there may send them along. */
export function withoutWorldVariables<Request extends { readonly env?: Variables }>(
  request: Request,
): Request {
  const { env } = request;
  const own = env === undefined ? undefined : withoutPreload(env);
  return own === env ? request : { ...request, env: own };
}

/** A command's environment: the base, what the request adds, and last who and what it is, which nobody overrides. */
export function commandEnvironment(
  base: Variables,
  added: Readonly<Record<string, string>> | undefined,
  agent: string,
  span: string,
): Readonly<Record<string, string>> {
  return { ...base, ...added, SUBSTRATE_AGENT_ID: agent, SUBSTRATE_SPAN_ID: span };
}

/** PATH of a shell on the host, as it can be used in a world. */

/** Of these every world has its own (CONTRACT §7): what the host has there no command sees. */
const WORLDS_OWN = ["/tmp", "/var/tmp", "/run", "/dev/shm"];

/**
 * Without the folders that no world shows (SUBSTRATE_HOME, where the shims lie), and with the real path of a folder that is named by
 * a link in `/run` or `/tmp`, as version managers do for each shell (fnm). Everything else stays as it is, in its order: folders
 * that do not exist, relative ones, and a project's own.
 */
export function ownPath(path: string, hidden: string): string {
  return path
    .split(":")
    .filter((folder) => !leadsTo(hidden, folder.replace(/\/+$/, "")))
    .map((folder) => (WORLDS_OWN.some((own) => folder.startsWith(`${own}/`)) ? placeBehind(folder) : folder))
    .join(":");
}

/** Whoever reaches the home by a link writes the shims' folder so, too. */
function leadsTo(hidden: string, folder: string): boolean {
  return isWithin(folder.endsWith("/shims") ? realOr(folder) : folder, hidden);
}

function placeBehind(folder: string): string {
  const real = realOr(folder);
  return WORLDS_OWN.some((own) => isWithin(real, own)) || real.includes(":") ? folder : real;
}

function realOr(folder: string): string {
  try {
    return realpathSync.native(folder);
  } catch {
    // Not there, or not ours to look into, ignoring: it is what is written.
    return folder;
  }
}
