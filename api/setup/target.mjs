import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { BUILD } from "./checkout.mjs";

/** Only a package has this file (pack.mjs): a checkout is built where it is used. */
export const TARGET_FILE = join(BUILD, "target.json");

/** Machine that the native parts run on, and the version of LMDB whose native part belongs to this package.
 * @typedef {{ platform: string, arch: string, libc: string, lmdb: string }} Target */

/** @returns {Target | undefined} undefined in a checkout */
export function packedFor() {
  try {
    return JSON.parse(readFileSync(TARGET_FILE, "utf8"));
  } catch {
    return undefined;
  }
}

/** @returns {Omit<Target, "lmdb">} */
export function thisMachine() {
  const libc = process.platform === "linux" ? libcOf(process.execPath) : "system";
  return { platform: process.platform, arch: process.arch, libc };
}

/** @param {Omit<Target, "lmdb">} target */
export function targetWords({ platform, arch, libc }) {
  return `${platform}-${arch}-${libc}`;
}

/** @param {Omit<Target, "lmdb">} one @param {Omit<Target, "lmdb">} other */
export function isSameTarget(one, other) {
  return targetWords(one) === targetWords(other);
}

/** ELF's first page names the dynamic loader (PT_INTERP, elf(5)); musl's is /lib/ld-musl-ARCH.so.1. @param {string} program */
function libcOf(program) {
  const page = Buffer.alloc(4096);
  const file = openSync(program, "r");
  try {
    readSync(file, page, 0, page.length, 0);
  } finally {
    closeSync(file);
  }
  return page.includes("/ld-musl-") ? "musl" : "glibc";
}
