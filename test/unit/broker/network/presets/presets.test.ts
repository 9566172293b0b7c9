import { mkdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { PresetName } from "../../../../../broker/network/names/entries.ts";
import { HostTools } from "../../../../../broker/network/presets/host-tools.ts";
import { FakeHost } from "../../../../support/network/fake-host.ts";

let host: FakeHost;
beforeEach(() => {
  host = new FakeHost();
});
afterEach(() => host.remove());

const entriesOf = (name: PresetName, presets = host.presets()) => host.entriesOf(name, presets);
const notesOf = (name: PresetName, presets = host.presets()) => host.notesOf(name, presets);

describe("@npm, asked of the real npm,", () => {
  const environment = () => ({
    PATH: process.env["PATH"],
    npm_config_local_prefix: host.project,
    INIT_CWD: host.project,
    PWD: host.project,
  });

  test("is the operator's registry and those of scopes, and never what a project's .npmrc says", async () => {
    host.write(
      "home/.npmrc",
      "registry=https://Registry.Example:8443/npm/\n@corp:registry=http://corp.example/\n",
    );
    host.write("home/project/package.json", "{}");
    host.write(
      "home/project/.npmrc",
      "registry=https://evil.example/\n@evil:registry=https://evil.example/\n",
    );
    const entries = await entriesOf("@npm", host.presets({ environment: environment() }));
    expect(entries.toSorted()).toEqual(["corp.example:80", "registry.example:8443"]);
  });

  test("is npm's own default without settings", async () => {
    const { entries, notes } = await host
      .presets({ environment: environment() })
      .expand("@npm", host.project);
    expect(notes).toEqual([]);
    expect(entries).toMatchObject([{ port: 443 }]);
  });
});

describe("a tool's answer becomes hosts and ports:", () => {
  test.each<[PresetName, Record<string, string>, readonly string[]]>([
    [
      "@npm",
      {
        npm: `printf '{"registry":"https://r.example/","@a:registry":"http://s.example:81/","x":"https://no.example"}'`,
      },
      ["r.example:443", "s.example:81"],
    ],
    [
      "@pip",
      {
        python3: `case "$*" in *config*) printf "global.index-url='https://u:p@pip.example/simple'\\n:env:.extra-index-url='http://a.example/s file:///x https://b.example:8080'\\n";; esac`,
      },
      ["pip.example:443", "a.example:80", "b.example:8080"],
    ],
    [
      "@pip",
      {
        python3: `case "$*" in *config*) printf "global.find-links='/opt/wheels'\\n";; *) printf 'https://own.example/simple\\nhttps://files.example\\n';; esac`,
      },
      ["own.example:443", "files.example:443"],
    ],
    [
      "@go",
      {
        go: `printf '{"GOPROXY":"https://p.example|http://q.example:8081,direct","GOSUMDB":"sums.example+0123+key"}'`,
      },
      ["p.example:443", "q.example:8081", "sums.example:443"],
    ],
    [
      "@go",
      { go: `printf '{"GOPROXY":"off","GOSUMDB":"sums.example https://mirror.example/sums"}'` },
      ["mirror.example:443"],
    ],
    [
      "@gem",
      { gem: `printf '*** CURRENT SOURCES ***\\n\\nhttps://gems.example/\\nhttp://g.example:9292\\n'` },
      ["gems.example:443", "g.example:9292"],
    ],
    [
      "@apt",
      {
        "apt-get": `printf "'http://d.example/debian/InRelease' d.example_InRelease 0 \\n'http://d.example/debian/Packages.xz' d 0\\n'mirror+https://m.example/x' m 0\\n'file:/srv/apt/InRelease' f 0\\n"`,
      },
      ["d.example:80", "m.example:443"],
    ],
  ])("%s", async (name, programs, expected) => {
    for (const [program, body] of Object.entries(programs)) host.program(program, body);
    expect(await entriesOf(name)).toEqual(expected);
  });

  test("@cargo: the replaced index and other registries, with where they keep crates", async () => {
    host.program(
      "cargo",
      `case "$*" in
      *"config get"*) printf '{"source":{"crates-io":{"replace-with":"m"},"m":{"registry":"sparse+https://m.example/index/"}},"registries":{"corp":{"index":"https://git.example/index.git"}}}' ;;
      *"--index sparse+https://m.example/index/"*) /bin/mkdir -p "$CARGO_HOME/registry/index/m"; printf '{"dl":"https://dl.example/{crate}","api":null}' > "$CARGO_HOME/registry/index/m/config.json" ;;
      *) exit 101 ;; esac`,
    );
    expect(await entriesOf("@cargo")).toEqual(["m.example:443", "git.example:443", "dl.example:443"]);
    expect(await notesOf("@cargo")).toMatch(
      /'https:\/\/git\.example\/index\.git' is unknown: it is not a sparse index/,
    );
  });

  test("@cargo without settings: what cargo says that it would have asked", async () => {
    host.program(
      "cargo",
      `case "$*" in *"config get"*) printf '{}' ;; *--index*) exit 101 ;;
      *) printf 'failed to download from \`https://own.example/config.json\`' >&2; exit 101 ;; esac`,
    );
    expect(await entriesOf("@cargo")).toEqual(["own.example:443"]);
    expect(await notesOf("@cargo")).toMatch(/it did not answer/);
  });

  test("@gem: rubygems.org with the host of its index, and another source alone", async () => {
    host.program("gem", "printf 'https://rubygems.org/\\nhttps://gems.example/\\n'");
    expect(await entriesOf("@gem")).toEqual([
      "rubygems.org:443",
      "gems.example:443",
      "index.rubygems.org:443",
    ]);
    host.program("gem", "echo https://gems.example/");
    expect(await entriesOf("@gem")).toEqual(["gems.example:443"]);
  });

  test("what a world cannot reach is left out, and said", async () => {
    host.program(
      "gem",
      `printf 'http://localhost:4873/\\nhttp://127.1/\\nhttp://169.254.169.254/\\nhttp://[::1]:8/\\nhttp://10.1.2.3/\\nhttp://a..b/\\n'`,
    );
    expect(await entriesOf("@gem")).toEqual(["10.1.2.3:80"]);
    const notes = await notesOf("@gem");
    for (const said of [
      "'localhost' is the host's own",
      "'host.internal:4873'",
      "'127.0.0.1'",
      "'169.254.169.254'",
      "no IPv6",
    ])
      expect(notes).toContain(said);
  });
});

describe("a tool that gives no answer gives no hosts, and says why:", () => {
  test.each<[string, string | undefined, RegExp]>([
    ["it is not there", undefined, /^@gem: gem is not installed$/],
    ["it fails", "echo https://r.example/; exit 1", /^@gem: gem does not report its settings/],
    [
      "it says too much",
      "exec /usr/bin/head -c 2000000 /dev/zero",
      /^@gem: '.*\/gem' printed more than 1048576 bytes$/,
    ],
  ])("%s", async (_what, body, expected) => {
    if (body !== undefined) host.program("gem", body);
    expect(await entriesOf("@gem")).toEqual([]);
    expect(await notesOf("@gem")).toMatch(expected);
  });

  test("it does not end, or leaves a child that holds its output", async () => {
    host.program("hangs", "exec /bin/sleep 20");
    host.program("leaves", "/bin/sleep 3 & echo started");
    const tools = new HostTools(host.presetHost(), 300);
    const before = Date.now();
    expect(await tools.ask("hangs", [])).toMatch(/did not answer within 0\.3 s/);
    expect(await tools.ask("leaves", [])).toMatch(/did not answer/);
    expect(Date.now() - before).toBeLessThan(2500);
  });
});

test("a folder where a program is wanted is none", async () => {
  mkdirSync(join(host.bin, "gem"));
  expect(await notesOf("@gem")).toMatch(/not installed/);
});

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
