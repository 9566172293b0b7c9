/** Small registries of one package each, as pages: what npm, pip, cargo, go, gem, Composer and Maven ask theirs for. */
import { createHash } from "node:crypto";
import { crc32, gzipSync } from "node:zlib";

/** Answers by path, without a host. A path that ends in `/` is a page of HTML. */
export type Pages = Readonly<Record<string, string | Buffer>>;

/** What each package says when it is run. */
export const SAYS = "a thing from the registry";

/** The paths that the pages of each registry begin with. */
export const REGISTRY_PATHS = ["npm", "pypi", "cargo", "go", "gems", "composer", "maven"] as const;
export type RegistryPath = (typeof REGISTRY_PATHS)[number];

/** @param urlOf where a registry is served, with its path and without a slash at the end. */
export function registryPages(urlOf: (path: RegistryPath) => string): Pages {
  return {
    ...npmPages(urlOf("npm")),
    ...pythonPages(),
    ...cargoPages(urlOf("cargo")),
    ...goPages(),
    ...composerPages(urlOf("composer")),
    ...mavenPages(),
  };
}

/** github.com/npm/registry: the package's document, and its tarball. */
function npmPages(base: string): Pages {
  const about = { name: "thing", version: "1.0.0", main: "index.js", bin: { thing: "cli.js" } };
  const tarball = tarGz({
    "package/package.json": JSON.stringify(about),
    "package/index.js": `module.exports = ${JSON.stringify(SAYS)};\n`,
    "package/cli.js": '#!/usr/bin/env node\nconsole.log(require("./index.js"));\n',
  });
  const dist = {
    tarball: `${base}/thing/-/thing-1.0.0.tgz`,
    shasum: hash("sha1", tarball),
    integrity: `sha512-${createHash("sha512").update(tarball).digest("base64")}`,
  };
  const document = {
    name: "thing",
    "dist-tags": { latest: "1.0.0" },
    versions: { "1.0.0": { ...about, dist } },
    // Package managers that wait some days before they take a new version look here.
    time: { created: LONG_AGO, modified: LONG_AGO, "1.0.0": LONG_AGO },
  };
  return { "/npm/thing": JSON.stringify(document), "/npm/thing/-/thing-1.0.0.tgz": tarball };
}

const LONG_AGO = "2020-01-01T00:00:00.000Z";

/** packaging.python.org/specifications/simple-repository-api and binary-distribution-format. */
function pythonPages(): Pages {
  const info = "thing-1.0.0.dist-info";
  const metadata = "Metadata-Version: 2.1\nName: thing\nVersion: 1.0.0\nRequires-Python: >=3.6\n";
  const wheel = zip({
    "thing/__init__.py": `SAYS = ${JSON.stringify(SAYS)}\n`,
    [`${info}/METADATA`]: metadata,
    [`${info}/WHEEL`]: "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    [`${info}/RECORD`]: `thing/__init__.py,,\n${info}/METADATA,,\n${info}/WHEEL,,\n${info}/RECORD,,\n`,
  });
  const file = "thing-1.0.0-py3-none-any.whl";
  const link = `<a href="../../files/${file}#sha256=${hash("sha256", wheel)}">${file}</a>`;
  return { "/pypi/simple/thing/": `<!doctype html><body>${link}</body>`, [`/pypi/files/${file}`]: wheel };
}

/** doc.rust-lang.org/cargo/reference/registry-index.html: a sparse index. */
function cargoPages(base: string): Pages {
  const folder = "thing-1.0.0";
  const crate = tarGz({
    [`${folder}/Cargo.toml`]: '[package]\nname = "thing"\nversion = "1.0.0"\nedition = "2018"\n',
    [`${folder}/src/lib.rs`]: `pub const SAYS: &str = ${JSON.stringify(SAYS)};\n`,
  });
  const line = {
    name: "thing",
    vers: "1.0.0",
    deps: [],
    cksum: hash("sha256", crate),
    features: {},
    yanked: false,
  };
  return {
    "/cargo/config.json": JSON.stringify({ dl: `${base}/dl` }),
    "/cargo/th/in/thing": `${JSON.stringify(line)}\n`,
    "/cargo/dl/thing/1.0.0/download": crate,
  };
}

/** go.dev/ref/mod#goproxy-protocol */
function goPages(): Pages {
  const [module, version] = ["example.test/thing", "v1.0.0"];
  const mod = `module ${module}\n\ngo 1.16\n`;
  const source = `package thing\n\n// Says what it is.\nconst Says = ${JSON.stringify(SAYS)}\n`;
  const folder = `${module}@${version}`;
  const info = JSON.stringify({ Version: version, Time: LONG_AGO });
  const at = `/go/${module}/@v`;
  return {
    [`${at}/list`]: `${version}\n`,
    [`/go/${module}/@latest`]: info,
    [`${at}/${version}.info`]: info,
    [`${at}/${version}.mod`]: mod,
    [`${at}/${version}.zip`]: zip({ [`${folder}/go.mod`]: mod, [`${folder}/thing.go`]: source }),
  };
}

/** getcomposer.org/doc/05-repositories.md#composer */
function composerPages(base: string): Pages {
  const about = { name: "example/thing", version: "1.0.0", autoload: { files: ["thing.php"] } };
  const archive = zip({
    "thing/composer.json": JSON.stringify(about),
    "thing/thing.php": `<?php\nconst THING_SAYS = ${JSON.stringify(SAYS)};\n`,
  });
  const dist = { type: "zip", url: `${base}/thing-1.0.0.zip`, shasum: hash("sha1", archive) };
  const packages = { "example/thing": { "1.0.0": { ...about, dist } } };
  return { "/composer/packages.json": JSON.stringify({ packages }), "/composer/thing-1.0.0.zip": archive };
}

/**
 * maven.apache.org/repositories/layout.html: a jar whose words are a resource, which needs no compiler. Maven adds the other one to
 * whatever extends a build.
 */
function mavenPages(): Pages {
  return {
    ...mavenArtifact("org.example", "thing", "1.0.0", { "thing.txt": SAYS }),
    ...mavenArtifact("org.codehaus.plexus", "plexus-utils", "1.1", {}),
  };
}

function mavenArtifact(group: string, name: string, version: string, files: Files): Pages {
  const pom =
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>' +
    `<groupId>${group}</groupId><artifactId>${name}</artifactId><version>${version}</version></project>\n`;
  const jar = zip({ "META-INF/MANIFEST.MF": "Manifest-Version: 1.0\n\n", ...files });
  const at = `/maven/${group.replaceAll(".", "/")}/${name}/${version}/${name}-${version}`;
  return {
    [`${at}.pom`]: pom,
    [`${at}.pom.sha1`]: hash("sha1", Buffer.from(pom)),
    [`${at}.jar`]: jar,
    [`${at}.jar.sha1`]: hash("sha1", jar),
  };
}

function hash(algorithm: "sha1" | "sha256", bytes: Buffer): string {
  return createHash(algorithm).update(bytes).digest("hex");
}

// Archives made in memory, the same bytes each time: registries serve them.

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
