import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ExecRequest, ProgramEvent, ProgramGate, ProgramStart, World } from "../../world/backend.ts";
import { LinuxBackend } from "../../world/linux/backend.ts";
import { installationFor } from "../support/broker/installation.ts";
import { needs, needsOf } from "../support/run/needs.ts";
import { removeTrees } from "../support/users/folders.ts";
import { currentUser } from "../support/users/users.ts";

/**
 * Ways to start expr(1) that do not say so: each prints 2, or expr's own complaint, when it starts. Run by sh in a folder of
 * their own, in which anything may be removed.
 */
const DISGUISES: readonly (readonly [what: string, cmd: string])[] = [
  ["a symlink", "ln -sf /usr/bin/expr l; ./l 1 + 1"],
  [
    "a symlink to a symlink in another folder",
    "ln -sf /usr/bin/expr l; mkdir -p d; ln -sf ../l d/m; d/m 1 + 1",
  ],
  ["a copy by another name", "cp /usr/bin/expr c; ./c 1 + 1"],
  ["a copy in the world's /tmp", "cp /usr/bin/expr /tmp/c; /tmp/c 1 + 1"],
  ["a hard link to a copy", "cp /usr/bin/expr c; ln -f c h; ./h 1 + 1"],
  ["a copy that is closed to readers", "cp /usr/bin/expr c; chmod 111 c; ./c 1 + 1"],
  ["another argv[0]", "bash -c 'exec -a harmless /usr/bin/expr 1 + 1'"],
  ["/proc/self/root", "/proc/self/root/usr/bin/expr 1 + 1"],
  ["/proc/self/fd", "exec 7< /usr/bin/expr; /proc/self/fd/7 1 + 1"],
  ["/dev/fd of a copy that is gone", "cp /usr/bin/expr c; exec 7< c; rm c; /dev/fd/7 1 + 1"],
  [
    "an interpreter line",
    'printf \'#!/usr/bin/expr\' > 1; chmod +x 1; python3 -c \'import os; os.execv("1", ["1", "+", "1"])\'',
  ],
  [
    "an interpreter line of an interpreter line",
    "printf '#!/usr/bin/expr' > s; printf '#!./s' > t; chmod +x s t; ./t",
  ],
  [
    "the dynamic loader",
    "$(ls /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 2>/dev/null) /usr/bin/expr 1 + 1",
  ],
  [
    "a copy of the dynamic loader, with options, and a copy",
    "cp $(ls /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 2>/dev/null) ./x; cp /usr/bin/expr c; ./x --inhibit-cache --argv0 a ./c 1 + 1",
  ],
  ["env -i", "env -i /usr/bin/expr 1 + 1"],
  ["xargs", "echo 1 + 1 | xargs expr"],
  ["find -exec", "touch f; find f -exec expr 1 + 1 ';'"],
  ["python", `python3 -c 'import os; os.execv("/usr/bin/expr", ["x", "1", "+", "1"])'`],
  [
    "python's descriptors",
    `python3 -c 'import os; os.execve(os.open("/usr/bin/expr", 0), ["x", "1", "+", "1"], {})'`,
  ],
  ["perl", `perl -e 'exec {"/usr/bin/expr"} "x", 1, "+", 1'`],
  ["node", `node -e 'process.stdout.write(require("child_process").execFileSync("expr", ["1", "+", "1"]))'`],
  ["make", "printf 'a:\\n\\t@expr 1 + 1\\n' > Makefile; make -s"],
  [
    "a thread",
    `python3 -c 'import threading, os; threading.Thread(target=lambda: os.execv("/usr/bin/expr", ["x", "1", "+", "1"])).start()'`,
  ],
  [
    "the dynamic loader, and a copy that may not be run by itself",
    "cp /usr/bin/expr c; chmod 644 c; $(ls /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 2>/dev/null) ./c 1 + 1",
  ],
  [
    "/dev/fd of a copy whose other name is left",
    "cp /usr/bin/expr c; ln c d; exec 7< c; rm c; /dev/fd/7 1 + 1",
  ],
  [
    "a copy below a folder whose path is nearly too long",
    `python3 -c '
import os
while (left := 4080 - len(os.getcwd())) > 1:
    name = "d" * min(200, left - 1)
    os.mkdir(name)
    os.chdir(name)
os.system("cp /usr/bin/expr ./" + "c" * 40)
os.execv("./" + "c" * 40, ["x", "1", "+", "1"])'`,
  ],
  [
    "an interpreter line that is mapped into a file that was none",
    `python3 -c '
import mmap, os, time
os.chdir("/tmp")
os.system("cp /usr/bin/true 1")
file = os.open("1", os.O_RDWR)
page = mmap.mmap(file, 4096)
page[0] = page[0]
time.sleep(0.2)
if os.spawnv(os.P_WAIT, "1", ["x"]) != 127: raise SystemExit("It started")
page[0:16] = b"#!/usr/bin/expr\\n"
page.close()
os.close(file)
os.execv("1", ["1", "+", "1"])'`,
  ],
];

/** Starts it with words in the two registers by which a runner of substrate-init makes its own start known. */
const OWN_WORDS = `cat > raw.c << 'END'
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
  char *argv[] = {"expr", "1", "+", "1", NULL};
  for (long one = -1; one < 2; one++)
    for (long other = -1; other < 2; other++) syscall(SYS_execve, "/usr/bin/expr", argv, NULL, one, other);
  return 0;
}
END
cc -o raw raw.c && ./raw`;

/** What a world tells of programs, and how its gate holds, at the interface between world and broker. */
describe.each(["direct", "overlay", "log"] as const)("starts of programs in a world of kind %s", (kind) => {
  let folder = "";
  let backend: LinuxBackend;
  let world: World;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "sb-"));
    const { root } = await installationFor(currentUser());
    const { uid, gid } = currentUser();
    const init = join(root, ".build/substrate-init");
    const own = { strays: join(folder, ".strays"), quarantine: join(folder, ".quarantine") };
    backend = new LinuxBackend({ init, uid, gid, ...own });
    const layers = join(folder, "..", `${folder.split("/").at(-1)}-layers`);
    const access = kind === "overlay" ? ({ kind, layers } as const) : ({ kind: "direct" } as const);
    world = await backend.start(
      "wld_programs",
      {
        project: folder,
        identity: "x",
        access,
        files: { read: ["/**"], denyRead: [], write: [`${folder}/**`], denyWrite: [], seal: [] },
        hidden: [],
        sealed: [],
        limits: {},
        seccomp: kind === "log" ? "log" : "enforce",
        network: { ports: [], ranges: [] },
      },
      AbortSignal.timeout(20_000),
    );
  });
  afterAll(async () => {
    await backend.close();
    removeTrees(folder, `${folder}-layers`);
  });

  type Told = {
    readonly output: string;
    readonly ending: unknown;
    readonly starts: readonly ProgramStart[];
    readonly events: readonly ProgramEvent[];
  };

  async function run(cmd: string, gate?: Partial<ProgramGate>): Promise<Told> {
    const starts: ProgramStart[] = [];
    const events: ProgramEvent[] = [];
    let output = "";
    const request: ExecRequest = {
      argv: ["/bin/sh", "-c", cmd],
      cwd: folder,
      env: { PATH: "/usr/local/bin:/usr/bin:/bin" },
      stdin: undefined,
      background: "kill",
      window: 1 << 20,
      onOutput: (_stream, bytes) => {
        output += Buffer.from(bytes).toString();
      },
      onViolation: () => undefined,
      onPrograms: (batch) => events.push(...batch),
      ...(gate === undefined
        ? {}
        : {
            gate: {
              names: [],
              all: false,
              refuses: true,
              ...gate,
              decide: (start, wait) => {
                starts.push(start);
                return gate.decide?.(start, wait) ?? false;
              },
            },
          }),
    };
    const ending = await world.exec(request).ending;
    return { output, ending, starts, events };
  }

  const no = { decide: () => false };

  test("what no rule concerns starts without a question; the tree has parents, words and exit codes", async () => {
    const told = await run("/bin/sh -c 'expr 1 + 1; exit 3'; echo $?", { ...no, names: ["sudo"] });
    expect(told.output).toBe("2\n3\n");
    expect(told.starts).toEqual([]);
    expect(told.events).toMatchObject([
      { kind: "started", number: 1, parent: 0, argv: ["/bin/sh", "-c", "expr 1 + 1; exit 3"], cut: false },
      { kind: "started", number: 2, parent: 1, path: "/usr/bin/expr", argv: ["expr", "1", "+", "1"] },
      { kind: "ended", number: 2, code: 0, signal: null, replaced: false },
      { kind: "ended", number: 1, code: 3, signal: null },
    ]);
  });

  test("a refused program does not start, its shell says 126 and goes on", async () => {
    const told = await run("exec 2>&1; /usr/bin/expr 1 + 1; echo $?; expr 2 + 2; echo $?; echo on", {
      ...no,
      names: ["expr"],
    });
    expect(told.output).toMatch(/126\n.*126\non\n$/s);
    // The second is looked for along PATH: /bin is /usr/bin there, and nobody is asked twice.
    expect(told.output).not.toMatch(/^[24]$/m);
    expect(told.starts).toMatchObject([
      {
        files: [
          {
            called: "/usr/bin/expr",
            path: "/usr/bin/expr",
            argv: ["/usr/bin/expr", "1", "+", "1"],
            same: [],
          },
        ],
      },
      { files: [{ path: "/usr/bin/expr", argv: ["expr", "2", "+", "2"] }], cut: false, unread: null },
    ]);
    expect(told.events.every(({ kind }) => kind === "refused")).toBe(true);
  });

  test.each(DISGUISES)("%s does not hide a refused program; its twin starts", async (_what, cmd) => {
    needsOf(cmd);
    const whole = `rm -rf ./*; ${cmd}`;
    const free = await run(whole);
    expect(free.output).toMatch(/^2$|syntax error/m);
    const refused = await run(whole, { ...no, names: ["expr"] });
    expect(refused.output).not.toMatch(/^2$|syntax error/m);
    expect(refused.starts.length).toBeGreaterThan(0);
    // Asked about another program it starts, and nobody is asked but about what cannot be known.
    const twin = await run(whole, { decide: () => true, names: ["sudo"] });
    expect(twin.output).toBe(free.output);
    expect(
      twin.starts.every(({ unread, files }) => unread !== null || files.some(({ path }) => path === null)),
    ).toBe(true);
  });

  test("no words in the registers that execve does not use make a start the command's own", async () => {
    const refused = await run(OWN_WORDS, { ...no, names: ["expr"] });
    expect(refused.output).not.toMatch(/^2$/m);
    expect(refused.starts.length).toBeGreaterThan(0);
    expect((await run(OWN_WORDS)).output).toBe("2\n");
  });

  test.each(["/proc/self/exe", "/proc//self/exe", "me/exe"])(
    "%s is the caller's own program",
    async (path) => {
      needs("python3");
      const cmd = `ln -s /proc/self me; python3 -c 'import os; os.execv("${path}", ["x", "-c", "print(1 + 1)"])'`;
      const decide = ({ files: [{ path }] }: ProgramStart): boolean => path?.includes("python") !== true;
      const names = ["python3*"];
      const real = /* The first one has to start. */ { seen: 0 };
      const once = { decide: (start: ProgramStart) => decide(start) || real.seen++ === 0, names };
      expect((await run(cmd)).output).toMatch(/^2$/m);
      expect((await run(cmd, once)).output).not.toMatch(/^2$/m);
      expect(real.seen).toBe(2);
    },
  );

  test("a file in memory is asked about whatever its name", async () => {
    needs("python3");
    const cmd = `python3 -c '
import os
fd = os.memfd_create("x")
os.write(fd, open("/usr/bin/expr", "rb").read())
os.execve(fd, ["x", "1", "+", "1"], {})'`;
    const refused = await run(cmd, { ...no, names: ["sudo"] });
    expect(refused.output).not.toMatch(/^2$/m);
    expect(refused.starts).toMatchObject([{ files: [{ path: null }] }]);
    expect((await run(cmd, { decide: () => true })).output).toBe("2\n");
  });

  test("an answer may take its time when it says so, and else the start is refused", async () => {
    const late = (wait: boolean): Promise<Told> =>
      run("expr 1 + 1; expr 2 + 2", {
        names: ["expr"],
        decide: async (_start, more) => {
          if (wait) more(30_000);
          await new Promise((resolve) => setTimeout(resolve, 2400));
          return true;
        },
      });
    const [waited, refused] = await Promise.all([late(true), late(false)]);
    expect(waited.output).toBe("2\n4\n");
    expect(refused.output).not.toMatch(/^[24]$/m);
  });

  test("a process that is killed while it waits has started nothing", async () => {
    const decide = async (): Promise<boolean> => {
      await new Promise((resolve) => setTimeout(resolve, 800));
      return true;
    };
    const told = await run("expr 1 + 1 & sleep 0.2; kill -9 $!; sleep 1", { names: ["expr"], decide });
    const started = told.events.flatMap((event) => (event.kind === "started" ? [event.path] : []));
    expect(started).toEqual(["/usr/bin/sleep", "/usr/bin/sleep"]);
  });

  test("where nothing is refused, what is asked about starts at once and is told", async () => {
    const told = await run("expr 1 + 1; true", { ...no, refuses: false, names: ["expr"] });
    expect(told.output).toBe("2\n");
    expect(told.starts).toMatchObject([{ files: [{ path: "/usr/bin/expr" }] }]);
  });

  test("commands that run at once have their own gates", async () => {
    const cmd = "for i in 1 2 3 4 5 6 7 8 9; do expr 1 + 1; sleep 0.05; done";
    const [closed, open, none] = await Promise.all([
      run(cmd, { ...no, names: ["expr"] }),
      run(cmd, { decide: () => true, names: ["expr"] }),
      run(cmd),
    ]);
    expect([closed.starts.length, open.starts.length, none.starts.length]).toEqual([9, 9, 0]);
    expect(closed.output).not.toMatch(/^2$/m);
    expect([open.output, none.output]).toEqual(["2\n".repeat(9), "2\n".repeat(9)]);
  });

  test("programs that are looked for along PATH fail as they do without a gate", async () => {
    needs("python3");
    const cmd = `exec 2>&1; nothing-of-that-name; echo $?; ./nowhere/x; echo $?; /etc/passwd; echo $?; ./; echo $?
/etc/passwd/x; echo $?; python3 -c '
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for path in [None, b"x" * 5000, b"/usr/bin/true"]:
    libc.execve(path, ctypes.c_void_p(8), None)
    print(ctypes.get_errno())'`;
    const [gated, free] = [await run(cmd, { ...no, names: ["expr"] }), await run(cmd)];
    expect(gated.output).toBe(free.output);
    expect(gated.output).toContain("127\n");
  });

  test("a thousand programs have a thousand lines, in order, each below its parent", async () => {
    const told = await run("i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done", {
      ...no,
      names: ["expr"],
    });
    const started = told.events.filter(({ kind }) => kind === "started");
    const ended = told.events.filter(({ kind }) => kind === "ended");
    expect([started.length, ended.length]).toEqual([1000, 1000]);
    expect(
      started.every(({ kind, ...rest }) => kind === "started" && "parent" in rest && rest.parent === 0),
    ).toBe(true);
  });
});
