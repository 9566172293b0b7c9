import { type Allowed, type NetEntry, readEntry } from "../network/names/entries.ts";
import { HOST_INTERNAL, isLocalhost } from "../network/names/names.ts";
import { isWithin } from "../network/names/ranges.ts";
import { DEFAULT_PORTS, type ExpandedPresets, netRules } from "../network/rules.ts";
import type { CompiledPolicy } from "../policy/index.ts";
import { quoted } from "../model/refusal.ts";
import type { Never, Wish } from "./wish.ts";

/**
 * Judges a wish to allow a name, an address or a preset: the policy's present answer, and the missing entry. Pure: presets come
 * expanded.
 */
export function netWish(written: string, policy: CompiledPolicy, presets: ExpandedPresets): Wish | Never {
  const allows = readEntry(written);
  if (typeof allows === "string") return { never: `Cannot allow ${quoted(written)}: ${allows}` };
  if ((allows.kind === "name" || allows.kind === "below") && isLocalhost(allows.name))
    return {
      never: `Cannot allow ${quoted(written)}: a world has its own localhost. The host's is '${HOST_INTERNAL}' with a port, such as '${HOST_INTERNAL}:${allows.ports[0] ?? 5432}'`,
    };
  const given = standing(allows, policy, presets);
  return {
    additions: given === undefined ? [{ list: "net.allowed", value: written }] : [],
    ...(given === undefined
      ? {}
      : {
          already: {
            source: given.source,
            how: `'${given.written}' in net.allowed`,
          },
        }),
    refusals: [],
    partly: [],
    notes: [
      ...(given === undefined ? partNotes(allows, policy, presets) : []),
      ...(policy.mode === "observe" ? [OBSERVES] : []),
    ],
  };
}

const OBSERVES =
  "This policy only observes, so other names are reached too. The entry takes effect with 'mode: enforce'";

/** Returns notes about ports of a name that are open already. */
function partNotes(allows: Allowed, { net }: CompiledPolicy, presets: ExpandedPresets): readonly string[] {
  if (allows.kind !== "name") return [];
  const rules = netRules([{ net, presets }]);
  const wanted = allows.ports.length === 0 ? DEFAULT_PORTS : allows.ports;
  return wanted.flatMap((port) => {
    const { allowed, entry, source } = rules.connection(allows.name, port);
    return allowed ? [`Port ${port} is open already: '${entry}' in net.allowed, ${source}`] : [];
  });
}

/** Stands for any subdomain: no entry names the label. */
const SOME_LABEL = "any-name-below";

function standing(
  allows: Allowed,
  { net }: CompiledPolicy,
  presets: ExpandedPresets,
): Pick<NetEntry, "written" | "source"> | undefined {
  if (allows.kind === "preset")
    return net.entries.find(
      (entry) => entry.allows.kind === "preset" && entry.allows.preset === allows.preset,
    );
  const ports = allows.ports.length === 0 ? DEFAULT_PORTS : allows.ports;
  if (allows.kind === "range")
    return net.entries.find(
      (entry) =>
        entry.allows.kind === "range" &&
        isWithin(allows.range, entry.allows.range) &&
        // An entry without ports also lifts the refusal of internal addresses on every port.
        (entry.allows.ports.length === 0 ||
          (allows.ports.length > 0 && allows.ports.every((port) => hasPort(entry, port)))),
    );
  const rules = netRules([{ net, presets }]);
  const name = allows.kind === "below" ? `${SOME_LABEL}.${allows.name}` : allows.name;
  const verdicts = ports.map((port) => rules.connection(name, port));
  const [first] = verdicts;
  if (first === undefined || first.entry === null || !verdicts.every(({ allowed }) => allowed))
    return undefined;
  return { written: first.entry, source: first.source };
}

function hasPort({ allows }: NetEntry, port: number): boolean {
  return allows.kind === "range" && allows.ports.includes(port);
}
