/** How much of a question people are shown: nobody approves for longer than once what they were not shown whole. */
import type { ApprovalSubject } from "../../schemas/generated/types.ts";

/** Characters of a command, characters of other text, and entries of a list. */
export const MOST_OF_COMMAND = 4000;
export const MOST_OF_TEXT = 400;
export const MOST_LISTED = 20;

/** What a question shows as the command; undefined for one about scopes. */
export function commandText({ cmd, argv }: ApprovalSubject): string | undefined {
  return cmd ?? (argv === undefined ? undefined : JSON.stringify(argv));
}

/** Why a question does not show its command whole; undefined when it does. */
export function notShownWhole(subject: ApprovalSubject): string | undefined {
  const { env = [], stdin_bytes: input = 0, stdin_text: text = "" } = subject;
  if ((commandText(subject) ?? "").length > MOST_OF_COMMAND)
    return `it is longer than the ${MOST_OF_COMMAND} characters that a question shows`;
  if (env.length > MOST_LISTED || env.some((one) => one.length > MOST_OF_TEXT))
    return `its variables are more than a question shows (${MOST_LISTED}, of ${MOST_OF_TEXT} characters)`;
  if (Buffer.byteLength(text) < input)
    return `its input is not text, or longer than the ${MOST_OF_COMMAND} characters that a question shows`;
  return undefined;
}
