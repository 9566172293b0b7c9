import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Home } from "../../broker/settings/home.ts";
import { loadPolicy } from "../../broker/policy/index.ts";
import type { Installation } from "../serve/installation.ts";

/**
 * Lists the parts of the isolation vector needed by the default policy: the required parts, and the overlay if the policy isolates
 * commands. Empty for a policy with errors, which refuses every command.
 */
export function neededParts(home: Home, installation: Installation): ReadonlySet<string> {
  const own = join(home.policies, "default.yaml");
  const loaded = loadPolicy(
    existsSync(own) ? own : join(installation.policies, "default.yaml"),
    installation.policies,
  );
  if (!("ok" in loaded)) return new Set();
  const { world, commands } = loaded.ok.document;
  const isolates = (commands?.isolated ?? []).length > 0 || (commands?.opaque ?? "isolate") === "isolate";
  return new Set([...(world?.require ?? []), ...(isolates ? ["overlay"] : [])]);
}
