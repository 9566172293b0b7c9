import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { decide, loadPolicy, parsePolicy, readShell, withVariables } from "../../broker/policy/index.ts";

const WHERE = { project: "/projects/app", home: "/home/ann", cwd: "/projects/app" };

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

function verdictOf(command: string): string {
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
  test(`${JSON.stringify(hidden)}`, () => expect(verdictOf(hidden)).toBe(expected));
  test(`the twin ${JSON.stringify(twin)} is allowed`, () => expect(verdictOf(twin)).toBe("allow"));
});

test("a variable that the caller gives counts as one that the command sets", () => {
  const read = readShell("bash \"$x\" 'sudo id'");
  const given = (x: string): string => decide(TABLE, withVariables(read, { x }), WHERE).verdict;
  expect([given("-c"), given("run.sh"), given("x -c")]).toEqual(["ask", "allow", "ask"]);
});

test("the reason names the word that is in doubt and what it would decide", () => {
  const [spot] = readShell("x=-c; bash \"$x\" 'id'").opaque;
  expect(spot?.reason).toBe(
    `'"$x"' may be an option of 'bash' and say which command it runs: known only when it runs`,
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
    expect(verdictOf(envelope(command))).toBe(expected);
    expect(decide(TABLE, readShell(envelope(command)), WHERE).rule?.fragment ?? null).toBe(fragment);
  });

  test("claude-code gives the envelope the verdict of its command", () => {
    const folder = join(import.meta.dirname, "../../policies");
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
  ])("%j: %s", (command, expected) => expect(verdictOf(command)).toBe(expected));
});
