import { accessSync, constants } from "node:fs";

/** Usual paths; an ordinary user's PATH has no `sbin`. */
const PLACES = ["/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft", "/usr/local/sbin/nft"];

/** Returns the path of this host's nft; undefined if not installed. */
export function findNft(): string | undefined {
  return PLACES.find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
