/** Detects another sandbox around the broker, from the kernel's status of this process. */
import { readFileSync } from "node:fs";

/** A remedy, as a sentence. */
export const OUTER_SANDBOX =
  'A sandbox around the broker (a seccomp filter with no_new_privs) refuses namespaces: start the broker outside of that sandbox, or turn the sandbox off, since worlds replace it (Codex: sandbox_mode = "danger-full-access" in ~/.codex/config.toml)';

/** Containers have a filter too, but let programs gain privileges; filter plus no_new_privs means a sandbox for programs. */
export function isInOuterSandbox(status = ownStatus()): boolean {
  return /^NoNewPrivs:\s*1$/m.test(status) && /^Seccomp:\s*2$/m.test(status);
}

function ownStatus(): string {
  try {
    return readFileSync("/proc/self/status", "utf8");
  } catch {
    // Missing or unreadable: no sign of a sandbox.
    return "";
  }
}
