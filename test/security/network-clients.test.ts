import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { skip } from "../support/run/skips.ts";
import type { SeenConnection } from "../support/network/messages.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";
import { README } from "../support/git/git.ts";
import { SSH_GREETING } from "../support/network/streams.ts";

const ALLOWED = "git.example.test";
const REFUSED = "stranger.example.test";
/** A person waits no longer for a refusal. */
const REFUSED_WITHIN_MS = 3000;

type Client = {
  readonly program: string;
  /** A command that fails when the name cannot be reached. */
  readonly cmd: (name: string) => string;
  /** What it prints when it worked, of a server called `name`. */
  readonly prints: (name: string) => string;
  readonly port: number;
};

const hello = (name: string): string => `hello from ${name}`;

const CLIENTS: readonly Client[] = [
  { program: "curl", cmd: (name) => `curl -fsS https://${name}/`, prints: hello, port: 443 },
  {
    program: "wget",
    cmd: (name) => `wget -qO- --ca-certificate=ca.pem https://${name}/`,
    prints: hello,
    port: 443,
  },
  {
    program: "python3",
    cmd: (name) =>
      `python3 -c 'import urllib.request as u; print(u.urlopen("https://${name}/").read().decode())'`,
    prints: hello,
    port: 443,
  },
  {
    program: "node",
    cmd: (name) => `node -e 'fetch("https://${name}/").then((r) => r.text()).then(console.log)'`,
    prints: hello,
    port: 443,
  },
  {
    program: "perl",
    cmd: (name) =>
      `perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new("${name}:80") or die; print $s "GET / HTTP/1.0\\r\\nHost: ${name}\\r\\n\\r\\n"; print <$s>'`,
    prints: hello,
    port: 80,
  },
  {
    program: "bash",
    cmd: (name) =>
      `bash -c 'exec 3<>/dev/tcp/${name}/80 && printf "GET / HTTP/1.0\\r\\nHost: ${name}\\r\\n\\r\\n" >&3 && cat <&3'`,
    prints: hello,
    port: 80,
  },
  {
    program: "openssl",
    cmd: (name) =>
      `printf 'GET / HTTP/1.0\\r\\nHost: ${name}\\r\\n\\r\\n' | openssl s_client -quiet -ign_eof -verify_return_error -CAfile ca.pem -servername ${name} -connect ${name}:443 2>&1`,
    prints: hello,
    port: 443,
  },
  {
    program: "nc",
    cmd: (name) => `nc -w 3 ${name} 22 </dev/null`,
    prints: () => SSH_GREETING.trim(),
    port: 22,
  },
  {
    program: "ssh",
    // ssh takes its settings from the home of /etc/passwd, not from HOME: without -F they are a person's.
    // The server greets and then echoes what is no key exchange: the client says how far it came.
    cmd: (name) =>
      `ssh -F /dev/null -v -o BatchMode=yes -o ConnectTimeout=3 -o UserKnownHostsFile=/dev/null x@${name} 2>&1 | tee seen.txt; grep -q 'Connection established' seen.txt`,
    prints: () => "remote software version substrate_test",
    port: 22,
  },
  {
    program: "git",
    cmd: (name) =>
      `rm -rf clone && git clone -q https://${name}/git/project.git clone && cat clone/README && cd clone && git -c user.name=x -c user.email=x@y.z commit -q --allow-empty -m x && git push -q origin main && rm -rf ../clone`,
    prints: () => README.trim(),
    port: 443,
  },
];

describe.each(actors())("programs inside, as $kind", (actor) => {
  let place: NetworkPlace;
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, { default: networkPolicy([ALLOWED]) });
  });
  afterAll(() => place.close());

  test.each(CLIENTS)("$program reaches an allowed name", async (client) => {
    await needs(place, client);
    const { result, seen } = await place.during(client.cmd(ALLOWED));
    expect(result.stdout, result.stderr).toContain(client.prints(ALLOWED));
    expect(seen.connections.length).toBeGreaterThan(0);
    for (const { to, sni } of seen.connections) {
      expect(to).toEqual({ address: "203.0.113.30", port: client.port });
      if (client.port === 443) expect(sni).toBe(ALLOWED);
    }
  });

  test.each(CLIENTS)("$program fails soon with any other, and no server sees it", async (client) => {
    await needs(place, client);
    const { result, seen } = await place.during(client.cmd(REFUSED));
    expect(result.exit, result.stdout).not.toBe(0);
    expect(result.stdout).not.toContain(client.prints(REFUSED));
    expect(result.duration_ms).toBeLessThan(REFUSED_WITHIN_MS);
    expect(seen).toMatchObject({ connections: [], questions: [] });
  });

  test("reach it over many connections at once, each whole", async () => {
    const cmd = `seq 60 | xargs -P 20 -I N curl -fsS -o /dev/null -w '%{size_download}\\n' 'https://${ALLOWED}/download?bytes=100000' | sort | uniq -c`;
    const { result, seen } = await place.during(cmd);
    expect(result.stdout.trim(), result.stderr).toBe("60 100000");
    expect(seen.connections.filter(isTls)).toHaveLength(60);
  });

  test("that want IPv4 alone, and ask whether there is any, are told that there is", async () => {
    // glibc with AF_INET and AI_ADDRCONFIG finds no name while the only address is 127.0.0.1 (getaddrinfo(3)).
    const { result } = await place.during(
      `getent ahostsv4 ${ALLOWED} | wc -l; curl -4 -fsS https://${ALLOWED}/; wget -4 -qO- --ca-certificate=ca.pem https://${ALLOWED}/`,
    );
    expect(result.stdout, result.stderr).toBe(`3\n${hello(ALLOWED)}\n${hello(ALLOWED)}\n`);
  });

  test("that follow a redirect to another name are stopped there", async () => {
    const { result, seen } = await place.during(
      `curl -sSL 'https://${ALLOWED}/redirect?to=https://${REFUSED}/'`,
    );
    expect(result.exit).not.toBe(0);
    expect(seen.connections.map(({ sni }) => sni)).toEqual([ALLOWED]);
    const within = await place.during(`curl -sSL 'https://${ALLOWED}/redirect?to=http://${ALLOWED}/'`);
    expect(within.result.stdout).toBe(`hello from ${ALLOWED}\n`);
  });

  test("may speak of proxies as they like: there is none that leads out", async () => {
    const proxies = ["http://203.0.113.66:8080", "socks5h://203.0.113.66:9000", "http://127.0.0.1:8080"];
    for (const proxy of proxies) {
      const { result, seen } = await place.during(
        `https_proxy=${proxy} http_proxy=${proxy} curl -sS --max-time 5 https://${REFUSED}/`,
      );
      expect(result.exit).not.toBe(0);
      expect(seen.connections).toEqual([]);
    }
  });
});

async function needs(place: NetworkPlace, { program }: Client): Promise<void> {
  if ((await place.run(`command -v ${program}`)).exit !== 0)
    skip(`${program} inside a world with a network`, "it is not installed");
}

function isTls({ service }: SeenConnection): boolean {
  return service === "tls";
}
