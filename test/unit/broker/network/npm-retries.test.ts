import { chmodSync, existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { HostPort } from "../../../../broker/network/names/names.ts";
import { netRules, type NetRules } from "../../../../broker/network/rules.ts";
import { readNet } from "../../../../broker/network/names/entries.ts";
import { NpmRetries } from "../../../../broker/network/npm-retries.ts";
import type { PresetHost } from "../../../../broker/network/presets/preset.ts";
import type { PolicyDocument } from "../../../../schemas/generated/types.ts";
import { FakeHost } from "../../../support/network/fake-host.ts";

let host: FakeHost;
beforeEach(() => {
  host = new FakeHost();
});
afterEach(() => host.remove());

/** An npm that is set to these URLs, in a package of its own; where that is. */
function npm(settings: Readonly<Record<string, unknown>>, name = "npm"): string {
  const folder = join(host.root, "tool");
  host.write(join(folder, "package.json"), JSON.stringify({ name }));
  host.program("npm-cli.js", `printf '%s' '${JSON.stringify(settings)}'`, join(folder, "bin"));
  host.link(join(folder, "bin/npm-cli.js"), join(host.bin, "npm"));
  return folder;
}

function rules(...allowed: readonly string[]): NetRules {
  const document: PolicyDocument = { id: "p", name: "P", net: { allowed: [...allowed] } };
  const { net } = readNet(document, { at: () => ({ file: "p.yaml", line: 1, column: 1 }) });
  const registry: HostPort = { host: "r.example", port: 443 };
  return netRules([{ net, presets: new Map([["@npm", { entries: [registry] }]]) }]);
}

async function asked(over: Partial<PresetHost> = {}): Promise<NpmRetries> {
  const retries = new NpmRetries(host.presets(over));
  await retries.ask();
  return retries;
}

const REGISTRY = { registry: "https://r.example/" };

describe("npm is told not to try again", () => {
  test("in the first world too, which waits for its answer", async () => {
    npm(REGISTRY);
    expect(await new NpmRetries(host.presets()).settingsFor(rules())).toHaveLength(1);
  });

  test("where all its registries are refused, by a file of its own package that nobody makes on the host", async () => {
    const folder = npm({ ...REGISTRY, "@a:registry": "http://10.1.2.3:81/" });
    const retries = await asked();
    const [file, ...more] = await retries.settingsFor(rules("other.example"));
    expect(more).toEqual([]);
    expect(file?.path).toBe(join(folder, "npmrc"));
    expect(file?.text).toMatch(/^; From substrate.*\n;.*\nfetch-retries=0\n$/);
    expect(existsSync(join(folder, "npmrc"))).toBe(false);
    for (const allowed of ["@npm", "r.example", "r.example:443", "*.example", "10.0.0.0/8:81", "10.1.2.3:81"])
      expect(await retries.settingsFor(rules(allowed)), allowed).toEqual([]);
    for (const allowed of ["r.example:80", "10.1.2.3", "10.2.0.0/16"])
      expect(await retries.settingsFor(rules(allowed)), allowed).toHaveLength(1);
  });

  test("before what the host's own file says, so that its lines win", async () => {
    host.write(join(npm(REGISTRY), "npmrc"), "fetch-retries=7\n");
    const [file] = await (await asked()).settingsFor(rules());
    expect(file?.text).toMatch(/fetch-retries=0\nfetch-retries=7\n$/);
  });
});

describe("npm is left as it is", () => {
  test("where it takes longer to answer than a world waits for, and told once it has answered", async () => {
    const folder = npm(REGISTRY);
    const answer = join(host.root, "answer");
    const body = `while [ ! -e '${answer}' ]; do /bin/sleep 0.05; done; printf '${JSON.stringify(REGISTRY)}'`;
    host.program("npm-cli.js", body, join(folder, "bin"));
    const retries = new NpmRetries(host.presets());
    expect(await retries.settingsFor(rules())).toEqual([]);
    host.write("answer", "");
    await retries.ask();
    expect(await retries.settingsFor(rules())).toHaveLength(1);
  });

  test("where nothing is refused, and npm is not even asked", async () => {
    npm(REGISTRY);
    expect(await new NpmRetries(host.presets()).settingsFor(null)).toEqual([]);
    expect(host.ran()).toEqual([]);
  });

  test.each<[string, () => unknown]>([
    ["it is not installed", () => undefined],
    ["its registry is this machine's own", () => npm({ registry: "http://localhost:4873/" })],
    ["it says nothing", () => npm({})],
    ["it is another program of that name", () => npm(REGISTRY, "launcher")],
    ["it is a program without a package", () => host.program("npm", `printf '${JSON.stringify(REGISTRY)}'`)],
    [
      "its own file is not for everybody to read",
      () => chmodSync(host.write(join(npm(REGISTRY), "npmrc"), "_auth=secret\n"), 0o600),
    ],
    ["its own file is large", () => host.write(join(npm(REGISTRY), "npmrc"), "x=1\n".repeat(20_000))],
    ["its own file is none of text", () => host.write(join(npm(REGISTRY), "npmrc"), "a\0b")],
  ])("when %s", async (_why, prepare) => {
    prepare();
    expect(await (await asked()).settingsFor(rules())).toEqual([]);
  });

  test("when commands in worlds may write it: then it is not even run", async () => {
    const folder = npm(REGISTRY);
    const retries = await asked({ mayBeWritten: (path) => path.startsWith(folder) });
    expect(await retries.settingsFor(rules())).toEqual([]);
    expect(host.ran()).toEqual([]);
  });
});

test("npm that changes its mind is believed once its settings' file has changed", async () => {
  npm(REGISTRY);
  const retries = await asked();
  const allowed = rules("new.example");
  expect(await retries.settingsFor(allowed)).toHaveLength(1);
  npm({ registry: "https://new.example/" });
  host.write("home/.npmrc", "registry=https://new.example/\n");
  await retries.ask();
  const [file] = await retries.settingsFor(allowed);
  expect(file?.text).not.toContain("fetch-retries");
});

test("of a package manager that reads the hidden file itself, a person hears that it saw no setting of it", async () => {
  npm(REGISTRY);
  const file = host.write("home/.npmrc", "registry=https://r.example/\n");
  const retries = await asked();
  const words = retries.unseenBy(new Set(["pnpm"]), [file]);
  expect(words).toBe(
    `'pnpm' did not see the settings of '${file}', which is hidden from commands because of its tokens; only npm is told its registries and most others. Lines in the project's own .npmrc count for all`,
  );
  expect(retries.unseenBy(new Set(), [file])).toBeUndefined();
  expect(retries.unseenBy(new Set(["pnpm"]), ["/elsewhere"])).toBeUndefined();
  host.write("home/.npmrc", "node-linker = hoisted\n");
  expect(retries.unseenBy(new Set(["pnpm"]), [file])).toBe(words);
  host.write(
    "home/.npmrc",
    "; registry=x\n//r.example/:_authToken=secret\n_auth=secret\nemail=p@example.org\n",
  );
  expect(retries.unseenBy(new Set(["pnpm"]), [file])).toBeUndefined();
});

test("a change of the user's file counts for the next world", async () => {
  npm(REGISTRY);
  host.write("home/.npmrc", "registry=https://r.example/\n");
  const retries = await asked();
  expect((await retries.settingsFor(null))[0]?.text).toContain("https://r.example/");
  npm({ registry: "https://new.example/" });
  host.write("home/.npmrc", "registry=https://new.example/\n");
  // Files are looked at once a second.
  await sleep(1100);
  expect((await retries.settingsFor(null))[0]?.text).toContain("https://new.example/");
});

describe("npm is told where its user's file has it look", () => {
  const USER = {
    registry: "https://ann:secret@r.example/npm/",
    "@a:registry": "https://a.example/",
    "@b:registry": "https://elsewhere.example/",
  };

  test("and what to install and build with: lists, and its home by name, but no other variable", async () => {
    npm({ omit: ["dev", "optional"], include: [], nodedir: "/usr", prefix: "/home/ann/.g", tag: "secret" });
    host.write(
      "home/.npmrc",
      "omit[]=dev\nomit[]=optional\ninclude=\nnodedir=/usr\nprefix=${HOME}/.g\ntag=${TOKEN}\n",
    );
    const [file] = await (await asked()).settingsFor(null);
    expect(file?.text.replace(/^;.*\n/, "")).toBe(
      "omit[]=dev\nomit[]=optional\nnodedir=/usr\nprefix=/home/ann/.g\n",
    );
  });

  test("by registry and scope, without credentials, also where nothing is refused", async () => {
    npm(USER);
    host.write(
      "home/.npmrc",
      "//r.example/npm/:_authToken=npm_x\n registry = https://ann:secret@r.example/npm/\n@a:registry=https://a.example/\n",
    );
    const retries = await asked();
    const lines = "registry=https://r.example/npm/\n@a:registry=https://a.example/\n";
    const told = /^; From substrate\..*\n/;
    const [observed] = await retries.settingsFor(null);
    expect(observed?.text.replace(told, "")).toBe(lines);
    const [allowed] = await retries.settingsFor(rules("@npm"));
    expect(allowed?.text.replace(told, "")).toBe(lines);
    const [refused] = await retries.settingsFor(rules());
    expect(refused?.text).toMatch(/fetch-retries=0\n; From substrate\./);
    expect(refused?.text.endsWith(lines)).toBe(true);
  });

  test.each([
    ["in a query", "https://r.example/npm/?auth=QUERYTOKEN1", "registry=https://r.example/npm/\n"],
    ["in a path", "https://r.example/basic/PATHTOKEN123456/npm/", undefined],
    ["in a path as a UUID", "https://r.example/0b6e2a4c-11aa-4c3d-9e57-0123456789ab/npm/", undefined],
    [
      "of no kind",
      "https://r.example/artifactory/api/npm/npm-local-2024/",
      "registry=https://r.example/artifactory/api/npm/npm-local-2024/\n",
    ],
  ])("and without a token %s", async (_where, registry, shown) => {
    npm({ registry });
    host.write("home/.npmrc", `registry=${registry}\n`);
    const [file] = await (await asked()).settingsFor(null);
    expect(file?.text.replace(/^; From substrate\..*\n/, "")).toBe(shown);
  });

  test("and not one that a variable is in", async () => {
    npm({ registry: "https://secret.example/" });
    host.write("home/.npmrc", "registry=https://${HIDDEN}.example/\n");
    expect(await (await asked()).settingsFor(null)).toEqual([]);
  });

  test("and of nothing that another file says: commands see that", async () => {
    npm(USER);
    host.write("home/.npmrc", "fund=false\n//r.example/:_authToken=npm_x\n");
    const retries = await asked();
    expect(await retries.settingsFor(rules("@npm", "*.example"))).toEqual([]);
    expect(await retries.settingsFor(null)).toEqual([]);
  });

  test("and not where commands in worlds may write that file", async () => {
    npm(USER);
    const file = host.write("home/.npmrc", "registry=https://r.example/\n");
    const retries = await asked({ mayBeWritten: (path) => path === file });
    expect(await retries.settingsFor(null)).toEqual([]);
  });
});

test("npm is told the user's other settings too, and none that may hold a secret or would expand", async () => {
  npm({
    ...{ prefix: "/home/ann/.npm-global", "save-exact": "true", "script-shell": "$(id)", message: "a\nb=c" },
    ...{ _auth: "c2VjcmV0", "https-proxy": "http://ann:secret@proxy.example/", cache: "/x", tag: "next" },
  });
  const text = [
    ...["prefix = ~/.npm-global", "save-exact=true", "script-shell=x", "message=x", "_auth=c2VjcmV0"],
    ...["https-proxy=http://ann:secret@proxy.example/", "cache=/x", "tag=${TAG}", "prefix=/twice"],
  ];
  host.write("home/.npmrc", `${text.join("\n")}\n`);
  const [file] = await (await asked()).settingsFor(null);
  expect(file?.text).toMatch(/^; From substrate\..*\nprefix=\/home\/ann\/\.npm-global\nsave-exact=true\n$/);
});
