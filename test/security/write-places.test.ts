/** Making a folder of `fs.write` never makes anything elsewhere, whoever else works on its way. */
import { spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openPlace, placesToOpen } from "../../broker/worlds/write-places.ts";
import { needs } from "../support/run/needs.ts";

const UID = process.getuid?.() ?? 0;

describe("a missing folder of fs.write", () => {
  let folder: string;
  beforeEach(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "places-")));
    mkdirSync(join(folder, "parent"));
    mkdirSync(join(folder, "victim"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const at = (name: string): string => join(folder, name);

  test("is made below its parent, which is the twin of every refusal here", () => {
    expect(openPlace(at("parent/new"), UID)).toMatchObject({
      identity: expect.stringMatching(/^\d+:\d+$/),
      why: null,
    });
    expect(existsSync(at("parent/new"))).toBe(true);
  });

  test("is not made through a link on its way, nor where a link or a file stands", () => {
    symlinkSync(at("victim"), at("link"));
    mkdirSync(at("victim/deep"));
    symlinkSync(at("victim/elsewhere"), at("parent/dangling"));
    writeFileSync(at("parent/file"), "");
    for (const name of [
      "link/new",
      "link/deep/new",
      "parent/dangling",
      "parent/file",
      "parent/file/new",
      "none/new",
    ])
      expect([name, openPlace(at(name), UID)]).toMatchObject([
        name,
        { identity: null, why: expect.stringMatching(/./) },
      ]);
    expect(readdirSync(at("victim"))).toEqual(["deep"]);
    expect(readdirSync(at("victim/deep"))).toEqual([]);
    expect(existsSync(at("none"))).toBe(false);
  });

  test("is not made below a folder of another user", () => {
    expect(openPlace(at("parent/new"), UID + 1)).toMatchObject({
      identity: null,
      why: expect.stringContaining("belongs to user"),
    });
    expect(existsSync(at("parent/new"))).toBe(false);
  });

  test("is not made elsewhere while its parent is swapped for a link, again and again", async () => {
    needs("python3");
    // The kernel swaps both names at once: there is always one of them.
    const program = `import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
one, other = sys.argv[1].encode(), sys.argv[2].encode()
print("on", flush=True)
while True: libc.renameat2(-100, one, -100, other, 2)`;
    symlinkSync(at("victim"), at("swapped"));
    const swapping = spawn("python3", ["-c", program, at("parent"), at("swapped")], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      await new Promise((resolve) => swapping.stdout.once("data", resolve));
      let made = 0;
      for (let round = 0; round < 2000; round += 1)
        if (openPlace(at(`parent/new-${round}`), UID).identity !== null) made += 1;
      expect(readdirSync(at("victim"))).toEqual([]);
      expect(made).toBeGreaterThan(0);
    } finally {
      swapping.kill("SIGKILL");
      await new Promise((resolve) => swapping.once("exit", resolve));
    }
  });

  test("is told apart from another folder that takes its name", () => {
    const first = openPlace(at("parent/new"), UID);
    renameSync(at("parent/new"), at("parent/old"));
    const second = openPlace(at("parent/new"), UID);
    expect(second.identity).not.toBe(first.identity);
    expect(openPlace(at("parent/new"), UID)).toEqual(second);
  });
});

test("only what a world would bind by itself is opened: nothing hidden, denied, private, or inside another place", () => {
  const files = {
    read: ["/**"],
    denyRead: ["/home/ann/.ssh"],
    write: [
      "/home/ann/work/**",
      "/home/ann/work/build/**",
      "/home/ann/out/**",
      "/home/ann/out/deep/**",
      "/home/ann/file",
      "/home/ann/.substrate/x/**",
      "/home/ann/.ssh/x/**",
      "/home/ann/sealed/**",
      "/tmp/**",
      "/tmp/x/**",
      "/run/x/**",
      "/proc/x/**",
      "/dev/shm/x/**",
    ],
    denyWrite: ["/home/ann/sealed"],
    seal: [],
  };
  const site = { project: "/home/ann/work", files, hidden: ["/home/ann/.substrate"], sealed: [] };
  expect(placesToOpen(site)).toEqual(["/home/ann/out"]);
  const narrow = { ...files, write: ["/home/ann/work/build/**"] };
  expect(placesToOpen({ ...site, files: narrow })).toEqual(["/home/ann/work/build"]);
  expect(placesToOpen({ ...site, files: { ...files, write: ["/**", "/home/ann/out/**"] } })).toEqual([]);
});
