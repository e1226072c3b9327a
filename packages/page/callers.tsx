import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type {
  Callers as CallerList,
  History,
  Sessions,
  Usage,
  UsageReport,
} from "../junctor/src/admin/answers.ts";
import { Icon } from "./icons.tsx";
import {
  Action,
  Badge,
  Dot,
  Empty,
  Facts,
  Heading,
  KeyBar,
  ranges,
  Search,
  Segments,
  ToolName,
  toRangeMs,
  useKeys,
  useNow,
  useTicks,
  WhenLoaded,
} from "./parts.tsx";
import { go, hrefOf, refine, type Route } from "./route.ts";
import { type Store, useLoaded } from "./store.ts";
import { describeAge, describeCount, describeNumber, describeShort } from "./words.ts";

interface CallerRow {
  readonly name: string;
  /** Whether a key, a token or a certificate proves the name; otherwise a client gave it to itself. */
  readonly isNamed: boolean;
  readonly tools: number | undefined;
  readonly sessions: number;
  readonly underway: number;
  readonly isRevoked: boolean;
  readonly used: UsageReport | undefined;
}

/** Who uses the gateway, how much, and what each may do. */
export function Callers({ store, route }: { readonly store: Store; readonly route: Route }): JSX.Element {
  const { query, rest: openName } = route;
  const range = query.get("range") ?? "1h";
  const words = (query.get("q") ?? "").toLowerCase();
  const [actionCount, setActionCount] = useState(0);
  const ticks = useTicks(10_000);
  const now = useNow(5000);
  const callers = useLoaded<CallerList>(store.api, "/api/callers", `${actionCount} ${ticks}`);
  const usage = useLoaded<Usage>(store.api, `/api/usage?by=caller&sinceMs=${toRangeMs(range)}`, ticks);
  const sessions = useLoaded<Sessions>(store.api, "/api/sessions", ticks);
  const rows = toRows(callers, usage, sessions).filter(({ name }) => name.toLowerCase().includes(words));
  const open = rows.find(({ name }) => name === openName);
  const at = rows.findIndex(({ name }) => name === openName);
  const show = (name: string | undefined): void =>
    go(name === undefined ? "callers" : `callers/${encodeURIComponent(name)}`, Object.fromEntries(query));
  const step = (by: number): void => show(rows[Math.max(0, Math.min(rows.length - 1, at + by))]?.name);
  useKeys({ j: () => step(1), k: () => step(-1), Escape: () => show(undefined) });
  return (
    <div class={`view list-view ${open === undefined ? "" : "has-drawer"}`}>
      <header class="view-head">
        <Heading>Callers</Heading>
        <Segments
          label="Range"
          value={range}
          options={ranges}
          onChange={(next) => refine(route, { range: next })}
        />
      </header>
      <div class="filters">
        <Search label="Filter by name" value={query.get("q") ?? ""} onChange={(q) => refine(route, { q })} />
        {callers.kind === "loaded" && callers.value.unnamed && (
          <span class="quiet wide-only">
            The config has no keys: every client on this machine may call, known by the name it gives itself.
          </span>
        )}
      </div>
      <div class="with-drawer">
        <div class="scroller">
          {callers.kind === "failed" && <p class="trouble">{callers.message}</p>}
          {rows.length === 0 && callers.kind === "loaded" && (
            <Empty title="Nobody has called yet.">
              <p>
                <code>junctor install</code> puts this gateway into your clients.
              </p>
            </Empty>
          )}
          {rows.length > 0 && <CallerTable rows={rows} openName={openName} onOpen={show} now={now} />}
        </div>
        {open !== undefined && (
          <CallerDrawer
            store={store}
            row={open}
            range={range}
            onClose={() => show(undefined)}
            onDone={() => setActionCount((count) => count + 1)}
          />
        )}
      </div>
      <KeyBar
        keys={[
          ["J K", "move"],
          ["Esc", "close"],
        ]}
      >
        {describeCount(rows.length, "caller")}
      </KeyBar>
    </div>
  );
}

type LoadedOf<T> = ReturnType<typeof useLoaded<T>>;

function toRows(
  callers: LoadedOf<CallerList>,
  usage: LoadedOf<Usage>,
  sessions: LoadedOf<Sessions>,
): readonly CallerRow[] {
  const used = new Map(usage.kind === "loaded" ? usage.value.rows.map((row) => [row.name, row]) : []);
  const open = sessions.kind === "loaded" ? sessions.value.sessions : [];
  const named = callers.kind === "loaded" ? callers.value.callers : [];
  const known = new Set(named.map(({ name }) => name));
  const others = [
    ...new Set([
      ...used.keys(),
      ...open.flatMap(({ caller, client }) => (caller === undefined ? [client] : [])),
    ]),
  ].filter((name) => !known.has(name));
  return [
    ...named.map(({ name, tools, sessions: count, calls, isRevoked }) => ({
      name,
      isNamed: true,
      tools,
      sessions: count,
      underway: calls,
      isRevoked,
      used: used.get(name),
    })),
    ...others.map((name) => ({
      name,
      isNamed: false,
      tools: undefined,
      sessions: open.filter(({ caller, client }) => caller === undefined && client === name).length,
      underway: 0,
      isRevoked: false,
      used: used.get(name),
    })),
  ].toSorted((one, other) => (other.used?.calls ?? 0) - (one.used?.calls ?? 0));
}

function CallerTable(props: {
  readonly rows: readonly CallerRow[];
  readonly openName: string;
  readonly onOpen: (name: string) => void;
  readonly now: number;
}): JSX.Element {
  const { rows, openName, onOpen, now } = props;
  return (
    <table class="callers-table">
      <thead>
        <tr>
          <th scope="col">Caller</th>
          <th scope="col" class="rank2">
            Seen
          </th>
          <th scope="col" class="rank2">
            May use
          </th>
          <th scope="col" class="number">
            Calls
          </th>
          <th scope="col" class="number">
            Failed
          </th>
          <th scope="col" class="number rank2">
            Tokens
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => {
          const { name, isNamed, tools, isRevoked, used, sessions, underway } = row;
          const lastAt = used?.lastAt;
          const isHere = sessions > 0 || underway > 0 || (lastAt !== undefined && now - lastAt < 300_000);
          return (
            <tr
              key={name}
              class={`two-line ${name === openName ? "chosen" : ""}`}
              onClick={() => onOpen(name)}
            >
              <th scope="row">
                <a
                  href={hrefOf(`callers/${encodeURIComponent(name)}`)}
                  onClick={(event) => event.preventDefault()}
                >
                  <Dot tone={isHere && !isRevoked ? "up" : "idle"} />
                  <span class="two">
                    <b>{name}</b>
                    <span>{isRevoked ? "Revoked" : isNamed ? "Key or token" : "No key, this computer"}</span>
                  </span>
                </a>
              </th>
              <td class="rank2 quiet">
                {lastAt === undefined
                  ? "–"
                  : now - lastAt < 5000
                    ? "now"
                    : `${describeAge(now - lastAt)} ago`}
                {sessions > 0 && `, ${sessions} open`}
              </td>
              <td class="rank2">{tools === undefined ? "everything" : describeCount(tools, "tool")}</td>
              <td class="number">{describeNumber(used?.calls ?? 0)}</td>
              <td class={`number ${(used?.failed ?? 0) === 0 ? "quiet" : "danger"}`}>
                {describeNumber(used?.failed ?? 0)}
              </td>
              <td class="number rank2">{describeShort((used?.tokensIn ?? 0) + (used?.tokensOut ?? 0))}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function CallerDrawer(props: {
  readonly store: Store;
  readonly row: CallerRow;
  readonly range: string;
  readonly onClose: () => void;
  readonly onDone: () => void;
}): JSX.Element {
  const { store, row, range, onClose, onDone } = props;
  const { name, isNamed, isRevoked, tools, used } = row;
  const act = (what: string) => () =>
    store.api.send("POST", `/api/callers/${encodeURIComponent(name)}/${what}`);
  return (
    <aside class="drawer" aria-label={`Caller ${name}`}>
      <div class="drawer-acts">
        <button type="button" class="ghost small icon-only" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      <header>
        <h2>{name}</h2>
        <p>
          <Badge tone={isRevoked ? "idle" : row.sessions > 0 ? "up" : "idle"}>
            {isRevoked ? "Revoked" : row.sessions > 0 ? "Connected" : "Away"}
          </Badge>
        </p>
      </header>
      <div class="drawer-body">
        {isNamed && (
          <section>
            <h3>
              May use{" "}
              <a class="side" href={hrefOf("tools", { as: name })}>
                See tools as {name}
              </a>
            </h3>
            <p class="big-number">
              {tools} <small class="quiet">tools</small>
            </p>
          </section>
        )}
        <Facts
          facts={[
            ["Calls", describeNumber(used?.calls ?? 0)],
            ["Failed", describeNumber(used?.failed ?? 0)],
            ["Tokens in", describeShort(used?.tokensIn ?? 0)],
            ["Tokens out", describeShort(used?.tokensOut ?? 0)],
            ["Underway", String(row.underway)],
          ]}
        />
        <CallerSessions store={store} name={name} isNamed={isNamed} />
        <FailingTools store={store} name={name} range={range} />
        <p class="acts">
          <a class="button" href={hrefOf("calls", { caller: name, range })}>
            Show calls
          </a>
          {isNamed &&
            (isRevoked ? (
              <Action label="Restore" act={act("restore")} onDone={onDone} />
            ) : (
              <Action
                label="Revoke…"
                class="danger-word"
                confirm={`Refuse ${name} from now on, and end all it has open?`}
                act={act("revoke")}
                onDone={onDone}
              />
            ))}
        </p>
      </div>
    </aside>
  );
}

function CallerSessions({
  store,
  name,
  isNamed,
}: {
  readonly store: Store;
  readonly name: string;
  readonly isNamed: boolean;
}): JSX.Element {
  const loaded = useLoaded<Sessions>(store.api, "/api/sessions", useTicks(5000));
  return (
    <WhenLoaded loaded={loaded}>
      {({ sessions }) => {
        const own = sessions.filter(({ caller, client }) =>
          isNamed ? caller === name : caller === undefined && client === name,
        );
        return (
          <section>
            <h3>
              Sessions <span class="count">{own.length}</span>
            </h3>
            {own.length === 0 && <p class="quiet">None that stay open.</p>}
            <ul class="rows plain-rows">
              {own.slice(0, 20).map(({ id, client, revision, ageMs, idleMs, calls }) => (
                <li key={id}>
                  <span class="two">
                    <b>{client}</b>
                    <span>
                      {revision}, idle {describeAge(idleMs)}
                    </span>
                  </span>
                  <span class="side quiet">{calls > 0 ? `${calls} running` : describeAge(ageMs)}</span>
                </li>
              ))}
            </ul>
          </section>
        );
      }}
    </WhenLoaded>
  );
}

function FailingTools(props: {
  readonly store: Store;
  readonly name: string;
  readonly range: string;
}): JSX.Element | null {
  const { store, name, range } = props;
  const loaded = useLoaded<History>(
    store.api,
    `/api/history?is=failed&limit=500&caller=${encodeURIComponent(name)}&sinceMs=${toRangeMs(range)}`,
  );
  if (loaded.kind !== "loaded" || loaded.value.calls.length === 0) return null;
  const counts = new Map<string, { readonly server: string | undefined; count: number }>();
  for (const { tool = "", server } of loaded.value.calls) {
    const known = counts.get(tool) ?? { server, count: 0 };
    known.count++;
    counts.set(tool, known);
  }
  return (
    <section>
      <h3>Failing tools</h3>
      <ul class="rows plain-rows">
        {[...counts]
          .toSorted(([, one], [, other]) => other.count - one.count)
          .slice(0, 5)
          .map(([tool, { server, count }]) => (
            <li key={tool}>
              <a href={hrefOf("calls", { is: "failed", caller: name, tool, range })}>
                <ToolName name={tool === "" ? "other requests" : tool} server={server} />
                <span class="side danger">{count}</span>
              </a>
            </li>
          ))}
      </ul>
    </section>
  );
}
