/**
 * A rule holds for every program that a command starts, however it is started: the exec gate. Each denied pattern of the
 * shipped policies is tried in each way on a program that leaves a file behind; the file says whether it started.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { loadPolicy } from "../../broker/policy/index.ts";
import type { PolicyDocument } from "../../schemas/generated/types.ts";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { whyNotHere } from "../support/run/needs.ts";
import { recordSkip } from "../support/run/skips.ts";

const POLICIES = join(import.meta.dirname, "../../policies");
const NAMES = readdirSync(POLICIES)
  .filter((file) => file.endsWith(".yaml"))
  .map((file) => file.slice(0, -".yaml".length))
  .sort();

/** Each leaves `ran` in the folder it is started in; no two have the same bytes. */
const PROGRAM = (name: string): string => `
#include <fcntl.h>
volatile const char who[] = "${name}";
int main(void) { return open("ran", O_CREAT | O_WRONLY, 0644) < 0; }
`;

const LOADER = process.arch === "arm64" ? "/lib/ld-linux-aarch64.so.1" : "/lib64/ld-linux-x86-64.so.2";

/** Run by sh in a folder of its own; `"$@"` is the program's name and its words, `$file` its path. */
const WAYS: Readonly<Record<string, string>> = {
  direct: '"$@"',
  "absolute path": 'shift; "$file" "$@"',
  "sh -c": `sh -c '"$@"' sh "$@"`,
  python: `/usr/bin/python3 -c 'import os, sys; os.execvp(sys.argv[1], sys.argv[1:])' "$@"`,
  "python's system": `/usr/bin/python3 -c 'import shlex, os, sys; os.system(shlex.join(sys.argv[1:]))' "$@"`,
  "a process that is not dumpable": `/usr/bin/python3 -c 'import ctypes, os, sys; ctypes.CDLL(None).prctl(4, 0); os.execvp(sys.argv[1], sys.argv[1:])' "$@"`,
  perl: `perl -e 'exec { $ARGV[0] } @ARGV' "$@"`,
  node: `node -e 'require("child_process").spawnSync(process.argv[1], process.argv.slice(2))' "$@"`,
  make: `printf 'a:\\n\\t@%s\\n' "$(printf "'%s' " "$@")" > Makefile; make -s`,
  xargs: `name=$1; shift; printf '%s\\0' "$@" | xargs -0 "$name"`,
  "find -exec": `touch f; find f -exec "$@" ';'`,
  "env -i": 'shift; env -i "$file" "$@"',
  "a copy": 'shift; cp "$file" c; ./c "$@"',
  "a copy elsewhere": 'shift; cp "$file" /tmp/c; /tmp/c "$@"',
  "a symlink": 'shift; ln -s "$file" l; ./l "$@"',
  "a hard link": 'shift; ln "$file" h; ./h "$@"',
  "the dynamic loader": `shift; ${LOADER} "$file" "$@"`,
  "a file in memory": `/usr/bin/python3 -c '
import os, sys
fd = os.memfd_create("x")
os.write(fd, open(sys.argv[1], "rb").read())
os.execve(fd, sys.argv[2:], {})' "$file" "$@"`,
  "a name of its own": `file=$file bash -c 'shift; exec -a harmless "$file" "$@"' bash "$@"`,
  "/proc/self/root": 'shift; "/proc/self/root$file" "$@"',
  "/proc/self/fd": 'shift; exec 7< "$file"; /proc/self/fd/7 "$@"',
};

const HERE = Object.fromEntries(
  Object.entries(WAYS).filter(([way, cmd]) => {
    const why = whyNotHere(cmd);
    if (why !== undefined) recordSkip({ what: `starts of denied programs by ${way}`, why });
    return why === undefined;
  }),
);

/** A file in memory has no name that a rule could be about: none starts. */
const WITHOUT_TWIN = new Set(["a file in memory"]);

/** What is denied: a program and words, as `pattern` would have them. Pipes and builtins start no program by that rule. */
function denied(policy: string, home: string): readonly (readonly string[])[] {
  return (documentOf(policy).commands?.denied ?? [])
    .map((rule) => (typeof rule === "string" ? rule : rule.pattern))
    .filter((pattern) => !pattern.includes("|") && !pattern.startsWith("eval "))
    .map((pattern) => pattern.split(" ").map((word) => word.replaceAll("~", home).replaceAll("*", "x")));
}

/**
 * As it is shipped, and so that it can be seen what starts: in enforce mode, in a project that may be written, also on a host
 * without nft, where the network is degraded and the gate is not.
 */
function enforced(policy: string): string {
  const document = documentOf(policy);
  const fs = { ...document.fs, write: ["$PROJECT/**"] };
  const require = document.world?.require?.filter((name) => name !== "net") ?? [];
  return stringify({
    ...document,
    id: "default",
    mode: "enforce",
    fs,
    world: { ...document.world, require },
  });
}

/** With all that it starts from. */
function documentOf(policy: string): PolicyDocument {
  const loaded = loadPolicy(join(POLICIES, `${policy}.yaml`), POLICIES);
  if ("ok" in loaded) return loaded.ok.document;
  throw new Error(`The policy '${policy}' does not load: ${loaded.problems[0]?.text}`);
}

describe.each(actors())("as $kind", (actor) => {
  // The gate is the same for every policy; that each policy's list stands behind it needs one user's run.
  const names = actor.kind === "root" ? NAMES.filter((name) => ["agent", "strict"].includes(name)) : NAMES;
  describe.each(names)("under %s", (policy) => {
    let broker: TestBroker;
    const earlier = new Set(names.slice(0, names.indexOf(policy)).flatMap(keysOf));
    const own = denied(policy, actor.home).filter((each) => !earlier.has(each.join(" ")));
    // What another policy denies as well was tried there.
    const patterns = own.length > 0 ? own : denied(policy, actor.home).slice(0, 1);
    function keysOf(name: string): readonly string[] {
      return denied(name, actor.home).map((each) => each.join(" "));
    }
    const at = (...parts: readonly string[]): string => join(broker.project, ...parts);

    beforeAll(async () => {
      broker = await TestBroker.start(actor, { policies: { default: enforced(policy) } });
      const names = new Set(["harmless", ...patterns.map(([name = ""]) => name)]);
      for (const name of names) {
        broker.write(at("sources", `${name}.c`), PROGRAM(name));
        broker.write(at("bin", name), "");
        const made = spawnSync("cc", ["-o", at("bin", name), at("sources", `${name}.c`)]);
        if (made.status !== 0) throw new Error(`'${name}' does not compile: ${made.stderr.toString()}`);
        chmodSync(at("bin", name), 0o755);
      }
      const ways = Object.entries(HERE);
      for (const [index, [, way]] of ways.entries()) broker.write(at("ways", `${index}.sh`), way);
      // Scripts, so that the command line says nothing of what they start.
      const lines = ways.map(
        (_way, index) => `(mkdir -p "$work/${index}"; cd "$work/${index}"; . ../../ways/${index}.sh)`,
      );
      broker.write(at("all.sh"), `${lines.join("\n")}\ntrue\n`);
      broker.write(
        at("one.sh"),
        `work=$1; shift; file=$PROJECT/bin/$1; export file work; . "$PROJECT/all.sh"\n`,
      );
      broker.write(at("words.sh"), words(patterns));
    });
    afterAll(() => broker.stop());

    /** `run PLACE WORDS…` lines: the words are quoted, and stand in no command line. */
    function words(all: readonly (readonly string[])[]): string {
      const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;
      return all
        .map((each, index) => `sh "$PROJECT/one.sh" "$PROJECT/w${index}" ${each.map(quoted).join(" ")}`)
        .join("\n");
    }

    async function run(): Promise<void> {
      const env = { PATH: `${at("bin")}:/usr/bin:/bin`, PROJECT: broker.project };
      await broker.run({ argv: ["sh", "words.sh"], env });
    }

    function started(index: number): readonly string[] {
      return Object.keys(HERE).filter((_way, way) => existsSync(at(`w${index}`, String(way), "ran")));
    }

    test("no denied program starts, in no way", async () => {
      await run();
      const wrong = patterns.flatMap((each, index) =>
        started(index).map((way) => `${each.join(" ")}: ${way}`),
      );
      expect(wrong).toEqual([]);
      expect(broker.spans().filter(({ event_type }) => event_type === "violation").length).toBeGreaterThan(0);
    });

    test("what no rule concerns starts in each of these ways, with the same words", async () => {
      const [first = []] = patterns;
      broker.write(at("words.sh"), words([["harmless", ...first.slice(1)]]));
      spawnSync("rm", ["-rf", at("w0")]);
      await run();
      expect(started(0)).toEqual(Object.keys(HERE).filter((way) => !WITHOUT_TWIN.has(way)));
    });
  });
});
