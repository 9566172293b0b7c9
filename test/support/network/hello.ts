/**
 * A client of TLS for python that sends its first words as it likes: `hello.py NAME PORT SNI WAY` dials NAME, asks for a
 * page with SNI as the name of the handshake (`-` for none), and prints the first line of the answer, or the name of the
 * error. WAY is `whole`, `bytes` (one at a time), `records` (the ClientHello in two TLS records), `late` (after a second),
 * or `early` (half of it, a pause, the rest).
 */
export const HELLO = `
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
