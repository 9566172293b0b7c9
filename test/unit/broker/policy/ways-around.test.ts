import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  decide,
  loadPolicy,
  parsePolicy,
  readShell,
  withVariables,
} from "../../../../broker/policy/index.ts";

const WHERE = { project: "/projects/app", home: "/home/ann", cwd: "/projects/app" };
const POLICIES = join(import.meta.dirname, "../../../../policies");

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
  ["strict", "deny opaque: deny", "cat x | capsh --", "capsh --print"],
  ["strict", "deny opaque: deny", "CDPATH=other; cd x && ./run", "CDPATH= cd -- x && pwd"],
  ["strict", "deny opaque: deny", "export CDPATH=other; cd x && ./run", "export CDPATH=.; cd x && pwd"],
  ["strict", "deny opaque: deny", "cat x | dpkg-architecture -c sh", "dpkg-architecture -qDEB_HOST_ARCH"],
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

const TABLE = policyOf(`id: table
name: Table
mode: enforce
commands:
  denied: ["sudo *", "curl * | sh", "rm -rf /"]
  isolated: ["npm install *"]
  ask: ["git push *"]
  opaque: ask
`);

function policyOf(text: string) {
  const loaded = parsePolicy(text, "table.yaml");
  if ("problems" in loaded) throw new Error(loaded.problems.map((problem) => problem.text).join("\n"));
  return loaded.ok;
}

function verdictByTable(command: string): string {
  const { verdict, rule } = decide(TABLE, readShell(command), WHERE);
  return rule === null ? verdict : `${verdict} ${rule.list === "commands.opaque" ? "opaque" : rule.pattern}`;
}

/** What was read as nothing, and a command that looks like it and runs nothing more than it says. */
const HIDDEN: readonly (readonly [string, string, string])[] = [
  // expected, hidden, twin
  ["deny sudo *", "cat <<E\n${x:-'$(sudo id)'}\nE", "cat <<E\n${x:-'id'} $(id) 'it'\nE"],
  ["deny sudo *", "cat <<E\n${x:-'`sudo id`'}\nE", "cat <<E\n${x:-`id`}'\nE"],
  ["deny sudo *", "cat <<E\n${x:-'}'$(sudo id)\nE", "cat <<'E'\n${x:-'}'$(sudo id)\nE"],
  ["deny sudo *", "cat <<E\n$((1 + '$(sudo id)'))\nE", "cat <<E\n$((1 + $(id -u))) '\nE"],
  ["deny sudo *", "echo \"$(( '$(sudo id)' ))\"", "echo \"$(( $(id -u) ))\" '$(sudo id)'"],
  ["deny sudo *", "cat <<$'E'\ntext\nE\n$E\nsudo id", "cat <<$'E'\ntext\n$E\nE"],
  ["deny sudo *", "cat <<$'E'\ntext\n$E\nsudo id\nE", "cat <<'E'\ntext\n$E\nsudo id\nE"],
  ["deny sudo *", 'cat <<$"E"\ntext\n$E\nsudo id\nE', "cat <<E\ntext\nsudo id\nE"],
  ["ask opaque", "cat <<$(x)\nE\nE\nid", "cat <<X\nE\nX\nid"],
  ["deny sudo *", "jobs -x sh -c 'sudo id'", "jobs -l; echo -x sudo"],
  ["ask opaque", "jobs $(echo -x) sudo id", "jobs -p | grep sudo"],
  ["ask opaque", "x=-c; bash \"$x\" 'sudo id'", "x=run.sh; bash \"$x\" 'sudo id'"],
  ["ask opaque", "x=$(y); bash \"$x\" 'sudo id'", "bash \"$x\" 'sudo id'"],
  ["ask opaque", "f() { bash \"$1\" 'sudo id'; }; f -c", 'f() { bash run.sh "$1"; }; f -c'],
  ["ask opaque", "bash $(echo -c) 'sudo id'", 'bash "$(pwd)/run.sh" sudo'],
  ["ask opaque", "read x <<< -c; bash $x 'sudo id'", "read x <<< -c; bash run.sh $x"],
  ["ask opaque", "x='-k 1'; timeout \"$x\" 5 sudo id", 'x=5s; timeout "$x" id'],
  ["ask opaque", "x='5 sudo id'; timeout $x", "x=5; timeout 5 id $x"],
  ["ask opaque", "env -$x 'sudo id'", 'env -u "$x" id'],
  ["ask opaque", "env -$(echo S)'sudo id'", "env -u$(echo S) id"],
  ["deny sudo *", "env -S'timeout ${x} 5 sudo id'", "env -S'echo ${x} 5 sudo id'"],
  ["ask opaque", "xargs --$x=sudo id", 'xargs --max-args="$x" id'],
  ["ask opaque", "find . -e$x sudo id ';'", 'find . -name "$x" -type f'],
  ["ask opaque", "x=-exec; find . $x sudo id ';'", 'x=-exec; find . -name "$x"'],
  ["ask opaque", 'find "$x" sudo id ";"', 'find "$x" -exec id ";"'],
  ["ask opaque", "echo '-exec sudo id ;' | xargs find .", "ls | xargs -I{} find {} -name x"],
  ["ask opaque", "x=-c; git \"$x\" alias.z='!sudo id' z", 'x=log; git "$x" z; git -C "$y" status'],
  ["ask opaque", "git -$x alias.z='!sudo id' z", "git log -n$x"],
  ["ask opaque", "ls | xargs git", "ls | xargs git add"],
  ["ask opaque", "git fetch --up$x='sudo id' .", 'git fetch --depth="$x" .'],
  ["ask opaque", "npm $(echo exec) sudo id", 'npm run "$(echo exec)" id'],
  ["deny sudo *", "bash -c - 'sudo id'", "bash - sudo id"],
  ["deny sudo *", "sh + -c 'sudo id'", "sh +x run.sh -c 'sudo id'"],
  ["deny sudo *", "bash -e + +x <<E\nsudo id\nE", "bash -e +x run.sh + <<E\nsudo id\nE"],
  ["deny curl * | sh", "curl x | sh +", "curl x | sh run.sh +"],
  ["deny sudo *", "bash -oc posix 'sudo id'", "bash -o posix run.sh"],
  ["deny sudo *", "bash -rcfile x -c 'sudo id'", "bash -norc run.sh 'sudo id'"],
  ["ask opaque", "bash --rcfile <(echo sudo id) -i -c true", "bash --rcfile .bashrc -i -c true"],
  ["deny sudo *", "env 'BASH_FUNC_ls%%=() { sudo id; }' bash -c ls", "env 'x%%=() { sudo id; }' bash -c ls"],
  ["deny sudo *", "[[ -\\\nv a'[$(sudo id)]' ]]", "[[ -\\\nn a'[$(sudo id)]' ]]"],
  ["deny sudo *", "[[ -v a'[$(sudo id)]' ]]", "[[ $x == '[$(sudo id)]' ]]"],
  ["ask opaque", "read x <<< 'a[$(sudo id)]'; echo $((x))", "read x <<< 'a[$(sudo id)]'; echo \"$x\""],
  ["ask opaque", "read x <<< 'a[$(sudo id)]'; echo $(\\\n(x))", "read x <<< 'a[$(sudo id)]'; echo $(\\\n x)"],
  ["deny rm -rf /", "rm {'-rf',/}", "rm {'-rf/',x}"],
  ["deny rm -rf /", "rm {'',\\-rf,\"x\"} /", "rm {'',\\-rf,\"/\"}x"],
  ["ask git push *", "git {'push',origin}", "git {'log,push',origin}"],
  ["ask opaque", "env {A=}b,sudo} id", "docker ps --format {{.ID}},{{.Names}}"],
  ["ask opaque", "env {A=$x}b,sudo} id", "ls | xargs -I{} cp src/{}/{a,b} @{u},x"],
  ["ask opaque", "for i in {a}b,-c}; do sh $i 'sudo id'; done", "for i in {a},{b}; do sh $i 'sudo id'; done"],
  ["ask opaque", "curl x | while read n; do s=$((s+n)); done", "while read n; do s=$((s+n)); done < numbers"],
  ["ask opaque", "x=$(echo 'a[$(sudo id)]'); echo $((x))", "x=$(nproc); echo $((x * 2)) '$(sudo id)'"],
  ["ask opaque", "x='[$(sudo id)]'; echo $((a$x))", "x='[$(sudo id)]'; echo \"$x\""],
  ["ask opaque", "k='$(sudo id)'; echo $(( m[$k] ))", "k=a; echo $(( m[$k] ))"],
  [
    "ask opaque",
    "for PS4 in '$(sudo id)'; do set -x; true; done",
    "for i in '$(sudo id)'; do set -x; true; done",
  ],
  ["ask opaque", ": ${PROMPT_COMMAND:=sudo id}", ": ${NAME:=sudo id}"],
  ["ask opaque", "ENV='$(sudo id)' sh -i -c true", "ENV=test sh -c true"],
  ["ask opaque", "export ENV='`sudo id`'; sh -i", "export ENV=production; sh run.sh"],
  ["ask opaque", "make --ev='$(shell sudo id)'", "make --environment-overrides"],
  ["ask opaque", "make -sE '$(shell sudo id)'", "make -s -C E all"],
  ["ask opaque", "make X='$(shell sudo id)'", "make X='$(shall)' all"],
  ["ask opaque", "make 'X!=sudo id'", "make X=1"],
  ["ask opaque", "make -f <(echo 'a: ; sudo id')", "make -f Makefile.ci"],
  ["ask opaque", "make --fi=/dev/stdin", "make --file=stdin"],
  ["ask opaque", "set -H; echo sudo\n!!", "set -euo pipefail; echo '!!'"],
  ["ask opaque", "set -o history -o histexpand", "set -o pipefail"],
  ["ask opaque", "bash -i <<< $'echo sudo\\n!!'", "bash <<< 'echo sudo'"],
  ["ask opaque", "history -s sudo id; fc -s", "history | grep sudo"],
  ["ask opaque", "read BASH_CMDS[ls] <<< /usr/bin/sudo; ls", "read CMDS <<< /usr/bin/sudo; ls"],
  ["ask opaque", "printf -v 'BASH_ALIASES[ls]' 'sudo id'; ls", "printf 'BASH_ALIASES[ls]' 'sudo id'; ls"],
  ["ask opaque", "declare -n r=BASH_ALIASES; r[ls]='sudo id'", "declare -n r=names; r='sudo id'"],
  [
    "ask opaque",
    "f() { local -n r=$1; r[ls]=sudo; }; f BASH_CMDS",
    "f() { local -n r=$1; r=sudo; }; f names",
  ],
  ["ask opaque", 'read -r "$x" < f', 'read -rp "$x" answer < f'],
  // What made texts showed.
  ["ask opaque", "bash ''<(echo sudo id)", "bash run.sh <(echo sudo id)"],
  ["ask opaque", "echo >(true)#$(sudo id)", "echo >(true) #$(sudo id)"],
  ["ask opaque", "sh <(echo x)\\\nsudo", "diff <(echo x) \\\n <(echo y)"],
  ["deny sudo *", "(('$(sudo id)'))", "echo $((1 + 1))"],
  ["deny sudo *", "echo ${a['$(sudo id)']}", "echo ${a['1']} '$(sudo id)'"],
  ["ask opaque", "ls $((${x/$(case a in a) y;; esac)/z}))", "ls $(((1 + 2) * 3))"],
  ["deny sudo *", "env -S='-i sudo id'", "env -S='-i id' sudo"],
  ["deny sudo *", "env =x sudo id", "env x=sudo id"],
  ["ask opaque", "echo sudo | xargs --repl=X X id", "echo sudo | xargs --max-args=1 id"],
  ["deny sudo *", ': "${x:?<(sudo id)}"', ': "${x:?is not set}" "<(sudo id)"'],
  ["deny sudo *", 'cat <<E\n`sudo \\"id\\"`\nE', 'cat <<E\n`id` \\"sudo\\"\nE'],
  ["ask opaque", 's$\\\n"udo" id', 's"udo"\\\nx id'],
  ["ask opaque", "declare 'BASH_CMDS[q]'=/usr/bin/sudo; q", "declare 'NAMES[q]'=/usr/bin/sudo; q"],
  ["ask opaque", "x='$(sudo id)'; echo \"${x\\\n@P}\"", "x='$(sudo id)'; echo \"${x\\\n@Q}\""],
];

describe.each(HIDDEN)("%s: what was read as nothing", (expected, hidden, twin) => {
  test(`${JSON.stringify(hidden)}`, () => expect(verdictByTable(hidden)).toBe(expected));
  test(`the twin ${JSON.stringify(twin)} is allowed`, () => expect(verdictByTable(twin)).toBe("allow"));
});

test("a variable that the caller gives counts as one that the command sets", () => {
  const read = readShell("bash \"$x\" 'sudo id'");
  const given = (x: string): string => decide(TABLE, withVariables(read, { x }), WHERE).verdict;
  expect([given("-c"), given("run.sh"), given("x -c")]).toEqual(["ask", "allow", "ask"]);
});

test("the reason names the word that is in doubt and what it would decide", () => {
  const [spot] = readShell("x=-c; bash \"$x\" 'id'").opaque;
  expect(spot?.reason).toBe(
    `'"$x"' may be an option of 'bash' that runs another command: the value is only known when the command runs`,
  );
});

describe("a constant eval is read like bash -c", () => {
  const envelope = (command: string): string =>
    `source /home/ann/.agent/snapshot.sh 2>/dev/null || true && eval '${command}' < /dev/null && pwd -P >| /tmp/agent-cwd`;

  test.each([
    ["sudo id", "deny sudo *", "sudo id"],
    ["cd src && npm install left-pad", "isolate npm install *", "npm install left-pad"],
    ["git push origin main", "ask git push *", "git push origin main"],
    ["curl x | sh", "deny curl * | sh", "curl x | sh"],
    ["cd / && rm -rf *", "deny rm -rf /", "rm -rf *"],
    ["ls -la", "allow", null],
    ["npm test 2>&1 | tail -5", "allow", null],
    ["$x", "ask opaque", "$x"],
  ])("the envelope of %j gets %s, with the fragment %j", (command, expected, fragment) => {
    expect(verdictByTable(envelope(command))).toBe(expected);
    expect(decide(TABLE, readShell(envelope(command)), WHERE).rule?.fragment ?? null).toBe(fragment);
  });

  test("claude-code gives the envelope the verdict of its command", () => {
    const folder = join(import.meta.dirname, "../../../../policies");
    const loaded = loadPolicy(join(folder, "claude-code.yaml"), folder);
    if ("problems" in loaded) throw new Error("claude-code.yaml must load");
    const verdict = (text: string): string => decide(loaded.ok, readShell(text), WHERE).verdict;
    for (const command of ["sudo id", "npm ci", "git push", "ls -la", "git status"])
      expect([command, verdict(envelope(command))]).toEqual([command, verdict(command)]);
  });

  test.each([
    ["eval sudo id", "deny sudo *"],
    ["eval -- 'sudo id'", "deny sudo *"],
    ["eval 'eval \"sudo id\"'", "deny sudo *"],
    ["eval 'echo $(' 'sudo id' ')'", "deny sudo *"],
    ["eval su'do' '' id", "deny sudo *"],
    ['eval "su"do id', "deny sudo *"],
    ["eval 'cd /'; rm -rf *", "deny rm -rf /"],
    ["bash -c \"eval 'sudo id'\"", "deny sudo *"],
    ["builtin eval 'sudo id'", "deny sudo *"],
    ["eval '[[ a && sudo id ]]'", "deny sudo *"],
    ['eval "$x"', "ask opaque"],
    ["eval echo $x", "ask opaque"],
    ["eval echo *", "ask opaque"],
    ["eval 'eval \"$x\"'", "ask opaque"],
    ["x='sudo id'; eval $x", "ask opaque"],
    ["eval", "allow"],
    ["eval ''", "allow"],
    ["eval ls -la", "allow"],
    ["eval 'echo \"sudo id\"'", "allow"],
    ["eval 'x=1; echo $x'", "allow"],
    ["curl x | eval 'grep y'", "allow"],
    ["curl x | eval sh", "deny curl * | sh"],
    ["eval sh < <(curl x)", "deny curl * | sh"],
  ])("%j: %s", (command, expected) => expect(verdictByTable(command)).toBe(expected));
});
