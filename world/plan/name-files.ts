import type { MountOperation } from "./operations.ts";

/** Points to the DNS stub (resolv.conf(5)). No search list: names are used as given. */
const RESOLV = "nameserver 127.0.0.53\noptions timeout:2 attempts:2 edns0\n";

/**
 * Returns the world's hosts file. The host's own file would give addresses unknown to the world's rules. Contains the host's
 * name, because programs look up their own host.
 */
function hosts(name: string): string {
  const own = /^[A-Za-z0-9][A-Za-z0-9.-]*$/.test(name) ? ` ${name}` : "";
  return `127.0.0.1 localhost${own}\n::1 localhost ip6-localhost ip6-loopback\n`;
}

/**
 * Plans the host's own resolv.conf for a world with the host's network. `text`: its content where the file lies in a folder that
 * worlds do not show (systemd-resolved: /run); undefined: the world shows the host's file.
 */
export function hostNameFiles(text: string | undefined): readonly MountOperation[] {
  return text === undefined ? [] : [{ op: "text", target: "/etc/resolv.conf", text }];
}

/** Plans the files that configure name lookup: the world's own, not writable by anybody. */
export function nameFiles(hostname: string): readonly MountOperation[] {
  return [
    { op: "text", target: "/etc/resolv.conf", text: RESOLV },
    { op: "text", target: "/etc/hosts", text: hosts(hostname) },
  ];
}
