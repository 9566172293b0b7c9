/** Parses a YAML file of a person, and says in words what is wrong with the file. */
import {
  type Document,
  Lexer,
  LineCounter,
  parseDocument,
  Parser,
  type TagId,
  type CollectionTag,
  YAMLParseError,
} from "yaml";

/** Levels of lists and mappings; the parser's tree is walked by recursion, here and in the package. */
const MOST_LEVELS = 100;

const TOO_DEEP =
  "Lists or mappings are nested too deeply to be read: a file that people can review has a few levels";

const WORDS: Partial<Record<YAMLParseError["code"], string>> = {
  MULTIPLE_DOCS: "The file may have only one YAML document; received another one after '---'",
};

/** Parses a document. A document that is nested too deeply is empty and has one error. */
export function yamlDocument(
  text: string,
  customTags: (CollectionTag | TagId)[] = [],
): { readonly document: Document.Parsed; readonly lines: LineCounter } {
  const lines = new LineCounter();
  const deep = firstTooDeep(text, lines);
  if (deep !== undefined) {
    const document = parseDocument("");
    document.errors.push(new YAMLParseError([deep, deep], "RESOURCE_EXHAUSTION", TOO_DEEP));
    return { document, lines };
  }
  const lineCounter = new LineCounter();
  const options = { uniqueKeys: true, strict: true, prettyErrors: false, customTags, lineCounter };
  return { document: parseDocument(text, options), lines: lineCounter };
}

/** Offset of the first level beyond `MOST_LEVELS`. The package's lexer and parser keep stacks and do not recurse. */
function firstTooDeep(text: string, lines: LineCounter): number | undefined {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    for (const _token of parser.next(lexeme));
    if (parser.stack.length > MOST_LEVELS) return parser.offset;
  }
  return undefined;
}

export function yamlWords({ code, message }: YAMLParseError): string {
  return WORDS[code] ?? message.split("\n")[0] ?? message;
}
