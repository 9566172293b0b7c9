import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

export type Certificates = {
  /** The authority's certificate, which clients are told to trust. */
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
};

const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];

const AUTHORITY = `[req]
distinguished_name = name
x509_extensions = authority
prompt = no
[name]
CN = Substrate's tests
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
`;

/**
 * Makes an authority of the test's own and a certificate for names (`*.` stands for one label) in a folder.
 * Returns the paths of PEM files. Throws when openssl is not there or refuses.
 */
export async function makeCertificates(folder: string, names: readonly string[]): Promise<Certificates> {
  const path = (name: string): string => join(folder, name);
  writeFileSync(path("authority.conf"), AUTHORITY);
  await openssl([
    ...["req", "-x509", ...NEW_KEY, "-config", path("authority.conf")],
    ...["-keyout", path("authority.key"), "-out", path("authority.pem")],
  ]);
  await openssl([
    ...["req", "-x509", ...NEW_KEY, "-subj", "/CN=substrate-test-server"],
    ...["-CA", path("authority.pem"), "-CAkey", path("authority.key")],
    ...["-addext", `subjectAltName=${names.map((name) => `DNS:${name}`).join(",")}`],
    ...["-addext", "basicConstraints=critical,CA:FALSE"],
    ...["-keyout", path("server.key"), "-out", path("server.pem")],
  ]);
  return { authority: path("authority.pem"), certificate: path("server.pem"), key: path("server.key") };
}

async function openssl(words: readonly string[]): Promise<void> {
  await promisify(execFile)("openssl", words);
}
