/** What each parser says of a text as simple commands: lists of words, null for a word that is not plainly known. */

/** @typedef {(text: string) => (string | null)[][]} Parser */
/** @typedef {any} Tree Each parser has a shape of its own. */

/** @param {(name: string) => Promise<Tree>} load @returns {Promise<Parser>} */
export async function treeSitter(load, /** @type {string} */ wasm) {
  const { Parser, Language } = await load("web-tree-sitter");
  await Parser.init();
  const parser = new Parser();
  parser.setLanguage(await Language.load(wasm));
  return (text) => {
    const { rootNode } = parser.parse(text);
    if (rootNode.hasError) throw new Error("It has an error");
    return rootNode
      .descendantsOfType("command")
      .map((/** @type {Tree} */ node) =>
        node.namedChildren
          .filter((/** @type {Tree} */ child) => !/^(variable_assignment|.*redirect)$/.test(child.type))
          .map((/** @type {Tree} */ child) =>
            treeSitterWord(child.type === "command_name" ? child.firstChild : child),
          ),
      );
  };
}

/** @param {Tree} node @returns {string | null} */
function treeSitterWord(node) {
  if (node.type === "word" || node.type === "number")
    return /[*?[{$~]/.test(node.text) ? null : node.text.replaceAll(/\\(\n|(.))/g, "$2");
  if (node.type === "raw_string") return node.text.slice(1, -1);
  if (node.type === "string")
    return node.namedChildren.every((/** @type {Tree} */ child) => child.type === "string_content")
      ? node.text
          .slice(1, -1)
          .replaceAll(/\\([$`"\\\n])/g, (/** @type {string} */ _, /** @type {string} */ char) =>
            char === "\n" ? "" : char,
          )
      : null;
  if (node.type !== "concatenation") return null;
  return joined(node.children.map(treeSitterWord));
}

/** @param {(name: string) => Promise<Tree>} load @returns {Promise<Parser>} */
export async function justBash(load) {
  const { parse } = await load("just-bash");
  return (text) =>
    objectsOf(parse(text), "SimpleCommand").map((one) =>
      [one.name, ...one.args].filter(Boolean).map(justBashWord),
    );
}

/** @param {Tree} word @returns {string | null} */
function justBashWord(word) {
  const known = ["Literal", "SingleQuoted", "Escaped"];
  return joined(
    word.parts.map((/** @type {Tree} */ part) =>
      known.includes(part.type) ? part.value : part.type === "DoubleQuoted" ? justBashWord(part) : null,
    ),
  );
}

/** @param {(name: string) => Promise<Tree>} load @returns {Promise<Parser>} */
export async function bashParser(load) {
  const { default: parse } = await load("bash-parser");
  return (text) =>
    objectsOf(parse(text, { mode: "bash" }), "Command").map((one) =>
      [one.name, ...(one.suffix ?? [])]
        .filter((word) => word?.type === "Word")
        .map((word) => (word.expansion === undefined ? word.text : null)),
    );
}

/** @param {(name: string) => Promise<Tree>} load @returns {Promise<Parser>} */
export async function mvdan(load) {
  const { default: sh } = await load("mvdan-sh");
  const { syntax } = sh;
  return (text) => {
    /** @type {(string | null)[][]} */
    const found = [];
    syntax.Walk(syntax.NewParser().Parse(text, "x"), (/** @type {Tree} */ node) => {
      if (node !== null && syntax.NodeType(node) === "CallExpr")
        found.push(node.Args.map((/** @type {Tree} */ word) => mvdanWord(syntax, word)));
      return true;
    });
    return found;
  };
}

/** @param {Tree} syntax @param {Tree} word @returns {string | null} */
function mvdanWord(syntax, word) {
  return joined(
    word.Parts.map((/** @type {Tree} */ part) => {
      const type = syntax.NodeType(part);
      if (type === "Lit")
        return /[*?[{~]/.test(part.Value) ? null : part.Value.replaceAll(/\\(\n|(.))/g, "$2");
      if (type === "SglQuoted") return part.Dollar ? null : part.Value;
      return type === "DblQuoted" ? mvdanQuoted(syntax, part) : null;
    }),
  );
}

/** @param {Tree} syntax @param {Tree} quoted @returns {string | null} */
function mvdanQuoted(syntax, quoted) {
  return joined(
    quoted.Parts.map((/** @type {Tree} */ part) =>
      syntax.NodeType(part) === "Lit"
        ? part.Value.replaceAll(/\\([$`"\\])/g, "$1").replaceAll("\\\n", "")
        : null,
    ),
  );
}

/** @param {(string | null)[]} parts */
function joined(parts) {
  return parts.includes(null) ? null : parts.join("");
}

/** Every object of that type, wherever it stands. @param {Tree} tree @param {string} type @returns {Tree[]} */
function objectsOf(tree, type) {
  if (typeof tree !== "object" || tree === null) return [];
  const below = Object.values(tree).flatMap((value) => objectsOf(value, type));
  return tree.type === type ? [tree, ...below] : below;
}
