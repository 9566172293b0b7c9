import { type Command, forEachChild, type ParsedScript, type Pipeline, parse, type SyntaxNode } from "unbash";
import type { CommandCollector, ScriptSource } from "./collect.ts";
import type { PipelineStage } from "./command.ts";
import { type Patch, patchedForDash, patchesOf } from "./dash.ts";
import { assignmentsOf, hereInput, redirectsOf, wordsOf } from "./read-command.ts";
import { refuseToRead } from "./read-limits.ts";

/** A shell process: a `cd` in a subshell does not move the shell around it. */
interface Scope {
  moves: readonly string[] | null;
}

interface Frame {
  /** What offsets index and people see; a backquoted script with escapes has a text of its own. */
  readonly text: string;
  readonly own: boolean;
  readonly scope: Scope;
}

type Task = { readonly node: SyntaxNode; readonly frame: Frame } | { readonly then: () => void };

/** How compound commands and the like appear in the answer to `shell_operators: false`. */
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

/** A patched text can show more that dash reads otherwise; beyond these readings it is opaque. */
const MAX_READINGS = 4;

/**
 * Reads one script and adds every command in it. What dash and bash read differently is read both ways. Walks with a
 * stack of its own, not by recursion.
 */
export function collectScript(collector: CommandCollector, source: ScriptSource): void {
  let { text } = source;
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
  collector.addUnread(source.text, "The command means different things to different shells");
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
      frame: { text: this.#source.text, own: false, scope: { moves: this.#source.moves } },
    });
    for (let task = this.#tasks.pop(); task !== undefined; task = this.#tasks.pop()) {
      // Pipelines that are open when there is no room for more commands are still closed.
      if ("then" in task) task.then();
      else if (this.#collector.full) this.#collector.overflow(this.#source.text);
      else this.#visit(task.node, task.frame);
    }
  }

  #visit(node: SyntaxNode, outer: Frame): void {
    const frame = OWN_PROCESS.has(node.type) ? { ...outer, scope: { moves: outer.scope.moves } } : outer;
    const operator = OPERATORS.get(node.type);
    if (operator !== undefined) this.#collector.addOperator(operator);
    if (!frame.own) this.#patches.push(...patchesOf(node));
    if (node.type === "Script") this.#visitScript(node, frame);
    else if (node.type === "Command") this.#visitCommand(node, frame);
    else if (node.type === "Pipeline" && node.commands.length > 1) this.#visitPipeline(node, frame);
    else this.#visitOther(node, frame);
  }

  #visitScript(script: ParsedScript, outer: Frame): void {
    const frame = script.source === undefined ? outer : { ...outer, text: script.source, own: true };
    const [error] = script.errors ?? [];
    if (error !== undefined) {
      this.#collector.addUnread(frame.text, `Cannot be read as a shell command: ${error.message}`);
    }
    this.#pushChildren(script, frame);
    if (script.commands.length > 1) this.#collector.addOperator(";");
  }

  #visitPipeline(pipeline: Pipeline, frame: Frame): void {
    this.#collector.addOperator("|");
    const starts: number[] = [];
    const stages: PipelineStage[] = [];
    this.#tasks.push({ then: () => this.#collector.addPipeline(stages) });
    for (const node of pipeline.commands.toReversed()) {
      this.#tasks.push(
        { then: () => stages.push(this.#collector.stageSince(starts.pop() ?? 0)) },
        { node, frame: { ...frame, scope: { moves: frame.scope.moves } } },
        { then: () => starts.push(this.#collector.size) },
      );
    }
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
        start: node.pos,
        end: node.end,
        depth: this.#source.depth,
        moves: frame.scope.moves,
        ...(this.#source.reduced === true ? { reduced: this.#source.reduced } : {}),
      },
      { input: hereInput(node.redirects), shell: this.#source.shell },
    );
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
      const { depth } = this.#source;
      const place = { start: node.pos, end: node.end, depth, moves: frame.scope.moves };
      const context = { input: null, shell: this.#source.shell };
      this.#collector.addCommand({ words: [], assignments: [], redirects, text, ...place }, context);
    }
    this.#pushChildren(node, frame);
  }

  #pushChildren(node: SyntaxNode, frame: Frame): void {
    const children: SyntaxNode[] = [];
    forEachChild(node, (child) => {
      // A word without parts is plain text: nothing runs in it.
      if (child.type !== "Word" || child.parts !== undefined) children.push(child);
    });
    for (const child of children.reverse()) this.#tasks.push({ node: child, frame });
  }
}
