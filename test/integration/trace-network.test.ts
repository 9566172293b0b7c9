import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SpansReply, TraceReply } from "../../schemas/generated/types.ts";
import { actorsWith } from "../support/run/needs.ts";
import { skip } from "../support/run/skips.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";

const NAME = "registry.example.test";
const SPAN = /spn_[0-9a-f-]+/;

describe.each(actorsWith("python3", "nft"))("connections in the trace, as $kind", (actor) => {
  let place: NetworkPlace;
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, {
      default: networkPolicy([NAME, "dead.example.test"]),
    });
  });
  afterAll(() => place.close());

  const printed = async (words: readonly string[]): Promise<string> =>
    (await place.broker.cli(["trace", ...words])).stdout;

  test("are told with name, port, bytes, time and program, in lists and by themselves", async () => {
    const { span_id } = await place.run(`curl -sS -o page http://${NAME}/download?bytes=1500000`);
    const list = await printed(["list", "-n", "9"]);
    const line = list.split("\n").find((each) => each.includes("  connection  "));
    expect(line).toMatch(
      /^\S+ {2}spn_\S+ {2}connection {2}closed {2}test {2}registry\.example\.test:80 {2}\d+ B out, 1\.5 MB in {2}[\d.]+ m?s {2}curl$/,
    );
    expect(await printed([span_id])).toContain(`  child     ${line}\n`);
    expect(await printed([span_id])).toMatch(
      / network +\d+ B out, 1\.5 MB in\n +scopes +(?:fs\.write:\S+ )?net:registry\.example\.test:80\n/,
    );
    const [id = ""] = SPAN.exec(line ?? "") ?? [];
    expect(await printed([id])).toMatch(
      / to +registry\.example\.test:80 at 203\.0\.113\.10\n +program +curl \(pid \d+ in its world\)\n/,
    );
    expect(await printed([id])).toMatch(
      / outcome +closed\n +duration +[\d.]+ ms\n +network +\d+ B out, 1\.5 MB in\n/,
    );
  });

  test("and as JSON with everything that was recorded", async () => {
    const { span_id } = await place.run(`curl -sS -o page http://${NAME}/`);
    const { spans } = JSON.parse(await printed(["list", "--json"])) as SpansReply;
    const connection = spans.find((span) => span.event_type === "connection");
    expect(connection).toMatchObject({
      parent_span: span_id,
      connection: {
        host: NAME,
        port: 80,
        address: "203.0.113.10",
        program: "curl",
        ended: "closed",
        reason: null,
      },
    });
    const { span } = JSON.parse(await printed([connection?.span_id ?? "", "--json"])) as TraceReply;
    expect(span).toEqual(connection);
  });

  test("that were refused are told with what was refused, and why", async () => {
    const { stderr } = await place.run(
      "curl -sS http://collector.evil.test/; curl -sS http://203.0.113.66/; false",
    );
    expect(stderr).toContain("'collector.evil.test' was not looked up");
    const list = await printed(["list", "-n", "9"]);
    expect(list).toMatch(/ {2}violation {2}name {2}test {2}collector\.evil\.test\n/);
    const [id = ""] =
      SPAN.exec(list.split("\n").find((each) => each.includes("collector.evil.test")) ?? "") ?? [];
    expect(await printed([id])).toMatch(
      / violation +name collector\.evil\.test: The name 'collector\.evil\.test' was not looked up \(A(?:AAA)?\): net\.allowed \(default\.yaml:\d+\) does not allow it\n/,
    );
  });

  test("that failed say why", async () => {
    await place.broker.run({ cmd: "python3 dial.py dead.example.test 80" });
    const list = await printed(["list", "-n", "9"]);
    expect(list).toMatch(
      / {2}connection {2}failed {2}test {2}dead\.example\.test:80 {2}0 B out, 0 B in {2}[\d.]+ m?s {2}python3[.\d]* {2}\(Cannot connect to port 80 of 203\.0\.113\.99 \(EHOSTUNREACH\)\)\n/,
    );
  });
});

describe.each(actorsWith("python3", "nft"))("connections of a policy that observes, as $kind", (actor) => {
  let place: NetworkPlace;
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, { default: networkPolicy([NAME], { mode: "observe" }) });
  });
  afterAll(() => place.close());

  test("say which of them would be denied", async () => {
    await place.dial([`${NAME} 80`, "collector.evil.test 80", "203.0.113.66 8080"]);
    const { stdout } = await place.broker.cli(["trace", "list", "-n", "9"]);
    const lines = stdout.split("\n").filter((line) => line.includes("  connection  "));
    expect(lines.map((line) => [/\S+:\d+(?= {2})/.exec(line)?.[0], line.includes("  would_deny")])).toEqual([
      ["203.0.113.66:8080", true],
      ["collector.evil.test:80", true],
      [`${NAME}:80`, false],
    ]);
  });

  test("become entries of net.allowed by `policy learn`, with which they pass under enforce", async () => {
    await place.dial([
      "files.example.test 80",
      "files.example.test 8080",
      "203.0.113.66 8080",
      "dead.example.test 80",
    ]);
    const { stdout } = await place.broker.cli(["policy", "learn"]);
    expect(stdout).toMatch(/^\+.*"files\.example\.test", # seen once, last \S+, spn_\S+$/m);
    expect(stdout).toMatch(/^\+.*"files\.example\.test:8080", # seen once/m);
    expect(stdout).toMatch(/^# {3}\d observed connections would be allowed$/m);
    expect(stdout).toMatch(/^# {3}connection to 203\.0\.113\.66:8080: it was dialled by address/m);
    expect(stdout).toMatch(/^# {3}connection to dead\.example\.test:80: the connection failed/m);
    const { patch } = JSON.parse((await place.broker.cli(["policy", "learn", "--json"])).stdout) as {
      patch: string;
    };
    const path = join(place.broker.home, "policies/default.yaml");
    const patched = spawnSync("patch", [path], { input: patch, encoding: "utf8" });
    if (patched.error !== undefined) skip("policy learn's patch through patch(1)", patched.error.message);
    expect(patched.status, patched.stderr).toBe(0);
    place.broker.write(path, readFileSync(path, "utf8").replace("mode: observe", "mode: enforce"));
    const targets = [
      "files.example.test 80",
      "files.example.test 8080",
      "203.0.113.66 8080",
      "stranger.example.test 80",
    ];
    const { dialled } = await place.dial(targets);
    expect(dialled.map(({ came }) => came)).toEqual(["connected", "connected", "ECONNREFUSED", "NXDOMAIN"]);
  });
});
