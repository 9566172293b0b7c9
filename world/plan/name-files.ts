import type { MountOperation } from "./operations.ts";

/** The stub's address (resolv.conf(5)). No search list: a name is what it says. One try: the stub is here or nowhere. */
const RESOLV = "nameserver 127.0.0.53\noptions timeout:2 attempts:2 edns0\n";

/**
 * The host's own file would give addresses of names that the world's rules do not know. The host's name is there, because
 * programs look up their own.
 */
function hosts(name: string): string {
  const own = /^[A-Za-z0-9][A-Za-z0-9.-]*$/.test(name) ? ` ${name}` : "";
  return `127.0.0.1 localhost${own}\n::1 localhost ip6-localhost ip6-loopback\n`;
}

/** Where a world's programs learn how names are looked up: the world's own files, which nobody writes. */
export function nameFiles(hostname: string): readonly MountOperation[] {
  return [
    { op: "text", target: "/etc/resolv.conf", text: RESOLV },
    { op: "text", target: "/etc/hosts", text: hosts(hostname) },
  ];
}
