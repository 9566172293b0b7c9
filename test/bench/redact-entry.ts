/** What `redact.mjs` measures, from the real code, and the corpus that it measures on. */
export { redact } from "../../broker/secrets/redact.ts";
export { FAKE_SECRETS } from "../corpus/secrets.ts";
export { TOOL_SECRETS } from "../corpus/tool-secrets.ts";
