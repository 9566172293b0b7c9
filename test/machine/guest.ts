/** A virtual machine with a disk of its own, driven through a virtio port. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { machineImage } from "./image.mjs";
import { compilePrograms } from "./programs.ts";

export type Said = { readonly code: number; readonly out: string; readonly err: string };

/** A script that hangs would hold the port for ever. It ends with 124 (timeout(1)). */
const LONGEST_S = 900;

const MEMORY = "1536M";

export class Guest {
  readonly #qemu: ChildProcess;
  readonly #folder: string;
  readonly #port: Socket;
  readonly #lines: AsyncIterator<string>;

  private constructor(qemu: ChildProcess, folder: string, port: Socket) {
    this.#qemu = qemu;
    this.#folder = folder;
    this.#port = port;
    this.#lines = createInterface(port)[Symbol.asyncIterator]();
  }

  /** Boots, with the package installed by npm below /opt/npm. Nothing that the guest writes stays. */
  static async boot(tarball: string): Promise<Guest> {
    const folder = mkdtempSync(join(tmpdir(), "sb-vm-"));
    const { disk } = machineImage();
    const opt = withPackage(tarball, join(folder, "opt"));
    return await Guest.start(folder, [
      ...["-drive", `file=${disk},format=raw,if=virtio,snapshot=on`],
      ...["-drive", `file=${opt},format=raw,if=virtio,readonly=on`],
    ]);
  }

  /**
   * Boots a guest with these disks and devices.
   * @param folder of the guest's own: it goes with the guest
   */
  static async start(folder: string, devices: readonly string[]): Promise<Guest> {
    const { kernel, initrd } = machineImage();
    const socket = join(folder, "port");
    const qemu = spawn(
      // The guest ends with this process, also after its kill -9.
      "setpriv",
      [
        ...["--pdeathsig=KILL", "qemu-system-x86_64"],
        // TCG: an emulated processor is there wherever qemu is. A second one costs more in locks than it gives.
        ...`-machine q35,smm=off,memory-backend=memory -accel tcg -cpu max -smp 1 -m ${MEMORY}`.split(" "),
        // Shared with the programs that serve folders to the guest.
        ...["-object", `memory-backend-memfd,id=memory,size=${MEMORY},share=on`],
        ..."-nodefaults -display none -no-reboot".split(" "),
        ...["-kernel", kernel, "-initrd", initrd, "-serial", `file:${join(folder, "console")}`],
        ...["-device", "virtio-serial-pci", "-chardev", `socket,id=port,path=${socket},server=on,wait=off`],
        ...["-device", "virtserialport,chardev=port,name=port"],
        // After the port: the guest's kernel counts it among all virtio devices, and its agent knows it as the first.
        ...devices,
        ...[
          "-append",
          "root=/dev/vda rw console=ttyS0 quiet mitigations=off systemd.show_status=0 random.trust_cpu=on",
        ],
      ],
      { stdio: ["ignore", "ignore", "inherit"] },
    );
    const port = await connected(socket, qemu);
    const guest = new Guest(qemu, folder, port);
    for (;;) if ((await guest.#line()) === "ready") return guest;
  }

  /** Runs a script with bash, as root or in a login of a user. */
  async run(script: string, user?: string): Promise<Said> {
    const who = user === undefined ? "bash" : `runuser -l ${user}`;
    this.#port.write(
      `${base64(`timeout -k 5 ${LONGEST_S} ${who} -c "$(base64 -d <<< ${base64(script)})"`)}\n`,
    );
    const [code = "", out = "", err = ""] = (await this.#line()).replace(/\.$/, "").split(" ");
    return { code: Number(code), out: text(out), err: text(err) };
  }

  /** The same, which must end with 0. Returns its output. */
  async must(script: string, user?: string): Promise<string> {
    const { code, out, err } = await this.run(script, user);
    if (code !== 0) throw new Error(`'${script}' ended with ${code} in the guest: ${out}${err}`);
    return out;
  }

  get pid(): number {
    if (this.#qemu.pid === undefined) throw new Error("qemu has not started");
    return this.#qemu.pid;
  }

  /** Settles with the end of qemu, however it comes about. */
  async ended(): Promise<void> {
    if (this.#qemu.exitCode === null && this.#qemu.signalCode === null) await once(this.#qemu, "exit");
  }

  off(): void {
    this.#qemu.kill("SIGKILL");
    this.#port.destroy();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #line(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error("The guest has gone");
    return value;
  }
}

/** A disk with the programs of the tests, and the package. */
function withPackage(tarball: string, folder: string): string {
  mkdirSync(folder);
  compilePrograms(join(folder, "programs"));
  installPackage(tarball, join(folder, "npm"));
  execFileSync("mke2fs", ["-q", "-t", "ext4", "-d", folder, `${folder}.disk`, "128M"]);
  return `${folder}.disk`;
}

/** Installs the package as npm does: it has no dependencies, so npm needs no registry. Returns the package's folder. */
export function installPackage(tarball: string, prefix: string): string {
  const words = ["install", "--global", "--silent", "--offline", "--prefix", prefix, tarball];
  execFileSync("npm", words, { env: { ...process.env, npm_config_cache: `${prefix}.cache` } });
  return join(prefix, "lib/node_modules/substrate");
}

async function connected(path: string, qemu: ChildProcess): Promise<Socket> {
  while (qemu.exitCode === null && qemu.signalCode === null) {
    const socket = connect(path);
    const isOpen = await new Promise<boolean>((resolve) =>
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false)),
    );
    if (isOpen) return socket;
    await sleep(50);
  }
  throw new Error(`qemu ended with ${qemu.exitCode}`);
}

function base64(script: string): string {
  return Buffer.from(script).toString("base64");
}

function text(encoded: string): string {
  return Buffer.from(encoded, "base64").toString();
}
