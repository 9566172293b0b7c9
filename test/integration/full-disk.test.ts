import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { actors } from "../actors.ts";
import { installationFor } from "../installation.ts";
import { skip } from "../skips.ts";
import { runAs } from "../users.ts";

/** In a mount namespace of its own, SUBSTRATE_HOME lies on a file system of 6 MiB that is then filled. */
const SCRIPT = `
set -u
mount -t tmpfs -o size=6m none "$1"
export SUBSTRATE_HOME="$1/home"
cd "$2"
NODE="$3"; LAUNCHER="$4"
"$NODE" "$LAUNCHER" broker start > /dev/null
"$NODE" "$LAUNCHER" exec -- 'echo before'
dd if=/dev/zero of="$1/fill" bs=1k 2> /dev/null
# Longer than what the last page of a file still has room for.
PAD=$(head -c 5000 /dev/zero | tr '\\0' x)
for agent in one two three; do
  "$NODE" "$LAUNCHER" exec --agent "$agent" -- "touch ran-$agent #$PAD" 2>&1
  sleep 0.3
done
rm "$1/fill"
sleep 1
"$NODE" "$LAUNCHER" exec --agent four -- 'echo after'
"$NODE" "$LAUNCHER" broker stop
"$NODE" "$LAUNCHER" trace verify
`;

describe.each(actors())("a full disk, as $kind", (actor) => {
  test("refuses what it cannot record, runs none of it, and everything works again when there is room", async () => {
    if (actor.uid !== 0) {
      skip(
        `a full disk, as ${actor.kind}`,
        "an ordinary user cannot mount a small file system without becoming root inside",
      );
      return;
    }
    const folder = mkdtempSync(join(tmpdir(), "sb-disk-"));
    for (const name of ["disk", "project"]) mkdirSync(join(folder, name));
    try {
      const { node, launcher } = await installationFor(actor);
      const words = [
        "unshare",
        "-m",
        "sh",
        "-c",
        SCRIPT,
        "sh",
        join(folder, "disk"),
        join(folder, "project"),
        node,
        launcher,
      ];
      const { stdout } = await runAs(actor, words, { cwd: folder });
      expect(stdout, stdout).toMatch(/^before$/m);
      expect(stdout.match(/Nothing ran: its span cannot be recorded/g), stdout).toHaveLength(3);
      for (const agent of ["one", "two", "three"])
        expect(existsSync(join(folder, "project", `ran-${agent}`))).toBe(false);
      expect(stdout, stdout).toMatch(/^after$/m);
      expect(stdout, stdout).toMatch(/^The trace holds: 4 lines/m);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
