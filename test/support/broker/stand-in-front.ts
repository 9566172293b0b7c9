/** A hook program of its own in place of the front, so that tests choose its answers. */
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Denies what names sudo and lets the rest run, in the form of each agent. STAND_IN chooses another answer: `closed` denies all,
 * `broken` prints no JSON, `open` allows all.
 */
const SCRIPT = `#!/bin/sh
event=$(cat)
[ "$1" = hook ] || exit 9
case "$STAND_IN" in
  closed) echo "No broker answers" >&2; exit 2 ;;
  broken) echo "not JSON"; exit 0 ;;
esac
verdict=allow
case "$event" in *sudo*) [ "$STAND_IN" = open ] || verdict=deny ;; esac
case "$2 $verdict" in
  "gemini allow") echo '{"decision":"allow","hookSpecificOutput":{"tool_input":{"command":"stand-in exec"}}}' ;;
  "gemini deny") echo '{"decision":"deny","reason":"stand-in says no"}' ;;
  "cursor allow") echo '{"permission":"allow","updated_input":{"command":"stand-in exec"}}' ;;
  "cursor deny") echo '{"permission":"deny","user_message":"stand-in says no"}' ;;
  *" allow") echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"stand-in exec"}}}' ;;
  *" deny") echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"stand-in says no"}}' ;;
esac
`;

/** A shell in place of `substrate-sh`, which runs nothing. */
const SHELL = `#!/bin/sh
[ "$1 $2 $SUBSTRATE_AGENT_ID" = "-i -c aider" ] || exit 9
case "$STAND_IN $3" in
  broken*) exit 0 ;;
  closed*) echo "substrate: No broker answers" >&2; exit 126 ;;
  open*) echo hello ;;
  *sudo*) echo "substrate: stand-in says no" >&2; exit 126 ;;
  *) echo hello ;;
esac
`;

/** Puts the stand-ins into a copy of the installation. */
export function standInFor(root: string): void {
  for (const [name, text] of [
    ["substrate", SCRIPT],
    ["substrate-sh", SHELL],
  ] as const) {
    const path = join(root, ".build", name);
    rmSync(path, { force: true });
    writeFileSync(path, text);
    chmodSync(path, 0o755);
  }
}
