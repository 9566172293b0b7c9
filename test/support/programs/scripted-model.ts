/** A model of a few fixed steps, behind Anthropic's streaming API on loopback: each request gets the next use of a tool. */
import { createServer, type Server, type ServerResponse } from "node:http";

export type Step = readonly [tool: string, input: object];

type Block = { readonly type: string; readonly tool_use_id?: string; readonly content?: unknown };
type Message = { readonly content?: string | readonly Block[] };

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
        const { messages = [], tools = [] } = JSON.parse(Buffer.concat(parts).toString() || "{}") as {
          messages?: readonly Message[];
          tools?: readonly { name: string }[];
        };
        const { content } = messages.at(-1) ?? {};
        for (const block of typeof content === "string" ? [] : (content ?? []))
          if (block.type === "tool_result" && !seen.has(block.tool_use_id)) {
            // A request without tools may tell of the same result once more.
            seen.add(block.tool_use_id);
            results.push(JSON.stringify(block.content));
          }
        const [next] = left;
        const isAsked = next !== undefined && tools.some(({ name }) => name === next[0]);
        if (isAsked) left.shift();
        stream(response, isAsked ? toolUse(next, left.length) : text());
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

type Part = { readonly block: object; readonly delta: object; readonly stop: string };

function toolUse([name, input]: Step, id: number): Part {
  return {
    block: { type: "tool_use", id: `toolu_${id}`, name, input: {} },
    delta: { type: "input_json_delta", partial_json: JSON.stringify(input) },
    stop: "tool_use",
  };
}

function text(): Part {
  return { block: { type: "text", text: "" }, delta: { type: "text_delta", text: "Done" }, stop: "end_turn" };
}

function stream(response: ServerResponse, { block, delta, stop }: Part): void {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: "msg_1", type: "message", role: "assistant", model: "scripted", content: [], usage };
  const events = [
    { type: "message_start", message: { ...message, stop_reason: null, stop_sequence: null } },
    { type: "content_block_start", index: 0, content_block: block },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: stop, stop_sequence: null }, usage },
    { type: "message_stop" },
  ];
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
}
