/** Parses the entries of `net.allowed`. Pure. */
import type { PolicyDocument } from "../../../schemas/generated/types.ts";
import { HOST_INTERNAL, hostName, isLocalhost } from "./names.ts";
import { type AddressRange, readRange } from "./ranges.ts";

/** Each preset stands for the hosts set for a tool on this host. */
export const PRESETS = ["@npm", "@pip", "@cargo", "@go", "@gem", "@apt", "@git"] as const;

export type PresetName = (typeof PRESETS)[number];

/** The names, addresses or preset allowed by an entry. `ports` is empty when the entry names no port. */
export type Allowed =
  | { readonly kind: "name"; readonly name: string; readonly ports: readonly number[] }
  /** All subdomains of this name, at any depth, but not the name itself. */
  | { readonly kind: "below"; readonly name: string; readonly ports: readonly number[] }
  | { readonly kind: "range"; readonly range: AddressRange; readonly ports: readonly number[] }
  | { readonly kind: "preset"; readonly preset: PresetName };

export type NetEntry = {
  /** The entry as written in the policy. */
  readonly written: string;
  /** `default.yaml:12` */
  readonly source: string;
  readonly allows: Allowed;
};

/** `net.allowed` of one policy. */
export type PolicyNet = {
  readonly entries: readonly NetEntry[];
  /** Position of the list; without a list, its place in the policy. */
  readonly source: string;
};

/** A problem with an entry of a schema-valid document. */
export type EntryProblem = { readonly path: readonly (string | number)[]; readonly message: string };

/** Returns the position of a key in the policy's file. */
type At = (path: readonly (string | number)[]) => { readonly file: string; readonly line: number };

export type NetReading = {
  readonly net: PolicyNet;
  /** Sentences about entries without effect. */
  readonly notes: readonly string[];
  readonly problems: readonly EntryProblem[];
};

/** Parses the list of a policy, and reports unusable entries. */
export function readNet(document: PolicyDocument, { at }: { readonly at: At }): NetReading {
  const entries: NetEntry[] = [];
  const problems: EntryProblem[] = [];
  const source = (...path: (string | number)[]): string => {
    const { file, line } = at(path);
    return `${file}:${line}`;
  };
  for (const [index, written] of (document.net?.allowed ?? []).entries()) {
    const path = ["net", "allowed", index] as const;
    const allows = readEntry(written);
    if (typeof allows === "string")
      problems.push({ path, message: `Cannot use '${written}' in net.allowed: ${allows}` });
    else entries.push({ written, source: source(...path), allows });
  }
  const notes = entries.filter(namesLocalhost).map(({ written }) => opensNothing(written));
  return { net: { entries, source: source("net", "allowed") }, notes, problems };
}

function namesLocalhost({ allows }: NetEntry): boolean {
  return (allows.kind === "name" || allows.kind === "below") && isLocalhost(allows.name);
}

function opensNothing(written: string): string {
  return `'${written}' in net.allowed has no effect: a world has its own localhost. The host's is '${HOST_INTERNAL}' with a port`;
}

/** Lists the presets among the entries, without duplicates. */
export function presetsIn({ entries }: PolicyNet): readonly PresetName[] {
  return PRESETS.filter((preset) =>
    entries.some(({ allows }) => allows.kind === "preset" && allows.preset === preset),
  );
}

/** Parses an entry. An unusable entry gives a sentence to stand after a colon. */
export function readEntry(written: string): Allowed | string {
  const preset = PRESETS.find((name) => name === written);
  if (preset !== undefined) return { kind: "preset", preset };
  if (written === "*" || written.startsWith("*:")) return NOT_EVERY_NAME;
  const range = readRange(written);
  if (range !== null) return { kind: "range", range, ports: [] };
  const [, text = "", port] = /^(.*?)(?::([0-9]{1,5}))?$/s.exec(written) ?? [];
  if (port !== undefined && !isPort(Number(port))) return `a port must be 1 to 65535, received ${port}`;
  const ports = port === undefined ? [] : [Number(port)];
  return readPlace(text, ports);
}

const NOT_EVERY_NAME =
  "an entry cannot stand for every name. Name the hosts; with mode: observe every name is reached, and names that enforce would refuse are recorded";

function readPlace(text: string, ports: readonly number[]): Allowed | string {
  const range = readRange(/^\[(.*)\](\/[0-9]+)?$/.exec(text)?.slice(1).join("") ?? text);
  if (range !== null) return { kind: "range", range, ports };
  const below = text.startsWith("*.");
  const name = hostName(below ? text.slice(2) : text);
  if (name === null) return "it is not a host name, a plainly written address or a CIDR";
  if (below) return { kind: "below", name, ports };
  return name === HOST_INTERNAL && ports.length === 0
    ? `the host's own localhost needs a port, such as '${HOST_INTERNAL}:5432'`
    : { kind: "name", name, ports };
}

/** RFC 6335, 6: port 0 is reserved. */
function isPort(port: number): boolean {
  return port >= 1 && port <= 65535;
}
