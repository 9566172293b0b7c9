/** Why a port is not published, in sentences. */
import { portHolder } from "./port-holder.ts";

/** Ports below are for privileged programs unless net.ipv4.ip_unprivileged_port_start says otherwise (ip-sysctl). */
const UNPRIVILEGED = 1024;

export type Problem = {
  readonly kind: "published" | "taken" | "refused" | "no_network" | "no_world";
  /** What an agent may know of it: nothing of other agents and of the host's programs. */
  readonly reason: string;
  /** For the operator. */
  readonly message: string;
  readonly hint: string;
};

export function isProblem(value: object): value is Problem {
  return "reason" in value;
}

/** `owner` is whose it is, in words; `port` is what the host's port leads to there. */
export function publishedAlready(hostPort: number, owner: string, port: number): Problem {
  return {
    kind: "published",
    reason: "the host's port is published for something else",
    message: `Port ${hostPort} of the host is published already: it leads to port ${port} of the world of ${owner}`,
    hint: "Choose another port of the host with 'host_port' (--host-port), or close that one first",
  };
}

export function noNetwork(port: number, word: string): Problem {
  return {
    kind: "no_network",
    reason: "this world has no network that leads in",
    message: `Cannot publish port ${port}: this world has no network that leads in (net is '${word}')`,
    hint: "'substrate world doctor' says what this host lacks, and prints the mend",
  };
}

export function noWorld(port: number): Problem {
  return {
    kind: "no_world",
    reason: "the session has no world",
    message: `Cannot publish port ${port}: the session's world has ended`,
    hint: "Run a command there, then try again",
  };
}

/** What the kernel said to a listener on the host's port. */
export async function notOpened(hostPort: number, errno: string): Promise<Problem> {
  return errno === "EADDRINUSE" ? taken(hostPort, await portHolder(hostPort)) : refusedBy(hostPort, errno);
}

function taken(hostPort: number, holder: string | undefined): Problem {
  return {
    kind: "taken",
    reason: "the host's port is taken",
    message: `Port ${hostPort} of the host is taken by ${holder ?? "a program that is not to be seen"}`,
    hint: "End that program, or choose another port of the host with 'substrate world publish --host-port'",
  };
}

function refusedBy(hostPort: number, errno: string): Problem {
  const isLow = errno === "EACCES" && hostPort < UNPRIVILEGED;
  const why = isLow ? `it is below ${UNPRIVILEGED}, and the broker's user has no right to it` : errno;
  return {
    kind: "refused",
    reason: "the host's kernel refuses the port",
    message: `The kernel refuses port ${hostPort} of the host: ${why}`,
    hint: isLow
      ? "Choose a higher port of the host with 'substrate world publish --host-port', or lower net.ipv4.ip_unprivileged_port_start"
      : "Choose another port of the host with 'substrate world publish --host-port'",
  };
}
