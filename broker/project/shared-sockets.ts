/** The host's Unix sockets shared with worlds by policies (`world.sockets`), and the variable for finding ssh-agent. */
import { join, resolve } from "node:path";
import type { SharedSocket } from "../../world/backend.ts";
import type { Variables } from "../model/environment.ts";
import { socketAt } from "../model/host-socket.ts";
import type { HostEnvironment } from "../settings/environment.ts";
import { fileScope } from "../policy/files/file-scope.ts";
import type { CompiledPolicy } from "../policy/index.ts";
import type { SshAgentRelay } from "../ssh-agent/relay.ts";
import { isWithin } from "./projects.ts";

/** Where the broker user's ssh-agent and gpg-agent are, read once at start. */
export type AgentSockets = {
  /** SSH_AUTH_SOCK at the broker's start, and the broker's socket that worlds get instead; undefined if not set. */
  readonly ssh: { readonly path: string; readonly relay: SshAgentRelay } | undefined;
  /**
   * The paths of gpg-agent's restricted socket, in order of search: its clients sign and decrypt, and get no secret key. The usual
   * socket hands out keys.
   */
  readonly gpg: readonly string[];
  /** The path at which gpg looks for the agent inside a world. */
  readonly gpgInside: string;
};

type Ground = {
  readonly home: string;
  readonly hidden: readonly string[];
  readonly agents: AgentSockets;
};

type Entry = Pick<SharedSocket, "folderMode"> & {
  readonly sources: readonly string[];
  /** Undefined for the same path as on the host. */
  readonly target?: string;
  /** Shared in place of the source, to which it leads. */
  readonly relay?: SshAgentRelay;
};

/** A mount point directly below another mount point, so that no command can move or remove it. */
const SSH_INSIDE = "/run/substrate-ssh-agent.sock";

export function agentSockets(
  host: HostEnvironment,
  home: string,
  uid: number,
  relay: SshAgentRelay,
): AgentSockets {
  // GnuPG uses this folder whatever the value of XDG_RUNTIME_DIR.
  const own = `/run/user/${uid}`;
  const folders = [...new Set([host["XDG_RUNTIME_DIR"] ?? own, own])].map((path) => join(path, "gnupg"));
  const ssh = host["SSH_AUTH_SOCK"];
  return {
    ssh: ssh?.startsWith("/") === true ? { path: ssh, relay } : undefined,
    gpg: [...folders, join(home, ".gnupg")].map((folder) => join(folder, "S.gpg-agent.extra")),
    gpgInside: `${own}/gnupg/S.gpg-agent`,
  };
}

/** Returns the existing sockets named by all policies. */
export function sharedSockets(
  policies: readonly CompiledPolicy[],
  project: string,
  ground: Ground,
): readonly SharedSocket[] {
  const names = namedByAll(policies);
  // Asked for every command, and most policies name none.
  if (names.length === 0) return [];
  const open = policies.flatMap(({ document }) => fileScope(document, project, ground.home).write);
  const folders = open.map((pattern) => pattern.replace(/\/\*\*$/, ""));
  return names.flatMap((name) =>
    found(entryOf(name, project, ground), [project, ...folders], ground).map((socket) => ({
      name,
      ...socket,
    })),
  );
}

/** Returns the variable with ssh-agent's socket, in a world that shares the socket. */
export function socketVariables(policies: readonly CompiledPolicy[], { ssh }: AgentSockets): Variables {
  return ssh !== undefined && namedByAll(policies).includes("ssh-agent") ? { SSH_AUTH_SOCK: SSH_INSIDE } : {};
}

function namedByAll(policies: readonly CompiledPolicy[]): readonly string[] {
  const [first = [], ...others] = policies.map(({ document }) => document.world?.sockets ?? []);
  return [...new Set(first)].filter((name) => others.every((names) => names.includes(name)));
}

function entryOf(name: string, project: string, { home, agents }: Ground): Entry {
  if (name === "ssh-agent")
    return {
      sources: agents.ssh === undefined ? [] : [agents.ssh.path],
      target: SSH_INSIDE,
      ...(agents.ssh === undefined ? {} : { relay: agents.ssh.relay }),
    };
  if (name === "gpg-agent") return { sources: agents.gpg, target: agents.gpgInside, folderMode: "700" };
  const path = name
    .replace(/^(?:~|\$HOME|\$\{HOME\})(?=\/)/, () => home)
    .replace(/^(?:\$PROJECT|\$\{PROJECT\})(?=\/)/, () => project);
  return { sources: [path] };
}

/**
 * Finds the first existing source, except the broker's own sockets, which are never shared, and a link where commands may write: they
 * could let it lead to any socket of the host.
 */
function found(
  { sources, target, folderMode, relay }: Entry,
  writable: readonly string[],
  { hidden }: Ground,
): readonly Omit<SharedSocket, "name">[] {
  for (const path of sources) {
    const socket = socketAt(path);
    if (socket === undefined || hidden.some((folder) => isWithin(socket.source, folder))) continue;
    const named = resolve(path);
    if (socket.source !== named && writable.some((folder) => isWithin(named, folder))) continue;
    const shared = relay === undefined ? socket : relay.leadTo(socket);
    if (shared === undefined) continue;
    return [
      {
        ...shared,
        target: target ?? shared.source,
        ...(relay === undefined ? {} : { isBrokers: true as const }),
        ...(folderMode === undefined ? {} : { folderMode }),
      },
    ];
  }
  return [];
}
