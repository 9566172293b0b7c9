import type { Assignment, Command, HereDoc, HereString, Redirection } from "unbash";
import type { CommandAssignment, CommandRedirect, CommandWord } from "./command.ts";
import type { InputText } from "./inner.ts";
import { dynamicWord, literalWord, readWord } from "./read-word.ts";

/** Program word and arguments. `export A=b` and `alias a=b` keep their assignments as words. */
export function wordsOf(node: Command): CommandWord[] {
  const program = node.name === undefined ? [] : readWord(node.name);
  return [
    ...program,
    ...node.args.flatMap((word) => (word.type === "Word" ? readWord(word) : [assignmentWord(word)])),
  ];
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

/** What a here-document or here-string puts on standard input; the last one counts. */
export function hereInput(redirects: readonly Redirection[]): InputText | null {
  const here = redirects
    .filter((redirect): redirect is HereDoc | HereString => redirect.type !== "Redirect")
    .at(-1);
  if (here === undefined) return null;
  if (here.type === "HereDoc") return documentText(here);
  const words = here.target === undefined ? [] : readWord(here.target);
  return {
    text: words.map((word) => word.text).join(" "),
    certain: words.every((word) => word.kind !== "dynamic"),
  };
}

function documentText(here: HereDoc): InputText {
  const { parts, text } = here.body;
  if (here.delimiter?.quoted === true || parts === undefined) return { text, certain: true };
  const values = parts.map((part) => (part.type === "Literal" ? part.value : null));
  const certain = values.every((value) => value !== null);
  return { text: certain ? values.join("") : text, certain };
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
