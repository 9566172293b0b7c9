import type { Broker } from "../broker.ts";
import type { Effective } from "../model/effective.ts";

const NONE: readonly string[] = [];

/** Returns a sentence for each policy file in force, and for the settings, that no longer load. */
export function staleWords(broker: Broker, { stale }: Effective): readonly string[] {
  const settings = broker.settingsProblems();
  if (stale === undefined && settings.length === 0) return NONE;
  return [
    ...(stale ?? []).map(
      (text) => `A policy does not load, so its last good version stays in force: ${text}`,
    ),
    ...settings
      .slice(0, 1)
      .map(({ text }) => `config.yaml does not load, so the last good settings stay in force: ${text}`),
  ];
}
