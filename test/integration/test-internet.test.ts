/** Does the internet that other tests stand on do what they believe of it? No broker here. */
import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { needs } from "../support/run/needs.ts";
import { ask } from "../support/network/ask.ts";
import { TestInternet } from "../support/network/internet.ts";
import { README } from "../support/git/git.ts";
import { SSH_GREETING } from "../support/network/streams.ts";
import { ZONE } from "../support/network/zone.ts";

const DIAL = `
import socket, sys
address, port = sys.argv[1], int(sys.argv[2])
s = socket.create_connection((address, port), 3)
s.sendall(sys.argv[3].encode().decode("unicode_escape").encode("latin1"))
s.shutdown(socket.SHUT_WR)
while True:
    data = s.recv(65536)
    if not data: break
    sys.stdout.buffer.write(data)
`;

describe("the tests' internet", () => {
  let internet: TestInternet;
  let trust: readonly string[];
  beforeAll(async () => {
    internet = await TestInternet.open();
    writeFileSync(join(internet.folder, "ca.pem"), internet.authority);
    trust = ["--cacert", join(internet.folder, "ca.pem")];
  });
  afterAll(() => internet.close());

  const curl = (...words: readonly string[]): ReturnType<TestInternet["run"]> =>
    internet.run(["curl", "-sS", "--max-time", "10", ...trust, ...words]);
  const at = (name: string, port: number, address: string): string[] => [
    "--resolve",
    `${name}:${port}:${address}`,
  ];
  const dial = (...words: readonly string[]): ReturnType<TestInternet["run"]> =>
    internet.run(["python3", "-c", DIAL, ...words]);

  test("speaks HTTP/1.1 on every address, of both families, internal ones too, and sees which was dialled", async () => {
    const addresses = ["203.0.113.10", "10.1.2.3", "169.254.169.254", "127.0.0.1", "2001:db8::12", "fd00::1"];
    for (const address of addresses) {
      const host = address.includes(":") ? `[${address}]` : address;
      const { result, seen } = await internet.during(() => curl(`http://${host}/page`));
      expect(result, result.stderr).toMatchObject({ code: 0, stdout: `hello from ${host}\n` });
      expect(seen.connections).toEqual([
        expect.objectContaining({ service: "http", to: { address, port: 80 }, sni: null }),
      ]);
      expect(seen.connections[0]?.requests).toEqual([{ method: "GET", path: "/page", host, version: "1.1" }]);
    }
  });

  test("speaks HTTP/2 and HTTP/1.1 over TLS with a certificate of its own authority, and sees the name", async () => {
    for (const version of ["2", "1.1"] as const) {
      const { result, seen } = await internet.during(() =>
        curl(
          `--http${version}`,
          ...at("registry.example.test", 443, "203.0.113.10"),
          "https://registry.example.test/",
        ),
      );
      expect(result).toMatchObject({ code: 0, stdout: "hello from registry.example.test\n" });
      expect(seen.connections).toEqual([
        expect.objectContaining({ service: "tls", sni: "registry.example.test", open: false }),
      ]);
      expect(seen.connections[0]?.requests[0]?.version).toBe(version === "2" ? "2.0" : "1.1");
      expect(seen.connections[0]?.received).toBeGreaterThan(300);
      expect(seen.connections[0]?.first).toContain("registry.example.test");
    }
    const stranger = await internet.run(["curl", "-sS", "https://203.0.113.10/"]);
    expect(stranger.code).toBe(60);
  });

  test("counts each byte of an upload, and sends each byte that is asked for", async () => {
    needs("python3");
    const body = join(internet.folder, "body");
    writeFileSync(body, Buffer.alloc(300_000));
    const upload = await internet.during(() =>
      curl("-T", body, ...at("files.example.test", 443, "203.0.113.21"), "https://files.example.test/upload"),
    );
    expect(upload.result.stdout).toBe("300000\n");
    expect(upload.seen.connections[0]?.received).toBeGreaterThan(300_000);
    const download = await curl(
      "-w",
      "%{size_download}",
      "-o",
      "/dev/null",
      "http://203.0.113.20/download?bytes=1234567",
    );
    expect(download.stdout).toBe("1234567");
    const sink = await internet.during(() => dial("203.0.113.20", "9000", "12345"));
    expect(sink.result.stdout).toBe("5\n");
    expect(sink.seen.connections).toEqual([
      expect.objectContaining({ service: "sink", received: 5, first: "12345", open: false }),
    ]);
    expect((await dial("203.0.113.20", "9001", "200000\\n")).stdout).toHaveLength(200_000);
  });

  test("has a server that speaks first, and one that echoes", async () => {
    needs("python3");
    expect((await dial("203.0.113.22", "22", "SSH-2.0-client\\r\\n")).stdout).toBe(
      `${SSH_GREETING}SSH-2.0-client\r\n`,
    );
    expect((await dial("127.0.0.1", "5432", "rows")).stdout).toBe("rows");
  });

  test("serves a repository that git clones over HTTPS", async () => {
    const config = [
      ...["-c", `http.sslCAInfo=${join(internet.folder, "ca.pem")}`],
      ...["-c", "http.curloptResolve=git.example.test:443:203.0.113.30"],
    ];
    const target = join(internet.folder, "clone");
    const { result, seen } = await internet.during(() =>
      internet.run(["git", ...config, "clone", "-q", "https://git.example.test/git/project.git", target]),
    );
    expect(result).toMatchObject({ code: 0 });
    expect(readFileSync(join(target, "README"), "utf8")).toBe(README);
    expect(seen.connections.every(({ sni }) => sni === "git.example.test")).toBe(true);
  });

  test("answers names over UDP, TCP, TLS and HTTPS, counts the questions, and knows no other name", async () => {
    needs("python3");
    for (const over of ["udp", "tcp", "tls", "https"] as const) {
      const { result, seen } = await internet.during(() =>
        ask(internet, over, [
          ["both.example.test", "AAAA"],
          ["both.example.test", "A"],
          ["Nobody.example.test", "A"],
        ]),
      );
      expect(result).toEqual(["0 2001:db8:0:0:0:0:0:11", "0 203.0.113.11", "3"]);
      expect(seen.questions.map(({ name, type, over: by }) => [name, type, by])).toEqual([
        ["both.example.test", "AAAA", over],
        ["both.example.test", "A", over],
        ["Nobody.example.test", "A", over],
      ]);
    }
  });

  test("has names that rotate, rebind, lead to another name, fail or stay silent", async () => {
    needs("python3");
    const addressesOf = async (name: string, times: number): Promise<readonly string[]> =>
      await ask(
        internet,
        "udp",
        Array.from({ length: times }, () => [name, "A"] as const),
      );
    const [one, two, three] = ["0 203.0.113.71", "0 203.0.113.72", "0 203.0.113.73"];
    expect(await addressesOf("rotating.example.test", 4)).toEqual([one, two, three, one]);
    expect(await addressesOf("alias.example.test", 1)).toEqual(["0 203.0.113.20 203.0.113.21"]);
    expect(await addressesOf("many.example.test", 1)).toEqual(["0"]);
    expect(await ask(internet, "tcp", [["many.example.test", "A"]])).toEqual(["0 203.0.113.20"]);
    expect(await addressesOf("broken.example.test", 1)).toEqual(["2"]);
    expect(await addressesOf("silent.example.test", 1)).toEqual(["no answer"]);
    await internet.setZone({
      "rebind.example.test": { turns: [["203.0.113.10"], ["127.0.0.1"]], then: "stay", ttl: 0 },
    });
    expect(await addressesOf("rebind.example.test", 3)).toEqual([
      "0 203.0.113.10",
      "0 127.0.0.1",
      "0 127.0.0.1",
    ]);
    await internet.setZone(ZONE);
  });

  test("sees datagrams and echo requests, to whatever address", async () => {
    needs("python3");
    const send = `import socket
for address in ("203.0.113.9", "10.9.9.9"): socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"12345", (address, 4433))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
s.sendto(bytes((8, 0, 0xf7, 0xff, 0, 0, 0, 0)), ("203.0.113.9", 0))`;
    const { result, seen } = await internet.during(() => internet.run(["python3", "-c", send]));
    expect(result.stderr).toBe("");
    expect(seen.datagrams).toEqual([
      { to: { address: "203.0.113.9", port: 4433 }, bytes: 5 },
      { to: { address: "10.9.9.9", port: 4433 }, bytes: 5 },
    ]);
    expect(seen.echoes).toBe(1);
  });

  test("leaves no process, namespace or file when it is closed, or when its test ends without closing it", async () => {
    for (const end of ["close", "forget"] as const) {
      const other = await TestInternet.open();
      const namespace = readlinkSync(`/proc/${other.pid}/ns/net`);
      expect(inNamespace(namespace)).toContain(other.pid);
      if (end === "close") await other.close();
      else await other.forget();
      expect(inNamespace(namespace)).toEqual([]);
      expect(existsSync(other.folder)).toBe(false);
    }
  });
});

/** The processes that are in a network namespace, as its link under /proc names it. */
function inNamespace(link: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readlinkSync(`/proc/${pid}/ns/net`) === link;
      } catch {
        // It has ended meanwhile.
        return false;
      }
    })
    .map(Number);
}
