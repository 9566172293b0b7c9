import { existsSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { everyActor } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { HomeFolder } from "../support/users/folders.ts";
import { installationIn } from "../support/broker/installation.ts";
import { skip } from "../support/run/skips.ts";

/** What the person's next `npm start` runs or builds, each a folder or a file. */
const RUN_NEXT = [
  ".build",
  "api/bin",
  "api/setup",
  "broker",
  "node_modules",
  "policies",
  "schemas",
  "shim",
  "world/native",
] as const;

describe.each(everyActor().slice(0, 1))("the running installation, as $kind", (actor) => {
  test("is read-only when it is itself the project, and cannot be moved away; the rest of it can be written", async () => {
    const root = realpathSync(join(import.meta.dirname, "../.."));
    if (statSync(root).uid !== actor.uid) {
      skip(`the installation as a project, as ${actor.kind}`, "the checkout belongs to another user");
      return;
    }
    const broker = await TestBroker.start(actor);
    const probe = `substrate-test-${process.pid}`;
    const start = readFileSync(join(root, "api/setup/start.mjs"), "utf8");
    try {
      const attempt = `for d in ${RUN_NEXT.join(" ")}; do echo x > $d/${probe}; done; echo evil >> api/setup/start.mjs; echo evil >> package.json; mv api api-moved; mv .build build-moved; echo x > ${probe}; echo x > test/${probe}`;
      await broker.run({ cmd: attempt, cwd: root });
      for (const folder of RUN_NEXT)
        expect([folder, existsSync(join(root, folder, probe))]).toEqual([folder, false]);
      expect(existsSync(join(root, "api/bin/substrate.mjs"))).toBe(true);
      expect(readFileSync(join(root, "api/setup/start.mjs"), "utf8")).toBe(start);
      expect(JSON.parse(readFileSync(join(root, "package.json"), "utf8"))).toMatchObject({
        name: "substrate",
      });
      expect([probe, `test/${probe}`].filter((name) => !existsSync(join(root, name)))).toEqual([]);
    } finally {
      for (const folder of [".", "test", ...RUN_NEXT]) rmSync(join(root, folder, probe), { force: true });
      await broker.stop();
    }
  });
});

describe.each(everyActor())("an installation in the home folder, as $kind", (actor) => {
  test("opens nothing when a policy lets a single file be written, and that file is written", async () => {
    const folder = new HomeFolder(actor);
    const letter = folder.write("letter", "old\n");
    const write = JSON.stringify(["$PROJECT/**", letter]);
    const broker = await TestBroker.start(actor, {
      installation: installationIn(folder.path, actor),
      policies: { default: `id: default\nname: x\nmode: enforce\nfs: { write: ${write} }\n` },
    });
    try {
      const places = [folder.path, actor.home].map((path) => `${path}/stray-${process.pid}`);
      const cmd = [`echo new > ${letter}`, ...places.map((path) => `echo x > ${path}`), "true"].join("; ");
      expect(await broker.run(cmd)).toMatchObject({ exit: 0 });
      expect(places.filter((path) => existsSync(path))).toEqual([]);
      expect(readdirSync(folder.path).sort()).toEqual(["letter", "node", "substrate"]);
      expect(readFileSync(letter, "utf8")).toBe("new\n");
    } finally {
      await broker.stop();
      for (const path of [folder.path, actor.home]) rmSync(`${path}/stray-${process.pid}`, { force: true });
      folder.remove();
    }
  });

  test("keeps the folders above it in place where a policy opens them; a command's own folders are moved", async () => {
    const folder = new HomeFolder(actor);
    const above = dirname(folder.write("tools/notes", ""));
    const broker = await TestBroker.start(actor, {
      installation: installationIn(join(above, "lib"), actor),
      policies: { default: opening(folder.path) },
    });
    try {
      const attempts = ["lib", "../tools"].map((name) => `mv ${name} ${name}-away; echo $?`);
      const twins = ["mkdir own", "mkdir own/.git", "mv own ours", "git init -q made", "mv made moved"];
      const ran = await broker.run(
        `cd ${above} && { ${attempts.join("; ")}; ${twins.join(" && ")}; echo $?; }`,
      );
      expect(ran.stdout.trim().split("\n")).toEqual(["1", "1", "0"]);
      expect(JSON.stringify(ran)).toContain(`'${above}/lib' was not written`);
      expect(readdirSync(above).sort()).toEqual(["lib", "moved", "notes", "ours"]);
      expect(existsSync(join(above, "lib/substrate/api/bin/substrate.mjs"))).toBe(true);
    } finally {
      await broker.stop();
      folder.remove();
    }
  });

  test("is read-only as a whole where a policy opens the folder that it lies in; what lies beside it is written", async () => {
    const folder = new HomeFolder(actor);
    const broker = await TestBroker.start(actor, {
      installation: installationIn(folder.path, actor),
      policies: { default: opening(folder.path) },
    });
    const root = join(folder.path, "substrate");
    try {
      await broker.run(
        `for d in . .build api broker; do echo x > ${root}/$d/stray; done; mv ${root} ${root}-moved; echo x > ${folder.path}/beside`,
      );
      for (const name of [".", ".build", "api", "broker"])
        expect([name, existsSync(join(root, name, "stray"))]).toEqual([name, false]);
      expect(existsSync(join(root, "api/bin/substrate.mjs"))).toBe(true);
      expect(existsSync(join(folder.path, "beside"))).toBe(true);
    } finally {
      await broker.stop();
      folder.remove();
    }
  });
});

function opening(folder: string): string {
  return `id: default\nname: x\nmode: enforce\nfs: { write: ["$PROJECT/**", "${folder}/**"] }\n`;
}
