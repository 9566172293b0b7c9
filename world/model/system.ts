/**
 * Variables for the system's own programs (chmod, rm, tar) that the broker runs outside of worlds. Its own PATH may lead to a folder that
 * commands write, as an activated environment of a project does. The last folder is NixOS'.
 */
export const SYSTEM = {
  PATH: "/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin",
  LC_ALL: "C",
} as const;
