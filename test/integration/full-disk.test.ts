import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Actor, actors, runAs } from "../support/users/users.ts";
import { installationFor } from "../support/broker/installation.ts";
import { skip } from "../support/run/skips.ts";

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

/**
 * The disk fills while a command runs, and the live file is past the size of one: its end cannot be written, nor can a
 * new file be made (a file system without a free inode). Both wait, and nothing that was recorded is lost. The command starts few
 * programs: their spans would fill the live file before there is no inode left.
 */
const FILLED_BY_COMMAND = `
set -u
mount -t tmpfs -o size=6m,nr_inodes=80 none "$1"
export SUBSTRATE_HOME="$1/home"
mkdir -p "$SUBSTRATE_HOME"
echo 'trace: { file_mib: 0.01 }' > "$SUBSTRATE_HOME/config.yaml"
cd "$2"
NODE="$3"; LAUNCHER="$4"
"$NODE" "$LAUNCHER" broker start > /dev/null
"$NODE" "$LAUNCHER" exec -- 'echo before'
"$NODE" "$LAUNCHER" exec -- 'touch begun; while [ ! -e full ]; do sleep 2; done; echo ran to its end' &
EXEC=$!
while [ ! -e begun ]; do sleep 0.1; done
I=0; while mkdir "$1/inode-$I" 2> /dev/null; do I=$((I + 1)); done
PAD=$(head -c 3000 /dev/zero | tr '\\0' x)
for number in 1 2 3 4 5 6; do "$NODE" "$LAUNCHER" exec -- "true #$PAD" > /dev/null; sleep 0.6; done
ls "$SUBSTRATE_HOME/trace" | sed 's/^/no inode: /'
dd if=/dev/zero of="$1/fill" bs=1k 2> /dev/null
touch full
wait $EXEC; echo "exec: $?"
rm "$1/fill"; rmdir "$1"/inode-*
ended() { "$NODE" "$LAUNCHER" trace list --outcome ended --json | grep -c 'ran to its end'; }
I=0; while [ "$(ended)" != 1 ] && [ $I -lt 20 ]; do sleep 1; I=$((I + 1)); done
ended
"$NODE" "$LAUNCHER" exec -- 'echo after'
I=0; while [ ! -e "$SUBSTRATE_HOME/trace/trace-0000000000000001.jsonl" ] && [ $I -lt 200 ]; do sleep 0.1; I=$((I + 1)); done
ls "$SUBSTRATE_HOME/trace" | sed 's/^/room: /'
"$NODE" "$LAUNCHER" broker stop
"$NODE" "$LAUNCHER" trace verify
`;

/** What a world tells the broker of by itself while nothing can be recorded: refused calls, and git folders of kept processes. */
const FILLED_AND_REFUSED = `
set -u
mount -t tmpfs -o size=6m none "$1"
export SUBSTRATE_HOME="$1/home"
cd "$2"
NODE="$3"; LAUNCHER="$4"
"$NODE" "$LAUNCHER" broker start > /dev/null
cat > refused.sh <<'SCRIPT'
touch begun-$1; while [ ! -e full ]; do sleep 0.1; done
for i in 1 2 3 4 5 6 7 8; do mv .git x$i; rm -f .git/config; mv .git/hooks h$i; git config core.pager evil$i; done 2> /dev/null
for i in 1 2 3 4; do
  mkdir -p n$1$i/x.git/hooks n$1$i/x.git/objects n$1$i/x.git/refs; ln -s evil n$1$i/x.git/hooks/post-checkout
  ln -s refs/heads/m n$1$i/x.git/HEAD; ln -s /tmp/c n$1$i/x.git/config; sleep 0.3
done
touch done-$1
SCRIPT
"$NODE" "$LAUNCHER" exec --keep -- '(sh refused.sh kept > /dev/null 2>&1 &)'
"$NODE" "$LAUNCHER" exec -- 'sh refused.sh plain; echo ran to its end' &
EXEC=$!
I=0; while { [ ! -e begun-kept ] || [ ! -e begun-plain ]; } && [ $I -lt 300 ]; do sleep 0.1; I=$((I + 1)); done
dd if=/dev/zero of="$1/fill" bs=1k 2> /dev/null
touch full
wait $EXEC; echo "exec: $?"; tail -n 3 "$SUBSTRATE_HOME/log/broker.log" "$SUBSTRATE_HOME/log/broker.log.start" >&2
I=0; while [ ! -e done-kept ] && [ $I -lt 100 ]; do sleep 0.1; I=$((I + 1)); done
sleep 1
rm "$1/fill"
sleep 3
"$NODE" "$LAUNCHER" exec -- 'echo "afterwards: $(ls begun-plain)"'
"$NODE" "$LAUNCHER" trace list --limit 500 --json | grep -c '"event_type": *"violation"'
"$NODE" "$LAUNCHER" broker stop
"$NODE" "$LAUNCHER" trace verify
`;

/** Runs a script on a small disk of its own; undefined for an ordinary user, with the reason of the skip. */
async function onSmallDisk(
  actor: Actor,
  what: string,
  script: string,
  prepare: (project: string) => void = () => {},
): Promise<{ readonly stdout: string; readonly said: string; readonly ran: readonly string[] } | undefined> {
  if (actor.uid !== 0) {
    const why = "an ordinary user cannot mount a small file system without becoming root inside";
    skip(`${what}, as ${actor.kind}`, why);
    return undefined;
  }
  const folder = mkdtempSync(join(tmpdir(), "sb-disk-"));
  const [disk, project] = [join(folder, "disk"), join(folder, "project")];
  for (const each of [disk, join(project, ".git/hooks")]) mkdirSync(each, { recursive: true });
  prepare(project);
  try {
    const { node, launcher } = await installationFor(actor);
    const words = ["unshare", "-m", "sh", "-c", script, "sh", disk, project, node, launcher];
    const { stdout, stderr } = await runAs(actor, words, { cwd: folder });
    return { stdout, said: `${stdout}\n${stderr}`, ran: readdirSync(project) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A broker starts where the last bytes are taken: some of what it opens still finds room. */
const STARTED_ON_FULL = `
set -u
mount -t tmpfs -o size=6m none "$1"
export SUBSTRATE_HOME="$1/home"
cd "$2"
NODE="$3"; LAUNCHER="$4"
"$NODE" "$LAUNCHER" exec -- true
"$NODE" "$LAUNCHER" broker stop
dd if=/dev/zero of="$1/fill" bs=1k 2> /dev/null
for left in 0 4096; do
  truncate -s $(($(stat -c %s "$1/fill") - left)) "$1/fill"
  timeout -s KILL 30 "$NODE" "$LAUNCHER" broker start --foreground 2>&1
  echo "ended with $?"
done
rm "$1/fill"
"$NODE" "$LAUNCHER" exec -- 'echo after'
"$NODE" "$LAUNCHER" broker stop
`;

describe.each(actors())("a full disk, as $kind", (actor) => {
  test("refuses what it cannot record, runs none of it, and everything works again when there is room", async () => {
    const done = await onSmallDisk(actor, "a full disk", SCRIPT);
    if (done === undefined) return;
    const { stdout, ran } = done;
    expect(stdout, stdout).toMatch(/^before$/m);
    expect(stdout.match(/Nothing ran: its span cannot be recorded/g), stdout).toHaveLength(3);
    for (const agent of ["one", "two", "three"]) expect(ran).not.toContain(`ran-${agent}`);
    expect(stdout, stdout).toMatch(/^after$/m);
    expect(stdout, stdout).toMatch(/^The trace is intact: 4 lines/m);
  });

  test("keeps the end of a command that fills it until there is room, and rotates then", async () => {
    const done = await onSmallDisk(actor, "a disk that a command fills", FILLED_BY_COMMAND);
    if (done === undefined) return;
    const { stdout, said } = done;
    expect(stdout, said).toMatch(/^ran to its end$/m);
    expect(stdout, said).toMatch(/^exec: 0$/m);
    expect(stdout, said).not.toMatch(/^no inode: trace-/m);
    expect(stdout, said).toMatch(/^room: trace-0000000000000001\.jsonl$/m);
    expect(stdout, said).toMatch(/^1\nafter$/m);
    expect(stdout, said).toMatch(/^The trace is intact: \d+ lines/m);
  });

  test("does not end the broker while a world tells of what it refused, and the trace gets it later", async () => {
    const what = "what a world tells beside a full disk";
    const done = await onSmallDisk(actor, what, FILLED_AND_REFUSED, (project) =>
      writeFileSync(join(project, ".git/config"), "[core]\n\tbare = false\n"),
    );
    if (done === undefined) return;
    const { stdout, said } = done;
    expect(stdout, said).toMatch(/^ran to its end$/m);
    expect(stdout, said).toMatch(/^exec: 0$/m);
    expect(stdout, said).toMatch(/^afterwards: begun-plain$/m);
    expect(Number(/^\d+$/m.exec(stdout)?.[0]), said).toBeGreaterThan(3);
    // Another line here would mean that the first broker had died.
    expect(said).not.toMatch(/starting the broker/);
    expect(stdout, said).toMatch(/^The trace is intact: \d+ lines/m);
  });

  test("ends a broker that cannot start on it, with a sentence, and the next one starts", async () => {
    const done = await onSmallDisk(actor, "a start on a full disk", STARTED_ON_FULL);
    if (done === undefined) return;
    const { stdout, said } = done;
    const refused = /The broker cannot start: '[^']+' has no room \(ENOSPC\)\. Free some space/g;
    expect(said.match(refused), said).toHaveLength(2);
    expect(stdout.match(/^ended with 125$/gm), said).toHaveLength(2);
    expect(stdout, said).toMatch(/^after$/m);
  });
});
