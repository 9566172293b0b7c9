/** `GET /metrics`: counts in Prometheus' text format (version 0.0.4), without names of agents, projects or hosts. */
import type { Call } from "./call.ts";

type Metric = {
  readonly name: string;
  readonly type: "counter" | "gauge";
  readonly help: string;
  /** Values by labels; without labels, "". */
  readonly values: ReadonlyMap<string, number>;
};

export async function handleMetrics({ broker, response }: Call): Promise<undefined> {
  const worlds = await broker.worlds.all();
  const { spans, commands } = broker.trace.counts;
  const text = textOf([
    gauge(
      "info",
      "The broker's version and backend.",
      1,
      labels({ version: broker.version, backend: broker.backend.name }),
    ),
    gauge(
      "start_time_seconds",
      "When the broker started, in Unix time.",
      Date.now() / 1000 - process.uptime(),
    ),
    gauge("resident_memory_bytes", "Memory of the broker's process.", process.memoryUsage.rss()),
    gauge("calls_running", "Calls that run now.", broker.activity.running),
    gauge("worlds", "Warm worlds.", worlds.length),
    gauge(
      "commands_running",
      "Commands that run in warm worlds now.",
      worlds.reduce((sum, { running }) => sum + running, 0),
    ),
    gauge("approvals_waiting", "Questions that wait for a person.", broker.approvals.list().length),
    counter(
      "commands_total",
      "Ended and refused commands since the broker's start, by verdict.",
      "verdict",
      commands,
    ),
    counter(
      "spans_total",
      "Lines of the trace since the broker's start, by event type.",
      "event_type",
      spans,
    ),
  ]);
  response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" });
  response.end(text);
  return undefined;
}

function gauge(name: string, help: string, value: number, labelled = ""): Metric {
  return { name, type: "gauge", help, values: new Map([[labelled, value]]) };
}

function counter(name: string, help: string, label: string, counts: ReadonlyMap<string, number>): Metric {
  const values = new Map([...counts].map(([value, count]) => [labels({ [label]: value }), count]));
  return { name, type: "counter", help, values };
}

/** Writes labels; JSON escapes a value as the format does. */
function labels(values: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(values).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return `{${pairs.join(",")}}`;
}

function textOf(metrics: readonly Metric[]): string {
  const lines = metrics.flatMap(({ name, type, help, values }) => [
    `# HELP substrate_${name} ${help}`,
    `# TYPE substrate_${name} ${type}`,
    ...[...values].map(([labelled, value]) => `substrate_${name}${labelled} ${value}`),
  ]);
  return `${lines.join("\n")}\n`;
}
