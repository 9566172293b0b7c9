import { expect, test } from "vitest";
import { readArgv, readShell, undecidedIn } from "../../broker/policy/index.ts";

const onlyKnown = (raw: string, fragment: string): string =>
  `The value of '${raw}' in '${fragment}' is only known when the command runs`;

test.each([
  ["ls -l src", []],
  ["git status && echo 'a $b'", []],
  ['rm -rf "$X"', [onlyKnown('"$X"', 'rm -rf "$X"')]],
  ["ls > $OUT", [onlyKnown("$OUT", "ls > $OUT")]],
  ["$X push", ["The program is only known when the command runs: '$X'"]],
  [
    "make test",
    [
      "'make' may start programs that the command line does not name; the same rules decide about each when it starts",
    ],
  ],
  [
    "./run.sh",
    [
      "'./run.sh' may start programs that the command line does not name; the same rules decide about each when it starts",
    ],
  ],
])("of '%s' only its run decides this", (command, sentences) => {
  expect(undecidedIn(readShell(command, "sh"))).toEqual(sentences);
});

test("words of an argv are what they are", () => {
  expect(undecidedIn(readArgv(["rm", "$X"]))).toEqual([]);
});

test("of many, eight are told and the rest counted", () => {
  const command = Array.from({ length: 20 }, (_, at) => `ls $a${at}`).join("; ");
  const sentences = undecidedIn(readShell(command, "sh"));
  expect([sentences.length, sentences.at(-1)]).toEqual([9, "12 more are not listed"]);
});
