// The guest's disk: Debian with systemd, made by mmdebstrap once and kept below .build/.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { BUILD } from "../../api/setup/checkout.mjs";
import { findProgram } from "../../api/setup/programs.mjs";

/** The suite of lima/substrate.yaml's image. */
const SUITE = "trixie";
const PACKAGES =
  "systemd systemd-sysv dbus libpam-systemd dbus-user-session linux-image-cloud-amd64 nftables iproute2 kmod git procps openssh-server sudo ca-certificates python3";

/**
 * A guest has no network, so what lima/provision.sh installs lies in a repository on its disk: as Debian's cloud image it has neither Node
 * nor nft (`lima-guest.ts` removes them).
 */
const REPOSITORY = "/srv/apt";
const LOAD = [
  "apt-get clean",
  "apt-get install --yes --quiet --quiet --download-only --install-recommends nodejs",
  "apt-get install --yes --quiet --quiet --download-only --reinstall nftables",
  `bash -c "mkdir ${REPOSITORY} && mv /var/cache/apt/archives/*.deb ${REPOSITORY}"`,
];

/** Each package's own fields, and where it lies (deb-src-index(5)): the index of a repository without folders. */
const INDEX = `cd ${REPOSITORY}; for deb in *.deb; do
  dpkg-deb --field $deb; echo "Filename: ./$deb"; echo "Size: $(stat --format=%s $deb)"
  echo "SHA256: $(sha256sum < $deb | cut -c 1-64)"; echo
done > Packages`;

/** Nobody looks at consoles, the devices are those of devtmpfs, and the journal may go with the guest: half of an emulated boot. */
const MASKED = `systemd-udevd.service systemd-udev-trigger.service systemd-udevd-kernel.socket systemd-udevd-control.socket
  systemd-timesyncd.service systemd-firstboot.service systemd-pstore.service systemd-journal-flush.service systemd-random-seed.service
  systemd-update-utmp.service e2scrub_reap.service e2scrub_all.timer apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer
  fstrim.timer systemd-networkd.service console-getty.service getty@tty1.service serial-getty@ttyS0.service getty-static.service
  remote-fs.target cryptsetup.target veritysetup.target integritysetup.target systemd-binfmt.service kmod-static-nodes.service
  systemd-tmpfiles-clean.timer motd-news.timer networking.service ssh.service ssh.socket`;

/** Lines in: base64 of a script for bash, run as root. Lines out: exit code, output and errors, in base64. One at a time. */
const AGENT = `#!/bin/bash
exec 3<>/dev/vport0p1
stty -F /dev/vport0p1 raw -echo 2>/dev/null
echo ready >&3
while IFS= read -r line <&3; do
  base64 -d <<< "$line" > /run/job
  bash /run/job > /run/out 2> /run/err < /dev/null 3>&-
  echo "$? $(base64 -w0 < /run/out) $(base64 -w0 < /run/err)." >&3
done
`;

const UNIT = `[Unit]
Description=Runs what the host asks for
DefaultDependencies=no
After=sysinit.target dbus.service systemd-logind.service
[Service]
# No unit of /etc/fstab: without udev systemd would wait for the device. A guest of Lima's stand-in has none.
ExecStartPre=-/bin/mount -o ro /dev/vdb /opt
ExecStart=/usr/local/sbin/machine-agent
KillMode=process
[Install]
WantedBy=multi-user.target
`;

/** Why no guest can be made here; undefined if one can. */
export function whyNoMachine() {
  const missing = ["qemu-system-x86_64", "mmdebstrap", "mke2fs"].filter(
    (name) => findProgram(name) === undefined,
  );
  if (process.arch !== "x64" || process.platform !== "linux") return "the guest is Debian for x86-64";
  if (process.getuid?.() !== 0) return "making the guest's disk needs root";
  return missing.length === 0 ? undefined : `${missing.join(", ")} not installed`;
}

/** Where Debian and others put the server of folders to guests; qemu 7 brought one itself. */
const VIRTIOFSD = ["/usr/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd"];

/** @returns {string | undefined} */
export function virtiofsd() {
  return VIRTIOFSD.find((path) => existsSync(path));
}

/** Why no guest can stand behind Lima's stand-in here; undefined if one can. */
export function whyNoLimaGuest() {
  const missing = ["ssh", "ssh-keygen"].filter((name) => findProgram(name) === undefined);
  if (virtiofsd() === undefined) missing.push("virtiofsd");
  return whyNoMachine() ?? (missing.length === 0 ? undefined : `${missing.join(", ")} not installed`);
}

/**
 * Makes the disk unless it is there. Throws with the last lines of what failed.
 * @returns {{ disk: string, kernel: string, initrd: string }}
 */
export function machineImage() {
  const recipe = readFileSync(fileURLToPath(import.meta.url));
  const key = createHash("sha256").update(recipe).update(process.version).digest("hex").slice(0, 16);
  const folders = join(BUILD, "machine");
  const folder = join(folders, key);
  if (!existsSync(folder)) {
    rmSync(folders, { recursive: true, force: true });
    const draft = join(folders, `${key}.${process.pid}`);
    mkdirSync(draft, { recursive: true });
    try {
      make(draft);
      renameSync(draft, folder);
    } finally {
      rmSync(draft, { recursive: true, force: true });
    }
  }
  return { disk: join(folder, "disk"), kernel: join(folder, "vmlinuz"), initrd: join(folder, "initrd") };
}

/** mmdebstrap and its mounts end with this process, also after its kill -9. */
const OWNED = "setpriv --pdeathsig=KILL unshare --mount --pid --fork --kill-child=KILL --mount-proc".split(
  " ",
);

/** @param {string} folder */
function make(folder) {
  const root = join(folder, "root");
  const words = ["--mode=root", "--variant=minbase", "--quiet", `--include=${PACKAGES.split(" ").join(",")}`];
  run(
    ...OWNED,
    "mmdebstrap",
    ...words,
    "--dpkgopt=force-unsafe-io",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    ...LOAD.map((words) => `--customize-hook=chroot "$1" ${words}`),
    SUITE,
    root,
  );
  for (const name of ["vmlinuz", "initrd"]) {
    const found = readdirSync(join(root, "boot")).find((each) => each.startsWith(name));
    copyFileSync(join(root, "boot", found ?? name), join(folder, name));
  }
  furnish(root);
  run("mke2fs", "-q", "-t", "ext4", "-d", root, join(folder, "disk"), "2G");
  rmSync(root, { recursive: true });
}

/** @param {string} root */
function furnish(root) {
  const write = (/** @type {string} */ path, /** @type {string} */ text, mode = 0o644) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text, { mode });
    chmodSync(join(root, path), mode);
  };
  cpSync(process.execPath, join(root, "usr/local/bin/node"));
  write("usr/local/sbin/machine-agent", AGENT, 0o755);
  write("etc/systemd/system/machine-agent.service", UNIT);
  mkdirSync(join(root, "etc/systemd/system/multi-user.target.wants"), { recursive: true });
  symlinkSync(
    "../machine-agent.service",
    join(root, "etc/systemd/system/multi-user.target.wants/machine-agent.service"),
  );
  for (const name of MASKED.split(/\s+/)) {
    const path = join(root, "etc/systemd/system", name);
    rmSync(path, { force: true });
    symlinkSync("/dev/null", path);
  }
  write("etc/modules-load.d/machine.conf", "virtio_console\noverlay\nnf_tables\nveth\n");
  write("etc/systemd/journald.conf.d/machine.conf", "[Journal]\nStorage=volatile\n");
  // An emulated processor starts Node in seconds.
  write("etc/systemd/system.conf.d/machine.conf", "[Manager]\nDefaultTimeoutStartSec=300\n");
  run("chroot", root, "bash", "-c", INDEX);
  write("etc/apt/sources.list", `deb [trusted=yes] file:${REPOSITORY} ./\n`);
  write("etc/hostname", "guest\n");
  // Newer than /usr: the first boot does not make caches again (systemd-update-done.service(8)).
  for (const name of ["etc/.updated", "var/.updated"]) write(name, "");
  // The native front first: an emulated processor takes two seconds to start Node.
  write("etc/profile.d/machine.sh", 'PATH="/opt/npm/lib/node_modules/substrate/.build:/opt/npm/bin:$PATH"\n');
  run("chroot", root, "useradd", "--create-home", "--shell", "/bin/bash", "ann");
  run("chroot", root, "useradd", "--create-home", "--shell", "/bin/bash", "ben");
}

/** @param {...string} argv */
function run(...argv) {
  const [program = "", ...words] = argv;
  try {
    execFileSync(program, words, {
      stdio: ["ignore", "pipe", "pipe"],
      encoding: "utf8",
      maxBuffer: 64 << 20,
    });
  } catch (error) {
    const { stderr = "" } = /** @type {{ stderr?: string }} */ (error);
    throw new Error(`'${program} ${words.join(" ")}' failed:\n${stderr.split("\n").slice(-15).join("\n")}`, {
      cause: error,
    });
  }
}
