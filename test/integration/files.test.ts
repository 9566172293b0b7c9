/** POST /v1/files: an agent's own file tools, carried out in its world. */
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ErrorReply, FilesReply } from "../../schemas/generated/types.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { actors } from "../support/users/users.ts";

const POLICY = `id: default
name: Files
mode: enforce
fs:
  deny_read: ["$PROJECT/secret"]
  deny_write: ["$PROJECT/locked"]
  scratch: ["/opt/**"]
commands:
  allowed: ["cat *"]
  denied: ["substrate-init *", "file"]
  ask: ["write *", "read *"]
  isolated: ["edit *"]
`;

const WATCHING = POLICY.replace("id: default", "id: watching").replace("enforce", "observe");
const NARROW = `id: narrow
name: Without the installation
mode: enforce
fs: { read: ["/usr/**", "/etc/**", "$PROJECT/**"] }
`;

const ASKING = POLICY.replace("id: default", "id: asking").replace(
  "commands:",
  "approval: { require: true }\ncommands:",
);

describe.each(actors())("file operations, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: POLICY, watching: WATCHING, narrow: NARROW, asking: ASKING },
      config:
        "agents:\n  watched: { policy: watching }\n  narrow: { policy: narrow }\n  asked: { policy: asking }\n",
    });
  });
  afterAll(() => broker.stop());

  const at = (path: string): string => join(broker.project, path);
  const text = (path: string): string => readFileSync(at(path), "utf8");

  async function ask(body: object): Promise<{ readonly status: number; readonly document: unknown }> {
    return await broker.operator("POST", "/v1/files", { agent_id: "test", cwd: broker.project, ...body });
  }

  async function done(body: object): Promise<FilesReply> {
    const answer = await ask(body);
    expect(answer.status, JSON.stringify(answer.document)).toBe(200);
    return answer.document as FilesReply;
  }

  async function refused(body: object): Promise<{ readonly status: number } & ErrorReply["error"]> {
    const { status, document } = await ask(body);
    expect(status, JSON.stringify(document)).not.toBe(200);
    return { status, ...(document as ErrorReply).error };
  }

  test("rules about commands say nothing about a file operation", async () => {
    expect((await broker.refused({ cmd: "ls" })).code).toBe("policy_denied");
    const { files } = await done({ op: "write", path: "new/folder/a", text: "one\n" });
    expect(files).toEqual([{ path: at("new/folder/a"), kind: "created", size: 4 }]);
    expect(text("new/folder/a")).toBe("one\n");
    expect(statSync(at("new/folder/a")).uid).toBe(actor.uid);
  });

  test("where a person answers for every command, a change of a file asks too, for its content", async () => {
    const change = { agent_id: "asked", op: "write", path: "Makefile", text: "all:\n\ttrue\n" };
    const asked = await refused(change);
    expect(asked).toMatchObject({ status: 403, code: "approval_required" });
    expect(asked.rule).toMatchObject({ list: "approval.require", fragment: "write Makefile" });
    expect(existsSync(at("Makefile"))).toBe(false);
    expect((await done({ agent_id: "asked", op: "glob", pattern: "*" })).paths).not.toContain("Makefile");
    await broker.operator("POST", `/v1/approvals/${asked.approval_id ?? ""}`, { decision: "session" });
    expect(await refused({ ...change, text: "all:\n\tfalse\n" })).toMatchObject({
      code: "approval_required",
    });
    expect(await refused({ ...change, path: "makefile" })).toMatchObject({ code: "approval_required" });
    expect((await done(change)).files).toMatchObject([{ kind: "created" }]);
  });

  test("a span records the operation and its changes, and is not replayed", async () => {
    const { span_id } = await done({ op: "write", path: "spanned", text: "s" });
    const span = await broker.span(span_id);
    expect(span).toMatchObject({
      event_type: "command_complete",
      cmd: '["write","spanned"]',
      exit: 0,
      replayable: false,
      fs_diff: { writes: ["spanned"] },
      decision: { verdict: "allow" },
    });
    const replay = await broker.operator("POST", `/v1/replay/${span_id}`, { stdin_b64: "" });
    expect(replay).toMatchObject({ status: 409, document: { error: { code: "not_replayable" } } });
  });

  test("read gives lines, a range, and the reason for what it does not give", async () => {
    broker.write(at("lines"), Array.from({ length: 3000 }, (_, line) => `line ${line + 1}\n`).join(""));
    broker.write(at("binary"), "\u007fELF\0\u0001");
    const first = await done({ op: "read", path: "lines" });
    expect(first).toMatchObject({ line: 1, total_lines: 3000, truncated: true, path: at("lines") });
    expect(first.text?.split("\n").length).toBe(2001);
    expect(await done({ op: "read", path: "lines", line: 2999, lines: 10 })).toMatchObject({
      text: "line 2999\nline 3000\n",
      truncated: false,
    });
    expect(await done({ op: "read", path: "lines", max_bytes: 8 })).toMatchObject({ text: "line 1\nl" });
    expect(await refused({ op: "read", path: "binary" })).toMatchObject({ code: "invalid_request" });
    const raw = await done({ op: "read", path: "binary", encoding: "base64" });
    expect(Buffer.from(raw.data_b64 ?? "", "base64").toString()).toBe("\u007fELF\0\u0001");
    expect(await refused({ op: "read", path: "missing" })).toMatchObject({ status: 404, code: "not_found" });
    expect(await refused({ op: "read", path: "." })).toMatchObject({ code: "invalid_request" });
  });

  test("a write is atomic, keeps the mode, and leaves nothing beside it", async () => {
    broker.write(at("tool/run"), "old");
    chmodSync(at("tool/run"), 0o750);
    const before = statSync(at("tool/run"));
    await done({ op: "write", path: "tool/run", data_b64: Buffer.from([0, 1, 255]).toString("base64") });
    expect([...readFileSync(at("tool/run"))]).toEqual([0, 1, 255]);
    const after = statSync(at("tool/run"));
    expect(after.mode).toBe(before.mode);
    expect(after.ino, "another file took its place").not.toBe(before.ino);
    expect(readdirSync(at("tool"))).toEqual(["run"]);
  });

  test("an edit replaces exactly one match, or all of them", async () => {
    broker.write(at("edit"), "a\nb\na\n");
    const many = await refused({ op: "edit", path: "edit", old_text: "a", new_text: "x" });
    expect(many).toMatchObject({ status: 400, message: expect.stringContaining("2 times") as string });
    const none = await refused({ op: "edit", path: "edit", old_text: "a ", new_text: "x" });
    expect(none.message).toContain("does not stand");
    expect(text("edit")).toBe("a\nb\na\n");
    await done({ op: "edit", path: "edit", old_text: "b\na", new_text: "" });
    const all = await done({ op: "edit", path: "edit", old_text: "\n", new_text: "\r\n", replace_all: true });
    expect(all.files?.[0]).toMatchObject({ kind: "changed", replaced: 2 });
    expect(text("edit")).toBe("a\r\n\r\n");
  });

  test("a patch changes all of its files or none, in both forms", async () => {
    broker.write(at("one"), "a\nb\nc\n");
    broker.write(at("two"), "x\ny");
    broker.write(at("three"), "gone\n");
    const part = (name: string, lines: string): string => `--- a/${name}\n+++ b/${name}\n${lines}`;
    const good = part("one", "@@ -9,3 +9,3 @@\n a\n-b\n+B\n c\n");
    const bad = part("two", "@@ -1,2 +1,2 @@\n x\n-z\n+Z\n");
    const add = "--- /dev/null\n+++ b/made/four\n@@ -0,0 +1 @@\n+four\n";
    const nothing = await refused({ op: "patch", patch: `${good}${add}${bad}` });
    expect(nothing.message).toContain("does not stand");
    expect(text("one")).toBe("a\nb\nc\n");
    expect(existsSync(at("made"))).toBe(false);
    expect(readdirSync(broker.project).filter((name) => name.startsWith(".substrate-"))).toEqual([]);

    const last = part("two", "@@ -1,2 +1,2 @@\n x\n-y\n\\ No newline at end of file\n+Y\n");
    const gone = "--- a/three\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";
    const { files } = await done({ op: "patch", patch: `${good}${last}${add}${gone}` });
    expect(files?.map(({ kind }) => kind)).toEqual(["changed", "changed", "created", "removed"]);
    expect([text("one"), text("two"), text("made/four")]).toEqual(["a\nB\nc\n", "x\nY\n", "four\n"]);
    expect(existsSync(at("three"))).toBe(false);

    broker.write(at("five"), "class A:\n  x = 1\nclass B:\n  x = 1\n");
    const begun = `*** Begin Patch
*** Update File: five
@@ class B:
-  x = 1
+  x = 2
*** Add File: six
+six
*** Delete File: two
*** End Patch`;
    await done({ op: "patch", patch: begun });
    expect(text("five")).toBe("class A:\n  x = 1\nclass B:\n  x = 2\n");
    expect([text("six"), existsSync(at("two"))]).toEqual(["six\n", false]);
    const unclear = begun
      .replace("@@ class B:\n", "")
      .replace("x = 1", "x = 1")
      .replace(/\*\*\* Add[^]*two\n/, "");
    broker.write(at("five"), "  x = 1\n  x = 1\n");
    expect((await refused({ op: "patch", patch: unclear })).message).toContain("2 times");
    expect(await refused({ op: "patch", patch: "hello" })).toMatchObject({ code: "invalid_request" });

    broker.write(at("seven"), "class A:\n  def f():\n    one\nclass B:\n  def f():\n    one\n");
    const led = "@@ class B:\n@@   def f():\n-    one\n+    two\n";
    await done({ op: "patch", patch: `*** Begin Patch\n*** Update File: seven\n${led}*** End Patch` });
    expect(text("seven")).toBe("class A:\n  def f():\n    one\nclass B:\n  def f():\n    two\n");
  });

  test("a patch of what a diff does not hold is refused, and changes nothing", async () => {
    broker.write(at("full"), "content\n");
    broker.write(at("empty"), "");
    broker.write(at("unended"), "a");
    const git = (name: string, rest: string): string => `diff --git a/${name} b/${name}\n${rest}`;
    const removed = (name: string): string => git(name, "deleted file mode 100644\nindex e69de29..0000000\n");
    const binary = "new file mode 100644\nindex 0000000..1111111\n";
    const literal = `${binary}GIT binary patch\nliteral 2\nJcmZQz00aO5\n\nliteral 0\nHcmV?d00001\n\n`;
    const differ = `${binary}Binary files /dev/null and b/x.png differ\n`;
    const behind = "--- a/unended\n+++ b/unended\n@@ -1,0 +2 @@\n+b\n";
    for (const patch of [git("x.png", literal), git("x.png", differ), removed("full"), behind])
      expect((await ask({ op: "patch", patch })).status, patch).not.toBe(200);
    expect([existsSync(at("x.png")), text("full"), text("unended")]).toEqual([false, "content\n", "a"]);
    await done({ op: "patch", patch: removed("empty") });
    expect(existsSync(at("empty"))).toBe(false);
  });

  test("an edit counts places that overlap, and all of them are replaced one after the other", async () => {
    broker.write(at("braces"), "}\n}\n}\n");
    const edit = { op: "edit", path: "braces", old_text: "}\n}\n", new_text: "]\n" };
    expect((await refused(edit)).message).toContain("2 times");
    await done({ ...edit, replace_all: true });
    expect(text("braces")).toBe("]\n}\n");
  });

  test("a new file has the caller's umask", async () => {
    await done({ op: "write", path: "masked", text: "m", umask: "0077" });
    await done({ op: "write", path: "usual", text: "m" });
    expect(["masked", "usual"].map((path) => statSync(at(path)).mode & 0o777)).toEqual([0o600, 0o644]);
  });

  test("a search understands models' expressions, and refuses what it would take for something else", async () => {
    broker.write(at("found/a"), "version 1.2.3\nfoo bar.baz\n");
    const grep = { op: "grep", path: "found" };
    for (const pattern of [String.raw`[\d.]+\.3`, String.raw`foo[\w .]+baz`, String.raw`v\x65rsion`])
      expect((await done({ ...grep, pattern })).matches, pattern).toHaveLength(1);
    const unknown = await refused({ ...grep, pattern: String.raw`\Aversion` });
    expect(unknown).toMatchObject({ code: "invalid_request", path: "pattern" });
    for (const pattern of ["/etc/*", "../*", "found/../*"])
      expect((await refused({ op: "glob", pattern })).message).toContain("set path");
    broker.write(at("found/long"), `${"x".repeat(600)}\n`);
    const [long] = (await done({ ...grep, pattern: "xxx" })).matches ?? [];
    expect(long?.text).toBe(`${"x".repeat(500)} [cut]`);
  });

  test.skipIf(actor.uid === 0)("a read that the system refuses is not told as a write", async () => {
    expect((await refused({ op: "read", path: "/root/a" })).message).not.toContain("fs.write");
  });

  test("glob and grep leave out .git and what .gitignore names", async () => {
    for (const name of [".git/HEAD", "src/a.ts", "src/deep/b.ts", "src/c.js", "build/d.ts", "src/keep.log"])
      broker.write(at(`search/${name}`), `needle in ${name}\n`);
    broker.write(at("search/.gitignore"), "/build/\n*.log\n!keep.log\n");
    broker.write(at("search/src/.gitignore"), "deep\n");
    broker.write(at("search/src/z.log"), "needle\n");
    broker.write(at("search/src/bin"), "needle\0\n");
    const found = async (body: object): Promise<unknown> => {
      const { paths, matches } = await done({ path: "search", ...body });
      return paths ?? matches?.map(({ path, line, text: said }) => `${path}:${line}:${said}`);
    };
    expect(await found({ op: "glob", pattern: "**/*.{ts,js}" })).toEqual(["src/a.ts", "src/c.js"]);
    expect(await found({ op: "glob", pattern: "*.ts", all: true })).toEqual([
      "build/d.ts",
      "src/a.ts",
      "src/deep/b.ts",
    ]);
    expect(await found({ op: "glob", pattern: "*.ts", path: "search/src" })).toEqual(["a.ts"]);
    expect(await found({ op: "grep", pattern: "^needle in \\w+/[a-k]" })).toEqual([
      "src/a.ts:1:needle in src/a.ts",
      "src/c.js:1:needle in src/c.js",
      "src/keep.log:1:needle in src/keep.log",
    ]);
    expect(await found({ op: "grep", pattern: "NEEDLE", ignore_case: true, glob: "*.js" })).toEqual([
      "src/c.js:1:needle in src/c.js",
    ]);
    expect(await found({ op: "grep", pattern: "a.ts", fixed: true, names_only: true })).toEqual(["src/a.ts"]);
    const cut = await done({ op: "glob", pattern: "*", path: "search", all: true, limit: 2 });
    expect(cut).toMatchObject({ truncated: true });
    expect(await refused({ op: "grep", pattern: "(" })).toMatchObject({
      code: "invalid_request",
      path: "pattern",
    });
  });

  test.each(["test", "watched"])(
    "a denied file names its rule and leaves a violation, for %s",
    async (agent) => {
      broker.write(at("secret"), "s\n");
      broker.write(at("locked/a"), "l\n");
      const read = await refused({ agent_id: agent, op: "read", path: "secret" });
      expect(read).toMatchObject({
        status: 403,
        code: "policy_denied",
        exit: 126,
        rule: { list: "fs.deny_read", pattern: "$PROJECT/secret", fragment: "read secret" },
      });
      expect(await broker.span(read.span_id ?? "")).toMatchObject({
        event_type: "violation",
        cmd: '["read","secret"]',
      });
      const write = await refused({ agent_id: agent, op: "write", path: "locked/a", text: "" });
      expect(write).toMatchObject({ status: 403, rule: { list: "fs.deny_write" } });
      expect(text("locked/a")).toBe("l\n");
    },
  );

  test("the world's own folders and its scratch are writable, and stay in the world", async () => {
    const path = `/tmp/in-world-${process.pid}`;
    await done({ op: "write", path, text: "inside\n" });
    expect(existsSync(path)).toBe(false);
    expect((await broker.run({ argv: ["cat", path] })).stdout).toBe("inside\n");
    const scratch = await done({ op: "write", path: "/opt/in-world", text: "s" });
    expect(scratch.notices).toMatchObject([{ kind: "world_only" }]);
    expect(existsSync("/opt/in-world")).toBe(false);
  });

  test("a policy that shows nothing of the installation can still use files", async () => {
    await done({ agent_id: "narrow", op: "write", path: "narrow", text: "n" });
    expect(text("narrow")).toBe("n");
  });

  test("a link stays, and its target is written", async () => {
    broker.write(at("target"), "old");
    symlinkSync("target", at("link"));
    const { files } = await done({ op: "write", path: "link", text: "new" });
    expect(files?.[0]?.path).toBe(at("target"));
    expect([lstatSync(at("link")).isSymbolicLink(), text("target")]).toEqual([true, "new"]);
  });

  test("a file of a folder that a group shares keeps its group", async ({ skip }) => {
    if (process.getuid?.() !== 0) skip("only root can give a folder to another group");
    broker.write(at("shared/a"), "old");
    for (const path of [at("shared"), at("shared/a")]) chownSync(path, actor.uid, 4242);
    chmodSync(at("shared"), 0o2770);
    chmodSync(at("shared/a"), 0o660);
    const edit = { op: "edit", path: "shared/a", old_text: "old", new_text: "new" };
    // An ordinary user's world cannot tell that group from any other.
    if (actor.uid === 0) await done(edit);
    else
      expect(await refused(edit)).toMatchObject({
        message: expect.stringContaining("EPERM") as string,
      });
    expect(text("shared/a")).toBe(actor.uid === 0 ? "new" : "old");
    expect(statSync(at("shared/a"))).toMatchObject({ uid: actor.uid, gid: 4242, mode: 0o100660 });
  });

  test("a field of another operation is refused", async () => {
    for (const body of [
      { op: "read", path: "a", text: "x" },
      { op: "write", path: "a" },
      { op: "write", path: "a", text: "", data_b64: "" },
      { op: "edit", path: "a", old_text: "x" },
      { op: "glob", pattern: "{a,b}".repeat(7) },
    ])
      expect(await refused(body)).toMatchObject({ status: 400, code: "invalid_request" });
  });
});
