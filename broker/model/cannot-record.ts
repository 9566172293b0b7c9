import { type Refusal, refusal } from "./refusal.ts";

/** What has no line in the trace does not happen. `instead` says what did not: "Nothing ran". */
export function cannotRecord(instead: string, error: unknown): Refusal {
  const why = error instanceof Error ? error.message : String(error);
  return refusal(
    "busy",
    `${instead}: its span cannot be recorded (${why})`,
    "Free space where SUBSTRATE_HOME lies, then try again",
  );
}
