/** A scripted agent of the Agent Client Protocol: a prompt is a list of requests to the editor in JSON, its answer what each brought. */
import { Readable, Writable } from "node:stream";
import { agent, ndJsonStream } from "@agentclientprotocol/sdk";

/** @type {unknown} */
let capabilities;

agent({ name: "scripted" })
  .onRequest("initialize", ({ params }) => {
    capabilities = params.clientCapabilities;
    return { protocolVersion: params.protocolVersion, agentCapabilities: {} };
  })
  .onRequest("session/new", () => ({ sessionId: "scripted-session", _meta: { capabilities } }))
  .onRequest("session/prompt", async ({ params, client }) => {
    const [block] = params.prompt;
    const results = [];
    /** @type {unknown} */
    let terminalId;
    for (const { method, params: own = {} } of JSON.parse(block?.type === "text" ? block.text : "[]")) {
      if (method === "crash") process.kill(process.pid, "SIGKILL");
      /** @type {Record<string, unknown>} */
      const words = {
        sessionId: params.sessionId,
        ...(terminalId === undefined ? {} : { terminalId }),
        ...own,
      };
      try {
        /** @type {unknown} */
        const result = await client.request(method, words);
        terminalId = Object(result).terminalId ?? terminalId;
        results.push(result);
      } catch (error) {
        results.push({ error: error instanceof Error ? error.message : String(error) });
      }
    }
    return { stopReason: "end_turn", _meta: { results } };
  })
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
