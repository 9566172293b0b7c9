/** Variables of the broker that a container runtime may see. CONTAINER_HOST is left out: podman must run on this host. */
const PASSED = [
  "CONTAINERS_CONF",
  "CONTAINERS_STORAGE_CONF",
  "DBUS_SESSION_BUS_ADDRESS",
  "DOCKER_CONFIG",
  "DOCKER_CONTEXT",
  "DOCKER_HOST",
  "HOME",
  "LANG",
  "LOGNAME",
  "PATH",
  "TMPDIR",
  "USER",
  "XDG_CONFIG_HOME",
  "XDG_DATA_HOME",
  "XDG_RUNTIME_DIR",
] as const;

export function runtimeEnvironment(
  host: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    PASSED.flatMap((name) => {
      const value = host[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
