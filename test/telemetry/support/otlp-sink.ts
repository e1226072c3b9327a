import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A span as it arrived, with its attributes by name. */
export interface SunkSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: { readonly [name: string]: unknown };
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code?: number };
  /** `service.name` of its resource. */
  readonly service: unknown;
}

/** A collector of ours that takes OTLP/JSON over HTTP. */
export interface OtlpSink extends AsyncDisposable {
  readonly endpoint: string;
  readonly spans: readonly SunkSpan[];
  /** Everything that arrived, as text. */
  readonly bodies: readonly string[];
  readonly headers: readonly { readonly [name: string]: unknown }[];
  /** The status to answer with; 200. */
  status: number;
}

interface WireAttribute {
  readonly key: string;
  readonly value: { readonly [type: string]: unknown };
}

interface WireSpan extends Omit<SunkSpan, "attributes" | "service"> {
  readonly attributes: readonly WireAttribute[];
}

interface WireTraces {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly WireAttribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
}

export async function startOtlpSink(): Promise<OtlpSink> {
  const spans: SunkSpan[] = [];
  const bodies: string[] = [];
  const headers: { readonly [name: string]: unknown }[] = [];
  const server = createServer((incoming, response) => {
    let text = "";
    incoming.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    incoming.on("end", () => {
      headers.push(incoming.headers);
      if (sink.status === 200) {
        bodies.push(text);
        spans.push(...readSpans(JSON.parse(text) as WireTraces));
      }
      response.writeHead(sink.status, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const sink: OtlpSink = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`,
    spans,
    bodies,
    headers,
    status: 200,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return sink;
}

function readSpans({ resourceSpans }: WireTraces): readonly SunkSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = toValues(resource.attributes)["service.name"];
    return scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({ ...span, attributes: toValues(span.attributes), service })),
    );
  });
}

function toValues(attributes: readonly WireAttribute[]): { readonly [name: string]: unknown } {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
