/** Reads the kernel's settings, to explain a failed trial; never a substitute for the trial. */
import { existsSync, readFileSync } from "node:fs";
import { isInOuterSandbox } from "../linux/outer-sandbox.ts";

export type KernelSettings = {
  /** Returns a value below /proc/sys by its dotted name; undefined if missing in this kernel. */
  readonly sysctl: (name: string) => string | undefined;
  /** A seccomp filter, as in a container, restricts this process. */
  readonly filtered: boolean;
  /** Another sandbox surrounds this process. */
  readonly sandboxed: boolean;
  /** CAP_SYS_ADMIN is in the bounding set, so the process could still gain the capability. */
  readonly mayAdminister: boolean;
  /** Signs of a container, such as `/.dockerenv`. */
  readonly container: string | undefined;
  /** The root folder of this process is not a mount: a chroot, where the kernel makes no user namespace. */
  readonly chrooted: boolean;
  /** This process's user has a mapping in its user namespace. */
  readonly mapped: boolean;
};

const CAP_SYS_ADMIN = 21n;

const CONTAINER_SIGNS = ["/.dockerenv", "/run/.containerenv", "/run/systemd/container"];

export function kernelSettings(): KernelSettings {
  const status = readText("/proc/self/status") ?? "";
  const bounding = BigInt(`0x${/^CapBnd:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? "0"}`);
  const mounts = readText("/proc/self/mountinfo") ?? "";
  return {
    sysctl: (name) => readText(`/proc/sys/${name.replaceAll(".", "/")}`)?.trim(),
    filtered: /^Seccomp:\s*[12]/m.test(status),
    sandboxed: isInOuterSandbox(status),
    mayAdminister: (bounding & (1n << CAP_SYS_ADMIN)) !== 0n,
    container: CONTAINER_SIGNS.find((path) => existsSync(path)),
    chrooted: mounts !== "" && !/^\d+ \d+ \S+ \S+ \/ /m.test(mounts),
    mapped: /\d/.test(readText("/proc/self/uid_map") ?? "0"),
  };
}

/** Returns command lines that set a kernel parameter now and permanently. */
export function setKernel(name: string, value: string, uid: number): readonly [string, string] {
  const sudo = uid === 0 ? "" : "sudo ";
  return [
    `${sudo}sysctl -w ${name}=${value}`,
    `echo '${name} = ${value}' | ${sudo}tee -a /etc/sysctl.d/60-substrate.conf`,
  ];
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // Missing or unreadable: no information.
    return undefined;
  }
}
