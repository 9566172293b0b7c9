/** Archives made in memory, the same bytes each time: registries serve them. */
import { crc32, gzipSync } from "node:zlib";

/** Contents by path. */
export type Files = Readonly<Record<string, string | Buffer>>;

const TAR_BLOCK = 512;

/** A POSIX tar (ustar) of regular files, all of which may be run. */
export function tar(files: Files): Buffer {
  const parts = Object.entries(files).flatMap(([name, content]) => {
    const body = Buffer.from(content);
    const padding = Buffer.alloc((TAR_BLOCK - (body.length % TAR_BLOCK)) % TAR_BLOCK);
    return [tarHeader(name, body.length), body, padding];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * TAR_BLOCK)]);
}

export function tarGz(files: Files): Buffer {
  return gzipSync(tar(files));
}

/** 2001-09-09: build tools refuse times before 1980. */
const TIME = 1_000_000_000;

function tarHeader(name: string, size: number): Buffer {
  const header = Buffer.alloc(TAR_BLOCK);
  const octal = (value: number, width: number): string => `${value.toString(8).padStart(width - 1, "0")}\0`;
  header.write(name, 0);
  header.write(octal(0o755, 8) + octal(0, 8) + octal(0, 8) + octal(size, 12) + octal(TIME, 12), 100);
  header.write("        0", 148);
  header.write("ustar\u000000", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 7)} `, 148);
  return header;
}

/** A zip of regular files, stored without compression (APPNOTE.TXT, 4.3). */
export function zip(files: Files): Buffer {
  const locals: Buffer[] = [];
  const entries: Buffer[] = [];
  let offset = 0;
  for (const [name, content] of Object.entries(files)) {
    const body = Buffer.from(content);
    const common = zipFields(name, body);
    const local = Buffer.concat([word(0x04034b50), common, Buffer.from(name), body]);
    // Made by Unix, version 2.0; no comment, disk 0, no internal attributes; a regular file with mode 0644.
    const tail = [short(0), short(0), short(0), word(0o100644 * 0x10000), word(offset)];
    entries.push(Buffer.concat([word(0x02014b50), short(0x0314), common, ...tail, Buffer.from(name)]));
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(entries);
  const count = short(entries.length);
  const end = [word(0x06054b50), short(0), short(0), count, count, word(directory.length), word(offset)];
  return Buffer.concat([...locals, directory, ...end, short(0)]);
}

/** What a local header and its entry of the directory share: from the version to the length of the extra field. */
function zipFields(name: string, body: Buffer): Buffer {
  const [midnight, newYear1981] = [0, 0x0221];
  return Buffer.concat([
    ...[short(20), short(0), short(0), short(midnight), short(newYear1981)],
    ...[word(crc32(body)), word(body.length), word(body.length), short(Buffer.byteLength(name)), short(0)],
  ]);
}

function short(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
}
