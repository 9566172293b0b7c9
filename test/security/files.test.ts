/** Attacks on file operations (POST /v1/files), each with the twin that must go on working. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encodeFileOrder } from "../../world/backend.ts";
import type { ErrorReply, FilesReply } from "../../schemas/generated/types.ts";
import { installationFor } from "../support/broker/installation.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { needs } from "../support/run/needs.ts";
import { HomeFolder } from "../support/users/folders.ts";
import { actors } from "../support/users/users.ts";

describe.each(actors())("attacks on file operations, as $kind", (actor) => {
  let folder: HomeFolder;
  let broker: TestBroker;
  let out: string;
  beforeAll(async () => {
    folder = new HomeFolder(actor);
    out = join(folder.path, "out");
    folder.write("out/token", "secret\n");
    folder.write("out/open", "open\n");
    broker = await TestBroker.start(actor, {
      folder: folder.path,
      policies: {
        default: `id: default
name: Files
mode: enforce
fs: { deny_read: ["${out}/token"], write: ["$PROJECT/**"] }
`,
      },
    });
    broker.write(join(broker.project, "a"), "a\n");
  });
  afterAll(async () => {
    await broker.stop();
    folder.remove();
  });

  const at = (path: string): string => join(broker.project, path);
  const text = (path: string): string => readFileSync(at(path), "utf8");

  async function ask(
    body: object,
  ): Promise<FilesReply | (ErrorReply["error"] & { readonly status: number })> {
    const answer = await broker.call("POST", "/v1/files", { agent_id: "test", cwd: broker.project, ...body });
    const document = answer.document as FilesReply | ErrorReply;
    return "error" in document ? { ...document.error, status: answer.status } : document;
  }

  test("a denied file is not read through a link; an open one is", async () => {
    await broker.run(`ln -s ${out}/token link-denied; ln -s ${out}/open link-open; ln -s ${out} link-folder`);
    for (const path of ["link-denied", "link-folder/token", "link-folder/../out/token"])
      expect(await ask({ op: "read", path })).toMatchObject({
        code: "policy_denied",
        rule: { list: "fs.deny_read" },
      });
    // A link that only the world has, which the broker cannot follow on the host.
    await broker.run(`ln -s ${out}/token /tmp/inner; ln -s ${out}/open /tmp/inner-open`);
    expect(await ask({ op: "read", path: "/tmp/inner" })).toMatchObject({ code: "not_found" });
    expect(await ask({ op: "read", path: "/tmp/inner-open" })).toMatchObject({ text: "open\n" });
    expect(await ask({ op: "read", path: "link-open" })).toMatchObject({ text: "open\n" });
    const found = await ask({ op: "grep", path: out, pattern: "e" });
    expect(found).toMatchObject({ matches: [{ path: "open" }] });
  });

  test("an edit keeps a file's access list, and gives none to a file without one", async () => {
    needs("setfacl");
    for (const name of ["listed", "strangers", "folder/plain", "folder/listed"])
      broker.write(at(name), "old\n");
    const own = `u:${actor.uid}:rw`;
    // The group's bits of the mode are the list's mask: without the list its group could write.
    for (const words of [
      ["-m", `g::---,${own}`, "listed"],
      ["-m", `g::---,u:4242:rw`, "strangers"],
      ["-d", "-m", "u:4242:rwx", "folder"],
      ["-m", `g::r--,${own}`, "folder/listed"],
    ])
      execFileSync("setfacl", words, { cwd: broker.project });
    const lists = (): readonly string[] =>
      ["listed", "strangers", "folder/plain", "folder/listed"].map((name) =>
        execFileSync("getfacl", ["--omit-header", "--numeric", name], {
          cwd: broker.project,
          encoding: "utf8",
        }),
      );
    const before = lists();
    const edit = (path: string): object => ({ op: "edit", path, old_text: "old", new_text: "new" });
    for (const path of ["listed", "folder/plain", "folder/listed"])
      expect(await ask(edit(path))).toMatchObject({ files: [{ path: at(path) }] });
    const other = await ask(edit("strangers"));
    // An ordinary user's world knows one user and one group.
    if (actor.kind === "root") expect(other).toMatchObject({ files: [{ path: at("strangers") }] });
    else
      expect(other).toMatchObject({ status: 400, message: expect.stringContaining("access list") as string });
    expect(lists()).toEqual(before);
    expect(text("listed")).toBe("new\n");
    expect(text("strangers")).toBe(actor.kind === "root" ? "new\n" : "old\n");
  });

  test("a write through a link stays in what the policy opens", async () => {
    await broker.run(
      `ln -s ${out}/open w-file; ln -s ${out} w-folder; ln -s ${out}/new w-new; ln -s a w-inside`,
    );
    for (const path of ["w-file", "w-folder/open", "w-folder/made/x", "w-new"])
      expect(await ask({ op: "write", path, text: "!" })).toMatchObject({
        code: "policy_denied",
        status: 403,
      });
    await broker.run(`ln -s ${out}/open /tmp/w; ln -s ${out} /tmp/w-folder`);
    for (const path of ["/tmp/w", "/tmp/w-folder/new"]) {
      const refused = await ask({ op: "write", path, text: "!" });
      expect(refused).toMatchObject({ code: "policy_denied", rule: { list: "fs.write" } });
      const span = "span_id" in refused ? (refused.span_id ?? "") : "";
      const tree = await broker.operator("GET", `/v1/trace/${span}`);
      expect(tree.document).toMatchObject({
        children: [{ event_type: "violation", violation: { kind: "write" } }],
      });
    }
    expect(readFileSync(join(out, "open"), "utf8")).toBe("open\n");
    expect([existsSync(join(out, "new")), existsSync(join(out, "made"))]).toEqual([false, false]);
    expect(await ask({ op: "write", path: "w-inside", text: "a\n" })).toMatchObject({
      files: [{ path: at("a") }],
    });
  });

  test("a patch with ../ leaves every file alone; one without is applied", async () => {
    const patch = (name: string): string =>
      `--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+A\n--- /dev/null\n+++ b/${name}\n@@ -0,0 +1 @@\n+x\n`;
    for (const name of ["../escaped", "x/../../escaped", `..${out}/escaped`])
      expect(await ask({ op: "patch", patch: patch(name) })).toMatchObject({ code: "policy_denied" });
    expect(text("a")).toBe("a\n");
    expect([existsSync(at("../escaped")), existsSync(join(out, "escaped"))]).toEqual([false, false]);
    expect(await ask({ op: "patch", patch: patch("x/../patched") })).toMatchObject({ files: [{}, {}] });
    expect([text("a"), text("patched")]).toEqual(["A\n", "x\n"]);
  });

  test("a patch that makes a link, a submodule or a program is refused, and so is a hunk at no line; a plain new file is made", async () => {
    const created = (mode: string): string =>
      `diff --git a/made b/made\nnew file mode ${mode}\n--- /dev/null\n+++ b/made\n@@ -0,0 +1 @@\n+x\n`;
    const moded =
      "diff --git a/m b/m\nold mode 100644\nnew mode 104755\n--- a/m\n+++ b/m\n@@ -1 +1 @@\n-a\n+b\n";
    const nowhere = `--- a/m\n+++ b/m\n@@ -${"9".repeat(30)} +1 @@\n-a\n+b\n`;
    broker.write(at("m"), "a\n");
    for (const patch of [...["120000", "160000", "100755", "104755"].map(created), moded, nowhere])
      expect(await ask({ op: "patch", patch }), patch).toMatchObject({ code: "invalid_request" });
    expect([text("m"), existsSync(at("made"))]).toEqual(["a\n", false]);
    expect(await ask({ op: "patch", patch: created("100644") })).toMatchObject({ files: [{}] });
    expect(text("made")).toBe("x\n");
  });

  test("while a folder is swapped for a link, no write leaves the project", async () => {
    mkdirSync(at("swap/real"), { recursive: true });
    symlinkSync(out, at("swap/link"));
    folder.own();
    const swapper = spawn(
      "sh",
      ["-c", "while :; do mv -T real at; mv -T at real; mv -T link at; mv -T at link; done"],
      { cwd: at("swap"), stdio: "ignore" },
    );
    let written = 0;
    try {
      for (let turn = 0; turn < 60; turn += 1) {
        const reply = await ask({ op: "write", path: `swap/at/n${turn}`, text: "!" });
        if ("files" in reply) written += 1;
        await ask({ op: "write", path: "swap/at/open", text: "!" });
      }
    } finally {
      swapper.kill("SIGKILL");
      await once(swapper, "exit");
    }
    expect(readFileSync(join(out, "open"), "utf8")).toBe("open\n");
    for (let turn = 0; turn < 60; turn += 1) expect(existsSync(join(out, `n${turn}`))).toBe(false);
    // The folder exists in half of the time, and is made where it is missing.
    expect(written).toBeGreaterThan(0);
  }, 60_000);

  test("an edit of a file that is replaced meanwhile loses neither content", async () => {
    const big = "x".repeat(8 * 1024 * 1024);
    let conflicts = 0;
    for (let turn = 0; turn < 30 && (turn < 8 || conflicts === 0); turn += 1) {
      broker.write(at("race"), `old ${big}`);
      broker.write(at("race.new"), `new old`);
      const edit = ask({ op: "edit", path: "race", old_text: "old", new_text: "edited" });
      await sleep(2 * (turn % 15));
      renameSync(at("race.new"), at("race"));
      const reply = await edit;
      if ("code" in reply && reply.code === "apply_conflict") conflicts += 1;
      // The edit may have come before, which the replacement then overwrote, or after; never over it.
      expect(["new old", "new edited"]).toContain(text("race"));
    }
    expect(conflicts).toBeGreaterThan(0);
    broker.write(at("race"), "old");
    expect(await ask({ op: "edit", path: "race", old_text: "old", new_text: "e" })).toMatchObject({
      files: [{}],
    });
  }, 60_000);

  test("huge files end with a sentence; their beginning can be read", async () => {
    broker.write(at("huge"), "");
    truncateSync(at("huge"), 50 * 1024 ** 3);
    broker.write(at("long"), "line\n".repeat(4_000_000));
    expect(await ask({ op: "read", path: "huge" })).toMatchObject({ code: "invalid_request" });
    expect(await ask({ op: "read", path: "huge", encoding: "base64", max_bytes: 3 })).toMatchObject({
      data_b64: "AAAA",
      truncated: true,
    });
    expect(await ask({ op: "edit", path: "long", old_text: "line", new_text: "" })).toMatchObject({
      status: 413,
    });
    expect(await ask({ op: "read", path: "long", lines: 1 })).toMatchObject({
      text: "line\n",
      truncated: true,
    });
    rmSync(at("huge"));
    rmSync(at("long"));
  });

  test("names with NUL are refused; with a line end, quotes and dashes they are names", async () => {
    expect(await ask({ op: "read", path: "a\0b" })).toMatchObject({ status: 400, path: "path" });
    for (const path of ["two\nlines", "-rf", "quote'\"$(id)", "\u00e4 \u202e"]) {
      await ask({ op: "write", path: `odd/${path}`, text: "odd" });
      expect(readFileSync(at(`odd/${path}`), "utf8")).toBe("odd");
    }
    expect(await ask({ op: "glob", path: "odd", pattern: "*\n*" })).toMatchObject({ paths: ["two\nlines"] });
  });

  test("pipes, devices and sockets hang nobody, as target and in a search", async () => {
    await broker.run(
      "mkdir -p special; mkfifo special/pipe; ln -s /dev/zero special/zero; echo x >special/file",
    );
    for (const path of ["special/pipe", "special/zero", "/dev/zero", "/dev/tty"])
      for (const body of [
        { op: "read", path },
        { op: "write", path, text: "x" },
        { op: "edit", path, old_text: "x", new_text: "y" },
      ]) {
        const began = performance.now();
        expect(await ask(body), JSON.stringify(body)).toHaveProperty("code");
        expect(performance.now() - began).toBeLessThan(5000);
      }
    expect(await ask({ op: "grep", path: "special", pattern: "x" })).toMatchObject({
      matches: [{ path: "file" }],
    });
  }, 60_000);

  test("what git runs by itself is not written, by name, by link or by patch", async () => {
    await broker.run("git init -q repo && ln -s repo/.git/hooks h && ln -s repo/.git g");
    const config = text("repo/.git/config");
    const bodies = ["repo/.git/hooks/pre-commit", "h/pre-commit", "g/config", "repo/.git/config"].flatMap(
      (path) => [
        { op: "write", path, text: "[core]\n\tfsmonitor = id\n" },
        {
          op: "patch",
          patch: `*** Begin Patch\n*** Add File: ${path}x\n+x\n*** Delete File: ${path}\n*** End Patch`,
        },
      ],
    );
    for (const body of bodies) expect(await ask(body), JSON.stringify(body)).toHaveProperty("code");
    expect(text("repo/.git/config")).toBe(config);
    expect(existsSync(at("repo/.git/hooks/pre-commit"))).toBe(false);
    expect(await ask({ op: "write", path: "repo/.git/info/exclude", text: "x\n" })).toHaveProperty("files");

    // Links that only the world has lead past the lists; its mounts and git's guard hold.
    await broker.run(`ln -s ${at("repo/.git")} /tmp/git; ln -s ${broker.project} /tmp/project`);
    for (const path of ["/tmp/git/config", "/tmp/git/hooks/pre-commit", "/tmp/project/repo/.git/config"])
      expect(await ask({ op: "write", path, text: "[core]\n\tfsmonitor = id\n" }), path).toHaveProperty(
        "code",
      );
    expect(text("repo/.git/config")).toBe(config);
    expect(existsSync(at("repo/.git/hooks/pre-commit"))).toBe(false);
    for (const [name, said] of [
      ["HEAD", "ref: refs/heads/main\n"],
      ["objects/x", ""],
      ["refs/x", ""],
      ["config", "[core]\n\tfsmonitor = id\n"],
      ["hooks/pre-commit", "#!/bin/sh\n"],
    ])
      await ask({ op: "write", path: `/tmp/project/nested/.git/${name}`, text: said });
    const inside = (name: string): string =>
      existsSync(at(`nested/.git/${name}`)) ? text(`nested/.git/${name}`) : "";
    expect(inside("config")).not.toContain("fsmonitor");
    expect(existsSync(at("nested/.git/hooks/pre-commit"))).toBe(false);
    expect(await ask({ op: "write", path: "/tmp/project/plain", text: "p" })).toHaveProperty("files");
    expect(text("plain")).toBe("p");
  });

  test("a command that starts the program has the rights of a command", async () => {
    const program = join((await installationFor(actor)).root, ".build/substrate-init");
    const order = (body: Parameters<typeof encodeFileOrder>[0]): string =>
      encodeFileOrder(body).toString("base64");
    const run = async (stdin_b64: string): Promise<string> =>
      (await broker.run({ argv: [program, "file"], stdin_b64 })).stdout;
    const read = { op: "read", first: 1, limit: 9, bytes: 99 } as const;
    expect(await run(order({ ...read, path: `${out}/token` }))).not.toContain("secret");
    expect(await run(order({ ...read, path: `${out}/open` }))).toContain("open");
    const content = Buffer.from("!");
    await run(order({ op: "change", changes: [{ kind: "write", path: `${out}/open`, content }] }));
    expect(readFileSync(join(out, "open"), "utf8")).toBe("open\n");
    writeFileSync(at("garbage"), Buffer.alloc(999, 7));
    folder.own();
    expect((await broker.run(`${program} file <garbage`)).exit).toBe(1);
  });
});
