// npm start: set-up, the broker, the tour.
import { journey, runNode } from "./journey.mjs";
import { EVERYTHING, setUp } from "./set-up.mjs";

const LAUNCHER = "api/bin/substrate.mjs";

await journey(async () => {
  await setUp(EVERYTHING);
  // A broker that was started before this build would go on answering with the old program.
  const started = await runNode([LAUNCHER, "broker", "start", "--current"]);
  return started === 0 ? runNode([LAUNCHER, "tour"]) : started;
});
