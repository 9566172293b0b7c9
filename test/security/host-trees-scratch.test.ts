import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { homeLayout } from "../../broker/settings/home.ts";
import { actors } from "../support/users/users.ts";
import { ROOT_OVERLAY, TestBroker } from "../support/broker/broker.ts";
import { HomeFolder } from "../support/users/folders.ts";

/** What package managers do in their caches, with nothing but coreutils. */
const PACKAGE_MANAGER = `set -e
mkdir -p pool/tmp pool/content; echo data > pool/tmp/x; mv pool/tmp/x pool/content/a
ln pool/content/a linked; chmod 755 linked; test -x pool/content/a
dd if=/dev/zero of=big bs=1M count=24 conv=fsync 2>/dev/null; sync big
echo over >> known; mv known moved; echo new > known; rm moved
rm -r old; mkdir old; echo again > old/file; mv old older; mkdir -p deep/er; rmdir deep/er deep
echo program > run; chmod +x run; ln -s run link; cat link; cat pool/content/a known older/file; ls`;

function policyFor(folder: string, mode: string): string {
  return `
id: default
name: Scratch
mode: ${mode}
fs:
  deny_read: ["${folder}/.ssh", "${folder}/shown/secret", "${folder}/none/missing", "${folder}/cache/secret", "${folder}/missing/below/a/token", "${folder}/missing/secret"]
  write: ["$PROJECT/**", "${folder}/written/**"]
  deny_write: ["${folder}/cache/locked"]
  scratch: ["${folder}/cache/**", "${folder}/missing/below/**", "${folder}/written/**"]
commands:
  isolated: ["touch isolated *"]
`;
}

describe.each(actors())("writes below fs.scratch, as $kind", (actor) => {
  let home: HomeFolder;
  let broker: TestBroker;
  beforeAll(async () => {
    home = new HomeFolder(actor);
    for (const name of ["known", "locked", "secret", "old/file"]) home.write(`cache/${name}`, name);
    home.write("written/file", "as it was");
    home.write("shown/plain", "plain");
    broker = await TestBroker.start(actor, { policies: { default: policyFor(home.path, "enforce") } });
  });
  afterAll(async () => {
    await broker.stop();
    home.remove();
  });

  function layers(): readonly string[] {
    const { overlay } = homeLayout(broker.home, actor.uid === 0 ? ROOT_OVERLAY : undefined);
    return readdirSync(overlay).filter((name) => name.startsWith("wld_"));
  }

  test("land in the world, are listed, are seen by its next commands, and never reach the host", async () => {
    const ran = await broker.run(`cd ${home.path}/cache && ${PACKAGE_MANAGER}`);
    expect(ran.stderr).toBe("");
    expect(ran.stdout).toContain("program\ndata\nnew\nagain\n");
    expect(ran.fs_diff?.world_only).toContain(join(home.path, "cache/known"));
    expect(await broker.run(`cat ${home.path}/cache/older/file`)).toMatchObject({ stdout: "again\n" });
    expect(readdirSync(join(home.path, "cache")).sort()).toEqual(["known", "locked", "old", "secret"]);
    expect(readFileSync(join(home.path, "cache/known"), "utf8")).toBe("known");
  });

  test("in a folder that the host does not have stay in the world, and the host has no such folder afterwards", async () => {
    const folder = join(home.path, "missing/below");
    const ran = await broker.run(
      `cd ${folder} && mkdir -p a/b && echo new > a/b/file && mv a c && cat c/b/file`,
    );
    expect(ran).toMatchObject({ stdout: "new\n", stderr: "" });
    expect(ran.fs_diff?.world_only).toEqual([join(folder, "c/b/file")]);
    expect(existsSync(join(home.path, "missing"))).toBe(false);
  });

  test("in a folder that the host removes meanwhile show nothing of what is denied there", async () => {
    expect(await broker.run(`ls -A ${home.path}/shown`)).toMatchObject({ stdout: "plain\n" });
    rmSync(join(home.path, "shown"), { recursive: true });
    const ran = await broker.run(`ls -lA ${home.path}/shown`);
    expect(`${ran.stdout}${ran.stderr}`).not.toContain("shown/secret");
  });

  test("in such a folder show nothing of what is denied beside it, also when the host makes that", async () => {
    const list = `ls -lA ${home.path}/missing && find ${home.path}/missing`;
    const attributes = `if command -v python3 >/dev/null; then python3 -c 'import os; print(os.listxattr("${home.path}/missing"))'; fi`;
    for (const command of [`${list} && ${attributes}`, `touch isolated x; ${list}`])
      expect(await broker.run(command)).toMatchObject({
        exit: 0,
        stdout: expect.not.stringMatching(/secret|overlay/),
        stderr: "",
      });
    const look = `cat ${home.path}/missing/secret || ls -l ${home.path}/missing/secret`;
    const before = await broker.run(look);
    expect(before).toMatchObject({ stdout: "", stderr: expect.stringContaining("No such file") });
    home.write("missing/secret", "denied");
    expect(await broker.run(look)).toMatchObject({ stdout: "", stderr: before.stderr });
    home.write("missing/below/a/token", "denied");
    const token = await broker.run(`cat ${home.path}/missing/below/a/token`);
    expect(token).toMatchObject({ exit: 1, stdout: "" });
    rmSync(join(home.path, "missing"), { recursive: true });
  });

  test("do not open the folders beside and above", async () => {
    const ran = await broker.run(
      `cd ${home.path}; for each in stray missing/stray cache2; do mkdir $each; done; mv cache else; true`,
    );
    expect(ran.stderr).toMatch(/stray.*Read-only file system/);
    expect(ran.stderr).toMatch(/cache2.*Read-only file system/);
    expect(ran.fs_diff?.world_only).toEqual([]);
  });

  test("neither uncover a denied name nor change what a list denies to write", async () => {
    const ran = await broker.run(
      `cd ${home.path}/cache; cat secret; mv ../cache/secret x; echo over | tee locked; cat locked; true`,
    );
    expect(ran.stdout).toBe("over\nlocked");
    expect(ran.stderr).toMatch(/secret: No such file/);
    expect(ran.stderr).toMatch(/locked: Read-only file system/);
  });

  test("where fs.write opens the place too, reach the host", async () => {
    const ran = await broker.run(`echo new > ${home.path}/written/file`);
    expect(ran.fs_diff?.world_only).toEqual([]);
    expect(readFileSync(join(home.path, "written/file"), "utf8")).toBe("new\n");
  });

  test("of an isolated command stay with it, those to places of fs.write too", async () => {
    const [scratch, written] = [join(home.path, "cache/alone"), join(home.path, "written/alone")];
    const ran = await broker.run(`touch isolated ${scratch} ${written}`);
    expect(ran).toMatchObject({ exit: 0, stderr: "", decision: { verdict: "isolate" } });
    expect(ran.fs_diff?.world_only).toEqual([scratch, written]);
    expect([scratch, written].filter((path) => existsSync(path))).toEqual([]);
    expect((await broker.run(`ls ${home.path}/cache ${home.path}/written`)).stdout).not.toContain("alone");
  });

  test("are gone with their world, and after kill -9 of its broker", async () => {
    await broker.run(`echo new > ${home.path}/cache/kept`);
    expect(layers()).not.toEqual([]);
    broker.process.kill("SIGKILL");
    await new Promise((resolve) => broker.process.once("exit", resolve));
    broker = await broker.again();
    await expect.poll(layers, { timeout: 10_000 }).toEqual([]);
    expect((await broker.run(`ls ${home.path}/cache`)).stdout).not.toContain("kept");
  });
});

describe.each(actors())("writes below fs.scratch in observe mode, as $kind", (actor) => {
  test("stay in the world as well, also where the host has no such folder", async () => {
    const home = new HomeFolder(actor);
    mkdirSync(join(home.path, "cache"));
    home.own();
    const broker = await TestBroker.start(actor, { policies: { default: policyFor(home.path, "observe") } });
    try {
      const files = [join(home.path, "cache/new"), join(home.path, "missing/below/new")];
      const ran = await broker.run(`mkdir -p ${home.path}/missing/below; touch ${files.join(" ")}`);
      expect(ran).toMatchObject({ exit: 0, fs_diff: { world_only: files } });
      expect(files.filter((path) => existsSync(path))).toEqual([]);
    } finally {
      await broker.stop();
      home.remove();
    }
  });
});
