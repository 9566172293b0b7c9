import fc from "fast-check";

/** Ways to write one word so that every shell reads it as that word. */
const SPELLINGS: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => `'${text}'`,
  (text) => `"${text}"`,
  (text) => [...text].map((char) => `\\${char}`).join(""),
  (text) => `${text.slice(0, 1)}''${text.slice(1)}`,
  (text) => `""${text}`,
  (text) => `${text.slice(0, 1)}\\\n${text.slice(1)}`,
  (text) => `"${text.slice(0, 1)}"'${text.slice(1)}'`,
];

/** What may stand before a simple command, nearest to it first; one of each list. */
const BEFORE: readonly (readonly string[])[] = [
  [
    "",
    "env -u B A=1 ",
    "nohup nice -n 1 timeout 5 ",
    "setsid -w stdbuf -oL ",
    "env -S 'env -i PATH=/usr/bin' ",
  ],
  ["", "command ", "exec "],
  ["", "A=1 ", "> out ", "2>&1 B='2 3' "],
];

type Around = (script: string, level: number) => string;

/** Ways to run any script, which leave the words of its commands what they are. */
const AROUND: readonly Around[] = [
  (script) => `true; ${script}`,
  (script) => `( ${script}\n)`,
  (script) => `{ ${script}\n}`,
  (script) => `if ${script}\nthen :; fi`,
  (script) => `true && { ${script}\n} || :`,
  (script) => `! { ${script}\n}`,
  (script) => `x=$( ${script}\n)`,
  (script) => `: "$( ${script}\n)"`,
  (script) => `: $( ( ${script}\n) )`,
  (script) => `for i in 1; do ${script}\ndone`,
  (script) => `case a in a) ${script}\n;; esac`,
  (script) => `f() { ${script}\n}; f`,
  (script) => `{ ${script}\n} > out 2>&1`,
  (script) => `{ ${script}\n} | cat`,
  // In a here-document bash joins lines even between single quotes, dash does not.
  (script, level) =>
    `cat <<E${level}\n$( ${script.includes("'") ? script.replaceAll("\\\n", "") : script}\n)\nE${level}\n:`,
  // Behind a here-document in a substitution bash loses the next `;`: none follows on the same line.
  (script, level) => `cat <<'E${level}'\ntext $(x)\nE${level}\n:\n${script}`,
  (script) => `{ ${script}\n} &\nwait`,
  (script) => `sh -c ${quoted(script)}`,
  (script) => `printf '%s\\n' ${quoted(script)} | sh`,
  (script, level) => `sh <<'E${level}'\n${script}\nE${level}\n:`,
  (script) => `: # comment\n${script}`,
  (script) => `eval_me=1\\\n; ${script}`,
];

/** One simple command: its words, and a script that runs it and nothing else but what runs it, in disguise. */
export const disguised: fc.Arbitrary<{ readonly words: readonly string[]; readonly text: string }> = fc
  .record({
    program: fc.constantFrom("rm", "sudo", "git", "npm", "curl"),
    words: fc.array(fc.constantFrom("x", "push", "-rf", "--force", "a.b", "-f"), { maxLength: 3 }),
    spellings: fc.array(fc.constantFrom(...SPELLINGS), { minLength: 4, maxLength: 4 }),
    before: fc.tuple(...BEFORE.map((choices) => fc.constantFrom(...choices))),
    // Three at most: with what stands before the command, one more would pass the eight levels that the reader follows.
    around: fc.array(fc.constantFrom(...AROUND), { maxLength: 3 }),
  })
  .map(({ program, words, spellings, before, around }) => {
    const spelt = [program, ...words].map((word, at) => spellings[at]?.(word) ?? word).join(" ");
    const simple = before.reduce((command, prefix) => prefix + command, spelt);
    const text = around.reduce((script, wrap, level) => wrap(script, level), simple);
    return { words: [program, ...words], text };
  });

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
