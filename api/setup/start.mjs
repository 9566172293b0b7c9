// npm start: set-up, the broker, the tour.
import { journey, runNode } from "./journey.mjs";
import { EVERYTHING, setUp } from "./set-up.mjs";

const LAUNCHER = "api/bin/substrate.mjs";

await journey(async () => {
  await setUp(EVERYTHING);
  // Replace a broker started before the build: an older broker would go on running the old program.
  const started = await runNode([LAUNCHER, "broker", "start", "--current"]);
  return started === 0 ? runNode([LAUNCHER, "tour"]) : started;
});
