import { createHash } from "node:crypto";
import { homedir, userInfo } from "node:os";
import { withoutPreload } from "../world/backend.ts";
import { type KnownSecrets, secretsIn } from "./spans/redact.ts";

/** Variables of the host that a world sees unless the policy's `world.env` names others. */
const PASSED_BY_DEFAULT = ["LANG", "TZ", "TERM", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"];

const ALWAYS = ["HOME", "USER", "LOGNAME", "SHELL"];

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** What of the host's environment may become a command's: read once, at start, by the entry point. */
export type HostEnvironment = Readonly<Record<string, string | undefined>>;

export type Variables = Readonly<Record<string, string>>;

/** Variables, their hash, which every span of a command with just these names, and those of them that are secret. */
export type BaseEnvironment = {
  readonly variables: Variables;
  readonly hash: string;
  readonly secrets: KnownSecrets;
};

/** Policies whose environments are kept; edits make new ones. */
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
  readonly #made = new Map<string, BaseEnvironment>();

  constructor(host: HostEnvironment) {
    this.#host = host;
  }

  /** PATH of every command whose request has none of its own. */
  get path(): string {
    return this.#host["PATH"] ?? DEFAULT_PATH;
  }

  /** `policy` is the hash of what holds, `passed` the variables that it passes, `added` those that its worlds add. */
  of(policy: string, passed: () => readonly string[] | undefined, added: () => Variables): BaseEnvironment {
    const known = this.#made.get(policy);
    if (known !== undefined) return known;
    if (this.#made.size >= MAX_MADE) this.#made.clear();
    const variables = { ...baseVariables(this.#host, passed()), ...added() };
    const made = { variables, hash: environmentHash(variables), secrets: secretsIn(variables) };
    this.#made.set(policy, made);
    return made;
  }
}

/** SHA-256 over the sorted `NAME=value`, each ended by NUL. */
export function environmentHash(variables: Variables): string {
  const hash = createHash("sha256");
  for (const name of Object.keys(variables).sort()) hash.update(`${name}=${variables[name]}\0`);
  return `sha256:${hash.digest("hex")}`;
}

/** PATH, HOME, USER, LOGNAME, SHELL, and the variables that the policy passes. Nothing else of the broker's. */
function baseVariables(host: HostEnvironment, passed: readonly string[] | undefined): Variables {
  const base: Record<string, string> = { PATH: host["PATH"] ?? DEFAULT_PATH };
  for (const name of ALWAYS) base[name] = host[name] ?? "";
  for (const name of passed ?? PASSED_BY_DEFAULT) {
    const value = host[name];
    if (value !== undefined) base[name] = value;
  }
  return base;
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
