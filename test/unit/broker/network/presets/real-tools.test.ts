import { spawnSync } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { skip } from "../../../../support/run/skips.ts";
import { FakeHost } from "../../../../support/network/fake-host.ts";

let host: FakeHost;
beforeEach(() => {
  host = new FakeHost();
});
afterEach(() => host.remove());

/** The tool chains of whoever runs the suite, which are only read: its home folder is another one. */
const rustup = process.env["RUSTUP_HOME"] ?? join(userInfo().homedir, ".rustup");

function answers(program: string, words: readonly string[]): boolean {
  const env = { ...process.env, RUSTUP_HOME: rustup };
  return spawnSync(program, words, { cwd: "/", stdio: "ignore", env }).status === 0;
}

/** Cargo's change log: "sparse" registries are stable since 1.68. */
const SPARSE_SINCE = 68;

function cargoMinor(): number | undefined {
  const env = { ...process.env, RUSTUP_HOME: rustup };
  const { stdout, status } = spawnSync("cargo", ["--version"], { cwd: "/", encoding: "utf8", env });
  const minor = /^cargo 1\.(\d+)/.exec(stdout ?? "")?.[1];
  return status === 0 && minor !== undefined ? Number(minor) : undefined;
}

describe("asked of the real tool,", () => {
  test("@cargo: an index says where its crates lie, also when it stands in for crates.io", async () => {
    const minor = cargoMinor();
    if (minor === undefined) return skip("@cargo with the real cargo", "no cargo");
    if (minor < SPARSE_SINCE)
      return skip("@cargo with the real cargo", `cargo 1.${minor} knows no sparse registries`);
    const server = createServer((_request, response) => {
      response.end(JSON.stringify({ dl: "https://crates.example/dl", api: "https://api.example:8443" }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const index = `sparse+http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    host.write(
      "home/.cargo/config.toml",
      `[source.crates-io]\nreplace-with = "m"\n[source.m]\nregistry = "${index}"\n`,
    );
    const presets = host.presets({ environment: { PATH: process.env["PATH"], RUSTUP_HOME: rustup } });
    const entries = await host.entriesOf("@cargo", presets);
    server.close();
    expect(entries).toEqual(["crates.example:443", "api.example:8443"]);
    expect(await host.notesOf("@cargo", presets)).toMatch(/'127\.0\.0\.1' is the host's own/);
  });

  test("@pip: the operator's indexes, each of them", async () => {
    if (!answers("python3", ["-m", "pip", "--version"])) return skip("@pip with the real pip", "no pip");
    const environment = { PATH: process.env["PATH"], PIP_CONFIG_FILE: join(host.root, "pip.conf") };
    host.write(
      "pip.conf",
      "[global]\nindex-url = https://u:p@one.example/simple\nextra-index-url =\n  http://two.example/s\n  https://three.example:81/s\n",
    );
    expect(await host.entriesOf("@pip", host.presets({ environment }))).toEqual(
      expect.arrayContaining(["one.example:443", "two.example:80", "three.example:81"]),
    );
  });

  test("@apt: the sites of the machine's lists", async () => {
    if (!answers("apt-get", ["--version"])) return skip("@apt with the real apt-get", "no apt-get");
    const lists = host.write(
      "sources.list",
      "deb [trusted=yes] http://apt.example:8080/debian stable main\n",
    );
    const config = host.write(
      "apt.conf",
      `Dir::Etc::sourcelist "${lists}";\nDir::Etc::sourceparts "/dev/null";\n`,
    );
    const environment = { PATH: process.env["PATH"], APT_CONFIG: config };
    expect(await host.entriesOf("@apt", host.presets({ environment }))).toEqual(["apt.example:8080"]);
  });
});
