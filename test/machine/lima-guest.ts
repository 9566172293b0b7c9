/** What is behind the stand-in for `limactl` here: a guest with the description's folders, scripts and forward, as Lima does them. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parse } from "yaml";
import type { Mount } from "../../lima/limactl.ts";
import { type Actor, type Ended, runAs, spawnAs } from "../support/users/users.ts";
import type { Place } from "../support/processes/place.ts";
import { TestLima } from "../support/world/lima.ts";
import { Guest } from "./guest.ts";
import { machineImage, virtiofsd } from "./image.mjs";

type Script = { readonly mode: string; readonly script: string };
type Forward = { readonly guestSocket: string; readonly hostSocket: string };

/** Of lima/substrate.yaml, what Lima acts on when a machine starts. */
type Description = {
  readonly portForwards: readonly [Forward, ...unknown[]];
  readonly provision: readonly Script[];
  readonly probes: readonly Script[];
};

/** A call of `limactl` that concerns a running machine. */
type Order = {
  readonly words: readonly string[];
  readonly folder: string;
  readonly machine: { readonly config: { readonly mounts: readonly Mount[] } };
};

type Answer = {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly pid?: number;
};

/** slirp's address for the first guest. */
const ADDRESS = "10.0.2.15";

/** For a program of this host, or of the guest. */
const READY_MS = 300_000;

export class LimaGuest {
  readonly lima: TestLima;
  readonly #actor: Actor;
  /** Of whoever runs the suite: the disk, and the key that leads into the guest. */
  readonly #folder: string;
  readonly #server: Server;
  #guest: Guest | undefined;
  #forward: ChildProcess | undefined;
  #shares: readonly ChildProcess[] = [];
  #port = 0;

  private constructor(actor: Actor, folder: string, lima: TestLima) {
    this.#actor = actor;
    this.#folder = folder;
    this.lima = lima;
    this.#server = createServer({ allowHalfOpen: true }, (socket) => void this.#answer(socket));
  }

  /** A machine that does not exist yet, for brokers of an ordinary user: Lima refuses root. */
  static async make(actor: Actor, node: string): Promise<LimaGuest> {
    const folder = mkdtempSync(join(tmpdir(), "sb-vm-disk-"));
    const lima = TestLima.behind(actor, node, (at) => ({ manager: join(at, "manager.sock") }));
    const guest = new LimaGuest(actor, folder, lima);
    const socket = join(lima.folder, "manager.sock");
    await new Promise<void>((resolve) => guest.#server.listen(socket, resolve));
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", guest.#key]);
    for (const path of [socket, guest.#key]) chownSync(path, actor.uid, actor.gid);
    return guest;
  }

  get guest(): Guest {
    if (this.#guest === undefined) throw new Error("The machine has not been started");
    return this.#guest;
  }

  /** Whose processes worlds are. */
  get place(): Place {
    // Encoded, and in a file: as a word, it would make the guest's shell and grep two of its own finds.
    const find = (marker: string): string =>
      `base64 -d <<< ${Buffer.from(marker).toString("base64")} > /run/marker; grep -laFf /run/marker /proc/[0-9]*/cmdline 2> /dev/null | cut -d / -f 3`;
    return {
      processesWith: async (marker) =>
        (await this.guest.must(find(marker))).split("\n").filter(Boolean).map(Number),
      killWorldOf: async (marker) => {
        const parent = "ps -o ppid= -p";
        await this.guest.must(`kill -9 $(${parent} $(${parent} $(${find(marker)} | head -n 1)))`);
      },
      // An emulated processor on a busy machine.
      patience: 15,
    };
  }

  /** As 'limactl shell' does for an upgrade. */
  async provisionAgain(): Promise<void> {
    const { code, stdout, stderr } = await this.#ssh("sudo /mnt/substrate/lima/provision.sh");
    if (code !== 0) throw new Error(`The provisioning ended with ${code}: ${stdout}${stderr}`);
  }

  /** Ends the forward of the agent's socket, as a sleep of the host does: the machine and its agent go on. */
  async cut(): Promise<void> {
    await killed(this.#forward);
  }

  /** Ends the machine as a crash does. */
  async crash(): Promise<void> {
    this.#guest?.off();
    await this.#guest?.ended();
  }

  async remove(): Promise<void> {
    await this.crash();
    await this.#offHost();
    this.#server.close();
    rmSync(this.#folder, { recursive: true, force: true });
    this.lima.stop();
  }

  get #key(): string {
    return join(this.lima.folder, "key");
  }

  async #answer(socket: Socket): Promise<void> {
    let text = "";
    // The answer goes back on the same socket.
    for await (const bytes of socket.iterator({ destroyOnReturn: false })) text += String(bytes);
    const answer = await this.#obey(JSON.parse(text) as Order).catch(async (error: unknown) => {
      const message = error instanceof Error ? error.message : String(error);
      process.stderr.write(`The guest of the stand-in for limactl: ${message}\n`);
      // A guest that went on would hold the disk of the next start.
      await this.crash();
      return { code: 1, out: "", err: `level=fatal msg=${JSON.stringify(message)}\n` };
    });
    socket.end(JSON.stringify(answer));
  }

  async #obey({ words, folder, machine }: Order): Promise<Answer> {
    const [verb] = words;
    if (verb === "start") await this.#start(folder, machine.config.mounts);
    else if (verb === "stop") await this.#stop();
    else {
      // shell --workdir=/ NAME PROGRAM…
      const { code, stdout, stderr } = await this.#ssh(words.slice(3).map(quoted).join(" "));
      return { code: code ?? 1, out: stdout, err: stderr };
    }
    return { code: 0, out: "", err: "", ...(verb === "start" ? { pid: this.guest.pid } : {}) };
  }

  /** The order is Lima's: the user and the folders, the provisioning, the forward, the probes. */
  async #start(folder: string, mounts: readonly Mount[]): Promise<void> {
    const description = parse(readFileSync(join(folder, "lima.yaml"), "utf8")) as Description;
    await this.#offHost();
    const disk = join(this.#folder, "disk");
    const isNew = !existsSync(disk);
    if (isNew) execFileSync("cp", ["--sparse=always", machineImage().disk, disk]);
    const place = mkdtempSync(join(tmpdir(), "sb-vm-"));
    const sockets = mounts.map((_mount, at) => join(place, `folder-${at}`));
    this.#shares = await Promise.all(
      mounts.map(({ location }, at) => servedFolder(location, sockets[at] ?? "")),
    );
    this.#port = await freePort();
    this.#guest = await Guest.start(place, [
      ...["-drive", `file=${disk},format=raw,if=virtio`],
      ...sockets.flatMap((socket, at) => [
        ...["-chardev", `socket,id=folder${at},path=${socket}`],
        ...["-device", `vhost-user-fs-pci,chardev=folder${at},tag=folder${at}`],
      ]),
      // No way out of the guest, and one in.
      ...["-netdev", `user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:${this.#port}-${ADDRESS}:22`],
      ...["-device", "virtio-net-pci,netdev=net,romfile="],
    ]);
    if (isNew) await this.guest.must(firstBoot(this.#actor, readFileSync(`${this.#key}.pub`, "utf8")));
    await this.guest.must([NETWORK, ...mounts.map(mountScript)].join("\n"));
    const named = (script: string): string => script.replaceAll("{{.User}}", this.#actor.name);
    for (const { script } of description.provision) await this.guest.must(named(script));
    await this.#forwardTo(description.portForwards[0]);
    for (const { script } of description.probes) {
      const { code, stdout, stderr } = await this.#ssh(named(script));
      if (code !== 0) throw new Error(`A probe ended with ${code}: ${stdout}${stderr}`);
    }
  }

  async #stop(): Promise<void> {
    await this.guest.run("systemctl --no-block poweroff");
    await Promise.race([this.guest.ended(), sleep(READY_MS)]);
    await this.crash();
    await this.#offHost();
  }

  async #offHost(): Promise<void> {
    for (const child of [this.#forward, ...this.#shares]) await killed(child);
  }

  async #forwardTo({ guestSocket, hostSocket }: Forward): Promise<void> {
    mkdirSync(dirname(hostSocket), { recursive: true });
    // Lima removes the socket of an earlier forward.
    rmSync(hostSocket, { force: true });
    const words = this.#sshWords("-N", "-L", `${hostSocket}:${guestSocket}`);
    const ssh = spawnAs(this.#actor, words, { stdio: ["ignore", "ignore", "inherit"] });
    this.#forward = ssh;
    for (const end = Date.now() + READY_MS; !existsSync(hostSocket); await sleep(50))
      if (ssh.exitCode !== null || Date.now() > end) throw new Error("ssh has not made the forward");
  }

  #ssh(script: string): Promise<Ended> {
    return runAs(this.#actor, [...this.#sshWords(), "--", script]);
  }

  #sshWords(...more: readonly string[]): readonly string[] {
    const options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"];
    const all = [...options, "BatchMode=yes", "IdentitiesOnly=yes", "ExitOnForwardFailure=yes"];
    return [
      // ssh ends with the test process, also after kill -9 of the test.
      ...["setpriv", "--pdeathsig=KILL", "ssh", "-F", "/dev/null", "-i", this.#key, "-p", `${this.#port}`],
      ...all.flatMap((option) => ["-o", option]),
      ...more,
      `${this.#actor.name}@127.0.0.1`,
    ];
  }
}

/** Makes the guest what Debian's cloud image is after cloud-init: one user, who may use sudo, and neither Node nor nft. */
function firstBoot({ name, uid, gid }: Actor, key: string): string {
  const home = `/home/${name}.linux`;
  return `set -e
for user in ann ben; do userdel --remove $user 2> /dev/null || ! id $user 2> /dev/null; done
rm /usr/local/bin/node; dpkg --purge nftables
groupadd --gid ${gid} ${name}
useradd --uid ${uid} --gid ${gid} --shell /bin/bash --create-home --home-dir ${home} ${name}
install -d -m 700 -o ${uid} -g ${gid} ${home}/.ssh
install -m 600 -o ${uid} -g ${gid} /dev/stdin ${home}/.ssh/authorized_keys <<< ${quoted(key.trim())}
echo '${name} ALL=(ALL) NOPASSWD:ALL' > /etc/sudoers.d/lima`;
}

/** The one interface but the loopback has the name that the initial RAM disk's udev gave it. */
const NETWORK = `set -e
modprobe virtio_net; modprobe virtiofs
device=$(timeout 60 bash -c 'until ls /sys/class/net | grep -vx lo; do sleep 0.1; done')
ip address add ${ADDRESS}/24 dev $device; ip link set $device up
mkdir -p /run/sshd; systemd-run --quiet --unit=sshd-of-lima /usr/sbin/sshd -D
timeout 120 bash -c 'until ss -Hltn sport = :22 | grep -q .; do sleep 0.2; done'`;

function mountScript({ location, mountPoint = location, writable }: Mount, at: number): string {
  const target = quoted(mountPoint);
  return `mkdir -p ${target}; mount -t virtiofs -o ${writable ? "rw" : "ro"} folder${at} ${target}`;
}

/** Serves a folder of this host to a guest, until the guest ends. */
async function servedFolder(location: string, socket: string): Promise<ChildProcess> {
  const words = [
    "--pdeathsig=KILL",
    virtiofsd() ?? "",
    `--socket-path=${socket}`,
    "-o",
    `source=${location}`,
  ];
  const log = openSync(`${socket}.log`, "w");
  const child = spawn("setpriv", words, { stdio: ["ignore", "ignore", log] });
  closeSync(log);
  for (const end = Date.now() + READY_MS; !existsSync(socket); await sleep(20))
    if (child.exitCode !== null || Date.now() > end)
      throw new Error(`Nothing serves '${location}': ${readFileSync(`${socket}.log`, "utf8")}`);
  return child;
}

async function killed(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
