import { BoundedMap } from "../model/bounded-map.ts";
import type { BaseEnvironment, Variables } from "../model/environment.ts";
import { createHash } from "node:crypto";
import { homedir, userInfo } from "node:os";
import { withoutPreload } from "../../world/backend.ts";
import { realPath } from "../model/host-paths.ts";
import { redact, secretsIn } from "../secrets/redact.ts";
import { isWithin } from "../model/folders.ts";

const ALWAYS = ["HOME", "USER", "LOGNAME", "SHELL"];

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** The host's environment as the source of commands' variables: read once, at start, by the entry point. */
export type HostEnvironment = Readonly<Record<string, string | undefined>>;

/** Variables of a policy's commands beyond PATH and the user's own. */
export type Passing = {
  /** Whether a variable of a shell is passed. */
  readonly passes: (name: string, value: string) => boolean;
  /** Returns the variables added by the policy's worlds. */
  readonly added: () => Variables;
};

/** The shell of the caller. */
export type CallerShell = {
  readonly variables: Variables;
  /** Differs where {@link trusts} may. */
  readonly key: string;
  readonly isPersons: boolean;
  /** The shell's own name of the working directory, where a symbolic link leads there. */
  readonly folder?: string;
  /** Whether an allowing rule accepts a variable that is absent from the broker's own shell, or different there. */
  readonly trusts: (name: string, value: string) => boolean;
};

/** Most cached environments of policies and shells; edits and other shells make new environments. */
const MAX_MADE = 64;

/** Fills in the user's own variables. Asks the user database: once, at start. */
export function hostEnvironment(variables: HostEnvironment): HostEnvironment {
  const user = userInfo();
  return {
    ...withoutPreload(variables),
    HOME: homedir(),
    USER: user.username,
    LOGNAME: user.username,
    SHELL: shellOf(user.shell),
  };
}

/** A service's user has such a shell; `script`, `tmux`, `gdb` and `vim` start `$SHELL` and would end at once. */
const LETS_NOBODY_IN = /^$|\/(?:nologin|false)$/;

/** Returns the value of SHELL for a user's shell in the user database. */
export function shellOf(login: string | null): string {
  return login === null || LETS_NOBODY_IN.test(login) ? "/bin/sh" : login;
}

/** Builds and caches the environment of each policy's commands: every command needs the environment. */
export class BaseEnvironments {
  readonly #host: HostEnvironment;
  readonly #hidden: string;
  readonly #made = new BoundedMap<string, BaseEnvironment>(MAX_MADE);
  /** PATH of every command whose request sets no PATH. */
  readonly path: string;

  /** @param hidden SUBSTRATE_HOME: hidden in every world, so PATH entries below (the shims) are dropped. */
  constructor(host: HostEnvironment, hidden: string) {
    this.#host = host;
    this.#hidden = hidden;
    this.path = ownPath(host["PATH"] ?? "", hidden) || DEFAULT_PATH;
  }

  /** @param policy hash of the policies in force. */
  of(policy: string, passing: Passing): BaseEnvironment {
    return this.#kept(policy, () => {
      const variables = { ...this.#base(passing.passes), ...passing.added() };
      return made({ variables, brought: {}, trusted: variables, bound: variables }, undefined);
    });
  }

  /** Like {@link of}, with the variables of the caller's shell in place of the broker's. */
  ofShell(policy: string, passing: Passing, shell: CallerShell): BaseEnvironment {
    // Shells and git show a working directory by this name, as in the caller's terminal.
    const folder = shell.folder === undefined ? {} : { PWD: shell.folder };
    const callers = { ...passedBy(withoutPreload(shell.variables), passing.passes), ...folder };
    const path = ownPath(shell.variables["PATH"] ?? "", this.#hidden) || this.path;
    const key = [policy, shell.key, path, ...Object.entries(callers).flat()].join("\0");
    return this.#kept(key, () => {
      const { variables: base } = this.of(policy, passing);
      const user = this.#base(() => false);
      const variables = { ...user, PATH: path, ...callers, ...passing.added() };
      const brought = only(variables, (name, value) => base[name] !== value);
      const trusts = (name: string, value: string): boolean =>
        base[name] === value || name in folder || shell.trusts(name, value);
      const trusted = only(variables, trusts);
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

  /** PATH, HOME, USER, LOGNAME, SHELL, and the passed variables. No other variable of the broker. */
  #base(passes: Passing["passes"]): Variables {
    const base: Record<string, string> = { PATH: this.path };
    for (const name of ALWAYS) base[name] = this.#host[name] ?? "";
    return { ...base, ...passedBy(this.#host, passes) };
  }
}

function passedBy(variables: HostEnvironment, passes: Passing["passes"]): Variables {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(variables)) {
    if (value === undefined || name === "PATH" || ALWAYS.includes(name) || !passes(name, value)) continue;
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

/** Removes the variables that a world adds to its commands: a caller inside a world may send these along. */
export function withoutWorldVariables<Request extends { readonly env?: Variables }>(
  request: Request,
): Request {
  const { env } = request;
  const own = env === undefined ? undefined : withoutPreload(env);
  return own === env ? request : { ...request, env: own };
}

/** Builds a command's environment: the base, the request's variables, and last the agent and span ids, which no request overrides. */
export function commandEnvironment(
  base: Variables,
  added: Readonly<Record<string, string>> | undefined,
  agent: string,
  span: string,
): Readonly<Record<string, string>> {
  return { ...base, ...added, SUBSTRATE_AGENT_ID: agent, SUBSTRATE_SPAN_ID: span };
}

/** Folders that every world has of its own: commands never see the host's content there. */
const WORLDS_OWN = ["/tmp", "/var/tmp", "/run", "/dev/shm"];

/**
 * Adapts the PATH of a shell on the host to a world: drops folders hidden in worlds (SUBSTRATE_HOME with the shims), and resolves
 * folders named by a link in `/run` or `/tmp`, which version managers make for each shell (fnm). All other entries keep their
 * text and order: missing folders, relative folders, and a project's own.
 */
export function ownPath(path: string, hidden: string): string {
  return path
    .split(":")
    .filter((folder) => !leadsTo(hidden, folder.replace(/\/+$/, "")))
    .map((folder) => (WORLDS_OWN.some((own) => folder.startsWith(`${own}/`)) ? placeBehind(folder) : folder))
    .join(":");
}

/** A home reached by a link may appear so in the shims' entry. */
function leadsTo(hidden: string, folder: string): boolean {
  return isWithin(folder.endsWith("/shims") ? (realPath(folder) ?? folder) : folder, hidden);
}

function placeBehind(folder: string): string {
  const real = realPath(folder) ?? folder;
  return WORLDS_OWN.some((own) => isWithin(real, own)) || real.includes(":") ? folder : real;
}
