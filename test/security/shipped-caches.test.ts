import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../actors.ts";
import { TestBroker } from "../broker.ts";

const POLICIES = join(import.meta.dirname, "../../policies");

/** What the host runs or installs later from a cache, and where. */
const RUN_BY_THE_HOST = [
  ".cache/p10k-instant-prompt-ann.zsh",
  ".cache/gitstatus/gitstatusd-linux-x86_64",
  ".cache/pypoetry/virtualenvs/x/bin/python",
  ".cache/uv/archive-v0/x/bin/tool",
  ".cache/pip/wheels/x.whl",
  ".cache/pre-commit/x/hook",
  ".npm/_npx/x/node_modules/.bin/tool",
  ".npm/_cacache/content-v2/x",
  ".cargo/registry/src/x/build.rs",
  ".cargo/git/checkouts/x/build.rs",
];

describe.each(actors())("caches under shipped policies, as $kind", (actor) => {
  describe.each(["claude-code", "default"])("under %s", (name) => {
    let broker: TestBroker;
    let folder: string;
    let home: string;
    beforeAll(async () => {
      folder = mkdtempSync(join(actor.home, "sb-caches-"));
      home = join(folder, "person");
      for (const path of [...RUN_BY_THE_HOST.filter((_path, at) => at % 2 === 0), ".cache/tool/host"]) {
        mkdirSync(dirname(join(home, path)), { recursive: true });
        writeFileSync(join(home, path), "host\n");
      }
      const policy = readFileSync(join(POLICIES, `${name}.yaml`), "utf8");
      broker = await TestBroker.start(actor, {
        folder,
        policies: { default: policy.replace(`\nid: ${name}\n`, "\nid: default\n") },
        environment: { HOME: home },
      });
      broker.write(
        join(broker.project, "write.sh"),
        `for path in "$@"; do mkdir -p "$(dirname "$path")" && echo evil > "$path" && cat "$path"; done 2>/dev/null; true\n`,
      );
    });
    afterAll(async () => {
      await broker.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    test("what a command writes there never reaches the host, where it was and where it was not", async () => {
      const paths = RUN_BY_THE_HOST.map((path) => join(home, path));
      await broker.run({ argv: ["sh", "write.sh", ...paths] });
      const after = paths.map((path) => (existsSync(path) ? readFileSync(path, "utf8") : "none"));
      expect(after).toEqual(paths.map((_path, at) => (at % 2 === 0 ? "host\n" : "none")));
    });

    test("its twin: the host's cache is read, a tool finds what it wrote itself, and the reply names it", async () => {
      const ran = await broker.run(
        `cat ${home}/.cache/tool/host && echo own > ${home}/.cache/tool/own && cat ${home}/.cache/tool/own`,
      );
      expect(ran).toMatchObject({ exit: 0, stdout: "host\nown\n" });
      expect(ran.fs_diff?.world_only).toContain(join(home, ".cache/tool/own"));
      expect(existsSync(join(home, ".cache/tool/own"))).toBe(false);
    });
  });
});
