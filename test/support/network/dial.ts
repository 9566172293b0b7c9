/**
 * A client for python: `dial.py ADDRESS PORT [ADDRESS PORT…]` connects to each in turn, asks for a page and prints a line
 * for each: what came of it (`connected`, the name of the error, or `hung` after three seconds) and in how many
 * milliseconds. An address may be a name, and may hold escapes of python's. Connected means that an answer came, or an
 * orderly end: a connection that is accepted and then reset was not let through.
 */
export const DIAL = `
import errno, socket, sys, time
SECONDS = 3

def spelled(host):
    try: return host.encode("idna")
    except UnicodeError: return host.encode("latin1", "replace")

def dialled(host, port):
    host = host.encode().decode("unicode_escape")
    with socket.create_connection((host, int(port)), SECONDS) as s:
        s.settimeout(SECONDS)
        s.sendall(b"GET / HTTP/1.1\\r\\nHost: " + spelled(host) + b"\\r\\nConnection: close\\r\\n\\r\\n")
        return "connected" if s.recv(1) else "closed"

def named(error):
    if isinstance(error, (TimeoutError, BlockingIOError)) and error.errno is None: return "hung"
    if isinstance(error, socket.gaierror): return "NXDOMAIN" if error.errno == socket.EAI_NONAME else "gai %d" % error.errno
    return errno.errorcode.get(getattr(error, "errno", None), type(error).__name__)

words = sys.argv[1:]
for host, port in zip(words[::2], words[1::2]):
    began = time.monotonic()
    try: came = dialled(host, port)
    except (OSError, ValueError) as error: came = named(error)
    print(came, round((time.monotonic() - began) * 1000), flush=True)
`;

/** One line of {@link DIAL}. */
export type Dialled = { readonly came: string; readonly ms: number };

export function readDialled(stdout: string): readonly Dialled[] {
  return stdout
    .trim()
    .split("\n")
    .filter(Boolean)
    .map((line) => {
      const at = line.lastIndexOf(" ");
      return { came: line.slice(0, at), ms: Number(line.slice(at + 1)) };
    });
}
