import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

const POLICY = `id: default
name: Names
net:
  allowed: ["@npm", "@git", "*.example.org"]
`;

type Shown = {
  readonly presets: Readonly<
    Record<string, { readonly hosts: readonly string[]; readonly notes: readonly string[] }>
  >;
};

describe.each(actors())("net.allowed in the words of the CLI, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    broker.write(join(broker.project, "package.json"), "{}");
    broker.write(join(broker.project, ".npmrc"), "registry=https://evil.example/\n");
    const remotes = '[remote "origin"]\n\turl = git@code.example:team/app.git\n';
    broker.write(join(broker.project, ".git/config"), remotes);
    const nested = '[remote "origin"]\n\turl = https://evil.example/app.git\n';
    broker.write(join(broker.project, "vendor/.git/config"), nested);
  });
  afterAll(() => broker.stop());

  test("policy show says what a preset stands for: the host's registry, and the project's remotes", async () => {
    const { stdout } = await broker.cli(["policy", "show", "--json"]);
    const { presets } = JSON.parse(stdout) as Shown;
    expect(Object.keys(presets)).toEqual(["@npm", "@git"]);
    expect(presets["@git"]).toEqual({ hosts: ["code.example:22"], notes: [] });
    expect(presets["@npm"]?.hosts.join()).toMatch(/^[a-z0-9.-]+:\d+/);
    expect(stdout).not.toContain("evil.example");
    const text = (await broker.cli(["policy", "show"])).stdout;
    expect(text).toMatch(/^ {2}net\.allowed +@git = code\.example:22$/m);
    expect(text).toMatch(/^ {2}net\.allowed +\*\.example\.org$/m);
  });

  test("policy show says what no list means: no network when it is enforced, every host when it is observed", async () => {
    const lists = { absent: "", empty: "net: { allowed: [] }\n" };
    for (const [name, net] of Object.entries(lists))
      for (const [mode, words] of [
        ["enforce", /^ {2}net\.allowed +nothing: commands have no network$/m],
        [
          "observe",
          /^ {2}net\.allowed +nothing: in observe mode commands still reach every host, .* would_deny$/m,
        ],
      ] as const) {
        const file = join(broker.home, `policies/${name}-${mode}.yaml`);
        broker.write(file, `id: ${name}-${mode}\nname: None\nmode: ${mode}\n${net}`);
        expect((await broker.cli(["policy", "show", `${name}-${mode}`])).stdout).toMatch(words);
      }
  });

  test("policy show says that commands have the host's network", async () => {
    const file = join(broker.home, "policies/open.yaml");
    broker.write(file, "id: open\nname: Open\nmode: enforce\nworld: { isolate_network: false }\n");
    expect((await broker.cli(["policy", "show", "open"])).stdout).toMatch(
      /^ {2}net\.allowed +absent: commands have the host's network/m,
    );
  });

  test("a repository that somebody made inside the project has the remotes of the project", async () => {
    const cwd = join(broker.project, "vendor");
    const { stdout } = await broker.cli(["policy", "show", "--json"], { cwd });
    expect((JSON.parse(stdout) as Shown).presets["@git"]?.hosts).toEqual(["code.example:22"]);
  });

  test("policy validate names each bad entry with its line, and ends with 1", async () => {
    const file = join(broker.folder, "bad.yaml");
    broker.write(
      file,
      'id: bad\nname: B\nnet:\n  allowed:\n    - a.example\n    - "127.1"\n    - host.internal\n',
    );
    const { stdout, code } = await broker.cli(["policy", "validate", file]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/bad\.yaml:6:7: Cannot use '127\.1' in net\.allowed: /);
    expect(stdout).toMatch(
      /bad\.yaml:7:7: Cannot use 'host\.internal' in net\.allowed: .*host\.internal:5432/,
    );
    expect(stdout).not.toContain("a.example");
  });
});
