import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Person } from "../support/broker/approvals.ts";
import type { TestBroker } from "../support/broker/broker.ts";
import { homeOf, open, own, personsHome, refusal, start, works } from "../support/broker/own-home.ts";
import { recordSkip } from "../support/run/skips.ts";
import { actors } from "../support/users/users.ts";

describe.each(actors())("attacks around a home of its own, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await start(actor, personsHome(actor));
  });
  beforeEach(() => {
    for (const id of readdirSync(join(broker.home, "homes")))
      rmSync(homeOf(broker, id), { recursive: true, force: true });
  });
  afterAll(() => broker.stop());

  test("a policy that may write everywhere writes its own home, not the real one", async () => {
    await works(broker, "echo own > ~/secrets; echo own > ~/.bashrc; echo in > here", { profile: "other" });
    expect(readFileSync(join(broker.folder, "secrets/key"), "utf8")).toBe("the real home");
    expect(existsSync(join(broker.folder, ".bashrc"))).toBe(false);
    expect(readFileSync(join(broker.project, "here"), "utf8")).toBe("in\n");
  });

  test("no spelling, link or process leads to the real home or to SUBSTRATE_HOME", async () => {
    const { folder } = broker;
    await works(
      broker,
      `ln -s ${folder}/secrets ~/a; ln -s ${broker.home} ~/b; ln -s / ~/c; ln -s ../.. in-project`,
    );
    const paths = [
      `${folder}/secrets/key`,
      `/proc/1/root${folder}/secrets/key`,
      `/proc/self/root${folder}/secrets/key`,
      `/proc/self/cwd/../secrets/key`,
      "../secrets/key",
      "~/a/key",
      "~/b/config.yaml",
      `~/c${folder}/secrets/key`,
      `in-project${folder.slice(folder.lastIndexOf("/"))}/secrets/key`,
      `${broker.home}/config.yaml`,
      `${broker.home}/homes/agent/../../config.yaml`,
      `${broker.home}/homes/other/state`,
    ];
    for (const path of paths) expect([path, (await own(broker, `cat ${path}`)).out]).toEqual([path, ""]);
    // What leads to the own home and to the project works.
    expect(await works(broker, `echo own > ~/mine; cat ~/c${folder}/mine /proc/self/cwd/../mine`)).toBe(
      "own\nown\n",
    );
    const socket = `${broker.home}/sock/agent.sock`;
    expect((await own(broker, `test -e ${socket}; echo $?`)).out).toBe("1\n");
    expect((await own(broker, `test -e ${socket}; echo $?`, { home: "real" })).out).toBe("1\n");
  });

  test("a name denied everywhere is denied in the project and in what is shared, not in the home's own folders", async () => {
    const more = { profile: "env", cwd: join(broker.folder, "deep/clients/app") };
    for (const path of [".env", "~/.cache/sub/.env"])
      expect((await own(broker, `cat ${path}`, more)).out).toBe("");
    expect(await works(broker, "echo own > ~/.env; cat ~/.env here", more)).toBe("own\nthe other project");
    expect(await works(broker, "cat ~/.cache/sub/.env", { cwd: more.cwd })).toBe("the real env");
  });

  test("a hard link out of the project or of a shared path is refused, one inside the home is made", async () => {
    await works(broker, "echo x > file; echo x > ~/one; ln ~/one ~/two; rm ~/one; test -f ~/two");
    for (const from of ["file", "~/.gitconfig", "~/.cache/old", "~/.config/tool/settings"])
      expect((await own(broker, `ln ${from} ~/linked`)).err).toContain("ross-device link");
  });

  test("a link, a file or another user's folder in the place of a home is refused with its reason", async () => {
    const home = homeOf(broker, "agent");
    symlinkSync(join(broker.folder, "secrets"), home);
    expect(await refusal(broker)).toMatchObject({
      code: "isolation_unavailable",
      message: `Cannot use '${home}' as a home of its own: it is a link or a file`,
    });
    rmSync(home);
    writeFileSync(home, "");
    expect((await refusal(broker)).message).toContain("it is a link or a file");
    rmSync(home);
    if (actor.uid === 0) {
      mkdirSync(home);
      spawnSync("chown", ["12345", home]);
      expect((await refusal(broker)).message).toContain("it belongs to user 12345");
      rmSync(home, { recursive: true });
    }
    expect(await works(broker, "echo ran")).toBe("ran\n");
    expect(readdirSync(join(broker.folder, "secrets"))).toEqual(["key"]);
  });

  test("a link or a file on the way to the project is refused, and the host stays as it is", async () => {
    const cwd = join(broker.folder, "deep/clients/app");
    await works(broker, `ln -s ${broker.folder}/secrets ~/deep`);
    const error = await refusal(broker, { cwd });
    expect(error.code).toBe("isolation_unavailable");
    expect(error.message).toContain("'deep' on the way there is not a folder");
    await works(broker, "rm ~/deep; touch ~/deep");
    expect((await refusal(broker, { cwd })).message).toContain("'deep' on the way there is not a folder");
    await works(broker, "rm ~/deep; mkdir -p ~/deep/clients; ln -s /etc ~/deep/clients/app");
    expect((await refusal(broker, { cwd })).message).toContain("'app' on the way there is not a folder");
    expect(readdirSync(join(broker.folder, "secrets"))).toEqual(["key"]);
    await works(broker, "rm ~/deep/clients/app");
    expect(await works(broker, "cat here", { cwd })).toBe("the other project");
  });

  test("a folder where a shared file belongs, and one closed by a command, are told; the home itself is opened again", async () => {
    mkdirSync(join(homeOf(broker, "agent"), ".gitconfig"), { recursive: true });
    spawnSync("chown", ["-R", `${actor.uid}:${actor.gid}`, homeOf(broker, "agent")]);
    expect((await refusal(broker)).message).toContain("'.gitconfig' on the way there is not a file");
    rmSync(join(homeOf(broker, "agent"), ".gitconfig"), { recursive: true });
    await works(broker, "chmod 0 ~");
    chmodSync(homeOf(broker, "agent"), 0o000);
    expect(await works(broker, "echo again", { cwd: join(broker.folder, "deep/clients/app") })).toBe(
      "again\n",
    );
  });

  test("worlds of one home share it, and none can move what is mounted in another's", async () => {
    const cwd = join(broker.folder, "deep/clients/app");
    const early = await open(
      broker,
      "read line; mv ~/deep ~/moved; rm -rf ~/deep; mv ~/deep/clients ~/moved; mv ~/free ~/freed; ls -d ~/freed ~/deep; read line",
    );
    await early.started();
    const late = await open(
      broker,
      "read line; cat here; mkdir -p ~/free; echo shared > ~/note; read line; cat here; mv ~/project ~/x; mv ~/deep ~/x; true",
      { cwd },
    );
    await late.started();
    late.type("go\n");
    await late.shows("the other project");
    early.type("go\n");
    await early.shows("freed");
    expect(early.err.toString().match(/busy/gi)?.length).toBeGreaterThanOrEqual(3);
    late.type("go\n");
    await late.shows(/project[^]*project/);
    expect((await late.ended()).exit).toBe(0);
    expect(late.err.toString().match(/busy/gi)?.length).toBe(2);
    expect(existsSync(join(cwd, "here"))).toBe(true);
    early.type("go\n");
    expect((await early.ended()).exit).toBe(0);
    expect(await works(broker, "cat ~/note; ls ~/deep/clients/app")).toBe("shared\n");
  });

  test("a command that swaps the way to a project while another world starts is stopped, or the start is", async () => {
    const cwd = join(broker.folder, "deep/clients/app");
    const swap = "mv ~/deep ~/aside; ln -s /etc ~/deep; rm -f ~/deep; mv ~/aside ~/deep";
    for (let round = 0; round < 3; round += 1) {
      const cmd = `mkdir -p ~/deep; echo begun; while :; do ${swap}; done 2>/dev/null`;
      const swapping = await open(broker, cmd, { profile: "env", agent_id: `swaps-${round}` });
      await swapping.shows("begun");
      const { out, end } = await own(broker, "cat here .env; pwd -P; echo written > by", {
        cwd,
        profile: "env",
        agent_id: `starts-${round}`,
      });
      swapping.tell({ type: "signal", signal: "SIGKILL" });
      await swapping.ended();
      if (end.type === "error") expect(end.error?.code).toBe("isolation_unavailable");
      expect(out).toBe(end.type === "exit" ? `the other project${cwd}\n` : "");
      expect(existsSync(join(cwd, "by"))).toBe(end.type === "exit");
      rmSync(join(cwd, "by"), { force: true });
      rmSync(homeOf(broker, "env"), { recursive: true, force: true });
    }
    expect((await own(broker, "cat here", { cwd, profile: "env" })).out).toBe("the other project");
  });

  test("a socket of one world is not reached from another of the same home", async () => {
    const server = `require('net').createServer((c) => c.end('served')).listen(process.env.HOME + '/sock', () => console.log('ready'))`;
    const client = (path: string): string =>
      `node -e "require('net').connect(${path}).on('data', (d) => console.log(String(d))).on('error', (e) => console.log(e.code))"`;
    const running = await open(broker, `node -e "${server}"`);
    await running.shows("ready");
    const own = client("process.env.HOME + '/sock'");
    expect(await works(broker, own)).toBe("served\n");
    expect(await works(broker, own, { cwd: join(broker.folder, "deep/clients/app") })).toContain("E");
    running.leave();
    expect(lstatSync(join(broker.home)).mode & 0o77).toBe(0);
  });

  test("an answer for a home of its own holds for no other home", async () => {
    const person = new Person(broker);
    const asked = async (more = {}) => (await own(broker, "touch asked", more)).end;
    const error = (await asked()).error;
    expect(error?.code).toBe("approval_required");
    const { notes } = await person.question(error?.approval_id);
    expect(notes).toContain("The command has a home of its own, 'agent', and not yours");
    await person.answer(error?.approval_id, "session");
    expect((await asked()).exit).toBe(0);
    expect((await asked({ home: "real" })).error?.code).toBe("approval_required");
    rmSync(join(broker.project, "asked"));
  });

  test("a name that is no policy's makes no folder", async () => {
    for (const profile of ["../other", "agent/../other", "..", "nobody"])
      expect((await own(broker, "true", { profile })).end.type).toBe("error");
    expect(readdirSync(join(broker.home, "homes"))).toEqual([]);
  });
});

const mayMount = process.getuid?.() === 0;
if (!mayMount)
  recordSkip({ what: "a home of its own over mounts", why: "only root can mount in a home folder" });

describe.skipIf(!mayMount).each(actors())("a home with mounts, of $kind", (actor) => {
  let broker: TestBroker;
  let other: string;
  beforeAll(async () => {
    const folder = personsHome(actor);
    other = mkdtempSync("/opt/sb-other-");
    mkdirSync(join(folder, "mnt"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "mode=0777,size=1m", "substrate-test", join(folder, "mnt")]);
    writeFileSync(join(folder, "mnt/file"), "in the mount");
    execFileSync("mount", ["--bind", folder, other]);
    broker = await start(actor, folder);
  });
  afterAll(async () => {
    execFileSync("umount", ["-l", other]);
    execFileSync("umount", ["-l", join(broker.folder, "mnt")]);
    rmSync(other, { recursive: true });
    await broker.stop();
  });

  test("is covered with its mounts, also where it is mounted a second time", async () => {
    const real = await own(broker, "cat ~/mnt/file", { home: "real" });
    expect(real.out).toBe("in the mount");
    for (const path of [
      "~/mnt/file",
      `${other}/secrets/key`,
      `${other}/home/config.yaml`,
      `${other}/mnt/file`,
    ])
      expect([path, (await own(broker, `cat ${path}`)).out]).toEqual([path, ""]);
    expect(await works(broker, "ls -A ~; cat ~/.config/tool/settings; touch in")).toContain("shared");
    expect(existsSync(join(broker.project, "in"))).toBe(true);
  });

  test("stays covered after the host has changed the folder around it", async () => {
    const beside = `${broker.folder}-beside`;
    const client = await open(broker, "read line; ls ~; cat ~/secrets/key; read line");
    await client.started();
    mkdirSync(beside);
    writeFileSync(join(broker.folder, "new"), "");
    expect(await works(broker, "ls ~")).not.toContain("secrets");
    client.type("go\n");
    await client.shows("project");
    client.type("go\n");
    await client.ended();
    expect(client.screen).not.toMatch(/secrets|new|real/);
    rmSync(beside, { recursive: true });
  });
});
