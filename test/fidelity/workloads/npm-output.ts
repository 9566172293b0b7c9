/** npm says how long it took, names the log of its run, and tells of newer versions when it thinks that it is time. */
export const NPM_OUTPUT = [
  [/ in \d+m?s/g, " in T"],
  [/(npm notice\s*\n)?npm notice New (.*\n)+?npm notice To update run.*\n(npm notice\s*\n)?/g, ""],
  [/npm (error|notice) A complete log.*\n/g, ""],
  [/npm (error|ERR!) +\/.*_logs.*\n/g, ""],
] as const;
