/** What a person sees whose disk is full, at each step of a change: home, project and, for an ordinary user, layers lie on it. */
import { spawnSync } from "node:child_process";
import {
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Answer } from "../../api/client/client.ts";
import type { DiffReply, ErrorReply, ExecuteReply } from "../../schemas/generated/types.ts";
import { TestBroker, eventually } from "../support/broker/broker.ts";
import { change, changed, isolated, isolating, treeOf } from "../support/held/changes.ts";
import { skip } from "../support/run/skips.ts";
import { type Actor, everyActor } from "../support/users/users.ts";

// A small ext4 file system in a file, that can be filled to the last byte and emptied again.

const PIECE = 64 * 1024;

class SmallDisk implements Disposable {
  /** Its root, which belongs to the actor. */
  readonly folder: string;
  readonly #around: string;

  private constructor(around: string) {
    this.#around = around;
    this.folder = join(around, "disk");
  }

  /** Or why there is none: root alone can mount one, for whomever it will belong to. */
  static make(actor: Actor, mebibytes: number): SmallDisk | string {
    const disk = new SmallDisk(mkdtempSync(join(tmpdir(), "sb-small-")));
    const { uid, gid } = actor;
    const script = `set -e
chmod 755 "$1"; mkdir "$2"; truncate -s ${mebibytes}M "$1/image"
mkfs.ext4 -q -m 0 -O ^has_journal "$1/image"; mount -o loop "$1/image" "$2"; rmdir "$2/lost+found"; chown ${uid}:${gid} "$2"`;
    const made = spawnSync("sh", ["-c", script, "sh", disk.#around, disk.folder], { encoding: "utf8" });
    if (made.status === 0) return disk;
    disk[Symbol.dispose]();
    return `no small file system can be mounted: ${made.stderr.trim() || String(made.error)}`;
  }

  /** Takes all room but so many bytes. Where less is left already, that stays. */
  fill(leave: number): void {
    const file = openSync(join(this.folder, "fill"), "w");
    try {
      for (let size = PIECE; size >= 1; size = Math.floor(size / 16)) {
        while (this.#room() >= leave + size && tryWrite(file, size));
      }
    } finally {
      closeSync(file);
    }
  }

  free(): void {
    rmSync(join(this.folder, "fill"), { force: true });
  }

  [Symbol.dispose](): void {
    spawnSync("umount", ["-l", this.folder]);
    rmSync(this.#around, { recursive: true, force: true });
  }

  #room(): number {
    // Not `bfree`: ext4 keeps some for itself (ext4(5), reserved_clusters), also from root.
    const { bavail, bsize } = statfsSync(this.folder);
    return bavail * bsize;
  }
}

const MEBIBYTES = 48;
const FILES = 40;
/** Of each file: more than fits into the last block of anything. */
const BYTES = 6000;

/** From no room at all to what all of it needs. */
const ROOMS = [0, 4096, 16_384, 65_536, 131_072, 262_144, 524_288, 1_048_576] as const;

const make = (folder: string): string =>
  `mkdir ${folder}; for i in $(seq ${FILES}); do head -c ${BYTES} /dev/zero | tr '\\0' x > ${folder}/$i; done`;

describe.each(everyActor())("a small disk that is full, as $kind", (actor) => {
  test("refuses each step with a cause, leaves every tree whole, keeps what was recorded, and goes on once there is room", async () => {
    const disk = SmallDisk.make(actor, MEBIBYTES);
    if (typeof disk === "string") return skip(`a full disk at each step, as ${actor.kind}`, disk);
    try {
      await everyStep(actor, disk);
    } finally {
      disk[Symbol.dispose]();
    }
  }, 300_000);
});

async function everyStep(actor: Actor, disk: SmallDisk): Promise<void> {
  const folder = join(disk.folder, "sb");
  mkdirSync(folder);
  chownSync(folder, actor.uid, actor.gid);
  const broker = await TestBroker.start(actor, { policies: { default: isolating() }, folder });
  const refused = new Map<string, number>();
  const acknowledged: string[] = [];
  /** What was answered with success has happened; what was not says why, and has not. */
  const judge = (step: string, { status, document }: Answer): boolean => {
    if (status === 200) return true;
    const { code, message, hint } = (document as ErrorReply).error;
    const said = `${step}: ${status} ${code}: ${message}. ${hint}`;
    expect(code, said).not.toBe("internal_error");
    expect(`${message} ${hint}`, said).toMatch(/space|disk|recorded/i);
    refused.set(step, (refused.get(step) ?? 0) + 1);
    return false;
  };
  try {
    for (const [round, room] of ROOMS.entries()) {
      const held = (await isolated(broker, make(`held-${round}`))).span_id;
      const other = (await isolated(broker, make(`other-${round}`))).span_id;
      const done = (await isolated(broker, make(`done-${round}`))).span_id;
      await changed(broker, "apply", done);
      acknowledged.push(held, other, done);
      const before = treeOf(broker.project);

      disk.fill(room);
      const direct = await broker.post({ cmd: `echo ran > direct-${round}` });
      if (judge("direct", direct)) acknowledged.push((direct.document as ExecuteReply).span_id);
      else expect(existsSync(join(broker.project, `direct-${round}`))).toBe(false);
      const writes = await broker.post({ cmd: `true iso; ${make("x")} && echo all` });
      if (judge("isolated", writes)) wroteAllOrSaysSo(acknowledged, writes.document as ExecuteReply);
      const { [`direct-${round}`]: _, ...rest } = treeOf(broker.project);
      expect(rest).toEqual(before);

      const shown = await broker.operator("GET", `/v1/diff/${held}`);
      if (judge("diff", shown)) expect((shown.document as DiffReply).changes).toHaveLength(FILES + 1);
      judge("replay", await broker.call("POST", `/v1/replay/${done}`, {}));
      const applied = judge("apply", await change(broker, "apply", held));
      expect(existsSync(join(broker.project, `held-${round}`))).toBe(applied);
      const undone = judge("undo", await change(broker, "undo", done));
      expect(existsSync(join(broker.project, `done-${round}`))).toBe(!undone);
      const gone = judge("discard", await change(broker, "discard", other));
      expect((await broker.operator("GET", `/v1/trace/${held}`)).status).toBe(200);

      disk.free();
      if (!applied) expect((await changed(broker, "apply", held)).done).toHaveLength(FILES + 1);
      if (!undone) await changed(broker, "undo", done);
      if (!gone) await changed(broker, "discard", other);
      for (let file = 1; file <= FILES; file += 1)
        expect(readFileSync(join(broker.project, `held-${round}/${file}`)).length).toBe(BYTES);
      expect(existsSync(join(broker.project, `done-${round}`))).toBe(false);
      expect(Object.keys(treeOf(broker.project)).filter((path) => path.includes(".substrate"))).toEqual([]);
      expect((await changed(broker, "undo", held)).done).toHaveLength(FILES + 1);
    }
    // An end that had to wait is written within a second of there being room.
    await eventually(() => unended(broker, acknowledged).length === 0, 10_000);
    expect(unended(broker, acknowledged)).toEqual([]);
    const verified = await broker.cli(["trace", "verify"]);
    expect(verified.code, verified.stdout + verified.stderr).toBe(0);
    process.stdout.write(
      `a full disk as ${actor.kind}: refused ${JSON.stringify(Object.fromEntries(refused))} of ${ROOMS.length} each\n`,
    );
    expect(Math.min(refused.get("direct") ?? 0, refused.get("apply") ?? 0)).toBeGreaterThan(0);
  } finally {
    await broker.stop();
  }
}

function unended(broker: TestBroker, spans: readonly string[]): readonly string[] {
  const ended = new Set(
    broker.spans().flatMap((span) => (span.event_type === "command_complete" ? [span.span_id] : [])),
  );
  return spans.filter((span) => !ended.has(span));
}

/** A command whose own writes fail runs to its own end, and its changes are what it wrote. */
function wroteAllOrSaysSo(
  acknowledged: string[],
  { span_id: span, exit, stdout_b64, stderr_b64 }: ExecuteReply,
): void {
  acknowledged.push(span);
  const [out, err] = [stdout_b64, stderr_b64].map((text) => Buffer.from(text, "base64").toString());
  if (exit === 0) expect(out).toBe("all\n");
  else expect(err).toContain("No space left on device");
}

function tryWrite(file: number, size: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(size, 1)) === size;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOSPC") return false;
    throw error;
  }
}
