import type { JSX } from "preact";
import type { ListedFault, ServerReport, Status } from "../junctor/src/admin/answers.ts";
import { Action, Badge, Heading, Sparkline, useNow } from "./parts.tsx";
import { type Store, useKnown } from "./store.ts";
import { describeAge, describeBytes, describeCount, describeMs, describeRate } from "./words.ts";

/** Every server: how it is, what it offers, and what to do when it is down. */
export function Servers({ store }: { readonly store: Store }): JSX.Element {
  const { servers, status } = useKnown(store);
  return (
    <>
      <Heading>Servers</Heading>
      {status !== undefined && <Overview status={status} />}
      {servers.length === 0 && <p class="quiet">The config has no servers.</p>}
      <ul class="cards">
        {servers.map((server) => (
          <li key={server.name}>
            <ServerCard server={server} store={store} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Overview({ status }: { readonly status: Status }): JSX.Element {
  const now = useNow();
  const facts: readonly (readonly [string, string])[] = [
    ["Calls underway", String(status.calls.underway)],
    ["Calls in all", String(status.calls.total)],
    ["Failed", String(status.calls.failed)],
    ["Sessions", String(status.sessions)],
    ["Streams", String(status.streams)],
    ["Parked", String(status.parked)],
    ["Memory", describeBytes(status.memoryBytes)],
    ["Event loop delay", describeMs(status.eventLoopDelayMs)],
    ["Up for", describeAge(now - status.startedAt)],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function ServerCard({
  server,
  store,
}: {
  readonly server: ServerReport;
  readonly store: Store;
}): JSX.Element {
  const { name, status, recent } = server;
  const now = useNow();
  const rate = recent?.rate.at(-1) ?? 0;
  const p50 = recent?.p50Ms.findLast((value) => value !== null);
  return (
    <article class="card" aria-labelledby={`server-${name}`}>
      <header>
        <h2 id={`server-${name}`}>{name}</h2>
        <Badge state={status} />
      </header>
      <p class="quiet">{describeServer(server, now)}</p>
      {server.trouble !== undefined && status !== "up" && (
        <div class="trouble">
          <p>{server.trouble}</p>
          {server.nextTryAt !== undefined && server.nextTryAt > now && (
            <p>Next try in {describeAge(server.nextTryAt - now)}.</p>
          )}
          {server.advice !== undefined && <p>{server.advice}</p>}
          {server.said !== undefined && <pre class="said">{server.said}</pre>}
          {server.stray !== undefined && <p>It wrote to standard output: {server.stray}</p>}
        </div>
      )}
      <dl class="facts">
        <div>
          <dt>Tools</dt>
          <dd>
            <a href={`#/tools?server=${encodeURIComponent(name)}`}>{server.tools ?? 0}</a>
          </dd>
        </div>
        <div>
          <dt>Calls a second</dt>
          <dd>{describeRate(rate)}</dd>
        </div>
        <div>
          <dt>Median</dt>
          <dd>{describeMs(p50)}</dd>
        </div>
        {recent !== undefined && (
          <div class="wide">
            <dt>Latency, ten minutes</dt>
            <dd>
              <Sparkline values={recent.p50Ms} />
            </dd>
          </div>
        )}
      </dl>
      <Details server={server} />
      {server.canRestart !== false && server.kind !== "local" && status !== "disabled" && (
        <div class="actions">
          <Action label="Restart" act={() => store.api.send("POST", pathOf(name, "restart"))} />
          {status === "stopped" || status === "idle" || status === "down" ? (
            <Action label="Start" act={() => store.api.send("POST", pathOf(name, "start"))} />
          ) : (
            <Action
              label="Stop"
              confirm={`Stop ${name}? Its calls have 10 s to finish, and it stays stopped until you start it.`}
              act={() => store.api.send("POST", pathOf(name, "stop"))}
            />
          )}
        </div>
      )}
    </article>
  );
}

function pathOf(name: string, act: string): string {
  return `/api/servers/${encodeURIComponent(name)}/${act}`;
}

function describeServer(server: ServerReport, now: number): string {
  const { kind, era, revision, says, sinceAt, connectMs, status } = server;
  return [
    kind === "command" ? "started here" : kind === "http" ? "over HTTP" : "of this process",
    era === undefined ? undefined : `${era}${revision === undefined ? "" : `, ${revision}`}`,
    says,
    status === "up" && sinceAt !== undefined && sinceAt > 0
      ? `up for ${describeAge(now - sinceAt)}`
      : undefined,
    status === "up" && connectMs !== undefined && connectMs > 0
      ? `connected in ${describeMs(connectMs)}`
      : undefined,
  ]
    .filter((part) => part !== undefined)
    .join(" · ");
}

function Details({ server }: { readonly server: ServerReport }): JSX.Element | null {
  const { connections = [], leftOut = [], mended = [], unapproved = [], restarts = 0 } = server;
  if (connections.length + leftOut.length + mended.length + unapproved.length + restarts === 0) return null;
  return (
    <details>
      <summary>
        Details
        {leftOut.length > 0 && ` · ${describeCount(leftOut.length, "thing")} left out`}
        {unapproved.length > 0 && ` · ${describeCount(unapproved.length, "definition")} not approved`}
      </summary>
      {restarts > 0 && <p>Started again {describeCount(restarts, "time")}.</p>}
      {connections.map((connection) => (
        <p key={connection.reason}>
          {server.kind === "http" ? "Conversation" : "Process"} {connection.reason}: {connection.status},{" "}
          {connection.inUse} in use
        </p>
      ))}
      <Faults title="Left out, because clients would refuse it" faults={leftOut} />
      <Faults title="Mended, so that clients accept it" faults={mended} />
      {unapproved.map(({ part, name, why }) => (
        <p key={`${part} ${name}`}>
          <code>{name}</code> ({part}) is {why}: <code>junctor trust</code> approves it.
        </p>
      ))}
    </details>
  );
}

function Faults(props: {
  readonly title: string;
  readonly faults: readonly ListedFault[];
}): JSX.Element | null {
  if (props.faults.length === 0) return null;
  return (
    <>
      <h3>{props.title}</h3>
      <ul>
        {props.faults.map(({ part, name, reason }) => (
          <li key={`${part} ${name} ${reason}`}>
            <code>{name}</code> ({part}): {reason}
          </li>
        ))}
      </ul>
    </>
  );
}
