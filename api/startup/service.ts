/** Error: the service cannot be installed or started here. The message says what to do. */
export class ServiceRefused extends Error {
  override readonly name = "ServiceRefused";
}

export type UnitFile = { readonly path: string; readonly text: string };

export type ServiceState = {
  readonly enabled: boolean;
  /** The manager's own word, such as `active` or `failed`. */
  readonly active: string;
  /** Whether the manager's sockets take connections while no broker runs. */
  readonly listens: boolean;
  readonly pid: number | null;
  /** Starts after a failure since the service was started; null where the manager does not count them. */
  readonly restarts: number | null;
};

/** The broker as a service of one manager. */
export type Service = {
  /** Such as `systemd --user`. */
  readonly manager: string;
  readonly paths: readonly string[];
  /** What the manager reads, as this installation writes it. Throws {@link ServiceRefused}, and for settings that do not load. */
  readonly files: () => readonly UnitFile[];
  /** The account whose broker runs; undefined for the caller. */
  readonly owner: Account | undefined;
  /** What a person may want to do besides. */
  readonly hints: readonly string[];
  /** Commands for a person. */
  readonly words: { readonly stop: string; readonly inspect: string };
  /** Whether the manager answers. */
  readonly isThere: () => boolean;
  /** Why the caller cannot install here, and what to do instead; undefined if it can. */
  readonly whyNot: () => string | undefined;
  /** Reads the written files, starts the service, now and after each login, and returns once the broker answers. Throws {@link ServiceRefused}. */
  readonly enable: () => void;
  /** Starts the service, which is enabled. Throws {@link ServiceRefused}. */
  readonly start: () => void;
  /** Stops the broker and closes its sockets. Safe to repeat. */
  readonly stop: () => void;
  /** The service is no more started after a login. Safe to repeat. */
  readonly disable: () => void;
  /** Forgets the removed files. */
  readonly forget: () => void;
  readonly state: () => ServiceState;
};

export type Account = {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
};

/** What a service runs. */
export type Runs = {
  /** `.build/substrate` of the installation. */
  readonly front: string;
  /** The Node that runs, and the installation's launcher: for macOS, where the front is not built. */
  readonly node: string;
  readonly launcher: string;
  /** Folder of the shipped units. */
  readonly units: string;
  readonly home: string;
  /** Sockets of the home, that of the operator first. */
  readonly sockets: readonly string[];
  /** Variables that the broker gets from the person's shell, PATH among them. */
  readonly variables: Readonly<Record<string, string>>;
};

/** First line of each written file but a plist. */
export const MARK =
  "# Written by 'substrate service install': the next install replaces changes, 'substrate service remove' removes it";
