import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../actors.ts";
import { TestBroker } from "../broker.ts";
import { ANSWERS } from "../preload-program.ts";
import { listening, tell } from "../telemetry.ts";

const ROOT = join(import.meta.dirname, "../..");

/** What leaves a world that listens: its programs see what they would see without. */
const AS_WITHOUT = "env -u LD_PRELOAD -u SUBSTRATE_TELEMETRY";

const STATIC = `
#include <fcntl.h>
#include <unistd.h>
int main(void) { return open("by-static", O_WRONLY | O_CREAT, 0600) < 0 || unlink("by-static") < 0; }
`;

const MAKEFILE = `
all: a.o b.o c.o d.o
%.o: %.c
\tcc -c $<
`;

describe.each(actors())("a program that reports, as $kind,", (actor) => {
  let broker: TestBroker;
  let quiet: TestBroker;

  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: listening(true) } });
    quiet = await TestBroker.start(actor, { policies: { default: listening(false) } });
    for (const { project } of [broker, quiet]) {
      writeFileSync(join(project, "answers.c"), ANSWERS);
      writeFileSync(join(project, "static.c"), STATIC);
      execFileSync("cc", ["-O2", "-D_FORTIFY_SOURCE=2", "-w", "-pthread", "-o", "answers", "answers.c"], {
        cwd: project,
      });
      execFileSync("cc", ["-static", "-o", "static", "static.c"], { cwd: project });
    }
  }, 60_000);
  afterAll(async () => {
    await broker?.stop();
    await quiet?.stop();
  });

  test("gets the same answers, errors and descriptors as without, from the world and on the host", async () => {
    const plain = await quiet.run("./answers");
    const told = await tell(broker, "./answers");
    expect(plain.stdout.split("\n").length).toBe(65);
    expect(told.stdout).toBe(plain.stdout);
    expect(told.stderr).toBe(plain.stderr);
    expect(told.exit).toBe(plain.exit);
    expect(told.counts?.write).toBeGreaterThan(100);
    const { stdout } = await tell(broker, `${AS_WITHOUT} ./answers`);
    expect(stdout).toBe(plain.stdout);
  });

  test("is the same when the library is loaded where nobody listens", () => {
    const library = join(ROOT, ".build/substrate-preload.so");
    const run = (env: Record<string, string>): string =>
      execFileSync("./answers", [], {
        cwd: quiet.project,
        env: { PATH: "/usr/bin:/bin", ...env },
        encoding: "utf8",
      });
    const alone = run({});
    expect(run({ LD_PRELOAD: library })).toBe(alone);
    expect(run({ LD_PRELOAD: library, SUBSTRATE_TELEMETRY: "substrate-nobody" })).toBe(alone);
  });

  test("is not there, and nor is a variable, a file or a socket of it, where no policy asks", async () => {
    const { stdout, span_id: id } = await quiet.run(
      "env; ls -a /run; grep -c @substrate- /proc/net/unix; : >made; rm made",
    );
    expect(stdout).not.toMatch(/LD_PRELOAD|SUBSTRATE_TELEMETRY|substrate-preload/);
    expect(stdout).toMatch(/^0$/m);
    expect((await quiet.span(id)).telemetry).toBeUndefined();
    const heard = await tell(broker, "env; ls -a /run; grep -c @substrate- /proc/net/unix");
    expect(heard.stdout).toMatch(/^LD_PRELOAD=\/run\/substrate-preload\.so$/m);
    expect(heard.stdout).toMatch(/^1$/m);
  });

  test("that clears its environment, or is static, is not seen, and is not told to be", async () => {
    const cleared = await tell(broker, "exec env -i /bin/sh -c ': >unseen; rm unseen; env'");
    expect(cleared.stdout).not.toContain("PRELOAD");
    expect(cleared.programs).toEqual([expect.stringMatching(/env$/), "/bin/sh"]);
    expect(cleared).toMatchObject({ written: [], unlinked: [] });
    const { exit, counts, programs } = await tell(broker, "exec ./static");
    expect(exit).toBe(0);
    expect(programs).toEqual([join(broker.project, "static")]);
    expect(counts).toMatchObject({ write: 0, unlink: 0 });
  });

  test("builds with make -j2, and what make starts is seen", async () => {
    writeFileSync(join(broker.project, "Makefile"), MAKEFILE);
    for (const name of ["a", "b", "c", "d"])
      writeFileSync(join(broker.project, `${name}.c`), `int ${name};\n`);
    const built = await tell(broker, "make -j2 && ls *.o");
    expect(built.exit, built.stderr).toBe(0);
    expect(built.stdout).toMatch(/a\.o\nb\.o\nc\.o\nd\.o/);
    expect(built.programs?.join(" ")).toMatch(/cc1/);
    expect(built.programs?.join(" ")).toMatch(/\bas\b/);
    expect(built.written).toContain(join(broker.project, "d.o"));
  });

  test("keeps a library of its own, which stands before", async () => {
    const own = "/nowhere/own.so";
    const { stdout } = await tell(broker, { cmd: "env", env: { LD_PRELOAD: own } });
    expect(stdout).toContain(`LD_PRELOAD=${own}:/run/substrate-preload.so\n`);
  });

  test("in the background that outlives its command is listened to until that has ended, and goes on", async () => {
    const told = await tell(broker, {
      cmd: "(sleep 0.3; : >late; mv late later) & : >early",
      background: "keep",
    });
    expect(told.written).toContain(join(broker.project, "early"));
    expect(told.written).not.toContain(join(broker.project, "late"));
    const wait = "i=0; until [ -e later ] || [ $i -gt 100 ]; do i=$((i+1)); sleep 0.1; done; ls later";
    expect((await broker.run(wait)).stdout).toBe("later\n");
  });
});
