import {
  type Absence,
  absenceOf,
  absences,
  featureNames,
  features,
  type Row,
  type Table,
  tables,
  testName,
} from "./cells.ts";

/** Whether the test of this name passed. */
export type HasPassed = (test: string) => boolean;

const head = `<!-- Made by proof/conformance/compatibility.mjs from the tests in test/compatibility. Run the script; do not edit this. -->

# Compatibility

A *modern* client or server speaks revision 2026-07-28, in which every request stands alone; a *legacy* one opens with
\`initialize\` and speaks 2025-11-25 or older. By the published matrix a modern client cannot use a legacy server, nor a legacy
client a modern one. Through the gateway they can, also when a tool asks the user something:

- Modern client, legacy server: the server asks in the middle of its call, so the call is
  [parked](../reference/gateway.md#the-era-bridge). The client gets \`input_required\`, comes back with the answers, and gets the result of that
  same call; the tool ran once.
- Legacy client, modern server: the client is asked by requests its revision knows, on its own call's stream, and the server is
  called again with the answers.
- A client of either era that did not declare what a legacy server asks for: the gateway answers the server in its place that the
  client does not offer it, and the tool goes on or fails by itself (\`test/bridge/undeclared.test.ts\`).

Each ✓ is a test that passed: one of our clients, one gateway and one of our servers that serves that era alone, over real pipes
and sockets; on standard streams the gateway is \`junctor serve --config FILE --stdio\`, and a client of 2024-11-05 over HTTP comes by
HTTP+SSE. ✗ is one that failed, – something the client's revision or transport does not have.

    npm run proof -- conformance compatibility

runs them and writes this page; \`npm test\` runs them and fails when this page does not say so.

| column | shows that |
|---|---|`;

/** The page, given which tests passed. */
export function renderPage(hasPassed: HasPassed): string {
  const meanings = featureNames.map((name) => `| ${name} | ${features[name]} |`);
  const parts = [
    [head, ...meanings],
    ...tables.map((table) => renderTable(table, hasPassed)),
    renderOfficial(hasPassed),
  ];
  return `${parts.map((lines) => lines.join("\n")).join("\n\n")}\n`;
}

function renderTable(table: Table, hasPassed: HasPassed): readonly string[] {
  const notes: Absence[] = [];
  const noteOf = (absence: Absence): number => {
    if (!notes.includes(absence)) notes.push(absence);
    return notes.indexOf(absence) + 1;
  };
  const toCells = (row: Row): readonly string[] =>
    featureNames.map((feature) => {
      const absence = absenceOf(feature, table, row);
      if (absence !== undefined) return `– ${noteOf(absence)}`;
      return toMark(hasPassed(testName(table.name, row.name, feature)));
    });
  const rows = table.rows.map((row) => toRow([row.revision, row.server, ...toCells(row)]));
  return [
    `## Client over ${table.front}, server over ${table.back}`,
    "",
    toRow(["client", "server", ...featureNames]),
    toRow(["---", "---", ...featureNames.map(() => ":-:")]),
    ...rows,
    "",
    ...notes.map((absence, index) => `${index + 1}. ${absences[absence]}`),
  ];
}

const sdks = ["v1", "v2"] as const;
const ways = ["http", "stdio"] as const;
const routes = ways.flatMap((front) => ways.map((back) => ({ front, back })));

/** The tests of test/bridge/official.test.ts, by the titles it gives them. */
export const officialTests: readonly string[] = [
  "the user is asked, and the model",
  "several calls that ask at once are each answered",
];

/** The title of a pair of official SDKs in test/bridge/official.test.ts. */
export function officialTitle(client: string, server: string, front: string, back: string): string {
  return `SDK ${client} client over ${front}, SDK ${server} server over ${back}`;
}

function renderOfficial(hasPassed: HasPassed): readonly string[] {
  const rows = sdks.flatMap((client) =>
    sdks.map((server) => {
      const marks = routes.map(({ front, back }) => {
        const title = officialTitle(client, server, front, back);
        return toMark(officialTests.every((test) => hasPassed(testName(title, test))));
      });
      return toRow([`${client} (${revisionOf(client)})`, `${server} (${revisionOf(server)})`, ...marks]);
    }),
  );
  return [
    "## Official SDKs on both sides",
    "",
    "The official TypeScript SDKs through the gateway: v1 speaks 2025-11-25, v2 is pinned to 2026-07-28. A tool asks the user, another",
    "the client's model, and several calls that ask at once each get their own answer (`test/bridge/official.test.ts`).",
    "",
    toRow(["client", "server", ...routes.map(({ front, back }) => `${toWord(front)} → ${toWord(back)}`)]),
    toRow(["---", "---", ...routes.map(() => ":-:")]),
    ...rows,
  ];
}

const revisionOf = (sdk: (typeof sdks)[number]): string => (sdk === "v1" ? "2025-11-25" : "2026-07-28");
const toWord = (way: (typeof ways)[number]): string => (way === "http" ? "HTTP" : "stdio");
const toMark = (isPassed: boolean): string => (isPassed ? "✓" : "✗");
const toRow = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
