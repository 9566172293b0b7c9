import type { PolicyName, Workload } from "../workload.ts";

/** What a plain command is told that may not write what runs by itself later; where it is isolated its changes are held. */
const PLAIN = /listed in commands\.isolated may write it/;
const PLAIN_AND_ISOLATED: readonly PolicyName[] = ["default", "strict", "isolated"];

/** Keys and certificates, other systems of versions, and what belongs to no other kind. */
export const SYSTEM: readonly Workload[] = [
  {
    name: "ssh-keygen makes a key and reads it",
    needs: ["ssh-keygen"],
    command:
      "ssh-keygen -q -t ed25519 -N '' -C me -f key && ssh-keygen -lf key | sed 's/SHA256:[^ ]*/HASH/'; ssh-keygen -yf key | cmp - key.pub; echo $?; ls -l key* | cut -c1-10; echo x > f; ssh-keygen -q -Y sign -n file -f key f; ls",
    varies: { content: [/\/(key(\.pub)?|f\.sig)$/] },
  },
  {
    name: "ssh reads the system's settings",
    needs: ["ssh"],
    command: "ssh -G example.org | grep -v -e identityfile -e knownhosts; echo $?",
    strictest: "claude-code",
  },
  {
    name: "ping",
    needs: ["ping"],
    command: "ping -c1 -W1 127.0.0.1 > /dev/null",
    refused: { default: /refuses ICMP and UDP/, strict: /refuses ICMP and UDP/ },
  },
  {
    name: "systemctl of the machine's services",
    needs: ["systemctl"],
    command: "systemctl is-active dbus",
    refused: { default: /no service manager/, strict: /no service manager/ },
  },
  {
    name: "docker of the machine's daemon",
    needs: ["docker"],
    command: "docker ps",
    refused: { default: /container engine/, strict: /container engine/ },
  },
  {
    name: "openssl makes keys, a certificate and signatures",
    needs: ["openssl"],
    command:
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout k.pem -out c.pem -days 9 -subj /CN=localhost 2> /dev/null; openssl x509 -in c.pem -noout -subject; openssl verify -CAfile c.pem c.pem; echo data > d; openssl dgst -sha256 d; openssl enc -aes-256-cbc -pbkdf2 -pass pass:x -in d -out e; openssl enc -d -aes-256-cbc -pbkdf2 -pass pass:x -in e; openssl rand -hex 4 | wc -c; ls -l k.pem | cut -c1-10",
    varies: { content: [/\.pem$/, /\/e$/] },
  },
  {
    name: "a TLS server and client of openssl",
    needs: ["openssl"],
    prepare:
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout k.pem -out c.pem -days 9 -subj /CN=localhost 2> /dev/null",
    command:
      "openssl s_server -accept 127.0.0.1:8443 -key k.pem -cert c.pem -www -quiet > /dev/null 2>&1 & p=$!; for i in $(seq 50); do printf 'GET / HTTP/1.0\\r\\n\\r\\n' | openssl s_client -connect 127.0.0.1:8443 -CAfile c.pem -quiet -ign_eof 2> /dev/null | head -1 | grep . && break; sleep 0.2; done; kill $p; wait $p 2> /dev/null; echo over",
  },
  {
    name: "gpg with its keys in the project",
    needs: ["gpg"],
    command:
      "export GNUPGHOME=$PWD/.gnupg; mkdir -m 700 .gnupg; gpg --batch --quiet --pinentry-mode loopback --passphrase '' --quick-gen-key me@example.org ed25519 sign 0 2> /dev/null; gpg --list-keys --with-colons | grep -c ^uid; echo x > f; gpg --batch --quiet --sign --armor --output f.asc f; gpg --verify f.asc 2>&1 | grep -c 'Good signature'; gpgconf --kill all",
    varies: { content: [/\.gnupg\//, /f\.asc$/], paths: [/\.gnupg\//] },
  },
  {
    name: "hg init, commit, branch and merge",
    needs: ["hg"],
    command:
      "export HGUSER=me; hg init; echo a > f; hg add f; hg commit -m one -d '0 0'; hg branch side; echo b >> f; hg commit -m two -d '1 0'; hg update -q default; echo c > g; hg add g; hg commit -m three -d '2 0'; hg merge -q side; hg commit -m four -d '3 0'; hg log -G -T '{rev} {desc}\\n'; hg status; hg diff -c 1",
    varies: { content: [/\/\.hg\//], paths: [/\/\.hg\/(wcache|cache)/] },
  },
  {
    name: "svn with a repository in the project",
    needs: ["svn", "svnadmin"],
    command:
      "svnadmin create repo; svn checkout -q file://$PWD/repo wc; cd wc; echo a > f; svn add f; svn commit -qm one; echo b >> f; svn diff; svn commit -qm two; svn update -q; svn log -q | sed 's/|.*//'; svn status",
    varies: { content: [/\/repo\//, /\.svn\//], paths: [/\/repo\/db/] },
  },
  {
    name: "git lfs",
    policies: PLAIN_AND_ISOLATED,
    refused: { default: PLAIN, strict: PLAIN },
    needs: ["git", "git-lfs"],
    prepare: "git init -q .; head -c 100000 /dev/zero > big.bin",
    command:
      "git lfs install --local && git lfs track '*.bin' && git add . && git commit -qm big && git lfs ls-files && git show HEAD:big.bin && git config --local --list | sort",
    env: { GIT_AUTHOR_DATE: "2024-05-06T07:08:09+00:00", GIT_COMMITTER_DATE: "2024-05-06T07:08:09+00:00" },
    // git-lfs sets its settings in any order; sorted they are printed.
    varies: { content: [/\/index$/, /\.git\/config$/] },
  },
  {
    name: "husky, as a project sets it up",
    policies: PLAIN_AND_ISOLATED,
    refused: { default: PLAIN, strict: PLAIN },
    needs: ["git", "node"],
    prepare: "git init -q .",
    files: { "package.json": '{"name":"h","version":"1.0.0"}\n' },
    command:
      "mkdir -p .husky/_ && printf '#!/bin/sh\\necho hook ran\\n' > .husky/pre-commit && chmod +x .husky/pre-commit && git config core.hooksPath .husky && git add . && git commit -m first",
    env: { GIT_AUTHOR_DATE: "2024-05-06T07:08:09+00:00", GIT_COMMITTER_DATE: "2024-05-06T07:08:09+00:00" },
    varies: { content: [/\/index$/] },
  },
  {
    name: "a new git hook",
    policies: PLAIN_AND_ISOLATED,
    refused: { default: PLAIN, strict: PLAIN },
    needs: ["git"],
    prepare: "git init -q .",
    command:
      "printf '#!/bin/sh\\necho hook ran\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && git commit --allow-empty -m first",
    env: { GIT_AUTHOR_DATE: "2024-05-06T07:08:09+00:00", GIT_COMMITTER_DATE: "2024-05-06T07:08:09+00:00" },
    varies: { content: [/\/index$/] },
  },
  {
    name: "an editor's settings are written (.vscode/tasks.json)",
    policies: PLAIN_AND_ISOLATED,
    refused: { strict: PLAIN },
    command: "mkdir -p .vscode && echo '{}' > .vscode/tasks.json && cat .vscode/tasks.json",
  },
  {
    name: "direnv's .envrc is written",
    policies: PLAIN_AND_ISOLATED,
    refused: { strict: PLAIN },
    command: "echo 'export A=1' > .envrc && cat .envrc",
  },
  {
    name: "an agent's settings are written (.claude/settings.json, .mcp.json)",
    policies: PLAIN_AND_ISOLATED,
    refused: { strict: PLAIN },
    command:
      "mkdir -p .claude && echo '{}' > .claude/settings.json && echo '{}' > .mcp.json && cat .claude/settings.json .mcp.json",
  },
  { name: "a .env file is written and read", command: "echo A=1 > .env && . ./.env && echo $A && cat .env" },
  {
    name: "a Makefile, a package.json and CI settings are written",
    command:
      "printf 'all:\\n\\techo made\\n' > Makefile; echo '{}' > package.json; mkdir -p .github/workflows; echo 'on: push' > .github/workflows/ci.yml; make -s; ls -A",
    needs: ["make"],
  },
  {
    name: "a look around that changes nothing",
    quick: true,
    needs: ["git"],
    prepare: "git init -q .; echo x > f; mkdir d; echo y > d/g; git add .; git commit -qm one",
    command:
      "ls -la | wc -l; cat f d/g; grep -rn x --include=f .; find . -path ./.git -prune -o -type f -print | sort; git log --oneline | wc -l; git status --short; git diff; wc -l f; head -1 f; du -sb d; file f 2>/dev/null | wc -l",
    strictest: "readonly",
    varies: { content: [/\/index$/] },
  },
  {
    name: "tests that keep to /tmp, in a project that cannot be written",
    needs: ["gcc"],
    files: { "t.c": "int main(void) { return 0; }\n" },
    command: "gcc -o /tmp/fidelity-t t.c && /tmp/fidelity-t; echo $?; rm /tmp/fidelity-t",
    strictest: "readonly",
  },
  {
    name: "a program that is known only when it runs",
    quick: true,
    command: "p=echo; $p dynamic; eval 'echo evaluated'; cmd='ls -A'; $cmd",
    strictest: "ci",
    refused: { ci: /opaque|known only/ },
  },
  {
    name: "dd, which the strict policy knows as dangerous",
    quick: "at length",
    command:
      "dd if=/dev/zero of=z bs=1k count=3 status=none; dd if=z bs=512 skip=1 count=1 status=none | wc -c; dd if=none of=y; echo $?",
    strictest: "claude-code",
  },
  {
    name: "chmod 777, which the strict policy refuses",
    quick: true,
    command: "chmod 777 f && stat -c %a f",
    files: { f: "x" },
    refused: { strict: /every user of the machine/ },
  },
  {
    name: "git reset --hard and git push --force, which the strict policy refuses",
    needs: ["git"],
    prepare:
      "git init -q .; git commit -q --allow-empty -m one; git init -q --bare o.git; git remote add o ./o.git; git push -q o main",
    command: "git reset -q --hard && git push -q --force o main && git log -1 --format=%s",
    refused: { strict: /discards changes/ },
    varies: { content: [/\/index$/, /\/logs\//], times: [/\.git\//] },
  },
  {
    name: "curl of a name that no policy allows, and that does not exist",
    needs: ["curl"],
    command: "curl -sS --max-time 5 https://forbidden.example/",
    // Where the policy only observes, the host is asked, and the sentence says that it does not know the name.
    refused: { default: /forbidden\.example.* cannot be resolved/, strict: /forbidden\.example/ },
  },
  {
    name: "shellcheck",
    needs: ["shellcheck"],
    files: { "s.sh": "#!/bin/sh\necho $1\n" },
    command: "shellcheck s.sh; echo $?",
  },
  { name: "tree", needs: ["tree"], prepare: "mkdir -p a/b; touch a/b/c a/d", command: "tree -a; tree -J a" },
  {
    name: "logger prints what it sends",
    needs: ["logger"],
    command: "logger -s -t fidelity message 2>&1 | sed 's/^<[0-9]*>.*fidelity/fidelity/'; echo $?",
  },
];
