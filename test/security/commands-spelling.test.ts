import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import {
  type Disguise,
  FORBIDDEN,
  NOTHING_OPAQUE,
  POLICY,
  attack,
  attackAndTwin,
} from "../support/policy/command-attacks.ts";
import { actors } from "../support/users/users.ts";

const bash = (command: Disguise["command"]): Disguise => ({ command, shell: "bash" });
const sh = (command: Disguise["command"]): Disguise => ({ command });

const SPELLINGS: readonly (readonly [string, Disguise])[] = [
  ["quotes inside the program", sh((file) => `t"ou"'c'h ${file}`)],
  ["a backslash before each letter", sh((file) => `\\t\\o\\u\\c\\h ${file}`)],
  ["a line that goes on", sh((file) => `tou\\\nch ${file}`)],
  ["letters by number", bash((file) => `$'\\x74\\157uch' ${file}`)],
  ["$IFS for blanks", sh((file) => `touch$IFS"${file}"`)],
  ["${IFS} for blanks", sh((file) => `touch\${IFS}${file}`)],
  ["braces", bash((file) => `{touch,${file}}`)],
  ["a part of a brace that is empty", bash((file) => `{,touch} ${file}`)],
  ["a variable that is empty", sh((file) => `touch $nothing ${file}`)],
  ['"$@" that is empty', sh((file) => `touch "$@" ${file}`)],
  ["a newline", sh((file) => `true\ntouch ${file}`)],
  ["a lone &", sh((file) => `true & touch ${file}; wait`)],
  ["behind ||", sh((file) => `false || touch ${file}`)],
  ["behind |", sh((file) => `true | touch ${file}`)],
  ["behind |&", bash((file) => `true |& touch ${file}`)],
  ["a group, a subshell and a condition", sh((file) => `if { (touch ${file}); }; then :; fi`)],
  ["a loop", sh((file) => `for i in 1; do touch ${file}; done`)],
  ["a case", sh((file) => `case a in (a) touch ${file};; esac`)],
  ["$( )", sh((file) => `: $(touch ${file})`)],
  ["backquotes in quotes", sh((file) => `: "\`touch ${file}\`"`)],
  ["backquotes in backquotes", sh((file) => `: \`: \\\`touch ${file}\\\`\``)],
  ["<( )", bash((file) => `cat <(touch ${file})`)],
  ["a default value", sh((file) => `: \${nothing:-$(touch ${file})}`)],
  ["arithmetic", sh((file) => `: $((1 + $(touch ${file}; echo 1)))`)],
  ["a redirect's target", sh((file) => `: > $(touch ${file}; echo /dev/null)`)],
  ["a here-document", sh((file) => `cat <<E\n$(touch ${file})\nE`)],
  ["behind a here-document", sh((file) => `cat <<'E'\n'\nE\ntouch ${file}`)],
  ["a function that shadows", sh((file) => `ls() { touch ${file}; }; ls`)],
  ["an alias that shadows", sh((file) => `alias ls='touch ${file}'\nls`)],
  ["a trap", sh((file) => `trap 'touch ${file}' EXIT`)],
  ["eval", sh((file) => `eval 'tou''ch' ${file}`)],
  ["a string for a shell, for a shell", sh((file) => `sh -c "sh -c 'touch ${file}'"`)],
  ["a pipe into a shell", sh((file) => `echo touch ${file} | sh`)],
  [
    "a pipe into a shell through printf and cat",
    sh((file) => `printf '%s\\n' 'touch ${file}' | cat | sh -s`),
  ],
  ["a here-document for a shell", sh((file) => `sh <<'E'\ntouch ${file}\nE`)],
  ["a here-document around a group", sh((file) => `{ sh; } <<E\ntouch ${file}\nE`)],
  ["the sixty-first command", sh((file) => `${":;".repeat(60)}touch ${file}`)],
  ["text that dash reads as a command", sh((file) => `echo $'\\'; touch ${file} #'`)],
  ["&> that dash reads as & and >", sh((file) => `echo &>/dev/null touch ${file}; wait`)],
  ["a subscript that bash evaluates", bash((file) => `x='a[$(touch ${file})]'; : $((x))`)],
  ["a subscript for a builtin", bash((file) => `test -v 'a[$(touch ${file})]'`)],
  ["quotes in a default in a here-document", sh((file) => `cat <<E\n\${x:-'$(touch ${file})'}\nE`)],
  ["quotes in arithmetic", sh((file) => `: $((1 + '$(touch ${file})'))`)],
  ["the end of a here-document that is dash's alone", sh((file) => `cat <<$'E'\n$E\ntouch ${file}\nE`)],
  ["the end of a here-document that is bash's alone", bash((file) => `cat <<$'E'\n$E\nE\ntouch ${file}`)],
  ["jobs -x", bash((file) => `jobs -x touch ${file}`)],
  ["a quoted subscript in [[ ]]", bash((file) => `[[ -v a'[$(touch ${file})]' ]]`)],
  ["a function in a variable", sh((file) => `env 'BASH_FUNC_q%%=() { touch ${file}; }' bash -c q`)],
  ["a lone dash before the string", sh((file) => `sh -c - 'touch ${file}'`)],
  [
    "the envelope of an agent",
    bash(
      (file) => `source ./x 2>/dev/null || true && eval 'touch ${file}' < /dev/null && pwd -P >| /tmp/cwd`,
    ),
  ],
  ["a path with .. in it", sh((file) => `/usr/bin/../bin/touch ./${file}`)],
];

describe.each(actors())("a spelling, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
  });
  afterAll(() => broker.stop());

  test.each(SPELLINGS)("%s hides nothing; the same for another file runs", async (_what, disguise) => {
    await attackAndTwin(broker, disguise);
  });

  test("a carriage return is a letter: it parts no commands, and hides none", async () => {
    await broker.run(`true\rtouch ${FORBIDDEN}; true`);
    expect(existsSync(join(broker.project, FORBIDDEN))).toBe(false);
    await attack(broker, { command: (file) => `true\r\ntouch ${file}` }, "commands.denied");
  });

  test("text about a command is none", async () => {
    const { stdout } = await broker.run(
      `echo 'touch ${FORBIDDEN}' "; touch ${FORBIDDEN}" # touch ${FORBIDDEN}`,
    );
    expect(stdout).toBe(`touch ${FORBIDDEN} ; touch ${FORBIDDEN}\n`);
    expect(existsSync(join(broker.project, FORBIDDEN))).toBe(false);
  });
});

const OPAQUE: readonly (readonly [string, Disguise])[] = [
  ["a variable", sh((file) => `x=touch; $x ${file}`)],
  ["a substitution", sh((file) => `$(echo touch) ${file}`)],
  ["indirection", bash((file) => `x=y; y=touch; \${!x} ${file}`)],
  ["a pattern", sh((file) => `/usr/bin/t?uch ${file}`)],
  ["$IFS that is something else", sh((file) => `IFS=; to$IFS""uch ${file}`)],
  [
    "a decoded script",
    sh((file) => `echo ${Buffer.from(`touch ${file}`).toString("base64")} | base64 -d | sh`),
  ],
  ["a prompt that is expanded", bash((file) => `x='$(touch ${file})'; : "\${x@P}"`)],
  ["a trace prefix", bash((file) => `PS4='$(touch ${file})'; set -x; :`)],
  ["an option in a variable", sh((file) => `x=-c; bash "$x" 'touch ${file}'`)],
  ["a part of an option", sh((file) => `x=xec; find . -maxdepth 0 -e$x touch ${file} ';'`)],
  ["a name that is read", bash((file) => `read x <<< 'a[$(touch ${file})]'; : $((x))`)],
  ["a loop over a trace prefix", bash((file) => `for PS4 in '$(touch ${file})'; do set -x; :; done`)],
  ["a script that ends with a descriptor", bash((file) => `bash ''<(echo touch ${file})`)],
  ["a shortened option of make", sh((file) => `make --ev='$(shell touch ${file})' -f /dev/null`)],
  ["a table of commands", bash((file) => `read 'BASH_CMDS[q]' <<< /usr/bin/touch; q ${file}`)],
  ["100,000 characters", sh((file) => `: ${"a".repeat(100_000)}; touch ${file}`)],
  ["10,000 levels", sh((file) => `${"$(".repeat(10_000)}touch ${file}${")".repeat(10_000)}`)],
];

describe.each(actors())("what cannot be known, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: NOTHING_OPAQUE } });
  });
  afterAll(() => broker.stop());

  test.each(OPAQUE)("%s is opaque, and does not run where that is denied", async (_what, disguise) => {
    await attack(broker, disguise, "commands.opaque");
  });

  test("a long plain command, and a dynamic argument, run", async () => {
    expect(await broker.run(`x=5; echo "$x" $(echo 6); : ${"a".repeat(50_000)}`)).toMatchObject({
      stdout: "5 6\n",
    });
  });
});

const SHORT_LIST = `id: default
name: A short list
mode: enforce
fs:
  write: ["$PROJECT/**"]
  deny_write: ["$PROJECT/keep"]
commands:
  allowed: ["echo *", "cat *", "tee *", "dd *", "true", "[ *", "cp *", "sed *"]
`;

/** Each begins with a word that is allowed. */
const LATER: readonly (readonly [string, (file: string) => string])[] = [
  ["a list", (file) => `echo a; touch ${file}`],
  ["a list of conditions", (file) => `true && touch ${file}`],
  ["the background", (file) => `echo a & touch ${file}`],
  ["a pipeline", (file) => `echo a | touch ${file}`],
  ["a line", (file) => `echo a\ntouch ${file}`],
  ["a substitution", (file) => `echo $(touch ${file})`],
  ["a here-document", (file) => `cat <<E\n$(touch ${file})\nE`],
  ["a condition", (file) => `true; if [ -d . ]; then touch ${file}; fi`],
  ["an assignment", (file) => `echo a; x=$(touch ${file})`],
  ["a redirect", (file) => `echo a > $(touch ${file})`],
];

/** Each is allowed by its words, and writes. */
const WRITERS: readonly (readonly [string, (file: string) => string])[] = [
  [">", (file) => `echo new > ${file}`],
  [">>", (file) => `echo new >> ${file}`],
  [">|", (file) => `echo new >| ${file}`],
  ["<>", (file) => `echo new 1<> ${file}`],
  ["a redirect before the program", (file) => `> ${file} echo new`],
  ["a redirect of a group", (file) => `{ echo new; } > ${file}`],
  ["tee", (file) => `echo new | tee ${file}`],
  ["tee -a", (file) => `echo new | tee -a ${file}`],
  ["dd of=", (file) => `echo new | dd of=${file} status=none`],
  ["cp", (file) => `echo new > other; cp other ${file}`],
  ["sed -i", (file) => `sed -i s/old/new/ ${file}`],
];

describe.each(actors())("an allowed first word, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: SHORT_LIST } });
  });
  afterAll(() => broker.stop());

  test.each(LATER)("carries nothing in %s", async (_what, command) => {
    await attack(broker, { command }, "commands.allowed");
  });

  test("stands before other allowed ones", async () => {
    expect(await broker.run("echo a; true && echo $(echo b) | cat")).toMatchObject({ stdout: "a\nb\n" });
  });

  test.each(WRITERS)("does not write by %s where nobody may; beside it it does", async (_what, command) => {
    broker.write(join(broker.project, "keep"), "old\n");
    broker.write(join(broker.project, "mine"), "old\n");
    await broker.post({ cmd: command("keep") });
    expect(readFileSync(join(broker.project, "keep"), "utf8")).toBe("old\n");
    await broker.run(command("mine"));
    expect(readFileSync(join(broker.project, "mine"), "utf8")).toContain("new");
    expect(existsSync(join(broker.project, FORBIDDEN))).toBe(false);
  });
});
