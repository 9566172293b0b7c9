import { SetUpError } from "./say.mjs";

const OLDEST = { major: 20, minor: 19 };

/**
 * Throws if the running Node is too old for the project.
 * @param {string} version as in `process.versions.node`
 */
export function requireNode(version) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const enough = major > OLDEST.major || (major === OLDEST.major && minor >= OLDEST.minor);
  if (!enough)
    throw new SetUpError(
      `Substrate needs Node ${OLDEST.major}.${OLDEST.minor} or newer, this is '${version}'`,
    );
}
