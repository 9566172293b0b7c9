import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { HealthReply } from "../../schemas/generated/types.ts";
import type { TestBroker } from "../support/broker/broker.ts";
import { homeOf, open, own, personsHome, refusal, start, works } from "../support/broker/own-home.ts";
import { freePort } from "../support/broker/published.ts";
import { actors } from "../support/users/users.ts";

describe.each(actors())("a home of its own, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await start(actor, personsHome(actor));
  });
  beforeEach(() => {
    for (const id of readdirSync(join(broker.home, "homes")))
      rmSync(homeOf(broker, id), { recursive: true, force: true });
  });
  afterAll(() => broker.stop());

  test("persists for its profile alone, in a folder of the broker's user, and the real home stays as it is", async () => {
    const before = readdirSync(broker.folder).sort();
    expect(await works(broker, 'echo kept > ~/state; mkdir ~/.agent; echo "$HOME"')).toBe(
      `${broker.folder}\n`,
    );
    expect(await works(broker, "cat ~/state; ls -d ~/.agent")).toBe(`kept\n${broker.folder}/.agent\n`);
    expect((await own(broker, "cat ~/state", { profile: "other" })).end.exit).toBe(1);
    expect((await own(broker, "cat ~/state", { profile: undefined })).end.exit).toBe(1);
    expect(readdirSync(broker.folder).sort()).toEqual(before);
    const stat = statSync(homeOf(broker, "agent"));
    expect([stat.uid, stat.mode & 0o777]).toEqual([actor.uid, 0o700]);
    expect(readdirSync(join(broker.home, "homes")).sort()).toEqual(["agent", "default", "other"]);
  });

  test("shows the project and what the policy names below the home, and nothing else of the real one", async () => {
    expect(
      await works(broker, "git config --global user.name; cat ~/.config/tool/settings; touch made"),
    ).toBe("Ann\nshared");
    expect(existsSync(join(broker.project, "made"))).toBe(true);
    await works(broker, "cat ~/.cache/old; echo new > ~/.cache/new");
    expect(readFileSync(join(broker.folder, ".cache/new"), "utf8")).toBe("new\n");
    const names = (await works(broker, "ls -A ~")).trim().split("\n").sort();
    expect(names).toEqual([".cache", ".config", ".gitconfig", "project"]);
    for (const path of [
      ".config/tool/token",
      ".cache/secret",
      "secrets/key",
      ".ssh/id",
      ".local/bin/mine",
      "home/config.yaml",
    ])
      expect((await own(broker, `cat ~/${path}`)).out).toBe("");
    const { end, err } = await own(broker, "echo changed >> ~/.gitconfig");
    expect([end.exit, err]).toEqual([expect.any(Number), expect.stringContaining("Read-only")]);
    // The same command with the real home.
    const real = await own(broker, "cat ~/secrets/key", { home: "real" });
    expect(real.out).toBe("the real home");
    // A deny list is about the real home: the command may have a key of its own.
    expect(await works(broker, "mkdir ~/.ssh; echo own > ~/.ssh/id; cat ~/.ssh/id")).toBe("own\n");
  });

  test("a home replaced between two commands is another world's", async () => {
    await works(broker, "echo old > ~/state");
    rmSync(homeOf(broker, "agent"), { recursive: true });
    expect((await own(broker, "cat ~/state")).end.exit).toBe(1);
    await works(broker, "echo new > ~/state");
    expect(readFileSync(join(homeOf(broker, "agent"), "state"), "utf8")).toBe("new\n");
  });

  test("a person may empty it under a warm world: the next command is in its project all the same", async () => {
    const cwd = join(broker.folder, "deep/clients/app");
    const first = (await own(broker, "echo old > ~/state; touch made", { cwd })).end.world_id;
    expect((await own(broker, "true", { cwd })).end.world_id).toBe(first);
    const home = homeOf(broker, "agent");
    for (const name of readdirSync(home)) rmSync(join(home, name), { recursive: true });
    expect(existsSync(join(cwd, "made"))).toBe(true);
    expect(await works(broker, "cat here; ls ~", { cwd })).toBe("the other projectdeep\n");
  });

  test("a command with the real home never gets such a world, and neither ends the other's", async () => {
    const first = (await own(broker, "true")).end.world_id;
    const real = (await own(broker, "true", { home: "real" })).end.world_id;
    const again = (await own(broker, "true")).end.world_id;
    expect(again).toBe(first);
    expect(real).not.toBe(first);
    expect((await own(broker, "true", { home: "real" })).end.world_id).toBe(real);
    const { worlds } = (await broker.operator("GET", "/v1/health")).document as HealthReply;
    const mounts = worlds.find(({ world_id: id }) => id === first)?.mounts ?? [];
    expect(mounts).toContain(`bind ${homeOf(broker, "agent")} ${broker.folder} rw`);
    const others = worlds.find(({ world_id: id }) => id === real)?.mounts ?? [];
    expect(others.join("\n")).not.toContain("homes/agent");
  });

  test("says what is not there, whether or not the real home has it", async () => {
    const reason =
      "in a home of the command's own: of yours it has only what fs.read and fs.write name there";
    const told = async (cmd: string, more = {}): Promise<string> => {
      const { lines } = (await own(broker, cmd, more)).end;
      return (lines ?? []).join("\n");
    };
    const missing = join(broker.folder, "missing");
    const hidden = join(broker.folder, "secrets/key");
    for (const path of [missing, hidden])
      expect(await told(`cat ${path}`)).toContain(`'${path}' is ${reason}`);
    expect(await told("cat missing")).not.toContain(reason);
    expect(await told(`cat ${hidden}`, { home: "real" })).not.toContain(reason);
    const bin = join(broker.folder, ".local/bin");
    const PATH = `${bin}:/usr/bin:/bin`;
    const unfound = await told("", { cmd: undefined, argv: ["mine"], caller_env: { PATH } });
    expect(unfound).toContain(`'mine' was not found. '${bin}' is ${reason}`);
    expect(await told("", { cmd: undefined, argv: ["true"], caller_env: { PATH } })).toBe("");
  });

  test("a published port leads to the program that runs there, and back to the usual world after its end", async () => {
    const port = await freePort();
    const serve = (word: string): string =>
      `node -e "require('http').createServer((_, r) => r.end('${word}')).listen(${port}, '127.0.0.1', () => console.log('ready'))"`;
    const ask = (): string => {
      const { stdout } = spawnSync("node", [
        "-e",
        `fetch("http://127.0.0.1:${port}").then((r) => r.text()).then(console.log, () => console.log("none"))`,
      ]);
      return stdout.toString().trim();
    };
    const program = await open(broker, serve("own"));
    await program.shows("ready");
    const asked = await broker.operator("POST", "/v1/world/publish", {
      port,
      agent_id: "test",
      cwd: broker.project,
    });
    expect(asked.status).toBe(200);
    const usual = await open(broker, serve("real"), { home: "real" });
    await usual.shows("ready");
    expect(ask()).toBe("own");
    program.tell({ type: "signal", signal: "SIGKILL" });
    await program.ended();
    expect(ask()).toBe("real");
    usual.tell({ type: "signal", signal: "SIGKILL" });
    await usual.ended();
  });

  test("gets the variables that world.env names, and no other of the broker's", async () => {
    const names = (await works(broker, "env")).split("\n").map((line) => line.split("=")[0]);
    expect(names).toContain("PASSED");
    expect(names.filter((name) => name === "UNNAMED_KEY" || name?.startsWith("AWS_"))).toEqual([]);
    const ours = names.filter((name) => name?.startsWith("SUBSTRATE_"));
    expect(new Set(ours)).toEqual(new Set(["SUBSTRATE_AGENT_ID", "SUBSTRATE_SPAN_ID"]));
  });

  test("is refused for an isolated command and for another kind of call, and is not replayed", async () => {
    const { end } = await own(broker, "touch held");
    expect(end.error).toMatchObject({ code: "invalid_request" });
    expect(end.error?.message).toMatch(
      /^Run it with --real-home \(in a request: leave 'home' out\): the policy isolates this command \(rule '[^']+'\)/,
    );
    expect((await own(broker, "touch held", { home: "real" })).end.type).toBe("exit");
    expect((await broker.refused({ cmd: "true", home: "own" })).code).toBe("invalid_request");
    const { span_id: span = "" } = (await own(broker, "echo told; echo own > ~/told")).end;
    expect(await broker.span(span)).toMatchObject({ replayable: false, given: { own_home: true } });
    const replay = await broker.operator("POST", `/v1/replay/${span}`, {});
    expect(JSON.stringify(replay.document)).toContain("it had a home of its own");
  });

  test("is there for a policy that shows no more of the host than programs and the project", async () => {
    const more = { profile: "narrow" };
    expect(await works(broker, "echo own > ~/state; cat ~/state; touch in; ls ~", more)).toBe(
      "own\nproject\nstate\n",
    );
    expect((await own(broker, "cat ~/secrets/key; ls /home /opt", more)).out).not.toMatch(/real|secrets/);
    expect((await own(broker, "touch /stray", more)).end.exit).not.toBe(0);
  });

  test("the home as working directory is refused with one sentence", async () => {
    for (const cwd of [broker.folder, join(broker.folder, "..")])
      expect((await refusal(broker, { cwd })).code).toBe("project_not_allowed");
  });

  test("a worktree's git folder elsewhere in the home is there", async () => {
    const git = (cwd: string, ...words: readonly string[]) =>
      spawnSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], { cwd, encoding: "utf8" });
    const main = join(broker.folder, "main");
    mkdirSync(main);
    git(main, "init", "-q");
    git(main, "commit", "-q", "--allow-empty", "-m", "one");
    git(main, "worktree", "add", "-q", join(broker.folder, "tree"));
    spawnSync("chown", ["-Rh", `${actor.uid}:${actor.gid}`, main, join(broker.folder, "tree")]);
    const cwd = join(broker.folder, "tree");
    expect(await works(broker, "git log --format=%s; ls -A ~/main", { cwd })).toBe("one\n.git\n");
  });
});
