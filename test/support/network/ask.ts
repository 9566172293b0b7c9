import type { TestInternet } from "./internet.ts";

/**
 * A client of DNS for python: `ask.py OVER SERVER NAME TYPE [NAME TYPE…]` prints a line for each question: the rcode and
 * the addresses, or `no answer`, or the name of the error. OVER is udp, tcp, tls or https. A name may hold escapes of
 * python's (`\\x00`), and is sent as it is spelled. No certificate is looked at: what is asked is who answers.
 */
export const ASK = `
import errno, http.client, ipaddress, socket, ssl, struct, sys
SECONDS = 2
TYPES = {"A": 1, "TXT": 16, "AAAA": 28, "HTTPS": 65, "ANY": 255, "MX": 15, "SRV": 33}

def question(name, kind):
    labels = name.encode().decode("unicode_escape").encode("latin1").rstrip(b".").split(b".")
    wire = b"".join(bytes([len(label)]) + label for label in labels) + b"\\0"
    return struct.pack("!6H", 4711, 0x0100, 1, 0, 0, 0) + wire + struct.pack("!2H", TYPES[kind], 1)

def past(message, at):
    while message[at]:
        if message[at] >= 0xc0: return at + 2
        at += 1 + message[at]
    return at + 1

def told(message):
    answers, at, found = struct.unpack_from("!H", message, 6)[0], past(message, 12) + 4, []
    for _ in range(answers):
        at = past(message, at)
        kind, _, _, size = struct.unpack_from("!HHIH", message, at)
        data = message[at + 10:at + 10 + size]
        if kind == 1: found.append(str(ipaddress.ip_address(data)))
        if kind == 28: found.append(":".join("%x" % group for group in struct.unpack("!8H", data)))
        at += 10 + size
    return " ".join([str(message[3] & 15)] + found)

def exactly(stream, size):
    data = b""
    while len(data) < size:
        more = stream.recv(size - len(data))
        if not more: raise ConnectionResetError(errno.ECONNRESET, "closed")
        data += more
    return data

def framed(stream, message):
    stream.sendall(struct.pack("!H", len(message)) + message)
    return exactly(stream, struct.unpack("!H", exactly(stream, 2))[0])

def asked(over, server, message):
    context = ssl._create_unverified_context()
    host, _, port = server.partition("#")
    if over == "udp":
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.settimeout(SECONDS)
            s.connect((host, int(port or 53)))
            s.send(message)
            return s.recv(65535)
    if over == "https":
        c = http.client.HTTPSConnection(host, int(port or 443), timeout=SECONDS, context=context)
        c.request("POST", "/dns-query", message, {"content-type": "application/dns-message"})
        return c.getresponse().read()
    with socket.create_connection((host, int(port or (53 if over == "tcp" else 853))), SECONDS) as s:
        if over == "tcp": return framed(s, message)
        with context.wrap_socket(s) as t: return framed(t, message)

words = sys.argv[3:]
for name, kind in zip(words[::2], words[1::2]):
    try: print(told(asked(sys.argv[1], sys.argv[2], question(name, kind))))
    except TimeoutError: print("no answer")
    except OSError as e: print(errno.errorcode.get(e.errno, type(e).__name__))
`;

export type Over = "udp" | "tcp" | "tls" | "https";

/** Asks the internet's own resolver from inside its namespace: a line for each question, as {@link ASK} prints it. */
export async function ask(
  internet: TestInternet,
  over: Over,
  questions: readonly (readonly [name: string, type: string])[],
): Promise<readonly string[]> {
  const { stdout, stderr } = await internet.run([
    "python3",
    "-c",
    ASK,
    over,
    "203.0.113.53",
    ...questions.flat(),
  ]);
  if (stderr !== "") throw new Error(`Cannot ask the tests' internet: ${stderr}`);
  return stdout.trim().split("\n");
}
