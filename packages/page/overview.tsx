import type { ComponentChildren, JSX } from "preact";
import type { ServerReport, Usage } from "../junctor/src/admin/answers.ts";
import type { ChartFlag } from "./chart.tsx";
import { Icon, type IconName, Mark } from "./icons.tsx";
import {
  Action,
  CopyButton,
  Dot,
  Heading,
  Panel,
  ranges,
  Segments,
  ToolName,
  toRangeMs,
  useNow,
  useTicks,
} from "./parts.tsx";
import { hrefOf, pathOf, refine, type Route } from "./route.ts";
import {
  badgeOf,
  isTrouble,
  type Known,
  sortServers,
  type Store,
  toolCount,
  useKnown,
  useLoaded,
} from "./store.ts";
import { Traffic } from "./traffic.tsx";
import {
  describeAge,
  describeCount,
  describeMs,
  describeNumber,
  describeRate,
  describeShort,
  describeTime,
} from "./words.ts";

interface ViewProps {
  readonly store: Store;
  readonly route: Route;
}

/** Whether everything is all right, and what to do now. */
export function Overview({ store, route }: ViewProps): JSX.Element {
  const known = useKnown(store);
  const range = route.query.get("range") ?? "1h";
  const onRange = (next: string): void => refine(route, { range: next });
  if (known.status === undefined) return <Looking />;
  if (known.servers.length === 0) return <Welcome known={known} />;
  const inTrouble = sortServers(known.servers.filter(isTrouble), () => 0);
  return (
    <div class="view scroller overview">
      <header class="view-head">
        <div>
          <Verdict known={known} />
        </div>
        <Segments label="Range" value={range} options={ranges} onChange={onRange} />
      </header>
      <div class="columns">
        <div class="wide">
          {inTrouble.length > 0 && <Troubles servers={inTrouble} store={store} />}
          <Notes known={known} />
          <Traffic store={store} range={range} flags={toFlags(inTrouble)} />
          <Busiest store={store} range={range} total={toolCount(known)} />
        </div>
        <div class="narrow">
          <Lamps servers={known.servers} />
          <WaitingPanel known={known} />
          <Connected store={store} range={range} />
        </div>
      </div>
    </div>
  );
}

/** Shown until the first answer, in the layout of the view, so that nothing moves when it comes. */
function Looking(): JSX.Element {
  return (
    <div class="view scroller">
      <header class="view-head">
        <Heading>Looking…</Heading>
      </header>
    </div>
  );
}

export function toFlags(servers: readonly ServerReport[], isNamed = true): readonly ChartFlag[] {
  return servers.flatMap((server) => {
    const { cause, name } = server;
    if (cause?.sinceAt === undefined) return [];
    const word = badgeOf(server).word.toLowerCase();
    return [
      {
        at: cause.sinceAt,
        text: isNamed ? `${name} ${word}` : word,
        tone: cause.kind === "down" ? "danger" : "warn",
      },
    ];
  });
}

/** The state of everything in one sentence. */
function Verdict({ known: { servers, status, point, calls } }: { readonly known: Known }): JSX.Element {
  const count = (kind: string): number => servers.filter(({ cause }) => cause?.kind === kind).length;
  const [down, slow, warning] = [count("down"), count("slow"), count("warning")];
  const parts = [
    down > 0 ? `${describeCount(down, "server")} ${down === 1 ? "is" : "are"} down` : "",
    slow > 0 ? `${down > 0 ? slow : describeCount(slow, "server")} ${slow === 1 ? "is" : "are"} slow` : "",
    warning > 0
      ? `${down + slow > 0 ? warning : describeCount(warning, "server")} ${warning === 1 ? "has" : "have"} a fault`
      : "",
  ].filter(Boolean);
  const fine = servers.length - down - slow - warning;
  const starting = servers.filter(
    (server) => server.status === "starting" && server.cause === undefined,
  ).length;
  const rate = point?.series.find((each) => each.server === undefined)?.rate;
  const callers = new Set(
    calls.filter(({ at }) => Date.now() - at < 300_000).map(({ caller, client }) => caller ?? client),
  ).size;
  const title =
    status === undefined
      ? "Looking…"
      : parts.length > 0
        ? parts.join(", ")
        : starting > 0
          ? `${describeCount(starting, "server")} ${starting === 1 ? "is" : "are"} starting`
          : "Everything is fine";
  const rest =
    parts.length === 0
      ? `${describeCount(servers.length, "server")} ${servers.length === 1 ? "is" : "are"} here.`
      : fine === 0
        ? ""
        : `The other ${fine === 1 ? "one is" : `${fine} are`} fine.`;
  return (
    <>
      <div aria-live="polite">
        <Heading>{title}</Heading>
      </div>
      <p class="quiet">
        {rest} {rate !== undefined && `${describeRate(rate)} calls a second, `}
        {describeCount(callers, "caller")} in the last 5 minutes.
      </p>
    </>
  );
}

const maxTroubles = 5;

function Troubles(props: { readonly servers: readonly ServerReport[]; readonly store: Store }): JSX.Element {
  const more = props.servers.length - maxTroubles;
  return (
    <section class="panel troubles" aria-label="What is wrong">
      <ul>
        {props.servers.slice(0, maxTroubles).map((server, index) => (
          <Trouble key={server.name} server={server} store={props.store} isFirst={index === 0} />
        ))}
      </ul>
      {more > 0 && (
        <a class="all" href={hrefOf("servers", { is: "trouble" })}>
          {more} more
        </a>
      )}
    </section>
  );
}

function Trouble(props: {
  readonly server: ServerReport;
  readonly store: Store;
  readonly isFirst: boolean;
}): JSX.Element {
  const { server, store, isFirst } = props;
  const { name, cause, nextTryAt, canRestart } = server;
  const now = useNow();
  const { word } = badgeOf(server);
  const isDown = cause?.kind === "down";
  const next =
    nextTryAt !== undefined && nextTryAt > now ? ` Next try in ${describeAge(nextTryAt - now)}.` : "";
  return (
    <li class={isDown ? "danger" : "warn"}>
      <Icon name={isDown ? "danger" : "warning"} />
      <div class="what">
        <p>
          <b>{name}</b> is {word.toLowerCase()}: <span class="because">{cause?.text}</span>
        </p>
        <p class="second">
          {cause?.advice ?? cause?.meaning ?? ""}
          {next}
        </p>
      </div>
      <div class="since">
        {cause?.sinceAt !== undefined && (
          <p>
            since {describeTime(cause.sinceAt).slice(0, 5)}, {describeAge(now - cause.sinceAt)}
          </p>
        )}
        {(cause?.failed ?? 0) > 0 && (
          <p class="because">
            <a href={hrefOf("calls", { is: "failed", server: name })}>
              {describeCount(cause?.failed ?? 0, "call")} failed
            </a>
          </p>
        )}
      </div>
      <div class="acts">
        {canRestart === true && server.status !== "disabled" && (
          <Action
            label={isDown ? "Start now" : "Restart"}
            busy="Starting…"
            class={isFirst ? "ink" : ""}
            act={() => store.api.send("POST", `/api/servers/${encodeURIComponent(name)}/restart`)}
          />
        )}
        <a class="button icon-only" href={hrefOf(pathOf(name))} aria-label={`Open ${name}`}>
          <Icon name="right" />
        </a>
      </div>
    </li>
  );
}

/** Problems of the config and of definitions, but for those of servers that stand above as troubles. */
function Notes({ known: { problems, servers } }: { readonly known: Known }): JSX.Element | null {
  const inTrouble = new Set(servers.filter(isTrouble).map(({ name }) => name));
  const notes = problems.problems.filter(({ server }) => server === undefined || !inTrouble.has(server));
  if (notes.length === 0) return null;
  return (
    <details class="panel notes">
      <summary>
        <Icon name="warning" />
        {describeCount(notes.length, "note")} on the config and on definitions
      </summary>
      <ul>
        {notes.slice(0, 50).map(({ severity, where, message }) => (
          <li key={`${where} ${message}`} class={severity === "error" ? "danger" : ""}>
            <code>{where}</code> {message}
          </li>
        ))}
      </ul>
      {notes.length > 50 && <p class="quiet">and {notes.length - 50} more: junctor check lists them</p>}
    </details>
  );
}

function Busiest(props: {
  readonly store: Store;
  readonly range: string;
  readonly total: number;
}): JSX.Element {
  const { store, range, total } = props;
  const ticks = useTicks(10_000);
  const loaded = useLoaded<Usage>(store.api, `/api/usage?by=tool&sinceMs=${toRangeMs(range)}`, ticks);
  const rows = loaded.kind === "loaded" ? loaded.value.rows.slice(0, 5) : [];
  const most = Math.max(1, ...rows.map(({ calls }) => calls));
  const label = ranges.find(({ value }) => value === range)?.label ?? range;
  return (
    <Panel
      title="Busiest tools"
      class="busiest"
      side={
        <>
          last {label} · <a href="#/tools">all {describeNumber(total)}</a>
        </>
      }
    >
      <table>
        <thead>
          <tr>
            <th scope="col">Tool</th>
            <th scope="col" class="number">
              Calls
            </th>
            <th scope="col" class="bar-cell">
              <span class="hidden">Share</span>
            </th>
            <th scope="col" class="number">
              Median
            </th>
            <th scope="col" class="number rank2">
              p99
            </th>
            <th scope="col" class="number">
              Failed
            </th>
            <th scope="col" class="number rank2">
              Tokens out
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={`${row.server} ${row.name}`}>
              <td>
                <a href={`#/tools/${encodeURIComponent(`tool:${row.name}`)}`}>
                  <ToolName name={row.name} server={row.server} />
                </a>
              </td>
              <td class="number">{describeNumber(row.calls)}</td>
              <td class="bar-cell">
                <span class="bar" style={{ width: `${(row.calls / most) * 92}px` }} />
              </td>
              <td class="number">{describeMs(row.p50Ms ?? row.meanMs)}</td>
              <td class="number rank2">{describeMs(row.p99Ms ?? row.mostMs)}</td>
              <td class={`number ${row.failed === 0 ? "quiet" : "danger"}`}>{describeNumber(row.failed)}</td>
              <td class="number rank2">{describeShort(row.tokensOut)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && (
        <p class="none quiet">
          {loaded.kind === "failed" ? loaded.message : "No call in this time. "}
          {loaded.kind !== "failed" && <a href="#/tools">Try a tool</a>}
        </p>
      )}
    </Panel>
  );
}

/** One lamp for each server, those in trouble first. */
function Lamps({ servers }: { readonly servers: readonly ServerReport[] }): JSX.Element {
  const sorted = sortServers(servers, () => 0);
  const counts = new Map<string, number>();
  for (const server of sorted) {
    const { word } = badgeOf(server);
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return (
    <Panel
      title="Servers"
      count={servers.length}
      class="lamps"
      side={
        <span>
          {[...counts].map(([word, count], index) => {
            const server = sorted.find((each) => badgeOf(each).word === word);
            return (
              <span key={word}>
                {index > 0 && " · "}
                <span
                  class={server?.cause === undefined ? "" : server.cause.kind === "down" ? "danger" : "warn"}
                >
                  {count} {word.toLowerCase()}
                </span>
              </span>
            );
          })}
        </span>
      }
    >
      <ul class="lamp-strip">
        {sorted.map((server) => {
          const { tone, word } = badgeOf(server);
          return (
            <li key={server.name}>
              <a
                class={`lamp ${tone}`}
                href={hrefOf(pathOf(server.name))}
                title={`${server.name}: ${word}`}
                aria-label={`${server.name}: ${word}`}
              />
            </li>
          );
        })}
      </ul>
    </Panel>
  );
}

function WaitingPanel({ known: { parked, problems, servers } }: { readonly known: Known }): JSX.Element {
  const held = servers.filter(({ unapproved = [] }) => unapproved.length > 0);
  const rows: readonly (readonly [IconName, string, string, string, ComponentChildren])[] = [
    ...parked.parked
      .slice(0, 4)
      .map(
        ({ call, tool, server, caller, leftMs }) =>
          [
            "hand",
            hrefOf(`waiting/${encodeURIComponent(call ?? "")}`),
            `${server} asked`,
            `${caller ?? "a caller"}: ${tool ?? ""}`,
            leftMs === undefined ? "" : `${describeAge(leftMs)} left`,
          ] as const,
      ),
    ...(problems.waiting === undefined
      ? []
      : [
          [
            "edit",
            hrefOf("waiting/edit"),
            "Take an edit",
            describeCount(problems.waiting.edits.length, "change"),
            "",
          ] as const,
        ]),
    ...held.map(
      ({ name, unapproved = [] }) =>
        [
          "key",
          hrefOf(`waiting/${encodeURIComponent(`held ${name}`)}`),
          `Definitions of ${name}`,
          `${describeCount(unapproved.length, "definition")} not approved`,
          "",
        ] as const,
    ),
  ];
  return (
    <Panel title="Waiting for you" count={rows.length} class="waits-for-you">
      {rows.length === 0 ? (
        <p class="none quiet">Nothing waits for a decision of yours.</p>
      ) : (
        <ul class="rows">
          {rows.slice(0, 5).map(([icon, href, title, second, side]) => (
            <li key={href}>
              <a href={href}>
                <span class="tile">
                  <Icon name={icon} />
                </span>
                <span class="two">
                  <b>{title}</b>
                  <span>{second}</span>
                </span>
                <span class="side quiet">{side}</span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

/** Who called in the range, the busiest first. */
function Connected({ store, range }: { readonly store: Store; readonly range: string }): JSX.Element {
  const ticks = useTicks(10_000);
  const now = useNow(5000);
  const loaded = useLoaded<Usage>(store.api, `/api/usage?by=caller&sinceMs=${toRangeMs(range)}`, ticks);
  const rows = loaded.kind === "loaded" ? loaded.value.rows : [];
  return (
    <Panel title="Callers" count={rows.length} side="calls">
      {rows.length === 0 ? (
        <p class="none quiet">Nobody called in this time.</p>
      ) : (
        <ul class="rows">
          {rows.slice(0, 6).map(({ name, calls, lastAt = 0 }) => (
            <li key={name}>
              <a href={hrefOf(`callers/${encodeURIComponent(name)}`)}>
                <Dot tone={now - lastAt < 300_000 ? "up" : "idle"} />
                <b>{name}</b>
                <span class="quiet">
                  {lastAt === 0 ? "" : now - lastAt < 5000 ? "now" : `${describeAge(now - lastAt)} ago`}
                </span>
                <span class="side">{describeNumber(calls)}</span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

/** A gateway without servers: what to do first. */
function Welcome({ known: { status } }: { readonly known: Known }): JSX.Element {
  const url = status?.url ?? "";
  const add = `claude mcp add --transport http junctor ${url}`;
  return (
    <div class="view scroller welcome">
      <div class="middle">
        <header>
          <Mark size={56} />
          <div>
            <Heading>Your gateway runs. Now connect both sides.</Heading>
            <p class="quiet">Servers on one side, clients on the other. It takes about two minutes.</p>
          </div>
        </header>
        <section class="panel first-step">
          <h2>
            <span class="round">1</span> Bring the servers you already have
          </h2>
          <p>In a terminal. It shows every command before anything runs:</p>
          <Code text="junctor import" />
          <p>Or add one by hand:</p>
          <Code text="junctor add files npx -y @modelcontextprotocol/server-filesystem ." />
        </section>
        <section class="panel first-step">
          <h2>
            <span class="round">2</span> Connect a client
          </h2>
          <p>
            Claude Code; <code>junctor install</code> does it for the others.
          </p>
          <Code text={url === "" ? "junctor install" : add} />
        </section>
        <p class="quiet">
          <Dot tone="busy" /> This page fills in as soon as something connects.
        </p>
      </div>
    </div>
  );
}

export function Code({ text }: { readonly text: string }): JSX.Element {
  return (
    <div class="code-line">
      <pre>{text}</pre>
      <CopyButton text={text} />
    </div>
  );
}
