export { corpus } from "./commands.ts";
export { outcomeOf, withUnbash } from "./parser-score.ts";
