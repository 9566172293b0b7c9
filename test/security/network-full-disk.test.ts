import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { installationFor } from "../support/broker/installation.ts";
import { actorsWith } from "../support/run/needs.ts";
import { skip } from "../support/run/skips.ts";
import { runAs } from "../support/users/users.ts";

const BUDGET = 100_000;

/** Prints how many bytes each connection brought. */
const SERVER = `
import socket
listener = socket.create_server(("127.0.0.1", 9000))
print("listens", flush=True)
while True:
    peer, _ = listener.accept()
    count = 0
    try:
        for piece in iter(lambda: peer.recv(65536), b""): count += len(piece)
        peer.sendall(b"taken")
    except OSError: pass
    peer.close()
    print("received", count, flush=True)
`;

/** When the disk is full: a port that is brought to the broker and refused there, and five uploads of 60,000 bytes. */
const UPLOADS = `
import os, socket, time
open("ready", "w").close()
while not os.path.exists("full"): time.sleep(0.02)
try: socket.create_connection(("host.internal", 9001), 3)
except OSError: pass
for _ in range(5):
    try:
        with socket.create_connection(("host.internal", 9000), 3) as s:
            s.sendall(bytes(60000))
            s.shutdown(socket.SHUT_WR)
            s.recv(10)
    except OSError: pass
`;

const POLICY = `
id: default
name: Full
mode: enforce
net: { allowed: ["host.internal:9000", "other.test:9001"], egress_budget: { total_bytes: ${BUDGET} } }
`;

/** In a mount and a network namespace of its own, SUBSTRATE_HOME lies on a file system of 6 MiB that is then filled. */
const SCRIPT = `
set -u
ip link set lo up
mount -t tmpfs -o size=6m none "$1"
export SUBSTRATE_HOME="$1/home"
mkdir -p "$1/home/policies"
printf '%s' "$POLICY" > "$1/home/policies/default.yaml"
cd "$2"
printf '%s' "$UPLOADS" > uploads.py
python3 -c "$SERVER" & SERVING=$!
"$3" "$4" broker start > /dev/null
"$3" "$4" exec -- 'python3 uploads.py' 2> /dev/null & RUNNING=$!
until test -e ready; do sleep 0.05; done
dd if=/dev/zero of="$1/fill" bs=1k 2> /dev/null
touch full
wait $RUNNING
rm "$1/fill"
sleep 2.5
"$3" "$4" budget show
"$3" "$4" exec -- 'python3 uploads.py' 2>&1
"$3" "$4" trace list
"$3" "$4" broker stop
"$3" "$4" trace verify
kill $SERVING
`;

describe.each(actorsWith("python3"))("a disk that a command has filled, as $kind", (actor) => {
  test("ends no broker and lets no byte out beyond the budget; each connection has its line when there is room again", async () => {
    if (actor.uid !== 0)
      return skip(
        `connections on a full disk, as ${actor.kind}`,
        "an ordinary user cannot mount a small file system without becoming root inside",
      );
    const folder = mkdtempSync(join(tmpdir(), "sb-disk-"));
    const [disk, project] = ["disk", "project"].map((name) => join(folder, name)) as [string, string];
    for (const path of [disk, join(project, ".git")]) mkdirSync(path, { recursive: true });
    try {
      const { node, launcher } = await installationFor(actor);
      const words = ["unshare", "-mn", "sh", "-c", SCRIPT, "sh", disk, project, node, launcher];
      const env = { POLICY, UPLOADS, SERVER };
      const { stdout } = await runAs(actor, words, { cwd: folder, env });
      const received = [...stdout.matchAll(/^received (\d+)$/gm)].map(([, count]) => Number(count));
      // What came after the second found the budget used up, and was refused.
      expect(received, stdout).toHaveLength(2);
      expect(received.reduce((sum, count) => sum + count, 0)).toBe(BUDGET);
      expect(stdout.match(/^\S+ {2}\S+ {2}connection /gm), stdout).toHaveLength(2);
      expect(stdout).toMatch(/sent +100,000 of 100,000 bytes/);
      expect(stdout).toContain("was refused: the budget of bytes that may be sent is used up");
      expect(stdout).toMatch(/^The trace is intact/m);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
