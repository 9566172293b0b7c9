import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors, spawnAs } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { HomeFolder } from "../support/users/folders.ts";
import { recordSkip } from "../support/run/skips.ts";

function policyFor(folder: string): string {
  return `
id: default
name: Mounts
mode: enforce
fs:
  deny_read: ["${folder}/.ssh", "${folder}/.netrc", "${folder}/mnt/key", "${folder}/later", "${folder}/*.pem"]
  write: ["$PROJECT/**", "${folder}/written"]
  scratch: ["${folder}/cache/**", "${folder}/missing/**", "${folder}/.none/deep/one/**", "${folder}/.none/deep/two/**"]
world:
  require: [mount]
commands:
  isolated: ["env isolated=1 *"]
`;
}

const mayMount = process.getuid?.() === 0;
if (!mayMount)
  recordSkip({ what: "host trees with mounts inside", why: "only root can mount in a home folder" });

describe.skipIf(!mayMount).each(actors())("a mount in the home folder of $kind", (actor) => {
  let home: HomeFolder;
  let broker: TestBroker;
  let world: string;
  beforeAll(async () => {
    home = new HomeFolder(actor);
    home.write(".ssh/id", "private key");
    home.write("one.pem", "certificate");
    home.write("plain.txt", "plain");
    home.write("written", "as it was");
    home.write("program", "#!/bin/sh\necho ran\n");
    home.write("cache/file", "cached");
    home.write("folder/file", "in a folder");
    symlinkSync("plain.txt", join(home.path, "link"));
    mkdirSync(join(home.path, "mnt"));
    execFileSync("mount", [
      "-t",
      "tmpfs",
      "-o",
      "mode=0777,size=1m",
      "substrate-test",
      join(home.path, "mnt"),
    ]);
    home.write("mnt/file", "in the mount");
    home.write("mnt/key", "key in the mount");
    chmodSync(join(home.path, "program"), 0o755);
    chmodSync(join(home.path, "folder"), 0o700);
    home.own();
    execFileSync("mkfifo", [
      "-m",
      "666",
      ...["", "folder/", "mnt/"].map((at) => join(home.path, at, "pipe")),
    ]);
    broker = await TestBroker.start(actor, {
      policies: { default: policyFor(home.path) },
      folder: join(home.path),
    });
    world = (await broker.run("true")).world_id;
  });
  afterAll(async () => {
    execFileSync("umount", ["-l", join(home.path, "mnt")]);
    await broker?.stop();
    home.remove();
  });

  /** What a command of the same world prints. */
  async function seen(cmd: string): Promise<string> {
    const ran = await broker.run(`cd ${home.path}; (${cmd}) 2>&1; true`);
    expect(ran.world_id).toBe(world);
    return ran.stdout;
  }

  function replace(name: string, text: string): void {
    writeFileSync(join(home.path, `.new-${name}`), text);
    renameSync(join(home.path, `.new-${name}`), join(home.path, name));
  }

  test("leaves files, folders, links and the mount itself to be read, and the vector on", async () => {
    expect(await seen("cat plain.txt link folder/file mnt/file; ./program; stat -c %a folder")).toBe(
      "plainplainin a folderin the mountran\n700\n",
    );
    expect((await broker.run("true")).isolation.mount).toBe("on");
    expect(await seen("echo x > plain.txt; echo x > stray; rm plain.txt; rm -r folder")).toMatch(/Read-only/);
  });

  test("leaves denied names out, existing or not, in the folder and in the mount", async () => {
    expect(await seen("ls -a . mnt")).not.toMatch(/^(\.ssh|\.netrc|key|later|one\.pem)$/m);
    expect(await seen("cat .ssh/id mnt/key one.pem")).not.toMatch(/private|key in|certificate/);
    for (const at of [".netrc", "later/key"]) home.write(at, "secret made later");
    expect(await seen("cat .netrc later/key; ls -a")).not.toMatch(/secret made later|^(\.netrc|later)$/m);
    for (const at of [".netrc", "later"]) rmSync(join(home.path, at), { recursive: true });
  });

  test("lets no byte through a pipe to a reader on the host, wherever it lies", async () => {
    for (const at of ["pipe", "folder/pipe", "mnt/pipe"]) {
      const reader = spawnAs(actor, ["cat", join(home.path, at)], { stdio: ["ignore", "pipe", "inherit"] });
      let got = "";
      reader.stdout?.on("data", (bytes) => (got += String(bytes)));
      try {
        await seen(`timeout 1 sh -c 'printf secret > ${at}'`);
        expect(got).toBe("");
        // The twin: the same pipe on the host has a reader.
        writeFileSync(join(home.path, at), "twin");
        await expect.poll(() => got).toBe("twin");
      } finally {
        reader.kill("SIGKILL");
      }
    }
  });

  test("lets nobody connect to a socket that the host made later", async () => {
    const server = spawnAs(
      actor,
      [
        process.execPath,
        "-e",
        'process.chdir(process.argv[1]); const { createServer } = require("node:net"); createServer().listen("sock", () => createServer().listen("folder/sock", () => console.log("up")));',
        home.path,
      ],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    try {
      await new Promise((resolve) => server.stdout?.once("data", resolve));
      for (const at of ["sock", "folder/sock"])
        expect(
          await seen(
            `'${process.execPath}' -e 'require("node:net").connect("${at}").on("connect", () => { console.log("reached"); process.exit(); }).on("error", ({ code }) => console.log(code))'`,
          ),
        ).not.toContain("reached");
    } finally {
      server.kill("SIGKILL");
      for (const at of ["sock", "folder/sock"]) rmSync(join(home.path, at), { force: true });
    }
  });

  test("does not keep what the host changes beside it from the next command", async () => {
    expect(await seen("cat plain.txt made new/file folder/file")).toContain("plain");
    replace("plain.txt", "replaced");
    writeFileSync(join(home.path, "made"), "made");
    mkdirSync(join(home.path, "new"));
    writeFileSync(join(home.path, "new/file"), "new");
    renameSync(join(home.path, "folder"), join(home.path, "aside"));
    mkdirSync(join(home.path, "folder"));
    writeFileSync(join(home.path, "folder/file"), "another folder");
    unlinkSync(join(home.path, "link"));
    home.own();
    expect(await seen("cat plain.txt made new/file folder/file aside/file; ls -d link")).toMatch(
      /^replacedmadenewanother folderin a folder.*link.*No such file/s,
    );
    replace("plain.txt", "again");
    writeFileSync(join(home.path, "made"), "in place");
    rmSync(join(home.path, "new"), { recursive: true });
    expect(await seen("cat plain.txt made; ls -d new")).toMatch(/^againin place.*new.*No such file/s);
    expect(await seen("echo x > new2; echo x > folder/file")).toMatch(/Read-only.*Read-only/s);
  });

  test("does so while others run in the world, a hundred times", async () => {
    await broker.run({
      cmd: `cd ${home.path} && (while :; do cat folder/file; ls -a; sleep 0.05; done >/dev/null 2>&1 &)`,
      background: "keep",
    });
    for (let round = 0; round < 100; round++) {
      const name = `name-${round % 3}`;
      rmSync(join(home.path, name), { recursive: true, force: true });
      if (round % 2 === 0) replace(name, `${round}`);
      else {
        mkdirSync(join(home.path, name));
        writeFileSync(join(home.path, name, "file"), `${round}`);
      }
      expect(await seen(`cat ${name} ${name}/file 2>/dev/null`)).toBe(`${round}`);
    }
  });

  test("keeps places to write, scratch and isolated commands as they are", async () => {
    await seen("echo over > written");
    expect(readFileSync(join(home.path, "written"), "utf8")).toBe("over\n");
    const ran = await broker.run(`cd ${home.path}; echo x > cache/new; echo x > missing/new; cat cache/file`);
    expect(ran).toMatchObject({ stdout: "cached", stderr: "" });
    expect(ran.fs_diff?.world_only).toEqual([join(home.path, "cache/new"), join(home.path, "missing/new")]);
    // Not one of the folders above them is on the host.
    const deep = await broker.run(
      `cd ${home.path}/.none/deep; echo x > one/new; ls; cat one/new; echo x > beside`,
    );
    expect(deep).toMatchObject({
      stdout: "one\ntwo\nx\n",
      stderr: expect.stringContaining("Read-only") as string,
    });
    expect(deep.fs_diff?.world_only).toEqual([join(home.path, ".none/deep/one/new")]);
    expect(existsSync(join(home.path, ".none"))).toBe(false);
    const isolated = await broker.run(
      `env isolated=1 sh -c 'cd ${home.path}; cat mnt/file .ssh/id mnt/key plain.txt'`,
    );
    expect(isolated).toMatchObject({ stdout: "in the mountagain", decision: { verdict: "isolate" } });
  });

  test("shows nobody inside where its children come from", async () => {
    const tried = await seen(
      "ls /dev/.trees /dev/.trees/0; chmod 755 /dev/.trees; cat /dev/.trees/*/.ssh/id",
    );
    expect(tried).not.toContain("private key");
    expect(await broker.run("find /dev -path '*/.trees/*'")).toMatchObject({
      exit: 0,
      stdout: "",
      stderr: "",
    });
  });

  test("takes more folders beside it than are looked at anew, and more names than have a place", async () => {
    const policy = policyFor(home.path).replace("world:\n  require: [mount]\n", "");
    // `stop` removes the broker's folder.
    const folder = join(home.path, "other");
    mkdirSync(folder);
    home.own();
    const other = await TestBroker.start(actor, { policies: { default: policy }, folder });
    const folders = Array.from({ length: 600 }, (_, at) => join(home.path, `folder-${at}`));
    const files = Array.from({ length: 4200 }, (_, at) => join(home.path, `file-${at}`));
    const restart = () => other.operator("POST", "/v1/world/restart", { all: true, force: true });
    try {
      for (const folder of folders) mkdirSync(folder);
      const ran = await other.run(`cat ${home.path}/.ssh/id; ls -d ${home.path}/folder-* | wc -l`);
      expect(ran.stdout.trim()).toBe("600");
      // Root's overlay may lie over the whole of it.
      expect(ran.isolation.mount).toMatch(actor.kind === "root" ? /^on/ : /^degraded: .* too many trees/);
      await restart();
      for (const folder of folders) rmSync(folder, { recursive: true });
      expect((await other.run("echo few")).stdout).toBe("few\n");
      for (const file of files) writeFileSync(file, "");
      expect((await other.run("echo warm")).stdout).toBe("warm\n");
      await restart();
      expect((await other.run(`cat ${home.path}/.ssh/id; echo cold`)).stdout).toBe("cold\n");
    } finally {
      for (const path of [...folders, ...files]) rmSync(path, { recursive: true, force: true });
      await other.stop();
    }
  });
});

describe.skipIf(!mayMount).each(actors())("200 mounts in the home folder of $kind", (actor) => {
  let home: HomeFolder;
  let broker: TestBroker | undefined;
  beforeAll(() => {
    home = new HomeFolder(actor);
    const many = join(home.path, "many");
    const tmpfs = (at: string): void => {
      mkdirSync(at);
      execFileSync("mount", ["-t", "tmpfs", "-o", "mode=0777,size=64k", "substrate-test", at]);
    };
    tmpfs(many);
    // One mount in each folder: init binds a folder without a mount together with its parent.
    for (let at = 0; at < 100; at += 1) {
      tmpfs(join(many, `m${at}`));
      tmpfs(join(many, `m${at}/below`));
    }
    home.own();
  });
  afterAll(async () => {
    execFileSync("umount", ["-lR", join(home.path, "many")]);
    await broker?.stop();
    home.remove();
  });

  test("have their places, and a denied name in the last of them is hidden", async () => {
    const last = join(home.path, "many/m99/below");
    home.write("many/m99/below/.netrc", "a password");
    home.write("many/m99/below/plain", "plain");
    broker = await TestBroker.start(actor, {
      policies: {
        default: `id: default\nname: Many\nmode: enforce\nfs: { deny_read: ["${last}/.netrc"] }\n`,
      },
      folder: home.path,
    });
    const { isolation, stdout } = await broker.run(`ls -A ${last}; cat ${last}/.netrc`);
    expect(stdout).toBe("plain\n");
    expect(isolation.mount).toBe("on");
  });
});

/** As engines of containers keep theirs: a mount deep in a folder of root's. */
const CLOSED = `mount -t tmpfs -o mode=755 none /srv && mkdir -m 710 /srv/engine && mkdir -p /srv/engine/one/merged && mount -t tmpfs none /srv/engine/one/merged && mkfifo -m 666 /srv/engine/one/merged/pipe && exec "$@"`;

describe.skipIf(!mayMount).each(actors())(
  "a mount in a folder that only root may search, as $kind",
  (actor) => {
    test("takes nothing from the vector, and a policy that requires mounts goes on", async () => {
      const broker = await TestBroker.start(actor, {
        within: ["unshare", "--mount", "--propagation", "private", "--", "/bin/sh", "-ec", CLOSED, "sh"],
        policies: {
          default: "id: default\nname: Requires\nworld: { require: [mount] }\n",
        },
      });
      try {
        const ran = await broker.run("ls /srv; timeout 1 sh -c 'echo x > /srv/engine/one/merged/pipe'");
        expect(ran).toMatchObject({ stdout: "engine\n", isolation: { mount: "on" } });
        expect(ran.exit).not.toBe(0);
      } finally {
        await broker.stop();
      }
    });
  },
);

const UNVEILED = `mount -t tmpfs none /srv && mkdir /srv/huge && mount -t hugetlbfs -o mode=755 none /srv/huge && exec "$@"`;
const mayUnveil = mayMount && readFileSync("/proc/filesystems", "utf8").includes("\thugetlbfs\n");
if (!mayUnveil)
  recordSkip({
    what: "a mount without an overlay",
    why: "only root can mount hugetlbfs, where the kernel has it",
  });

describe.skipIf(!mayUnveil).each(actors())(
  "a mount that the kernel makes no overlay over, as $kind",
  (actor) => {
    test("is named where the policy requires mounts, and in the vector where it does not", async () => {
      const broker = await TestBroker.start(actor, {
        within: ["unshare", "--mount", "--propagation", "private", "--", "/bin/sh", "-ec", UNVEILED, "sh"],
        policies: {
          default: "id: default\nname: Any\n",
          requires: "id: requires\nname: Requires\nselectable: true\nworld: { require: [mount] }\n",
        },
      });
      try {
        const { code, message } = await broker.refused({ cmd: "true", profile: "requires" });
        expect(code).toBe("isolation_unavailable");
        expect(message).toContain("1 of the host's trees (/srv/huge)");
        expect((await broker.run("true")).isolation.mount).toContain("(/srv/huge)");
      } finally {
        await broker.stop();
      }
    });
  },
);
