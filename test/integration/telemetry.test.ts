import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { needsOf } from "../support/run/needs.ts";
import { installationFor } from "../support/broker/installation.ts";
import { listening, tell } from "../support/broker/telemetry.ts";

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
