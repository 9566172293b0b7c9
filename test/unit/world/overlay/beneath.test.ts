import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Beneath } from "../../../../world/overlay/beneath.ts";

let root: string;
let project: string;
let beneath: Beneath;

beforeEach(async () => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "beneath-")));
  project = join(root, "project");
  mkdirSync(join(project, "a/b"), { recursive: true });
  mkdirSync(join(root, "outside"));
  writeFileSync(join(project, "a/b/f"), "inside");
  writeFileSync(join(root, "outside/f"), "outside");
  beneath = await Beneath.open(project);
});

afterEach(async () => {
  await beneath.close();
  rmSync(root, { recursive: true, force: true });
});

const PATIENCE_MS = 30_000;

describe("what lies below a folder", () => {
  test("is read to its end, and not when it is larger than wanted", async () => {
    expect(Buffer.from((await beneath.read("a/b/f", 6)) ?? []).toString()).toBe("inside");
    expect(await beneath.read("a/b/f", 5)).toBeUndefined();
    expect(await beneath.read("a/b/none", 5)).toBeUndefined();
  });

  test("is reached through no link: neither the last name nor one on the way", async () => {
    symlinkSync(join(root, "outside"), join(project, "way"));
    symlinkSync(join(root, "outside/f"), join(project, "leaf"));
    expect(await beneath.read("way/f", 99)).toBeUndefined();
    expect(await beneath.look("way/f")).toBeUndefined();
    expect(await beneath.entries("way")).toEqual([]);
    expect(await beneath.read("leaf", 99)).toBeUndefined();
    expect(Buffer.from((await beneath.target("leaf")) ?? []).toString()).toBe(join(root, "outside/f"));
  });

  test("stays what it is when a link takes the folder's place, the whole folder's too", async () => {
    expect(await beneath.look("a/b/f")).toBeDefined();
    renameSync(project, join(root, "moved"));
    symlinkSync(join(root, "outside"), project);
    expect(Buffer.from((await beneath.read("a/b/f", 99)) ?? []).toString()).toBe("inside");
    expect(await beneath.read("f", 99)).toBeUndefined();
  });

  test("is never outside, while folders are swapped for links in a loop", async () => {
    const swap = `while :; do mv "$0/a" "$0/x"; ln -s "$1" "$0/a"; rm "$0/a"; mv "$0/x" "$0/a"; done`;
    mkdirSync(join(root, "outside/b"));
    writeFileSync(join(root, "outside/b/f"), "outside");
    const swapper = spawn("sh", ["-c", swap, project, join(root, "outside")], {
      detached: true,
      stdio: ["ignore", "pipe", "ignore"],
    });
    try {
      let seen = 0;
      // On a busy machine whoever swaps may stand still with the link in place for all of the first ones.
      const until = Date.now() + PATIENCE_MS;
      for (let count = 0; count < 1500 || (seen === 0 && Date.now() < until); count += 1) {
        const fresh = await Beneath.open(project);
        const bytes = await fresh.read("a/b/f", 99);
        await fresh.close();
        if (bytes !== undefined) seen += 1;
        expect(Buffer.from(bytes ?? []).toString()).not.toBe("outside");
      }
      expect(seen).toBeGreaterThan(0);
    } finally {
      // With what it runs just then: `close` comes when all of them are gone, and nothing is moved any more.
      const closed = once(swapper.stdout.resume(), "close");
      if (swapper.pid !== undefined) process.kill(-swapper.pid, "SIGKILL");
      await closed;
    }
  });

  test("waits for no pipe, and is no file when it is one", async () => {
    execFileSync("mkfifo", [join(project, "pipe")]);
    expect(await beneath.read("pipe", 99)).toBeUndefined();
  });

  test("has names of any bytes", async () => {
    writeFileSync(Buffer.concat([Buffer.from(`${project}/`), Buffer.from("a\xff", "latin1")]), "x");
    expect((await beneath.entries(".")).map(({ name }) => name).sort()).toEqual(["a", "a\xff"]);
    expect(Buffer.from((await beneath.read("a\xff", 9)) ?? []).toString()).toBe("x");
  });
});
