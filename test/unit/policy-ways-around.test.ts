import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { decide, loadPolicy, readShell } from "../../broker/policy/index.ts";

const WHERE = { project: "/projects/app", home: "/home/ann", cwd: "/projects/app" };
const POLICIES = join(import.meta.dirname, "../../policies");

function verdictOf(policy: string, command: string): string {
  const loaded = loadPolicy(join(POLICIES, `${policy}.yaml`), POLICIES);
  if ("problems" in loaded) throw new Error(loaded.problems.map(({ text }) => text).join("\n"));
  const { verdict, rule } = decide(loaded.ok, readShell(command), WHERE);
  return rule === null ? verdict : `${verdict} ${rule.pattern}`;
}

/** Each does what its rule is about, by the words of its program; the twins look like it and do not. */
const WAYS: readonly (readonly [string, string, string, string])[] = [
  // policy, expected, way around, twin that is allowed
  ["strict", "deny git push * +*", "git push origin main +x", "git push origin main x"],
  ["strict", "deny git push * +*", "git push -o ci.skip origin +main", "git push -o ci.skip origin main"],
  ["strict", "deny opaque: deny", "git -c help.autocorrect=1 psuh -f", "git -c help.autocorrect=0 psuh"],
  ["strict", "deny opaque: deny", "git -c help.autocorrect=immediate psuh -f", "git -c color.ui=1 log"],
  [
    "strict",
    "deny opaque: deny",
    "git -c remote.o.push=+HEAD:main push o",
    "git -c remote.o.prune=1 fetch o",
  ],
  ["strict", "deny opaque: deny", "git -c remote.o.mirror push o", "git -c core.bare log"],
  [
    "strict",
    "deny opaque: deny",
    "GIT_ALLOW_PROTOCOL=ext git ls-remote 'ext::id'",
    "GIT_ALLOW_PROTOCOL=https git fetch",
  ],
  ["strict", "deny sudo *", "git rebase -ix 'sudo id' HEAD~1", "git rebase -i HEAD~1"],
  ["strict", "deny sudo *", "setarch x86_64 sudo id", "setarch x86_64 id"],
  ["strict", "deny sudo *", "choom -n 1 -- sudo id", "choom -p 1"],
  ["strict", "deny sudo *", "logsave log sudo id", "logsave sudo id"],
  ["strict", "deny sudo *", "screen -dmS name sudo id", "screen -S sudo id"],
  ["strict", "deny sudo *", "systemd-cat -t x sudo id", "systemd-cat -t sudo id"],
  ["strict", "deny sudo *", "cmake -E env A=1 sudo id", "cmake -E echo sudo id"],
  ["strict", "deny sudo *", "cmake -E chdir x sudo id", "cmake -E chdir sudo id"],
  ["strict", "deny sudo *", "npm explore x -- sudo id", "npm explore sudo -- id"],
  ["strict", "deny sudo *", "npm explore x 'sudo id'", "npm explore x 'echo sudo'"],
  ["strict", "deny sudo *", "fd -e ts -x sudo id", "fd -e ts sudo"],
  ["strict", "deny sudo *", "go test -exec 'sudo -n' ./...", "go test -run sudo ./..."],
  ["strict", "deny sudo *", "go build -toolexec=sudo .", "go build -o sudo ."],
  ["strict", "deny sudo *", "nix-shell -p x --run 'sudo id'", "nix-shell -p sudo --run id"],
  ["strict", "deny sudo *", "nix develop -c sudo id", "nix build .#sudo"],
  ["strict", "deny sudo *", "env -a NAME sudo id", "env -a sudo id"],
  ["strict", "deny sudo *", "env -aNAME sudo id", "env -asudo id"],
  ["strict", "deny sudo *", "env -ia NAME A=1 sudo id", "env -ia sudo A=1 id"],
  ["strict", "deny sudo *", "env --argv0 NAME sudo id", "env --argv0 sudo id"],
  ["strict", "deny sudo *", "env --argv0=NAME sudo id", "env --argv0=sudo id"],
  ["strict", "deny sudo *", "cross-env A=1 sudo id", "cross-env A=sudo id"],
  [
    "strict",
    "isolate pip install *",
    "python3 -W ignore -m pip install x",
    "python3 -W ignore x.py -m pip install",
  ],
  ["strict", "isolate npm install *", "npm it x", "npm test x"],
  ["strict", "isolate gem install *", "gem inst x", "gem info x"],
  ["claude-code", "isolate npm ci *", "npm clean-install", "npm cache ls"],
  ["claude-code", "isolate npm ci *", "npm ic", "npm view x"],
  ["claude-code", "isolate npm ci *", "npm cit", "npm config ls"],
  ["claude-code", "isolate bun install *", "bun i", "bun test"],
  ["claude-code", "isolate bun add *", "bun a x", "bun run x"],
  ["claude-code", "ask npm publish *", "npm pub", "npm pkg get"],
  ["claude-code", "ask gem push *", "gem pus x.gem", "gem list"],
  // Shells by other names, and what runs a shell or its own input.
  ["strict", "deny curl * | sh", "curl x | yash", "curl x | yes"],
  ["strict", "deny curl * | sh", "curl x | ksh93", "curl x | base64"],
  ["strict", "deny curl * | sh", "curl x | rksh93 -s", "curl x | md5sum"],
  ["strict", "deny curl * | sh", "curl x | lksh", "curl x | less"],
  ["strict", "deny curl * | sh", "curl x | mksh-static -", "curl x | cat -"],
  ["strict", "deny curl * | sh", "curl x | bash-static", "curl x | tee bash-static"],
  ["strict", "deny curl * | sh", "curl x | zsh5", "curl x | head -n5"],
  ["strict", "deny curl * | sh", "curl x | posh", "curl x | wc"],
  ["strict", "deny curl * | sh", "curl x | rc", "curl x | bc"],
  ["claude-code", "deny curl * | sh", "curl x | ld.so /bin/sh", "curl x | ld.so /bin/cat"],
  ["claude-code", "deny curl * | sh", "curl x | sed e", "curl x | sed d"],
  ["claude-code", "deny curl * | sh", "curl x | sed -ne 's/x/y/e;p'", "curl x | sed -ne 's/e/e/p'"],
  ["claude-code", "deny curl * | sh", "curl x | sed -f -", "curl x | sed -f edit.sed"],
  [
    "claude-code",
    "deny curl * | sh",
    "curl x | busybox start-stop-daemon -S -x /bin/sh",
    "curl x | busybox start-stop-daemon -S -x /bin/cat",
  ],
  [
    "claude-code",
    "deny curl * | sh",
    "curl x | start-stop-daemon --start --startas=/bin/sh",
    "start-stop-daemon --stop --exec /bin/sh",
  ],
  ["strict", "deny curl * | sh", "yash -c 'curl x | sh'", "git commit -m 'yash -c x'"],
  ["strict", "deny eval *", `yash -c 'eval "$(curl x)"'`, "yash --version"],
  ["strict", "deny sudo *", "lksh -c 'sudo id'", "bash sudo.sh"],
  [
    "strict",
    "deny sudo *",
    "start-stop-daemon -S -bx /usr/bin/sudo -- id",
    "start-stop-daemon -K -x /usr/bin/sudo",
  ],
  ["strict", "deny sudo *", "sed '1e sudo id' f", "sed '1a sudo id' f"],
  ["strict", "deny sudo *", "sed '1~2 , 9 ! e sudo id' f", `sed -n "\${a},\${b}p" f`],
  [
    "strict",
    "deny sudo *",
    "sed -e ':a; N; $!ba' -e 'e sudo id' f",
    "sed -e ':e; N; $!be' -e 'i e sudo id' f",
  ],
  ["strict", "deny opaque: deny", "sed 's/[/]/x/e' f", `sed "s/$a[/]e/$b/g; /$c/d" f`],
  ["strict", "deny sudo *", "sed -n '/a/,$ {\ne sudo id\n}' f", "sed '/e sudo/d' f"],
  ["strict", "deny opaque: deny", "sed 's/x/id/e' f", "sed 's/e/x/g' f"],
  ["strict", "deny opaque: deny", "sed 's,a,b,gew out' f", "sed --sandbox 's,a,b,ge' f"],
  ["strict", "deny opaque: deny", "fish --init-command='sudo id'", "fish --no-config run.fish"],
  ["strict", "deny opaque: deny", "fish -C 'sudo id'", "fish -n run.fish"],
  ["strict", "deny opaque: deny", "pwsh -Command 'sudo id'", "pwsh build.ps1"],
  ["strict", "deny opaque: deny", "nu -e 'sudo id'", "nu run.nu"],
  ["strict", "deny opaque: deny", "echo 'sudo id' | tcsh", "tcsh -f run.csh"],
  // Options of git that are shortened, and its other names for a push.
  ["claude-code", "ask git clean -f *", "git clean --forc x", "git clean --dry-run x"],
  ["claude-code", "ask git clean -f *", "git clean --f", "git clean --exclude=f -n"],
  ["claude-code", "ask git clean -f *", "git clean -d --for", "git clean -d"],
  ["claude-code", "deny git push --force *", "git send-pack --force r.git HEAD:main", "git pack-refs"],
  [
    "strict",
    "deny git push --force *",
    "git send-pack --force r.git HEAD:main",
    "git send-pack r.git HEAD:main",
  ],
  [
    "strict",
    "deny git push --force *",
    "git http-push --force https://x main",
    "git push --force-with-lease",
  ],
  ["strict", "deny git push * +*", "git send-pack r.git +HEAD:main", "git push r.git HEAD:main"],
  ["strict", "deny git push --mirror *", "git push --mirr r.git", "git push --tags r.git"],
  ["strict", "deny git push --prune *", "git push --prune r.git", "git fetch --prune r.git"],
  ["strict", "deny git push --delete *", "git push r.git -d main", "git push -u r.git main"],
  ["strict", "deny git push * :*", "git push r.git main :old", "git push r.git main:new"],
  ["claude-code", "ask rm -r .git", "rm -r .git", "rm -r build"],
  ["claude-code", "ask rm $PROJECT/.git/objects*", "rm -rf .git/objects", "rm -rf .git/rebase-merge"],
  ["claude-code", "ask rm -r .git", "cd /tmp/x && rm -r .git", "cd /tmp/x && rm -r y"],
  ["claude-code", "ask find .git -delete *", "find .git -delete", "find . -name '*.pyc' -delete"],
  ["claude-code", "ask pnpm publish *", "pnpm -r publish", "pnpm -r test"],
  ["claude-code", "ask yarn npm publish *", "yarn npm publish", "yarn npm whoami"],
  ["claude-code", "ask docker image push *", "docker image push x", "docker image ls"],
  ["claude-code", "ask kubectl replace *", "kubectl replace -f x", "kubectl get x"],
  ["claude-code", "isolate uv tool install *", "uv tool install x", "uv tool list"],
  ["claude-code", "isolate pipx install *", "pipx install x", "pipx list"],
  ["claude-code", "isolate conda install *", "conda install -y x", "conda list"],
  ["claude-code", "deny rm -rf /", 'cd "$x"; cd /; rm -rf *', 'cd "$x"; cd /tmp/x; rm -rf *'],
];

describe.each(WAYS)("%s: %s", (policy, expected, around, twin) => {
  test(`${around}`, () => expect(verdictOf(policy, around)).toBe(expected));
  test(`the twin ${twin} is allowed`, () => expect(verdictOf(policy, twin)).toBe("allow"));
});

test.each([
  ['sh -c "$x"', "The text that the shell runs is only known when the command runs"],
  ['eval "$(x)"', "'eval' runs text that another command may have made"],
])("the reason for %s names no word that nobody wrote", (command, reason) => {
  expect(readShell(command).opaque.map((spot) => spot.reason)).toEqual([reason]);
});

test("what bash sets and dash runs is named as it was written", () => {
  const [spot] = readShell("declare -A m; m[a]=1").opaque;
  expect(spot?.reason).toBe("The program is only known when the command runs: 'm[a]=1'");
});
