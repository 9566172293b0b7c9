import { spawnSync } from "node:child_process";
import { mkdirSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { asUrl } from "../../../../../broker/network/presets/git.ts";
import { mayBeWritten, projectMayWrite } from "../../../../../broker/network/presets/writable.ts";
import type { PolicyDocument } from "../../../../../schemas/generated/types.ts";
import { FakeHost } from "../../../../support/network/fake-host.ts";

let host: FakeHost;
beforeEach(() => {
  host = new FakeHost();
});
afterEach(() => host.remove());

const remote = (url: string, name = "origin") => `[remote "${name}"]\n\turl = ${url}\n`;
const config = (text: string, project = host.project) => host.write(join(project, ".git/config"), text);
const remotes = (project = host.project) => host.entriesOf("@git", host.presets(), project);

describe("a remote becomes a host and its port:", () => {
  test.each([
    ["https://git.example/a.git", ["git.example:443"]],
    ["https://user:secret@Git.Example:8443/a", ["git.example:8443"]],
    ["http://git.example/a", ["git.example:80"]],
    ["ssh://git@git.example/a", ["git.example:22"]],
    ["ssh://git@git.example:80/a", ["git.example:80"]],
    ["git+ssh://git.example:2222/a", ["git.example:2222"]],
    ["git://git.example/a", ["git.example:9418"]],
    ["git@git.example:a/b.git", ["git.example:22"]],
    ["git.example:a", ["git.example:22"]],
    ["git@[git.example:2222]:a", ["git.example:2222"]],
    ["[git@git.example]:a", ["git.example:22"]],
    ["git@10.1.2.3:a", ["10.1.2.3:22"]],
    ["git@[fd00::1]:a", []],
    ["../other", []],
    ["/srv/git/a:b", []],
    ["./a:b", []],
    ["file:///srv/git/a", []],
    ["ext::sh -c x%", []],
    ["codecommit::region://x", []],
  ])("%s", async (url, expected) => {
    config(remote(url));
    expect(await remotes()).toEqual(expected);
  });

  test("of every remote, fetch and push", async () => {
    config(
      `${remote("https://one.example/a")}${remote("git@two.example:a", "up")}\tpushurl = ssh://three.example/a\n`,
    );
    expect(await remotes()).toEqual(["one.example:443", "two.example:22", "three.example:22"]);
  });

  test("of what the operator's settings put in its place, as the real git does", async () => {
    config(remote("https://one.example/a"));
    host.write(
      "home/.gitconfig",
      `[include]\n\tpath = more\n[url "https://mirror.example/"]\n\tinsteadOf = https://\n`,
    );
    host.write("home/more", `[url "git@two.example:"]\n\tinsteadOf = https://one.example/\n`);
    const environment = { PATH: process.env["PATH"] };
    const git = spawnSync("git", ["-C", host.project, "ls-remote", "--get-url", "https://one.example/a"], {
      env: { ...environment, HOME: host.home },
      encoding: "utf8",
    });
    expect(git.stdout.trim()).toBe("git@two.example:a");
    expect(await host.entriesOf("@git", host.presets({ environment }))).toEqual(["two.example:22"]);
  });
});

test("no program that a project's .git/config names is run, and git not in the project", async () => {
  const marker = join(host.root, "marker");
  config(
    `[core]\n\tfsmonitor = touch ${marker}\n\tsshCommand = touch ${marker}\n[alias]\n\tconfig = !touch ${marker}\n${remote("https://one.example/a")}`,
  );
  host.program("git", "exit 1");
  expect(await remotes()).toEqual(["one.example:443"]);
  expect(host.ran().every((line) => /^git config --(system|global) /.test(line))).toBe(true);
});

describe("remotes that commands could have written do not count:", () => {
  test("a project in another one has the remotes of the outer one", async () => {
    config(remote("https://outer.example/a"));
    const inner = join(host.project, "vendor/inner");
    config(remote("https://evil.example/a"), inner);
    expect(await remotes(inner)).toEqual(["outer.example:443"]);
  });

  test("nor does one in a folder that is a project by its profile alone", async () => {
    host.write("home/project/.substrate-profile", "readonly\n");
    const inner = join(host.project, "inner");
    config(remote("https://evil.example/a"), inner);
    expect(await remotes(inner)).toEqual([]);
    expect(await host.notesOf("@git", host.presets(), inner)).toMatch(
      /'.*\/inner' is in '.*\/project', which has no remotes; the remotes of '.*\/inner' do not count, because commands/,
    );
  });

  test("nor does one in a folder that was the project of a command, and is marked as none", async () => {
    const inner = join(host.project, "inner");
    config(remote("https://evil.example/a"), inner);
    const presets = host.presets({}, { wasProject: (folder) => folder === host.project });
    expect(await host.entriesOf("@git", presets, inner)).toEqual([]);
    expect(await remotes(inner)).toEqual(["evil.example:443"]);
  });

  test("but a home folder that is a repository is no project, and hides none", async () => {
    config(remote("https://dotfiles.example/a"), host.home);
    config(remote("https://own.example/a"));
    expect(await remotes()).toEqual(["own.example:443"]);
  });

  test("a .git or a config that is a link, a file that leads nowhere, or no settings at all", async () => {
    const elsewhere = join(host.root, "elsewhere");
    config(remote("https://evil.example/a"), elsewhere);
    mkdirSync(host.project, { recursive: true });
    symlinkSync(join(elsewhere, ".git"), join(host.project, ".git"));
    expect(await remotes()).toEqual([]);
    renameSync(join(host.project, ".git"), join(host.root, "link"));
    mkdirSync(join(host.project, ".git"));
    symlinkSync(join(elsewhere, ".git/config"), join(host.project, ".git/config"));
    expect(await remotes()).toEqual([]);
    const broken = join(host.home, "broken");
    config("[remote\n", broken);
    expect(await host.notesOf("@git", host.presets(), broken)).toMatch(/cannot be read as git's settings/);
    const linked = join(host.home, "linked");
    host.write(join(linked, ".git"), `gitdir: ${elsewhere}/.git\n`);
    expect(await remotes(linked)).toEqual([]);
  });

  test("where the policy lets commands write it", async () => {
    const policy = (fs: PolicyDocument["fs"]): PolicyDocument => ({ id: "p", name: "P", ...(fs && { fs }) });
    config(remote("https://own.example/a"));
    const under = (document: PolicyDocument) => {
      const mayWrite = (path: string, project: string) =>
        projectMayWrite(path, project, [document], host.home);
      return host.entriesOf("@git", host.presets({}, { mayWrite }));
    };
    expect(await under(policy(undefined))).toEqual(["own.example:443"]);
    expect(await under(policy({ deny_write: ["**/.git/config"] }))).toEqual(["own.example:443"]);
    expect(await under(policy({ write: [] }))).toEqual(["own.example:443"]);
    expect(await under(policy({ deny_write: [] }))).toEqual([]);
    expect(await under(policy({ write: ["/**"], deny_write: ["$PROJECT/.git/hooks"] }))).toEqual([]);
  });
});

test("the config of the folder that a worktree's .git leads to is read, when it points back", async () => {
  const common = join(host.root, "repository/.git");
  host.write(join(common, "config"), remote("https://own.example/a"));
  host.write(join(host.project, ".git"), "gitdir: elsewhere\n");
  expect(await host.entriesOf("@git", host.presets({}, { linkedFolder: () => common }))).toEqual([
    "own.example:443",
  ]);
});

test("the remotes of a project are open where commands of another one may write them", () => {
  const file = "/srv/one/.git/config";
  const may = (fs: PolicyDocument["fs"]) =>
    projectMayWrite(file, "/srv/one", [{ id: "p", name: "P", ...(fs && { fs }) }], "/home/nobody-here");
  expect(may({ write: ["$PROJECT/**"] })).toBe(false);
  expect(may({ write: ["/srv/**"] })).toBe(true);
  expect(may({ write: ["/srv/**"], deny_write: ["/srv/*/.git"] })).toBe(false);
});

describe("what commands in worlds may write", () => {
  const wide: PolicyDocument = {
    id: "p",
    name: "P",
    fs: {
      write: ["$PROJECT/**", "$HOME/.cargo/**", "/tmp/**", "/opt/x/file"],
      deny_write: ["$HOME/.cargo/bin"],
    },
  };
  const POLICIES: readonly PolicyDocument[] = [{ id: "q", name: "Q" }, wide];

  test("is what fs.write of any policy opens and fs.deny_write does not close, and what holds it", () => {
    const home = "/home/nobody-here";
    const mayWrite = (path: string) =>
      mayBeWritten(path, POLICIES, { ...host.projects, rules: () => ({ ...host.rules, home }) });
    expect([`${home}/.cargo`, `${home}/.cargo/config.toml`, "/opt/x", "/opt/x/file"].map(mayWrite)).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(
      [
        `${home}/.cargo/bin`,
        `${home}/.cargo/bin/cargo`,
        `${home}/.npmrc`,
        "/usr/bin",
        "/opt/x/other",
        "/tmp/x",
      ].map(mayWrite),
    ).toEqual(Array(6).fill(false));
  });

  test("is whatever lies in a folder that could be a project", () => {
    const mayWrite = (path: string) => mayBeWritten(path, POLICIES, host.projects);
    config("");
    expect(mayWrite(join(host.project, "node_modules/.bin/npm"))).toBe(true);
    expect(mayWrite(join(host.home, ".npmrc"))).toBe(false);
    config("", join(host.home, ".nvm"));
    expect(mayWrite(join(host.home, ".nvm/versions/bin"))).toBe(false);
  });
});

test.each(["a".repeat(1_000_000), ":".repeat(1_000_000), "@".repeat(1_000_000), "[a:".repeat(300_000)])(
  "a remote of a million characters takes no time",
  (text) => {
    const before = process.cpuUsage();
    asUrl(text);
    const { user, system } = process.cpuUsage(before);
    expect(user + system).toBeLessThan(500_000);
  },
);

test("of settings that are a link to itself are none, with a note, and nothing is thrown", async () => {
  mkdirSync(join(host.project, ".git"));
  symlinkSync("config", join(host.project, ".git/config"));
  symlinkSync(".gitconfig", join(host.home, ".gitconfig"));
  expect(await remotes()).toEqual([]);
  expect(await host.notesOf("@git", host.presets())).toMatch(/cannot be read|ELOOP/);
});
