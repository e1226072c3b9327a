import type { JSX } from "preact";
import type {
  AdminLogLine,
  CatalogReport,
  History,
  ListedFault,
  ServerReport,
  Settings,
  Usage,
} from "../junctor/src/admin/answers.ts";
import { CallTable } from "./calls.tsx";
import { Icon } from "./icons.tsx";
import { toFlags } from "./overview.tsx";
import {
  Action,
  Badge,
  CauseBox,
  Empty,
  Facts,
  Heading,
  Panel,
  toneOf,
  ToolName,
  useNow,
  useTicks,
  WhenLoaded,
} from "./parts.tsx";
import { hrefOf, pathOf, refine, type Route } from "./route.ts";
import { DayBar } from "./servers.tsx";
import { badgeOf, type Store, useKnown, useLoaded } from "./store.ts";
import { Traffic } from "./traffic.tsx";
import {
  describeAge,
  describeCount,
  describeMoment,
  describeMs,
  describeNumber,
  describeShort,
  describeTime,
  toPrettyJson,
} from "./words.ts";

interface TabProps {
  readonly store: Store;
  readonly route: Route;
  readonly server: ServerReport;
}

const tabs: readonly (readonly [string, string, (props: TabProps) => JSX.Element])[] = [
  ["", "Overview", OverviewTab],
  ["tools", "Tools", ToolsTab],
  ["calls", "Calls", CallsTab],
  ["output", "Output", OutputTab],
  ["config", "Config", ConfigTab],
  ["history", "History", HistoryTab],
];

/** One server: its state with the cause, its output, its config. */
export function Server({ store, route }: { readonly store: Store; readonly route: Route }): JSX.Element {
  const { servers, status } = useKnown(store);
  const found = servers.find(({ name }) => name === route.rest || route.rest.startsWith(`${name}/`));
  const tab = found === undefined ? "" : route.rest.slice(found.name.length + 1);
  if (found === undefined)
    return (
      <div class="view scroller">
        <Heading>{status === undefined ? "Looking…" : `There is no server ${route.rest}`}</Heading>
        <p>
          <a href="#/servers">All servers</a>
        </p>
      </div>
    );
  const { name } = found;
  const { tone, word } = badgeOf(found);
  const [, , Tab = OverviewTab] = tabs.find(([id]) => id === tab) ?? [];
  return (
    <div class="view scroller">
      <header class="view-head">
        <div class="title-of">
          <a class="quiet back" href="#/servers">
            Servers <Icon name="right" size={12} />
          </a>
          <div class="with-badge">
            <Heading>{name}</Heading>
            <Badge tone={tone}>{word}</Badge>
          </div>
        </div>
        <ServerActions server={found} store={store} />
      </header>
      <nav class="tabs" aria-label={`Of ${name}`}>
        {tabs.map(([id, label]) => (
          <a key={id} href={hrefOf(pathOf(name, id))} aria-current={id === tab ? "page" : undefined}>
            {label}
            {id === "tools" && <span class="count"> {found.tools}</span>}
          </a>
        ))}
      </nav>
      <Tab store={store} route={route} server={found} />
    </div>
  );
}

function ServerActions({
  server,
  store,
}: {
  readonly server: ServerReport;
  readonly store: Store;
}): JSX.Element | null {
  const { name, status, canRestart, cause } = server;
  if (canRestart === false || status === "disabled") return null;
  const act = (what: string) => () =>
    store.api.send("POST", `/api/servers/${encodeURIComponent(name)}/${what}`);
  const isEnded = status === "stopped" || status === "idle" || status === "down";
  return (
    <div class="acts">
      <Action
        label={isEnded || cause?.kind === "down" ? "Start now" : "Restart"}
        busy={isEnded ? "Starting…" : "Restarting…"}
        icon="restart"
        act={act(isEnded ? "start" : "restart")}
      />
      {status !== "stopped" && status !== "idle" && (
        <Action
          label="Stop…"
          busy="Stopping…"
          icon="stop"
          class="ghost"
          confirm={`Stop ${name}? Its calls get 10 s to finish, and it stays stopped until you start it.`}
          act={act("stop")}
        />
      )}
    </div>
  );
}

function OverviewTab({ store, route, server }: TabProps): JSX.Element {
  const range = route.query.get("range") ?? "1h";
  return (
    <div class="columns">
      <div class="wide">
        <Cause server={server} />
        <DayPanel server={server} />
        <Traffic
          store={store}
          range={range}
          server={server.name}
          flags={toFlags([server], false)}
          onRange={(next) => refine(route, { range: next })}
        />
        <Output server={server} store={store} most={8} />
      </div>
      <div class="narrow">
        <About server={server} />
        <LastHour server={server} store={store} />
      </div>
    </div>
  );
}

function Cause({ server }: { readonly server: ServerReport }): JSX.Element | null {
  const { cause, nextTryAt, name } = server;
  const now = useNow();
  if (cause === undefined) return null;
  return (
    <CauseBox
      tone={cause.kind === "down" ? "danger" : "warn"}
      title={`${cause.text[0]?.toUpperCase() ?? ""}${cause.text.slice(1)}`}
    >
      <p>
        {cause.meaning}{" "}
        {cause.sinceAt !== undefined &&
          `Since ${describeTime(cause.sinceAt)}, ${describeAge(now - cause.sinceAt)}. `}
        {nextTryAt !== undefined &&
          nextTryAt > now &&
          `The gateway keeps trying, less and less often; the next try is in ${describeAge(nextTryAt - now)}. `}
        {(cause.failed ?? 0) > 0 && (
          <a href={hrefOf("calls", { is: "failed", server: name })}>
            {describeCount(cause.failed ?? 0, "call")} failed since then
          </a>
        )}
      </p>
      {cause.advice !== undefined && <p class="advice">{cause.advice}</p>}
      {server.stray !== undefined && (
        <p>
          It wrote to standard output: <code>{server.stray}</code>
        </p>
      )}
    </CauseBox>
  );
}

function DayPanel({ server: { day = "" } }: { readonly server: ServerReport }): JSX.Element {
  const known = day.split("").filter((mark) => mark !== "-");
  const share = (mark: string): number =>
    known.filter((each) => each === mark).length / Math.max(1, known.length);
  const down = known.filter((mark) => mark === "d").length / 4;
  return (
    <Panel
      title="State, last 24 hours"
      class="day-panel"
      side={
        known.length === 0
          ? ""
          : `up ${(share("u") * 100).toFixed(1)} %${down > 0 ? ` · down in ${describeAge(down * 3_600_000)}` : ""}`
      }
    >
      <DayBar day={day} />
      <div class="day-axis quiet">
        <span>24 h ago</span>
        <span>12 h</span>
        <span>now</span>
      </div>
    </Panel>
  );
}

function About({ server }: { readonly server: ServerReport }): JSX.Element {
  const {
    kind,
    address,
    says,
    era,
    revision,
    sharing,
    tools,
    tokens,
    resources,
    prompts,
    restarts = 0,
    connectMs,
    isRecorded,
  } = server;
  const kinds = { command: "started here", http: "over HTTP", local: "part of this process" };
  return (
    <Panel title="About">
      <Facts
        facts={[
          [kind === "command" ? "Command" : "Address", address],
          ["Reached", kind && kinds[kind]],
          ["Says it is", says],
          ["Protocol", revision === undefined ? undefined : `${revision}, ${era}`],
          [
            "Shared by",
            sharing === "shared"
              ? "all callers"
              : sharing === "perSession"
                ? "nobody: one for each session"
                : sharing,
          ],
          ["Tools", `${tools}${tokens === undefined ? "" : ` · ${describeShort(tokens)} tokens`}`],
          ["Resources", resources === 0 ? undefined : String(resources)],
          ["Prompts", prompts === 0 ? undefined : String(prompts)],
          ["Connected in", connectMs === undefined || connectMs === 0 ? undefined : describeMs(connectMs)],
          ["Restarts", restarts === 0 ? "none" : `Started again ${describeCount(restarts, "time")}`],
          ["Recording", isRecorded === true ? "on: arguments and results are kept" : "off"],
        ]}
      />
    </Panel>
  );
}

/** The calls of the last hour, and the failed ones among them. */
function LastHour({ server, store }: { readonly server: ServerReport; readonly store: Store }): JSX.Element {
  const path = `/api/history?limit=1&server=${encodeURIComponent(server.name)}&sinceMs=3600000`;
  const loaded = useLoaded<History>(store.api, path, useTicks(15_000));
  return (
    <Panel title="Last hour">
      <WhenLoaded loaded={loaded}>
        {({ all, failed, calls }) => (
          <Facts
            facts={[
              [
                "Calls",
                <a key="all" href={hrefOf("calls", { server: server.name })}>
                  {describeNumber(all)}
                </a>,
              ],
              [
                "Failed",
                <a
                  key="failed"
                  class={failed > 0 ? "danger" : ""}
                  href={hrefOf("calls", { server: server.name, is: "failed" })}
                >
                  {describeNumber(failed)}
                </a>,
              ],
              ["Last call", calls[0] === undefined ? "none" : describeTime(calls[0].at)],
            ]}
          />
        )}
      </WhenLoaded>
    </Panel>
  );
}

function linesOf(log: readonly AdminLogLine[], server: string): readonly AdminLogLine[] {
  return log.filter(({ facts }) => facts["server"] === server);
}

/** What the server wrote, and what the gateway logged about it. */
function Output(props: {
  readonly server: ServerReport;
  readonly store: Store;
  readonly most: number;
}): JSX.Element {
  const { server, store, most } = props;
  const { log } = useKnown(store);
  const lines = linesOf(log, server.name).slice(-most);
  return (
    <Panel title="Output" class="output-panel" side={<a href={hrefOf(pathOf(server.name, "output"))}>all</a>}>
      {server.said !== undefined && <pre class="code">{server.said}</pre>}
      {lines.length === 0 && server.said === undefined ? (
        <p class="none quiet">It wrote nothing in the lines that are kept.</p>
      ) : (
        <ol class="output-lines">
          {lines.map(({ seq, at, level, text }) => (
            <li key={seq} class={level}>
              <time>{describeTime(at)}</time> <span>{text}</span>
            </li>
          ))}
        </ol>
      )}
    </Panel>
  );
}

function OutputTab({ store, server }: TabProps): JSX.Element {
  return <Output server={server} store={store} most={500} />;
}

function ToolsTab({ store, server }: TabProps): JSX.Element {
  const { catalogVersion } = useKnown(store);
  const name = encodeURIComponent(server.name);
  const catalog = useLoaded<CatalogReport>(store.api, `/api/catalog?server=${name}`, catalogVersion);
  const usage = useLoaded<Usage>(store.api, "/api/usage?by=tool&sinceMs=86400000");
  const rows = usage.kind === "loaded" ? usage.value.rows : [];
  const { leftOut = [], mended = [], unapproved = [] } = server;
  return (
    <>
      <Faults title="Left out, because clients would refuse it" faults={leftOut} />
      <Faults title="Mended, so that clients accept it" faults={mended} />
      {unapproved.length > 0 && (
        <CauseBox tone="warn" title={`${describeCount(unapproved.length, "definition")} not approved`}>
          <p>
            {unapproved
              .slice(0, 20)
              .map(({ name: own, why }) => `${own} (${why})`)
              .join(", ")}
            . <code>junctor trust</code> shows and approves them.
          </p>
        </CauseBox>
      )}
      <WhenLoaded loaded={catalog}>
        {({ tools }) =>
          tools.length === 0 ? (
            <Empty title="It offers no tools now." />
          ) : (
            <table class="plain">
              <thead>
                <tr>
                  <th scope="col">Tool</th>
                  <th scope="col" class="rank2">
                    What it does
                  </th>
                  <th scope="col" class="number">
                    Calls, 24 h
                  </th>
                  <th scope="col" class="number rank2">
                    Failed
                  </th>
                </tr>
              </thead>
              <tbody>
                {tools.map((tool) => {
                  const used = rows.find((row) => row.name === tool.name && row.server === tool.server);
                  return (
                    <tr key={tool.name}>
                      <td>
                        <a href={hrefOf(`tools/${encodeURIComponent(`tool:${tool.name}`)}`)}>
                          <ToolName name={tool.name} server={tool.server} />
                        </a>
                      </td>
                      <td class="quiet rank2 one-line">
                        {(tool.description ?? tool.title ?? "").slice(0, 300)}
                      </td>
                      <td class="number">{describeNumber(used?.calls ?? 0)}</td>
                      <td class={`number rank2 ${(used?.failed ?? 0) === 0 ? "quiet" : "danger"}`}>
                        {used?.failed ?? 0}
                      </td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          )
        }
      </WhenLoaded>
    </>
  );
}

function Faults(props: {
  readonly title: string;
  readonly faults: readonly ListedFault[];
}): JSX.Element | null {
  if (props.faults.length === 0) return null;
  return (
    <CauseBox tone="warn" title={`${props.title} · ${props.faults.length}`}>
      <ul>
        {props.faults.slice(0, 50).map(({ part, name, reason }) => (
          <li key={`${part} ${name} ${reason}`}>
            <code>{name}</code> ({part}): {reason}
          </li>
        ))}
      </ul>
    </CauseBox>
  );
}

function CallsTab({ store, server }: TabProps): JSX.Element {
  const ticks = useTicks(3000);
  const loaded = useLoaded<History>(
    store.api,
    `/api/history?limit=50&server=${encodeURIComponent(server.name)}`,
    ticks,
  );
  return (
    <WhenLoaded loaded={loaded}>
      {({ calls, all }) => (
        <>
          <p class="quiet">
            {describeCount(all, "call")} kept ·{" "}
            <a href={hrefOf("calls", { server: server.name })}>search them</a>
          </p>
          {calls.length === 0 ? <Empty title="No call to it is kept." /> : <CallTable calls={calls} />}
        </>
      )}
    </WhenLoaded>
  );
}

function ConfigTab({ store, server }: TabProps): JSX.Element {
  const loaded = useLoaded<Settings>(store.api, "/api/settings");
  return (
    <WhenLoaded loaded={loaded}>
      {({ settings, file, fault }) => {
        const own = settings.filter(
          ({ path, from }) =>
            from !== "default" &&
            /^(?:mcpServers|servers|junctor\.servers)\./.test(path) &&
            ownerOf(path, server.name),
        );
        if (fault !== undefined) return <CauseBox tone="danger" title={fault} />;
        return own.length === 0 ? (
          <Empty
            title={
              file === undefined ? "This gateway runs without a config." : "The config says nothing of it."
            }
          />
        ) : (
          <table class="plain">
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
              {own.map(({ path, value, line, variables = [] }) => (
                <tr key={path}>
                  <td>
                    <code>{path}</code>
                  </td>
                  <td>
                    <pre class="value">{typeof value === "string" ? value : toPrettyJson(value)}</pre>
                  </td>
                  <td class="quiet rank2">
                    line {line}
                    {variables.length > 0 && `, ${variables.join(", ")}`}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        );
      }}
    </WhenLoaded>
  );
}

/** Names with dots are quoted in paths. */
function ownerOf(path: string, name: string): boolean {
  const rest = path.replace(/^(?:mcpServers|servers|junctor\.servers)/, "");
  return rest.startsWith(`.${name}.`) || rest.startsWith(`[${JSON.stringify(name)}]`);
}

function HistoryTab({ store, server }: TabProps): JSX.Element {
  const loaded = useLoaded<ServerReport>(
    store.api,
    `/api/servers/${encodeURIComponent(server.name)}`,
    server.status,
  );
  return (
    <WhenLoaded loaded={loaded}>
      {({ changes = [] }) =>
        changes.length === 0 ? (
          <Empty title="Nothing changed since the gateway started." />
        ) : (
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">When</th>
                <th scope="col">State</th>
                <th scope="col">Why</th>
              </tr>
            </thead>
            <tbody>
              {changes.toReversed().map(({ at, status, reason }, index) => (
                <tr key={index}>
                  <td>{describeMoment(at)}</td>
                  <td>
                    <Badge tone={toneOf(status)}>{status}</Badge>
                  </td>
                  <td>{reason ?? ""}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )
      }
    </WhenLoaded>
  );
}
