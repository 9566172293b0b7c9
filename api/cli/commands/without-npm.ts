/** The variables of whoever typed `npm start`, without what npm adds for the scripts of one project. */

type Variables = Readonly<Record<string, string | undefined>>;

/** npm, pnpm and yarn set them (npm: @npmcli/run-script, lib/make-spawn-args.js and package-envs.js). */
const ADDED = /^npm_|^INIT_CWD$/;

/** The folder with the package manager's own node-gyp, which it puts behind the project's folders on PATH. */
const NODE_GYP = /\/node-gyp-bin\/?$/;
const PROJECTS = /\/node_modules\/\.bin\/?$/;

/**
 * A broker outlives the script that started it and serves other projects. Without the marks of a package manager nothing
 * is taken out: then a `node_modules/.bin` on PATH is the person's own.
 */
export function withoutNpm(variables: Variables): Variables {
  if (variables["npm_lifecycle_event"] === undefined && variables["npm_execpath"] === undefined)
    return variables;
  const left = Object.entries(variables).filter(([name]) => !ADDED.test(name));
  const { PATH: path, ...others } = Object.fromEntries(left);
  return path === undefined ? others : { ...others, PATH: withoutFolders(path) };
}

/** All that stands before the last of its own is the package manager's, but for what somebody else put between. */
function withoutFolders(path: string): string {
  const folders = path.split(":");
  const last = folders.findLastIndex((folder) => NODE_GYP.test(folder));
  return folders
    .filter((folder, at) => at > last || !(NODE_GYP.test(folder) || PROJECTS.test(folder)))
    .join(":");
}
