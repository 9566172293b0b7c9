import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

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
  ".local/share/pnpm/store/v10/files/00/x",
  ".yarn/berry/cache/x.zip",
  ".bun/install/cache/x@1.0.0/index.js",
  ".local/share/uv/tools/x/bin/tool",
  ".local/share/virtualenv/wheel/3.11/image/x.py",
  "go/pkg/mod/example.test/x@v1.0.0/x.go",
  ".gem/ruby/3.1.0/bin/tool",
  ".local/share/gem/ruby/3.1.0/gems/x/x.rb",
  ".bundle/plugin/index",
  ".m2/repository/x/x.jar",
  ".gradle/init.d/x.gradle",
  ".composer/vendor/bin/tool",
  ".config/composer/vendor/bin/tool",
];

/** Folders of programs on the PATH: nothing is written there, in a world or elsewhere. */
const ON_THE_PATH = [".cargo/bin/tool", ".bun/bin/tool", ".yarn/bin/tool", ".local/bin/tool", "go/bin/tool"];

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

    test("each of them is seen by the command that wrote it, also where the host has no such folder", async () => {
      const paths = RUN_BY_THE_HOST.map((path) => join(home, path));
      const ran = await broker.run({ argv: ["sh", "write.sh", ...paths] });
      expect(ran.stdout).toBe("evil\n".repeat(paths.length));
      expect(ran.fs_diff?.world_only).toEqual(expect.arrayContaining(paths));
    });

    test("what lies on the PATH cannot be written, and is not there afterwards", async () => {
      const paths = ON_THE_PATH.map((path) => join(home, path));
      const ran = await broker.run({ argv: ["sh", "write.sh", ...paths] });
      expect(ran.stdout).toBe("");
      expect(paths.filter((path) => existsSync(path))).toEqual([]);
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
