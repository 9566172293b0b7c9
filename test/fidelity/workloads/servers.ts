import type { Workload } from "../workload.ts";
import { NPM_OUTPUT } from "./npm-output.ts";

const SERVER = `import { createServer } from "node:http";
import { readFileSync, watch } from "node:fs";
const listeners = new Set();
watch("page.html", () => { for (const each of listeners) each.write("data: reload\\n\\n"); });
createServer((request, response) => {
  if (request.url === "/events") { response.writeHead(200, { "content-type": "text/event-stream" }); response.flushHeaders(); listeners.add(response); return; }
  if (request.url === "/quit") { response.end("bye"); setTimeout(() => process.exit(0), 50); return; }
  response.end(readFileSync("page.html"));
}).listen(Number(process.env.PORT), "127.0.0.1", () => console.log("ready"));
`;

/** Servers that the host looks at. In a world their port is published for as long. */
export const SERVERS: readonly Workload[] = [
  {
    name: "a dev server reloads what an editor on the host saves",
    quick: true,
    needs: ["node"],
    files: { "server.mjs": SERVER, "page.html": "old page\n" },
    command: "node server.mjs",
    meanwhile: [
      { get: "/", until: /200 old page/ },
      { events: "/events", until: /data: reload/, after: { write: "page.html", text: "new page\n" } },
      { get: "/", until: /200 new page/ },
      { get: "/quit", until: /bye/ },
    ],
  },
  {
    name: "node --watch starts again when an editor on the host saves",
    needs: ["node"],
    files: {
      "app.mjs":
        "import { createServer } from 'node:http';\ncreateServer((q, r) => r.end('version one')).listen(Number(process.env.PORT), '127.0.0.1');\n",
    },
    command: "node --watch app.mjs > /dev/null 2>&1",
    meanwhile: [
      { get: "/", until: /version one/ },
      {
        write: "app.mjs",
        text: "import { createServer } from 'node:http';\ncreateServer((q, r) => r.end('version two')).listen(Number(process.env.PORT), '127.0.0.1');\n",
      },
      { get: "/", until: /version two/ },
      { end: true },
    ],
  },
  {
    name: "vite dev, with hot reload",
    needs: ["node"],
    packages: ["vite"],
    files: {
      "package.json": '{ "type": "module", "scripts": { "dev": "vite" } }\n',
      "index.html": '<!doctype html><div id="app"></div><script type="module" src="/main.js"></script>\n',
      "main.js":
        'import { text } from "./text.js";\nconst show = (t) => { document.getElementById("app").textContent = t; };\nshow(text);\nimport.meta.hot?.accept("./text.js", (m) => show(m.text));\n',
      "text.js": 'export const text = "old";\n',
    },
    command: "npm run dev -- --port $PORT --strictPort --host 127.0.0.1",
    meanwhile: [
      { get: "/", until: /vite\/client/ },
      { get: "/main.js", until: /text\.js/ },
      { get: "/text.js", until: /"old"/ },
      {
        socket: "/",
        protocol: "vite-hmr",
        until:
          /"type":"js-update","path":"\/main\.js"|"path":"\/main\.js","acceptedPath":"\/text\.js"|"type":"update"/,
        after: { write: "text.js", text: 'export const text = "new";\n' },
      },
      { get: "/text.js", until: /"new"/ },
      { end: true },
    ],
    varies: { content: [/\.vite/], paths: [/\.vite/] },
  },
  {
    name: "vite build",
    needs: ["node"],
    packages: ["vite"],
    files: {
      "package.json": '{ "type": "module", "scripts": { "build": "vite build" } }\n',
      "index.html": '<!doctype html><script type="module" src="/main.js"></script>\n',
      "main.js": 'import "./style.css";\nconsole.log(await import("./lazy.js"));\n',
      "lazy.js": "export default 7;\n",
      "style.css": "body { color: red }\n",
    },
    command: "npm run build; ls dist/assets",
    varies: { output: [...NPM_OUTPUT, [/built in .*s/, "built"]] },
  },
  {
    name: "python3 -m http.server",
    needs: ["python3"],
    files: { "www/index.html": "from python\n" },
    command: "exec python3 -m http.server $PORT -d www --bind 127.0.0.1",
    meanwhile: [
      { get: "/", until: /200 from python/ },
      { write: "www/index.html", text: "changed\n" },
      { get: "/index.html", until: /200 changed/ },
      { get: "/none", until: /404/ },
      { end: true },
    ],
  },
  {
    name: "php -S",
    needs: ["php"],
    files: { "i.php": "<?php echo 1 + 1;\n" },
    command: "exec php -S 127.0.0.1:$PORT i.php",
    meanwhile: [{ get: "/", until: /200 2/ }, { end: true }],
  },
];
