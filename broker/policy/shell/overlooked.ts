import {
  type Command,
  forEachChild,
  type ParameterExpansionPart,
  type ProcessSubstitutionPart,
  type SyntaxNode,
} from "unbash";
import type { CommandCollector } from "./collect.ts";
import { isOddDelimiter } from "../words/dash.ts";
import { hiddenSubstitutions } from "../words/hidden.ts";
import type { Inner } from "../words/inner.ts";
import { hasOddBraces } from "../words/odd-braces.ts";
import { misread } from "../words/misread.ts";
import { literalWord, readWord } from "../words/read-word.ts";
import { evaluatedTest, evaluatedWords } from "../wrappers/unwrap-builtins.ts";

/** `${x@P}`, `${a[1]@P}` */
const PROMPTED = /^\$\{.*@P\}$/s;

/** `x='a[X(y)]'; echo $(( ${x/X/\$} ))`: the replacement completes a substitution. */
const REPLACED = /\$\{\w+\/[^}]*(?:\\[$`]|'[^'}]*[$`])/;

/** A number or a descriptor's name directly before a process substitution. */
const NUMBERED = /^(\d+|\{\w+\})[<>]\(/;

/** A process substitution joined to preceding text, in the list of an array. */
const JOINED = /[^\s(&;|][<>]\(/;

/** More line ends than a person puts beside a substitution. */
const NEAR = 64;

/**
 * Whether a shell joins the substitution with adjacent text: in `<(x)#y` the parser sees a comment, in `<(x)\<newline>y` two
 * words. `wordsOf` already joins `--x=<(y)`.
 */
function isPartOfWord({ pos, end }: ProcessSubstitutionPart, text: string): boolean {
  const before = text.slice(Math.max(0, pos - NEAR), pos);
  const behind = text.slice(end, end + NEAR);
  return /[^\s;&|(<>=](\\\n)*$/.test(before) || /^(\\\n)*#|^(\\\n)+[^\s;&|()<>]/.test(behind);
}

/**
 * Returns commands that shells run at a node without a command in the grammar, for the caller to read. Reports unreadable text to
 * the collector, along with values of variables and arithmetic.
 *
 * @param text the text that the node's offsets refer to.
 */
export function overlooked(node: SyntaxNode, text: string, collector: CommandCollector): readonly Inner[] {
  const { setters } = collector;
  const written = (): string => text.slice(node.pos, node.end);
  const doubt = misread(node, text);
  if (doubt !== null) collector.addOpaque(written(), doubt);
  switch (node.type) {
    case "For":
    case "Select":
      for (const { text: word } of node.wordlist ?? [])
        if (NUMBERED.test(word)) collector.addOpaque(word, unparsed(word));
      setters.addLoop(
        node.name.value,
        (node.wordlist ?? []).flatMap((word) => readWord(word)),
      );
      return [];
    case "Function":
      setters.addFunction();
      return [];
    case "TestCommand": {
      // `-v a\<newline>'[$(x)]'`: the words are searched as text, so lines are joined first.
      const test = written().replaceAll("\\\n", "");
      setters.addTest(test);
      if (/\d[<>]\(/.test(test))
        collector.addOpaque(
          test,
          "A process substitution behind a number in '[[' is not parsed, so its command cannot be checked",
        );
      return [...evaluatedTest(test), ...evaluatedOperands(node)];
    }
    case "Assignment":
      // `x[$1]=y`: bash computes the index.
      if (node.index !== undefined && /[$`]/.test(node.index.text)) setters.addComputed();
      if (node.index !== undefined || node.value.type === "ArrayValue") setters.addArray(node.name);
      break;
    case "ParameterExpansion":
      noteParameter(node, collector);
      break;
    case "ArithmeticExpansion":
    case "ArithmeticCommand":
    case "ArithmeticFor":
      setters.addArithmetic(written());
      if (REPLACED.test(written())) setters.addReplaced(written());
      break;
    case "Coproc":
      // `coproc a=($(('$(x)'))) y`: the parser takes the list for plain words.
      if (/=\(|\[.*(\$\(|`)/s.test(written()))
        collector.addOpaque(
          written(),
          "Substitutions in the array values and subscripts of 'coproc' are not parsed, so their commands cannot be checked",
        );
      return [];
    case "ProcessSubstitution":
      if (isPartOfWord(node, text))
        collector.addOpaque(
          node.text,
          `'${node.text}' is joined with the text beside it to a word that is only known when the command runs`,
        );
      return [];
    case "Redirect":
      // `{x[$1]}>y`: bash computes the index.
      if (node.descriptor?.type === "FileDescriptorVariable" && /\[.*[$`]/s.test(node.descriptor.name))
        setters.addComputed();
      // bash expands a non-numeric name again: `>& '$(x)'` runs x.
      if (node.operator === ">&" && /[$`]/.test(node.target?.value ?? ""))
        collector.addOpaque(
          written(),
          `bash expands '${node.target?.value}' behind '>&' a second time, which may run commands`,
        );
      break;
    case "HereDoc":
      if (isOddDelimiter(node.delimiter?.text ?? ""))
        collector.addOpaque(
          written(),
          `Shells disagree where the here-document '${node.delimiter?.text ?? ""}' ends`,
        );
      return [];
    default:
  }
  return hiddenSubstitutions(node, text);
}

/**
 * Reports words that the parser reads as plain text, or as fewer words than bash: `3<(x)`, `a=([1]=<(x))`, and braces as in
 * `x{}a,b}` (odd-braces.ts).
 */
export function noteOddWords(command: Command, collector: CommandCollector): void {
  const lists = command.prefix.flatMap((part) => (part.type === "Assignment" ? part.text : []));
  const unread = [
    ...[command.name?.text ?? "", ...command.args.map(({ text }) => text)].filter((text) =>
      NUMBERED.test(text),
    ),
    ...lists.filter((text) => /^[^=(]*=\(/.test(text) && JOINED.test(text)),
  ];
  for (const text of unread) collector.addOpaque(text, unparsed(text));
  for (const word of [command.name, ...command.args])
    if (word?.type === "Word" && hasOddBraces(word))
      collector.addOpaque(
        word.text,
        `bash may expand the braces in '${word.text}' to words that are not checked`,
      );
}

function unparsed(word: string): string {
  return `The process substitution in '${word}' is not parsed, so its command cannot be checked`;
}

/** `[[ -v 'a[$'"(x)]" ]]`, `[[ $'a[\x24(x)]' -eq 0 ]]`: what the quotes leave. */
function evaluatedOperands(test: SyntaxNode): Inner[] {
  const found: Inner[] = [];
  const nodes: SyntaxNode[] = [test];
  for (let one = nodes.pop(); one !== undefined; one = nodes.pop()) {
    if (one.type === "TestUnary" || one.type === "TestBinary") {
      const words = one.type === "TestUnary" ? [one.operand] : [one.left, one.right];
      if (/^-(v|R|eq|ne|lt|le|gt|ge)$/.test(one.operator))
        found.push(
          ...words.flatMap((word) => evaluatedWords("test", [literalWord("test"), ...readWord(word)])),
        );
    } else forEachChild(one, (child) => void nodes.push(child));
  }
  return found;
}

function noteParameter(node: ParameterExpansionPart, collector: CommandCollector): void {
  const { operation } = node;
  if (PROMPTED.test(node.text.replaceAll("\\\n", "")))
    collector.addOpaque(node.text, `'${node.text}' expands its value like a prompt, which may run commands`);
  if (operation?.type === "Default" && operation.operator.endsWith("="))
    collector.setters.addLoop(node.parameter, readWord(operation.operand));
  if (node.prefix === "!" || operation?.type === "Slice" || node.index !== undefined)
    collector.setters.addArithmetic(node.text);
}
