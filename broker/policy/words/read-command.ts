import type { Assignment, Command, Redirection } from "unbash";
import type { CommandAssignment, CommandRedirect, CommandWord } from "./command.ts";
import { dynamicWord, literalWord, readWord } from "./read-word.ts";

/** Program word and arguments. `export A=b` and `alias a=b` keep their assignments as words. */
export function wordsOf(node: Command): CommandWord[] {
  const words = node.name === undefined ? [] : readWord(node.name);
  let end = node.name?.end ?? -1;
  let count = words.length;
  for (const word of node.args) {
    const read = word.type === "Word" ? readWord(word) : [assignmentWord(word)];
    // The parser ends a word before `<(`, a shell does not: `sh ''<(x)` runs the output of x, `{a,b}<(x)` is two words.
    const before = word.pos === end ? words.splice(words.length - count) : [];
    const joined = before[0] === undefined ? read : [dynamicWord(before[0].raw + word.text)];
    words.push(...joined);
    count = joined.length;
    ({ end } = word);
  }
  return words;
}

export function assignmentsOf(node: Command): CommandAssignment[] {
  return node.prefix
    .filter((part): part is Assignment => part.type === "Assignment")
    .map((part) => ({ name: part.name, value: assignedValue(part) }));
}

export function redirectsOf(redirects: readonly Redirection[]): CommandRedirect[] {
  return redirects.map((redirect) => {
    if (redirect.type === "HereDoc") return { operator: redirect.operator, target: null };
    const words = redirect.target === undefined ? [] : readWord(redirect.target);
    return { operator: redirect.operator, target: words[0] ?? literalWord("") };
  });
}

function assignmentWord(assignment: Assignment): CommandWord {
  const value = assignedValue(assignment);
  return { kind: value.kind, text: `${assignment.name}=${value.text}`, raw: assignment.text };
}

function assignedValue(assignment: Assignment): CommandWord {
  if (assignment.value.type !== "Word") return dynamicWord(assignment.text);
  const words = readWord(assignment.value);
  return words.length > 1 ? dynamicWord(assignment.text) : (words[0] ?? literalWord(""));
}
