import type { JSX } from "preact";
import type { Settings as SettingList, Status } from "../junctor/src/admin/answers.ts";
import { Icon } from "./icons.tsx";
import { Code } from "./overview.tsx";
import { CauseBox, Empty, Facts, Heading, Search, WhenLoaded } from "./parts.tsx";
import { hrefOf, refine, type Route } from "./route.ts";
import { type Known, type Store, useKnown, useLoaded } from "./store.ts";
import { EditView } from "./waiting.tsx";
import {
  describeAge,
  describeBytes,
  describeCount,
  describeMs,
  describeNumber,
  toPrettyJson,
} from "./words.ts";

type Row = SettingList["settings"][number];

/** Sections of the view: id, label, and whether a path of the config belongs to it. */
const sections: readonly (readonly [string, string, (path: string) => boolean])[] = [
  [
    "gateway",
    "Gateway",
    (path) =>
      !/^(?:mcpServers|servers|junctor\.(?:servers|defaults|keys|issuers|rules|profiles|allow|deny|limits|perCaller|audit|redact))\b/.test(
        path,
      ),
  ],
  ["servers", "Servers", (path) => /^(?:mcpServers|servers|junctor\.(?:servers|defaults))\b/.test(path)],
  ["access", "Keys and rules", (path) => /^junctor\.(?:keys|issuers|rules|allow|deny)\b/.test(path)],
  ["profiles", "Profiles", (path) => /^junctor\.profiles\b/.test(path)],
  ["limits", "Limits", (path) => /^junctor\.(?:limits|perCaller)\b/.test(path)],
  ["audit", "Audit", (path) => /^junctor\.(?:audit|redact)\b/.test(path)],
];

/** What is configured, where each value comes from, and what an edit would change. */
export function Settings({ store, route }: { readonly store: Store; readonly route: Route }): JSX.Element {
  const known = useKnown(store);
  const { waiting } = known.problems;
  const loaded = useLoaded<SettingList>(store.api, "/api/settings", waiting?.version);
  const at = route.rest === "" ? (waiting === undefined ? "gateway" : "edit") : route.rest;
  return (
    <div class="view settings-view">
      <header class="view-head">
        <Heading>Settings</Heading>
        <span class="side path">
          <Icon name="file" />
          <code>{known.status?.config ?? "no config: the demo runs"}</code>
        </span>
      </header>
      <div class="list-and-detail">
        <nav class="list" aria-label="Parts of the settings">
          {waiting !== undefined && <SectionLink id="edit" label="Waiting edit" at={at} count={1} />}
          {sections.map(([id, label]) => (
            <SectionLink key={id} id={id} label={label} at={at} />
          ))}
          <SectionLink id="add" label="Add a server" at={at} />
          <SectionLink id="about" label="About" at={at} />
        </nav>
        <div class="scroller detail">
          {at === "edit" &&
            (waiting === undefined ? (
              <Empty title="No edit waits." />
            ) : (
              <EditView store={store} edits={waiting.edits} version={waiting.version} />
            ))}
          {at === "add" && <AddServer />}
          {at === "about" && <About known={known} />}
          <WhenLoaded loaded={loaded}>{(list) => <Section list={list} at={at} route={route} />}</WhenLoaded>
        </div>
      </div>
    </div>
  );
}

function SectionLink(props: {
  readonly id: string;
  readonly label: string;
  readonly at: string;
  readonly count?: number;
}): JSX.Element {
  const { id, label, at, count } = props;
  return (
    <a href={hrefOf(`settings/${id}`)} aria-current={id === at ? "page" : undefined}>
      {label}
      {count !== undefined && <span class="waits">{count}</span>}
    </a>
  );
}

function Section({
  list,
  at,
  route,
}: {
  readonly list: SettingList;
  readonly at: string;
  readonly route: Route;
}): JSX.Element | null {
  const [, label, has] = sections.find(([id]) => id === at) ?? [];
  if (has === undefined) return null;
  if (list.fault !== undefined)
    return (
      <CauseBox tone="danger" title="The config cannot be read; the gateway runs the one from before">
        <p class="pre">{list.fault}</p>
      </CauseBox>
    );
  const words = (route.query.get("q") ?? "").toLowerCase();
  const isAll = route.query.get("all") === "1";
  const all = list.settings.filter(({ path }) => has(path));
  const shown = all.filter(
    (row) => (isAll || row.from !== "default" || words !== "") && row.path.toLowerCase().includes(words),
  );
  const set = all.filter(({ from }) => from !== "default").length;
  return (
    <section aria-label={label}>
      <header class="section-head">
        <h2>{label}, as the config is understood</h2>
        <span class="side quiet">
          {describeCount(all.length, "setting")}, {set} of them set by you ·{" "}
          <a href={hrefOf(`settings/${at}`, { all: isAll ? undefined : "1" })}>
            {isAll ? "show only those" : "show all"}
          </a>
        </span>
      </header>
      <Search
        label="Search settings"
        value={route.query.get("q") ?? ""}
        onChange={(q) => refine(route, { q })}
      />
      {shown.length === 0 ? (
        <Empty
          title={
            all.length === 0
              ? "The config says nothing here."
              : words === ""
                ? "Nothing here is set by you: all values are the usual ones."
                : "No setting matches."
          }
        >
          {!isAll && all.length > 0 && (
            <a href={hrefOf(`settings/${at}`, { all: "1" })}>Show the usual values</a>
          )}
        </Empty>
      ) : (
        <table class="plain settings-table">
          <thead>
            <tr>
              <th scope="col">Setting</th>
              <th scope="col">Value</th>
              <th scope="col" class="rank2">
                Comes from
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.slice(0, 500).map((row) => (
              <SettingRow key={row.path} row={row} />
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function SettingRow({
  row: { path, value, from, line, variables = [] },
}: {
  readonly row: Row;
}): JSX.Element {
  const origin =
    from === "default"
      ? "usual value"
      : `line ${line ?? "?"}${from === "defaults" ? " of junctor.defaults" : ""}`;
  return (
    <tr>
      <th scope="row">
        <code>{path.replace(/^junctor\./, "")}</code>
      </th>
      <td class={from === "default" ? "quiet" : "set"}>
        <pre class="value">
          {value === undefined || value === null
            ? "none"
            : typeof value === "string"
              ? value
              : toPrettyJson(value)}
        </pre>
      </td>
      <td class="rank2 quiet">
        {origin}
        {variables.length > 0 && `, ${variables.join(", ")}`}
      </td>
    </tr>
  );
}

/** Shows commands to type, and runs none: on the command line a person reads what will start. */
function AddServer(): JSX.Element {
  return (
    <section class="add">
      <h2>Add a server</h2>
      <p>In a terminal, in the folder of your config. It shows what will run, and asks before it does:</p>
      <h3>One that runs here</h3>
      <Code text="junctor add files npx -y @modelcontextprotocol/server-filesystem ." />
      <h3>One at an address</h3>
      <Code text="junctor add linear https://mcp.linear.app/mcp" />
      <h3>Those that your clients have already</h3>
      <Code text="junctor import" />
      <p class="quiet">
        The gateway sees the edit at once. What it starts or allows waits under{" "}
        <a href="#/waiting">Waiting</a> until you take it. <code>junctor disable NAME</code> and{" "}
        <code>junctor remove NAME</code> take a server away.
      </p>
    </section>
  );
}

function About({ known: { status } }: { readonly known: Known }): JSX.Element {
  if (status === undefined) return <Empty title="Looking…" />;
  return (
    <section aria-label="About">
      <h2>About this gateway</h2>
      <Facts facts={toFacts(status)} />
    </section>
  );
}

function toFacts(status: Status): readonly (readonly [string, string | undefined])[] {
  const {
    version,
    node,
    pid,
    worker,
    url,
    adminUrl,
    calls,
    sessions,
    streams,
    parked,
    memoryBytes,
    eventLoopDelayMs,
    startedAt,
  } = status;
  return [
    ["Junctor", version],
    ["Node", node],
    ["Process", `${pid}${worker === undefined ? "" : `, worker ${worker.number} of ${worker.count}`}`],
    ["Up for", describeAge(Date.now() - startedAt)],
    ["For clients", url],
    ["Admin API", adminUrl],
    [
      "Calls",
      `${describeNumber(calls.total)}, ${describeNumber(calls.failed)} failed, ${calls.underway} underway`,
    ],
    ["Sessions", String(sessions)],
    ["Streams", String(streams)],
    ["Parked", String(parked)],
    ["Memory", describeBytes(memoryBytes)],
    ["Event loop delay", describeMs(eventLoopDelayMs)],
  ];
}
