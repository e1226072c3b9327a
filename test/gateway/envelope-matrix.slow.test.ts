import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encodeHeaderValue } from "../../packages/core/src/mcp/mirrored-headers.ts";
import {
  type Case,
  duplicateCases,
  headerCases,
  joinMembers,
  type Member,
  meta,
  prototypeCases,
  quote,
  toolCases,
  variantCases,
} from "./support/envelope-cases.ts";
import { facetCases, smuggleCases } from "./support/envelope-smuggling.ts";
import { type Front, policies, setStage, type Stage } from "./support/envelope-stage.ts";

// Invariants 2 and 7. Every case is a message that one reader may take for something harmless and another for something
// forbidden, or that names what is forbidden in another way. The upstreams write down all they get: nothing forbidden may
// be among it, and what does arrive must say what the gateway's reading of it says.

const callCases = [
  ...duplicateCases(),
  ...variantCases(),
  ...prototypeCases(),
  ...toolCases(),
  ...headerCases(),
  ...smuggleCases(),
];

let nextId = 1000;

/** The message of a case as a client of this front would write it. */
function write(
  given: Case,
  { isModern, isHttp }: Front,
  nonce: string,
): {
  readonly body: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly args: string;
} {
  // Each its own: what is still being worked on would have its id refused for that reason alone.
  const id = nextId++;
  const own: readonly Member[] = isModern
    ? [
        [quote(meta("protocolVersion")), '"2026-07-28"'],
        [quote(meta("clientCapabilities")), "{}"],
      ]
    : [];
  const inMeta = given.meta === undefined ? own : given.meta(own);
  const subject: readonly Member[] = given.subject?.(nonce) ?? [
    ['"name"', '"one__open"'],
    ['"arguments"', `{"nonce":"${nonce}"}`],
  ];
  const base: readonly Member[] = [...subject, ['"_meta"', joinMembers(inMeta)]];
  const params = given.params === undefined ? base : given.params(base, nonce);
  const args = params.find(([k]) => k === '"arguments"')?.[1] ?? "";
  const method = given.method ?? "tools/call";
  const message: readonly Member[] = [
    ['"jsonrpc"', '"2.0"'],
    ['"id"', String(id)],
    ['"method"', quote(method)],
    ['"params"', joinMembers(params)],
  ];
  const whole = joinMembers(given.envelope === undefined ? message : given.envelope(message));
  const body = given.body === undefined ? whole : given.body(whole);
  const usual =
    isModern && isHttp
      ? [
          ["mcp-protocol-version", "2026-07-28"] as const,
          ["mcp-method", method] as const,
          ...(method === "completion/complete"
            ? []
            : [["mcp-name", encodeHeaderValue(given.named ?? "one__open")] as const]),
        ]
      : [];
  return { body, headers: given.headers === undefined ? usual : given.headers(usual), args };
}

function fits({ onlyOn }: Case, { isModern, isHttp }: Pick<Front, "isModern" | "isHttp">): boolean {
  if (onlyOn === "http") return isHttp;
  if (onlyOn === "legacy") return !isModern;
  return onlyOn === undefined || (isModern && isHttp);
}

const frontSpecs = [
  { name: "http modern", isModern: true, isHttp: true },
  { name: "http legacy", isModern: false, isHttp: true },
  { name: "stdio modern", isModern: true, isHttp: false },
  { name: "stdio legacy", isModern: false, isHttp: false },
] as const;

const matrix = policies.flatMap((policy) =>
  frontSpecs.flatMap((front) =>
    [...callCases, ...(policy.hasFacets ? facetCases() : [])].filter((given) => fits(given, front)),
  ),
);

test(`the matrix has ${matrix.length} cases`, () => {
  expect(matrix.length).toBeGreaterThanOrEqual(1000);
  const names = [...callCases, ...facetCases()].map(({ name }) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});

/** What the upstream's own business is, and not a caller's. */
const housekeeping = new Set([
  "initialize",
  "notifications/initialized",
  "server/discover",
  "tools/list",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
  "subscriptions/listen",
  "ping",
  "logging/setLevel",
]);

interface Arrived {
  readonly method?: string;
  readonly params?: { readonly name?: string; readonly arguments?: unknown; readonly uri?: string };
}

for (const policy of policies) {
  describe(`what is ${policy.name}`, () => {
    let stage: Stage;
    beforeAll(async () => {
      stage = await setStage(policy);
      stage.arrived();
    });
    afterAll(() => stage?.close());

    for (const spec of frontSpecs) {
      describe(`at ${spec.name}`, () => {
        test("an honest call arrives", async () => {
          const front = stage.fronts.get(spec.name)!;
          const { body, headers } = write({ name: "a call", verdict: "harmless" }, front, "nonce-1");
          expect(await front.send(body, headers)).toContain("called open");
          expect(stage.arrived().filter((raw) => raw.includes("nonce-1"))).toHaveLength(1);
        });

        const cases = [...callCases, ...(policy.hasFacets ? facetCases() : [])].filter((given) =>
          fits(given, spec),
        );
        test.for(cases.map((given): [string, Case] => [given.name, given]))("%s", async ([, given]) => {
          const front = stage.fronts.get(spec.name)!;
          const nonce = `nonce-${Math.random()}`;
          const { body, headers, args } = write(given, front, nonce);
          const answer = await front.send(body, headers);
          const arrived = stage
            .arrived()
            .filter((raw) => !housekeeping.has((JSON.parse(raw) as Arrived).method ?? ""));
          if (given.verdict === "refused") {
            expect(arrived, `sent ${body}; answered ${answer}`).toEqual([]);
            expect(answer).not.toContain('"result"');
            return;
          }
          for (const raw of arrived) {
            const { method, params } = JSON.parse(raw) as Arrived;
            expect({ method, name: params?.name }, `sent on: ${raw}`).toEqual({
              method: "tools/call",
              name: "open",
            });
            expect(raw).toContain(`"arguments":${args.replaceAll(/[\n\r]/g, " ")}`);
            // Members that we do not know cross as they came. Nothing else does.
            const known = ["_meta", "arguments", "name"];
            const sent = Object.keys((JSON.parse(body) as Arrived).params ?? {});
            expect([...known, ...sent]).toEqual(expect.arrayContaining(Object.keys(params ?? {})));
          }
          expect(arrived.length).toBeLessThanOrEqual(1);
        });
      });
    }
  });
}
