/** The state of a world agent, by an HTTP request. */
import { timeLimit } from "../world/backend.ts";
import { request } from "node:http";
import { type AgentHealth, HEALTH_PATH, PROTOCOL } from "../world/wire/protocol.ts";

const ANSWER_MS = 5000;

/** A health document has 200 bytes. */
const MOST = 16 * 1024;

/** Whether the agent at a socket has this version and protocol. Rejects where no agent answers. */
export async function isSameVersion(socket: string, version: string, signal: AbortSignal): Promise<boolean> {
  const health = await healthOf(socket, timeLimit(ANSWER_MS, signal));
  return health.version === version && health.protocol === PROTOCOL;
}

function healthOf(socketPath: string, signal: AbortSignal): Promise<AgentHealth> {
  return new Promise((resolve, reject) => {
    const asking = request({ socketPath, path: HEALTH_PATH, signal, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part: string) => {
        text += part;
        if (text.length > MOST) asking.destroy(new Error(`'${socketPath}' is no world agent`));
      });
      response.once("error", reject);
      response.once("end", () => {
        if (response.statusCode !== 200)
          return reject(new Error(`'${socketPath}' answered with status ${response.statusCode}`));
        try {
          resolve(JSON.parse(text) as AgentHealth);
        } catch {
          reject(new Error(`'${socketPath}' is no world agent: it sent no JSON`));
        }
      });
    });
    asking.once("error", reject);
    asking.end();
  });
}
