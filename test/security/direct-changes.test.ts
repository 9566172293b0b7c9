import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FsDiff } from "../../schemas/generated/types.ts";
import { type Actor, actors } from "../actors.ts";
import { type Ran, TestBroker } from "../broker.ts";
import { needs } from "../needs.ts";
import { buildProgram } from "../programs.ts";
import { FLOOD, LISTENED, SWAP, VANISH } from "./direct-changes-programs.ts";

const POLICY = `id: default
name: x
mode: enforce
`;

function diffOf(ran: Ran): FsDiff {
  if (ran.fs_diff === null) throw new Error("Expected a diff, received none");
  return ran.fs_diff;
}

/** As many as a diff lists of one folder. */
const numbered = (folder: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_each, at) => `${folder}/${at}`).sort();

describe.each(actors())("what is told of direct writes, as $kind", (actor: Actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    buildProgram(broker, "swap", SWAP);
    buildProgram(broker, "flood", FLOOD);
    buildProgram(broker, "vanish", VANISH);
  });
  afterAll(() => broker?.stop());

  const stillTells = async (name: string): Promise<void> => {
    const ran = await broker.run(`echo 1 > ${name}`);
    expect(diffOf(ran)).toMatchObject({ writes: [name], truncated: false, summary: null });
  };

  test("a path that another thread swaps hides or misnames a change, and lets nothing through that would be refused", async () => {
    const ran = await broker.run("mkdir swapped && ./swap swapped /usr/never");
    expect(ran.exit, ran.stderr).toBe(0);
    expect(existsSync("/usr/never")).toBe(false);
    const wild = [...diffOf(ran).writes, ...diffOf(ran).mods, ...diffOf(ran).deletes].filter(
      (path) => !path.startsWith("swapped/"),
    );
    expect(wild).toEqual([]);
    await stillTells("after-swap");
  });

  test("200 threads that write are all told of, and others work meanwhile", async () => {
    const flood = broker.run("mkdir many && ./flood many 200 10");
    const meanwhile = await Promise.all(
      [1, 2, 3].map((at) => broker.run(`echo 1 > meanwhile${at} && cat meanwhile${at}`)),
    );
    for (const [at, ran] of meanwhile.entries()) {
      expect(ran.stdout).toBe("1\n");
      expect(diffOf(ran).writes).toEqual([`meanwhile${at + 1}`]);
    }
    const ran = await flood;
    expect(ran.exit, ran.stderr).toBe(0);
    expect(diffOf(ran).summary).toMatch(/^2000 files and 1 folders changed/);
    expect(diffOf(ran).writes).toEqual(numbered("many", 2000).slice(0, 1000));
  });

  test("callers that are killed while they wait harm nobody", async () => {
    const ran = await broker.run({ cmd: "mkdir vanished && ./vanish vanished 300", timeout_ms: 60_000 });
    expect(ran.exit, ran.stderr).toBe(0);
    expect(diffOf(ran).summary).toBeNull();
    expect(diffOf(ran).writes.every((path) => path.startsWith("vanished/"))).toBe(true);
    await stillTells("after-vanish");
  });

  test("a program that closes its memory to PID 1 has a diff that says so, not an empty one", async () => {
    needs("python3");
    const ran = await broker.run(
      `python3 -c "import ctypes; ctypes.CDLL(None).prctl(4, 0); open('hidden', 'w')"`,
    );
    expect(existsSync(join(broker.project, "hidden"))).toBe(true);
    expect(diffOf(ran)).toMatchObject({
      truncated: true,
      summary: expect.stringContaining("could not be read"),
      tree_hash: null,
    });
    await stillTells("after-hidden");
  });

  test("paths that are no text, too long, or nowhere are the caller's own trouble", async () => {
    needs("python3");
    const ran = await broker.run(`python3 -c "
import ctypes, errno
c = ctypes.CDLL(None, use_errno=True)
def call(*a):
    return ctypes.get_errno() if c.syscall(*a) < 0 else 0
long = ctypes.create_string_buffer(b'x' * 5000)
print(call(257, -100, ctypes.c_void_p(8), 65, 0o644), call(257, -100, long, 65, 0o644), call(257, 77, b'x', 65, 0o644), call(257, -100, b'', 65, 0o644), call(257, -100, b'no/x', 65, 0o644), call(437, -100, b'x', ctypes.c_void_p(8), 24))
"`);
    expect(ran.stdout).toBe("14 36 9 2 2 14\n");
    expect(diffOf(ran).writes).toEqual([]);
    await stillTells("after-trouble");
  });

  test("below another sandbox that listens, commands run, and their diffs say that nothing is known", async () => {
    needs("python3");
    const listened = join(broker.project, "listened");
    buildProgram(broker, "listened", LISTENED);
    const inner = await TestBroker.start(actor, { policies: { default: POLICY }, wrap: () => [listened] });
    try {
      const ran = await inner.run("echo 1 > unseen; cat unseen");
      expect(ran.stdout, ran.stderr).toBe("1\n");
      expect(diffOf(ran)).toMatchObject({
        writes: [],
        truncated: true,
        summary: expect.stringContaining("not measured"),
        tree_hash: null,
      });
      const clone3 = await inner.run(
        `python3 -c "import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.syscall(435, 0, 0), ctypes.get_errno())"`,
      );
      expect(clone3.stdout).toBe("-1 38\n");
    } finally {
      await inner.stop();
    }
  });

  test("a time that is set back hides no change", async () => {
    await broker.run("echo 1 > dated; touch -d 2001-01-01 dated");
    const ran = await broker.run("echo 2 > dated; touch -d 2001-01-01 dated");
    expect(diffOf(ran).mods).toEqual(["dated"]);
    expect(diffOf(await broker.run("cat dated")).mods).toEqual([]);
  });

  test("every way by which a file can be changed is told", async () => {
    needs("python3");
    const ran =
      await broker.run(`mkdir ways && cd ways && echo 1 > o && echo 1 > t && echo 1 > m && python3 -c "
import ctypes, os
c = ctypes.CDLL(None, use_errno=True)
S = ctypes.c_char_p
def must(*a):
    r = c.syscall(*a)
    if r < 0: raise OSError(ctypes.get_errno(), str(a))
    return r
how = (ctypes.c_uint64 * 3)(0o101, 0o644, 0)
must(2, b'open', 0o101, 0o644); must(85, b'creat', 0o644); must(437, -100, b'openat2', how, 24)
must(133, b'mknod', 0o010644, 0); must(86, b'o', b'link'); must(265, -100, b'o', -100, b'linkat', 0)
must(88, b'x', b'symlink'); must(266, b'x', -100, b'symlinkat'); must(83, b'mkdir', 0o755); must(258, -100, b'mkdirat', 0o755)
must(82, b'creat', b'rename'); must(264, -100, b'open', -100, b'renameat'); must(316, -100, b'openat2', -100, b'renameat2', 1)
must(76, b't', 0); must(91, os.open('m', os.O_RDONLY), 0o600)
f = os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o644); must(265, -100, ('/proc/self/fd/%d' % f).encode(), -100, b'tmpfile', 0x400)
"`);
    expect(ran.stderr).toBe("");
    expect(diffOf(ran)).toMatchObject({
      writes: [
        ...["link", "linkat", "m", "mknod", "o", "rename", "renameat", "renameat2", "symlink", "symlinkat"],
        ...["t", "tmpfile"],
      ].map((name) => `ways/${name}`),
      dirs: ["ways", "ways/mkdir", "ways/mkdirat"],
    });
    const again = await broker.run(
      `cd ways && python3 -c "import os; os.truncate('t', 3); os.fchmod(os.open('m', os.O_RDONLY), 0o640)"`,
    );
    expect(diffOf(again).mods).toEqual(["ways/m", "ways/t"]);
  });
});
