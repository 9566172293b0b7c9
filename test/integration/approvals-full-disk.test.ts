import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { actors } from "../actors.ts";
import { installationFor } from "../installation.ts";
import { skip } from "../skips.ts";
import { runAs } from "../users.ts";

const POLICY = `id: default
name: Asks
mode: enforce
commands: { ask: ["touch *"], denied: ["touch never*"] }
approval: { timeout_secs: 8 }
`;

/** SUBSTRATE_HOME lies on a file system of 6 MiB that is then filled; approvals.yaml leads to one that has room. */
const SCRIPT = `
set -u
mount -t tmpfs -o size=6m none "$1"
export SUBSTRATE_HOME="$1/home"
mkdir -p "$SUBSTRATE_HOME/policies"
printf '%s' "$5" > "$SUBSTRATE_HOME/policies/default.yaml"
ln -s "$2/approvals.yaml" "$SUBSTRATE_HOME/approvals.yaml"
echo '# of a person' > "$2/approvals.yaml"
cd "$2"
substrate() { "$NODE" "$LAUNCHER" "$@" 2>&1; echo "exit $?"; }
NODE="$3"; LAUNCHER="$4"
"$NODE" "$LAUNCHER" broker start > /dev/null
"$NODE" "$LAUNCHER" exec -- 'touch ran-always' > /dev/null 2>&1
ID=$("$NODE" "$LAUNCHER" approvals --json | grep -o 'apr_[0-9a-f-]*' | head -n 1)
dd if=/dev/zero of="$1/fill" bs=1k 2> /dev/null
echo '== answer'; substrate approve "$ID" --always
echo '== run'; substrate exec -- 'touch ran-always'
echo '== ask'; substrate exec -- 'touch ran-asked'
echo '== denied'; substrate exec -- 'touch never'
sleep 8
echo '== expired'; substrate approvals
rm "$1/fill"
sleep 1
echo '== room'; substrate exec -- 'touch ran-always'
"$NODE" "$LAUNCHER" broker stop
"$NODE" "$LAUNCHER" trace verify
`;

describe.each(actors())("approvals on a full disk, as $kind", (actor) => {
  test("an answer that cannot be recorded is in no file, and a question that ends then does not end the broker", async () => {
    if (actor.uid !== 0) {
      skip(
        `approvals on a full disk, as ${actor.kind}`,
        "an ordinary user cannot mount a small file system without becoming root inside",
      );
      return;
    }
    const folder = mkdtempSync(join(tmpdir(), "sb-disk-"));
    const project = join(folder, "project");
    for (const name of ["disk", "project/.git"]) mkdirSync(join(folder, name), { recursive: true });
    try {
      const { node, launcher } = await installationFor(actor);
      const args = [join(folder, "disk"), project, node, launcher, POLICY];
      const { stdout } = await runAs(actor, ["unshare", "-m", "sh", "-c", SCRIPT, "sh", ...args], {
        cwd: folder,
      });
      const part = (name: string): string => stdout.split(`== ${name}\n`)[1]?.split("== ")[0] ?? "";
      expect(part("answer"), stdout).toMatch(/The answer was not accepted[^]*exit 125/);
      expect(readFileSync(join(project, "approvals.yaml"), "utf8")).toBe("# of a person\n");
      expect(existsSync(join(project, "approvals.yaml.new"))).toBe(false);
      for (const name of ["run", "ask", "denied"])
        expect(part(name), stdout).toMatch(/Nothing ran[^]*exit 125/);
      expect(part("expired"), stdout).toMatch(/^No command waits for approval\nexit 0/);
      expect(part("room"), stdout).toMatch(/A person must approve[^]*exit 126/);
      for (const name of ["ran-always", "ran-asked", "never"])
        expect(existsSync(join(project, name)), name).toBe(false);
      expect(stdout).toMatch(/^The trace is intact: /m);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }, 60_000);
});
