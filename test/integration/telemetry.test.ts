import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { listening, tell } from "../support/broker/telemetry.ts";
import { needsOf } from "../support/run/needs.ts";
import { actors } from "../support/users/users.ts";

const C = `
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void) {
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  close(open("made", O_WRONLY | O_CREAT, 0600));
  connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&there, sizeof there);
  unlink("made");
  execl("/bin/true", "true", NULL);
}
`;

const PYTHON = `
import os, socket
open("made", "w").close()
try: socket.create_connection(("127.0.0.1", 9))
except OSError: pass
os.unlink("made")
os.execv("/bin/true", ["true"])
`;

const PERL = `
use Socket;
open(my $file, ">", "made"); close($file);
socket(my $socket, PF_INET, SOCK_STREAM, 0); connect($socket, sockaddr_in(9, inet_aton("127.0.0.1")));
unlink("made");
exec("/bin/true");
`;

const NODE = `
const fs = require("fs");
fs.writeFileSync("made", "");
require("net").connect(9, "127.0.0.1").on("error", () => {
  fs.unlinkSync("made");
  require("child_process").execFileSync("/bin/true");
});
`;

const SHELL = `: >made; rm made; /bin/true; python3 dials.py`;

describe.each(actors())("what programs report of themselves, as $kind", (actor) => {
  let broker: TestBroker;

  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: listening(true) } });
    const { node } = await installationFor(actor);
    const write = (name: string, text: string): void => writeFileSync(join(broker.project, name), text);
    write("all.c", C);
    write("all.py", PYTHON);
    write("all.pl", PERL);
    write("all.js", NODE);
    write("dials.py", 'import socket\nsocket.socket().connect_ex(("127.0.0.1", 9))\n');
    const compile = (...words: string[]): Buffer =>
      execFileSync("cc", ["-O2", "-D_FORTIFY_SOURCE=2", ...words], { cwd: broker.project });
    compile("-o", "all", "all.c");
    compile("-static", "-o", "static", "all.c");
    write("run-node", `#!/bin/sh\nexec ${node} all.js\n`);
    chmodSync(join(broker.project, "run-node"), 0o755);
    mkdirSync(join(broker.project, "build"));
  }, 60_000);
  afterAll(() => broker?.stop());

  test.each([
    ["C", "./all"],
    ["Python", "/usr/bin/python3 all.py"],
    ["Perl", "perl all.pl"],
    ["Node", "./run-node"],
    ["a shell", SHELL.replace("python3", "/usr/bin/python3")],
  ])("a program in %s is seen to start, write, dial and take away", async (_name, cmd) => {
    needsOf(cmd);
    const told = await tell(broker, `cd ${broker.project} && ${cmd}`);
    expect(told.stderr).toBe("");
    expect(told).toMatchObject({ exit: 0, state: "on", reason: null, unlisted: 0, dropped: 0 });
    expect(told.programs).toContain("/bin/true");
    expect(told.written).toContain(join(broker.project, "made"));
    expect(told.connected).toContain("127.0.0.1:9");
    expect(told.unlinked).toContain(join(broker.project, "made"));
  });
});

const ROOT = join(import.meta.dirname, "../..");
const LIBRARY = "/run/substrate-preload.so";

function profile(id: string, world: string): string {
  return `id: ${id}\nname: A profile\nselectable: true\nworld: ${world}\n`;
}

describe.each(actors())("whose programs report, as $kind", (actor) => {
  let broker: TestBroker;
  let silent: TestBroker;

  beforeAll(async () => {
    const profiles = {
      listens: profile("listens", "{ enable_preload: true }"),
      refuses: profile("refuses", "{ enable_preload: false }"),
      leaves: profile("leaves", "{ reuse_session: true }"),
    };
    const strict = "commands: { opaque: deny }\n";
    broker = await TestBroker.start(actor, { policies: { default: listening(true, strict), ...profiles } });
    silent = await TestBroker.start(actor, { policies: { default: listening(false), ...profiles } });
  }, 60_000);
  afterAll(async () => {
    await broker?.stop();
    await silent?.stop();
  });

  async function telemetryOf(one: TestBroker, body: Record<string, unknown>): Promise<unknown> {
    const { span_id: id } = await one.run({ cmd: ": >made", ...body });
    return (await one.span(id)).telemetry;
  }

  test("is what all policies that hold ask for", async () => {
    expect(await telemetryOf(broker, {})).toMatchObject({ state: "on" });
    expect(await telemetryOf(broker, { profile: "listens" })).toMatchObject({ state: "on" });
    expect(await telemetryOf(broker, { profile: "refuses" })).toBeUndefined();
    expect(await telemetryOf(broker, { profile: "leaves" })).toBeUndefined();
    expect(await telemetryOf(silent, { profile: "listens" })).toBeUndefined();
  });

  test("follows an edit of the policy with the next command", async () => {
    const file = join(silent.home, "policies/default.yaml");
    writeFileSync(file, listening(true));
    expect(await telemetryOf(silent, {})).toMatchObject({ state: "on" });
    writeFileSync(file, listening(false));
    expect(await telemetryOf(silent, {})).toBeUndefined();
  });

  test("is the same where system calls are only told of, and in observe mode", async () => {
    const file = join(silent.home, "policies/default.yaml");
    const log = listening(true).replace("world:\n", "world:\n  seccomp: log\n");
    for (const text of [log, listening(true).replace("enforce", "observe")]) {
      writeFileSync(file, text);
      const told = await tell(silent, ": >made; rm made; /bin/true");
      expect(told).toMatchObject({ state: "on", reason: null, stderr: "", dropped: 0 });
      expect(told.unlinked).toEqual([join(silent.project, "made")]);
    }
    writeFileSync(file, listening(false));
  });

  test("a policy that refuses what loads code does not take a world's own library for that", async () => {
    const opaque = { LD_PRELOAD: "/nowhere/other.so" };
    expect((await broker.refused({ cmd: "true", env: opaque })).code).toBe("policy_denied");
    const both = { LD_PRELOAD: `/nowhere/other.so:${LIBRARY}` };
    expect((await broker.refused({ cmd: "true", env: both })).code).toBe("policy_denied");
    const own = { LD_PRELOAD: LIBRARY, SUBSTRATE_TELEMETRY: "substrate-of-a-world" };
    const told = await tell(broker, { cmd: "env", env: own });
    expect(told.stdout).toContain(`LD_PRELOAD=${LIBRARY}\n`);
    expect(told.stdout).not.toContain("substrate-of-a-world");
    const { stdout } = await silent.run({ cmd: "env", env: own });
    expect(stdout).not.toMatch(/LD_PRELOAD|SUBSTRATE_TELEMETRY/);
    const body = { agent_id: "test", cwd: broker.project, cmd: "true", env: own };
    const checked = await broker.call("POST", "/v1/check", body);
    expect(checked.document).toMatchObject({ decision: { verdict: "allow" } });
  });

  test("a shim starts its program without what a world added, and with all else", () => {
    const folder = mkdtempSync(join(tmpdir(), "sb-"));
    try {
      mkdirSync(join(folder, "home/shims"), { recursive: true });
      mkdirSync(join(folder, "bin"));
      writeFileSync(join(folder, "home/shims/.offline"), "allow\n");
      symlinkSync(join(ROOT, ".build/substrate-shim"), join(folder, "bin/env"));
      const run = (list: string): string =>
        execFileSync(join(folder, "bin/env"), [], {
          env: {
            PATH: `${folder}/bin:/usr/bin`,
            SUBSTRATE_HOME: join(folder, "home"),
            LD_PRELOAD: list,
            SUBSTRATE_TELEMETRY: "x",
            KEPT: "1",
          },
          encoding: "utf8",
          stdio: ["ignore", "pipe", "ignore"],
        });
      expect(run(LIBRARY)).toMatch(/^KEPT=1$/m);
      expect(run(LIBRARY)).not.toMatch(/LD_PRELOAD|TELEMETRY/);
      for (const list of [`/a.so:${LIBRARY}`, `${LIBRARY} /a.so`, `:${LIBRARY}:/a.so: ${LIBRARY}`])
        expect(run(list), list).toMatch(/^LD_PRELOAD=\/a\.so$/m);
      expect(run(`${LIBRARY}.own`)).toContain(`LD_PRELOAD=${LIBRARY}.own\n`);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
