import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Span, SpansReply } from "../../schemas/generated/types.ts";
import type { Seen } from "../support/network/messages.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";
import { SSH_GREETING } from "../support/network/streams.ts";
import { actorsWith } from "../support/run/needs.ts";
import { currentUser, spawnAs } from "../support/users/users.ts";

/**
 * A client of TLS for python that sends its first words as it likes: `hello.py NAME PORT SNI WAY` dials NAME, asks for a
 * page with SNI as the name of the handshake (`-` for none), and prints the first line of the answer, or the name of the
 * error. WAY is `whole`, `bytes` (one at a time), `records` (the ClientHello in two TLS records), `late` (after a second),
 * or `early` (half of it, a pause, the rest).
 */
const HELLO = `
import errno, socket, ssl, struct, sys, time
name, port, sni, way = sys.argv[1:]
context = ssl._create_unverified_context()
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
tls = context.wrap_bio(incoming, outgoing, server_hostname=None if sni == "-" else sni)

def in_records(record):
    body = record[5:]
    cut = body.index(sni.encode()) + 4 if sni.encode() in body else 40
    return b"".join(record[:3] + struct.pack("!H", len(part)) + part for part in (body[:cut], body[cut:]))

def send_first(s, hello):
    if way == "late": time.sleep(1)
    if way == "records": hello = in_records(hello)
    if way == "bytes":
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in hello:
            s.sendall(bytes((byte,)))
            time.sleep(0.001)
    elif way == "early":
        s.sendall(hello[:len(hello) // 2])
        time.sleep(0.5)
        s.sendall(hello[len(hello) // 2:])
    else: s.sendall(hello)

def step(s, action):
    while True:
        try: result = action()
        except ssl.SSLWantReadError: result = None
        data = outgoing.read()
        if data: s.sendall(data)
        if result is not None: return result
        more = s.recv(65536)
        if not more: raise ConnectionResetError(errno.ECONNRESET, "closed")
        incoming.write(more)

try:
    with socket.create_connection((name, int(port)), 5) as s:
        s.settimeout(5)
        try: tls.do_handshake()
        except ssl.SSLWantReadError: pass
        send_first(s, outgoing.read())
        step(s, lambda: tls.do_handshake() or True)
        tls.write(b"GET / HTTP/1.1\\r\\nHost: " + name.encode() + b"\\r\\nConnection: close\\r\\n\\r\\n")
        print(step(s, lambda: tls.read(4096)).decode().split("\\r\\n")[0])
except OSError as e: print(errno.errorcode.get(e.errno, type(e).__name__))
`;

const NAME = "registry.example.test";
/** Behind the same address. */
const STRANGER = "stranger.example.test";
/** A server that takes whatever comes and says nothing. */
const SINK = "files.example.test:9000";

/**
 * Python's own web server, which serves every method, and a server of lines, which answers each with its first word.
 * The web server prints the `Host` header of each request, the line server each received line.
 */
const LENIENT = `
import http.server, socketserver, threading
class Web(http.server.BaseHTTPRequestHandler):
    def __getattr__(self, name):
        if name.startswith("do_"): return self.serve
        raise AttributeError(name)
    def serve(self):
        print(self.headers.get("Host"), flush=True)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")
    def log_message(self, *words): pass
class Lines(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            print(line.decode().strip(), flush=True)
            self.wfile.write(line.split()[0] + b"\\n")
# Clients that were cut are what the tests are about.
socketserver.BaseServer.handle_error = lambda *words: None
web = http.server.ThreadingHTTPServer(("203.0.113.10", 8081), Web)
lines = socketserver.ThreadingTCPServer(("203.0.113.10", 8082), Lines)
for server in web, lines: threading.Thread(target=server.serve_forever).start()
print("up", flush=True)
`;

/** Sends words (with python's escapes) to a name's port in pieces, and prints what comes. */
const WORDS = `
import socket, sys, time
with socket.create_connection((sys.argv[1], int(sys.argv[4])), 5) as s:
    s.settimeout(5)
    text = sys.argv[2].encode().decode("unicode_escape").encode("latin1")
    size = int(sys.argv[3])
    try:
        for at in range(0, len(text), size):
            s.sendall(text[at:at + size])
            time.sleep(0.002)
        print(s.recv(100).decode("latin1").split("\\r\\n")[0])
    except OSError as e: print(type(e).__name__)
`;

describe.each(actorsWith("python3", "nft"))("the first bytes of a connection, as $kind", (actor) => {
  let place: NetworkPlace;
  let lenient: Lenient;
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, {
      default: networkPolicy([NAME, `${NAME}:8081`, `${NAME}:8082`, SINK]),
    });
    lenient = await Lenient.start(place);
    place.broker.write(`${place.broker.project}/hello.py`, HELLO);
    place.broker.write(`${place.broker.project}/words.py`, WORDS);
  });
  afterAll(async () => {
    await lenient.stop();
    await place.close();
  });

  const hello = async (
    sni: string,
    way: string,
  ): Promise<{ readonly answer: string; readonly seen: Seen }> => {
    const { result, seen } = await place.during(`python3 hello.py ${NAME} 443 ${sni} ${way}`);
    expect(result.stderr).toBe("");
    return { answer: result.stdout.trim(), seen };
  };
  const words = async (
    text: string,
    size = 4096,
    port = 80,
  ): Promise<{ readonly answer: string; readonly seen: Seen }> => {
    const { result, seen } = await place.during(`python3 words.py ${NAME} '${text}' ${size} ${port}`);
    expect(result.stderr).toBe("");
    return { answer: result.stdout.trim(), seen };
  };

  const lineOf = async (command: string): Promise<Span["connection"]> => {
    const { stdout } = await place.broker.cli(["trace", "list", "--json"]);
    const { spans } = JSON.parse(stdout) as SpansReply;
    return spans.find(({ parent_span: parent, connection }) => parent === command && connection)?.connection;
  };

  test.each(["whole", "bytes", "records", "early", "late"])(
    "that name another server in a TLS handshake (%s) are cut before one of them arrives; the right name passes",
    async (way) => {
      const wrong = await hello(STRANGER, way);
      expect(bytesIn(wrong.seen)).toBe(0);
      expect(wrong.answer).not.toContain("200");
      const right = await hello(NAME, way);
      expect(right.answer).toBe("HTTP/1.1 200 OK");
      expect(right.seen.connections.map(({ sni }) => sni)).toEqual([NAME]);
    },
  );

  test("that name the right server in capitals pass, and neighbours of the name do not", async () => {
    expect((await hello("Registry.Example.TEST", "whole")).answer).toBe("HTTP/1.1 200 OK");
    for (const other of [`evil${NAME}`, `${NAME}.evil.test`, `sub.${NAME}`, "example.test"]) {
      const { answer, seen } = await hello(other, "whole");
      expect(answer, other).not.toContain("200");
      expect(bytesIn(seen), other).toBe(0);
    }
  });

  test.each([
    ["the header", `GET / HTTP/1.1\\r\\nHost: ${STRANGER}\\r\\n\\r\\n`],
    ["the header with a port", `GET / HTTP/1.1\\r\\nHost: ${STRANGER}:80\\r\\n\\r\\n`],
    ["a header in capitals, without a blank", `GET / HTTP/1.1\\r\\nHOST:${STRANGER}\\r\\n\\r\\n`],
    ["a second header", `GET / HTTP/1.1\\r\\nHost: ${NAME}\\r\\nHost: ${STRANGER}\\r\\n\\r\\n`],
    [
      "a first header before the right one",
      `GET / HTTP/1.1\\r\\nHost: ${STRANGER}\\r\\nHost: ${NAME}\\r\\n\\r\\n`,
    ],
    ["a whole URL", `GET http://${STRANGER}/ HTTP/1.1\\r\\nHost: ${NAME}\\r\\n\\r\\n`],
    ["another method", `PATCH / HTTP/1.1\\r\\nX: y\\r\\nHost: ${STRANGER}\\r\\n\\r\\n`],
    ["HTTP/1.0", `GET / HTTP/1.0\\r\\nHost: ${STRANGER}\\r\\n\\r\\n`],
    ["a line without CR", `GET / HTTP/1.1\\nHost: ${STRANGER}\\n\\n`],
    ["empty lines first", `\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: ${STRANGER}\\r\\n\\r\\n`],
  ])("that name another server in a request of HTTP, by %s, are cut before one arrives", async (_, text) => {
    for (const size of [4096, 1, 7]) {
      const { answer, seen } = await words(text, size);
      expect(answer).not.toContain("200");
      expect(bytesIn(seen)).toBe(0);
    }
  });

  test("that name the right server in a request of HTTP pass, however they are cut and spelled", async () => {
    for (const text of [
      `GET / HTTP/1.1\\r\\nHost: ${NAME}\\r\\nConnection: close\\r\\n\\r\\n`,
      `GET / HTTP/1.1\\r\\nhost:  ${NAME.toUpperCase()}:80 \\r\\nConnection: close\\r\\n\\r\\n`,
      `GET http://${NAME}/ HTTP/1.1\\r\\nHost: ${NAME}\\r\\nConnection: close\\r\\n\\r\\n`,
    ])
      for (const size of [4096, 1, 7]) expect((await words(text, size)).answer).toBe("HTTP/1.1 200 OK");
  });

  test.each([
    ["RTSP's version", "GET / RTSP/1.1"],
    ["RTSP's version and method", "OPTIONS / RTSP/1.0"],
    ["ICE's version and method", "SOURCE / ICE/1.1"],
  ])(
    "that name another server in a request with %s get no answer from Node; the right name does",
    async (_, line) => {
      for (const size of [4096, 7]) {
        const wrong = await words(`${line}\\r\\nHost: ${STRANGER}\\r\\n\\r\\n`, size);
        expect(wrong.answer).not.toContain("200");
        expect(hostsIn(wrong.seen)).toEqual([]);
        const right = await words(`${line}\\r\\nHost: ${NAME}\\r\\n\\r\\n`, size);
        expect(right.answer).toContain("200");
        expect(hostsIn(right.seen)).toEqual([NAME]);
      }
    },
  );

  test.each([
    ["a method of 65 letters", `${"A".repeat(65)} / HTTP/1.1`],
    ["no version", "GET /"],
    ["a byte before its method that is none of a word", "@GET / HTTP/1.1"],
    ["a no-break space before it", "\\xa0GET / HTTP/1.1"],
    ["a file separator before it", "\\x1cGET / HTTP/1.1"],
    ["next lines between its words", "GET\\x85/\\x85HTTP/1.1"],
    ["a unit separator behind its method", "GET\\x1f/ HTTP/1.1"],
  ])(
    "that name another server in a request with %s do not reach Python's; the right name does",
    async (_, line) => {
      for (const size of [4096, 7]) {
        const wrong = await words(`${line}\\r\\nHost: ${STRANGER}\\r\\n\\r\\n`, size, 8081);
        expect(wrong.answer).not.toContain("hello");
        expect(lenient.take()).toEqual([]);
        await words(`${line}\\r\\nHost: ${NAME}\\r\\n\\r\\n`, size, 8081);
        expect(lenient.take()).toEqual([NAME]);
      }
    },
  );

  test("of protocols that send a line and wait for its answer pass, also when it looks like a request", async () => {
    const lines = ["GET key", "GET user/1", "EHLO host", "USER anonymous", "CWD /pub", "SELECT / RTSP/1.0"];
    const { result } = await place.during(`python3 -c "
import socket
for first in ${JSON.stringify(lines).replaceAll('"', "'")}:
    with socket.create_connection(('${NAME}', 8082), 5) as s:
        s.settimeout(5)
        answers = s.makefile()
        for line in first, 'hget key', 'ho ho':
            s.sendall(line.encode() + b'\\n')
            print(answers.readline().strip())"`);
    expect(result.stdout, result.stderr).toBe(
      lines.map((line) => `${line.split(" ", 1)[0]}\nhget\nho\n`).join(""),
    );
    expect(lenient.take()).toEqual(lines.flatMap((line) => [line, "hget key", "ho ho"]));
  });

  test("of curl with a false name are cut, in HTTP/1.1 and HTTP/2, with and without TLS", async () => {
    const through = [80, 443].map((port) => `--connect-to ${STRANGER}:${port}:${NAME}:${port}`).join(" ");
    for (const url of [`https://${STRANGER}/`, `http://${STRANGER}/`])
      for (const version of ["--http1.1", "--http2"]) {
        const { result, seen } = await place.during(`curl -sSk ${version} --max-time 5 ${through} ${url}`);
        expect(result.exit, `${version} ${url}`).not.toBe(0);
        expect(bytesIn(seen), `${version} ${url}`).toBe(0);
      }
    for (const version of ["--http1.1", "--http2"]) {
      const { result } = await place.during(`curl -sS ${version} --max-time 5 https://${NAME}/`);
      expect(result.stdout, result.stderr).toBe(`hello from ${NAME}\n`);
    }
  });

  test("of HTTP/2 without TLS are not read, as those behind TLS: they reach the allowed name alone, and its line says so", async () => {
    const curl = "curl -sS --http2-prior-knowledge --max-time 1.5";
    const toStranger = await place.during(
      `${curl} http://${STRANGER}:9000/; ${curl} http://203.0.113.10:9000/`,
    );
    expect(toStranger.result.exit).not.toBe(0);
    expect(bytesIn(toStranger.seen)).toBe(0);
    const through = `--connect-to ${STRANGER}:9000:${SINK}`;
    const unread = await place.during(`${curl} ${through} http://${STRANGER}:9000/`);
    expect(unread.seen.connections.map(({ first }) => first.slice(0, 14))).toEqual(["PRI * HTTP/2.0"]);
    expect(await lineOf(unread.result.span_id)).toMatchObject({
      host: "files.example.test",
      port: 9000,
      unread: "http2",
    });
    const { stdout } = await place.broker.cli(["trace", "list", "-n", "9"]);
    expect(stdout).toContain("files.example.test:9000");
    expect(stdout).toContain("(HTTP/2 without TLS: its hosts were not read)");
    const twin = await place.during(`curl -sS --http1.1 --max-time 5 http://${NAME}/`);
    expect(twin.result.stdout).toBe(`hello from ${NAME}\n`);
    expect(await lineOf(twin.result.span_id)).not.toHaveProperty("unread");
  });

  test("that never come whole hold nobody else up, and name nobody", async () => {
    const idle = `python3 -c "
import socket, subprocess
idle = [socket.create_connection(('${NAME}', port), 5) for port in (80, 443) for _ in range(150)]
for s in idle[::2]: s.sendall(b'GET / HTT' if s.getpeername()[1] == 80 else bytes((22, 3, 1, 2, 0, 1)))
print(subprocess.run(['curl', '-sS', '--max-time', '2', 'https://${NAME}/'], capture_output=True, text=True).stdout)"`;
    const { result, seen } = await place.during(idle);
    expect(result.stdout, result.stderr).toBe(`hello from ${NAME}\n\n`);
    // Where the client ends in the middle of a line, that line has named nobody and may pass.
    const named = seen.connections.filter(({ first, sni }) => sni !== null || first.includes("Host"));
    expect(named).toHaveLength(1);
  });

  test("may be the server's, and may be of no protocol that names one", async () => {
    const ssh = await place.during(`python3 -c "
import socket
s = socket.create_connection(('${NAME}', 22), 5); s.settimeout(5)
greeting = s.recv(100); s.sendall(greeting); print(greeting == s.recv(100), greeting.decode().strip())"`);
    expect(ssh.result.stdout, ssh.result.stderr).toBe(`True ${SSH_GREETING.trim()}\n`);
    const sink = await place.during(`python3 -c "
import socket
s = socket.create_connection(('files.example.test', 9000), 5)
s.sendall(bytes(70000)); s.shutdown(socket.SHUT_WR); print(s.recv(100).decode().strip())"`);
    expect(sink.result.stdout, sink.result.stderr).toBe("70000\n");
    expect(bytesIn(sink.seen)).toBe(70_000);
  });
});

/** The servers of `LENIENT` in a place's internet. */
class Lenient {
  readonly #process: ChildProcess;
  #seen = "";

  private constructor(child: ChildProcess) {
    this.#process = child;
    child.stdout?.on("data", (bytes: Buffer) => (this.#seen += bytes.toString()));
  }

  static async start({ internet }: NetworkPlace): Promise<Lenient> {
    const program = join(internet.folder, "lenient.py");
    writeFileSync(program, LENIENT);
    const child = spawnAs(currentUser(), ["python3", program], {
      within: internet.enter,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const servers = new Lenient(child);
    while (!servers.#seen.includes("up\n")) {
      if (child.exitCode !== null || child.stdout === null) throw new Error("The servers did not start");
      await Promise.race([once(child.stdout, "data"), once(child, "exit")]);
    }
    servers.take();
    return servers;
  }

  /** Lines since the last call. */
  take(): readonly string[] {
    const lines = this.#seen.trim().split("\n");
    this.#seen = "";
    return lines.filter((line) => line !== "");
  }

  async stop(): Promise<void> {
    const ended = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await ended;
  }
}

function hostsIn(seen: Seen): readonly string[] {
  return seen.connections.flatMap(({ requests }) => requests.map(({ host }) => host));
}

function bytesIn(seen: Seen): number {
  return seen.connections.reduce((sum, { received }) => sum + received, 0);
}
