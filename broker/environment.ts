import { homedir, userInfo } from "node:os";

/** Variables of the host that a world sees unless the policy's `world.env` names others. */
const PASSED_BY_DEFAULT = ["LANG", "TZ", "TERM", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"];

const ALWAYS = ["HOME", "USER", "LOGNAME", "SHELL"];

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** What of the host's environment may become a command's: read once, at start, by the entry point. */
export type HostEnvironment = Readonly<Record<string, string | undefined>>;

export type BaseEnvironment = Readonly<Record<string, string>>;

/** The host's variables with the user's own filled in. Asks the user database: once, at start. */
export function hostEnvironment(variables: HostEnvironment): HostEnvironment {
  const user = userInfo();
  return {
    ...variables,
    HOME: homedir(),
    USER: user.username,
    LOGNAME: user.username,
    SHELL: user.shell ?? "/bin/sh",
  };
}

/** PATH, HOME, USER, LOGNAME, SHELL, and the variables that the policy passes. Nothing else of the broker's. */
export function baseEnvironment(
  host: HostEnvironment,
  passed: readonly string[] | undefined,
): BaseEnvironment {
  const base: Record<string, string> = { PATH: host["PATH"] ?? DEFAULT_PATH };
  for (const name of ALWAYS) base[name] = host[name] ?? "";
  for (const name of passed ?? PASSED_BY_DEFAULT) {
    const value = host[name];
    if (value !== undefined) base[name] = value;
  }
  return base;
}

/** A command's environment: the base, what the request adds, and last who and what it is, which nobody overrides. */
export function commandEnvironment(
  base: BaseEnvironment,
  added: Readonly<Record<string, string>> | undefined,
  agent: string,
  span: string,
): Readonly<Record<string, string>> {
  return { ...base, ...added, SUBSTRATE_AGENT_ID: agent, SUBSTRATE_SPAN_ID: span };
}
