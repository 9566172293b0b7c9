/** What an operation that had no effect says to an agent. Pure. */
import { getSystemErrorName } from "node:util";
import type { DecisionRule } from "../../schemas/generated/types.ts";
import { FILE_LIMITS, type FileAnswer } from "../../world/backend.ts";
import { because, quoted, type Refusal, refusal } from "../model/refusal.ts";

/** What a refused write says in the trace, and the rule where one is known. */
export type Denial = { readonly rule: DecisionRule | null; readonly message: string | undefined };

const READ_AGAIN = "Read the file again, then repeat the change with what it holds now";

/** Makes the refusal of an answer that is not `ok`. `denial` is asked only for a call that the kernel refused. */
export function fileFault(answer: FileAnswer, policyId: string, denial: (path: string) => Denial): Refusal {
  const path = answer.entries[0]?.path ?? "";
  const file = quoted(path);
  const { word, count, edit } = answer;
  switch (word) {
    case "errno":
      return failedCall(answer, path, policyId, denial);
    case "no_match":
      return refusal(
        "invalid_request",
        `Nothing was changed: the text to replace does not stand in ${file}${nth(edit)}`,
        `${READ_AGAIN}; blanks and line ends count`,
      );
    case "many":
      return refusal(
        "invalid_request",
        `Nothing was changed: the text to replace stands ${count} times in ${file}${nth(edit)}`,
        "Add lines around it until it stands there once, or set replace_all (edit)",
      );
    case "changed":
      return refusal(
        "apply_conflict",
        `Nothing was changed: ${file} was changed by somebody else at the same moment`,
        READ_AGAIN,
      );
    case "binary":
      return refusal(
        "invalid_request",
        `${file} holds NUL bytes: it is no text`,
        "Read it with encoding 'base64', or use a command",
      );
    case "too_large":
      return refusal(
        "too_large",
        `${file} is too large: an edited file has at most ${FILE_LIMITS.content / 1024 / 1024} MiB, and lines are found in the first 64 MiB`,
        "Use a command (sed, head, tail)",
      );
    case "not_regular":
      return refusal(
        "invalid_request",
        `${file} is a pipe, a socket or a device: only regular files are read and written here`,
        "Use a command if you need it",
      );
    case "exists":
      return refusal(
        "invalid_request",
        `Nothing was changed: ${file} exists, and the patch adds it as new`,
        "Patch the file as it is, or use write",
      );
    case "twice":
      return refusal(
        "invalid_request",
        `Nothing was changed: the patch names ${file} twice`,
        "Put the hunks of one file into one part",
      );
    case "owner":
      return refusal(
        "invalid_request",
        `Nothing was changed: ${file} belongs to another user, who would lose it to a new file`,
        "Write to it with a command",
      );
    case "access_list":
      return refusal(
        "invalid_request",
        `Nothing was changed: ${file} has an access list (getfacl shows it) that a new file cannot be given here, because it names other users or groups`,
        "Write into the file with a command (cat new > file), or as its owner outside of Substrate",
      );
    case "pattern":
      return refusal(
        "invalid_request",
        `pattern: is no POSIX extended regular expression: ${path}`,
        "Escape ( ) [ { . * + ? | with a backslash, or set fixed",
        { path: "pattern" },
      );
    default:
      return refusal("internal", `The file operation ended with '${word}'`, "See the broker's log");
  }
}

function nth(edit: number): string {
  return edit === 0 ? "" : ` (hunk ${edit + 1})`;
}

/** Errors by which the kernel refuses a write that mounts or seals forbid. */
const REFUSED = ["EROFS", "EACCES", "EPERM", "EBUSY"];
const SHORT = ["ENOSPC", "EDQUOT", "EMFILE", "ENFILE", "ENOMEM"];

const REASONS: Readonly<Record<string, string>> = {
  EISDIR: "it is a folder",
  ENOTDIR: "a part of the path is no folder",
  ELOOP: "its links lead in a circle",
  ENAMETOOLONG: "the name is too long",
};

function failedCall(
  { error }: FileAnswer,
  path: string,
  policyId: string,
  denial: (path: string) => Denial,
): Refusal {
  const name = getSystemErrorName(-error);
  if (name === "ENOENT")
    return refusal(
      "not_found",
      `There is no ${quoted(path)} in this world (ENOENT)`,
      "Look for it with glob; what the policy hides, and what lies in the host's /tmp or /run, is not there",
    );
  if (SHORT.includes(name))
    return refusal("busy", `Cannot write ${quoted(path)}: ${name}`, "Free space, then try again", {
      retry_after_ms: 1000,
    });
  const { rule, message } = REFUSED.includes(name) ? denial(path) : { rule: null, message: undefined };
  if (rule !== null || message !== undefined || name === "EROFS")
    return refusal(
      "policy_denied",
      `Policy '${policyId}' denies this${rule === null ? `: ${message ?? `${quoted(path)} is read-only here (${name})`}` : because(rule)}`,
      "Work in the project, or ask for the scope 'fs.write:PATH' (POST /v1/request_scopes); a person can change fs.write of the policy",
      { policy_id: policyId, rule, exit: 126 },
    );
  return refusal(
    "invalid_request",
    `Cannot use ${quoted(path)}: ${REASONS[name] ?? "the system refuses it"} (${name})`,
    "Check the path and its permissions",
  );
}
