import { existsSync, lstatSync, readFileSync, readlinkSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { change, changed, errorIn } from "../support/held/changes.ts";

const POLICY = `
id: default
name: Links in the place of folders
mode: enforce
fs:
  deny_write:
    - "$PROJECT/.claude/settings.json"
    - "$PROJECT/.hg/hgrc"
    - "$PROJECT/.github/hooks/**"
    - "$PROJECT/.gemini/settings.json"
    - "$PROJECT/.codex/config.toml"
    - "**/.jj/repo/config.toml"
    - "**/sub/*/x.lock.json"
commands:
  isolated: ["env isolated=1 *"]
`;

describe.each(actors())("a link in the place of a folder of denied names, as $kind", (actor) => {
  let broker: TestBroker;
  const at = (name: string): string => join(broker.project, name);
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    for (const name of ["settings.json", "hgrc", "hooks/one", "repo/config.toml"])
      broker.write(at(`evil/${name}`), "evil");
    broker.write(at(".gemini/prose.md"), "prose");
    broker.write(at("mine/notes"), "notes");
    symlinkSync("mine", at(".codex"));
  });
  afterAll(() => broker.stop());

  /** Whether a tool on the host would read what a command wrote. */
  function reads(name: string): boolean {
    return existsSync(at(name)) && readFileSync(at(name), "utf8") === "evil";
  }

  async function violations(cmd: string): Promise<readonly unknown[]> {
    const ran = await broker.run(cmd);
    return broker
      .spans()
      .filter((span) => span.event_type === "violation" && span.parent_span === ran.span_id)
      .map((span) => span.violation);
  }

  test("is taken out, made, moved or linked there, and the reply tells of it", async () => {
    const told = await violations(
      [
        "ln -s evil .claude",
        "ln -s evil moved && mv moved .hg",
        "ln -s evil linked && ln -P linked .github; rm linked",
        "mkdir sub; ln -s ../evil sub/any",
      ].join("; "),
    );
    expect(told).toEqual(
      expect.arrayContaining(
        [".claude", ".hg", ".github", "sub/any"].map((name) => ({ kind: "denied_name", subject: at(name) })),
      ),
    );
    expect([".claude/settings.json", ".hg/hgrc", ".github/hooks/one"].filter(reads)).toEqual([]);
    // The twin: the same folder under another name.
    expect(await violations("ln -s evil plain; ln -s evil node_modules; ln -s evil .github2")).toEqual([]);
    expect(readFileSync(at("node_modules/hgrc"), "utf8")).toBe("evil");
    expect(reads("plain/settings.json")).toBe(true);
  });

  test("is listed as autorun where nothing denies it, and other links are not", async () => {
    const ran = await broker.run(
      "mkdir pkg; ln -s ../evil pkg/node_modules; ln -s ../evil pkg/.hg; ln -s ../evil pkg/lib",
    );
    expect(ran.fs_diff?.autorun).toEqual(["pkg/.hg", "pkg/node_modules"]);
    expect(readlinkSync(at("pkg/.hg"))).toBe("../evil");
    const held = await broker.run(
      "env isolated=1 sh -c 'mkdir held; ln -s ../evil held/.hg; ln -s ../evil held/lib'",
    );
    expect(held.fs_diff).toMatchObject({ held: true, autorun: ["held/.hg"] });
  });

  test("is applied by nobody, the operator included; other links and folders of that name are", async () => {
    const { span_id: span } = await broker.run(
      "env isolated=1 sh -c 'ln -s evil .claude; ln -s evil applied'",
    );
    expect(errorIn(await change(broker, "apply", span))).toMatchObject({
      status: 403,
      code: "policy_denied",
      message: expect.stringContaining("'.claude'") as string,
    });
    expect([".claude", "applied"].filter((name) => existsSync(at(name)))).toEqual([]);
    await changed(broker, "apply", span, ["applied"]);
    expect(readlinkSync(at("applied"))).toBe("evil");
    const folder = await broker.run("env isolated=1 sh -c 'mkdir .claude; echo prose > .claude/prose.md'");
    await changed(broker, "apply", folder.span_id);
    expect(readFileSync(at(".claude/prose.md"), "utf8")).toBe("prose\n");
    await broker.run("rm -r .claude applied");
  });

  test("is taken out below any folder, and in one that is moved there with it", async () => {
    await broker.run(
      "mkdir -p a/b c/d; ln -s ../../evil a/b/.jj; mkdir c/d/.jj; ln -s ../../../evil/repo c/d/.jj/repo; mv c moved-c",
    );
    expect(["a/b/.jj/repo/config.toml", "moved-c/d/.jj/repo/config.toml"].filter(reads)).toEqual([]);
    expect(existsSync(at("moved-c/d/.jj"))).toBe(true);
  });

  test("is taken out where a person's folder or link was moved away", async () => {
    await broker.run("mv .gemini aside; ln -s evil .gemini");
    expect(reads(".gemini/settings.json")).toBe(false);
    expect(readFileSync(at("aside/prose.md"), "utf8")).toBe("prose");
    await broker.run("echo evil > evil/config.toml; ln -s evil other; mv -T other .codex");
    expect(reads(".codex/config.toml")).toBe(false);
    await broker.run("rm -f .codex; mkdir .codex; echo evil > .codex/config.toml");
    expect(reads(".codex/config.toml")).toBe(false);
    await broker.run("rm -rf .codex; ln -s mine .codex");
  });

  test("stays as a person has it, also removed and made again, and its target is denied as before", async () => {
    expect(await violations("cat .codex/notes; rm .codex; ln -s mine .codex; true")).toEqual([]);
    expect(readlinkSync(at(".codex"))).toBe("mine");
    await broker.run("echo evil > mine/config.toml; true");
    expect(reads(".codex/config.toml")).toBe(false);
    // A person makes one while the world is there.
    symlinkSync("evil", at(".hg"));
    expect(await violations("ls .hg; echo more > evil/more")).toEqual([]);
    expect(readlinkSync(at(".hg"))).toBe("evil");
  });

  test("does not count once it is gone, or a folder, and a folder that `**` walks through is none", async () => {
    expect(
      await violations(
        "ln -s evil .claude; rm .claude; mkdir .claude; echo prose > .claude/prose.md; mkdir -p other/deep; ln -s ../evil other/any; ln -s a deep",
      ),
    ).toEqual([]);
    expect(lstatSync(at(".claude")).isDirectory()).toBe(true);
    expect(readlinkSync(at("other/any"))).toBe("../evil");
  });

  test("is no folder of a branch: git switches to one that has the folder, and back", async () => {
    const ran = await broker.run(
      [
        "mkdir repo && cd repo && git init -q -b main && git config user.email a@b && git config user.name a",
        "git commit -q --allow-empty -m one && git switch -q -c other",
        "mkdir -p .jj/repo && echo prose > .jj/repo/prose && git add . && git commit -q -m two",
        "git switch -q main && git switch -q other && cat .jj/repo/prose",
      ].join(" && "),
    );
    expect(ran.stdout).toBe("prose\n");
  });
});
