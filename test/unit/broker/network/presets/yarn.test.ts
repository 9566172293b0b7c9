import { rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeHost } from "../../../../support/network/fake-host.ts";

let host: FakeHost;
beforeEach(() => {
  host = new FakeHost();
  host.program("npm", `printf '{"registry":"https://npm.example/"}'`);
});
afterEach(() => host.remove());

describe("@npm in a project that uses yarn", () => {
  test.each([
    ["a lock file", "yarn.lock", ""],
    ["settings", ".yarnrc.yml", "nodeLinker: node-modules\n"],
    ["settings of version 1", ".yarnrc", ""],
    ["its package.json", "package.json", '{ "packageManager": "yarn@4.5.0" }'],
  ])("has yarn's default registry besides, by %s", async (_how, name, text) => {
    host.write(join(host.project, name), text);
    const presets = host.presets();
    expect(await host.entriesOf("@npm", presets)).toEqual(["npm.example:443", "registry.yarnpkg.com:443"]);
    rmSync(join(host.project, name));
    expect(await host.entriesOf("@npm", presets)).toEqual(["npm.example:443"]);
  });

  test("has nothing by a link in place of its package.json, which could lead to any file or pipe", async () => {
    const elsewhere = host.write("home/package.json", '{ "packageManager": "yarn@4.5.0" }');
    symlinkSync(elsewhere, join(host.project, "package.json"));
    expect(await host.entriesOf("@npm", host.presets())).toEqual(["npm.example:443"]);
  });

  test("has what the user has set for yarn, scopes too, and then no default", async () => {
    host.write(join(host.project, "yarn.lock"), "");
    const presets = host.presets();
    expect(await host.entriesOf("@npm", presets)).toContain("registry.yarnpkg.com:443");
    host.write(
      "home/.yarnrc.yml",
      'npmRegistryServer: "https://u:p@y.example:8443/npm"\nnpmScopes:\n  a:\n    npmRegistryServer: http://a.example\n  b: { npmAuthToken: x }\n',
    );
    const entries = ["npm.example:443", "y.example:8443", "a.example:80"];
    expect(await host.entriesOf("@npm", presets)).toEqual(entries);
    rmSync(join(host.home, ".yarnrc.yml"));
    host.write("home/.yarnrc", '# yarn 1\nregistry "https://one.example/"\n');
    expect(await host.entriesOf("@npm", presets)).toEqual(["npm.example:443", "one.example:443"]);
  });

  test("has nothing of the project's own settings, which commands write", async () => {
    host.write(join(host.project, ".yarnrc.yml"), "npmRegistryServer: https://evil.example\n");
    host.write(join(host.project, ".yarnrc"), 'registry "https://evil.example/"\n');
    expect(await host.entriesOf("@npm", host.presets())).toEqual([
      "npm.example:443",
      "registry.yarnpkg.com:443",
    ]);
  });

  test("says what it could not read, and believes no file that commands may write", async () => {
    host.write(join(host.project, "yarn.lock"), "");
    host.write("home/.yarnrc.yml", "npmRegistryServer: [\n");
    expect(await host.notesOf("@npm", host.presets())).toMatch(/'.*\/\.yarnrc\.yml' cannot be read as YAML/);
    const file = host.write("home/.yarnrc.yml", "npmRegistryServer: https://y.example\n");
    const open = host.presets({ mayBeWritten: (path) => path === file });
    expect(await host.entriesOf("@npm", open)).toEqual(["npm.example:443"]);
    expect(await host.notesOf("@npm", open)).toContain(`ignored '${file}': commands in worlds may write it`);
    host.write("home/.yarnrc.yml", 'npmRegistryServer: "${MIRROR}"\n');
    expect(await host.notesOf("@npm", host.presets())).toContain(
      "left out a registry of yarn that comes from a variable",
    );
  });

  test("is the same answer while nothing changes, so that rules are not made anew", async () => {
    host.write(join(host.project, "yarn.lock"), "");
    const presets = host.presets();
    const first = await presets.expand("@npm", host.project);
    expect(await presets.expand("@npm", host.project)).toBe(first);
    host.write("home/.yarnrc.yml", "npmRegistryServer: https://y.example\n");
    expect(await presets.expand("@npm", host.project)).not.toBe(first);
  });

  test("does not run yarn", async () => {
    host.program("yarn", "echo https://asked.example");
    host.write(join(host.project, "yarn.lock"), "");
    await host.entriesOf("@npm", host.presets());
    expect(host.ran().filter((line) => line.startsWith("yarn"))).toEqual([]);
  });
});

test("@npm in another project is npm's alone, and so it is where nobody has a project", async () => {
  host.write(join(host.project, "package.json"), '{ "packageManager": "pnpm@9.0.0" }');
  expect(await host.entriesOf("@npm", host.presets())).toEqual(["npm.example:443"]);
  expect(await host.entriesOf("@npm", host.presets(), "/")).toEqual(["npm.example:443"]);
});
