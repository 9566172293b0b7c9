/** Parses a YAML file of a person, and says in words what is wrong with the file. */
import {
  Composer,
  type CST,
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

/**
 * Parses a document as `parseDocument` of the package does, whose parts are used: levels are counted between the parser and the
 * composer. A document that is nested too deeply is empty and has one error.
 */
export function yamlDocument(
  text: string,
  customTags: (CollectionTag | TagId)[] = [],
): { readonly document: Document.Parsed; readonly lines: LineCounter } {
  const lines = new LineCounter();
  const { tokens, deep } = tokensOf(text, lines);
  if (deep !== undefined) {
    const document = parseDocument("");
    document.errors.push(new YAMLParseError([deep, deep], "RESOURCE_EXHAUSTION", TOO_DEEP));
    return { document, lines };
  }
  const composer = new Composer({ uniqueKeys: true, strict: true, prettyErrors: false, customTags });
  // `true`: an empty text is a document too.
  const [document = parseDocument(""), second] = composer.compose(tokens, true, text.length);
  if (second !== undefined)
    document.errors.push(
      new YAMLParseError([second.range[0], second.range[1]], "MULTIPLE_DOCS", "another document"),
    );
  return { document, lines };
}

/**
 * Returns the parser's tokens, and the offset of the first level beyond `MOST_LEVELS`. The package's lexer and parser keep stacks and
 * do not recurse; its composer does.
 */
function tokensOf(
  text: string,
  lines: LineCounter,
): { readonly tokens: readonly CST.Token[]; readonly deep?: number } {
  const parser = new Parser(lines.addNewLine);
  const tokens: CST.Token[] = [];
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) tokens.push(token);
    if (parser.stack.length > MOST_LEVELS) return { tokens, deep: parser.offset };
  }
  for (const token of parser.end()) tokens.push(token);
  return { tokens };
}

export function yamlWords({ code, message }: YAMLParseError): string {
  return WORDS[code] ?? message.split("\n")[0] ?? message;
}
