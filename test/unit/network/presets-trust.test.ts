import { symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { PresetName } from "../../../broker/network/names/entries.ts";
import { FakeHost } from "./fake-host.ts";

let host: FakeHost;
beforeEach(() => {
  host = new FakeHost();
});
afterEach(() => host.remove());

const entriesOf = (name: PresetName, presets = host.presets()) => host.entriesOf(name, presets);
const notesOf = (name: PresetName, presets = host.presets()) => host.notesOf(name, presets);

describe("what commands in worlds may write is not believed:", () => {
  const urls = "echo https://evil.example/";

  test("a program there is not run, nor one that a link leads to; the next in PATH is", async () => {
    const open = join(host.root, "open");
    host.program("gem", urls, open);
    const mayBeWritten = (path: string) => path === open || dirname(path) === open;
    const alone = host.presets({ environment: { PATH: `${open}:relative:${host.bin}` }, mayBeWritten });
    expect(await entriesOf("@gem", alone)).toEqual([]);
    expect(await notesOf("@gem", alone)).toMatch(/'.*\/open\/gem' was not run/);
    symlinkSync(join(open, "gem"), join(host.bin, "gem"));
    expect(await entriesOf("@gem", host.presets({ mayBeWritten }))).toEqual([]);
    expect(host.ran()).toEqual([]);
    host.program("gem", "echo https://good.example/", join(host.root, "bin2"));
    const path = [open, host.bin, join(host.root, "bin2")].join(":");
    expect(await entriesOf("@gem", host.presets({ environment: { PATH: path }, mayBeWritten }))).toEqual([
      "good.example:443",
    ]);
  });

  test("a tool finds no program of a project on PATH", async () => {
    const modules = join(host.root, "x/node_modules/.bin");
    host.program("helper", urls, modules);
    host.program("gem", "helper; echo https://good.example/");
    const presets = host.presets({ environment: { PATH: `${modules}:${host.bin}` } });
    expect(await entriesOf("@gem", presets)).toEqual(["good.example:443"]);
  });

  test("settings there, or that a link leads to, count for nothing", async () => {
    host.program("gem", urls);
    const gemrc = join(host.home, ".gemrc");
    expect(await notesOf("@gem", host.presets({ mayBeWritten: (path) => path === gemrc }))).toMatch(
      /ignored '.*\/\.gemrc': commands in worlds may write it/,
    );
    const kept = host.write("home/dotfiles/gemrc", "");
    symlinkSync(kept, gemrc);
    expect(await entriesOf("@gem", host.presets({ mayBeWritten: (path) => path === kept }))).toEqual([]);
    expect(host.ran()).toEqual([]);
  });
});

describe("an answer is kept", () => {
  test("while the settings stay as they are, and is asked for again when they change", async () => {
    host.program("gem", 'while read -r line; do echo "$line"; done < $HOME/.gemrc');
    host.write("home/.gemrc", "https://one.example/");
    const presets = host.presets();
    for (let times = 0; times < 3; times += 1) expect(await entriesOf("@gem", presets)).toEqual([]);
    expect(host.ran().length).toBe(1);
    host.write("home/.gemrc", "https://one.example/\n");
    expect(await entriesOf("@gem", presets)).toEqual(["one.example:443"]);
    expect(host.ran().length).toBe(2);
  });

  test("for five minutes; then the old one is given once more while the tool is asked", async () => {
    host.program("gem", `read -r url < ${host.root}/url; echo "$url"`);
    host.write("url", "https://one.example/\n");
    const presets = host.presets();
    expect(await entriesOf("@gem", presets)).toEqual(["one.example:443"]);
    host.write("url", "https://two.example/\n");
    host.now = 299_000;
    expect(await entriesOf("@gem", presets)).toEqual(["one.example:443"]);
    host.now = 301_000;
    expect(await entriesOf("@gem", presets)).toEqual(["one.example:443"]);
    await expect.poll(() => entriesOf("@gem", presets)).toEqual(["two.example:443"]);
    expect(host.ran().length).toBe(2);
  });

  test("for many who ask at once, from one run", async () => {
    host.program("gem", "echo https://one.example/");
    const presets = host.presets();
    await Promise.all(Array.from({ length: 20 }, () => entriesOf("@gem", presets)));
    expect(host.ran()).toEqual(["gem sources --list"]);
  });
});
