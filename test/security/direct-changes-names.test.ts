import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FsDiff } from "../../schemas/generated/types.ts";
import type { Actor } from "../support/users/users.ts";
import { type Ran, TestBroker } from "../support/broker/broker.ts";
import { actorsWith } from "../support/run/needs.ts";

function diffOf(ran: Ran): FsDiff {
  if (ran.fs_diff === null) throw new Error("Expected a diff, received none");
  return ran.fs_diff;
}

function python(script: string): string {
  return `python3 -c "
import ctypes, os
c = ctypes.CDLL(None, use_errno=True)
def must(*a):
    r = c.syscall(*a)
    if r < 0: raise OSError(ctypes.get_errno(), str(a))
    return r
${script}"`;
}

/** A write to a project is told by its name there, or the diff says that something is missing. */
describe.each(actorsWith("python3"))("names by which a direct write could hide, as $kind", (actor: Actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\nmode: enforce\n" },
    });
  });
  afterAll(() => broker?.stop());

  const kept = async (name: string): Promise<void> => {
    await broker.run(`echo before > ${name}`);
  };

  test.each([
    [
      "/dev/fd, which leads to whoever asks",
      "open('/dev/fd/%d' % os.open('NAME', os.O_RDONLY), 'w').write('after')",
    ],
    [
      "/proc/self/fd, seen from /proc",
      "f = os.open('NAME', os.O_RDONLY); os.chdir('/proc'); open('self/fd/%d' % f, 'w').write('after')",
    ],
    ["/proc/self/cwd", "open('/proc/self/cwd/NAME', 'w').write('after')"],
    [
      "/proc/self/fd/N of a folder",
      "open('/proc/self/fd/%d/NAME' % os.open('.', os.O_RDONLY), 'w').write('after')",
    ],
    [
      "thirty links, one after the other",
      "os.symlink('NAME', 'NAME-0'); [os.symlink('NAME-%d' % i, 'NAME-%d' % (i + 1)) for i in range(30)]; open('NAME-30', 'w').write('after')",
    ],
    [
      "another name for as long as it takes",
      "os.link('NAME', 'NAME-too'); open('NAME-too', 'a').write('x'); open('NAME-too', 'w').write('after'); os.unlink('NAME-too')",
    ],
    [
      "another name by a link to it",
      "os.symlink('NAME', 'NAME-to'); os.link('NAME-to', 'NAME-too', follow_symlinks=True); open('NAME-too', 'w').write('after'); os.unlink('NAME-too')",
    ],
  ])("%s: the file is named", async (way, script) => {
    const name = `named-${way.replace(/[^a-z]/gi, "").slice(0, 24)}`;
    await kept(name);
    const ran = await broker.run(python(script.replaceAll("NAME", name)));
    expect(ran.stderr).toBe("");
    expect(readFileSync(join(broker.project, name), "utf8")).toBe("after");
    expect(diffOf(ran)).toMatchObject({ mods: [name], truncated: false });
  });

  test("//proc/self/cwd: the file is named", async () => {
    await kept("slashes");
    const ran = await broker.run(python("open('//proc/self/cwd/slashes', 'w').write('after')"));
    expect([ran.stderr, diffOf(ran).mods]).toEqual(["", ["slashes"]]);
  });

  test.each([
    [
      "self/cwd, seen from /proc",
      "os.chdir(os.getcwd()); os.symlink('/proc/self/cwd', 'NAME-link'); open('NAME-link/NAME', 'w').write('after')",
    ],
    [
      "a folder that is the root of its name",
      "how = (ctypes.c_uint64 * 3)(0o1001, 0, 0x10); f = must(437, os.open('.', os.O_RDONLY), b'/NAME', how, 24); os.write(f, b'after')",
    ],
  ])("%s: the write is refused, because init cannot follow the path", async (way, script) => {
    const name = `said-${way.replace(/[^a-z]/gi, "").slice(0, 24)}`;
    await kept(name);
    const ran = await broker.run(python(script.replaceAll("NAME", name)));
    expect(ran.stderr).toContain("Traceback");
    expect(readFileSync(join(broker.project, name), "utf8")).not.toBe("after");
  });

  test("fchmodat2 with a flag for an empty name and a name that is not: the file is named", async () => {
    await kept("moded");
    const ran = await broker.run(python("must(452, os.open('.', os.O_RDONLY), b'moded', 0o751, 0x1000)"));
    if (ran.stderr.includes("[Errno 38]")) return;
    expect(ran.stderr).toBe("");
    expect(statSync(join(broker.project, "moded")).mode & 0o777).toBe(0o751);
    expect(diffOf(ran)).toMatchObject({ mods: ["moded"], truncated: false });
  });

  test("what shells and tools write to by such names is no gap", async () => {
    const ran = await broker.run({
      argv: [
        "bash",
        "-c",
        "echo 1 | tee >(cat > teed) > /dev/null; echo 2 > /dev/stderr; echo 3 > /dev/stdout; sleep 0.1; echo 4 > /proc/self/fd/1",
      ],
    });
    expect(ran.stdout).toContain("3\n");
    expect(diffOf(ran)).toMatchObject({ writes: ["teed"], truncated: false, summary: null });
  });
});
