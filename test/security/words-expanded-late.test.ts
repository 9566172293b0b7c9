/**
 * Words that a shell expands a second time, or that become an option only there: the reader must see the pipe, or say that it cannot.
 * Judged by what ran: a rule about a pipe is the reader's alone, since each program in it may start by itself.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { actors } from "../support/users/users.ts";

const PIPE = "cat payload | sh";

const POLICY = `id: default
name: A pipe into a shell
mode: enforce
commands:
  denied: ["cat * | sh", "kill *"]
  opaque: deny
`;

const IN_SH: readonly string[] = [
  // An operand that is an option where the variable is not set.
  `sh \${x:--c} '${PIPE}'`,
  `sh "\${x:--c}" '${PIPE}'`,
  `sh \${PWD:+-c} '${PIPE}'`,
  `sh \${1--c} '${PIPE}'`,
  `find . -maxdepth 0 \${x:--exec} sh -c '${PIPE}' \\;`,
  `git \${x:--c} alias.x='!${PIPE}' x`,
  `trap -\${x:--} '${PIPE}' EXIT`,
  // An option behind a variable that is not set, in a part of a value, and by 'export'.
  `sh \${x}-c '${PIPE}'`,
  `mkdir -p -- -c; cd ./-c; sh \${PWD##*/} 'cd ..; ${PIPE}'`,
  `x=a/-c; sh \${x##*/} '${PIPE}'`,
  `export x=-c; sh $x '${PIPE}'`,
  `bash -c "declare -a a='(\\$(${PIPE}))'"`,
  // Operands of several words, several operands, and replacements.
  `sh "\${HOME/*/-c}" '${PIPE}'`,
  `find . -maxdepth 0 \${x:--exec sh -c '${PIPE}' \\;}`,
  `git \${x:--c alias.x='!${PIPE}'} x`,
  `sh \${x:+a}\${y:--c} '${PIPE}'`,
  `sh \${x:+a} \${y:--c} '${PIPE}'`,
  // Values that the shell makes itself.
  `: -c; sh \${_} '${PIPE}'`,
  `getopts x: y -x-c; sh $OPTARG '${PIPE}'`,
  `touch -- z-c; for x in z*; do sh \${x#z} '${PIPE}'; done`,
];

const IN_BASH: readonly string[] = [
  // Values of arrays.
  `declare -a a='($(${PIPE}))'`,
  `declare -A a='([$(${PIPE})x]=1)'`,
  `x[0]=1; declare x='($(${PIPE}))'`,
  `declare DIRSTACK='($(${PIPE}))'`,
  // Subscripts, as the quotes leave them.
  `[[ -v $'a[\\x24(${PIPE})]' ]]`,
  `[[ 0 -eq 'a[$'"(${PIPE})]" ]]`,
  `[[ -v 'a[$''(${PIPE})]' ]]`,
  "test -v a[\\$\\(cat\\ payload\\|sh\\)]",
  // A substitution put together, or reached by a name.
  `x='a[$'; x+='(${PIPE})]'; : $((x))`,
  `y='$'; let "a[$y(${PIPE})]"`,
  `y='$'; test -v "a[$y(${PIPE})]"`,
  `y='$'; printf -v "a[$y(${PIPE})]" x`,
  `y='$'; declare "a[$y(${PIPE})]=1"`,
  `echo 'a[$(${PIPE})]' > e; test -v "$(<e)"`,
  `declare -A m; k='$(${PIPE})'; printf -v "m[$k]" x`,
  `f() { local -n r=$1; r=1; }; f 'a[$(${PIPE})]'`,
  `set -- 'a[$(${PIPE})]'; : \${!1}`,
  `typeset -i x; for x in 'a[$(${PIPE})]'; do :; done`,
  `a='$(${PIPE})'; compgen -W "$a"`,
  `x='a['; x+='$(${PIPE})]'; : $((x))`,
  `printf -v x 'a[\\x24(${PIPE})]'; : $((x))`,
  `x=\${y:-'1 + a[$(${PIPE})]'}; : $((x))`,
  `test -v "a\${q}[\\$(${PIPE})]"`,
  `f() { declare "$1=1"; }; f 'a[$(${PIPE})]'`,
  `a=(1); y='($(${PIPE}))'; declare -a a="$y"`,
  // Prompts.
  `PS4='$'; PS4+='(${PIPE})'; set -x; :`,
  `f() { declare "$1=$2"; set -x; :; }; f PS4 '$(${PIPE})'`,
  `PS4='\\044(${PIPE})'; set -x; :`,
  `a='$(${PIPE})'; PS4=$a; set -x; :`,
  `f() { local PS4=$1; set -x; :; }; f '$(${PIPE})'`,
  `x=PS4; declare $x='$(${PIPE})'; set -x; :`,
  `declare -n PS4=a; a='$(${PIPE})'; set -x; :`,
  // In a function, of an array that is declared elsewhere, and by a replacement.
  `f() { unset "$1"; }; f 'a[$(${PIPE})]'`,
  `f() { x[$1]=1; }; f 'a[$(${PIPE})]'`,
  `f() { exec {x[$1]}>e; }; f 'a[$(${PIPE})]'`,
  `a=(); y='($(${PIPE}))'; declare a="$y"`,
  `x='a[X(${PIPE})]'; echo $(( \${x/X/\\$} ))`,
  // Git's settings by variables.
  `a='!${PIPE}'; GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.z GIT_CONFIG_VALUE_0=$a git z`,
  // bash 5.2 alone reads '\\x{63}' as 'c'.
  `bash $'-\\x{63}' '${PIPE}'`,
  `eval $'c\\x{61}t payload | sh'`,
  "cat payload | $'s\\x{68}'",
];

/** What looks like them, and runs. */
const TWINS: readonly (readonly [string, string, string])[] = [
  ["sh", "sh ${x:-./ok.sh} a", "ok a\n"],
  ["sh", "f=in/ok.sh; cp ok.sh in; sh ${f##*/} b", "ok b\n"],
  ["sh", "bash ${DEBUG:+-x} ./ok.sh c", "ok c\n"],
  ["sh", "echo ${x:--c} fine", "-c fine\n"],
  ["sh", 'find . -maxdepth 1 ${NAME:+-name "$NAME"} -name ok.sh', "./ok.sh\n"],
  ["sh", "f=my-ok.sh; cp ok.sh my-ok.sh; sh ${f:-x} d; find $PWD -name my-ok.sh -delete", "ok d\n"],
  ["sh", "find ${d:-in} -type d", "in\n"],
  ["sh", "git -c protocol.file.allow=always --version | cut -c1-3", "git\n"],
  ["bash", "declare -a a=(1 2); echo ${a[1]}", "2\n"],
  ["bash", `declare -A m=([a]=1 [b]=$(echo 2)); echo \${m[b]}`, "2\n"],
  ["bash", "declare -r x='(optional)'; echo $x", "(optional)\n"],
  ["bash", "[[ $'a\\tb' == a* ]] && [[ -v HOME ]] && echo yes", "yes\n"],
  ["bash", 'i=1; printf -v "a[$i]" x; echo ${a[1]}; unset "a[$i]"', "x\n"],
  ["bash", "x=HOME; [ -n ${!x} ] && echo set", "set\n"],
  ["bash", "pattern='\\.ts$'; n=1; (( n++ )); total=$((n+5)); echo $total", "7\n"],
  ["bash", 'cur=e; compgen -W "echo eval" -- "$cur"', "echo\neval\n"],
  ["bash", 'PS1="(venv) $PS1"; PS4="[$$] "; PS3="Pick for $USER> "; echo on', "on\n"],
  ["bash", "declare -a list=$(ls -d in); echo ${list[0]}", "in\n"],
  ["bash", "f() { unset \"$1\"; }; v=1; f v; echo 'is $(x)' ${v-gone}", "is $(x) gone\n"],
  ["bash", "declare -A m; for w in a b; do m[$w]=1; done; echo \"${#m[@]}\" '$(x)'", "2 $(x)\n"],
  ["bash", 'list=(1 2); v=text; declare one="$v"; echo $one', "text\n"],
  ["bash", `q='a$b'; q="\${q//\\$/\\\\\\$}"; i=$((1+1)); echo $q`, "a\\$b\n"],
  ["bash", `i=1; a=(1 2); unset "a[$i]"; echo x | awk '{b[$(NF)]}'; echo done`, "done\n"],
  ["bash", "arr=(); f() { local arr=$1; echo $arr; }; f x; echo 'use $(cmd)'", "x\nuse $(cmd)\n"],
  [
    "bash",
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=$HOME git config user.name | grep -c /",
    "1\n",
  ],
  ["bash", "PS4='+ $LINENO '; PS1='\\[\\033[31m\\]\\u$ '; echo $'\\x41\\u0042'", "AB\n"],
];

describe.each(actors())("words that a shell expands late, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    broker.write(join(broker.project, "payload"), "echo > RAN\n");
    broker.write(join(broker.project, "ok.sh"), "echo ok $1\n");
    broker.write(join(broker.project, "in/file"), "");
  });
  afterAll(() => broker.stop());
  afterEach(() => rmSync(join(broker.project, "RAN"), { force: true }));

  const attacks = [
    ...IN_SH.map((cmd) => ({ cmd, shell: "sh" })),
    ...IN_BASH.map((cmd) => ({ cmd, shell: "bash" })),
  ];

  test("the pipe does what the attacks hope for, where nothing denies it", async () => {
    expect((await broker.refused({ cmd: PIPE })).rule?.list).toBe("commands.denied");
    await broker.run("cat payload > copy; sh copy");
    expect(existsSync(join(broker.project, "RAN"))).toBe(true);
  });

  test.each(attacks)("are refused in $shell: $cmd", async (body) => {
    expect((await broker.refused(body)).code).toMatch(/^policy_(?:denied|opaque)$/);
    expect(existsSync(join(broker.project, "RAN"))).toBe(false);
  });

  test.each(TWINS)("run in %s where they hide nothing: %s", async (shell, cmd, stdout) => {
    expect(await broker.run({ cmd, shell })).toMatchObject({ exit: 0, stdout });
  });

  test("git's protocol for programs is not opened by a command", async () => {
    for (const cmd of [
      `git -c protocol.ext.allow=always ls-remote "ext::sh -c cat% payload|sh"`,
      `git -c protocol.ext.allow=user ls-remote "ext::sh -c cat% payload|sh"`,
      `GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.allow GIT_CONFIG_VALUE_0=always git ls-remote "ext::sh -c cat% payload|sh"`,
    ])
      expect((await broker.refused({ cmd })).code).toMatch(/^policy_(?:denied|opaque)$/);
  });

  test("a caller's variable becomes no option and no prompt unseen", async () => {
    const given = (env: Readonly<Record<string, string>>, cmd: string, shell = "sh") =>
      broker.refused({ cmd, env, shell });
    await given({ x: ".-c" }, `sh \${x#?} '${PIPE}'`);
    await given({ PS4: `\\044(${PIPE})`, SHELLOPTS: "xtrace" }, ":", "bash");
    expect(existsSync(join(broker.project, "RAN"))).toBe(false);
  });

  const HIDDEN = "[[ -v $'a[\\x24(printf x > OUT)]' ]]";
  test.each([
    ["commands.allowed", `commands: { allowed: ["ls *"] }`],
    ["shell_operators: false", "commands: { shell_operators: false }"],
    ["approval.require", `approval: { require: true, auto_approve: ["ls *"], preview: off }`],
    ["commands.isolated", `commands: { isolated: ["*"] }`],
  ])("leave no line without a command that %s looks at", async (_claim, rules) => {
    const policy = `id: default\nname: A\nmode: enforce\n${rules}\n`;
    const other = await TestBroker.start(actor, { policies: { default: policy } });
    try {
      other.write(join(other.project, "OUT"), "as it was");
      await other.post({ cmd: HIDDEN, shell: "bash" });
      expect(readFileSync(join(other.project, "OUT"), "utf8")).toBe("as it was");
      expect(await other.post({ cmd: "ls OUT", shell: "bash" })).toMatchObject({ status: 200 });
    } finally {
      await other.stop();
    }
  });
});
