/** The end of this process after its terminal has hung up: the window was closed, or the connection broke. */
import { isatty } from "node:tty";

/** Standard input, output and error. */
const STANDARD = [0, 1, 2] as const;

/**
 * Ends the process by SIGHUP instead of an exit code if a terminal among its standard streams has hung up, as a shell ends. At its own
 * exit Node resets the modes of each terminal that it found at its start, and aborts with a core dump if a terminal does not take them.
 */
export function endByHangUp(host: NodeJS.Process): void {
  const terminals = STANDARD.filter((fd) => isatty(fd));
  if (terminals.length === 0) return;
  host.once("exit", () => {
    // A terminal that has hung up answers every question about its modes with EIO.
    if (terminals.every((fd) => isatty(fd))) return;
    host.removeAllListeners("SIGHUP");
    host.kill(host.pid, "SIGHUP");
    // Reached only if the process was started with SIGHUP ignored (nohup).
    host.kill(host.pid, "SIGKILL");
  });
}
