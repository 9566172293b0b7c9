// raw-client.mjs INSTALLATION SOCKET WORD…: hands this terminal to a command over `GET /v1/stream`, as the API describes it, without any
// code of the product. INSTALLATION: where the package `ws` is found.
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { connect } from "node:net";
import { join } from "node:path";

const [installation = "", path = "", ...argv] = process.argv.slice(2);
const { WebSocket } = createRequire(join(installation, "package.json"))("ws");
const STDIN = Buffer.from([0]);

const socket = new WebSocket("ws://broker/v1/stream", { createConnection: () => connect(path) });
const size = () => ({ cols: process.stdout.columns, rows: process.stdout.rows });
const tell = (/** @type {object} */ message) => socket.send(JSON.stringify(message));
const modes = stty("-g").trim();

socket.on("open", () => {
  const { TERM: term, PS1 = "" } = process.env;
  tell({ agent_id: "raw", cwd: process.cwd(), argv, env: { PS1 }, pty: true, ...size(), term });
});
socket.on("message", (/** @type {Buffer} */ data, /** @type {boolean} */ isBinary) => {
  if (isBinary) return process.stdout.write(data.subarray(1));
  const message = JSON.parse(data.toString("utf8"));
  if (message.type === "started") return takeOver();
  if (message.type === "exit") process.exitCode = message.exit;
  if (message.type === "error") {
    process.exitCode = 125;
    process.stderr.write(`${JSON.stringify(message.error)}\r\n`);
  }
});
socket.on("close", leave);
socket.on("error", (/** @type {Error} */ error) => process.stderr.write(`${error.message}\r\n`));

function takeOver() {
  stty("raw", "-echo");
  process.stdout.on("resize", () => tell({ type: "resize", ...size() }));
  process.stdin.on("data", (bytes) => socket.send(Buffer.concat([STDIN, bytes])));
}

function leave() {
  process.stdin.destroy();
  stty(modes);
}

/** @param {string[]} words @returns {string} */
function stty(...words) {
  return spawnSync("stty", words, { stdio: ["inherit", "pipe", "inherit"] }).stdout.toString();
}
