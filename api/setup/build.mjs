// npm run build: the programs of .build/.
import { journey } from "./journey.mjs";
import { BUILD_ONLY, setUp } from "./set-up.mjs";

await journey(async () => {
  await setUp(BUILD_ONLY);
  return 0;
});
