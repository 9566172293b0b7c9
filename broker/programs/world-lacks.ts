/**
 * Explains failures caused by the world itself: few refused calls are reported, so the reason follows from the program's
 * purpose. Only for failed programs, since many succeed with a part of their features.
 */
import { basename } from "node:path";
import type { ProgramEvent } from "../../world/backend.ts";

type Told = {
  /** Follows `'NAME' failed: `. */
  readonly sentence: string;
  /** Left out unless what was printed says this. */
  readonly says?: RegExp;
};

type Lack = Told & {
  readonly names: string;
  readonly of?: "root" | "others";
  /** Left out where namespaces are allowed, or the refused call itself was reported. */
  readonly isNamespaces?: true;
  /** Left out in a world that shares a socket of `world.sockets` with this in its name. */
  readonly socket?: string;
  /** Told in a world that shares the socket. */
  readonly shared?: Told;
};

const ACCOUNTS =
  "the accounts of such tools in your home are hidden from commands unless fs.deny_read leaves them out. A variable that world.env names can carry a token, and a person can run it outside of Substrate";

const NO_NAMESPACES =
  "commands in a world cannot make namespaces, mounts or another root. 'world.namespaces: allow' in the policy lets them make user namespaces, and isolated commands mounts inside. A person can run it outside of Substrate";

const TCP_ALONE =
  "a world carries TCP connections alone and refuses ICMP and UDP. 'curl' or 'nc -z HOST PORT' shows whether a host answers";

const LACKS: readonly Lack[] = [
  {
    names:
      "unshare nsenter chroot pivot_root newuidmap newgidmap rootlesskit bwrap firejail nsjail systemd-nspawn podman buildah runc crun",
    sentence: NO_NAMESPACES,
    isNamespaces: true,
  },
  {
    names: "mount umount fusermount fusermount3",
    sentence: NO_NAMESPACES,
    isNamespaces: true,
    // `mount | head` ends by a signal, and a folder may be missing.
    says: /superuser|not permitted|permission denied|only root|setuid/i,
  },
  {
    names: "setfacl chown chgrp sg newgrp",
    sentence:
      "a world has one user and one group, so files cannot be given to others, and access lists cannot name others. A person can do this outside of Substrate",
    of: "others",
    // A missing file and an unknown user fail on the host too.
    says: /(?:Operation not permitted|Invalid argument)$/m,
  },
  {
    names: "chown chgrp mknod setcap setpriv su runuser",
    sentence:
      "root has no capabilities in a world, so it cannot make devices or give files to other users. A person can do this outside of Substrate",
    of: "root",
    says: /(?:Operation not permitted|Permission denied|Invalid argument)$/m,
  },
  {
    names: "chattr",
    sentence:
      "root has no capabilities in a world, so it cannot make files immutable or append-only. A person can do this outside of Substrate",
    of: "root",
    says: /Operation not permitted/,
  },
  {
    names: "dmesg",
    sentence: "a world does not read the kernel's messages. A person can run it outside of Substrate",
    says: /not permitted/i,
  },
  {
    names: "docker docker-compose docker-buildx nerdctl",
    sentence:
      "this world does not reach the socket of a container engine, which would give it the rights of root on this machine. A person can run it outside of Substrate",
    socket: "docker",
    says: /\bdocker daemon\b|\bdocker\.sock\b|\bcontainerd\.sock\b/i,
  },
  {
    names: "sudo doas pkexec su passwd chsh chfn",
    sentence:
      "commands in a world run with the rights of its user and gain no others (no_new_privs). A person can run it outside of Substrate",
  },
  {
    names: "ping ping4 ping6 fping arping traceroute traceroute6 tracepath mtr ntpdate ntpdig sntp",
    sentence: TCP_ALONE,
  },
  { names: "socat", sentence: TCP_ALONE, says: /\b(?:write|sendto)\(.*Operation not permitted$/m },
  {
    names: "dig nslookup host delv drill kdig",
    sentence:
      "a world carries TCP connections alone, so it reaches no name server by UDP but its own, which 'dig NAME' and 'getent hosts NAME' ask",
    says: /communications error to (?!127\.|::1)/,
  },
  {
    names: "iptables ip6tables iptables-save xtables-nft-multi xtables-legacy-multi nft ufw",
    sentence:
      "a world has a network of its own, whose rules the policy's net.allowed makes. A person can run it outside of Substrate",
    says: /netlink|initialize nft|not permitted|permission denied/i,
  },
  {
    names: "hostname date hwclock",
    sentence:
      "a world sets neither the clock of this machine nor its name. A person can do this outside of Substrate",
    says: /cannot set date|must be root|sethostname|hardware clock/i,
  },
  {
    names: "at batch crontab",
    sentence:
      "no command reaches the service of this machine that runs jobs later. A person can set it up outside of Substrate",
    says: /no crontab for|permission denied|not permitted|read-only file system|\/var\/spool/i,
  },
  {
    names: "systemctl service journalctl loginctl timedatectl hostnamectl busctl",
    sentence:
      "a world reaches no service manager and no bus of this machine. A person can run it outside of Substrate, where this machine has them",
  },
  {
    names: "perf",
    sentence:
      "a world has no performance counters and no kernel traces (perf_event_open is refused). A person can run it outside of Substrate",
    // `perf report` and the profiled program fail for reasons of their own.
    says: /No permissions? to (?:enable|read)|perf_event_open|performance monitoring and observability|tracefs/,
  },
  {
    names: "xdg-open xclip xsel wl-copy wl-paste notify-send",
    sentence: "a world reaches no display, clipboard or browser of this machine",
  },
  {
    names: "ssh scp sftp",
    sentence:
      "~/.ssh, with its keys and known hosts, is hidden from commands unless fs.deny_read leaves it out. 'world.sockets: [ssh-agent]' in every policy in force lends the keys of your agent; hosts are known where /etc/ssh/ssh_known_hosts names them (a person: ssh-keygen -F HOST | sudo tee -a /etc/ssh/ssh_known_hosts)",
    says: /Host key verification failed|Permission denied \(/,
  },
  {
    names: "git",
    sentence: ACCOUNTS,
    says: /could not read (?:Username|Password)|fatal: Authentication failed/,
  },
  // Package managers run scripts of packages, whose own messages about logins must not match.
  { names: "npm pnpm yarn", sentence: ACCOUNTS, says: /\b(?:ENEEDAUTH|E401)\b/ },
  {
    names:
      "gh glab hub twine aws gcloud gsutil az kubectl helm vercel netlify fly flyctl heroku doctl wrangler supabase stripe sentry-cli hf huggingface-cli kaggle",
    sentence: ACCOUNTS,
    says: /\b(?:auth|sso|az) login\b|log ?in\b|logged in|credentials|\b401\b|unauthori[sz]ed|localhost:8080/i,
  },
  {
    names: "ssh-add",
    sentence:
      "this world has no ssh-agent. 'world.sockets: [ssh-agent]' in every policy in force shares yours, if the broker was started with its SSH_AUTH_SOCK",
    socket: "ssh-agent",
    // A command may have an agent of its own.
    says: /connection to your authentication agent|connecting to agent/i,
    shared: {
      sentence:
        "commands in a world list the keys of your ssh-agent and sign with them, and cannot add or remove keys, lock the agent or load a smart card's library. A person can do this outside of Substrate",
      // Behind a prompt on the same line. An agent also refuses a signature that a person declines, which has other words.
      says: /(?:Could not (?:add|remove) |Failed to (?:un)?lock ).*agent refused operation|Failed to remove all identities/,
    },
  },
  {
    names: "gpg gpg2",
    sentence:
      "this world has no gpg-agent, and so no secret key of yours. 'world.sockets: [gpg-agent]' in every policy in force shares it, if it runs",
    socket: "gpg-agent",
    says: /No secret key|agent/i,
  },
];

/** Package managers that read the user's `.npmrc`, and not the built-in settings of npm, by which npm has its registries in a world. */
const NPMRC_READERS: ReadonlySet<string> = new Set(["pnpm", "pnpx", "bun", "bunx"]);

/** Verbs of pnpm and bun that ask a registry. */
const ASKING =
  /^(?:add|a|install|i|update|up|upgrade|outdated|info|view|audit|fetch|dlx|x|create|c|publish)$/;

function asksRegistry(name: string, argv: readonly string[]): boolean {
  return name.endsWith("x") || argv.slice(1).some((word) => ASKING.test(word));
}

/** Messages of the C library in untranslated locales, of nginx, Python and Node. */
const NO_RIGHT =
  /: (?:Permission denied|Operation not permitted)$|\((?:1|13): [^)]{1,40}\)$|\[Errno (?:1|13)\]|\bE(?:ACCES|PERM): /m;

/** Datagrams that the world refused, as Node, Go and a Python script say it. */
const REFUSED_DATAGRAM =
  /\bsend EPERM [\d.:a-f]+|\bwrite udp .*operation not permitted|\.send(?:to|msg)?\(.*\n(?:[ ^~]+\n)?PermissionError: \[Errno 1\]/;

const ROOT_IS_NOBODY =
  "root has no capabilities in a world: file modes and owners apply to it as to every user, which may have caused the refusal. A person can do this outside of Substrate";

/**
 * `ulimit` options that a world's shell cannot raise: core files (`-c`), and descriptors (`-n`) beyond a command's
 * bound.
 */
const RAISES = /^ulimit\s+(?:.*\s)?-[A-Za-z]*[cn]/;

/** What dash and bash say of it; a script often goes on. */
const NOT_RAISED = /\bulimit: .*(?:error setting limit|cannot modify limit)/;

const BOUNDED =
  "ulimit: commands in a world cannot write core files, and may open at most half of the broker's descriptors, up to 65,536 (ulimit -Hn). A person can run it outside of Substrate";

/** An explanation at a command's end. */
export type FailureTold = { readonly program: string | null; readonly message: string };

export type CommandEnd = {
  readonly argv: readonly string[];
  /** Whether the exit code was not 0, or a signal ended the command. */
  readonly failed: boolean;
  /** Shell builtins of the command, as written. */
  readonly builtins: readonly string[];
  /** Whether another reported refusal already explains the failure. */
  readonly explained: boolean;
  /** Whether a refused namespace was reported, or the policy allows namespaces. */
  readonly namespacesTold: boolean;
  /** Names of the host's sockets that the world shares. */
  readonly sockets: readonly string[];
  /** What was printed: the kept part of standard error, and the end of standard output. */
  readonly said: () => string;
};

/** Tracks the programs of a command. */
export class WorldLacks {
  readonly #isRoot: boolean;
  /** Running programs by number. */
  readonly #live = new Map<number, string>();
  readonly #failed = new Set<string>();
  /** Programs that ended with unknown status (before Linux 6.15). */
  readonly #unknown = new Set<string>();

  /** Programs of {@link NPMRC_READERS} that were started to ask a registry. */
  readonly npmrcReaders = new Set<string>();

  constructor(uid: number) {
    this.#isRoot = uid === 0;
  }

  /** Handler for `ExecRequest.onPrograms`. */
  readonly add = (events: readonly ProgramEvent[]): void => {
    for (const event of events) {
      if (event.kind === "started") {
        const name = basename(event.path);
        if (NPMRC_READERS.has(name) && asksRegistry(name, event.argv)) this.npmrcReaders.add(name);
        if (this.#lackOf(name) !== undefined) this.#live.set(event.number, name);
      } else if (event.kind === "ended") this.#end(event);
    }
  };

  /** Returns at most one explanation per lack. */
  told(end: CommandEnd): readonly FailureTold[] {
    const own = basename(end.argv[0] ?? "");
    const names = [...this.#failed, ...(end.failed ? [...this.#unknown, own] : [])];
    const told = new Map<Lack, FailureTold>();
    for (const name of names) {
      const lack = this.#lackOf(name);
      if (lack?.isNamespaces === true && end.namespacesTold) continue;
      const { socket } = lack ?? {};
      const isShared = socket !== undefined && end.sockets.some((shared) => shared.includes(socket));
      const { sentence, says } = (isShared ? lack?.shared : lack) ?? {};
      if (says !== undefined && !says.test(end.said())) continue;
      if (lack !== undefined && sentence !== undefined && !told.has(lack))
        told.set(lack, { program: name, message: `'${name}' failed: ${sentence}` });
    }
    const raises = end.builtins.some((fragment) => RAISES.test(fragment));
    const bounded = raises && NOT_RAISED.test(end.said());
    const datagram = end.failed && told.size === 0 && REFUSED_DATAGRAM.test(end.said());
    const explained = end.explained || told.size > 0 || bounded || datagram;
    const nobody = end.failed && this.#isRoot && !explained && NO_RIGHT.test(end.said());
    return [
      ...told.values(),
      ...(bounded ? [{ program: "ulimit", message: BOUNDED }] : []),
      ...(datagram ? [{ program: own, message: `'${own}' failed: ${TCP_ALONE}` }] : []),
      ...(nobody ? [{ program: own, message: ROOT_IS_NOBODY }] : []),
    ];
  }

  #end({ number, code, signal }: Extract<ProgramEvent, { kind: "ended" }>): void {
    const name = this.#live.get(number);
    if (name === undefined) return;
    this.#live.delete(number);
    if (code === null && signal === null) this.#unknown.add(name);
    else if (code !== 0) this.#failed.add(name);
  }

  /** Debian's alternatives lead to names such as `traceroute.db`. */
  #lackOf(name: string): Lack | undefined {
    const who = this.#isRoot ? "root" : "others";
    const plain = name.replace(/\.(?:db|openbsd|traditional)$/, "");
    return LACKS.find(({ names, of = who }) => of === who && names.split(" ").includes(plain));
  }
}
