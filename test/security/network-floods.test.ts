import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../support/broker/broker.ts";
import { actorsWith } from "../support/run/needs.ts";
import { TestInternet } from "../support/network/internet.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";
import { ZONE } from "../support/network/zone.ts";

const NAME = "registry.example.test";
const DESCRIPTORS = 1024;

/**
 * `flood.py NAME COUNT BYTES SECONDS FILE MOST` opens so many connections, sends so many bytes of a header that does not end
 * over each, prints how many of them stand once that are MOST at most and stay the same (a busy broker takes its time), or
 * after 30 s, makes the file, and keeps them.
 */
const FLOOD = `
import resource, socket, sys, time
name, count, size, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
address, kept = socket.getaddrinfo(name, 80)[0][4], []
for _ in range(count):
    try:
        s = socket.create_connection(address, 5)
        s.sendall(b"GET / HTTP/1.1\\r\\nA: " + b"a" * size)
        kept.append(s)
    except OSError: pass
def stands(s):
    s.setblocking(False)
    try: return s.recv(1) != b""
    except BlockingIOError: return True
    except OSError: return False
counts, most = [], int(sys.argv[6])
while len(counts) < 120 and (len(counts) < 6 or counts[-1] > most or len(set(counts[-6:])) > 1):
    time.sleep(0.25)
    counts.append(sum(map(stands, kept)))
print(counts[-1], flush=True)
open(sys.argv[5], "w").close()
time.sleep(seconds)
`;

/** Puts as many descriptors on their way to nobody as the kernel lets it, prints whether that is an end, and waits. */
const UNDERWAY = `
import array, errno, resource, socket, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
kept, end = [], None
descriptors = array.array("i", [socket.socket().detach()] * 250)
while end is None and len(kept) < 400:
    kept.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM))
    kept[-1][0].setblocking(False)
    while end is None:
        try: kept[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
        except BlockingIOError: break
        except OSError as e: end = errno.errorcode[e.errno]
print(end, flush=True)
open("underway", "w").close()
time.sleep(6)
`;

/** Connects to names that are never answered for, two hundred at once. */
const SLOW = `
import socket, threading
def dial(name):
    try: socket.create_connection((name, 80), 6).recv(1)
    except OSError: pass
threads = [threading.Thread(target=dial, args=("n%d.slow.test" % at,)) for at in range(200)]
for t in threads: t.start()
open("asking", "w").close()
for t in threads: t.join()
`;

/** Asks over 60 connections without end, reads the answers, and stops when the file `enough` is there, or after 20 s. */
const QUESTIONS = `
import os, socket, struct, time
name = b"".join(bytes([len(one)]) + one for one in b"none.example.test".split(b".")) + b"\\0"
asked = struct.pack("!6H", 7, 0x100, 1, 0, 0, 0) + name + b"\\0\\1\\0\\1"
block = (struct.pack("!H", len(asked)) + asked) * 400
asking = [[socket.create_connection(("127.0.0.53", 53)), b""] for _ in range(60)]
for one in asking: one[0].setblocking(False)
open("questions", "w").close()
end = time.time() + 20
while time.time() < end and not os.path.exists("enough"):
    for one in asking:
        one[1] = one[1] or block
        try: one[1] = one[1][one[0].send(one[1]):]
        except BlockingIOError: pass
        try:
            while one[0].recv(1 << 16): pass
        except BlockingIOError: pass
    time.sleep(0.001)
print("enough" if os.path.exists("enough") else "nobody came", flush=True)
`;

describe.each(actorsWith("python3", "nft"))("a flood of connections, as $kind", (actor) => {
  let internet: TestInternet;
  let place: NetworkPlace;
  beforeAll(async () => {
    internet = await TestInternet.open({ zone: { ...ZONE, "*.slow.test": { silent: true } } });
    const wrap = (): readonly string[] => ["prlimit", `--nofile=${DESCRIPTORS}:${DESCRIPTORS}`];
    place = await NetworkPlace.in(
      internet,
      actor,
      { default: networkPolicy([NAME, "*.slow.test"]) },
      { wrap },
    );
    place.broker.write(`${place.broker.project}/flood.py`, FLOOD);
    place.broker.write(`${place.broker.project}/underway.py`, UNDERWAY);
    place.broker.write(`${place.broker.project}/slow.py`, SLOW);
    place.broker.write(`${place.broker.project}/questions.py`, QUESTIONS);
  });
  afterAll(async () => {
    await place.broker.stop();
    await internet.close();
  });

  test("that would take all of the broker's descriptors keeps nobody else out", async () => {
    const flood = (name: string): string =>
      `python3 flood.py ${NAME} ${DESCRIPTORS / 2 - 50} 0 4 ${name} ${DESCRIPTORS / 4}`;
    const flooding = place.run(`${flood("one")} & ${flood("other")}; wait`);
    expect(await eventually(() => has("one") && has("other"), 50_000)).toBe(true);
    expect((await place.broker.operator("GET", "/v1/health")).status).toBe(200);
    expect((await place.broker.run("echo served")).stdout).toBe("served\n");
    const stood = sum((await flooding).stdout);
    expect(stood).toBeGreaterThan(DESCRIPTORS / 8);
    expect(stood).toBeLessThanOrEqual(DESCRIPTORS / 4);
    expect((await place.run(`curl -sS http://${NAME}/`)).stdout).toBe(`hello from ${NAME}\n`);
  });

  test("that all begin a header and do not end it holds a bounded part of them, and then as many again", async () => {
    const heldBytes = 8 * 1024 * 1024;
    for (const round of ["first", "second"]) {
      const { stdout } = await place.run(
        `python3 flood.py ${NAME} 200 60000 0 ${round} ${Math.floor((heldBytes * 1.25) / 60_000)}`,
      );
      const held = Number(stdout) * 60_000;
      // What is on its way when it is counted may still be cut.
      expect(held).toBeLessThanOrEqual(heldBytes * 1.25);
      expect(held).toBeGreaterThan(heldBytes / 2);
    }
    expect((await place.run(`curl -sS http://${NAME}/`)).stdout).toBe(`hello from ${NAME}\n`);
  });

  test("does not wait for another world's descriptors that are on their way and never arrive", async () => {
    const filling = place.run("python3 underway.py");
    expect(await eventually(() => has("underway"), 20_000)).toBe(true);
    const cmd = `curl -sS --max-time 3 http://${NAME}/`;
    const begin = performance.now();
    const { stdout } = await place.broker.run({ cmd, agent_id: "another" });
    // A world that waits for the other's end is served late.
    expect(performance.now() - begin).toBeLessThan(4000);
    expect(stdout).toBe(`hello from ${NAME}\n`);
    expect((await filling).stdout).toBe("ETOOMANYREFS\n");
  });

  test("to names that nobody answers for leaves others' names to be resolved", async () => {
    const asking = place.run("python3 slow.py");
    expect(await eventually(() => has("asking"), 10_000)).toBe(true);
    await sleep(1000);
    const cmd = `curl -sS --max-time 3 http://${NAME}/`;
    const { stdout } = await place.broker.run({ cmd, agent_id: "another" });
    expect(stdout).toBe(`hello from ${NAME}\n`);
    expect((await asking).exit).toBe(0);
  });

  test("of questions in advance over many connections keeps nobody waiting who can end it", async () => {
    const asking = place.run("python3 questions.py");
    expect(await eventually(() => has("questions"), 20_000)).toBe(true);
    await sleep(1000);
    expect((await place.broker.operator("GET", "/v1/health")).status).toBe(200);
    await place.broker.run({ cmd: "touch enough", agent_id: "another" });
    expect((await asking).stdout).toBe("enough\n");
    expect((await place.run(`curl -sS http://${NAME}/`)).stdout).toBe(`hello from ${NAME}\n`);
  });

  function has(name: string): boolean {
    return existsSync(`${place.broker.project}/${name}`);
  }
});

function sum(lines: string): number {
  return lines
    .split("\n")
    .map(Number)
    .reduce((total, each) => total + each, 0);
}
