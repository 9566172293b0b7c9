/** POST /v1/check about files: what it says of a path is what a command meets there in a world. */
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CheckReply } from "../../schemas/generated/types.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { HomeFolder } from "../support/users/folders.ts";
import { actors } from "../support/users/users.ts";

type Case = {
  readonly what: string;
  readonly access: "read" | "search" | "write";
  /** Below the project; `OUT` and `HOME` stand for a folder outside and for SUBSTRATE_HOME. */
  readonly path: string;
  /** The list that denies; null: allowed. */
  readonly list: string | null;
  /** Why no command can be compared. */
  readonly alone?: string;
};

const CASES: readonly Case[] = [
  { what: "a file of the project", access: "read", path: "src/a", list: null },
  { what: "a file outside", access: "read", path: "OUT/open", list: null },
  { what: "a hidden file", access: "read", path: "secret", list: "fs.deny_read" },
  { what: "a hidden name that is not there", access: "read", path: "deep/er/.env", list: "fs.deny_read" },
  {
    what: "a hidden file by another spelling",
    access: "read",
    path: "./src/..//secret",
    list: "fs.deny_read",
  },
  { what: "a link to a hidden file", access: "read", path: "to-secret", list: "fs.deny_read" },
  { what: "a name in a hidden folder", access: "read", path: "OUT/keys/id", list: "fs.deny_read" },
  {
    what: "the same through a link to the folder above",
    access: "read",
    path: "to-out/keys/id",
    list: "fs.deny_read",
  },
  { what: "what a hidden link leads to", access: "read", path: "OUT/real-token", list: "fs.deny_read" },
  {
    what: "what the kernel finds behind a link, not as text",
    access: "read",
    path: "to-keys/../real-token",
    list: "fs.deny_read",
  },
  { what: "Substrate's own files", access: "read", path: "HOME/config.yaml", list: "fs.deny_read" },
  {
    what: "another process's variables",
    access: "read",
    path: "/proc/1/environ",
    list: "fs.read",
    alone: "a world has its own",
  },
  { what: "a write", access: "write", path: "src/new", list: null },
  {
    what: "a write in a new folder",
    access: "write",
    path: "a/b/c/d",
    list: null,
    alone: "a command makes the folders first",
  },
  { what: "a write to an open place outside", access: "write", path: "OUT/opened/x", list: null },
  { what: "a write outside", access: "write", path: "OUT/open", list: "fs.write" },
  {
    what: "a write through a link that leads outside",
    access: "write",
    path: "to-out/open",
    list: "fs.write",
  },
  {
    what: "a write through a link whose target is missing",
    access: "write",
    path: "dangling",
    list: "fs.write",
  },
  {
    what: "a write of a hidden name",
    access: "write",
    path: "src/.env",
    list: "fs.deny_read",
    alone: "is taken out at the end",
  },
  { what: "a write of a read-only name", access: "write", path: "locked/x", list: "fs.deny_write" },
  {
    what: "a write of git's hooks",
    access: "write",
    path: ".git/hooks/pre-commit",
    list: "fs.deny_write",
    alone: "is judged at the end",
  },
  ...[
    ".git/rebase-merge/strategy",
    "src/.git",
    "src/.GIT/config",
    "to-git/info/exclude",
    "gd/HEAD",
    "gd/commondir",
    "bare/config",
    "bare/hooks/x",
    "bare/a/b",
    // A command made its objects and refs: behind a commondir git needs no more.
    "common/config",
    // A mark that a command made stops no look.
    "bare/worktrees/marked/x",
  ].map(
    (path): Case => ({
      what: "a write of what git would read",
      access: "write",
      path,
      list: "fs.deny_write",
      alone: "is judged at the end",
    }),
  ),
  { what: "a write of settings of another program", access: "write", path: "gd/config", list: null },
  {
    what: "a write in a worktree that lies in a bare repository",
    access: "write",
    path: "bare/tree/x",
    list: null,
  },
  { what: "a write in a worktree of an agent", access: "write", path: ".claude/worktrees/w/x", list: null },
  { what: "a write of a file whose name begins so", access: "write", path: "src/head", list: null },
  {
    what: "a write of the file that chooses a policy",
    access: "write",
    path: ".substrate-profile",
    list: "fs.deny_write",
    alone: "is taken out at the end",
  },
  {
    what: "a search where a wildcard may hide files",
    access: "search",
    path: "src",
    list: "fs.deny_read",
    alone: "a command sees less",
  },
  {
    what: "a search above a hidden folder",
    access: "search",
    path: "OUT",
    list: "fs.deny_read",
    alone: "a command sees less",
  },
  {
    what: "a search above Substrate's own files",
    access: "search",
    path: "HOME/..",
    list: "fs.deny_read",
    alone: "a command sees less",
  },
];

describe.each(actors())("files, as $kind", (actor) => {
  let folder: HomeFolder;
  let broker: TestBroker;
  let out: string;
  beforeAll(async () => {
    folder = new HomeFolder(actor);
    out = join(folder.path, "out");
    for (const name of ["open", "keys/id", "real-token", "opened/a"]) folder.write(`out/${name}`, "a\n");
    symlinkSync("real-token", join(out, "token"));
    broker = await TestBroker.start(actor, {
      folder: folder.path,
      policies: { default: policy("enforce"), watching: policy("observe"), none: NONE },
    });
    for (const name of [
      "src/a",
      "secret",
      "locked/a",
      ".git/HEAD",
      "gd/a",
      "bare/HEAD",
      "bare/refs/a",
      "bare/tree/.git",
      "bare/worktrees/marked/.git",
      "common/objects/a",
      "common/refs/a",
      ".claude/worktrees/w/.git",
    ])
      broker.write(join(broker.project, name), "a\n");
    mkdirSync(join(broker.project, ".git/hooks"));
    const links = {
      "to-secret": "secret",
      "to-out": out,
      "to-keys": join(out, "keys"),
      "to-git": ".git",
      dangling: join(out, "missing"),
    };
    for (const [name, target] of Object.entries(links)) symlinkSync(target, join(broker.project, name));
    folder.own();
  });
  afterAll(async () => {
    await broker.stop();
    folder.remove();
  });

  const policy = (mode: string): string => `id: ${mode === "enforce" ? "default" : "watching"}
name: Files
mode: ${mode}
selectable: true
fs:
  deny_read: ["$PROJECT/secret", "**/.env", "${out}/keys", "${out}/token"]
  write: ["$PROJECT/**", "${out}/opened/**"]
  deny_write: ["$PROJECT/locked", "$PROJECT/.git/hooks"]
`;

  function pathOf(path: string): string {
    return path.replace(/^OUT/, out).replace(/^HOME/, broker.home);
  }

  async function check(body: object): Promise<CheckReply> {
    const answer = await broker.call("POST", "/v1/check", { agent_id: "test", cwd: broker.project, ...body });
    expect(answer.status, JSON.stringify(answer.document)).toBe(200);
    return answer.document as CheckReply;
  }

  test.each(CASES)("$what: $access $path", async ({ access, path, list, alone }) => {
    const { decision } = await check({ files: [{ path: pathOf(path), access }] });
    expect(decision).toMatchObject({
      verdict: list === null ? "allow" : "deny",
      mode: "enforce",
      rule: list === null ? null : { list, fragment: `${access} ${pathOf(path)}` },
    });
    if (alone !== undefined) return;
    const shell = access === "read" ? 'cat -- "$FILE"' : ': >>"$FILE"';
    const { exit, stderr } = await broker.run({ cmd: shell, env: { FILE: pathOf(path) } });
    expect(exit === 0, stderr).toBe(list === null);
  });

  test("a rule names its row and line", async () => {
    const { decision } = await check({
      files: [
        { path: "src/a", access: "read" },
        { path: "to-secret", access: "read" },
      ],
    });
    expect(decision.rule).toEqual({
      list: "fs.deny_read",
      pattern: "$PROJECT/secret",
      fragment: "read to-secret",
      source: "default.yaml:6",
      reason: "it is hidden from commands",
    });
  });

  test("'~' is the home, and blanks around a path hide nothing", async () => {
    const files = [{ path: ` ~${out.slice(actor.home.length)}/keys/id `, access: "read" }];
    expect((await check({ files })).decision.rule).toMatchObject({ pattern: `${out}/keys` });
  });

  test("a profile narrows, and lines are for people", async () => {
    const files = [{ path: "src/a", access: "read" }];
    const { decision, lines } = await check({ files, profile: "none", format: "text" });
    expect(decision).toMatchObject({ verdict: "deny", rule: { list: "fs.read", pattern: "only '/usr/**'" } });
    expect(lines?.join("\n")).toContain("no entry covers");
  });

  test("a policy that observes protects files as well", async () => {
    broker.write(join(broker.home, "config.yaml"), "agents:\n  watched: { policy: watching }\n");
    await broker.operator("POST", "/v1/policy/reload");
    const body = { agent_id: "watched", cwd: broker.project, files: [{ path: "secret", access: "read" }] };
    await expect
      .poll(async () => (await broker.operator("POST", "/v1/check", body)).document, { timeout: 10_000 })
      .toMatchObject({ decision: { verdict: "deny", mode: "observe" }, policy_id: "watching" });
  });

  test("a hundred deep paths hold the broker up for half a second at most", async () => {
    const files = Array.from({ length: 100 }, (_, at) => ({
      path: `${"x/".repeat(2000)}${at}`,
      access: "write",
    }));
    const began = performance.now();
    const answer = await broker.call("POST", "/v1/check", { agent_id: "test", cwd: broker.project, files });
    expect(answer).toMatchObject({ status: 400, document: { error: { path: "files" } } });
    expect(performance.now() - began).toBeLessThan(3000);
  });

  test("files beside a command are refused, and nothing is recorded", async () => {
    const answer = await broker.call("POST", "/v1/check", {
      agent_id: "test",
      cmd: "true",
      files: [{ path: "a", access: "read" }],
    });
    expect(answer).toMatchObject({ status: 400, document: { error: { path: "cmd" } } });
    await check({ agent_id: "unseen", files: [{ path: "secret", access: "read" }] });
    const spans = (await broker.operator("GET", "/v1/spans?limit=100")).document as {
      spans: readonly { agent_id: string }[];
    };
    expect(spans.spans.filter(({ agent_id }) => agent_id === "unseen")).toEqual([]);
  });
});

const NONE = `id: none
name: Nothing of the project
mode: enforce
selectable: true
fs:
  read: ["/usr/**"]
  write: []
`;
