import { monitorEventLoopDelay, type IntervalHistogram } from "node:perf_hooks";
import { statusOf } from "../servers/index.ts";
import type { Metric } from "../telemetry/index.ts";
import type { AdminSource } from "./admin-source.ts";

/** Node measures the delay with a timer of its own; it is started with the first look. */
let delays: IntervalHistogram | undefined;
const resolutionMs = 20;

function histogram(): IntervalHistogram {
  if (delays === undefined) {
    delays = monitorEventLoopDelay({ resolution: resolutionMs });
    delays.enable();
  }
  return delays;
}

/** How late timers are on average, in milliseconds. */
export function eventLoopDelayMs(): number {
  const ms = histogram().mean / 1e6 - resolutionMs;
  return Number.isFinite(ms) ? Math.max(0, Math.round(ms * 100) / 100) : 0;
}

/** Seconds that timers were late since the last scrape. */
function takeDelays(): readonly (readonly [string, number])[] {
  const all = histogram();
  const toSeconds = (ns: number): number => Math.max(0, ns / 1e9 - resolutionMs / 1000);
  const read = all.count === 0 ? [0, 0, 0] : [all.percentile(50), all.percentile(99), all.max];
  all.reset();
  return ["p50", "p99", "max"].map((stat, index) => [stat, toSeconds(read[index] ?? 0)] as const);
}

/** The gauges of the gateway and of its process. */
export function gatewayMetrics(source: AdminSource): readonly Metric[] {
  const { gateway, version } = source;
  const load = source.http()?.inspect();
  const servers = gateway.controls.servers();
  const { heapUsed, rss } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  const gauge = (name: string, help: string, value: number): Metric => ({
    name,
    help,
    type: "gauge",
    samples: [{ value }],
  });
  const byServer = (each: (server: (typeof servers)[number]) => number): Metric["samples"] =>
    servers.map((server) => ({ labels: { server: server.name }, value: each(server) }));
  return [
    gauge("junctor_sessions", "Legacy sessions in memory.", load?.sessions.length ?? 0),
    gauge("junctor_streams", "Event streams that stay open.", load?.streams ?? 0),
    gauge(
      "junctor_parked_calls",
      "Calls that wait for a caller that is away.",
      gateway.controls.parked().length,
    ),
    {
      name: "junctor_upstream_up",
      help: "Whether a server is up.",
      type: "gauge",
      samples: byServer(({ health }) => (health.kind === "up" ? 1 : 0)),
    },
    {
      name: "junctor_upstream_state",
      help: "The state of a server: 1 for the one it is in.",
      type: "gauge",
      samples: servers.map(({ name, health }) => ({
        labels: { server: name, state: statusOf(health) },
        value: 1,
      })),
    },
    {
      name: "junctor_upstream_calls_in_flight",
      help: "Requests to a server that are underway.",
      type: "gauge",
      samples: byServer(({ inFlight }) => inFlight),
    },
    {
      name: "junctor_upstream_restarts_total",
      help: "How often a server was started again.",
      type: "counter",
      samples: byServer(({ name }) => source.restarts(name)),
    },
    {
      name: "junctor_event_loop_delay_seconds",
      help: "How late timers of the process were since the last scrape.",
      type: "gauge",
      samples: takeDelays().map(([stat, value]) => ({ labels: { stat }, value })),
    },
    gauge("process_resident_memory_bytes", "Memory of the process.", rss),
    gauge("process_heap_bytes", "Memory of the process that JavaScript uses.", heapUsed),
    {
      name: "process_cpu_seconds_total",
      help: "Processor time of the process.",
      type: "counter",
      samples: [{ value: (user + system) / 1e6 }],
    },
    // Made from the clock and the age it would differ a little in each scrape, as if the process had been started again.
    gauge("process_start_time_seconds", "When the process started.", performance.timeOrigin / 1000),
    {
      name: "junctor_build_info",
      help: "The version of Junctor; always 1.",
      type: "gauge",
      samples: [{ labels: { version, node: process.version }, value: 1 }],
    },
  ];
}
