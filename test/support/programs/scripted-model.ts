/** A model of a few fixed steps on loopback, which speaks the streaming APIs of Anthropic (Messages) and OpenAI (Responses). */
import { createServer, type Server, type ServerResponse } from "node:http";

/** `before`: what a person does before the model takes the step. */
export type Step = readonly [tool: string, input: object, before?: (() => Promise<unknown>) | undefined];

type Block = { readonly type: string; readonly tool_use_id?: string; readonly content?: unknown };
type Message = { readonly content?: string | readonly Block[] };
/** What a Responses request repeats of the conversation. */
type Item = {
  readonly type?: string;
  readonly call_id?: string;
  readonly output?: unknown;
  readonly tools?: readonly object[];
};
type Asked = {
  readonly messages?: readonly Message[];
  readonly input?: readonly Item[];
  readonly tools?: readonly { readonly name?: string }[];
};

export class ScriptedModel implements AsyncDisposable {
  readonly url: string;
  /** What each step's tool answered, as JSON. */
  readonly results: string[];
  readonly #server: Server;

  private constructor(url: string, server: Server, results: string[]) {
    this.url = url;
    this.#server = server;
    this.results = results;
  }

  static async start(steps: readonly Step[]): Promise<ScriptedModel> {
    const results: string[] = [];
    const seen = new Set<string | undefined>();
    const left = [...steps];
    const server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        const asked = JSON.parse(Buffer.concat(parts).toString() || "{}") as Asked;
        // Every request repeats the conversation.
        for (const [id, result] of resultsIn(asked))
          if (!seen.has(id)) {
            seen.add(id);
            results.push(JSON.stringify(result));
          }
        const [next] = left;
        const isAsked =
          next !== undefined &&
          (isScripting(asked) || asked.tools?.some(({ name }) => name === next[0]) === true);
        if (isAsked) left.shift();
        const eventsOf = asked.input === undefined ? messageEvents : responseEvents;
        const events = eventsOf(isAsked ? next : undefined, left.length, isScripting(asked));
        const before = isAsked ? next[2]?.() : undefined;
        void Promise.resolve(before)
          .catch((error: unknown) => results.push(String(error)))
          .then(() => stream(response, events));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    return new ScriptedModel(`http://127.0.0.1:${port}`, server, results);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function resultsIn({
  messages = [],
  input = [],
}: Asked): readonly (readonly [string | undefined, unknown])[] {
  const blocks = messages.flatMap(({ content }) => (typeof content === "string" ? [] : (content ?? [])));
  return [
    ...blocks
      .filter(({ type }) => type === "tool_result")
      .map((block) => [block.tool_use_id, block.content] as const),
    ...input
      .filter(({ type }) => type === "function_call_output" || type === "custom_tool_call_output")
      .map((item) => [item.call_id, item.output] as const),
  ];
}

/** Codex has its newer models call tools in a program of JavaScript, `exec`, which is their only tool. */
function isScripting({ input = [] }: Asked): boolean {
  return input.some(
    ({ type, tools }) => type === "additional_tools" && JSON.stringify(tools).includes('"exec"'),
  );
}

type Event = { readonly type: string; readonly [field: string]: unknown };
type Events = (step: Step | undefined, id: number, isScripting: boolean) => readonly Event[];

const messageEvents: Events = (step, id) => {
  const block =
    step === undefined
      ? { type: "text", text: "" }
      : { type: "tool_use", id: `toolu_${id}`, name: step[0], input: {} };
  const delta =
    step === undefined
      ? { type: "text_delta", text: "Done" }
      : { type: "input_json_delta", partial_json: JSON.stringify(step[1]) };
  const stop = step === undefined ? "end_turn" : "tool_use";
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: "msg_1", type: "message", role: "assistant", model: "scripted", content: [], usage };
  return [
    { type: "message_start", message: { ...message, stop_reason: null, stop_sequence: null } },
    { type: "content_block_start", index: 0, content_block: block },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: stop, stop_sequence: null }, usage },
    { type: "message_stop" },
  ];
};

const responseEvents: Events = (step, id, isScript) => {
  const item = step === undefined ? SAID : isScript ? scriptOf(step, id) : functionOf(step, id);
  const usage = {
    input_tokens: 1,
    input_tokens_details: null,
    output_tokens: 1,
    output_tokens_details: null,
    total_tokens: 2,
  };
  return [
    { type: "response.created", response: { id: `resp_${id}` } },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: { id: `resp_${id}`, usage } },
  ];
};

const SAID = {
  type: "message",
  role: "assistant",
  id: "msg_1",
  content: [{ type: "output_text", text: "Done" }],
};

function functionOf([name, input]: Step, id: number): object {
  return {
    type: "function_call",
    id: `fc_${id}`,
    call_id: `call_${id}`,
    name,
    arguments: JSON.stringify(input),
  };
}

function scriptOf([name, input]: Step, id: number): object {
  const script = `text(await tools.${name}(${JSON.stringify(input)}))`;
  const call = { id: `ctc_${id}`, call_id: `call_${id}`, namespace: "functions", name: "exec" };
  return { type: "custom_tool_call", ...call, input: script };
}

function stream(response: ServerResponse, events: readonly Event[]): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
}
