import type { WorldSpec } from "../model/world.ts";
import { patternCovers } from "./cover.ts";
import type { HostFacts } from "./host-facts.ts";
import type { MountOperation } from "./operations.ts";
import { isReadable } from "./scopes.ts";

/** Points to the DNS stub (resolv.conf(5)). No search list: names are used as given. */
const RESOLV = "nameserver 127.0.0.53\noptions timeout:2 attempts:2 edns0\n";

/** Files that block names for advertisements list a hundred thousand at 127.0.0.1. */
const MOST_NAMES = 1000;

/**
 * Returns the world's hosts file (hosts(5)): the host's name, because programs look up their own host, and the names that the host's file
 * gives a loopback address, so that a server of the project is found inside by the name that its settings have. Any other address would
 * be unknown to the world's rules.
 */
function hosts(name: string, hostsFile: string): string {
  const own = isName(name) ? [name] : [];
  // Where the host's file has no such line, its programs serve and ask 127.0.0.1; with the line Node would serve ::1 alone.
  const isBoth = hostsFile === "" || /^[ \t]*::1[ \t](?:[^#\n]*[ \t])?localhost(?:[ \t#]|$)/m.test(hostsFile);
  const lines = [
    `127.0.0.1 ${["localhost", ...own].join(" ")}`,
    `::1 ${isBoth ? "localhost " : ""}ip6-localhost ip6-loopback`,
    ...loopbackNames(hostsFile, ["localhost", "ip6-localhost", "ip6-loopback", ...own]),
  ];
  return `${lines.join("\n")}\n`;
}

/** Returns a line for each name at a loopback address, without the names that are known. */
function loopbackNames(hostsFile: string, known: readonly string[]): readonly string[] {
  const lines = new Set<string>();
  for (const line of hostsFile.split("\n")) {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    if (!/^(?:127(?:\.\d{1,3}){3}|::1)$/.test(address)) continue;
    for (const name of names) if (isName(name) && !known.includes(name)) lines.add(`${address} ${name}`);
    if (lines.size >= MOST_NAMES) break;
  }
  return [...lines];
}

function isName(text: string): boolean {
  return text.length <= 253 && /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/.test(text);
}

/**
 * Plans the host's own resolv.conf for a world with the host's network. `text`: its content where the file lies in a folder that
 * worlds do not show (systemd-resolved: /run); undefined: the world shows the host's file.
 */
export function hostNameFiles(text: string | undefined): readonly MountOperation[] {
  return text === undefined ? [] : [{ op: "text", target: "/etc/resolv.conf", text }];
}

/** Plans the files that configure name lookup: the world's own, not writable by anybody. */
export function nameFiles(spec: WorldSpec, { hostname, hostsFile }: HostFacts): readonly MountOperation[] {
  const target = "/etc/hosts";
  const isRead = isReadable(target, spec) || spec.files.read.includes(target);
  const isDenied = !isRead || spec.files.denyRead.some((each) => patternCovers(each, target));
  return [
    { op: "text", target: "/etc/resolv.conf", text: RESOLV },
    { op: "text", target, text: hosts(hostname, isDenied ? "" : (hostsFile ?? "")) },
  ];
}
