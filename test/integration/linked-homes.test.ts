import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

const OBSERVE = `
id: default
name: Stray writes stay in the world
mode: observe
fs: { deny_read: ["$HOME/.ssh"] }
`;

const HOLD = `
id: hold
name: Changes are held
mode: enforce
selectable: true
commands: { isolated: ["*"] }
`;

describe.each(actors())("a broker whose folders are behind symbolic links, as $kind", (actor) => {
  test("runs commands, keeps its folder from them, and finds the home's denied names", async () => {
    const folder = mkdtempSync(join(actor.uid === 0 ? "/opt" : actor.home, "sb-linked-"));
    for (const path of ["disk/state", "disk/ann/.ssh", "disk/ann/work/app/.git"])
      mkdirSync(join(folder, path), { recursive: true });
    writeFileSync(join(folder, "disk/ann/.ssh/id"), "private key\n");
    symlinkSync("disk/state", join(folder, "home"));
    symlinkSync("disk", join(folder, "homes"));
    spawnSync("chown", ["-Rh", `${actor.uid}:${actor.gid}`, folder]);
    const environment = { HOME: join(folder, "homes/ann") };
    const broker = await TestBroker.start(actor, {
      folder,
      environment,
      policies: { default: OBSERVE, hold: HOLD },
    });
    try {
      const state = join(realpathSync(folder), "disk/state");
      const file = JSON.parse(readFileSync(join(folder, "home/run/broker.json"), "utf8")) as {
        sockets: unknown;
      };
      expect(JSON.stringify(file.sockets)).toContain(`${state}/sock/agent.sock`);

      const cwd = join(folder, "homes/ann/work/app");
      const looks = [
        `cat ${folder}/homes/ann/.ssh/id`,
        'cat "$HOME/.ssh/id"',
        `ls ${state}`,
        `ls ${folder}/home/`,
      ];
      const ran = await broker.run({ cwd, cmd: `touch here; touch ../stray; ${looks.join("; ")}; true` });
      expect(ran).toMatchObject({ exit: 0, stdout: "" });
      expect(existsSync(join(folder, "disk/ann/work/app/here"))).toBe(true);
      expect(existsSync(join(folder, "disk/ann/work/stray"))).toBe(false);

      expect(await broker.run({ cwd, profile: "hold", cmd: "touch held" })).toMatchObject({
        exit: 0,
        fs_diff: { held: true },
      });
      for (const path of [
        join(folder, "homes/ann"),
        join(folder, "homes/ann/.ssh"),
        `${folder}/home/policies`,
      ])
        expect(await broker.refused({ cwd: path, cmd: "true" }), path).toMatchObject({
          code: "project_not_allowed",
        });
    } finally {
      await broker.stop();
    }
  });
});
