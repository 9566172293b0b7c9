import { type Command, forEachChild, parse, type ParsedScript, type Pipeline, type SyntaxNode } from "unbash";
import type { CommandCollector, CommandContext, ScriptSource } from "./collect.ts";
import type { PipelineStage, Reach } from "../words/command.ts";
import { type Patch, patchedForDash, patchesOf } from "../words/dash.ts";
import type { Inner, Input } from "../words/inner.ts";
import { noteOddWords, overlooked } from "./overlooked.ts";
import { misreadText } from "../words/misread.ts";
import { assignmentsOf, redirectsOf, wordsOf } from "../words/read-command.ts";
import { refuseToRead } from "../words/read-limits.ts";
import { inputOf, outputOf } from "../words/standard-input.ts";

/** A shell process: a `cd` in a subshell does not move the outer shell. */
interface Scope {
  moves: readonly string[] | null;
}

interface Frame {
  /** The text that offsets index and people see; a backquoted script with escapes has a text of its own. */
  readonly text: string;
  readonly own: boolean;
  readonly scope: Scope;
  /** Standard input of the commands. */
  readonly input: Input;
  readonly inside: readonly string[];
  /** Position of the whole frame in the given text, when the frame's own offsets refer to another text. */
  readonly place: { readonly start: number; readonly end: number } | null;
  readonly reach: Reach;
  readonly decides: boolean;
}

type Task = { readonly node: SyntaxNode; readonly frame: Frame } | { readonly then: () => void };

/** Names of compound commands in the refusal by `shell_operators: false`. */
const OPERATORS: ReadonlyMap<SyntaxNode["type"], string> = new Map<SyntaxNode["type"], string>([
  ["Subshell", "( )"],
  ["BraceGroup", "{ }"],
  ["If", "if"],
  ["For", "for"],
  ["ArithmeticFor", "for"],
  ["Select", "select"],
  ["While", "while"],
  ["Case", "case"],
  ["Function", "function"],
  ["Coproc", "coproc"],
  ["CommandExpansion", "$( )"],
  ["ArithmeticCommandExpansion", "$( )"],
  ["ProcessSubstitution", "<( )"],
]);

const OWN_PROCESS: ReadonlySet<SyntaxNode["type"]> = new Set<SyntaxNode["type"]>([
  "Subshell",
  "Coproc",
  "CommandExpansion",
  "ArithmeticCommandExpansion",
  "ProcessSubstitution",
]);

/** A patched text may contain further differences for dash; after so many readings the text is opaque. */
const MAX_READINGS = 4;

/**
 * Reads a script and adds every command. Text that dash and bash read differently is read both ways. Walks with an explicit
 * stack, not by recursion.
 */
export function collectScript(collector: CommandCollector, source: ScriptSource): void {
  let { text } = source;
  const doubt = misreadText(text);
  if (doubt !== null) collector.addOpaque(text, doubt);
  for (let reading = 1; reading <= MAX_READINGS; reading += 1) {
    const refusal = refuseToRead(text) ?? collector.refuseMore(text);
    if (refusal !== null) {
      collector.addUnread(source.text, refusal);
      return;
    }
    const patches: Patch[] = [];
    new ScriptWalk(collector, source, patches).run(parse(text));
    if (source.shell !== "sh" || patches.length === 0) return;
    text = patchedForDash(text, patches);
  }
  collector.addUnread(
    source.text,
    "dash and bash read the command differently, at too many places to read it both ways",
  );
}

class ScriptWalk {
  readonly #collector: CommandCollector;
  readonly #source: ScriptSource;
  readonly #patches: Patch[];
  readonly #tasks: Task[] = [];

  constructor(collector: CommandCollector, source: ScriptSource, patches: Patch[]) {
    this.#collector = collector;
    this.#source = source;
    this.#patches = patches;
  }

  run(script: ParsedScript): void {
    this.#tasks.push({
      node: script,
      frame: {
        text: this.#source.text,
        own: false,
        scope: { moves: this.#source.moves },
        input: this.#source.input,
        inside: this.#source.inside,
        place: this.#source.place,
        reach: "always",
        decides: this.#source.decides === true,
      },
    });
    for (let task = this.#tasks.pop(); task !== undefined; task = this.#tasks.pop()) {
      // Even at the limit of commands, open pipelines are still closed.
      if ("then" in task) task.then();
      else if (this.#collector.full) this.#collector.overflow(this.#source.text);
      else this.#visit(task.node, task.frame);
    }
  }

  #visit(node: SyntaxNode, outer: Frame): void {
    const operator = OPERATORS.get(node.type);
    const frame = frameOf(node, operator, outer);
    if (operator !== undefined) this.#collector.addOperator(operator);
    this.#addPatches(node, frame);
    if (node.type === "Script") this.#visitScript(node, frame);
    else if (node.type === "Command") this.#visitCommand(node, frame);
    else if (node.type === "Pipeline" && node.commands.length > 1) this.#visitPipeline(node, frame);
    else this.#visitOther(node, frame);
  }

  #addPatches(node: SyntaxNode, frame: Frame): void {
    const patches = patchesOf(node, frame.text);
    if (!frame.own) this.#patches.push(...patches);
    // The offsets are not those of the whole text, so the dash reading cannot be patched in.
    else if (patches.length > 0 && this.#source.shell === "sh")
      this.#collector.addOpaque(frame.text, "dash and bash read the commands in backquotes differently");
  }

  #visitScript(script: ParsedScript, outer: Frame): void {
    const { pos: start, end } = script;
    const place = outer.place ?? { start, end };
    const frame = script.source === undefined ? outer : { ...outer, text: script.source, own: true, place };
    const [error] = script.errors ?? [];
    if (error !== undefined) {
      this.#collector.addUnread(frame.text, `Cannot read the text as a shell command: ${error.message}`);
    }
    this.#pushChildren(script, frame);
    if (script.commands.length > 1) this.#collector.addOperator(";");
  }

  #visitPipeline(pipeline: Pipeline, frame: Frame): void {
    this.#collector.addOperator("|");
    const starts: number[] = [];
    const stages: PipelineStage[] = [];
    this.#tasks.push({ then: () => this.#collector.addPipeline(stages) });
    for (const { node, input } of this.#withInputs(pipeline, frame).toReversed()) {
      this.#tasks.push(
        { then: () => stages.push(this.#collector.stageSince(starts.pop() ?? 0)) },
        {
          node,
          frame: { ...within(pipeline, node, frame), input, scope: { moves: frame.scope.moves } },
        },
        { then: () => starts.push(this.#collector.size) },
      );
    }
  }

  /** Pairs each stage with the previous stage's output. */
  #withInputs(pipeline: Pipeline, frame: Frame): { node: SyntaxNode; input: Input }[] {
    let { input } = frame;
    return pipeline.commands.map((node) => {
      const stage = { node, input };
      input = outputOf(node, input);
      return stage;
    });
  }

  #visitCommand(node: Command, frame: Frame): void {
    const from = this.#collector.size;
    const redirects = redirectsOf(node.redirects);
    if (redirects.length > 0) this.#collector.addOperator(redirects[0]?.operator ?? ">");
    this.#collector.addCommand(
      {
        words: wordsOf(node),
        assignments: assignmentsOf(node),
        redirects,
        text: frame.text.slice(node.pos, node.end),
        ...this.#placeOf(node, frame),
      },
      { input: inputOf(node.redirects, frame.input), shell: this.#source.shell },
    );
    noteOddWords(node, this.#collector);
    const to = this.#collector.size;
    frame.scope.moves = this.#collector.movesAfter(from, frame.scope.moves);
    this.#tasks.push({ then: () => this.#collector.addFeeding(from, to) });
    this.#pushChildren(node, frame);
  }

  #visitOther(node: SyntaxNode, frame: Frame): void {
    if (node.type === "Statement" && node.background === true) this.#collector.addOperator("&");
    if (node.type === "AndOr") this.#collector.addOperator(node.operators[0] ?? "&&");
    if (node.type === "Redirected") {
      const redirects = redirectsOf(node.redirects);
      this.#collector.addOperator(redirects[0]?.operator ?? ">");
      const text = frame.text.slice(node.redirects[0]?.pos, node.end);
      this.#collector.addCommand(
        { words: [], assignments: [], redirects, text, ...this.#placeOf(node, frame) },
        this.#context,
      );
      this.#pushChildren(node, { ...frame, input: inputOf(node.redirects, frame.input) });
      return;
    }
    this.#addRun(overlooked(node, frame.text, this.#collector), node, frame);
    this.#pushChildren(node, frame);
  }

  /** Adds commands run from text inside the node that looks like plain text. */
  #addRun(found: readonly Inner[], node: SyntaxNode, frame: Frame): void {
    if (found.length === 0) return;
    const text = frame.text.slice(node.pos, node.end);
    const command = { words: [], assignments: [], redirects: [], text, ...this.#placeOf(node, frame) };
    this.#collector.addRun(found, command, this.#context);
  }

  get #context(): CommandContext {
    return { input: null, shell: this.#source.shell };
  }

  #placeOf(node: SyntaxNode, frame: Frame) {
    // The parser counts an extra character at the end of a text that stops inside an expansion.
    const own = { start: node.pos, end: Math.min(node.end, frame.text.length) };
    const { start, end } = frame.place ?? own;
    const { depth, reduced } = this.#source;
    const { reach, decides, inside } = frame;
    const place = { start, end, depth, moves: frame.scope.moves, inside };
    return {
      ...place,
      ...(reach === "always" ? {} : { reach }),
      ...(decides ? { decides } : {}),
      ...(reduced === true ? { reduced } : {}),
    };
  }

  #pushChildren(node: SyntaxNode, frame: Frame): void {
    const children: SyntaxNode[] = [];
    forEachChild(node, (child) => {
      // Skip plain words: a word without parts runs no command.
      if (child.type !== "Word" || child.parts !== undefined) children.push(child);
    });
    for (const child of children.reverse()) {
      this.#tasks.push({ node: child, frame: within(node, child, frame) });
    }
  }
}

/** Returns the frame of a child: how the child is reached, and the effect of its failure. */
function within(node: SyntaxNode, child: SyntaxNode, frame: Frame): Frame {
  const reach = reachIn(node, child, frame.reach);
  const decides = frame.decides && decidesIn(node);
  return reach === frame.reach && decides === frame.decides ? frame : { ...frame, reach, decides };
}

/** Returns the frame inside a node. */
function frameOf(node: SyntaxNode, operator: string | undefined, outer: Frame): Frame {
  if (operator === undefined) return outer;
  const scope = OWN_PROCESS.has(node.type) ? { moves: outer.scope.moves } : outer.scope;
  // Not traced: callers of a function, and their input.
  const input = node.type === "Function" || node.type === "Coproc" ? null : outer.input;
  return { ...outer, scope, input, inside: [...outer.inside, operator] };
}

/** Bodies that run never, once or often, as other commands decide. */
const CONDITIONAL: ReadonlySet<SyntaxNode["type"]> = new Set<SyntaxNode["type"]>([
  "If",
  "Elif",
  "For",
  "ArithmeticFor",
  "Select",
  "While",
  "Case",
  "CaseItem",
  "Function",
  "Coproc",
  "ParameterExpansion",
]);

/** Returns how `child` is reached, where `outer` says how the parent `node` is reached. */
function reachIn(node: SyntaxNode, child: SyntaxNode, outer: Reach): Reach {
  if (CONDITIONAL.has(node.type)) return "maybe";
  switch (node.type) {
    case "Script":
      // The exit code of the whole line tells only about the last statement.
      return outer === "always" && child === node.commands.at(-1) ? "last" : outer;
    case "Statement":
      return outer === "last" && node.background === true ? "always" : outer;
    case "AndOr":
      return inList(node, child, outer);
    case "Pipeline":
      return outer;
    default:
      return outer === "last" ? "always" : outer;
  }
}

function inList(
  { commands, operators }: Extract<SyntaxNode, { readonly type: "AndOr" }>,
  child: SyntaxNode,
  outer: Reach,
): Reach {
  const index = commands.findIndex((command) => command === child);
  if (index <= 0) return outer === "last" ? "always" : outer;
  if (outer === "last" && operators.every((operator) => operator === "&&")) return "success";
  if (outer !== "always" && outer !== "last") return "maybe";
  if (operators.slice(0, index).every((operator) => operator === "&&")) return "chain";
  return operators[index - 1] === "||" ? "failure" : "maybe";
}

/** Whether `node` fails when a part of `node` fails. */
function decidesIn(node: SyntaxNode): boolean {
  switch (node.type) {
    case "Script":
    case "CompoundList":
      return node.commands.length === 1;
    case "Statement":
      return node.background !== true;
    case "AndOr":
      return node.operators.every((operator) => operator === "&&");
    case "Pipeline":
      return !node.prefixes.some(({ type }) => type === "Negation");
    case "Subshell":
    case "BraceGroup":
    case "Redirected":
      return true;
    default:
      return false;
  }
}
