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
 * Returns the world's hosts file (hosts(5)): the lines of the host's file for loopback addresses, so that a server of the project is
 * found inside by the name that its settings have, and the host's own name, because programs look it up. Any other address would
 * be unknown to the world's rules. Lines stay whole: the first name of a line is what the others are short for (`hostname -f`).
 */
function hosts(name: string, hostsFile: string): string {
  const all = linesOf(hostsFile);
  const isOwn = ({ names }: Line): boolean => names.includes(name);
  const lines = shortened(
    all.filter(({ address }) => /^(?:127(?:\.\d{1,3}){3}|::1)$/.test(address)),
    (line) => isOwn(line) || line.names.includes("localhost"),
  );
  const has = (address: string, wanted: string): boolean =>
    lines.some((line) => line.address === address && line.names.includes(wanted));
  const first = has("127.0.0.1", "localhost") ? [] : [{ address: "127.0.0.1", names: ["localhost"] }];
  const names = all.find(isOwn)?.names ?? [name];
  const own = !isName(name) || lines.some(isOwn) ? [] : [{ address: "127.0.0.1", names }];
  // Where the host's file does not call ::1 localhost, its programs serve and ask 127.0.0.1; with the name Node would serve ::1 alone.
  const six = has("::1", "ip6-localhost")
    ? []
    : [{ address: "::1", names: ["ip6-localhost", "ip6-loopback"] }];
  const both = hostsFile === "" ? [{ address: "::1", names: ["localhost"] }] : [];
  const text = [...first, ...lines, ...own, ...both, ...six].map((line) =>
    [line.address, ...line.names].join(" "),
  );
  return `${[...new Set(text)].join("\n")}\n`;
}

type Line = { readonly address: string; readonly names: readonly string[] };

function linesOf(hostsFile: string): readonly Line[] {
  return hostsFile.split("\n").flatMap((text) => {
    const [address = "", ...words] = text.replace(/#.*/, "").trim().split(/\s+/);
    const names = words.filter(isName).slice(0, MOST_NAMES);
    return names.length === 0 ? [] : [{ address, names }];
  });
}

/** Returns the first lines, and those that are needed in any case. */
function shortened(lines: readonly Line[], isNeeded: (line: Line) => boolean): readonly Line[] {
  let count = 0;
  return lines.filter((line) => {
    count += line.names.length;
    return count <= MOST_NAMES || isNeeded(line);
  });
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
