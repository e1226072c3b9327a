import { expect, test } from "vitest";
import { readTraceSettings } from "./serve-admin.ts";

const endpoint = "http://collector:4318";

test("nothing is traced unless the config or a variable says so", () => {
  expect(readTraceSettings(undefined, {})).toBeUndefined();
  expect(readTraceSettings(undefined, { OTEL_SERVICE_NAME: "x" })).toBeUndefined();
  expect(
    readTraceSettings(undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_EXPORTER: "none" }),
  ).toBeUndefined();
  expect(readTraceSettings({ headers: {} }, { OTEL_SDK_DISABLED: "true" })).toBeUndefined();
});

test("the usual variables say where, how and of which requests", () => {
  expect(
    readTraceSettings(undefined, {
      OTEL_EXPORTER_OTLP_ENDPOINT: `${endpoint}/`,
      OTEL_EXPORTER_OTLP_HEADERS: "api-key=a%20b,x=1=2",
      OTEL_SERVICE_NAME: "edge",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test,service.name=other",
      OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0.25",
    }),
  ).toEqual({
    endpoint: `${endpoint}/v1/traces`,
    headers: { "api-key": "a b", x: "1=2" },
    resource: { "deployment.environment.name": "test", "service.name": "edge" },
    sampler: { ratio: 0.25, isParentBased: true },
  });
});

test("the config decides what it says", () => {
  const config = { endpoint: "http://here/v1/traces", headers: { a: "b" }, percent: 1, service: "mine" };
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_SERVICE_NAME: "other",
    OTEL_TRACES_SAMPLER: "always_off",
  };
  expect(readTraceSettings(config, env)).toMatchObject({
    endpoint: "http://here/v1/traces",
    headers: { a: "b" },
    resource: { "service.name": "mine" },
    sampler: { ratio: 0.01, isParentBased: true },
  });
});

test.each([
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318" }, "OTEL_EXPORTER_OTLP_ENDPOINT"],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, "http/json"],
  [{ OTEL_TRACES_EXPORTER: "zipkin" }, "otlp or none"],
  [
    { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER: "jaeger_remote" },
    "parentbased_traceidratio",
  ],
  [
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_TRACES_SAMPLER: "traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "2",
    },
    "0 to 1",
  ],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_HEADERS: "key" }, "key=value"],
])("%j is refused, and the message says %s", (env, text) => {
  expect(() => readTraceSettings(undefined, env)).toThrow(text);
});
