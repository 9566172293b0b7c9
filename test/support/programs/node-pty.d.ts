// The package is installed under the name `node-pty` (package.json), and its types declare its own name.
// oxlint-disable-next-line typescript/triple-slash-reference -- an ambient module cannot be imported by path
/// <reference path="../node_modules/node-pty/node-pty.d.ts" />
declare module "node-pty" {
  export * from "@lydell/node-pty";
}
