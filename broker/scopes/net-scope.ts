/** Network scopes: a name, address or range, with a port. Pure. */
import type { NetScope } from "../model/scope.ts";
import { type NetEntry, readEntry } from "../network/names/entries.ts";
import { rangeText } from "../network/names/ranges.ts";
import { quoted, type Refusal, refusal } from "../model/refusal.ts";

/** Parses `net:host:port`, with `host:port` as in `net.allowed`; a refusal for text that cannot be granted. */
export function readNetScope(asked: string): NetScope | Refusal {
  const opens = readEntry(asked.slice("net:".length));
  if (typeof opens === "string") return malformed(asked, `net:host:port, and ${opens}`);
  if (opens.kind === "preset") return malformed(asked, "a host: presets are for policies");
  const [port] = opens.ports;
  if (port === undefined) return malformed(asked, "net:host:port, with its port");
  if (opens.kind === "below") return notOne(asked);
  if (opens.kind === "range" && opens.range.family === 6) return noSuchFamily(asked);
  return { kind: "net", asked, opens, port };
}

/** Prints a scope: `net:name:443`, `net:10.0.0.0/8:5432`; a single address without `/32`. */
export function netText(scope: Pick<NetScope, "opens" | "port">): string {
  return `net:${hostText(scope)}:${scope.port}`;
}

/** Prints the normalized name, the address, or the range. */
export function hostText({ opens }: Pick<NetScope, "opens">): string {
  return opens.kind === "name" ? opens.name : rangeText(opens.range).replace(/\/32$/, "");
}

export function netEntry(scope: NetScope): NetEntry {
  return { written: netText(scope), source: "scope_token", allows: scope.opens };
}

/** Notes details that a person could overlook. */
export function netNotes({ asked, opens, port }: NetScope): readonly string[] {
  const text = netText({ opens, port });
  const spelled = asked === text ? [] : [`${quoted(asked)} is '${text}'`];
  if (opens.kind === "name" || opens.range.prefix === 32) return spelled;
  return [...spelled, `Each of ${2 ** (32 - opens.range.prefix)} addresses`];
}

function notOne(asked: string): Refusal {
  return refusal(
    "scope_denied",
    `Cannot grant ${quoted(asked)}: it stands for any number of hosts, so a person cannot see which`,
    "Ask for the one host that the command needs",
  );
}

function noSuchFamily(asked: string): Refusal {
  return refusal(
    "scope_denied",
    `Cannot grant ${quoted(asked)}: a world has no IPv6`,
    "Ask for the host by its name: the broker connects over IPv6 if needed",
  );
}

/** Refuses unreadable text. */
export function malformed(text: string, wanted: string): Refusal {
  return refusal(
    "invalid_request",
    `Cannot read the scope ${quoted(text)}: wanted ${wanted}`,
    "Write fs.read:/path, fs.write:/path or net:host:port",
  );
}
