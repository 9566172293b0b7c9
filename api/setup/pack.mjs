// npm pack, before it looks for files: builds, and names the files of .build/ that belong into the package.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { BUILD, CHECKOUT } from "./checkout.mjs";
import { clientFiles, makeClient } from "./client.mjs";
import { journey } from "./journey.mjs";
import { NATIVE } from "./native.mjs";
import { PREBUILDS, versionOf } from "./prebuilds.mjs";
import { BUILD_ONLY, setUp } from "./set-up.mjs";
import { readStamp, writeWhole } from "./stamp.mjs";
import { TARGET_FILE, thisMachine } from "./target.mjs";

await journey(async () => {
  await setUp(BUILD_ONLY);
  await makeClient();
  const lmdb = versionOf(join(CHECKOUT, "node_modules", PREBUILDS));
  writeWhole(TARGET_FILE, `${JSON.stringify({ ...thisMachine(), lmdb })}\n`);
  // Chunks of older builds lie in the folder too, for brokers that still run.
  const { bundle } = readStamp();
  const modules = (bundle?.files ?? []).filter((name) => !name.endsWith(".map"));
  const natives = Object.values(NATIVE).map(({ file }) => file);
  const prebuilds = readdirSync(join(BUILD, "prebuilds")).map((name) => `prebuilds/${name}/*.node`);
  const all = [...modules, ...natives, "prebuilds", ...prebuilds, "target.json", "client", ...clientFiles()];
  writeWhole(join(BUILD, ".npmignore"), ["*", ...all.map((name) => `!/${name}`), ""].join("\n"));
  return 0;
});
