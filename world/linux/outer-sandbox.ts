/** Another sandbox around the broker, by what the kernel says of this process. */
import { readFileSync } from "node:fs";

/** What to do about it, a sentence. */
export const OUTER_SANDBOX =
  'A sandbox around the broker (a seccomp filter with no_new_privs) lets it make no namespaces: start the broker outside of it, or turn that sandbox off, since worlds take its place (Codex: sandbox_mode = "danger-full-access" in ~/.codex/config.toml)';

/** Containers have a filter too, and let their programs gain privileges; who gives that up beside is a sandbox of programs. */
export function isInOuterSandbox(status = ownStatus()): boolean {
  return /^NoNewPrivs:\s*1$/m.test(status) && /^Seccomp:\s*2$/m.test(status);
}

function ownStatus(): string {
  try {
    return readFileSync("/proc/self/status", "utf8");
  } catch {
    // Not there or not ours to read: it says nothing.
    return "";
  }
}
