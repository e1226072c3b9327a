// What docs/evidence/compatibility.md has a cell for. The tests and the page are both made from this.

import type { Revision } from "../../packages/core/src/mcp/revision.ts";
import type { EraName } from "../bridge/support/upstream.ts";

/** How a client reaches the gateway. */
export type FrontWay = "HTTP" | "stdio";
/** How the gateway reaches a server. */
export type BackWay = FrontWay | "HTTP+SSE";

/** What has a column, and what its tests show. */
export const features = {
  call: "a tool is called and answers",
  stream: "the first piece of a result is there while the tool is still at work on the next",
  progress: "numbers and totals arrive as they were sent, in order",
  log: "the server's log of a call reaches who asked for it, from the level they asked for",
  cancel: "giving a call up stops the tool",
  "list change": "the client is told of a new tool and finds it in the list",
  "resource update": "the client is told that a resource it watches changed, and reads what is new",
  elicit: "the tool asks the user, gets the answer, and ran once",
  sample: "the same for the client's model",
  roots: "the same for the folders the user works in",
  completion: "values for a prompt's argument are suggested",
  view: "a host reads the page that a tool names, with what the page asks for",
  "app call": "a page calls a tool of its server by that server's own name for it",
  skill: "a skill is listed, loaded and read, and each file is as it was listed",
  task: "a tool that runs as a task only is called, and its result comes; a modern client gets the task",
  "task that asks": "such a tool asks the user, gets the answer, and ran once",
  resume: "a connection is cut in the middle of a call, and the client comes back for the rest",
} as const;
export type Feature = keyof typeof features;

/** Why a client has no such feature. */
export type Absence = "noElicitation" | "noMeta" | "noProgressText" | "noStreamToResume" | "noResumption";

export const absences: { readonly [Kind in Absence]: string } = {
  noElicitation: "Elicitation came with 2025-06-18.",
  noMeta:
    "Tools name their pages in `_meta`, which came with 2025-06-18; older clients get the text of the result.",
  noProgressText: "Pieces of a result travel as the text of progress, which came with 2025-03-26.",
  noStreamToResume:
    "Resumption is about the event streams of Streamable HTTP; a pipe, and HTTP+SSE of 2024-11-05, end with what they carry.",
  noResumption: "2026-07-28 has no resumption: a stream that breaks ends its call.",
};

/** A client of a revision and a server of an era. */
export interface Row {
  readonly name: string;
  readonly revision: Revision;
  readonly server: EraName;
}

/** A pair of transports. */
export interface Table {
  readonly name: string;
  readonly front: FrontWay;
  readonly back: BackWay;
  readonly rows: readonly Row[];
}

const clients: readonly Revision[] = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const pairs: readonly (readonly [FrontWay, BackWay])[] = [
  ["HTTP", "HTTP"],
  ["HTTP", "stdio"],
  ["HTTP", "HTTP+SSE"],
  ["stdio", "HTTP"],
  ["stdio", "stdio"],
  ["stdio", "HTTP+SSE"],
];

export const tables: readonly Table[] = pairs.map(([front, back]) => ({
  name: `${front} to ${back}`,
  front,
  back,
  rows: clients.flatMap((revision) => serversOf(back).map((server) => toRow(revision, server))),
}));

/** Why a client has no such feature; undefined when it has. */
export function absenceOf(feature: Feature, { front }: Table, { revision }: Row): Absence | undefined {
  switch (feature) {
    case "elicit":
    case "task that asks":
      return revision < "2025-06-18" ? "noElicitation" : undefined;
    case "view":
    case "app call":
      return revision < "2025-06-18" ? "noMeta" : undefined;
    case "stream":
      return revision < "2025-03-26" ? "noProgressText" : undefined;
    case "resume":
      if (revision >= "2026-07-28") return "noResumption";
      return front === "stdio" || revision < "2025-03-26" ? "noStreamToResume" : undefined;
    default:
      return undefined;
  }
}

export const featureNames: readonly Feature[] = Object.keys(features) as Feature[];

/** The features that have a test. */
export function provenOf(table: Table, row: Row): readonly Feature[] {
  return featureNames.filter((feature) => absenceOf(feature, table, row) === undefined);
}

/** Names a test: the titles around it and its own. */
export function testName(...titles: readonly string[]): string {
  return titles.join(" > ");
}

/** The modern revision has no HTTP+SSE. */
function serversOf(back: BackWay): readonly EraName[] {
  return back === "HTTP+SSE" ? ["legacy"] : ["modern", "legacy"];
}

function toRow(revision: Revision, server: EraName): Row {
  return { name: `${revision} → ${server}`, revision, server };
}
