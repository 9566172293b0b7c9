import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ChangesReply, DiffReply, HeldReply } from "../../schemas/generated/types.ts";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { fill, isolated, isolating } from "../support/held/changes.ts";

describe.each(actors())("substrate diff, apply, discard and undo, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: isolating() } });
    fill(broker, { "sub/f": "one\n" });
  });
  afterAll(() => broker.stop());

  test("a pipe gets the patch and nothing else; what else there is to say stands on stderr", async () => {
    const { span_id: span } = await isolated(broker, "echo two >> sub/f; echo all: > Makefile; mkdir empty");
    const { stdout, stderr, code } = await broker.cli(["diff", span]);
    expect(code).toBe(0);
    expect(stdout).toBe(
      "diff --git a/Makefile b/Makefile\nnew file mode 100644\n--- /dev/null\n+++ b/Makefile\n@@ -0,0 +1,1 @@\n+all:\n" +
        "diff --git a/sub/f b/sub/f\n--- a/sub/f\n+++ b/sub/f\n@@ -1,1 +1,2 @@\n one\n+two\n",
    );
    expect(stderr).toContain("tools run by themselves: Makefile");
    expect(stderr).toContain("1 folder is new");
  });

  test("--stat has a line for each path and the sum, --json the answer itself", async () => {
    const { span_id: span } = await isolated(broker, "echo two >> sub/f; printf 'a\\0' > bin");
    const { stdout } = await broker.cli(["diff", span, "--stat"]);
    expect(stdout).toMatch(/^\+ bin +\| no text$/m);
    expect(stdout).toMatch(/^~ sub\/f +\| 1 \+$/m);
    expect(stdout).toContain("2 paths changed, 1 lines added, 0 removed");
    const json = JSON.parse((await broker.cli(["diff", span, "--json"])).stdout) as DiffReply;
    expect(json.changes.map(({ path }) => path)).toEqual(["bin", "sub/f"]);
    expect(json).toMatchObject({ truncated: false, summary: null });
    expect(json.patch).toContain("GIT binary patch\nliteral 2\n");
  });

  test("held lists what waits, with sizes, age and what tools run; what was applied or discarded is gone from it", async () => {
    const before = JSON.parse((await broker.cli(["held", "--all", "--json"])).stdout) as HeldReply;
    const first = await isolated(broker, "echo 12345 > waits; echo all: > Makefile");
    const second = await isolated(broker, "echo x > later");
    const { stdout } = await broker.cli(["held"], { cwd: join(broker.project, "sub") });
    const [title, newest] = stdout.split("\n");
    expect(title).toBe(broker.project);
    expect(newest).toMatch(new RegExp(`^ {2}${second.span_id} {2}1 path, 2 bytes {2}\\d+ s ago {2}test {2}`));
    expect(stdout).toMatch(new RegExp(`${first.span_id} {2}2 paths, 11 bytes`));
    expect(stdout).toMatch(/^ {4}tools run by themselves: Makefile$/m);
    expect(stdout).toContain("substrate apply SPAN");
    const listed = async (...words: string[]): Promise<HeldReply> =>
      JSON.parse((await broker.cli(["held", "--json", ...words])).stdout) as HeldReply;
    const [entry] = (await listed("--all")).held;
    expect(entry).toMatchObject({
      span_id: second.span_id,
      project: broker.project,
      paths: 1,
      problem: null,
    });
    expect(await broker.cli(["held"], { cwd: broker.folder })).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^No changes wait to be applied in the project of .* --all lists every project\n$/,
      ),
    });
    await broker.cli(["apply", second.span_id]);
    await broker.cli(["discard", first.span_id]);
    expect((await listed()).held.length).toBe(before.held.length);
    await broker.cli(["undo", second.span_id]);
    expect((await listed()).held[0]?.span_id).toBe(second.span_id);
    await broker.cli(["discard", second.span_id]);
  });

  test("'last' is the newest that held changes here, a path from here begins with ./, and undo takes it back", async () => {
    const { held } = JSON.parse((await broker.cli(["held", "--json"])).stdout) as HeldReply;
    for (const { span_id: span } of held) await broker.cli(["discard", span]);
    await isolated(broker, "echo new > sub/g; echo other > sub/h");
    const cwd = join(broker.project, "sub");
    const applied = await broker.cli(["apply", "last", "./g"], { cwd });
    expect(applied).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("1 change applied") as unknown,
    });
    expect(readFileSync(join(cwd, "g"), "utf8")).toBe("new\n");
    expect(existsSync(join(cwd, "h"))).toBe(false);
    const undone = JSON.parse(
      (await broker.cli(["undo", "last", "sub/g", "--json"], { cwd })).stdout,
    ) as ChangesReply;
    expect(undone.done).toEqual(["sub/g"]);
    expect(existsSync(join(cwd, "g"))).toBe(false);
  });

  test("'last' is applied and discarded only where no other command holds changes, which may have come since it was looked at", async () => {
    const first = await isolated(broker, "echo looked > looked");
    const other = await isolated(broker, "echo unseen > unseen");
    for (const verb of ["apply", "discard"]) {
      const { code, stderr } = await broker.cli([verb, "last"]);
      expect([code, stderr]).toEqual([
        125,
        expect.stringMatching(
          new RegExp(`^substrate: Cannot ${verb} 'last': \\d+ commands hold changes .*${other.span_id}`),
        ),
      ]);
    }
    expect(existsSync(join(broker.project, "unseen"))).toBe(false);
    for (const { span_id: span } of [first, other]) await broker.cli(["discard", span]);
  });

  test("a conflict ends with 125 and names the path and why, once; nothing is applied", async () => {
    const { span_id: span } = await isolated(broker, "echo two >> sub/f; echo x > c");
    writeFileSync(join(broker.project, "sub/f"), "mine\n");
    const { code, stderr } = await broker.cli(["apply", span]);
    expect(code).toBe(125);
    expect(stderr).toMatch(/^substrate: Nothing was applied: 'sub\/f': \S/m);
    expect(stderr.match(/sub\/f/g)).toHaveLength(1);
    expect(existsSync(join(broker.project, "c"))).toBe(false);
    expect((await broker.cli(["discard", span])).stdout).toContain("2 changes discarded");
    expect(await broker.cli(["diff", span])).toMatchObject({
      code: expect.any(Number) as unknown,
      stdout: "",
    });
  });

  test("files that cannot be applied for the same reason are listed with it once; what is left is one or several", async () => {
    const pipe =
      "Cannot apply the change: the file is a named pipe, which would block every program that opens it";
    const { span_id: span } = await isolated(broker, "mkfifo a b; echo fine > fine; echo other > other");
    expect((await broker.cli(["apply", span])).stderr).toBe(
      `substrate: Nothing was applied: 'a', 'b': ${pipe}\n  Name the paths to apply, or leave these held and apply all others: --skip-refused (skip_refused: true)\n`,
    );
    expect((await broker.cli(["apply", span, "other"])).stdout).toContain("\n3 are still held: a, b, fine\n");
    expect((await broker.cli(["discard", span, "a", "b"])).stdout).toContain("\n1 is still held: fine\n");
    expect((await broker.cli(["apply", span])).code).toBe(0);
    expect((await broker.cli(["undo", span, "other"])).stdout).toContain("\n1 stays in the project: fine\n");
    const { span_id: more } = await isolated(broker, "mkfifo c d e f; echo x > u; chmod u+s u");
    expect((await broker.cli(["apply", more])).stderr).toBe(
      `substrate: Nothing was applied: 'c', 'd', 'e': ${pipe}; and 2 more\n  Name the paths to apply, or leave these held and apply all others: --skip-refused (skip_refused: true)\n  c, d, e, f: ${pipe}\n  u: Cannot apply the change: the file is setuid\n`,
    );
    for (const id of [span, more]) await broker.cli(["discard", id]);
  });

  test("apply --skip-refused holds a move whole: without the moved file its old name is neither removed nor replaced", async () => {
    const stays = [
      "old",
      "tree/deep/a",
      "tree/b",
      "rotated",
      "log",
      "log.1",
      "file",
      "folder/x",
      "linked",
      "new/x",
    ];
    for (const name of [...stays, "gone"]) broker.write(join(broker.project, name), `content of ${name}\n`);
    const { span_id: span } = await isolated(
      broker,
      `mv old moved; rm gone; mv tree wood; mv rotated rotated.1; echo > rotated; mv log.1 log.2; mv log log.1; mv file file.1; mkdir file; echo x > file/y
       mv folder f2; ln -s nowhere folder; mv linked l2; ln -s l2 linked; mv new n2; mkdir new; echo > new/z; echo > other
       chmod u+s moved wood/deep/a log.2 rotated.1 file.1 f2/x l2 n2/x`,
    );
    const { code, stdout } = await broker.cli(["apply", span, "--skip-refused"]);
    expect(code).toBe(0);
    expect(stdout).toContain("old: Its content is in 'moved', which stays held");
    expect(stdout).toContain("tree: Its content is in 'wood/deep/a', which stays held");
    for (const name of stays)
      expect(readFileSync(join(broker.project, name), "utf8")).toBe(`content of ${name}\n`);
    for (const name of ["other", "wood/b", "new/z"])
      expect(existsSync(join(broker.project, name)), name).toBe(true);
    expect(existsSync(join(broker.project, "gone"))).toBe(false);
    expect((await broker.cli(["discard", span])).code).toBe(0);
    expect(readFileSync(join(broker.project, "old"), "utf8")).toBe("content of old\n");
  });

  test("apply --skip-refused applies all but what is refused and what changed meanwhile, and says why for each", async () => {
    broker.write(join(broker.project, "both"), "before\n");
    const { span_id: span } = await isolated(
      broker,
      "mkfifo pipe; mkdir -p in/side; echo x > in/side/file; mkfifo in/side/pipe; echo x > in/file; echo x > plain; echo held > both",
    );
    broker.write(join(broker.project, "both"), "by a person\n");
    expect((await broker.cli(["apply", span])).code).toBe(125);
    expect(existsSync(join(broker.project, "plain"))).toBe(false);
    const { code, stdout } = await broker.cli(["apply", span, "--skip-refused"]);
    expect(stdout).toContain("\n3 are still held: both, in/side/pipe, pipe\n");
    expect(stdout).toMatch(/^ {2}in\/side\/pipe, pipe: Cannot apply the change: the file is a named pipe/m);
    expect(stdout).toMatch(/^ {2}both: .*changed/m);
    expect(code).toBe(0);
    for (const file of ["plain", "in/file", "in/side/file"])
      expect(existsSync(join(broker.project, file)), file).toBe(true);
    expect(readFileSync(join(broker.project, "both"), "utf8")).toBe("by a person\n");
    const nothing = await broker.cli(["apply", span, "--skip-refused"]);
    expect(nothing.code).toBe(125);
    expect(nothing.stderr).toMatch(/^substrate: Nothing was applied: /);
    expect((await broker.cli(["undo", span])).code).toBe(0);
    expect(existsSync(join(broker.project, "in"))).toBe(false);
    expect((await broker.cli(["undo", span, "--skip-refused"])).stderr).toContain("unknown option");
    const asked = await broker.call("POST", `/v1/undo/${span}`, { skip_refused: true });
    expect(asked).toMatchObject({ status: 400, document: { error: { path: "skip_refused" } } });
    await broker.cli(["discard", span]);
  });

  test("an escape sequence in a name or a text moves no terminal: it is shown", async () => {
    const { span_id: span } = await isolated(broker, "touch \"$(printf 'e\\033[2Jx')\"");
    for (const words of [
      ["diff", span, "--stat"],
      ["apply", span],
      ["trace", span],
      ["undo", span],
    ]) {
      const { stdout, stderr } = await broker.cli(words);
      expect(stdout + stderr).not.toContain("\x1b");
    }
    expect((await broker.cli(["diff", span, "--stat"])).stdout).toContain("e\\x1b[2Jx");
  });

  test("a program and its words are listed as one types them, and as JSON in --json", async () => {
    const argv = ["sh", "-c", "true iso; echo x > 'a b'"];
    const { span_id: span } = await broker.run({ argv });
    const typed = String.raw`sh -c 'true iso; echo x > '\''a b'\'''`;
    expect((await broker.cli(["held"])).stdout).toContain(`  test  ${typed}\n`);
    const json = JSON.parse((await broker.cli(["held", "--json"])).stdout) as HeldReply;
    expect(json.held.find(({ span_id: id }) => id === span)?.cmd).toBe(JSON.stringify(argv));
    expect((await broker.cli(["diff", "last"])).stderr).toContain(`${span}  ${typed}\n`);
  });

  test("exec says in one line what is held, how much, and which words decide; the trace lists what was done", async () => {
    const { stderr } = await broker.cli(["exec", "--", "true iso; echo x > late"]);
    const span = /substrate apply (spn_[0-9a-f-]+)/.exec(stderr)?.[1] ?? "none";
    const [line = "", ...others] = stderr.split("\n").filter((text) => /held/i.test(text));
    expect(others).toEqual([]);
    expect(line).toContain("Changes are held, not yet in the project: 1 written, 0 modified, 0 deleted");
    for (const verb of ["diff", "apply", "discard"]) expect(line).toContain(`'substrate ${verb} ${span}'`);
    expect((await broker.cli(["apply", span])).code).toBe(0);
    const shown = await broker.cli(["trace", span]);
    expect(shown.stdout).toMatch(/child .* apply {2}ended {2}human {2}1 done, 0 left/);
  });

  test.each([
    [["diff"], "missing required argument"],
    [["apply", "spn_none"], "Unknown span 'spn_none'"],
    [["diff", "last", "--stat", "--json"], "Cannot use --stat together with --json"],
  ])("%j ends with 125 and says why", async (words, why) => {
    const { code, stderr } = await broker.cli(words);
    expect(code).toBe(125);
    expect(stderr).toContain(why);
  });
});
