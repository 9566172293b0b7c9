import { createHash } from "node:crypto";
import {
  chmodSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

/** What a person has at home, and what programs and tests could take for theirs. Settings that break whoever reads them. */
const FILES = {
  ".ssh/id_ed25519": "a private key\n",
  ".ssh/config": "Host *\n  ProxyCommand false\n",
  ".ssh/known_hosts": "example.org ssh-ed25519 AAAA\n",
  ".ssh/authorized_keys": "ssh-ed25519 AAAA person\n",
  ".gnupg/gpg.conf": "no-greeting\n",
  ".kube/config": "kind: Config\n",
  ".aws/credentials": "[default]\naws_secret_access_key = none\n",
  ".azure/msal_token_cache.json": "{}\n",
  ".docker/config.json": '{ "auths": {} }\n',
  ".config/gh/hosts.yml": "github.com:\n  oauth_token: none\n",
  ".config/gcloud/credentials.db": "none\n",
  ".config/git/config": "[core]\n  hooksPath = /nowhere\n",
  ".cargo/config.toml": "[net]\noffline = true\n",
  ".cargo/credentials.toml": "[registry]\ntoken = 'none'\n",
  ".netrc": "machine example.org login person password none\n",
  ".git-credentials": "https://person:none@example.org\n",
  ".gitconfig": "[commit]\n  gpgsign = true\n[core]\n  hooksPath = /nowhere\n",
  ".npmrc": "; a person's settings\nfund=false\n",
  ".pypirc": "[pypi]\npassword = none\n",
  ".vault-token": "none\n",
  ".substrate/config.yaml": "agents: { person: {} }\n",
  ".substrate/policies/default.yaml": "id: default\nname: A person's own\n",
  ".cache/tool/state": "state\n",
  ".local/share/tool/state": "state\n",
  ".local/bin/tool": "#!/bin/sh\n",
  ".bash_history": "make\n",
  "run/notes": "a folder with a name that tests may like\n",
  private: "and a file\n",
  mine: "and another\n",
  "work/app/.env": "TOKEN=none\n",
  "work/app/.git/config": "[core]\n  bare = false\n",
};
const LINKS = { ".link-to-nowhere": "nowhere", "work/home": ".." };
const WRITTEN = new Date("2020-02-02T02:02:02.020Z");

/**
 * Puts all that into a home, all of it old, and readable by its owner only.
 * @param {string} home
 */
export function furnish(home) {
  for (const [name, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(home, name)), { recursive: true, mode: 0o700 });
    writeFileSync(join(home, name), text, { flag: "wx", mode: 0o600 });
  }
  chmodSync(join(home, ".local/bin/tool"), 0o700);
  for (const [name, target] of Object.entries(LINKS)) symlinkSync(target, join(home, name));
  for (const path of below(home)) lutimesSync(join(home, path), WRITTEN, WRITTEN);
}

/**
 * Every name below a home with its kind, mode, owner, time of its last change and content. Not the time of the home
 * itself, in which the suite's own home comes and goes.
 * @param {string} home
 * @param {readonly string[]} but names in it that are left out
 * @returns {ReadonlyMap<string, string>}
 */
export function lookAt(home, but) {
  const seen = new Map();
  const { mode, uid, gid } = lstatSync(home);
  seen.set(".", [mode.toString(8), uid, gid].join(" "));
  for (const path of below(home, but)) {
    const at = join(home, path);
    const stat = lstatSync(at, { bigint: true });
    const content = stat.isFile() ? hash(readFileSync(at)) : stat.isSymbolicLink() ? readlinkSync(at) : "";
    seen.set(path, [stat.mode.toString(8), stat.uid, stat.gid, stat.mtimeNs, stat.ino, content].join(" "));
  }
  return seen;
}

/**
 * @param {ReadonlyMap<string, string>} before
 * @param {ReadonlyMap<string, string>} after
 * @returns {string[]} one line per name that is not as it was
 */
export function differences(before, after) {
  return [...new Set([...before.keys(), ...after.keys()])].sort().flatMap((path) => {
    const [was, is] = [before.get(path), after.get(path)];
    if (was === is) return [];
    if (is === undefined) return [`'${path}' is gone`];
    return [was === undefined ? `'${path}' is new` : `'${path}' was '${was}' and is '${is}'`];
  });
}

/**
 * @param {string} home
 * @param {readonly string[]} [but]
 * @returns {string[]} paths below it, of folders after what they hold
 */
function below(home, but = [], folder = "") {
  return readdirSync(join(home, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (but.includes(path)) return [];
    return entry.isDirectory() ? [...below(home, but, path), path] : [path];
  });
}

/** @param {Buffer} bytes */
function hash(bytes) {
  return createHash("sha256").update(bytes).digest("hex");
}
