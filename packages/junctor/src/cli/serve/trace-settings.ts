import { ConfigError } from "@junctor/core/errors";
import type { TracesConfig } from "../../config/index.ts";
import type { Sampler } from "../../telemetry/index.ts";

/** How requests are traced, from the config and the variables of OpenTelemetry. */
export interface TraceSettings {
  readonly endpoint: string;
  readonly headers: { readonly [name: string]: string };
  readonly resource: { readonly [name: string]: string };
  readonly sampler: Sampler;
}

type Env = { readonly [name: string]: string | undefined };

const usualEndpoint = "http://localhost:4318";

/**
 * The settings; undefined when nothing is traced. The config decides what it says; the `OTEL_*` variables fill in the rest, and
 * switch tracing on by themselves when one of them names an endpoint or the exporter.
 */
export function readTraceSettings(config: TracesConfig | undefined, env: Env): TraceSettings | undefined {
  const given = (name: string): string | undefined => (env[name] === "" ? undefined : env[name]);
  if (given("OTEL_SDK_DISABLED")?.toLowerCase() === "true") return undefined;
  const exporter = given("OTEL_TRACES_EXPORTER");
  const base = given("OTEL_EXPORTER_OTLP_ENDPOINT");
  const own = given("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  if (config === undefined) {
    if (exporter === "none") return undefined;
    if (exporter === undefined && base === undefined && own === undefined) return undefined;
    if (exporter !== undefined && exporter !== "otlp")
      throw wrong("OTEL_TRACES_EXPORTER", `is ${JSON.stringify(exporter)}: write otlp or none`);
  }
  const endpoint = config?.endpoint ?? own ?? `${(base ?? usualEndpoint).replace(/\/$/, "")}/v1/traces`;
  if (!/^https?:\/\//.test(endpoint) || !URL.canParse(endpoint))
    throw wrong("OTEL_EXPORTER_OTLP_ENDPOINT", "is not an http or https address");
  assertProtocol(given("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") ?? given("OTEL_EXPORTER_OTLP_PROTOCOL"));
  const headers = given("OTEL_EXPORTER_OTLP_TRACES_HEADERS") ?? given("OTEL_EXPORTER_OTLP_HEADERS");
  const resource = readPairs("OTEL_RESOURCE_ATTRIBUTES", given("OTEL_RESOURCE_ATTRIBUTES"));
  const service = config?.service ?? given("OTEL_SERVICE_NAME") ?? resource["service.name"] ?? "junctor";
  return {
    endpoint,
    headers: { ...readPairs("OTEL_EXPORTER_OTLP_HEADERS", headers), ...config?.headers },
    resource: { ...resource, "service.name": service },
    sampler:
      config?.percent === undefined
        ? readSampler(given("OTEL_TRACES_SAMPLER"), given("OTEL_TRACES_SAMPLER_ARG"))
        : { ratio: config.percent / 100, isParentBased: true },
  };
}

/** JSON over HTTP is what we write; a collector takes it on the port of protobuf over HTTP too. */
function assertProtocol(protocol: string | undefined): void {
  if (protocol === undefined || protocol.startsWith("http/")) return;
  throw wrong(
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    `is ${JSON.stringify(protocol)}: write http/json, and the port for HTTP (4318)`,
  );
}

function readSampler(name = "parentbased_always_on", argument = "1"): Sampler {
  const isParentBased = name.startsWith("parentbased_");
  const kind = isParentBased ? name.slice("parentbased_".length) : name;
  if (kind === "always_on") return { ratio: 1, isParentBased };
  if (kind === "always_off") return { ratio: 0, isParentBased };
  const ratio = Number(argument);
  if (kind !== "traceidratio")
    throw wrong("OTEL_TRACES_SAMPLER", `is ${JSON.stringify(name)}: write parentbased_traceidratio`);
  if (!(ratio >= 0 && ratio <= 1)) throw wrong("OTEL_TRACES_SAMPLER_ARG", "must be a number from 0 to 1");
  return { ratio, isParentBased };
}

/** `key=value,key=value`, percent-encoded. */
function readPairs(variable: string, text = ""): { readonly [name: string]: string } {
  const pairs = text.split(",").filter((pair) => pair.trim() !== "");
  return Object.fromEntries(
    pairs.map((pair) => {
      const [key = "", ...value] = pair.split("=");
      if (key.trim() === "" || value.length === 0)
        throw wrong(variable, "must be written key=value,key=value");
      try {
        return [key.trim(), decodeURIComponent(value.join("=").trim())];
      } catch {
        throw wrong(variable, "has a value that is not percent-encoded");
      }
    }),
  );
}

function wrong(path: string, message: string): ConfigError {
  return new ConfigError("environment", [{ path, message }]);
}
