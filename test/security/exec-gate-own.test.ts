/** What a command line names is decided by that name: a file that is a denied program under another one does not start either. */
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, linkSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

const POLICY = `id: default
name: Own
mode: enforce
fs: { write: ["$PROJECT/**"] }
commands: { denied: ["forbidden *"] }
`;

/** Each leaves `ran` in the folder it is started in; no two have the same bytes. */
const PROGRAM = (name: string): string => `
#include <fcntl.h>
volatile const char who[] = "${name}";
int main(void) { return open("ran", O_CREAT | O_WRONLY, 0644) < 0; }
`;

/** A thread of the command's own program starts another one, as soon as it can. */
const THREAD = `
#include <pthread.h>
#include <unistd.h>
static void *start(void *file) {
  char *words[] = {file, 0};
  execv(file, words);
  _exit(126);
}
int main(int count, char **all) {
  pthread_t thread;
  pthread_create(&thread, 0, start, all[count - 1]);
  pause();
}
`;

const LOADER = process.arch === "arm64" ? "/lib/ld-linux-aarch64.so.1" : "/lib64/ld-linux-x86-64.so.2";

describe.each(actors())("as $kind", (actor) => {
  let broker: TestBroker;
  const at = (...parts: readonly string[]): string => join(broker.project, ...parts);

  function compile(name: string, source: string, ...words: readonly string[]): void {
    broker.write(at("sources", `${name}.c`), source);
    broker.write(at("bin", name), "");
    const made = spawnSync("cc", [...words, "-o", at("bin", name), at("sources", `${name}.c`), "-lpthread"]);
    expect(made.stderr.toString()).toBe("");
    chmodSync(at("bin", name), 0o755);
  }

  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    for (const name of ["forbidden", "harmless"]) {
      compile(name, PROGRAM(name));
      copyFileSync(at("bin", name), at(`${name}-copy`));
      linkSync(at(`${name}-copy`), at(`${name}-link`));
      symlinkSync(`${name}-copy`, at(`${name}-symlink`));
      copyFileSync(at("bin", name), at(`${name}-closed`));
      chmodSync(at(`${name}-closed`), 0o644);
      for (const [kind, line] of [
        ["script", at("bin", name)],
        ["relative", `./${name}-copy`],
        ["nested", `./${name}-relative x`],
      ]) {
        broker.write(at(`${name}-${kind}`), `#!${line}\n`);
        chmodSync(at(`${name}-${kind}`), 0o755);
      }
    }
    copyFileSync(LOADER, at("loader"));
    compile("thread", THREAD, "-static");
  });
  afterAll(() => broker.stop());

  async function runs(argv: readonly string[], path: string): Promise<boolean> {
    rmSync(at("ran"), { force: true });
    await broker.run({ argv, env: { PATH: path } });
    return existsSync(at("ran"));
  }

  test.each([
    ["a copy", "./NAME-copy"],
    ["a copy that is found along PATH", "NAME-copy"],
    ["a hard link to a copy", "./NAME-link"],
    ["a symlink to a copy", "./NAME-symlink"],
    ["an interpreter line", "./NAME-script"],
    ["a relative interpreter line", "./NAME-relative"],
    ["an interpreter line of an interpreter line", "./NAME-nested"],
    ["the dynamic loader", `${LOADER} ./NAME-copy`],
    ["the dynamic loader of what may not be run", `${LOADER} ./NAME-closed`],
    ["a copy of the dynamic loader", "./loader --argv0 x ./NAME-closed"],
  ])("%s does not hide it, and its twin starts", async (_what, words) => {
    const path = `/usr/bin:/bin:${at("bin")}:${at()}`;
    expect(await runs(words.replaceAll("NAME", "forbidden").split(" "), path)).toBe(false);
    expect(await runs(words.replaceAll("NAME", "harmless").split(" "), path)).toBe(true);
  });

  test("a command that is closed to readers is still what it is", async () => {
    copyFileSync(at("bin/forbidden"), at("unread"));
    chmodSync(at("unread"), 0o111);
    expect(await runs(["./unread"], at("bin"))).toBe(false);
  });

  test("what is refused so stands in the trace", () => {
    const said = broker.spans().filter(({ event_type }) => event_type === "violation");
    expect(said.map(({ decision }) => decision?.rule?.pattern)).toContain("forbidden *");
  });

  test("a thread that begins with its program is no program of the command line", async () => {
    rmSync(at("ran"), { force: true });
    const env = { PATH: `/usr/bin:/bin:${at("bin")}` };
    const one = { argv: ["thread", at("bin/forbidden")], env };
    // Runners that are made when they are needed begin in the same tick as their program.
    await Promise.all(Array.from({ length: 40 }, () => broker.run(one)));
    expect(existsSync(at("ran"))).toBe(false);
    await broker.run({ argv: ["thread", at("bin/harmless")], env });
    expect(existsSync(at("ran"))).toBe(true);
  });
});
